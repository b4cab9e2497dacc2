//! A port at which programs wait for this process at their startup.

use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::ipc::{Connection, system};
use crate::port;
use crate::wire::Reader;
use crate::{Clsid, Error, ProcessInfo};

const MAGIC: &[u8; 8] = b"ADVR_V1\0";
const ADVERTISEMENT: usize = 34;
/// Pause between two checks for a new connection.
const PAUSE: Duration = Duration::from_millis(5);

/// Socket that programs connect to when they start with `DOTNET_DiagnosticPorts` set to its
/// [value](Self::variable). Each program waits there until [`Held::resume`] is called.
///
/// A runtime connects again after each command: one connection serves one command. So
/// [`accept`](Self::accept) returns the same runtime again until it is resumed.
#[derive(Debug)]
pub struct StartupPort {
    listener: UnixListener,
    path: PathBuf,
}

impl StartupPort {
    /// Creates the socket. Only a private folder keeps other users from connecting.
    ///
    /// # Errors
    /// [`Error::System`], for example if the path exists.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        let listener = UnixListener::bind(path).map_err(|error| system("making the socket", error))?;
        listener.set_nonblocking(true).map_err(|error| system("setting up a socket", error))?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Value of `DOTNET_DiagnosticPorts` that makes programs wait at this port.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{},suspend", self.path.display())
    }

    /// Waits for the next connection of a runtime, for at most `patience`.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if no runtime connected, and [`Error::Nonsense`] if the other side is
    /// not a runtime.
    pub fn accept(&self, patience: Duration) -> Result<Held, Error> {
        let deadline = Instant::now() + patience;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(|error| system("setting up a socket", error))?;
                    return Held::greet(Connection::accepted(stream, patience));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(system("waiting for a runtime", error)),
            }
            if Instant::now() >= deadline {
                return Err(Error::TimedOut { command: "connect", after: patience });
            }
            #[expect(clippy::disallowed_methods, reason = "the standard library has no time limit for this wait")]
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for StartupPort {
    fn drop(&mut self) {
        // Programs that find no socket continue without waiting.
        let _ = fs::remove_file(&self.path);
    }
}

/// Connection of a runtime to a [`StartupPort`], for one command.
#[derive(Debug)]
pub struct Held {
    connection: Connection,
    /// Process id in the namespace of the process.
    pub pid: u64,
    /// Unique number of the runtime instance.
    pub cookie: [u8; 16],
}

impl Held {
    fn greet(mut connection: Connection) -> Result<Self, Error> {
        let mut said = Vec::new();
        let read = (&mut connection).take(ADVERTISEMENT as u64).read_to_end(&mut said);
        read.map_err(|error| system("reading who it is", error))?;
        let (cookie, pid) = parse_advertisement(&said)?;
        connection.renew();
        Ok(Self { connection, pid, cookie })
    }

    /// Requests information about the process.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn info(mut self) -> Result<ProcessInfo, Error> {
        port::info(&mut self.connection, 2)
    }

    /// Makes the runtime load a profiler before any managed code runs.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn startup_profiler(mut self, class: Clsid, library: &str) -> Result<(), Error> {
        port::startup_profiler(&mut self.connection, class, library)
    }

    /// Sets an environment variable in the runtime's and its program's view of the environment.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn set_environment_variable(mut self, name: &str, value: &str) -> Result<(), Error> {
        port::set_variable(&mut self.connection, name, value)
    }

    /// Resumes the runtime: the program starts.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn resume(mut self) -> Result<(), Error> {
        port::resume(&mut self.connection)
    }
}

/// Reads the cookie and process id that a runtime sends when it connects.
pub(crate) fn parse_advertisement(bytes: &[u8]) -> Result<([u8; 16], u64), Error> {
    let mut reader = Reader(bytes);
    if reader.read_bytes(MAGIC.len())? != MAGIC {
        return Err(Error::nonsense("it does not begin as a runtime does"));
    }
    Ok((reader.array()?, reader.u64()?))
}
