//! Runs a program to its end, with a time limit.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::signals;

/// Variables that make the runtime load a profiler.
pub const PROFILER_VARIABLES: [&str; 7] = [
    "CORECLR_ENABLE_PROFILING",
    "CORECLR_PROFILER",
    "CORECLR_PROFILER_PATH",
    "CORECLR_PROFILER_PATH_64",
    "CORECLR_ENABLE_NOTIFICATION_PROFILERS",
    "CORECLR_NOTIFICATION_PROFILERS",
    "CLRSCOPE_AGENT",
];

/// Time limit: long enough for any fixture under any instrument on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A program that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// Bytes of stdout.
    pub stdout: Vec<u8>,
    /// Bytes of stderr.
    pub stderr: Vec<u8>,
    /// Wall time from start to end.
    pub elapsed: Duration,
}

impl Finished {
    /// The exit code, or 128 + n for signal n, as in a shell.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// stdout as text; bytes that are not UTF-8 are replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text; bytes that are not UTF-8 are replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Checks that the program ended with exit code 0.
    ///
    /// # Panics
    /// With all output of the program, when it did not.
    pub fn expect_success(self) -> Self {
        assert!(self.status.success(), "exit code {}\n{}\n{}", self.code(), self.stdout_text(), self.stderr_text());
        self
    }
}

/// Runs the command to its end with no input.
///
/// # Panics
/// When the program does not start, or has not ended after three minutes. Then it is killed.
pub fn run(command: Command) -> Finished {
    run_within(command, PATIENCE)
}

/// As [`run`], with this time limit.
///
/// # Panics
/// When it does not start or does not end in time. Then it and its child processes are killed.
pub fn run_within(mut command: Command, limit: Duration) -> Finished {
    let began = Instant::now();
    // A group of its own, so that children of a program that hangs can be ended too.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    signals::let_children_hear();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let status = wait_within(&mut child, limit).unwrap_or_else(|| {
        kill_group(&mut child);
        panic!("{command:?} has not ended after {limit:?}")
    });
    let collect = |pipe: thread::JoinHandle<Vec<u8>>| pipe.join().expect("reading a pipe does not panic");
    Finished { status, stdout: collect(stdout), stderr: collect(stderr), elapsed: began.elapsed() }
}

/// Removes variables from the command's environment that would change how .NET runs the program.
pub(crate) fn clean_environment(command: &mut Command) {
    for name in PROFILER_VARIABLES {
        command.env_remove(name);
    }
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    command.env("DOTNET_CLI_TELEMETRY_OPTOUT", "1");
    command.env("DOTNET_NOLOGO", "1");
    // A dump of each hostile program would fill the disk.
    command.env("DOTNET_DbgEnableMiniDump", "0");
}

pub(crate) fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("the pipe was asked for");
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe has delivered all its data.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

pub(crate) fn wait_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        crate::pause(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

pub(crate) fn kill_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    let _ = child.kill();
    let _ = child.wait();
}
