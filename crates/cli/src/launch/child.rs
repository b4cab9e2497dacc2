//! The program as a child process.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use clrscope_push::HEADERS_VARIABLE;
use clrscope_recording::model::Exit;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::debugger::{Debugger, Variables};
use super::program::Program;
use super::signals::Signals;
use crate::errors::{EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failure, quoted, reason};

/// Where the output of the program goes. The program inherits everything else from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// To the stdout of this process.
    Ours,
    /// To the stderr of this process, whose stdout is for a result.
    OurStderr,
}

/// A program that was started.
pub(crate) struct Running {
    child: Child,
    signals: Signals,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramEnd(Exit);

/// Starts the program with our terminal, our folder and our environment plus `variables`, under a
/// debugger if there is one.
///
/// # Errors
/// With a shell's exit code: 127 when the program's file has vanished, 126 for everything else.
pub(crate) fn start(
    program: &Program,
    variables: &Variables,
    stdout: Stdout,
    signals: Signals,
    debugger: Option<Debugger>,
) -> Result<Running, Failure> {
    let Some(debugger) = debugger else { return start_alone(program, variables, stdout, signals) };
    let (watched, variables) = debugger.command(program, variables)?;
    let running = start_alone(&watched, &variables, stdout, signals)?;
    if let Some(pid) = Pid::from_raw(running.id() as i32) {
        debugger.started(pid);
    }
    Ok(running)
}

fn start_alone(program: &Program, variables: &Variables, stdout: Stdout, signals: Signals) -> Result<Running, Failure> {
    let mut command = Command::new(&program.executable);
    command.args(&program.arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    // The headers of receivers are none of the program's business.
    command.env_remove(HEADERS_VARIABLE);
    match stdout {
        Stdout::Ours => {}
        Stdout::OurStderr => _ = command.stdout(io::stderr()),
    }
    let child = command.spawn().map_err(|error| cannot_start(program, &error))?;
    if let Some(pid) = Pid::from_raw(child.id() as i32) {
        signals.program_started(pid);
    }
    Ok(Running { child, signals })
}

fn cannot_start(program: &Program, error: &io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::NotFound { EXIT_NOT_FOUND } else { EXIT_NOT_EXECUTABLE };
    let hint = match error.raw_os_error() {
        // ENOEXEC
        Some(8) => "it is neither a program for this machine nor a script that begins with #!",
        _ => "try to start it without clrscope",
    };
    let what = format!("cannot start {}", quoted(&program.executable.to_string_lossy()));
    Failure::new(what, reason(error), hint).with_code(code)
}

impl Running {
    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the program, not of its children.
    ///
    /// # Errors
    /// When the operating system lost the child, for instance because another part of the process
    /// reaped it.
    pub(crate) fn wait(mut self) -> io::Result<ProgramEnd> {
        // First wait without reaping: until the child is reaped, its id can't be reused for another
        // process, to which we would forward a signal.
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            while let Err(rustix::io::Errno::INTR) =
                waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            {}
        }
        self.signals.program_ended();
        self.child.wait().map(ProgramEnd::from)
    }
}

impl From<ExitStatus> for ProgramEnd {
    fn from(status: ExitStatus) -> Self {
        Self(match status.signal() {
            Some(signal) => Exit::Signal(signal),
            None => Exit::Code(status.code().unwrap_or(0)),
        })
    }
}

impl ProgramEnd {
    /// The end in the form that recordings store.
    pub(crate) fn exit(self) -> Exit {
        self.0
    }

    /// The exit code of `run`: the program's, or 128 plus the number of the signal.
    pub(crate) fn code(self) -> u8 {
        match self.0 {
            Exit::Code(code) => code as u8,
            Exit::Signal(signal) => (128 + signal) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_programs() {
        for code in [0, 1, 125, 255] {
            assert_eq!(ProgramEnd::from(ExitStatus::from_raw(code << 8)).code(), code as u8);
        }
        assert_eq!(ProgramEnd::from(ExitStatus::from_raw(9)).code(), 137);
        assert_eq!(ProgramEnd::from(ExitStatus::from_raw(15)).exit(), Exit::Signal(15));
    }
}
