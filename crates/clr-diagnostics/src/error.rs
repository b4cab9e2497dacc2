//! Errors of the communication with another process, one variant per cause.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Error while finding a runtime or communicating with it. Displayed as one sentence without a full
/// stop.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no process with this id.
    NoProcess {
        /// Id of the process.
        pid: u32,
    },
    /// The process does not run a .NET runtime with a diagnostics socket.
    NotDotnet {
        /// Id of the process.
        pid: u32,
    },
    /// The process runs .NET but has no diagnostics socket: it was started with
    /// `DOTNET_EnableDiagnostics=0` or `DOTNET_EnableDiagnostics_IPC=0`, or its socket was removed.
    DiagnosticsOff {
        /// Id of the process.
        pid: u32,
    },
    /// The process belongs to another user, or the system denies access to it.
    NotPermitted {
        /// Id of the process.
        pid: u32,
        /// User id of the owner of the process.
        uid: u32,
    },
    /// Nothing listens on the socket: the process has ended or has closed the socket.
    NobodyListens {
        /// Path of the socket.
        socket: PathBuf,
    },
    /// The owner of the socket is not the owner of the process that the socket is named after.
    ForeignSocket {
        /// Path of the socket.
        socket: PathBuf,
    },
    /// The answer did not come in time.
    TimedOut {
        /// Command that was sent.
        command: &'static str,
        /// Time spent waiting for the answer.
        after: Duration,
    },
    /// The process closed the connection before the answer was complete.
    Closed {
        /// Command that was sent.
        command: &'static str,
    },
    /// The answer is malformed.
    Nonsense {
        /// The defect in the answer.
        what: &'static str,
    },
    /// The request is longer than the protocol allows (65,535 bytes).
    TooLong {
        /// Command that was to be sent.
        command: &'static str,
    },
    /// The runtime refused the command.
    Refused {
        /// Command that was sent.
        command: &'static str,
        /// The runtime's reason.
        code: ResultCode,
    },
    /// A system call failed.
    System {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn nonsense(what: &'static str) -> Self {
        Self::Nonsense { what }
    }

    /// The runtime's reason; `None` if the runtime did not refuse the command.
    #[must_use]
    pub fn code(&self) -> Option<ResultCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess { pid } => write!(f, "there is no process {pid}"),
            Self::NotDotnet { pid } => write!(f, "process {pid} runs no .NET runtime that can be asked"),
            Self::DiagnosticsOff { pid } => {
                write!(f, "process {pid} runs .NET without a diagnostics socket, as with DOTNET_EnableDiagnostics=0")
            }
            Self::NotPermitted { pid, uid } => write!(f, "process {pid} of user {uid} is not ours to look into"),
            Self::NobodyListens { socket } => write!(f, "nobody listens at {}", socket.display()),
            Self::ForeignSocket { socket } => {
                write!(f, "{} belongs to another user than the process it is named after", socket.display())
            }
            Self::TimedOut { after, .. } if after.is_zero() => f.write_str("the runtime sent nothing in time"),
            Self::TimedOut { command, after } => {
                write!(f, "the runtime did not answer '{command}' within {:.1} s", after.as_secs_f64())
            }
            Self::Closed { command } => write!(f, "the process ended the conversation about '{command}' in the middle"),
            Self::Nonsense { what } => write!(f, "the answer is none that a .NET runtime gives: {what}"),
            Self::TooLong { command } => write!(f, "'{command}' would be longer than the protocol allows"),
            Self::Refused { command, code } => write!(f, "the runtime refused '{command}': {code}"),
            Self::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Result code (`HRESULT`) of a runtime. Displayed as a number, with words if the code is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number of the protocol")]
pub struct ResultCode(pub i32);

/// Declares codes with their descriptions.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $words:literal;)*) => {
        impl ResultCode {
            $($(#[$doc])* pub const $name: Self = Self($code as u32 as i32);)*

            /// A description of the code; `None` for unknown codes.
            #[must_use]
            pub fn words(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($words),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Success.
    OK = 0x0000_0000 "done";
    /// The command does not accept an argument here.
    INVALID_ARGUMENT = 0x8007_0057 "an argument is not valid here";
    /// Another profiler is loaded, or one is being loaded or detached.
    PROFILER_ALREADY_ACTIVE = 0x8013_136A "another profiler is loaded";
    /// The profiler requested a feature that the runtime allows only at a program's start.
    UNSUPPORTED_FOR_ATTACH = 0x8013_136F "the profiler wants what the runtime allows at its start only";
    /// The runtime is still starting.
    RUNTIME_UNINITIALIZED = 0x8013_1371 "the runtime is still starting";
    /// The profiler refused to be loaded.
    CANCEL_ACTIVATION = 0x8013_1375 "the profiler itself refused";
    /// A background collection did not end in time.
    WAITING_FOR_CONCURRENT_GC = 0x8013_1379 "a background collection did not end in time";
    /// The runtime can't do this now.
    NOT_YET_AVAILABLE = 0x8013_135B "not available yet";
    /// The runtime can't do this at all.
    NOT_SUPPORTED = 0x8013_1515 "this runtime does not support it";
    /// The request is not encoded correctly.
    BAD_ENCODING = 0x8013_1384 "the question is not encoded as it should be";
    /// This version of the runtime does not know the command.
    UNKNOWN_COMMAND = 0x8013_1385 "this version of the runtime does not know the command";
    /// This version of the runtime does not know the protocol.
    UNKNOWN_MAGIC = 0x8013_1386 "this version of the runtime does not know the protocol";
    /// A failure without details.
    FAIL = 0x8000_4005 "an error without details";
    /// A file was not found.
    FILE_NOT_FOUND = 0x8007_0002 "a file was not found";
    /// A library could not be loaded.
    MODULE_NOT_FOUND = 0x8007_007E "the library could not be loaded";
    /// Access was denied.
    ACCESS_DENIED = 0x8007_0005 "access was denied";
}

impl ResultCode {
    /// Whether the code means success.
    #[must_use]
    pub fn is_ok(self) -> bool {
        self.0 >= 0
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            Some(words) => write!(f, "{words} (0x{:08X})", self.0),
            None => write!(f, "error 0x{:08X}", self.0),
        }
    }
}
