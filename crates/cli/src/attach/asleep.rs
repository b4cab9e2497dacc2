//! The agent that sleeps in a process since it had probes: the runtime does not let it go, nor takes another, so it is woken instead.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use clr_diagnostics::{Error, Port, Process};
use clrscope_contract::waking::{self, Answer};

use super::target::explained;
use crate::errors::{Failure, reason};

/// Whether an agent sleeps in the process. Nothing is said to it: its socket is there while it sleeps, and no longer. One that a process left
/// behind has a name of its own, which ends with the start of that process.
pub(crate) fn sleeps(process: &Process) -> bool {
    process.socket(waking::SOCKET).is_ok_and(|socket| socket.is_some())
}

/// Has the agent that sleeps in the process begin what `request` asks for, `patience` at the longest for an answer; `false` where none sleeps.
///
/// # Errors
/// When the agent does not begin, with its reason.
pub(super) fn wake(process: &Process, request: &str, patience: Duration) -> Result<bool, Failure> {
    let failed = |why: &str, hint: &str| Failure::new(format!("cannot attach to process {}", process.pid()), why, hint);
    let socket = match process.socket(waking::SOCKET) {
        // A stranger's file of that name, and no socket of the agent's beside it.
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
                "the agent of clrscope {version} sleeps in it since it had probes, and this is clrscope {}",
                waking::VERSION
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
    stream.write_all(waking::question(request).as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.take(waking::LONGEST).read_to_string(&mut answer)?;
    Ok(answer)
}
