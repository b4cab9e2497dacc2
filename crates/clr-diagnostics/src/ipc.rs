//! One exchange with a runtime: a request with a header, an answer with a header, then the end or a
//! stream.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::wire::{Reader, Writer};
use crate::{Error, ResultCode};

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const HEADER: usize = 20;
/// Command set in the headers of answers.
const ANSWER_SET: u8 = 0xff;
const ANSWER_OK: u8 = 0x00;
const ANSWER_ERROR: u8 = 0xff;
/// Maximum bytes of a socket's path, without the final zero.
const LONGEST_PATH: usize = 107;
/// Pause between two attempts to connect to a listener whose queue is full.
const RETRY: Duration = Duration::from_millis(5);

/// A command of the protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) set: u8,
    pub(crate) id: u8,
    /// Name of the command in messages.
    pub(crate) name: &'static str,
}

/// A connection for one command, with a deadline.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    limit: Duration,
    deadline: Option<Instant>,
}

impl Connection {
    /// Connects to the socket at `path`.
    pub(crate) fn open(path: &Path, limit: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + limit;
        Ok(Self { stream: connected(path, limit, deadline)?, limit, deadline: Some(deadline) })
    }

    /// A connection that the other side opened.
    pub(crate) fn accepted(stream: UnixStream, limit: Duration) -> Self {
        Self { stream, limit, deadline: Some(Instant::now() + limit) }
    }

    /// Restarts the time limit.
    pub(crate) fn renew(&mut self) {
        self.deadline = Some(Instant::now() + self.limit);
    }

    /// Sends a command and returns the payload of the answer.
    pub(crate) fn ask(&mut self, command: Command, payload: &Writer) -> Result<Vec<u8>, Error> {
        let size = u16::try_from(HEADER + payload.0.len()).map_err(|_| Error::TooLong { command: command.name })?;
        let mut message = MAGIC.to_vec();
        message.extend(size.to_le_bytes());
        message.extend([command.set, command.id, 0, 0]);
        message.extend(&payload.0);
        self.write_all(&message).map_err(|error| self.failed(command.name, error))?;
        match read_answer(self, command.name) {
            Err(Error::System { error, .. }) => Err(self.failed(command.name, error)),
            other => other,
        }
    }

    /// Reads more bytes of the answer.
    pub(crate) fn read_more(&mut self, bytes: usize, name: &'static str) -> Result<Vec<u8>, Error> {
        read_exactly(self, bytes, name).map_err(|error| match error {
            Error::System { error, .. } => self.failed(name, error),
            other => other,
        })
    }

    /// Returns the stream after the answer. Reads from it have no time limit.
    pub(crate) fn into_stream(mut self) -> Result<UnixStream, Error> {
        self.deadline = None;
        self.stream.set_read_timeout(None).map_err(|error| system("setting the time limit", error))?;
        Ok(self.stream)
    }

    fn failed(&self, command: &'static str, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::TimedOut { command, after: self.limit },
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                Error::Closed { command }
            }
            _ => system("talking to the runtime", error),
        }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(deadline) = self.deadline else { return Ok(None) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Reads an answer: returns its payload, or the error that it reports.
pub(crate) fn read_answer(from: &mut impl Read, command: &'static str) -> Result<Vec<u8>, Error> {
    let header = read_exactly(from, HEADER, command)?;
    let mut reader = Reader(&header);
    if reader.read_bytes(MAGIC.len())? != MAGIC {
        return Err(Error::nonsense("it does not begin as answers do"));
    }
    let size = usize::from(reader.u16()?);
    let (set, id) = (reader.u8()?, reader.u8()?);
    let size = size.checked_sub(HEADER).ok_or(Error::nonsense("it is shorter than its header"))?;
    let payload = read_exactly(from, size, command)?;
    match (set, id) {
        (ANSWER_SET, ANSWER_OK) => Ok(payload),
        (ANSWER_SET, ANSWER_ERROR) => {
            let code = ResultCode(Reader(&payload).u32()?.cast_signed());
            Err(Error::Refused { command, code })
        }
        _ => Err(Error::nonsense("it is a question")),
    }
}

/// Reads `bytes` bytes. Memory grows with the bytes that arrive, not with the announced length.
fn read_exactly(from: &mut impl Read, bytes: usize, command: &'static str) -> Result<Vec<u8>, Error> {
    let mut read = Vec::new();
    from.take(bytes as u64).read_to_end(&mut read).map_err(|error| system("reading an answer", error))?;
    if read.len() < bytes { Err(Error::Closed { command }) } else { Ok(read) }
}

/// Connects. Waits for a place in the listener's queue until `deadline` at most.
fn connected(path: &Path, limit: Duration, deadline: Instant) -> Result<UnixStream, Error> {
    let (_folder, short) = shortened(path)?;
    let address = SocketAddrUnix::new(&short).map_err(|error| system("the name of the socket", error.into()))?;
    loop {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
                .map_err(|error| system("making a socket", error.into()))?;
        match connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false).map_err(|error| system("setting up a socket", error))?;
                return Ok(stream);
            }
            Err(rustix::io::Errno::AGAIN) if Instant::now() < deadline => {
                #[expect(clippy::disallowed_methods, reason = "nobody says when there is a place in the queue")]
                thread::sleep(RETRY);
            }
            Err(rustix::io::Errno::AGAIN) => return Err(Error::TimedOut { command: "connect", after: limit }),
            Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT) => {
                return Err(Error::NobodyListens { socket: path.to_owned() });
            }
            Err(error) => return Err(system("connecting to the runtime", error.into())),
        }
    }
}

/// Returns a path to the socket that fits into a socket address. The returned folder must stay open
/// while the path is used.
fn shortened(path: &Path) -> Result<(Option<File>, PathBuf), Error> {
    if path.as_os_str().as_bytes().len() <= LONGEST_PATH {
        return Ok((None, path.to_owned()));
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::NobodyListens { socket: path.to_owned() });
    };
    let folder = File::open(parent).map_err(|error| system("opening the folder of the socket", error))?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((Some(folder), short))
}

pub(crate) fn system(what: &'static str, error: io::Error) -> Error {
    Error::System { what, error }
}
