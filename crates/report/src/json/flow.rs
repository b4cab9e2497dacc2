//! The rows of the view `flow`.

use clrscope_analysis::{FlowFunction, FlowKind, FlowRow};
use serde_json::json;

use super::rows::thread_identity;
use super::values::add_captured;
use super::{Object, object};

/// A row of `flow`.
pub fn flow(row: &FlowRow<'_>, with_pid: bool) -> Object {
    let mut all = object([
        ("event", json!(row.kind.name())),
        ("name", json!(row.function.name())),
        ("signature", json!(row.function.signature())),
        ("module", json!(row.function.module())),
        ("id", json!(row.id)),
        // A call whose begin was overwritten has no number.
        ("call_count", json!(Some(row.call_count).filter(|&count| count > 0))),
        ("thread", json!(thread_identity(row.thread))),
        ("time_ns", json!(row.time_ns)),
        ("depth", json!(row.depth)),
    ]);
    if let Some(captured) = row.captured() {
        add_captured(&mut all, &captured, row.kind == FlowKind::Enter);
    }
    if row.unwound {
        all.insert("unwound".to_owned(), json!(true));
    }
    if with_pid {
        all.insert("pid".to_owned(), json!(row.function.pid));
    }
    all
}

/// A row of the function summary.
pub fn flow_function(row: &FlowFunction<'_>, with_pid: bool) -> Object {
    let mut all = object([
        ("name", json!(row.function.name())),
        ("signature", json!(row.function.signature())),
        ("module", json!(row.function.module())),
        ("id", json!(row.id)),
        ("calls", json!(row.calls)),
    ]);
    if with_pid {
        all.insert("pid".to_owned(), json!(row.function.pid));
    }
    all
}
