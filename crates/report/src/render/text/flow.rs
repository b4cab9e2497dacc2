//! The view `flow` as text: a line per begin and end of a call, indented by depth.

use clrscope_analysis::{FlowFunction, FlowKind, FlowRow};

use super::names::{columns, parameters};
use super::units::{count, time};
use super::values::{arguments, results};
use super::{FAINT, TITLE, one_line, styled, value_lines};
use crate::cell::code_of;

/// Calls deeper than this are not indented further.
const MOST_INDENTED: u32 = 60;

/// The heading above the rows of a thread.
pub(crate) fn flow_heading(row: &FlowRow<'_>, several: bool) -> String {
    let thread = row.thread;
    let name = if thread.name.is_empty() { thread.role.name() } else { &thread.name };
    let of = if several { format!(" of process {}", row.function.pid) } else { String::new() };
    let title = format!("thread {}{of} ({})", thread.id, one_line(name));
    let units = "  seconds since the start of the run; after each return, how long the call took";
    styled(TITLE, &title) + &styled(FAINT, units) + "\n"
}

/// One row: the time, the function indented below its caller, and the number of the call or how it
/// ended.
pub(crate) fn flow_line(row: &FlowRow<'_>) -> String {
    let parts = Parts::from_row(row);
    parts.with(&values(row))
}

/// One row. If the values do not fit into one line of `width` columns, each value gets a line below
/// the row.
pub(crate) fn flow_lines(row: &FlowRow<'_>, width: usize) -> String {
    let (parts, values) = (Parts::from_row(row), values(row));
    let indent = MOMENT + parts.indent + MARK;
    let needed = indent + columns(&parts.name) + columns(&values) + columns(&parts.note);
    let Some(captured) = row.captured().filter(|_| needed > width) else { return parts.with(&values) };
    let mut text = parts.with(&one_line(code_of(&row.function)));
    for line in value_lines::lines(&captured, width.saturating_sub(indent)) {
        text += &format!("{}{line}\n", " ".repeat(indent));
    }
    text
}

/// Values of a call, or the types of its parameters.
fn values(row: &FlowRow<'_>) -> String {
    let code = code_of(&row.function);
    one_line(match (row.kind, row.captured()) {
        (FlowKind::Enter, None) => parameters(row.function.plain_signature()).to_owned() + &code,
        (FlowKind::Enter, Some(captured)) => arguments(&captured) + &code,
        (_, None) => code,
        (_, Some(captured)) => code + &results(&captured),
    })
}

/// Width in columns of a row's time and of the mark before its name.
const MOMENT: usize = 17;
const MARK: usize = 3;

/// Parts of a row around its values.
struct Parts {
    moment: String,
    /// Columns of indentation of the function below its callers.
    indent: usize,
    mark: &'static str,
    name: String,
    note: String,
}

impl Parts {
    fn from_row(row: &FlowRow<'_>) -> Self {
        let seconds = row.time_ns / 1_000_000_000;
        let (mark, note) = match (row.kind, row.unwound) {
            (FlowKind::Enter, _) => ("->", format!("id {}, call {}", row.id, count(row.call_count))),
            (FlowKind::Leave, false) => ("<-", String::new()),
            (FlowKind::Leave, true) => ("<!", "by an exception".to_owned()),
            (FlowKind::TailCall, _) => ("<>", "by a tail call".to_owned()),
        };
        let notes: Vec<String> =
            row.duration_ns.map(time).into_iter().chain([note]).filter(|note| !note.is_empty()).collect();
        Self {
            moment: format!("{seconds:>4}.{:09} s", row.time_ns % 1_000_000_000),
            indent: row.depth.min(MOST_INDENTED) as usize * 2,
            mark,
            name: one_line(row.function.name()),
            note: if notes.is_empty() { String::new() } else { format!("  {}", notes.join(", ")) },
        }
    }

    /// The line with these values.
    fn with(&self, values: &str) -> String {
        let note =
            if self.note.is_empty() { String::new() } else { format!("  {}", styled(FAINT, self.note.trim_start())) };
        let (moment, indent) = (styled(FAINT, &self.moment), " ".repeat(self.indent));
        format!("{moment} {indent}{} {}{values}{note}\n", self.mark, self.name)
    }
}

/// A line of the function summary.
pub(crate) fn function_line(row: &FlowFunction<'_>) -> String {
    format!("{:>12}  {}\n", count(row.calls), one_line(row.function.signature()))
}
