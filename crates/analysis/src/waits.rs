//! Kinds of waits, known by the functions of the framework in which threads stand.

use clrscope_recording::model::{FunctionKind, ThreadState};

use crate::function::FunctionRef;
use crate::titled::titled;

titled! {
    /// Reason why a thread waits; those first that slow a program down.
    WaitKind {
        /// A lock that another thread holds.
        Lock "lock" "waiting for locks",
        /// A time that has to pass.
        Sleep "sleep" "sleeping",
        /// Files, sockets, pipes and the terminal.
        Io "io" "waiting for files, sockets",
        /// Tasks, events, conditions and the ends of threads and processes.
        Signal "signal" "waiting for tasks, events",
        /// Nothing that is known: no free processor, unmanaged code, memory that is not there yet.
        Other "other" "no processor, or unknown",
        /// Work or the end: threads of the pool, of timers, sockets and the like, which nobody waits for.
        Idle "idle" "idle threads",
    }
}

impl WaitKind {
    /// Kind of wait that threads in a state are in, as samples by the clock tell it; `None` where they work or would if there was a processor.
    pub(crate) fn of_state(state: ThreadState) -> Option<Self> {
        match state {
            ThreadState::Lock => Some(Self::Lock),
            ThreadState::Sleeping => Some(Self::Sleep),
            ThreadState::Io => Some(Self::Io),
            ThreadState::Waiting => Some(Self::Signal),
            ThreadState::Idle => Some(Self::Idle),
            _ => None,
        }
    }
}

/// What threads wait for that block on tasks, in words.
pub(crate) const TASK: &str = "a task";

/// Functions of the framework that wait for one thing.
struct Wait {
    kind: WaitKind,
    /// What is waited for, in words.
    what: &'static str,
    /// Beginnings of the functions' names. All they call waits for the same.
    names: &'static [&'static str],
}

const fn wait(kind: WaitKind, what: &'static str, names: &'static [&'static str]) -> Wait {
    Wait { kind, what, names }
}

const WAITING: &[Wait] = &[
    wait(
        WaitKind::Idle,
        "work",
        &[
            "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.Heartbeat::TimerLoop",
            "Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions::Run",
            "Microsoft.Extensions.Logging.Console.ConsoleLoggerProcessor::TryDequeue",
            "System.IO.FileSystemWatcher+RunningInstance::ProcessEvents",
            "System.Net.Sockets.SocketAsyncEngine::EventLoop",
            "System.Threading.LowLevelLifoSemaphore",
            "System.Threading.LowLevelSpinWaiter::",
            "System.Threading.PortableThreadPool+GateThread::",
            "System.Threading.PortableThreadPool+WaitThread::",
            "System.Threading.TimerQueue::TimerThread",
        ],
    ),
    wait(
        WaitKind::Lock,
        "a lock",
        &[
            "System.Threading.Monitor::Enter",
            "System.Threading.Monitor::Exit",
            "System.Threading.Monitor::ReliableEnter",
            "System.Threading.Monitor::TryEnter",
            "System.Threading.Lock::",
            "System.Threading.ReaderWriterLockSlim::",
            "System.Threading.SpinLock::",
        ],
    ),
    wait(WaitKind::Lock, "a mutex", &["System.Threading.Mutex::"]),
    wait(
        WaitKind::Sleep,
        "a time",
        &[
            "System.Threading.Thread::Sleep",
            "System.Threading.Thread::UninterruptibleSleep",
            "System.Threading.Thread::Yield",
        ],
    ),
    wait(
        WaitKind::Io,
        "a socket",
        &[
            "Interop+Sys::Accept",
            "Interop+Sys::Connect",
            "Interop+Sys::Receive",
            "Interop+Sys::Send",
            "Interop+Sys::WaitForSocketEvents",
            "System.Net.Sockets.SocketPal::",
        ],
    ),
    wait(
        WaitKind::Io,
        "a file",
        &[
            "Interop+Sys::FSync",
            "Interop+Sys::Open",
            "Interop+Sys::PRead",
            "Interop+Sys::PWrite",
            "Microsoft.Win32.SafeHandles.SafeFileHandle::",
            "System.IO.RandomAccess::",
        ],
    ),
    wait(WaitKind::Io, "a file, socket or pipe", &["Interop+Sys::Poll", "Interop+Sys::Read", "Interop+Sys::Write"]),
    wait(WaitKind::Io, "the terminal", &["System.ConsolePal::"]),
    wait(WaitKind::Io, "a name (DNS)", &["System.Net.NameResolutionPal::"]),
    wait(
        WaitKind::Signal,
        TASK,
        &[
            "System.Threading.Tasks.Task::InternalWait",
            "System.Threading.Tasks.Task::SpinThenBlockingWait",
            "System.Threading.Tasks.Task::Wait",
        ],
    ),
    wait(
        WaitKind::Signal,
        "an event",
        &[
            "System.Threading.LowLevelMonitor::Wait",
            "System.Threading.ManualResetEventSlim::Wait",
            "System.Threading.WaitHandle::",
            "System.Threading.WaitSubsystem",
        ],
    ),
    wait(
        WaitKind::Signal,
        "a pulse (Monitor.Wait)",
        &["System.Threading.Monitor::ObjWait", "System.Threading.Monitor::Wait"],
    ),
    wait(WaitKind::Signal, "a semaphore", &["System.Threading.SemaphoreSlim::Wait"]),
    wait(WaitKind::Signal, "a countdown", &["System.Threading.CountdownEvent::Wait"]),
    wait(WaitKind::Signal, "a barrier", &["System.Threading.Barrier::"]),
    wait(WaitKind::Signal, "the end of a thread", &["System.Threading.Thread::Join"]),
    wait(WaitKind::Signal, "the end of a process", &["System.Diagnostics.Process::WaitForExit"]),
];

/// Kind of wait of a thread that stands in the function; `None` for functions that do not wait.
pub(crate) fn wait_kind(function: &FunctionRef<'_>) -> Option<WaitKind> {
    wait_in(function).map(|wait| wait.kind)
}

/// Returns what a thread waits for that stands in the function, in words; `None` as for
/// [`wait_kind`].
pub(crate) fn awaited_in(function: &FunctionRef<'_>) -> Option<&'static str> {
    wait_in(function).map(|wait| wait.what)
}

fn wait_in(function: &FunctionRef<'_>) -> Option<&'static Wait> {
    let is_of_framework = function.kind() == FunctionKind::Managed && function.module.framework;
    let waits = |wait: &&Wait| wait.names.iter().any(|name| function.name().starts_with(name));
    if is_of_framework { WAITING.iter().find(waits) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_name_and_functions_have_one_kind() {
        let names: std::collections::BTreeSet<&str> = WaitKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), WaitKind::ALL.len());
        for kind in WaitKind::ALL {
            assert_eq!(WAITING.iter().any(|wait| wait.kind == *kind), *kind != WaitKind::Other);
        }
        let all: Vec<(WaitKind, &str)> =
            WAITING.iter().flat_map(|wait| wait.names.iter().map(|name| (wait.kind, *name))).collect();
        for (kind, name) in &all {
            let same = all.iter().filter(|(_, other)| name.starts_with(other));
            assert!(same.clone().all(|(other, _)| other == kind), "{name}");
            assert_eq!(same.count(), 1, "{name} is named by another already");
        }
    }
}
