//! The diagnostics socket of one runtime, and the commands for the runtime.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ipc::{Command, Connection};
use crate::nettrace;
use crate::wire::{Reader, Writer};
use crate::{Clsid, Error, ProcessInfo, ResultCode};

/// Default time limit of an exchange.
const LIMIT: Duration = Duration::from_secs(30);
/// Larger environments are errors.
const LARGEST_ENVIRONMENT: u32 = 64 << 20;

const fn command(set: u8, id: u8, name: &'static str) -> Command {
    Command { set, id, name }
}

const STOP_TRACING: Command = command(2, 1, "stop tracing");
const COLLECT_TRACING: Command = command(2, 3, "collect tracing");
const ATTACH_PROFILER: Command = command(3, 1, "attach profiler");
const STARTUP_PROFILER: Command = command(3, 2, "startup profiler");
const PROCESS_INFO: [Command; 3] =
    [command(4, 0, "process info"), command(4, 4, "process info 2"), command(4, 8, "process info 3")];
const RESUME: Command = command(4, 1, "resume runtime");
const ENVIRONMENT: Command = command(4, 2, "process environment");
const SET_VARIABLE: Command = command(4, 3, "set environment variable");

/// Diagnostics socket of one runtime. Each command opens a separate connection.
#[derive(Debug, Clone)]
pub struct Port {
    socket: PathBuf,
    limit: Duration,
}

/// A request to attach a profiler to a running program.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AttachProfiler<'a> {
    /// Class id of the profiler in the library.
    pub class: Clsid,
    /// Path of the library, in the process's view.
    pub library: &'a str,
    /// Bytes for the profiler's `InitializeForAttach`.
    pub client_data: &'a [u8],
    /// Time that the runtime may wait for a background collection to end.
    pub timeout: Duration,
}

impl<'a> AttachProfiler<'a> {
    /// Creates a request for a profiler without client data, with a timeout of 10 s.
    #[must_use]
    pub fn new(class: Clsid, library: &'a str) -> Self {
        Self { class, library, client_data: &[], timeout: Duration::from_secs(10) }
    }

    /// Sets the bytes for the profiler's `InitializeForAttach`.
    #[must_use]
    pub fn with_client_data(self, client_data: &'a [u8]) -> Self {
        Self { client_data, ..self }
    }

    /// Sets the time that the runtime may wait for a background collection to end.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
}

/// A source of events, for [`Port::collect_events`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// Name, such as `System.Runtime`.
    pub name: String,
    /// Bit mask of event groups, as defined by the provider.
    pub keywords: u64,
    /// Maximum level: 1 critical to 5 verbose.
    pub level: u32,
    /// Arguments for the provider, as `KEY=VALUE;...`, such as `EventCounterIntervalSec=1`.
    pub arguments: String,
}

impl Provider {
    /// Creates a provider without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, keywords: u64, level: u32) -> Self {
        Self { name: name.into(), keywords, level, arguments: String::new() }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_arguments(self, arguments: impl Into<String>) -> Self {
        Self { arguments: arguments.into(), ..self }
    }
}

impl Port {
    /// Creates a port for the socket at a path. Does not check which program listens there.
    #[must_use]
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), limit: LIMIT }
    }

    /// Returns the port with another time limit for each exchange.
    #[must_use]
    pub fn with_limit(&self, limit: Duration) -> Self {
        Self { limit, ..self.clone() }
    }

    /// Path of the socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn open(&self) -> Result<Connection, Error> {
        Connection::open(&self.socket, self.limit)
    }

    /// Connects without the diagnostics protocol. For other sockets of the process, in the same
    /// folder as the runtime's ([`Process::socket`](crate::Process::socket)). The time limit
    /// applies to each read and write.
    ///
    /// # Errors
    /// [`Error::NobodyListens`], [`Error::TimedOut`], [`Error::System`].
    pub fn connect(&self) -> Result<UnixStream, Error> {
        let stream = self.open()?.into_stream()?;
        let limited =
            stream.set_read_timeout(Some(self.limit)).and_then(|()| stream.set_write_timeout(Some(self.limit)));
        limited.map_err(|error| crate::ipc::system("setting the time limit", error))?;
        Ok(stream)
    }

    /// Requests information about the process, in the newest form that the runtime supports.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn info(&self) -> Result<ProcessInfo, Error> {
        let mut version = PROCESS_INFO.len();
        loop {
            match info(&mut self.open()?, version) {
                Err(Error::Refused { code: ResultCode::UNKNOWN_COMMAND, .. }) if version > 1 => version -= 1,
                other => return other,
            }
        }
    }

    /// Requests the environment of the process as the runtime sees it: pairs of name and value.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn environment(&self) -> Result<Vec<(String, String)>, Error> {
        let mut connection = self.open()?;
        let answer = connection.ask(ENVIRONMENT, &Writer::default())?;
        let size = Reader(&answer).u32()?;
        if size > LARGEST_ENVIRONMENT {
            return Err(Error::nonsense("an environment of more than 64 MiB"));
        }
        parse_environment(&connection.read_more(size as usize, ENVIRONMENT.name)?)
    }

    /// Attaches a profiler. Returns after the profiler's `InitializeForAttach` has returned.
    ///
    /// # Errors
    /// Errors of the exchange; [`Error::Refused`] with the runtime's or the profiler's reason.
    pub fn attach_profiler(&self, profiler: &AttachProfiler<'_>) -> Result<(), Error> {
        let milliseconds = u32::try_from(profiler.timeout.as_millis()).unwrap_or(u32::MAX);
        let payload = Writer::default().u32(milliseconds).clsid(profiler.class).text(profiler.library);
        let answer = self.open()?.ask(ATTACH_PROFILER, &payload.bytes(profiler.client_data))?;
        done(ATTACH_PROFILER, &answer)
    }

    /// Starts an event session; [`EventSession::reader`] reads the events. The runtime buffers at
    /// most `buffer_mb` megabytes of events.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn collect_events(&self, providers: &[Provider], buffer_mb: u32) -> Result<EventSession, Error> {
        // The second number is the format: nettrace. The byte says whether the stream ends with the
        // names of all methods (rundown).
        let mut payload = Writer::default().u32(buffer_mb.max(1)).u32(1).u8(0);
        payload = payload.u32(u32::try_from(providers.len()).unwrap_or(u32::MAX));
        for provider in providers {
            payload = payload.u64(provider.keywords).u32(provider.level).text(&provider.name).text(&provider.arguments);
        }
        let mut connection = self.open()?;
        let answer = connection.ask(COLLECT_TRACING, &payload)?;
        let id = Reader(&answer).u64()?;
        Ok(EventSession { port: self.clone(), id, stream: connection.into_stream()? })
    }

    /// Sets an environment variable in the runtime's view of the environment.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn set_environment_variable(&self, name: &str, value: &str) -> Result<(), Error> {
        set_variable(&mut self.open()?, name, value)
    }

    /// Makes a runtime that is suspended at startup load a profiler. A running runtime accepts the
    /// command but loads nothing (observed on .NET 8).
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn startup_profiler(&self, class: Clsid, library: &str) -> Result<(), Error> {
        startup_profiler(&mut self.open()?, class, library)
    }

    /// Resumes a runtime that is suspended at startup.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn resume(&self) -> Result<(), Error> {
        resume(&mut self.open()?)
    }
}

pub(crate) fn info(connection: &mut Connection, version: usize) -> Result<ProcessInfo, Error> {
    let answer = connection.ask(PROCESS_INFO[version - 1], &Writer::default())?;
    ProcessInfo::parse(&answer, version as u8)
}

pub(crate) fn startup_profiler(connection: &mut Connection, class: Clsid, library: &str) -> Result<(), Error> {
    let answer = connection.ask(STARTUP_PROFILER, &Writer::default().clsid(class).text(library))?;
    done(STARTUP_PROFILER, &answer)
}

pub(crate) fn set_variable(connection: &mut Connection, name: &str, value: &str) -> Result<(), Error> {
    let answer = connection.ask(SET_VARIABLE, &Writer::default().text(name).text(value))?;
    done(SET_VARIABLE, &answer)
}

pub(crate) fn resume(connection: &mut Connection) -> Result<(), Error> {
    connection.ask(RESUME, &Writer::default()).map(drop)
}

/// Reads an answer that is one result code.
fn done(command: Command, answer: &[u8]) -> Result<(), Error> {
    let code = ResultCode(Reader(answer).u32()?.cast_signed());
    if code.is_ok() { Ok(()) } else { Err(Error::Refused { command: command.name, code }) }
}

/// Reads `NAME=VALUE` texts, which follow their count.
pub(crate) fn parse_environment(block: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let mut reader = Reader(block);
    let entries = reader.u32()?;
    let mut variables = Vec::new();
    for _ in 0..entries {
        let entry = reader.text()?;
        let (name, value) = entry.split_once('=').unwrap_or((&entry, ""));
        variables.push((name.to_owned(), value.to_owned()));
    }
    Ok(variables)
}

/// A session in which a runtime sends events, until [`stop`](Self::stop) or the end of the process.
#[derive(Debug)]
pub struct EventSession {
    port: Port,
    id: u64,
    stream: UnixStream,
}

impl EventSession {
    /// Creates a reader of the events. The reader waits for the next bytes for at most `patience`,
    /// then fails with [`Error::TimedOut`]. With `None` it waits without a limit.
    ///
    /// # Errors
    /// [`Error::System`] if the socket can't be duplicated, and the errors of
    /// [`nettrace::Reader::new`].
    pub fn reader(&self, patience: Option<Duration>) -> Result<nettrace::Reader<impl Read + use<>>, Error> {
        let stream = self.stream.try_clone().and_then(|stream| stream.set_read_timeout(patience).map(|()| stream));
        let stream = stream.map_err(|error| crate::ipc::system("reading events", error))?;
        nettrace::Reader::new(io::BufReader::with_capacity(64 << 10, stream))
    }

    /// Stops the session. The runtime sends its buffered events before the end of the stream, so
    /// keep reading until the end.
    ///
    /// # Errors
    /// Errors of the exchange, see [`Error`].
    pub fn stop(&self) -> Result<(), Error> {
        self.port.open()?.ask(STOP_TRACING, &Writer::default().u64(self.id)).map(drop)
    }
}
