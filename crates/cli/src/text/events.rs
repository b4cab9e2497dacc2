//! The view `events` as a log.

use clrscope_analysis::{EventRow, Events, Subject};
use clrscope_recording::model::Thread;

use super::units::time;
use super::{TITLE, styled};
use crate::errors::one_line;

/// Columns a level of nesting takes.
const INDENT: usize = 2;
/// Levels that are still indented further.
const DEEPEST: usize = 40;

/// What names a thread in a log: `thread 3 (1234, Worker)`.
pub(crate) fn thread_title(pid: Option<u32>, thread: Option<&Thread>) -> String {
    let process = pid.map_or_else(String::new, |pid| format!("process {pid}, "));
    let Some(thread) = thread else { return format!("{process}no known thread") };
    let name = if thread.name.is_empty() { thread.role.name() } else { &thread.name };
    format!("{process}thread {} ({}, {})", thread.id, thread.os_id, one_line(name))
}

/// The line above a thread's events.
pub(crate) fn thread_heading(pid: Option<u32>, thread: Option<&Thread>) -> String {
    styled(TITLE, &thread_title(pid, thread)) + "\n"
}

/// One line: time, thread where threads are mixed, and the event indented by its depth.
pub(crate) fn event_line<'a>(events: &Events<'a>, row: &EventRow<'a>, with_thread: bool) -> String {
    let mut line = format!("{:>12.3} ms  ", row.time_ns as f64 / 1e6);
    if with_thread {
        line.push_str(&format!("{:>4}  ", row.thread.map_or(0, |thread| thread.id)));
    }
    line.push_str(&" ".repeat((row.depth as usize).min(DEEPEST) * INDENT));
    line.push_str(row.event());
    line.push_str(&subjects(events, row));
    if let Some(name) = row.given_name() {
        line.push_str(&format!(" '{}'", one_line(name)));
    }
    if let Some(reason) = row.reason() {
        line.push_str(&format!(" ({})", one_line(reason)));
    }
    for (key, value) in row.details() {
        line.push_str(&detail(key, value));
    }
    if let Some(result) = row.result().filter(|result| result != "S_OK") {
        line.push_str(&format!(" -> {result}"));
    }
    if let Some(duration) = row.duration_ns.filter(|_| row.phase() == "end") {
        line.push_str(&format!(" [{}]", time(duration)));
    }
    line.push('\n');
    line
}

/// What it is about, each with a blank before it.
fn subjects<'a>(events: &Events<'a>, row: &EventRow<'a>) -> String {
    let named = |subject: Subject<'a>| subject.name.map_or_else(|| format!("{:#x}", subject.id), one_line);
    let (callees, others): (Vec<_>, Vec<_>) = events.subjects(row).partition(|subject| subject.role == "callee");
    let others: String = others.into_iter().map(|subject| format!(" {}", named(subject))).collect();
    // The runtime names the caller first.
    match callees.into_iter().next() {
        Some(callee) => format!(" {} into{others}", named(callee)),
        None => others,
    }
}

fn detail(key: &str, value: u64) -> String {
    match key {
        "object" | "handle" | "token" => format!(" {key} {value:#x}"),
        "os_thread" => format!(" OS thread {value}"),
        "found" => if value == 0 { " not found" } else { " found" }.to_owned(),
        "critical" => if value == 0 { "" } else { " critical" }.to_owned(),
        "generations" => {
            let collected: Vec<_> = (0..8).filter(|bit| value >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
            format!(" generations {}", collected.join("+"))
        }
        _ => format!(" {key} {value}"),
    }
}
