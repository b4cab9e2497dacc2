//! Sentences, and the short table at the end of a run.

use clrscope_analysis::{Elsewhere, ElsewhereKind, FunctionRow, Summary, WaitKind};

use super::PROSE;
use super::head::wrapped;
use super::names::Names;
use super::one_line;
use super::table::{Column, Table};
use super::units::{count, share, time, time_cell};
use crate::cell::Cell;

/// A sentence of a list, with its bullet, in lines of at most `width` columns.
pub(super) fn bullet(text: &str, width: usize) -> String {
    let lines = wrapped(&one_line(text), width.saturating_sub(2));
    format!("- {}\n", lines.join("\n  "))
}

/// A short table of the functions with the most work, for the end of a run: own code, including the
/// framework code that it calls, or framework code if no own code worked. A line below says where
/// threads waited and what the runtime did.
#[must_use]
pub fn first_functions(view: &Summary<'_>, width: usize) -> String {
    let totals = &view.conditions.totals;
    let own = view.own.iter().filter(|own| own.work_ns > 0).map(|own| (own.work_ns, &own.row));
    let mut rows: Vec<(u64, &FunctionRow<'_>)> = own.collect();
    let is_own = !rows.is_empty();
    if !is_own {
        let work = |row: &FunctionRow<'_>| row.times.exclusive_cpu_ns.unwrap_or(row.times.exclusive_ns);
        rows.extend(view.framework.iter().map(|row| (work(row), row)));
    }
    let names =
        Names::from_functions(rows.iter().map(|(_, row)| (row.function.name(), row.function.plain_signature())));
    let all = totals.cpu_ns.unwrap_or(totals.functions_ns).max(1);
    let what = if totals.cpu_ns.is_some() { "cpu" } else { "time" };
    let function = if is_own { "own function, with the framework code it calls" } else { "function" };
    let columns = [Column::number(what, 0), Column::number("share", 0), Column::number("calls", 1)];
    let mut table = Table::new(columns.into_iter().chain([Column::names(function, 0)]).collect());
    for (work, row) in rows {
        let Cell::Function(named) = Cell::function(&row.function) else { continue };
        let name = one_line(names.shown(named.name, named.signature));
        let part = share((work as f64 / all as f64).min(1.0));
        let cells = vec![time_cell(work), part, at_least(row), format!("{name}{}", named.after)];
        table.row_with_prefix(cells, String::new());
    }
    let text = table.render_below(width, None).0;
    match elsewhere(view) {
        rest if rest.is_empty() => text,
        rest => text + &wrapped(&format!("besides, in thread time: {rest}"), width.min(PROSE)).join("\n") + "\n",
    }
}

/// Calls of a row, with a mark if there were more calls than counted.
fn at_least(row: &FunctionRow<'_>) -> String {
    format!("{}{}", if row.counts_at_least() { "\u{2265}" } else { "" }, count(row.times.calls))
}

/// Waits of threads and work of the runtime, in one sentence; waits of idle threads are left out.
fn elsewhere(view: &Summary<'_>) -> String {
    let is_idle = |kind| matches!(kind, ElsewhereKind::Wait(WaitKind::Idle | WaitKind::Other));
    let rows = view.elsewhere.iter().filter(|row| !is_idle(row.kind));
    let least = view.conditions.resolution().wall_ns.max(1);
    let is_seen = |row: &&Elsewhere<'_>| row.time_ns.is_none_or(|ns| ns >= least);
    let part = |row: &Elsewhere<'_>| match (row.time_ns, row.count) {
        (Some(ns), _) => format!("{} {}", row.kind.title(), time(ns)),
        (None, Some(1)) => format!("1 {}", row.kind.title().replacen("exceptions", "exception", 1)),
        (None, number) => format!("{} {}", count(number.unwrap_or(0)), row.kind.title()),
    };
    rows.filter(is_seen).map(part).collect::<Vec<_>>().join(", ")
}
