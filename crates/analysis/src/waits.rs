//! Kinds of waits, recognised by the framework functions on the stack.

use clrscope_recording::model::{FunctionKind, ThreadState};

use crate::function::FunctionRef;
use crate::titled::titled;

titled! {
    /// Reason why a thread waits. Kinds that slow a program down come first.
    WaitKind {
        /// A lock that another thread holds.
        Lock "lock" "waiting for locks",
        /// A certain time must pass.
        Sleep "sleep" "sleeping",
        /// Files, sockets, pipes and the terminal.
        Io "io" "waiting for files, sockets",
        /// Tasks, events, pulses, and the ends of threads and processes.
        Signal "signal" "waiting for tasks, events",
        /// No free processor, unmanaged code, a page fault, or an unknown reason.
        Other "other" "no processor, or unknown",
        /// Work or shutdown. Threads of the pool, timers, sockets and the like wait for it, and
        /// nothing waits for these threads.
        Idle "idle" "idle threads",
    }
}

impl WaitKind {
    /// Kind of wait for a thread state of `wall` samples; `None` if the thread runs, or is ready to
    /// run.
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

titled! {
    /// State of a thread for some time. For a waiting thread, the stack makes the state more
    /// precise.
    TimeState {
        /// The thread runs on a processor.
        Running "running" "running",
        /// The thread could run, but has no processor.
        Ready "ready" "ready, no processor",
        /// The thread waits for a lock.
        Lock "lock" "waiting for a lock",
        /// The thread is blocked on a task, where code should have awaited the task.
        Task "task" "blocked on a task",
        /// The thread waits for something else, such as events or the ends of threads and
        /// processes.
        Waiting "waiting" "waiting for events, others",
        /// The thread waits for a file, a socket or a pipe.
        Io "io" "files, sockets",
        /// The thread sleeps for a certain time.
        Sleeping "sleeping" "sleeping",
        /// The runtime has suspended the thread for a collection.
        Suspended "suspended" "suspended by the runtime",
        /// The thread waits by design.
        Idle "idle" "idle threads",
        /// The state is not known.
        Unknown "unknown" "unknown",
    }
}

impl TimeState {
    /// Returns the state with this name; `None` for other names.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|state| state.name() == name).copied()
    }

    pub(crate) fn of_reason(reason: WaitReason) -> Self {
        match reason.kind {
            _ if reason == WaitReason::TASK => Self::Task,
            WaitKind::Lock => Self::Lock,
            WaitKind::Sleep => Self::Sleeping,
            WaitKind::Io => Self::Io,
            WaitKind::Signal | WaitKind::Other => Self::Waiting,
            WaitKind::Idle => Self::Idle,
        }
    }

    pub(crate) fn of_thread(state: ThreadState) -> Self {
        match state {
            ThreadState::Running => Self::Running,
            ThreadState::Ready => Self::Ready,
            ThreadState::Lock => Self::Lock,
            ThreadState::Sleeping => Self::Sleeping,
            ThreadState::Io => Self::Io,
            ThreadState::Suspended => Self::Suspended,
            ThreadState::Idle => Self::Idle,
            ThreadState::Waiting => Self::Waiting,
            _ => Self::Unknown,
        }
    }
}

/// Reason of a thread's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WaitReason {
    pub(crate) kind: WaitKind,
    /// What the thread waits for, in words.
    pub(crate) what: &'static str,
}

impl WaitReason {
    /// A lock that the runtime enters without a method of the framework.
    pub(crate) const LOCK: Self = Self { kind: WaitKind::Lock, what: "a lock" };
    /// A task on which code blocks instead of awaiting it.
    pub(crate) const TASK: Self = Self { kind: WaitKind::Signal, what: "a task" };
    /// A semaphore that own code waits for directly. It is used as a lock, or to wait for items in
    /// a queue.
    pub(crate) const SEMAPHORE: Self = Self { kind: WaitKind::Signal, what: "a semaphore" };
    /// An item that another thread puts into a queue.
    pub(crate) const ITEM: Self = Self { kind: WaitKind::Signal, what: "an item of a queue (BlockingCollection)" };
    /// Another program, which the waiting program started.
    pub(crate) const PROCESS: Self = Self { kind: WaitKind::Signal, what: "the end of a process" };
}

/// Framework functions that wait for the same thing.
struct Wait {
    kind: WaitKind,
    /// What the thread waits for, in words.
    what: &'static str,
    /// Prefixes of the functions' names. Their callees wait for the same thing.
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
        WaitReason::LOCK.kind,
        WaitReason::LOCK.what,
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
        "a connection",
        &[
            "Interop+Sys::Accept",
            "System.Net.HttpListener::GetContext",
            "System.Net.Sockets.Socket::Accept",
            "System.Net.Sockets.TcpListener::Accept",
        ],
    ),
    wait(
        WaitKind::Io,
        "a socket",
        &[
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
        WaitReason::TASK.kind,
        WaitReason::TASK.what,
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
    wait(WaitReason::ITEM.kind, WaitReason::ITEM.what, &["System.Collections.Concurrent.BlockingCollection"]),
    wait(WaitReason::SEMAPHORE.kind, WaitReason::SEMAPHORE.what, &["System.Threading.SemaphoreSlim::Wait"]),
    wait(WaitKind::Signal, "a countdown", &["System.Threading.CountdownEvent::Wait"]),
    wait(WaitKind::Signal, "a barrier", &["System.Threading.Barrier::"]),
    wait(WaitKind::Signal, "the end of a thread", &["System.Threading.Thread::Join"]),
    wait(WaitReason::PROCESS.kind, WaitReason::PROCESS.what, &["System.Diagnostics.Process::WaitForExit"]),
];

/// Kind of wait of a thread that is in this function; `None` for functions that do not wait.
pub(crate) fn wait_kind(function: &FunctionRef<'_>) -> Option<WaitKind> {
    wait_in(function).map(|wait| wait.kind)
}

/// Returns the reason of the wait of a thread that is in this function; `None` for functions that
/// do not wait.
fn reason_in(function: &FunctionRef<'_>) -> Option<WaitReason> {
    wait_in(function).map(|wait| WaitReason { kind: wait.kind, what: wait.what })
}

/// Number of innermost frames in which the wait is searched for. Framework functions that wait call
/// one another, so the innermost one is not enough.
const NEAREST: usize = 12;

/// Returns what a thread with this state waits for. `functions` are the functions of its stack,
/// innermost first. `None` if the thread does not wait, or the reason is unknown. Among the
/// innermost framework methods the outermost decides: `Task.Wait` waits on an event, but for a
/// task.
pub(crate) fn wait_reason<'a>(
    state: ThreadState,
    functions: impl Iterator<Item = FunctionRef<'a>>,
) -> Option<WaitReason> {
    // A wait for a lock has no framework frame if the runtime itself enters the lock.
    let by_state = (state == ThreadState::Lock).then_some(WaitReason::LOCK);
    let by_methods = || reason_by_facts(functions.map(|function| WaitFacts::new(&function)));
    is_wait(state).then(|| by_methods().or(by_state)).flatten()
}

/// Whether a thread in this state waits for something that its stack may show.
pub(crate) fn is_wait(state: ThreadState) -> bool {
    matches!(state, ThreadState::Lock | ThreadState::Waiting | ThreadState::Io | ThreadState::Sleeping)
}

/// Facts about a function that help to classify waits below it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitFacts {
    is_method: bool,
    is_framework: bool,
    reason: Option<WaitReason>,
}

impl WaitFacts {
    pub(crate) fn new(function: &FunctionRef<'_>) -> Self {
        let (is_method, is_framework) = (function.kind() == FunctionKind::Managed, function.module.framework);
        Self { is_method, is_framework, reason: reason_in(function) }
    }
}

/// Returns what a waiting thread waits for. `functions` are facts about the functions of its stack,
/// innermost first.
pub(crate) fn reason_by_facts(functions: impl Iterator<Item = WaitFacts>) -> Option<WaitReason> {
    let managed = functions.filter(|function| function.is_method);
    let framework = managed.take_while(|function| function.is_framework).take(NEAREST);
    framework.filter_map(|function| function.reason).last()
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
