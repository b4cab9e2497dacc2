//! Single calls of probed methods: the view `probes` with `--each`.

use std::io;

use clrscope_analysis::{CapturedValues, ProbeCall, ProbeLog};
use serde_json::Value;

use super::nothing;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::json::values;
use crate::render::text::probes::call;
use crate::render::{LogEntry, LogGroup, Renderer, Section, Style, Tail, ThreadKey};
use crate::request::Request;

/// Default number of calls in text output.
pub(super) const TEXT_ROWS: usize = 10_000;

/// Rows of calls.
pub(super) struct Calls;

impl RowKind for Calls {
    type Row<'a> = CallEntry<'a>;
}

/// A call, and whether its row names the process.
pub(super) struct CallEntry<'a> {
    call: &'a ProbeCall<'a>,
    processes: bool,
}

impl Row for CallEntry<'_> {
    fn log(&self) -> Option<&dyn LogEntry> {
        Some(self)
    }
}

impl LogEntry for CallEntry<'_> {
    fn order_key(&self) -> (ThreadKey, u64) {
        ((self.call.process.pid, self.call.thread.map_or(0, |thread| thread.id)), self.call.time_ns)
    }

    fn group(&self) -> LogGroup {
        LogGroup::Mixed(false)
    }

    fn heading(&self) -> String {
        String::new()
    }

    fn line(&self) -> String {
        call(self.call, self.processes)
    }
}

/// Columns of a call.
pub(super) fn sheet<'c>(processes: bool) -> Sheet<'c, Calls> {
    let taken = |of: Option<&CapturedValues<'_>>, part: fn(&CapturedValues<'_>) -> Option<Value>| -> Cell<'static> {
        of.and_then(part).map_or(Cell::Absent, Cell::Nested)
    };
    Sheet::new([
        Column::new("thread", "thread", Kind::Thread, |row: &CallEntry<'_>| {
            Cell::or_null(row.call.thread, Cell::Thread)
        }),
        Column::new("time_ns", "time", Kind::Time, |row: &CallEntry<'_>| Cell::Time(row.call.time_ns)),
        Column::new("duration_ns", "duration", Kind::Time, |row: &CallEntry<'_>| {
            Cell::or_null(row.call.duration_ns, Cell::Time)
        }),
        Column::new("name", "method", Kind::Text, |row: &CallEntry<'_>| Cell::text(&row.call.method.name)),
        Column::new("signature", "signature", Kind::Text, |row: &CallEntry<'_>| Cell::text(&row.call.method.signature)),
        Column::new("module", "module", Kind::Text, |row: &CallEntry<'_>| Cell::text(row.call.module)),
        Column::new("failed", "failed", Kind::Flag, |row: &CallEntry<'_>| Cell::or_null(row.call.failed, Cell::Flag)),
        Column::new("this", "this", Kind::Nested, move |row: &CallEntry<'_>| {
            taken(row.call.arguments.as_ref(), values::this)
        }),
        Column::new("args", "arguments", Kind::Nested, move |row: &CallEntry<'_>| {
            taken(row.call.arguments.as_ref(), |captured| values::arguments(captured, true))
        }),
        Column::new("args_after", "by reference afterwards", Kind::Nested, move |row: &CallEntry<'_>| {
            taken(row.call.results.as_ref(), |captured| values::arguments(captured, false))
        }),
        Column::new("returns", "result", Kind::Nested, move |row: &CallEntry<'_>| {
            taken(row.call.results.as_ref(), values::returns)
        })
        .parts(&["type", "value", "redacted", "unknown"]),
        Column::new("pid", "process", Kind::Number, |row: &CallEntry<'_>| Cell::Number(row.call.process.pid.into()))
            .only_if(processes),
    ])
}

/// Writes the calls; reads each one only when its row is visited.
pub(super) fn write(log: &ProbeLog<'_>, request: &Request, processes: bool, to: &mut dyn Renderer) -> io::Result<()> {
    let sheet = sheet(processes);
    let main = sheet.main(request, "rows", Style::Stories, &[]);
    let section = Section { nothing: nothing("call"), what: "calls", ..main };
    to.section(&section, &mut |visit| {
        let left_out = log.walk(|call| visit(&sheet.entry(&CallEntry { call, processes })))?;
        Ok(Tail::from(left_out))
    })
}
