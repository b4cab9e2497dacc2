//! The view `flow`.

use std::cell::{self, RefCell};
use std::io;

use clrscope_analysis::{CapturedValues, FlowFunction, FlowKind, FlowLog, FlowRow};
use clrscope_recording::model::Recording;

use super::SELECTION;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::json::values;
use crate::render::text::flow::{flow_heading, flow_line, flow_lines, function_line};
use crate::render::{Layout, LogEntry, LogGroup, Renderer, Section, Style, Tail, ThreadKey, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `flow`.
pub(super) static VIEW: View = View {
    name: "flow",
    about: "Every call with its start and end",
    takes: &[SELECTION, &[Flag::Limit, Flag::PerThread, Flag::Depth, Flag::Follow, Flag::Output]],
    sorts: &[],
    text_rows: |_| Some(TEXT_ROWS),
    has_head: false,
    layout: Layout::Dense,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let log = FlowLog::open(recording, &request.query, request.max_depth)?;
        // The view's default limit applies to rows, not to the counts below them.
        let log = if request.query.limit == Some(TEXT_ROWS) { log.reading_on() } else { log };
        Ok(Box::new(OpenView { log, request: request.clone(), recording }))
    },
};

/// Default number of rows in text.
const TEXT_ROWS: usize = 10_000;
/// Heading of the summary.
const WHOLE: &str = "Calls by function";
/// Heading of the summary if reading stopped at a limit.
const PART: &str = "Calls by function, in the part of the recording read for these rows";
/// Default number of functions of the summary in text.
const FUNCTIONS: usize = 30;

struct FlowRows;

impl RowKind for FlowRows {
    type Row<'a> = FlowEntry<'a>;
}

struct FlowEntry<'a> {
    row: &'a FlowRow<'a>,
    processes: bool,
}

impl FlowEntry<'_> {
    /// Cell with some of the captured values of the call; absent where no values were captured.
    fn captured(&self, of: impl FnOnce(&CapturedValues<'_>) -> Option<serde_json::Value>) -> Cell<'_> {
        self.row.captured().and_then(|captured| of(&captured)).map_or(Cell::Absent, Cell::Nested)
    }
}

impl Row for FlowEntry<'_> {
    fn log(&self) -> Option<&dyn LogEntry> {
        Some(self)
    }
}

impl LogEntry for FlowEntry<'_> {
    fn order_key(&self) -> (ThreadKey, u64) {
        ((self.row.function.pid, self.row.thread.id), self.row.ticks)
    }

    fn group(&self) -> LogGroup {
        LogGroup::Thread(self.order_key().0)
    }

    fn heading(&self) -> String {
        flow_heading(self.row, self.processes)
    }

    fn line(&self) -> String {
        flow_line(self.row)
    }

    fn lines(&self, width: usize) -> String {
        flow_lines(self.row, width)
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, FlowRows> {
    Sheet::new([
        Column::new("event", "event", Kind::Text, |row: &FlowEntry<'_>| Cell::text(row.row.kind.name())),
        Column::new("name", "function", Kind::Function, |row: &FlowEntry<'_>| Cell::function(&row.row.function)),
        Column::new("signature", "signature", Kind::Text, |row: &FlowEntry<'_>| {
            Cell::text(row.row.function.signature())
        }),
        Column::new("module", "module", Kind::Text, |row: &FlowEntry<'_>| Cell::text(row.row.function.module())),
        Column::new("id", "id", Kind::Number, |row: &FlowEntry<'_>| Cell::Number(row.row.id.into())),
        // A call whose begin was overwritten has no number.
        Column::new("call_count", "call", Kind::Count, |row: &FlowEntry<'_>| match row.row.call_count {
            0 => Cell::Null,
            count => Cell::Count(count),
        }),
        Column::new("thread", "thread", Kind::Thread, |row: &FlowEntry<'_>| Cell::Thread(row.row.thread)),
        Column::new("time_ns", "time", Kind::Time, |row: &FlowEntry<'_>| Cell::Time(row.row.time_ns)),
        Column::new("duration_ns", "duration", Kind::Time, |row: &FlowEntry<'_>| Cell::measured(row.row.duration_ns)),
        Column::new("depth", "depth", Kind::Count, |row: &FlowEntry<'_>| Cell::Count(row.row.depth.into())),
        Column::new("this", "this", Kind::Nested, |row: &FlowEntry<'_>| row.captured(values::this)),
        Column::new("args", "arguments", Kind::Nested, |row: &FlowEntry<'_>| {
            row.captured(|captured| values::arguments(captured, row.row.kind == FlowKind::Enter))
        }),
        Column::new("returns", "result", Kind::Nested, |row: &FlowEntry<'_>| row.captured(values::returns))
            .parts(&["type", "value", "redacted", "unknown"]),
        Column::new("unwound", "by an exception", Kind::Flag, |row: &FlowEntry<'_>| match row.row.unwound {
            true => Cell::Flag(true),
            false => Cell::Absent,
        }),
        Column::new("pid", "process", Kind::Number, |row: &FlowEntry<'_>| Cell::Number(row.row.function.pid.into()))
            .only_if(processes),
    ])
}

/// The summary of the functions.
struct FunctionRows;

impl RowKind for FunctionRows {
    type Row<'a> = FlowFunction<'a>;
}

impl Row for FlowFunction<'_> {
    fn log(&self) -> Option<&dyn LogEntry> {
        Some(self)
    }
}

impl LogEntry for FlowFunction<'_> {
    fn order_key(&self) -> (ThreadKey, u64) {
        ((self.function.pid, 0), 0)
    }

    fn group(&self) -> LogGroup {
        LogGroup::Mixed(false)
    }

    fn heading(&self) -> String {
        String::new()
    }

    fn line(&self) -> String {
        function_line(self)
    }
}

fn functions<'c>(processes: bool) -> Sheet<'c, FunctionRows> {
    Sheet::new([
        Column::new("name", "function", Kind::Function, |row: &FlowFunction<'_>| Cell::function(&row.function)),
        Column::new("signature", "signature", Kind::Text, |row: &FlowFunction<'_>| {
            Cell::text(row.function.signature())
        }),
        Column::new("module", "module", Kind::Text, |row: &FlowFunction<'_>| Cell::text(row.function.module())),
        Column::new("id", "id", Kind::Number, |row: &FlowFunction<'_>| Cell::Number(row.id.into())),
        Column::new("calls", "calls", Kind::Count, |row: &FlowFunction<'_>| Cell::Count(row.calls)),
        Column::new("pid", "process", Kind::Number, |row: &FlowFunction<'_>| Cell::Number(row.function.pid.into()))
            .only_if(processes),
    ])
}

struct OpenView<'a> {
    log: FlowLog<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    /// Rows are made while they are visited, because there may be a hundred million.
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let processes = self.recording.processes.len() > 1;
        let called: RefCell<Vec<FlowFunction<'_>>> = RefCell::default();
        let is_whole = cell::Cell::new(true);
        let rows = sheet(processes);
        let section = Section {
            nothing: "No calls to show: nothing was called, or the filters leave nothing.".to_owned(),
            ..rows.main(&self.request, "rows", Style::Log, &[])
        };
        renderer.section(&section, &mut |visit| {
            let (functions, left_out) = self.log.walk(|row| visit(&rows.entry(&FlowEntry { row, processes })))?;
            called.replace(functions);
            is_whole.set(left_out.is_whole);
            Ok(Tail::from(left_out))
        })?;
        let sheet = functions(processes);
        let section = Section {
            title: Title::Bold(if is_whole.get() { WHOLE } else { PART }.to_owned()),
            what: "functions",
            text_rows: Some(self.request.query.limit.filter(|&limit| limit != TEXT_ROWS).unwrap_or(FUNCTIONS)),
            ..sheet.section("functions", Style::Lines, &[])
        };
        renderer.section(&section, &mut |visit| {
            called.borrow().iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail::default())
        })
    }
}
