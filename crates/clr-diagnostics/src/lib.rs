//! The diagnostics protocol of the .NET runtime, as a client: find the processes of a machine that
//! run .NET, ask them what they are, attach a profiler, hold them at their start, read the events
//! they tell.
//!
//! Each runtime from .NET Core 3.0 on listens at a socket of its own, unless
//! `DOTNET_EnableDiagnostics=0` switches that off. Any process that runs as the same user, or as
//! root, may ask there.
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
//! | be asked first by programs that start | [`StartupPort`] |
//! | read events and counters | [`Port::collect_events`], [`nettrace`], [`Counter`] |
//!
//! # What answers may be
//!
//! A process is not trusted: it may answer nonsense, a byte a minute, or never. Every conversation
//! ends within the [limit](Port::with_limit) of its port (30 s where nothing else is said), an
//! answer takes no more memory than what has arrived of it, and lengths in answers are checked
//! before they are believed. Each way in which this fails is an [`Error`] of its own.
//!
//! Linux: processes are found in `/proc`. Where a process lives in other namespaces its socket is
//! reached through `/proc/PID/root`, under the process id that it has there.

// Answers of newer runtimes have more in them; each type that may not grow says why.
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

/// Entry points for fuzzing: each reads bytes as one kind of answer, whatever they are.
#[doc(hidden)]
pub mod fuzzing {
    /// Reads bytes as everything that a runtime could answer with.
    pub fn read_answers(bytes: &[u8]) {
        let _ = crate::ipc::read_answer(&mut &*bytes, "fuzz");
        for version in 1..=3 {
            let _ = crate::info::ProcessInfo::parse(bytes, version);
        }
        let _ = crate::port::parse_environment(bytes);
        let _ = crate::startup::parse_advertisement(bytes);
    }

    /// Reads bytes as a stream of events, all of it.
    pub fn read_events(bytes: &[u8]) {
        let Ok(mut stream) = crate::nettrace::Reader::new(bytes) else { return };
        while let Ok(Some(event)) = stream.next_event() {
            let _ = event.fields();
            let _ = crate::Counter::from_event(&event);
        }
    }
}
