//! The view `events` as a log.

use clrscope_analysis::{EventRow, Subject};
use clrscope_recording::model::Thread;

use super::one_line;
use super::units::time;

/// Columns of indentation per level of nesting.
const INDENT: usize = 2;
/// Maximum number of indented levels.
const DEEPEST: usize = 40;

/// Title of a thread in a log: `thread 3 (1234, Worker)`.
pub(crate) fn thread_title(pid: Option<u32>, thread: Option<&Thread>) -> String {
    let process = pid.map_or_else(String::new, |pid| format!("process {pid}, "));
    let Some(thread) = thread else { return format!("{process}no known thread") };
    let name = if thread.name.is_empty() { thread.role.name() } else { &thread.name };
    format!("{process}thread {} ({}, {})", thread.id, thread.os_id, one_line(name))
}

/// How the lines of a log tell to which thread they belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// By headings: each thread has its own lines.
    Apart,
    /// By the thread's number in each line.
    Mixed,
    /// By the numbers of the process and the thread in each line.
    OfProcesses,
}

impl Threads {
    /// The choice for lines of mixed threads, from one process or from several.
    pub(crate) fn mixed(several_processes: bool) -> Self {
        if several_processes { Self::OfProcesses } else { Self::Mixed }
    }

    /// Heading above lines that come from several threads.
    pub(crate) fn heading(self) -> String {
        let column = match self {
            Self::Apart => return String::new(),
            Self::Mixed => "thread",
            Self::OfProcesses => "process thread",
        };
        format!("           time  {column}  event\n")
    }

    fn column(self, row: &EventRow<'_>) -> String {
        let thread = row.thread.map_or(0, |thread| thread.id);
        match self {
            Self::Apart => String::new(),
            Self::Mixed => format!("{thread:>6}  "),
            Self::OfProcesses => format!("{:>7} {thread:>6}  ", row.process.pid),
        }
    }
}

/// One line: the time, the thread if threads are mixed, and the event indented by its depth.
pub(crate) fn event_line(row: &EventRow<'_>, threads: Threads) -> String {
    let mut line = format!("{:>12.3} ms  ", row.time_ns as f64 / 1e6);
    line.push_str(&threads.column(row));
    line.push_str(&" ".repeat((row.depth as usize).min(DEEPEST) * INDENT));
    line.push_str(row.event());
    line.push_str(&subjects(row));
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

/// Entities of the event, each with a space before it.
fn subjects(row: &EventRow<'_>) -> String {
    let named = |subject: Subject<'_>| subject.name.map_or_else(|| format!("{:#x}", subject.id), one_line);
    let (callees, others): (Vec<_>, Vec<_>) = row.subjects().partition(|subject| subject.role == "callee");
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
            let collected: Vec<_> = (0..8).filter(|bit| value >> bit & 1 == 1).map(generation).collect();
            format!(" generations {}", collected.join("+"))
        }
        _ => format!(" {key} {value}"),
    }
}

/// Name of a generation. The runtime also counts the large object heap and the pinned object heap
/// as generations.
fn generation(number: u64) -> String {
    match number {
        3 => "large".to_owned(),
        4 => "pinned".to_owned(),
        other => other.to_string(),
    }
}
