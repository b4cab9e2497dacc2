//! The view `summary`: findings, own code and framework code by work, and where the other time
//! went.

use std::io;

use clrscope_analysis::{
    Allocations, Amount, Conditions, Elsewhere, ElsewhereKind, Finding, FindingFunction, FunctionRef, OwnRow, PoolStep,
    Resolution, Sort, Summary, Times, summary,
};
use clrscope_recording::model::Recording;
use clrscope_symbols::{Lines, SourceLine};
use serde_json::{Value, json};

use super::functions::{self, FunctionEntry, SORTS, function_columns};
use super::sources::file_and_line;
use super::timed::{Present, TimedRow, resolved};
use super::{FOLDING, REQUESTS, SELECTION, allocated, counted, heap, no_functions, sampled, threads};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{count, share, time};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::spot::LocatedLine;
use crate::view::{Answer, View};

/// The view `summary`.
pub(super) static VIEW: View = View {
    name: "summary",
    about: "What stands out: own code and framework by CPU time, waits, compilation, exceptions",
    takes: &[SELECTION, REQUESTS, FOLDING, &[Flag::Limit, Flag::Raw, Flag::Verbose, Flag::Snapshot]],
    sorts: &SORTS,
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| functions::sheet(Present::all(None)).infos(),
    open: |recording, request, heaps| {
        let view = summary(recording, &request.query)?;
        let heap = heap::of_summary(recording, heaps, request)?;
        let counted = counted::OfSummary::for_query(recording, &request.query);
        Ok(Box::new(OpenView { view, heap, counted, request: request.clone(), recording }))
    },
};

/// Section of findings.
struct Findings;

impl RowKind for Findings {
    type Row<'a> = LocatedFinding<'a>;
}

/// A finding with its source line.
pub(crate) struct LocatedFinding<'a> {
    pub(crate) finding: &'a Finding,
    line: Option<LocatedLine>,
    /// The sentence. If the finding is about one place, the source line follows.
    pub(crate) text: String,
}

impl<'a> LocatedFinding<'a> {
    pub(crate) fn new(finding: &'a Finding, lines: &mut Lines) -> Self {
        let function = finding.function.as_ref();
        let place = function.and_then(|function| Some((function.place.as_ref()?, line_at_place(function, lines)?)));
        let said = place.as_ref().map_or_else(String::new, |(place, found)| {
            format!("{}{}{}", place.lead, file_and_line(&found.line), found.remark())
        });
        let line = place.map(|(_, found)| found).or_else(|| first_line(function?, lines));
        Self { text: format!("{}{said}", finding.text), finding, line }
    }

    pub(crate) fn source(&self) -> Option<&SourceLine> {
        self.line.as_ref().map(|found| &found.line)
    }
}

impl Row for LocatedFinding<'_> {}

/// Returns the line of the place in a finding; `None` if the finding is about a whole function, or
/// the line is unknown.
fn line_at_place(function: &FindingFunction, lines: &mut Lines) -> Option<LocatedLine> {
    let place = function.place.as_ref()?;
    LocatedLine::at(lines, &function.module_path, function.token, place.code_place())
}

/// Returns the first line of the function in a finding.
fn first_line(function: &FindingFunction, lines: &mut Lines) -> Option<LocatedLine> {
    let line = lines.first(&function.module_path, function.token)?;
    Some(LocatedLine { line, by_call: false })
}

/// Passes findings to a renderer: the sentences that a reader should see first.
pub(super) fn show_findings(all: &[Finding], renderer: &mut dyn Renderer) -> io::Result<()> {
    let sheet = findings();
    let title = Title::Bold("What stands out".to_owned());
    let section = Section { title, ..sheet.section("findings", Style::Notes, &[("text", 0)]) };
    renderer.section(&section, &mut |visit| {
        let mut lines = Lines::default();
        all.iter().try_for_each(|finding| visit(&sheet.entry(&LocatedFinding::new(finding, &mut lines))))?;
        Ok(Tail::default())
    })
}

fn findings<'c>() -> Sheet<'c, Findings> {
    let text = |value: Option<&str>| Cell::or_null(value, |value| Cell::Text(value.to_owned().into()));
    Sheet::new([
        Column::new("text", "", Kind::Text, |row: &LocatedFinding<'_>| Cell::text(&row.text)),
        Column::new("kind", "kind", Kind::Text, |row: &LocatedFinding<'_>| Cell::text(row.finding.kind.name())),
        Column::new("function", "function", Kind::Text, move |row: &LocatedFinding<'_>| {
            text(row.finding.function.as_ref().map(|function| function.name.as_str()))
        }),
        Column::new("file", "file", Kind::Text, move |row: &LocatedFinding<'_>| {
            text(row.source().map(|line| line.file.as_str()))
        }),
        Column::new("line", "line", Kind::Number, |row: &LocatedFinding<'_>| {
            Cell::or_null(row.source(), |line| Cell::Number(line.line.into()))
        }),
        Column::new("metric", "metric", Kind::Text, move |row: &LocatedFinding<'_>| text(row.finding.metric)),
        Column::new("share", "share", Kind::Share, |row: &LocatedFinding<'_>| Cell::Share(row.finding.share)),
        Column::new("share_low", "at least", Kind::Share, |row: &LocatedFinding<'_>| Cell::Share(row.finding.bounds.0)),
        Column::new("share_high", "at most", Kind::Share, |row: &LocatedFinding<'_>| Cell::Share(row.finding.bounds.1)),
        Column::new("command", "more", Kind::Text, |row: &LocatedFinding<'_>| {
            Cell::or_null(row.finding.report.as_ref(), |options| {
                Cell::Text(format!("clrscope report REC {options}").into())
            })
        }),
        Column::new("pool", "pool", Kind::Nested, |row: &LocatedFinding<'_>| {
            let pool = row.finding.pool.as_slice();
            if pool.is_empty() { Cell::Absent } else { Cell::Nested(pool.iter().map(pool_step).collect()) }
        }),
    ])
}

/// Size of the thread pool and length of its queue in one step of the time.
fn pool_step(step: &PoolStep) -> Value {
    json!({ "time_ns": step.time_ns, "threads": step.threads, "queue": step.queue })
}

/// Minimum share of all work for a called function to get a line.
const LEAST_CALLED: f64 = 0.005;

/// Rows of own functions.
struct OwnRows;

impl RowKind for OwnRows {
    type Row<'a> = OwnEntry<'a>;
}

/// An own function, and the sums for its shares.
struct OwnEntry<'a> {
    own: &'a OwnRow<'a>,
    conditions: &'a Conditions<'a>,
    /// The called functions with the most work, a line for each.
    calls: Vec<String>,
}

impl<'a> OwnEntry<'a> {
    fn new(own: &'a OwnRow<'a>, conditions: &'a Conditions<'a>) -> Self {
        let calls = own.calls.iter().flatten().map(|(function, amount)| (function, work_share(conditions, *amount)));
        let worth = calls.filter(|(_, part)| *part >= LEAST_CALLED);
        let calls = worth.map(|(function, part)| format!("{} in {}", share(part), function.label())).collect();
        Self { own, conditions, calls }
    }
}

impl Row for OwnEntry<'_> {
    fn below(&self) -> &[String] {
        &self.calls
    }
}

impl TimedRow for OwnEntry<'_> {
    fn counts_at_least(&self) -> bool {
        self.own.row.counts_at_least()
    }

    fn function(&self) -> Option<FunctionRef<'_>> {
        Some(self.own.row.function)
    }

    fn times(&self) -> &Times {
        &self.own.row.times
    }

    fn amount(&self) -> Amount {
        self.own.row.amount
    }

    fn share(&self, amount: u64) -> f64 {
        functions::share(self.conditions, amount)
    }

    fn samples_in_all(&self) -> u64 {
        self.conditions.samples
    }
}

/// The share of `ns` in all work.
fn work_share(conditions: &Conditions<'_>, ns: u64) -> f64 {
    let all = conditions.work_ns();
    if all == 0 { 0.0 } else { (ns as f64 / all as f64).min(1.0) }
}

fn own_sheet<'c>(present: Present) -> Sheet<'c, OwnRows> {
    let clock = present.resolution;
    let work_clock = if present.cpu { clock.cpu_ns } else { clock.wall_ns };
    let mut columns = function_columns(present, |entry: &OwnEntry<'_>| &entry.own.row);
    columns.extend([
        Column::new("work_ns", "self+framework", Kind::Time, move |entry: &OwnEntry<'_>| {
            resolved(entry.own.work_ns, work_clock)
        }),
        Column::new("work_share", "share", Kind::Share, |entry: &OwnEntry<'_>| {
            Cell::Share(work_share(entry.conditions, entry.own.work_ns))
        }),
        Column::new("waited_ns", "waited", Kind::Time, move |entry: &OwnEntry<'_>| match entry.own.waited_ns {
            0 => Cell::Time(0).said(""),
            ns => resolved(ns, clock.wall_ns),
        }),
    ]);
    Sheet::new(columns)
}

fn framework_sheet<'c>(present: Present) -> Sheet<'c, functions::FunctionRows> {
    let mut columns = function_columns(present, |entry: &FunctionEntry<'_>| entry.row);
    columns.push(Column::new("work_share", "share", Kind::Share, |entry: &FunctionEntry<'_>| {
        Cell::Share(work_share(entry.conditions, entry.row.work_ns()))
    }));
    Sheet::new(columns)
}

/// Section about time that was not work of functions.
struct Others;

impl RowKind for Others {
    type Row<'a> = Elsewhere<'a>;
}

impl Row for Elsewhere<'_> {}

fn elsewhere<'c>(clock: Resolution) -> Sheet<'c, Others> {
    let time = move |ns: u64| resolved(ns, clock.wall_ns);
    Sheet::new([
        Column::new("kind", "kind", Kind::Text, |row: &Elsewhere<'_>| Cell::text(row.kind.name())),
        Column::new("time_ns", "thread time", Kind::Time, move |row: &Elsewhere<'_>| Cell::or_null(row.time_ns, time)),
        Column::new("count", "count", Kind::Count, |row: &Elsewhere<'_>| Cell::or_null(row.count, Cell::Count)),
        Column::new("text", "what", Kind::Text, |row: &Elsewhere<'_>| Cell::text(row.kind.title())),
        Column::new("cpu_ns", "cpu", Kind::Time, move |row: &Elsewhere<'_>| {
            row.cpu_ns.map_or(Cell::Absent, |ns| resolved(ns, clock.cpu_ns))
        }),
        Column::new("most_ns", "of it", Kind::Time, move |row: &Elsewhere<'_>| {
            row.most.map_or(Cell::Absent, |(_, ns)| time(ns))
        }),
        Column::new("most_count", "of it", Kind::Count, |row: &Elsewhere<'_>| {
            most_made(row).map_or(Cell::Absent, |(count, _)| Cell::Count(count))
        }),
        Column::new("most_below", "below", Kind::Function, |row: &Elsewhere<'_>| {
            let most = row.most.map(|(function, _)| function).or(most_made(row).map(|(_, place)| place));
            most.map_or(Cell::Absent, |function| Cell::function(&function))
        }),
        Column::new("detail", "detail", Kind::Text, |row: &Elsewhere<'_>| match detail(row) {
            detail if detail.is_empty() => Cell::Absent,
            detail => Cell::Text(detail.into()),
        }),
    ])
}

/// The largest number of exceptions that were created below one own function, and the function.
fn most_made<'a>(row: &Elsewhere<'a>) -> Option<(u64, FunctionRef<'a>)> {
    let most = row.exceptions.as_ref().filter(|_| row.kind == ElsewhereKind::ExceptionsMade)?;
    Some((most.count, most.place?))
}

/// Details of a row beyond its times and count.
fn detail(row: &Elsewhere<'_>) -> String {
    match row.kind {
        ElsewhereKind::Collections => {
            let [low, middle, high] = row.generations.map(count);
            format!("{low} of generation 0, {middle} of 1, {high} of 2")
        }
        ElsewhereKind::Exceptions => row.exceptions.as_ref().map_or_else(String::new, |most| {
            let place = most.place.map_or_else(String::new, |place| format!(" in {}", place.label()));
            format!("{} {}{place}", count(most.count), most.type_name)
        }),
        _ => String::new(),
    }
}

struct OpenView<'a> {
    view: Summary<'a>,
    heap: heap::OfSummary<'a>,
    counted: counted::OfSummary<'a>,
    request: Request,
    recording: &'a Recording,
}

impl OpenView<'_> {
    /// Allocations of the recording, if it has any.
    fn allocated(&self) -> Option<&Allocations<'_>> {
        self.view.allocated.as_ref().filter(|found| !found.rows.is_empty())
    }

    /// Whether the request is for a single table, because it names an order or columns.
    fn is_one_table(&self) -> bool {
        self.request.query.sort.is_some() || self.request.columns.is_some()
    }

    /// Returns `text` if several tables are shown, otherwise no columns.
    fn in_parts(&self, text: Vec<(&'static str, u8)>) -> Vec<(&'static str, u8)> {
        if self.is_one_table() { Vec::new() } else { text }
    }

    fn present(&self) -> Present {
        let conditions = &self.view.conditions;
        let (processes, cpu) = (self.recording.processes.len() > 1, conditions.totals.cpu_ns.is_some());
        let resolution = conditions.resolution();
        let samples = conditions.samples > 0;
        Present {
            processes,
            threads: false,
            cpu,
            metric: conditions.metric,
            resolution,
            samples,
            allocated: false,
            tail_recursive: false,
        }
    }

    /// Name of work in a sentence, and its amount.
    fn work(&self) -> (&'static str, String) {
        let totals = &self.view.conditions.totals;
        match totals.cpu_ns {
            Some(cpu) => ("CPU time", format!("{} in all", time(cpu))),
            None if self.view.conditions.metric.is_sampled() => {
                let metric = self.view.conditions.metric;
                (metric.title, format!("{} in all", time(self.view.conditions.total)))
            }
            None => ("time", format!("{} of thread time in all", time(totals.functions_ns))),
        }
    }

    /// The first functions: the table that text shows on request, and the rows of CSV.
    fn top(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let (top, conditions) = (&self.view.top, &self.view.conditions);
        let sheet = functions::sheet(self.present());
        let text = functions::text(top.iter(), conditions);
        let (first, all) = (top.len(), count(self.view.functions as u64));
        let order = order(self.request.query.sort.unwrap_or(Sort::Exclusive));
        let has_others = !self.heap.is_empty() || self.allocated().is_some() || !self.counted.is_empty();
        let is_shown = self.is_one_table() || (top.is_empty() && !has_others);
        let section = Section {
            title: Title::Bold(format!("The first {first} of {all} functions by {order}")),
            nothing: no_functions(conditions),
            what: "functions",
            ..sheet.main(&self.request, "top", Style::Table, if is_shown { &text } else { &[] })
        };
        renderer.section(&section, &mut |visit| {
            top.iter().try_for_each(|row| visit(&sheet.entry(&FunctionEntry::new(row, conditions))))?;
            Ok(Tail { left_out: 0, note: functions::notes_on_calls(top.iter()) })
        })
    }

    fn own(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let (own, conditions) = (&self.view.own, &self.view.conditions);
        let cpu = conditions.totals.cpu_ns.is_some();
        let sheet = own_sheet(self.present());
        let of_calls = conditions.metric.is_of_calls();
        let [alone, total] = conditions.metric.keys().unwrap_or_default();
        let text = self.in_parts(shown(&[
            ("work_ns", 0, true),
            ("work_share", 0, true),
            ("exclusive_cpu_ns", 2, cpu),
            (if of_calls { "exclusive_ns" } else { alone }, 2, !cpu),
            ("inclusive_cpu_ns", 4, cpu),
            (if of_calls { "inclusive_ns" } else { total }, 4, !cpu),
            ("waited_ns", 1, own.iter().any(|row| row.waited_ns > 0)),
            ("calls", 1, of_calls),
            ("starts", 5, own.iter().any(|own| own.row.starts.is_some())),
            ("tiers", 3, own.iter().any(|own| own.row.tiers.most().is_some())),
            ("pid", 2, conditions.processes.len() > 1),
            ("module", 6, true),
            ("name", 0, true),
        ]));
        let (what, all) = self.work();
        let (first, of) = (own.len(), count(self.view.own_functions as u64));
        let title = format!("Own code by {what} ({first} of {of} functions; {all})");
        let section = Section { title: Title::Bold(title), ..sheet.section("own", Style::Table, &text) };
        renderer.section(&section, &mut |visit| {
            own.iter().try_for_each(|own| visit(&sheet.entry(&OwnEntry::new(own, conditions))))?;
            Ok(Tail { left_out: 0, note: functions::notes_on_calls(own.iter().map(|own| &own.row)) })
        })
    }

    fn framework(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let (rows, conditions) = (&self.view.framework, &self.view.conditions);
        let cpu = conditions.totals.cpu_ns.is_some();
        let sheet = framework_sheet(self.present());
        let of_calls = conditions.metric.is_of_calls();
        let [alone, total] = conditions.metric.keys().unwrap_or_default();
        let text = self.in_parts(shown(&[
            ("exclusive_cpu_ns", 0, cpu),
            (if of_calls { "exclusive_ns" } else { alone }, 0, !cpu),
            ("work_share", 0, true),
            ("inclusive_cpu_ns", 3, cpu),
            (if of_calls { "inclusive_ns" } else { total }, 3, !cpu),
            ("calls", 1, of_calls),
            ("pid", 2, conditions.processes.len() > 1),
            ("module", 6, true),
            ("name", 0, true),
        ]));
        let (first, of) = (rows.len(), count(self.view.framework_functions as u64));
        let what = if of_calls { "Framework" } else { "Framework and native code" };
        let title = format!("{what} by {} ({first} of {of} functions)", self.work().0);
        let section = Section { title: Title::Bold(title), ..sheet.section("framework", Style::Table, &text) };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(&FunctionEntry::new(row, conditions))))?;
            Ok(Tail::default())
        })
    }

    fn elsewhere(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let rows = &self.view.elsewhere;
        let sheet = elsewhere(self.view.conditions.resolution());
        let has_times = rows.iter().any(|row| row.time_ns.is_some());
        let text = self.in_parts(shown(&[
            ("time_ns", 0, has_times),
            ("count", 0, rows.iter().any(|row| row.count.is_some())),
            ("text", 0, true),
            ("cpu_ns", 3, rows.iter().any(|row| row.cpu_ns.is_some())),
            ("most_ns", 2, rows.iter().any(|row| row.most.is_some())),
            ("most_below", 2, rows.iter().any(|row| row.most.is_some() || most_made(row).is_some())),
            ("detail", 1, rows.iter().any(|row| !detail(row).is_empty())),
        ]));
        let title = if has_times { "Where the other time went" } else { "What else was recorded" };
        let title = Title::Bold(title.to_owned());
        let section = Section { title, ..sheet.section("elsewhere", Style::Table, &text) };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: 0, note: super::thread_time(self.recording, &self.view.conditions) })
        })
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let findings = [self.view.findings.as_slice(), self.heap.findings()].concat();
        show_findings(&findings, renderer)?;
        self.top(renderer)?;
        sampled::kinds(&self.view, self.is_one_table(), renderer)?;
        self.own(renderer)?;
        self.framework(renderer)?;
        sampled::states(&self.view, self.is_one_table(), renderer)?;
        threads::of_summary(&self.view, self.is_one_table(), renderer)?;
        self.allocated().map_or(Ok(()), |found| allocated::of_summary(found, self.is_one_table(), renderer))?;
        self.heap.show(self.is_one_table(), renderer)?;
        self.counted.show(self.is_one_table(), renderer)?;
        self.elsewhere(renderer)
    }
}

/// Order of rows, in words.
fn order(sort: Sort) -> &'static str {
    match sort {
        Sort::Own | Sort::Exclusive => "their own time",
        Sort::ExclusiveCpu => "their own CPU time",
        Sort::Total | Sort::Inclusive => "the time of all they call",
        Sort::InclusiveCpu => "the CPU time of all they call",
        Sort::Callee => "the time in what they call",
        Sort::Suspended => "the time they were suspended",
        Sort::Profiler => "the profiler's share",
        Sort::Calls => "their calls",
        Sort::Recursion => "the depth of their recursion",
        Sort::Name => "name",
        Sort::Module => "module",
    }
}
