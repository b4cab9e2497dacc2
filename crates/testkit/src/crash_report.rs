//! Where a program crashed, by the runtime's own report: for tests of programs that must not.
//!
//! The runtime's `createdump` writes the stacks of a program that a signal ends, and only then
//! (dotnet/runtime, docs/design/coreclr/botr/xplat-minidump-generation.md).

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Maximum number of listed frames of the thread that crashed.
const MOST_FRAMES: usize = 40;

/// The report of one program, if it crashes.
#[derive(Debug)]
pub struct CrashReport {
    folder: TempDir,
}

impl CrashReport {
    /// Asks the runtime that `command` starts for a report.
    pub fn of(command: &mut Command) -> Self {
        let folder = crate::scratch();
        command.env("DOTNET_DbgEnableMiniDump", "1").env("DOTNET_EnableCrashReportOnly", "1");
        command.env("DOTNET_DbgMiniDumpName", folder.path().join("crash.%p"));
        Self { folder }
    }

    /// The frames of the thread that crashed, innermost first, a line each; empty without a report.
    pub fn frames(&self) -> String {
        let reports = fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        let texts = reports.filter_map(|file| fs::read(file.path()).ok());
        texts.filter_map(|text| Some(frames_of(&serde_json::from_slice(&text).ok()?))).collect()
    }
}

fn frames_of(report: &Value) -> String {
    let threads = report["payload"]["threads"].as_array().into_iter().flatten();
    let crashed = threads.filter(|thread| thread["crashed"] == "true");
    let frames = crashed.filter_map(|thread| thread["stack_frames"].as_array()).flatten();
    frames.take(MOST_FRAMES).map(frame).collect()
}

fn frame(frame: &Value) -> String {
    let word = |key: &str| frame[key].as_str().unwrap_or_default();
    match word("method_name") {
        "" => format!("{}+{} {}\n", word("native_module"), word("native_image_offset"), word("unmanaged_name")),
        method => format!("{method}\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::{fixture, runtimes, wait_for, wait_for_work};

    #[test]
    fn a_program_that_a_signal_hits_has_frames() {
        for runtime in runtimes() {
            let mut command = runtime.command(&fixture("KnownPaths"));
            let folder = crate::scratch();
            command.arg(folder.path().join("notes")).args(["60000", "1"]).stderr(Stdio::null());
            let report = CrashReport::of(&mut command);
            let mut program = command.spawn().expect("a program");
            wait_for_work(program.id(), Duration::from_millis(200));
            assert_eq!(report.frames(), "", "{}", runtime.version);
            kill_process(Pid::from_child(&program), Signal::SEGV).expect("a signal");
            let frames = wait_for("a report", || Some(report.frames()).filter(|frames| !frames.is_empty()));
            assert!(frames.contains("libcoreclr.so+0x"), "{}: {frames}", runtime.version);
            program.kill().expect("a program");
            program.wait().expect("a program");
        }
    }
}
