//! The view `events` as a log.

use clrscope_analysis::{EventRow, Events};
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
    for subject in events.subjects(row) {
        let name = subject.name.map_or_else(|| format!("{:#x}", subject.id), one_line);
        let word = if subject.role == "callee" { "of " } else { "" };
        line.push_str(&format!(" {word}{name}"));
    }
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

fn detail(key: &str, value: u64) -> String {
    match key {
        "object" | "handle" | "token" => format!(" {key} {value:#x}"),
        "answer" => format!(" {}", if value == 0 { "no" } else { "yes" }),
        "generations" => {
            let collected: Vec<_> = (0..8).filter(|bit| value >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
            format!(" generations {}", collected.join("+"))
        }
        _ => format!(" {key} {value}"),
    }
}
