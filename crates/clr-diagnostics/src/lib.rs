//! A client for the diagnostics protocol of the .NET runtime. It finds the .NET processes of a
//! machine, queries them, attaches a profiler, suspends them at startup, and reads their events.
//!
//! Each runtime from .NET Core 3.0 on listens on its own socket, unless
//! `DOTNET_EnableDiagnostics=0` disables it. Any process of the same user, or of root, may connect.
//!
//! ```no_run
//! use clr_diagnostics::{Process, processes};
//!
//! for process in processes() {
//!     match process.port().and_then(|port| port.info()) {
//!         Ok(info) => println!("{} {} {}", process.pid(), info.runtime_version, info.command_line),
//!         Err(error) => println!("{} {error}", process.pid()),
//!     }
//! }
//! # Ok::<(), clr_diagnostics::Error>(())
//! ```
//!
//! | to | look at |
//! |---|---|
//! | find processes, also of containers | [`processes`], [`Process`] |
//! | ask and tell a runtime | [`Port`]: [`info`](Port::info), [`environment`](Port::environment), [`attach_profiler`](Port::attach_profiler) |
//! | hold programs at their start | [`StartupPort`] |
//! | read events and counters | [`Port::collect_events`], [`nettrace`], [`Counter`] |
//!
//! # Untrusted answers
//!
//! Processes are not trusted: an answer may be malformed, arrive at a byte per minute, or never
//! arrive. Every exchange ends within the [limit](Port::with_limit) of its port (30 s by default).
//! An answer takes no more memory than its bytes that have arrived. Lengths in answers are checked
//! before use. Each kind of failure is a separate [`Error`] variant.
//!
//! On Linux, processes are found in `/proc`. The socket of a process in another namespace is
//! reached through `/proc/PID/root`; its name contains the process id in that namespace.

// Answers of newer runtimes have more fields; each exhaustive type states its reason.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod clsid;
mod counter;
mod error;
mod info;
mod ipc;
pub mod nettrace;
mod port;
mod process;
mod startup;
mod wire;

pub use clsid::Clsid;
pub use counter::{Counter, CounterKind};
pub use error::{Error, ResultCode};
pub use info::ProcessInfo;
pub use port::{AttachProfiler, EventSession, Port, Provider};
pub use process::{Process, ProcessEnd, processes};
pub use startup::{Held, StartupPort};

/// Entry points for fuzzing: each reads arbitrary bytes as one kind of answer.
#[doc(hidden)]
pub mod fuzzing {
    /// Reads bytes as each kind of answer of a runtime.
    pub fn read_answers(bytes: &[u8]) {
        let _ = crate::ipc::read_answer(&mut &*bytes, "fuzz");
        for version in 1..=3 {
            let _ = crate::info::ProcessInfo::parse(bytes, version);
        }
        let _ = crate::port::parse_environment(bytes);
        let _ = crate::startup::parse_advertisement(bytes);
    }

    /// Reads bytes as a stream of events, to its end.
    pub fn read_events(bytes: &[u8]) {
        let Ok(mut stream) = crate::nettrace::Reader::new(bytes) else { return };
        while let Ok(Some(event)) = stream.next_event() {
            let _ = event.fields();
            let _ = crate::Counter::from_event(&event);
        }
    }
}
