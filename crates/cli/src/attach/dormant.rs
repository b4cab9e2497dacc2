//! Wakes the dormant agent of a process. After probes or followed awaits the runtime neither
//! detaches the agent nor accepts another one, so it stays dormant in the process.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use clr_diagnostics::{Error, Port, Process};
use clrscope_contract::control_socket::{self, Answer};

use super::target::explained;
use crate::errors::{Failure, reason};

/// Returns whether the process has a dormant agent, without sending anything to it: its socket
/// exists exactly while it is dormant. A socket that an earlier process left behind has another
/// name, because names end with the start time of the process.
pub(crate) fn is_dormant(process: &Process) -> bool {
    process.socket(control_socket::PREFIX).is_ok_and(|socket| socket.is_some())
}

/// Makes the dormant agent of the process start recording `request`, and waits for its answer for
/// at most `patience`. Returns `false` if the process has no dormant agent.
///
/// # Errors
/// When the agent does not start, with its reason.
pub(super) fn wake(process: &Process, request: &str, patience: Duration) -> Result<bool, Failure> {
    let failed = |why: &str, hint: &str| Failure::new(format!("cannot attach to process {}", process.pid()), why, hint);
    let socket = match process.socket(control_socket::PREFIX) {
        // Another user's file has that name, and there is no socket of the agent.
        Ok(None) | Err(Error::NoProcess { .. } | Error::ForeignSocket { .. }) => return Ok(false),
        Ok(Some(socket)) => socket,
        Err(error) => return Err(explained(process, &error)),
    };
    let stream = match Port::at(socket).with_limit(patience).connect() {
        Ok(stream) => stream,
        // The agent has woken up meanwhile, or the socket was left behind.
        Err(Error::NobodyListens { .. }) => return Ok(false),
        Err(error) => return Err(explained(process, &error)),
    };
    let answer = ask(stream, request).map_err(|error| {
        let why = format!("the agent that sleeps in it did not answer: {}", reason(&error));
        failed(&why, "attach again; if that does not help, restart the program")
    })?;
    match Answer::parse(&answer) {
        Some(Answer::Awake) => Ok(true),
        Some(Answer::OtherVersion(version)) => {
            let why = format!(
                "an agent of clrscope {version}, which changed methods, sleeps in it, but this is clrscope {}",
                control_socket::VERSION
            );
            Err(failed(&why, "attach with that version, or restart the program"))
        }
        Some(Answer::Refused(why)) => Err(failed(&why, "see 'clrscope attach --help' for what attach can record")),
        None => {
            let why = "the agent that sleeps in it stopped answering";
            Err(failed(why, "attach again; if that does not help, restart the program"))
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
