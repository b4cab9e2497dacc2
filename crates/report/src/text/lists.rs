//! The views that are lists.

use clrscope_analysis::{
    Conditions, EdgeRow, FunctionRow, Functions, Losses, Modules, Neighbours, NeighboursView, Sort, Summary, Threads,
    Times, Totals,
};
use clrscope_contract::instruments::first_view;
use clrscope_recording::model::{LossReason, Thread};

use super::names::{Names, shortened};
use super::table::{Column, Table};
use super::units::{count, maybe_time_cell, share, time, time_cell};
use super::{FAINT, TITLE, more, styled};
use crate::json::THREAD_START;

/// The view `functions`.
pub fn functions(view: &Functions<'_>, width: usize) -> String {
    if view.rows.is_empty() {
        return no_functions(&view.conditions, width);
    }
    function_table(&view.rows, &view.conditions, width) + &more(view.left_out, "functions", width)
}

/// The view `summary`, its functions ordered by `sort`.
pub fn summary(view: &Summary<'_>, sort: Option<Sort>, width: usize) -> String {
    let mut text = String::new();
    if !view.findings.is_empty() {
        text.push_str(&styled(TITLE, "What stands out"));
        text.push('\n');
        for finding in &view.findings {
            text.push_str(&bullet(&finding.text, width));
        }
        text.push('\n');
    }
    if view.top.is_empty() {
        return text + &no_functions(&view.conditions, width);
    }
    let sort = sort.unwrap_or(Sort::Exclusive);
    let all = count(view.functions as u64);
    let title = format!("The first {} of {all} functions by {}", view.top.len(), order(sort));
    text.push_str(&styled(TITLE, &shortened(&title, width)));
    text.push('\n');
    text.push_str(&function_table(&view.top, &view.conditions, width));
    if sort == Sort::Exclusive && mostly_waiting(&view.conditions.totals) {
        let hint = "Most of this time threads waited; --sort exclusive-cpu shows where they worked.";
        text.push_str(&super::footnote(hint, width));
    }
    text
}

/// What rows are ordered by, in words.
fn order(sort: Sort) -> &'static str {
    match sort {
        Sort::Own | Sort::Exclusive => "their own time",
        Sort::ExclusiveCpu => "their own CPU time",
        Sort::Total | Sort::Inclusive => "the time of all they call",
        Sort::InclusiveCpu => "the CPU time of all they call",
        Sort::Callee => "the time in what they call",
        Sort::Suspended => "the time they stood suspended",
        Sort::Profiler => "the profiler's share",
        Sort::Calls => "their calls",
        Sort::Recursion => "the depth of their recursion",
        Sort::Name => "name",
        Sort::Module => "module",
    }
}

/// Whether threads stood still for most of the time, so that wall time says little about work.
fn mostly_waiting(totals: &Totals) -> bool {
    totals.cpu_ns.is_some_and(|cpu| cpu < totals.functions_ns.saturating_sub(totals.suspended_ns) / 2)
}

/// A short table of the first functions, for the end of a run.
pub fn top(view: &Summary<'_>, width: usize) -> String {
    let names = Names::of(view.top.iter().map(|row| row.function));
    let mut table = Table::new(vec![
        Column::number("own time", 0),
        Column::number("share", 0),
        Column::number("calls", 1),
        Column::words("function", 0),
    ]);
    for row in &view.top {
        let own = row.times.exclusive_ns;
        table.row(vec![
            time_cell(own),
            share(view.conditions.totals.share(own)),
            count(row.times.calls),
            names.shown(&row.function),
        ]);
    }
    table.render(width)
}

fn bullet(text: &str, width: usize) -> String {
    let lines = super::head::wrapped(&crate::one_line(text), width.saturating_sub(2));
    format!("- {}\n", lines.join("\n  "))
}

pub(super) fn nothing(what: &str, width: usize) -> String {
    let text = format!("No {what} to show: nothing was recorded, or the filters leave nothing.");
    super::head::wrapped(&text, width).join("\n") + "\n"
}

/// Without functions, and where to look in a recording that has none.
fn no_functions(conditions: &Conditions<'_>, width: usize) -> String {
    let Some(view) = first_view(conditions.instruments) else { return nothing("function", width) };
    let text = format!("This recording was made without 'calls': it has no functions; see --view {view}.");
    super::head::wrapped(&text, width).join("\n") + "\n"
}

fn function_table(rows: &[FunctionRow<'_>], conditions: &Conditions<'_>, width: usize) -> String {
    let names = Names::of(rows.iter().map(|row| row.function));
    let has = Present::of(rows.iter().map(|row| &row.times));
    let per_thread = rows.iter().any(|row| row.thread.is_some());
    let several = conditions.processes.len() > 1;
    let recursive = rows.iter().any(|row| row.max_recursion > 1);
    let mut columns = time_columns(&has);
    columns.extend([
        Column::number("recursion", 7).only_if(recursive),
        Column::words("thread", 0).only_if(per_thread),
        Column::number("process", 2).only_if(several),
        Column::words("module", 5),
        Column::words("function", 0),
    ]);
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = time_cells(&row.times, &conditions.totals);
        let depth = if row.max_recursion > 1 { count(u64::from(row.max_recursion)) } else { String::new() };
        cells.extend([
            depth,
            row.thread.map_or_else(String::new, thread_name),
            row.function.pid.to_string(),
            row.function.module().to_owned(),
            names.shown(&row.function),
        ]);
        table.row(cells);
    }
    table.render(width)
}

/// Which columns have anything in them.
struct Present {
    suspended: bool,
    profiler: bool,
    cpu: bool,
}

impl Present {
    fn of<'a>(rows: impl Iterator<Item = &'a Times>) -> Self {
        let none = Self { suspended: false, profiler: false, cpu: false };
        rows.fold(none, |seen, times| Self {
            suspended: seen.suspended || times.suspended_ns > 0,
            profiler: seen.profiler || times.profiler_high_ns > 0,
            cpu: seen.cpu || times.exclusive_cpu_ns.is_some(),
        })
    }
}

fn time_columns(has: &Present) -> Vec<Column> {
    vec![
        Column::number("exclusive", 0),
        Column::number("share", 0),
        Column::number("inclusive", 1),
        Column::number("share", 2),
        Column::number("calls", 1),
        Column::number("cpu", 3).only_if(has.cpu),
        Column::number("suspended", 4).only_if(has.suspended),
        Column::number("profiler", 6).only_if(has.profiler),
        Column::number("at least", 9).only_if(has.profiler),
        Column::number("at most", 9).only_if(has.profiler),
    ]
}

fn time_cells(times: &Times, totals: &Totals) -> Vec<String> {
    vec![
        time_cell(times.exclusive_ns),
        share(totals.share(times.exclusive_ns)),
        time_cell(times.inclusive_ns),
        share(totals.share(times.inclusive_ns)),
        count(times.calls),
        maybe_time_cell(times.exclusive_cpu_ns),
        time_cell(times.suspended_ns),
        time_cell(times.profiler_ns),
        time_cell(times.profiler_low_ns),
        time_cell(times.profiler_high_ns),
    ]
}

fn thread_name(thread: &Thread) -> String {
    match thread.name.is_empty() {
        true => format!("{} {}", thread.id, thread.role.name()),
        false => format!("{} {}", thread.id, crate::one_line(thread.name.as_str())),
    }
}

/// The views `callers` and `callees`; `side` is what the rows are.
pub fn neighbours(view: &NeighboursView<'_>, side: &str, width: usize) -> String {
    let blocks: Vec<String> = view.items.iter().map(|item| block(item, &view.conditions, side, width)).collect();
    if blocks.is_empty() { nothing("function", width) } else { blocks.join("\n") }
}

fn block(item: &Neighbours<'_>, conditions: &Conditions<'_>, side: &str, width: usize) -> String {
    let own = std::slice::from_ref(&item.function);
    let mut text = function_table(own, conditions, width);
    let title = if item.rows.is_empty() { format!("no {side}") } else { format!("{side}:") };
    text.push_str(&styled(FAINT, &title));
    text.push('\n');
    if !item.rows.is_empty() {
        text.push_str(&edge_table(&item.rows, &item.function.times, width));
    }
    text + &more(item.left_out, side, width)
}

/// Shares are of the function's own inclusive time: what each neighbour has in it.
fn edge_table(rows: &[EdgeRow<'_>], whole: &Times, width: usize) -> String {
    let names = Names::of(rows.iter().filter_map(|row| row.function));
    let mut table = Table::new(vec![
        Column::number("inclusive", 0),
        Column::number("share", 0),
        Column::number("exclusive", 2),
        Column::number("calls", 1),
        Column::words("module", 3),
        Column::words("function", 0),
    ]);
    for row in rows {
        let of_whole = row.times.inclusive_ns as f64 / whole.inclusive_ns.max(1) as f64;
        table.row(vec![
            time_cell(row.times.inclusive_ns),
            share(of_whole.min(1.0)),
            time_cell(row.times.exclusive_ns),
            count(row.times.calls),
            row.function.map_or_else(String::new, |f| f.module().to_owned()),
            row.function.map_or_else(|| THREAD_START.to_owned(), |f| names.shown(&f)),
        ]);
    }
    table.render(width)
}

/// The view `threads`.
pub fn threads(view: &Threads<'_>, width: usize) -> String {
    if view.rows.is_empty() {
        return nothing("thread", width);
    }
    let several = view.conditions.processes.len() > 1;
    let has_cpu = view.rows.iter().any(|row| row.cpu_ns.is_some());
    let mut table = Table::new(vec![
        Column::number("running", 0),
        Column::number("share", 0),
        Column::number("cpu", 1).only_if(has_cpu),
        Column::number("outside", 5),
        Column::number("suspended", 3),
        Column::number("profiler", 6),
        Column::number("calls", 1),
        Column::number("depth", 4),
        Column::number("from", 7),
        Column::number("to", 7),
        Column::number("process", 2).only_if(several),
        Column::number("os id", 2),
        Column::number("id", 0),
        Column::words("role", 0),
        Column::words("name", 0),
    ]);
    for row in &view.rows {
        table.row(vec![
            time_cell(row.running_ns),
            share(view.conditions.totals.share(row.running_ns)),
            maybe_time_cell(row.cpu_ns),
            time_cell(row.outside_ns),
            time_cell(row.suspended_ns),
            time_cell(row.profiler_ns),
            count(row.calls),
            count(u64::from(row.max_depth)),
            time_cell(row.thread.created_ns),
            maybe_time_cell(row.thread.ended_ns),
            row.pid.to_string(),
            row.thread.os_id.to_string(),
            row.thread.id.to_string(),
            row.thread.role.name().to_owned(),
            row.thread.name.clone(),
        ]);
    }
    table.render(width) + &more(view.left_out, "threads", width)
}

/// The view `modules`.
pub fn modules(view: &Modules<'_>, width: usize) -> String {
    if view.rows.is_empty() {
        return nothing("module", width);
    }
    let several = view.conditions.processes.len() > 1;
    let has_cpu = view.rows.iter().any(|row| row.exclusive_cpu_ns.is_some());
    let mut table = Table::new(vec![
        Column::number("exclusive", 0),
        Column::number("share", 0),
        Column::number("cpu", 2).only_if(has_cpu),
        Column::number("calls", 0),
        Column::number("functions", 1),
        Column::number("process", 2).only_if(several),
        Column::words("version", 3),
        Column::words("module", 0),
    ]);
    for row in &view.rows {
        let name = if row.module.name.is_empty() { "(the runtime itself)" } else { &row.module.name };
        table.row(vec![
            time_cell(row.exclusive_ns),
            share(view.conditions.totals.share(row.exclusive_ns)),
            maybe_time_cell(row.exclusive_cpu_ns),
            count(row.calls),
            count(row.functions),
            row.pid.to_string(),
            row.module.version.clone(),
            name.to_owned(),
        ]);
    }
    table.render(width) + &more(view.left_out, "modules", width)
}

/// The view `losses`.
pub fn losses(view: &Losses<'_>, width: usize) -> String {
    let mut table = Table::new(vec![
        Column::number("count", 0),
        Column::number("first", 1),
        Column::number("last", 1),
        Column::number("process", 2),
        Column::words("reason", 0),
        Column::words("", 0),
    ]);
    for row in &view.rows {
        table.row(vec![
            count(row.loss.count),
            time(row.loss.first_ns),
            time(row.loss.last_ns),
            row.pid.to_string(),
            row.loss.reason.name().to_owned(),
            row.loss.reason.sentence().to_owned(),
        ]);
        for detail in &row.loss.details {
            let nothing = String::new;
            table.row(vec![nothing(), nothing(), nothing(), nothing(), nothing(), format!("  {detail}")]);
        }
    }
    for problem in view.problems {
        let words = format!("{}: {}", problem.place, problem.what);
        let reason = LossReason::Unreadable.name().to_owned();
        table.row(vec!["1".to_owned(), String::new(), String::new(), String::new(), reason, words]);
    }
    if view.rows.is_empty() && view.problems.is_empty() {
        return "Nothing was lost.\n".to_owned();
    }
    table.render(width)
}
