//! Starts a program under a debugger, or lets it wait for one. Only the program gets the profiler's
//! variables, not the debugger.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::program::{Program, check_on_path};
use crate::errors::Failure;
use crate::terminal::say;

/// Signals that the runtime uses itself.
const RUNTIMES_OWN: [&str; 4] = ["SIGUSR1", "SIG34", "SIG35", "SIG36"];
/// Function that the runtime calls first in a profiler; a breakpoint on it is pending until the
/// library is loaded.
const AT_LOAD: &str = "DllGetClassObject";
/// Interval of checks whether a debugger has attached.
const POLL: Duration = Duration::from_millis(50);

/// A debugger that the program is started under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Debugger {
    /// gdb starts the program.
    Gdb,
    /// lldb starts the program.
    Lldb,
    /// Any debugger that attaches; until then the program is stopped before its first instruction.
    Wait,
}

/// Variables of the environment.
pub(super) type Variables = Vec<(String, OsString)>;

impl Debugger {
    /// Command that starts `program` under the debugger, and its variables.
    ///
    /// # Errors
    /// When the debugger is not installed.
    pub(super) fn command(self, program: &Program, variables: &Variables) -> Result<(Program, Variables), Failure> {
        let (executable, mut arguments) = match self {
            Self::Gdb => ("gdb", gdb_words(variables)),
            Self::Lldb => ("lldb", lldb_words(variables)),
            Self::Wait => ("sh", ["-c", "kill -STOP $$; exec \"$@\"", "sh"].map(OsString::from).to_vec()),
        };
        check_on_path(executable.as_ref()).map_err(|failure| {
            let hint = format!("install {executable}, or use --debugger wait and attach the debugger you have");
            Failure::new(format!("cannot start {executable}"), failure.why(), hint).with_code(failure.code())
        })?;
        arguments.push(program.executable.clone());
        arguments.extend_from_slice(&program.arguments);
        let started = Program { executable: executable.into(), arguments, name: program.name.clone() };
        let variables = if self == Self::Wait { variables.clone() } else { Vec::new() };
        Ok((started, variables))
    }

    /// Tells the user what to do once the program runs as `pid`.
    pub(super) fn started(self, pid: Pid) {
        if self == Self::Wait {
            let id = pid.as_raw_nonzero();
            say(&format!(
                "clrscope: process {id} waits for a debugger: gdb -p {id} (or lldb -p {id}), then 'continue'"
            ));
            thread::spawn(move || release_when_traced(pid));
        }
    }
}

/// Process id of the tracer of a process, such as a debugger: 0 if there is none, `None` if the
/// process has ended or can't be looked into.
pub(crate) fn tracer_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("TracerPid:")?.trim().parse().ok())
}

/// Sends SIGCONT to the program as soon as it is traced; the debugger then controls it.
fn release_when_traced(pid: Pid) {
    while let Some(tracer) = tracer_of(pid.as_raw_nonzero().get().unsigned_abs()) {
        if tracer != 0 {
            // Debuggers that handle stopped programs have sent SIGCONT already.
            let _ = kill_process(pid, Signal::CONT);
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "the system notifies nobody of a tracer")]
        thread::sleep(POLL);
    }
}

fn gdb_words(variables: &Variables) -> Vec<OsString> {
    let mut words = vec![OsString::from("-q")];
    let mut command = |command: OsString| words.extend([OsString::from("-ex"), command]);
    for (name, value) in variables {
        let mut set = OsString::from(format!("set environment {name}="));
        set.push(value);
        command(set);
    }
    command(format!("handle {} nostop noprint pass", RUNTIMES_OWN.join(" ")).into());
    command("set breakpoint pending on".into());
    command(format!("break {AT_LOAD}").into());
    words.push("--args".into());
    words
}

fn lldb_words(variables: &Variables) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut command = |command: OsString| words.extend([OsString::from("-o"), command]);
    for (name, value) in variables {
        let value = String::from_utf8_lossy(value.as_bytes()).replace('\\', "\\\\").replace('"', "\\\"");
        command(format!("settings append target.env-vars \"{name}={value}\"").into());
    }
    command(format!("breakpoint set --name {AT_LOAD}").into());
    words.push("--".into());
    words
}
