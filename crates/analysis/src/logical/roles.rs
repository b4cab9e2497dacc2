//! Roles of framework functions in running asynchronous code, determined by their names.
//!
//! The names are those of .NET 8, 9 and 10 (`System.Private.CoreLib`, folders `System/Threading`,
//! `System/Threading/Tasks` and `System/Runtime/CompilerServices` of dotnet/runtime). For a runtime
//! with other names the paths stay unchanged.

use clrscope_contract::async_code::{CORE_LIBRARY, resumes};
use clrscope_recording::model::{Function, FunctionKind, Process};

/// Role of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A method without a special role.
    Method,
    /// Not a method: native code, the kernel, suspensions.
    Native,
    /// A scheduler or method builder. Its frames are left out.
    Machinery,
    /// A function that resumes code after an await.
    Resumption,
    /// Loop of a thread of the pool.
    Pool,
    /// A function that calls a timer's callback.
    Timer,
}

/// Methods with one role: the methods of a type whose names begin with one of these prefixes.
/// Without prefixes, all methods of the type.
struct Methods {
    role: Role,
    of: &'static str,
    named: &'static [&'static str],
}

const fn all(role: Role, of: &'static str) -> Methods {
    Methods { role, of, named: &[] }
}

const fn some(role: Role, of: &'static str, named: &'static [&'static str]) -> Methods {
    Methods { role, of, named }
}

/// Namespaces of the types below.
const COMPILER_SERVICES: &str = "System.Runtime.CompilerServices.";
const TASKS: &str = "System.Threading.Tasks.";
const THREADING: &str = "System.Threading.";

/// Types of `System.Runtime.CompilerServices`. The first match counts.
const OF_COMPILER_SERVICES: &[Methods] = &[
    all(Role::Machinery, "AsyncMethodBuilderCore"),
    all(Role::Machinery, "AsyncTaskMethodBuilder"),
    all(Role::Machinery, "AsyncValueTaskMethodBuilder"),
    all(Role::Machinery, "PoolingAsyncValueTaskMethodBuilder"),
    all(Role::Machinery, "AsyncVoidMethodBuilder"),
    all(Role::Machinery, "AsyncIteratorMethodBuilder"),
    // Methods that wait for a pending result stay: they block the thread.
    some(Role::Machinery, "TaskAwaiter", &["OnCompleted", "UnsafeOnCompleted"]),
    some(Role::Machinery, "ValueTaskAwaiter", &["OnCompleted", "UnsafeOnCompleted", "System.", "AwaitUnsafe"]),
    some(Role::Machinery, "ConfiguredTaskAwaitable", &["OnCompleted", "UnsafeOnCompleted"]),
    some(Role::Machinery, "ConfiguredValueTaskAwaitable", &["OnCompleted", "UnsafeOnCompleted", "System."]),
    all(Role::Machinery, "YieldAwaitable"),
];

/// Types of `System.Threading.Tasks`.
const OF_TASKS: &[Methods] = &[
    all(Role::Machinery, "AwaitTaskContinuation"),
    all(Role::Machinery, "TaskContinuation"),
    all(Role::Machinery, "ContinueWithTaskContinuation"),
    all(Role::Machinery, "SynchronizationContextAwaitTaskContinuation"),
    all(Role::Machinery, "TaskSchedulerAwaitTaskContinuation"),
    some(Role::Machinery, "ContinuationTaskFromTask", &["InnerInvoke"]),
    some(Role::Machinery, "ContinuationTaskFromResultTask", &["InnerInvoke"]),
    some(Role::Machinery, "ContinuationResultTaskFromTask", &["InnerInvoke"]),
    some(Role::Machinery, "ContinuationResultTaskFromResultTask", &["InnerInvoke"]),
    all(Role::Machinery, "TaskCompletionSource"),
    all(Role::Machinery, "ThreadPoolTaskScheduler"),
    some(Role::Machinery, "TaskScheduler", &["TryRunInline", "TryExecuteTask"]),
    all(Role::Machinery, "UnwrapPromise"),
    all(Role::Machinery, "Sources.ManualResetValueTaskSourceCore"),
    some(
        Role::Machinery,
        "Task",
        &[
            "RunContinuations",
            "FinishContinuations",
            "Finish",
            "TrySet",
            "Execute",
            "InnerInvoke",
            "SetContinuationForAwait",
            "UnsafeSetContinuationForAwait",
            "AddTaskContinuation",
        ],
    ),
];

/// Promises: types nested in the type `Task`.
const PROMISES: &[&str] = &["Task+", "TaskFactory+CompleteOn"];

/// Types of `System.Threading`.
const OF_THREADING: &[Methods] = &[
    some(Role::Pool, "PortableThreadPool+WorkerThread", &["WorkerThreadStart", "WorkerDoWork"]),
    some(Role::Pool, "ThreadPoolWorkQueue", &["Dispatch"]),
    some(Role::Timer, "TimerQueue", &["FireNextTimers"]),
    some(Role::Timer, "TimerQueueTimer", &["Fire", "CallCallback"]),
    some(Role::Machinery, "TimerQueue", &["AppDomainTimerCallback", "System."]),
    some(Role::Machinery, "TimerQueueTimer", &["System."]),
    some(Role::Machinery, "ExecutionContext", &["Run", "RestoreChangedContextToThread"]),
    all(Role::Machinery, "QueueUserWorkItemCallback"),
    all(Role::Machinery, "QueueUserWorkItemCallbackDefaultContext"),
    all(Role::Machinery, "ThreadPoolTypedWorkItemQueue"),
];

/// Role of a function of a process.
pub(super) fn role_of(process: &Process, function: &Function) -> Role {
    if function.kind != FunctionKind::Managed {
        return Role::Native;
    }
    if process.module_name(function.module) != CORE_LIBRARY {
        return Role::Method;
    }
    role_by_name(&function.name)
}

fn role_by_name(name: &str) -> Role {
    if resumes(name) {
        return Role::Resumption;
    }
    let Some((of, method)) = name.split_once("::") else { return Role::Method };
    if let Some(of) = of.strip_prefix(COMPILER_SERVICES) {
        return among(OF_COMPILER_SERVICES, of, method);
    }
    if let Some(of) = of.strip_prefix(TASKS) {
        let is_promise = PROMISES.iter().any(|promise| of.starts_with(promise));
        return if is_promise { Role::Machinery } else { among(OF_TASKS, of, method) };
    }
    of.strip_prefix(THREADING).map_or(Role::Method, |of| among(OF_THREADING, of, method))
}

fn among(methods: &[Methods], of: &str, method: &str) -> Role {
    let is_it = |one: &&Methods| {
        let nested = || of.strip_prefix(one.of).is_some_and(|rest| rest.starts_with('+'));
        let is_type = of == one.of || (one.role == Role::Machinery && nested());
        is_type && (one.named.is_empty() || one.named.iter().any(|name| method.starts_with(name)))
    };
    methods.iter().find(is_it).map_or(Role::Method, |one| one.role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_builders_and_resumptions_are_known_by_their_names() {
        let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder";
        let known = [
            (format!("{builder}+AsyncStateMachineBox::MoveNext"), Role::Resumption),
            (format!("{builder}+AsyncStateMachineBox::ExecutionContextCallback"), Role::Machinery),
            (format!("{builder}::SetExistingTaskResult"), Role::Machinery),
            (format!("{builder}Other::SetExistingTaskResult"), Role::Method),
            ("System.Runtime.CompilerServices.TaskAwaiter::GetResult".into(), Role::Method),
            ("System.Threading.Tasks.Task::RunContinuations".into(), Role::Machinery),
            ("System.Threading.Tasks.Task::Wait".into(), Role::Method),
            ("System.Threading.Tasks.Task::Run".into(), Role::Method),
            ("System.Threading.Tasks.Task+DelayPromise::CompleteTimedOut".into(), Role::Machinery),
            ("System.Threading.Tasks.AwaitTaskContinuation::RunOrScheduleAction".into(), Role::Resumption),
            ("System.Threading.ThreadPoolWorkQueue::Dispatch".into(), Role::Pool),
            ("System.Threading.ThreadPoolWorkQueue::Enqueue".into(), Role::Method),
            ("System.Threading.TimerQueueTimer::Fire".into(), Role::Timer),
            ("System.Threading.ExecutionContext::RunInternal".into(), Role::Machinery),
            ("System.Threading.ExecutionContext::Capture".into(), Role::Method),
            ("System.String::Concat".into(), Role::Method),
            ("[pool]".into(), Role::Method),
        ];
        for (name, role) in known {
            assert_eq!(role_by_name(&name), role, "{name}");
        }
    }
}
