//! The view `functions`, and its rows for other views.

use std::io;

use clrscope_analysis::{
    Amount, CallAllocations, Conditions, FunctionRef, FunctionRow, Functions, Sort, Times, functions,
};

use clrscope_recording::model::{Recording, SourceKind};

use super::timed::{Present, TimedRow, allocation_keys, metric_columns, name_columns, second_keys};
use super::{FOLDING, REQUESTS, SELECTION, no_functions, tiers};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `functions`.
pub(super) static VIEW: View = View {
    name: "functions",
    about: "Every function with its calls and times",
    takes: &[
        SELECTION,
        REQUESTS,
        FOLDING,
        &[Flag::Limit, Flag::Raw, Flag::PerThread, Flag::Metric, Flag::Verbose, Flag::Type],
    ],
    sorts: &SORTS,
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Pretty,
    columns: |request| sheet(Present::all(request.query.metric)).infos(),
    open: |recording, request, _| {
        let view = functions(recording, &request.query)?;
        Ok(Box::new(OpenView { view, request: request.clone(), recording }))
    },
};

/// Every sort key.
pub(super) const SORTS: [Sort; Sort::ALL.len()] = {
    let mut sorts = [Sort::Exclusive; Sort::ALL.len()];
    let mut at = 0;
    while at < sorts.len() {
        sorts[at] = Sort::ALL[at].1;
        at += 1;
    }
    sorts
};

/// Rows of functions.
pub(super) struct FunctionRows;

impl RowKind for FunctionRows {
    type Row<'a> = FunctionEntry<'a>;
}

/// A row of functions, and the sums from which its shares are computed.
pub(super) struct FunctionEntry<'a> {
    pub(super) row: &'a FunctionRow<'a>,
    pub(super) conditions: &'a Conditions<'a>,
    /// Whether other tables of the report have functions of this name with other signatures.
    pub(super) has_namesakes: bool,
}

impl<'a> FunctionEntry<'a> {
    /// Creates an entry for a report with a single table.
    pub(super) fn new(row: &'a FunctionRow<'a>, conditions: &'a Conditions<'a>) -> Self {
        Self { row, conditions, has_namesakes: false }
    }
}

impl Row for FunctionEntry<'_> {}

impl TimedRow for FunctionEntry<'_> {
    fn counts_at_least(&self) -> bool {
        self.row.counts_at_least()
    }

    fn function(&self) -> Option<FunctionRef<'_>> {
        Some(self.row.function)
    }

    fn times(&self) -> &Times {
        &self.row.times
    }

    fn amount(&self) -> Amount {
        self.row.amount
    }

    fn allocated(&self) -> Option<CallAllocations> {
        self.row.allocated
    }

    fn share(&self, amount: u64) -> f64 {
        share(self.conditions, amount)
    }

    fn samples_in_all(&self) -> u64 {
        self.conditions.samples
    }

    fn name(&self) -> Cell<'_> {
        let mut name = Cell::function(&self.row.function);
        if let Cell::Function(named) = &mut name {
            named.has_namesakes = self.has_namesakes;
        }
        name
    }
}

/// The share of `amount` in the whole. `amount` is a time, or a value of a metric that `calls` does
/// not record.
pub(super) fn share(conditions: &Conditions<'_>, amount: u64) -> f64 {
    if conditions.metric.is_of_calls() { conditions.totals.share(amount) } else { conditions.share(amount) }
}

/// The columns of functions.
pub(super) fn sheet<'c>(present: Present) -> Sheet<'c, FunctionRows> {
    Sheet::new(function_columns(present, |entry: &FunctionEntry<'_>| entry.row))
}

/// The columns of rows that each refer to a function's row.
pub(super) fn function_columns<'c, K: RowKind + 'c>(
    present: Present,
    of: for<'r, 'a> fn(&'r K::Row<'a>) -> &'r FunctionRow<'r>,
) -> Vec<Column<'c, K>>
where
    for<'a> K::Row<'a>: TimedRow,
{
    let pid =
        Column::new("pid", "process", Kind::Number, move |row: &K::Row<'_>| Cell::Number(of(row).function.pid.into()));
    let recursion =
        Column::new("max_recursion", "recursion", Kind::Count, move |row: &K::Row<'_>| match of(row).max_recursion {
            depth @ 0..=1 => Cell::Count(depth.into()).said(""),
            depth => Cell::Count(depth.into()),
        });
    let threads =
        Column::new("threads", "threads", Kind::Count, move |row: &K::Row<'_>| Cell::Count(of(row).threads.into()));
    let thread = Column::new("thread", "thread", Kind::Thread, move |row: &K::Row<'_>| {
        of(row).thread.map_or(Cell::Absent, Cell::Thread)
    });
    let mut columns = name_columns("function");
    columns.push(pid.only_if(present.processes));
    columns.extend(metric_columns(present));
    columns.extend([recursion, threads, thread.only_if(present.threads)]);
    columns.extend(counted_columns(of));
    let tail_recursive = Column::new("tail_recursive", "tail recursive", Kind::Flag, move |row: &K::Row<'_>| {
        if of(row).tail_recursive { Cell::Flag(true) } else { Cell::Absent }
    });
    columns.push(tail_recursive.only_if(present.tail_recursive));
    let tiers = Column::new("tiers", "code", Kind::Nested, move |row: &K::Row<'_>| tiers::cell(&of(row).tiers));
    columns.push(tiers.only_if(present.samples));
    columns
}

/// Columns next to counts of calls: whether calls were inlined, and how many were starts or
/// resumptions of async methods.
fn counted_columns<'c, K: RowKind + 'c>(
    of: for<'r, 'a> fn(&'r K::Row<'a>) -> &'r FunctionRow<'r>,
) -> [Column<'c, K>; 3] {
    let inlined =
        Column::new(
            "inlined",
            "inlined",
            Kind::Flag,
            move |row: &K::Row<'_>| {
                if of(row).inlined { Cell::Flag(true) } else { Cell::Absent }
            },
        );
    let starts = Column::new("starts", "starts", Kind::Count, move |row: &K::Row<'_>| {
        of(row).starts.map_or(Cell::Absent, Cell::Count)
    });
    let resumptions = Column::new("resumptions", "resumptions", Kind::Count, move |row: &K::Row<'_>| {
        let row = of(row);
        row.starts.map_or(Cell::Absent, |starts| Cell::Count(row.times.calls.saturating_sub(starts)))
    });
    [inlined, starts, resumptions]
}

/// Notes below a table, if it has counts of calls that need an explanation.
pub(super) fn notes_on_calls<'a>(rows: impl Iterator<Item = &'a FunctionRow<'a>> + Clone) -> Option<String> {
    let mut notes = Vec::new();
    // Samples count no calls.
    let rows = rows.filter(|row| row.times.calls > 0);
    if let Some(row) = rows.clone().filter(|row| row.inlined).min_by_key(|row| row.function.module.framework) {
        let which = if row.function.module.framework { "MyApp" } else { row.function.module() };
        notes.push(format!(
            "\u{2265}: at least: inlined calls are not counted; run --include '[{which}]*' counts all calls of \
             [{which}]."
        ));
    }
    if let Some(row) = rows.clone().filter(|row| row.tail_recursive).min_by_key(|row| row.function.module.framework) {
        notes.push(format!(
            "\u{2265}: at least: the compiler may turn recursive tail calls into a loop; run --probe '{}' counts all \
             calls.",
            row.function.name()
        ));
    }
    if rows.clone().any(|row| row.starts.is_some()) {
        notes.push("Calls of (async) code: one for each start, one for each resumption after an await.".to_owned());
    } else if rows.clone().any(|row| row.function.function.source == SourceKind::Async) {
        notes.push("Calls of (async) code: starts, and resumptions after awaits.".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// Note below rows sorted by time, where threads waited most of the time and waiting functions come
/// first.
fn mostly_waits(request: &Request, conditions: &Conditions<'_>) -> Option<String> {
    let totals = &conditions.totals;
    let by_time = request.query.sort.is_none() && request.query.metric.is_none() && conditions.metric.is_of_calls();
    let waited = totals.cpu_ns.is_some_and(|cpu| cpu < totals.functions_ns / 2);
    (by_time && waited)
        .then(|| "Threads waited most of this time: --sort cpu puts functions that worked first.".to_owned())
}

/// Joins notes below a table into one.
pub(super) fn joined(notes: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// Columns of functions in text output.
pub(super) fn text<'a>(
    rows: impl Iterator<Item = &'a FunctionRow<'a>> + Clone,
    conditions: &Conditions<'_>,
) -> Vec<(&'static str, u8)> {
    let any = |is: fn(&FunctionRow<'_>) -> bool| rows.clone().any(is);
    let of_calls = conditions.metric.is_of_calls();
    let [own, total] = conditions.metric.keys().unwrap_or_default();
    let sampled = conditions.metric.is_sampled();
    let [own_again, total_again] = second_keys(conditions).unwrap_or_default();
    let is_again = second_keys(conditions).is_some();
    let [own_bytes, total_bytes, own_objects, _] = allocation_keys();
    let allocated = of_calls && any(|row| row.allocated.is_some());
    let has_profiler = any(|row| row.times.profiler_high_ns > 0);
    shown(&[
        (if of_calls { "exclusive_ns" } else { own }, 0, true),
        ("exclusive_share", 0, true),
        ("self_share_low", 5, sampled),
        ("self_share_high", 5, sampled),
        (if of_calls { "inclusive_ns" } else { total }, 1, true),
        ("inclusive_share", 2, true),
        (own_again, 0, is_again),
        (total_again, 1, is_again),
        ("self_samples", 6, (sampled || conditions.samples > 0) && own != "self_samples"),
        ("tiers", 3, any(|row| row.tiers.most().is_some())),
        ("calls", 1, of_calls),
        (own_bytes, 1, allocated),
        (own_objects, 2, allocated),
        (total_bytes, 4, allocated),
        ("starts", 6, of_calls && any(|row| row.starts.is_some())),
        ("exclusive_cpu_ns", 3, any(|row| row.times.exclusive_cpu_ns.is_some())),
        ("inclusive_cpu_ns", 4, any(|row| row.times.inclusive_cpu_ns.is_some())),
        ("suspended_ns", 5, any(|row| row.times.suspended_ns > 0)),
        ("profiler_ns", 7, has_profiler),
        ("profiler_low_ns", 9, has_profiler),
        ("profiler_high_ns", 9, has_profiler),
        ("max_recursion", 8, any(|row| row.max_recursion > 1)),
        ("thread", 0, any(|row| row.thread.is_some())),
        ("pid", 2, conditions.processes.len() > 1),
        ("module", 6, true),
        ("name", 0, true),
    ])
}

struct OpenView<'a> {
    view: Functions<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let Functions { rows, left_out, conditions } = &self.view;
        let threads = self.request.query.per_thread;
        let (cpu, metric) = (conditions.totals.cpu_ns.is_some(), conditions.metric);
        let processes = self.recording.processes.len() > 1;
        let (samples, resolution) = (conditions.samples > 0, conditions.resolution());
        let allocated = rows.iter().any(|row| row.allocated.is_some());
        let tail_recursive = rows.iter().any(|row| row.tail_recursive && row.times.calls > 0);
        let sheet = sheet(Present { processes, threads, cpu, metric, resolution, samples, allocated, tail_recursive });
        let section = Section {
            nothing: no_functions(conditions),
            what: "functions",
            ..sheet.main(&self.request, "rows", Style::Table, &text(rows.iter(), conditions))
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(&FunctionEntry::new(row, conditions))))?;
            Ok(Tail {
                left_out: *left_out as u64,
                note: joined([
                    notes_on_calls(rows.iter()),
                    super::thread_time(self.recording, conditions),
                    mostly_waits(&self.request, conditions),
                ]),
            })
        })
    }
}
