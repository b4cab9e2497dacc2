//! The socket of one runtime, and what it can be asked.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ipc::{Command, Connection};
use crate::nettrace;
use crate::wire::{Reader, Writer};
use crate::{Clsid, Error, ProcessInfo, ResultCode};

/// Time that a conversation may take where nothing else is said.
const LIMIT: Duration = Duration::from_secs(30);
/// Larger environments are not believed.
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

/// Diagnostics socket of one runtime. Each question is a connection of its own.
#[derive(Debug, Clone)]
pub struct Port {
    socket: PathBuf,
    limit: Duration,
}

/// A profiler to be attached to a running program.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AttachProfiler<'a> {
    /// Class that the library makes.
    pub class: Clsid,
    /// The library, by the path that it has for the process.
    pub library: &'a str,
    /// Bytes for the profiler's `InitializeForAttach`.
    pub client_data: &'a [u8],
    /// Time that the runtime may wait for a collection in the background to end.
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

    /// Sets the time that the runtime may wait for a collection in the background to end.
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
    /// Groups of events, as the provider numbers them.
    pub keywords: u64,
    /// Greatest level: 1 critical to 5 verbose.
    pub level: u32,
    /// Arguments `KEY=VALUE;...`, such as `EventCounterIntervalSec=1`.
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
    /// The port at a path, whichever program listens there.
    #[must_use]
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), limit: LIMIT }
    }

    /// A copy of the port with another limit for each conversation.
    #[must_use]
    pub fn with_limit(&self, limit: Duration) -> Self {
        Self { limit, ..self.clone() }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn open(&self) -> Result<Connection, Error> {
        Connection::open(&self.socket, self.limit)
    }

    /// Connects for a conversation of another kind, with a program whose socket lies next to that
    /// of the runtime ([`Process::socket`](crate::Process::socket)). Each read and write may take
    /// as long as the limit.
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

    /// Description of the process. Asks for the newest form of the answer that the runtime knows.
    ///
    /// # Errors
    /// Those of a conversation, see [`Error`].
    pub fn info(&self) -> Result<ProcessInfo, Error> {
        let mut version = PROCESS_INFO.len();
        loop {
            match info(&mut self.open()?, version) {
                Err(Error::Refused { code: ResultCode::UNKNOWN_COMMAND, .. }) if version > 1 => version -= 1,
                other => return other,
            }
        }
    }

    /// The environment of the process as the runtime sees it: names with values.
    ///
    /// # Errors
    /// Those of a conversation, see [`Error`].
    pub fn environment(&self) -> Result<Vec<(String, String)>, Error> {
        let mut connection = self.open()?;
        let answer = connection.ask(ENVIRONMENT, &Writer::default())?;
        let size = Reader(&answer).u32()?;
        if size > LARGEST_ENVIRONMENT {
            return Err(Error::nonsense("an environment of more than 64 MiB"));
        }
        parse_environment(&connection.read_more(size as usize, ENVIRONMENT.name)?)
    }

    /// Attaches a profiler; returns when its `InitializeForAttach` has.
    ///
    /// # Errors
    /// Those of a conversation; [`Error::Refused`] with the runtime's or the profiler's reason.
    pub fn attach_profiler(&self, profiler: &AttachProfiler<'_>) -> Result<(), Error> {
        let milliseconds = u32::try_from(profiler.timeout.as_millis()).unwrap_or(u32::MAX);
        let payload = Writer::default().u32(milliseconds).clsid(profiler.class).text(profiler.library);
        let answer = self.open()?.ask(ATTACH_PROFILER, &payload.bytes(profiler.client_data))?;
        done(ATTACH_PROFILER, &answer)
    }

    /// Starts to collect events; [`EventSession::reader`] reads them.
    ///
    /// # Errors
    /// Those of a conversation, see [`Error`].
    pub fn collect_events(&self, providers: &[Provider], buffer_mb: u32) -> Result<EventSession, Error> {
        // The second number is the format: nettrace. Then whether all methods are to be named at
        // the end.
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

    /// Sets a variable of the environment, as the runtime sees it.
    ///
    /// # Errors
    /// Those of a conversation, see [`Error`].
    pub fn set_environment_variable(&self, name: &str, value: &str) -> Result<(), Error> {
        set_variable(&mut self.open()?, name, value)
    }

    /// Has a runtime that waits at its start load a profiler. One that runs already takes the
    /// command and loads nothing (seen on 8).
    ///
    /// # Errors
    /// Those of a conversation, see [`Error`].
    pub fn startup_profiler(&self, class: Clsid, library: &str) -> Result<(), Error> {
        startup_profiler(&mut self.open()?, class, library)
    }

    /// Lets a runtime go on that waits at its start.
    ///
    /// # Errors
    /// Those of a conversation, see [`Error`].
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

/// An answer that is one result code.
fn done(command: Command, answer: &[u8]) -> Result<(), Error> {
    let code = ResultCode(Reader(answer).u32()?.cast_signed());
    if code.is_ok() { Ok(()) } else { Err(Error::Refused { command: command.name, code }) }
}

/// Texts `NAME=VALUE` with their number before them.
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

/// Events that a runtime sends, until [`stop`](Self::stop) or the end of the process.
#[derive(Debug)]
pub struct EventSession {
    port: Port,
    id: u64,
    stream: UnixStream,
}

impl EventSession {
    /// Reader of the events. It waits for as long as nothing comes, or for `patience` where there
    /// is one: then it ends with [`Error::TimedOut`].
    ///
    /// # Errors
    /// [`Error::System`] where the socket can't be used twice, and the errors of
    /// [`nettrace::Reader::new`].
    pub fn reader(&self, patience: Option<Duration>) -> Result<nettrace::Reader<impl Read + use<>>, Error> {
        let stream = self.stream.try_clone().and_then(|stream| stream.set_read_timeout(patience).map(|()| stream));
        let stream = stream.map_err(|error| crate::ipc::system("reading events", error))?;
        nettrace::Reader::new(io::BufReader::with_capacity(64 << 10, stream))
    }

    /// Ends the session; what the runtime still has comes before the end of the stream, so read on.
    ///
    /// # Errors
    /// Those of a conversation, see [`Error`].
    pub fn stop(&self) -> Result<(), Error> {
        self.port.open()?.ask(STOP_TRACING, &Writer::default().u64(self.id)).map(drop)
    }
}
