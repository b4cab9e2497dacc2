//! Waking of the dormant agent that a process has since it had probes or followed awaits: the
//! runtime does not detach it, nor takes another.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use clr_diagnostics::{Error, Port, Process};
use clrscope_contract::control_socket::{self, Answer};

use super::target::explained;
use crate::errors::{Failure, reason};

/// Returns whether the process has a dormant agent. Nothing is sent to it: its socket is there
/// while it is dormant, and no longer. One that a process left behind has a name of its own, which
/// ends with the start of that process.
pub(crate) fn is_dormant(process: &Process) -> bool {
    process.socket(control_socket::PREFIX).is_ok_and(|socket| socket.is_some())
}

/// Makes the dormant agent of the process begin what `request` asks for, and waits `patience` at
/// the longest for its answer. Returns `false` where the process has none.
///
/// # Errors
/// When the agent does not begin, with its reason.
pub(super) fn wake(process: &Process, request: &str, patience: Duration) -> Result<bool, Failure> {
    let failed = |why: &str, hint: &str| Failure::new(format!("cannot attach to process {}", process.pid()), why, hint);
    let socket = match process.socket(control_socket::PREFIX) {
        // A stranger's file of that name, and no socket of the agent's next to it.
        Ok(None) | Err(Error::NoProcess { .. } | Error::ForeignSocket { .. }) => return Ok(false),
        Ok(Some(socket)) => socket,
        Err(error) => return Err(explained(process, &error)),
    };
    let stream = match Port::at(socket).with_limit(patience).connect() {
        Ok(stream) => stream,
        // It has woken up meanwhile, or was left behind.
        Err(Error::NobodyListens { .. }) => return Ok(false),
        Err(error) => return Err(explained(process, &error)),
    };
    let answer = ask(stream, request).map_err(|error| {
        let why = format!("the agent that sleeps in it did not answer: {}", reason(&error));
        failed(&why, "attach again; where that helps nothing, restart the program")
    })?;
    match Answer::parse(&answer) {
        Some(Answer::Awake) => Ok(true),
        Some(Answer::OtherVersion(version)) => {
            let why = format!(
                "the agent of clrscope {version} sleeps in it since it changed methods, and this is clrscope {}",
                control_socket::VERSION
            );
            Err(failed(&why, "attach with that version, or restart the program"))
        }
        Some(Answer::Refused(why)) => Err(failed(&why, "see 'clrscope attach --help' for what can be attached")),
        None => {
            let why = "the agent that sleeps in it gave up the conversation";
            Err(failed(why, "attach again; where that helps nothing, restart the program"))
        }
    }
}

fn ask(mut stream: UnixStream, request: &str) -> io::Result<String> {
    stream.write_all(control_socket::question(request).as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.take(control_socket::MAX_QUESTION_BYTES).read_to_string(&mut answer)?;
    Ok(answer)
}
