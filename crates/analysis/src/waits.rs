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

/// Functions of the framework that wait, as beginnings of their names. All they call waits for the same.
const WAITING: &[(WaitKind, &[&str])] = &[
    (
        WaitKind::Idle,
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
    (
        WaitKind::Lock,
        &[
            "System.Threading.Monitor::Enter",
            "System.Threading.Monitor::Exit",
            "System.Threading.Monitor::ReliableEnter",
            "System.Threading.Monitor::TryEnter",
            "System.Threading.Lock::",
            "System.Threading.Mutex::",
            "System.Threading.ReaderWriterLockSlim::",
            "System.Threading.SpinLock::",
        ],
    ),
    (
        WaitKind::Sleep,
        &[
            "System.Threading.Thread::Sleep",
            "System.Threading.Thread::UninterruptibleSleep",
            "System.Threading.Thread::Yield",
        ],
    ),
    (
        WaitKind::Io,
        &[
            "Interop+Sys::Accept",
            "Interop+Sys::Connect",
            "Interop+Sys::FSync",
            "Interop+Sys::Open",
            "Interop+Sys::PRead",
            "Interop+Sys::PWrite",
            "Interop+Sys::Poll",
            "Interop+Sys::Read",
            "Interop+Sys::Receive",
            "Interop+Sys::Send",
            "Interop+Sys::WaitForSocketEvents",
            "Interop+Sys::Write",
            "Microsoft.Win32.SafeHandles.SafeFileHandle::",
            "System.ConsolePal::",
            "System.IO.RandomAccess::",
            "System.Net.NameResolutionPal::",
            "System.Net.Sockets.SocketPal::",
        ],
    ),
    (
        WaitKind::Signal,
        &[
            "System.Diagnostics.Process::WaitForExit",
            "System.Threading.Barrier::",
            "System.Threading.CountdownEvent::Wait",
            "System.Threading.LowLevelMonitor::Wait",
            "System.Threading.ManualResetEventSlim::Wait",
            "System.Threading.Monitor::ObjWait",
            "System.Threading.Monitor::Wait",
            "System.Threading.SemaphoreSlim::Wait",
            "System.Threading.Tasks.Task::InternalWait",
            "System.Threading.Tasks.Task::SpinThenBlockingWait",
            "System.Threading.Tasks.Task::Wait",
            "System.Threading.Thread::Join",
            "System.Threading.WaitHandle::",
            "System.Threading.WaitSubsystem",
        ],
    ),
];

/// Kind of wait of a thread that stands in the function; `None` for functions that do not wait.
pub(crate) fn wait_kind(function: &FunctionRef<'_>) -> Option<WaitKind> {
    let is_of_framework = function.kind() == FunctionKind::Managed && function.module.framework;
    let begins = |names: &&[&str]| names.iter().any(|name| function.name().starts_with(name));
    let found = || WAITING.iter().find(|(_, names)| begins(names)).map(|(kind, _)| *kind);
    is_of_framework.then(found).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_name_and_functions_have_one_kind() {
        let names: std::collections::BTreeSet<&str> = WaitKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), WaitKind::ALL.len());
        for kind in WaitKind::ALL {
            assert_eq!(WAITING.iter().any(|(known, _)| known == kind), *kind != WaitKind::Other);
        }
        let all: Vec<(WaitKind, &str)> =
            WAITING.iter().flat_map(|(kind, names)| names.iter().map(|name| (*kind, *name))).collect();
        for (kind, name) in &all {
            let same = all.iter().filter(|(_, other)| name.starts_with(other));
            assert!(same.clone().all(|(other, _)| other == kind), "{name}");
            assert_eq!(same.count(), 1, "{name} is named by another already");
        }
    }
}
