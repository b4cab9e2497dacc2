//! Reports for people: aligned columns, shares beside times, as wide as the terminal.

mod events;
mod exceptions;
mod flow;
mod head;
mod lists;
mod names;
mod table;
mod tree;
mod units;
mod values;

pub use events::{Threads, event_line, thread_heading, thread_title};
pub use exceptions::{exception_groups, exception_stories};
pub use flow::{flow_functions, flow_heading, flow_line};
pub use head::head;
pub use lists::{functions, losses, modules, neighbours, summary, threads, top};
pub use tree::tree;

use anstyle::{AnsiColor, Style};

/// Titles of sections and columns.
const TITLE: Style = Style::new().bold();
/// What matters less.
const FAINT: Style = Style::new().dimmed();
/// What must not be overlooked.
const WARNING: Style = AnsiColor::Yellow.on_default();

/// `text` in a style.
fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A line below a table that says how many rows are not shown.
fn more(left_out: usize, what: &str, width: usize) -> String {
    match left_out {
        0 => String::new(),
        n => footnote(&format!("... and {} more {what} (--limit shows more)", units::count(n as u64)), width),
    }
}

/// A remark below a table.
fn footnote(text: &str, width: usize) -> String {
    head::wrapped(text, width).iter().map(|line| styled(FAINT, line) + "\n").collect()
}
