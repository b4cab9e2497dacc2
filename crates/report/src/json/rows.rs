//! The rows of the views.

use clrscope_analysis::{EdgeRow, Finding, FunctionRef, FunctionRow, ModuleRow, ThreadRow, Times};
use clrscope_recording::model::{Loss, Thread};
use serde_json::json;

use super::{Object, object};

/// The name of the caller where a thread itself is it.
pub const THREAD_START: &str = "(thread)";

/// A row of `functions`. `with_pid` where a report shows more than one process.
pub fn function_row(row: &FunctionRow<'_>, with_pid: bool) -> Object {
    let mut all = function(&row.function);
    if with_pid {
        all.insert("pid".to_owned(), json!(row.function.pid));
    }
    add_times(&mut all, &row.times);
    all.insert("max_recursion".to_owned(), json!(row.max_recursion));
    all.insert("threads".to_owned(), json!(row.threads));
    if let Some(thread) = row.thread {
        all.insert("thread".to_owned(), json!(thread_identity(thread)));
    }
    all
}

/// What names a function.
pub(super) fn function(function: &FunctionRef<'_>) -> Object {
    object([
        ("name", json!(function.name())),
        ("signature", json!(function.signature())),
        ("module", json!(function.module())),
        ("token", json!(function.token())),
        ("kind", json!(function.kind().name())),
    ])
}

/// Calls and times; CPU times only where measured.
pub(super) fn add_times(all: &mut Object, times: &Times) {
    let mut add = |key: &str, value: u64| _ = all.insert(key.to_owned(), json!(value));
    add("calls", times.calls);
    add("inclusive_ns", times.inclusive_ns);
    add("exclusive_ns", times.exclusive_ns);
    add("callee_ns", times.callee_ns);
    add("suspended_ns", times.suspended_ns);
    add("profiler_ns", times.profiler_ns);
    add("profiler_low_ns", times.profiler_low_ns);
    add("profiler_high_ns", times.profiler_high_ns);
    if let Some(ns) = times.inclusive_cpu_ns {
        add("inclusive_cpu_ns", ns);
    }
    if let Some(ns) = times.exclusive_cpu_ns {
        add("exclusive_cpu_ns", ns);
    }
}

/// What names a thread.
pub(super) fn thread_identity(thread: &Thread) -> Object {
    object([
        ("id", json!(thread.id)),
        ("os_id", json!(thread.os_id)),
        ("name", json!(thread.name)),
        ("role", json!(thread.role.name())),
    ])
}

/// A row of `callers` or `callees`.
pub fn edge(row: &EdgeRow<'_>) -> Object {
    let mut all = match &row.function {
        Some(other) => function(other),
        None => object([
            ("name", json!(THREAD_START)),
            ("signature", json!(THREAD_START)),
            ("module", json!("")),
            ("token", json!(0)),
            ("kind", json!("runtime")),
        ]),
    };
    add_times(&mut all, &row.times);
    all
}

/// A row of `threads`.
pub fn thread(row: &ThreadRow<'_>, with_pid: bool) -> Object {
    let mut all = thread_identity(row.thread);
    if with_pid {
        all.insert("pid".to_owned(), json!(row.pid));
    }
    all.extend(object([
        ("created_ns", json!(row.thread.created_ns)),
        ("ended_ns", json!(row.thread.ended_ns)),
        ("running_ns", json!(row.running_ns)),
        ("outside_ns", json!(row.outside_ns)),
    ]));
    if let Some(ns) = row.cpu_ns {
        all.insert("cpu_ns".to_owned(), json!(ns));
    }
    all.extend(object([
        ("suspended_ns", json!(row.suspended_ns)),
        ("profiler_ns", json!(row.profiler_ns)),
        ("profiler_low_ns", json!(row.profiler_low_ns)),
        ("profiler_high_ns", json!(row.profiler_high_ns)),
        ("calls", json!(row.calls)),
        ("max_depth", json!(row.max_depth)),
    ]));
    all
}

/// A row of `modules`.
pub fn module(row: &ModuleRow<'_>, with_pid: bool) -> Object {
    let mut all = object([
        ("module", json!(row.module.name)),
        ("path", json!(row.module.path)),
        ("version", json!(row.module.version)),
    ]);
    if with_pid {
        all.insert("pid".to_owned(), json!(row.pid));
    }
    all.extend(object([
        ("functions", json!(row.functions)),
        ("calls", json!(row.calls)),
        ("exclusive_ns", json!(row.exclusive_ns)),
    ]));
    if let Some(ns) = row.exclusive_cpu_ns {
        all.insert("exclusive_cpu_ns".to_owned(), json!(ns));
    }
    all
}

/// A row of `losses`; `details` only where there are any.
pub fn loss(loss: &Loss) -> Object {
    let mut all = object([
        ("reason", json!(loss.reason.name())),
        ("count", json!(loss.count)),
        ("first_ns", json!(loss.first_ns)),
        ("last_ns", json!(loss.last_ns)),
    ]);
    if !loss.details.is_empty() {
        all.insert("details".to_owned(), json!(loss.details));
    }
    all
}

/// One sentence of the summary.
pub fn finding(finding: &Finding) -> Object {
    object([("text", json!(finding.text)), ("share", json!(finding.share))])
}
