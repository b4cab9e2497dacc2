//! Decides which processes are left alone, from what the system shows. Nothing is sent to the
//! processes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clr_diagnostics::{Error, Process};
use clrscope_contract::program_names::{ProgramNames, entry_assembly_name};
use clrscope_contract::request::Programs;

use crate::attach::{Present, plain_name};
use crate::errors::quoted;
use crate::launch::{Obstacle, obstacles, tracer_of};
use crate::recorded_process::{DELETED, is_recorded};

/// Age below which a runtime may not listen yet.
const START: Duration = Duration::from_secs(3);

/// What to do with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The process can be recorded.
    Free,
    /// Look again later: the process's runtime is starting, or the process is ending.
    Starts,
    /// Leave the process alone, for this reason.
    Left(String),
}

/// A program: executable and command line as the system shows them.
#[derive(Debug)]
pub(super) struct Identity {
    executable: PathBuf,
    command_line: Vec<String>,
    folder: PathBuf,
}

impl Identity {
    /// The program that the process runs.
    pub(super) fn of(process: &Process) -> Self {
        let link = |name: &str| fs::read_link(format!("/proc/{}/{name}", process.pid())).ok();
        let command_line = process.command_line();
        // Links of other users' processes can't be read.
        let executable = link("exe").map(without_deleted);
        let executable = executable.or_else(|| command_line.first().map(PathBuf::from)).unwrap_or_default();
        Self { executable, command_line, folder: link("cwd").unwrap_or_default() }
    }

    /// Whether the user's patterns choose this program.
    ///
    /// # Errors
    /// Why a file with patterns can't be used.
    pub(super) fn is_chosen(&self, programs: &Programs, trust_writable: bool) -> Result<bool, String> {
        let patterns = programs.patterns(trust_writable).map_err(|error| error.0)?;
        Ok(ProgramNames::new(&self.executable, &self.command_line, &self.folder).match_any(&patterns))
    }

    /// Name of the program, which can be the name of a folder.
    pub(super) fn name(&self) -> String {
        plain_name(&entry_assembly_name(&self.executable, &self.command_line))
    }
}

/// The path of an executable, also after its file was removed or replaced.
fn without_deleted(path: PathBuf) -> PathBuf {
    path.to_str().and_then(|text| text.strip_suffix(DELETED)).map(PathBuf::from).unwrap_or(path)
}

/// Judges a process.
pub(super) fn judge(process: &Process) -> Judgement {
    let left = |why: String| Judgement::Left(why);
    if !may_attach(process) {
        return left(format!("it belongs to another user (id {})", process.uid()));
    }
    if let Some(debugger) = debugger(process) {
        return left(debugger);
    }
    if process.is_stopped() {
        return left("it is stopped by a signal or a debugger".to_owned());
    }
    match process.port() {
        Ok(_) => {}
        Err(Error::DiagnosticsOff { .. } | Error::NotDotnet { .. }) if process.age() < START => {
            return Judgement::Starts;
        }
        Err(Error::DiagnosticsOff { .. }) => {
            return left("its runtime has no diagnostics socket, as with DOTNET_EnableDiagnostics=0".to_owned());
        }
        Err(Error::NoProcess { .. }) => return Judgement::Starts,
        Err(Error::NotPermitted { .. }) => return left("the system does not let clrscope inspect it".to_owned()),
        Err(error) => return left(error.to_string()),
    }
    match profiler(process).or_else(|| is_recorded(process.pid()).then(|| "clrscope records it already".to_owned())) {
        Some(why) => left(why),
        None => Judgement::Free,
    }
}

/// Whether this user may attach: root to all processes, others to their own.
fn may_attach(process: &Process) -> bool {
    let own = rustix::process::geteuid().as_raw();
    own == 0 || process.uid() == own
}

/// The debugger that a process has, as a sentence.
pub(super) fn debugger(process: &Process) -> Option<String> {
    let pid = process.pid();
    if let Some(tracer @ 1_u32..) = tracer_of(pid) {
        return Some(format!("process {tracer} traces it, as debuggers do"));
    }
    // The runtime opens its pipes for debuggers only once a debugger has opened them.
    let pipe = format!("clr-debug-pipe-{}-", process.inner_pid());
    let is_pipe = |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&pipe));
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut files = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    files.any(|file| is_pipe(&file)).then(|| "a debugger of .NET is attached to it".to_owned())
}

/// The profiler that the program was started with, as a sentence.
fn profiler(process: &Process) -> Option<String> {
    match Present::in_process(process) {
        Present::Ours => return Some("it was started under clrscope, which already records it".to_owned()),
        Present::Other(other) => return Some(format!("another profiler is loaded: {}", other.in_words())),
        Present::None => {}
    }
    let variable = |name: &str| process.variable(name).ok().flatten().map(OsString::from);
    obstacles(variable).into_iter().find_map(|obstacle| match obstacle {
        Obstacle::BesideUs(name, value) => Some(format!("another profiler is loaded: {} of {name}", quoted(&value))),
        Obstacle::OtherProfiler(_) | Obstacle::Disabled(_) => None,
    })
}
