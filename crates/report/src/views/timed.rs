//! Columns of rows for functions with calls and times.

use clrscope_analysis::{
    Amount, BYTES, CallAllocations, Conditions, FunctionRef, METRICS, Metric, OBJECTS, Resolution, SampleCount, Times,
    Unit, kind_of_code, share_bounds,
};

use crate::cell::{Cell, Kind};
use crate::column::{Column, RowKind};
use crate::render::text::units::count;

/// Name of the caller for calls directly from a thread.
const THREAD_START: &str = "(thread)";

/// A row for a function, or for a thread in place of a function, with calls and times.
pub(super) trait TimedRow {
    /// The function; `None` for a thread.
    fn function(&self) -> Option<FunctionRef<'_>>;

    /// Calls and times of the row.
    fn times(&self) -> &Times;

    /// Whether there were more calls than counted, because some were inlined or turned into loops.
    fn counts_at_least(&self) -> bool {
        false
    }

    /// Amount of the metric in the row.
    fn amount(&self) -> Amount;

    /// Objects that the row's code allocated, if allocations were recorded together with calls.
    fn allocated(&self) -> Option<CallAllocations> {
        None
    }

    /// The share of `amount`, of the metric or of time, in the whole, 0 to 1.
    fn share(&self, amount: u64) -> f64;

    /// Total number of samples, the base of their shares.
    fn samples_in_all(&self) -> u64;

    /// The row's own share of all samples, and the number of samples on which the share is based.
    fn self_share(&self, metric: &Metric) -> (f64, u64) {
        let (amount, all) = (self.amount(), self.samples_in_all());
        // Where times are of calls, samples are counted separately; else each sample has a weight.
        let share = match metric.is_sampled() {
            true => self.share(amount.own),
            false => amount.samples.own as f64 / all.max(1) as f64,
        };
        (share.min(1.0), all)
    }

    /// The name as text shows it.
    fn name(&self) -> Cell<'_> {
        self.function().map_or(Cell::text(THREAD_START), |function| Cell::function(&function))
    }
}

/// Columns that a report has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    /// Whether the report has more than one process.
    pub(super) processes: bool,
    /// Whether the report has rows for each thread.
    pub(super) threads: bool,
    /// Whether CPU time was recorded.
    pub(super) cpu: bool,
    /// Metric of the rows.
    pub(super) metric: &'static Metric,
    /// Resolution of the clocks.
    pub(super) resolution: Resolution,
    /// Whether the rows have samples.
    pub(super) samples: bool,
    /// Whether allocations were recorded alongside calls.
    pub(super) allocated: bool,
    /// Whether there are functions with tail recursion.
    pub(super) tail_recursive: bool,
}

impl Present {
    /// All columns that rows of this metric can have; `None` represents the default metric.
    pub(super) fn all(metric: Option<&'static Metric>) -> Self {
        let (metric, resolution) = (metric.unwrap_or(METRICS[0]), Resolution::default());
        Self {
            processes: true,
            threads: true,
            cpu: true,
            metric,
            resolution,
            samples: true,
            allocated: metric.is_of_calls(),
            tail_recursive: metric.is_of_calls(),
        }
    }
}

/// Keys of the second quantity that rows count, own and total; `None` if the recording has no such
/// quantity.
pub(super) fn second_keys(conditions: &Conditions<'_>) -> Option<[&'static str; 2]> {
    conditions.metric.second.filter(|_| conditions.second > 0)
}

/// Columns of the rows' metric: those of `calls`, or the metric's own columns.
pub(super) fn metric_columns<'c, K: RowKind + 'c>(present: Present) -> Vec<Column<'c, K>>
where
    for<'a> K::Row<'a>: TimedRow,
{
    let mut columns: Vec<_> = time_columns(present.cpu, present.metric.is_of_calls(), present.resolution);
    if !present.metric.is_of_calls() {
        columns.retain(|column: &Column<'_, K>| column.info.key.ends_with("_share"));
    }
    if let Some([own, total]) = present.metric.keys() {
        let column = |key, title, of: fn(Amount) -> u64| match present.metric.unit {
            Unit::Nanoseconds => {
                Column::new(key, title, Kind::Time, move |row: &K::Row<'_>| Cell::Time(of(row.amount())))
            }
            Unit::Bytes => Column::new(key, title, Kind::Bytes, move |row: &K::Row<'_>| Cell::Bytes(of(row.amount()))),
            Unit::Count => Column::new(key, title, Kind::Count, move |row: &K::Row<'_>| Cell::Count(of(row.amount()))),
        };
        columns.extend([column(own, "self", |amount| amount.own), column(total, "total", |amount| amount.total)]);
    }
    if let Some([own, total]) = present.metric.second {
        let column = |key, title, of: fn(SampleCount) -> u64| {
            Column::new(key, title, Kind::Count, move |row: &K::Row<'_>| Cell::Count(of(row.amount().samples)))
        };
        columns.extend([
            column(own, "rethrown", |count| count.own),
            column(total, "rethrown in all", |count| count.total),
        ]);
    }
    let known = present.metric.keys().unwrap_or_default();
    columns
        .extend(sample_columns(present).into_iter().filter(|column: &Column<'_, K>| !known.contains(&column.info.key)));
    columns.extend(allocation_columns().into_iter().map(|column| column.only_if(present.allocated)));
    columns
}

/// Keys of the columns about allocations recorded together with calls: own bytes, total bytes, own
/// objects, total objects.
pub(super) fn allocation_keys() -> [&'static str; 4] {
    let [[own_bytes, total_bytes], [own_objects, total_objects]] =
        [&BYTES, &OBJECTS].map(|metric| metric.keys().unwrap_or_default());
    [own_bytes, total_bytes, own_objects, total_objects]
}

/// Bytes and objects that rows of calls allocated.
fn allocation_columns<'c, K: RowKind + 'c>() -> [Column<'c, K>; 4]
where
    for<'a> K::Row<'a>: TimedRow,
{
    let [own_bytes, total_bytes, own_objects, total_objects] = allocation_keys();
    let column = |key, title, kind, cell: fn(CallAllocations) -> Cell<'static>| {
        Column::new(key, title, kind, move |row: &K::Row<'_>| row.allocated().map_or(Cell::Absent, cell))
    };
    [
        column(own_bytes, "own bytes", Kind::Bytes, |of| Cell::Bytes(of.own_bytes)),
        column(total_bytes, "bytes", Kind::Bytes, |of| Cell::Bytes(of.total_bytes)),
        column(own_objects, "own objects", Kind::Count, |of| Cell::Count(of.own_objects)),
        column(total_objects, "objects", Kind::Count, |of| Cell::Count(of.total_objects)),
    ]
}

/// Columns with numbers of samples, and their share with its confidence bounds.
fn sample_columns<'c, K: RowKind + 'c>(present: Present) -> Vec<Column<'c, K>>
where
    for<'a> K::Row<'a>: TimedRow,
{
    let Present { samples, metric, .. } = present;
    let number = |key, title, of: fn(SampleCount) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &K::Row<'_>| Cell::Count(of(row.amount().samples)))
    };
    let share = |key, title, of: fn(f64, u64) -> f64| {
        Column::new(key, title, Kind::Share, move |row: &K::Row<'_>| {
            let (share, samples) = row.self_share(metric);
            Cell::Share(of(share, samples))
        })
    };
    let all = [
        number("self_samples", "samples", |samples| samples.own),
        number("total_samples", "samples in all", |samples| samples.total),
        share("self_share", "share", |share, _| share),
        share("self_share_low", "at least", |share, samples| share_bounds(share, samples).0),
        share("self_share_high", "at most", |share, samples| share_bounds(share, samples).1),
    ];
    all.into_iter().map(|column| column.only_if(samples)).collect()
}

/// Columns that name a function.
pub(super) fn name_columns<'c, K: RowKind + 'c>(title: &'static str) -> Vec<Column<'c, K>>
where
    for<'a> K::Row<'a>: TimedRow,
{
    vec![
        Column::new("name", title, Kind::Function, |row: &K::Row<'_>| row.name()),
        Column::new("signature", "signature", Kind::Text, |row: &K::Row<'_>| {
            row.function().map_or(Cell::text(THREAD_START), |function| Cell::text(function.signature()))
        }),
        Column::new("module", "module", Kind::Text, |row: &K::Row<'_>| {
            row.function().map_or(Cell::text(""), |function| Cell::text(function.module()))
        }),
        Column::new("token", "token", Kind::Number, |row: &K::Row<'_>| {
            Cell::Number(row.function().map_or(0, |function| function.token().into()))
        }),
        Column::new("kind", "kind", Kind::Text, |row: &K::Row<'_>| {
            Cell::text(row.function().map_or("runtime", |function| function.kind().name()))
        }),
        Column::new("code", "code", Kind::Text, |row: &K::Row<'_>| {
            Cell::text(row.function().map_or("runtime", |function| kind_of_code(&function)))
        })
        .on_request(),
        // For a reader that folds rows shown place by place: what to call the folded rows.
        Column::new("folded_into", "folded into", Kind::Text, |row: &K::Row<'_>| {
            let frame = row.function().and_then(|function| function.folded_into());
            frame.map_or(Cell::Absent, |frame| Cell::Text(frame.into()))
        })
        .on_request(),
    ]
}

/// Cell of a time. For a time below the clock's resolution, text output shows the resolution.
pub(super) fn resolved(ns: u64, resolution_ns: u64) -> Cell<'static> {
    match ns {
        _ if ns >= resolution_ns => Cell::Time(ns),
        0 => Cell::Time(0).said("-"),
        _ => Cell::Time(ns).said(format!("<{}", time_in_words(resolution_ns))),
    }
}

/// A clock resolution in whole milliseconds or microseconds.
fn time_in_words(ns: u64) -> String {
    if ns.is_multiple_of(1_000_000) { format!("{} ms", ns / 1_000_000) } else { format!("{} \u{b5}s", ns / 1_000) }
}

/// Calls and times; CPU times only where measured.
fn time_columns<'c, K: RowKind + 'c>(cpu: bool, of_calls: bool, clock: Resolution) -> Vec<Column<'c, K>>
where
    for<'a> K::Row<'a>: TimedRow,
{
    let time = |key, title, of: fn(&Times) -> u64| {
        Column::new(key, title, Kind::Time, move |row: &K::Row<'_>| Cell::Time(of(row.times())))
    };
    let sampled = |key, title, of: fn(&Times) -> u64| {
        Column::new(key, title, Kind::Time, move |row: &K::Row<'_>| resolved(of(row.times()), clock.wall_ns))
    };
    let measured = |key, title, of: fn(&Times) -> Option<u64>| {
        Column::new(key, title, Kind::Time, move |row: &K::Row<'_>| {
            of(row.times()).map_or(Cell::Absent, |ns| resolved(ns, clock.cpu_ns))
        })
        .only_if(cpu)
    };
    let bound = |key, title, of: fn(&Times) -> Option<u64>| {
        Column::new(key, title, Kind::Time, move |row: &K::Row<'_>| Cell::measured(of(row.times())))
    };
    // Of time where times are what is measured, else of the metric.
    let share = |key, of: fn(&Times) -> u64, amount: fn(Amount) -> u64| {
        Column::new(key, "share", Kind::Share, move |row: &K::Row<'_>| {
            Cell::Share(row.share(if of_calls { of(row.times()) } else { amount(row.amount()) }))
        })
        .on_request()
    };
    vec![
        Column::new("calls", "calls", Kind::Count, |row: &K::Row<'_>| match Cell::Count(row.times().calls) {
            calls if row.counts_at_least() => calls.said(format!("\u{2265}{}", count(row.times().calls))),
            calls => calls,
        }),
        sampled("inclusive_ns", "inclusive", |times| times.inclusive_ns),
        sampled("exclusive_ns", "exclusive", |times| times.exclusive_ns),
        sampled("callee_ns", "callee", |times| times.callee_ns),
        sampled("suspended_ns", "suspended", |times| times.suspended_ns),
        time("profiler_ns", "profiler", |times| times.profiler_ns),
        time("profiler_low_ns", "profiler from", |times| times.profiler_low_ns),
        time("profiler_high_ns", "profiler to", |times| times.profiler_high_ns),
        measured("inclusive_cpu_ns", "cpu total", |times| times.inclusive_cpu_ns),
        measured("exclusive_cpu_ns", "cpu", |times| times.exclusive_cpu_ns),
        bound("exclusive_low_ns", "exclusive from", |times| Some(times.exclusive_bounds_ns.0)),
        bound("exclusive_high_ns", "exclusive to", |times| Some(times.exclusive_bounds_ns.1)),
        bound("exclusive_cpu_low_ns", "cpu from", |times| Some(times.exclusive_cpu_bounds_ns?.0)).only_if(cpu),
        bound("exclusive_cpu_high_ns", "cpu to", |times| Some(times.exclusive_cpu_bounds_ns?.1)).only_if(cpu),
        share("inclusive_share", |times| times.inclusive_ns, |amount| amount.total),
        share("exclusive_share", |times| times.exclusive_ns, |amount| amount.own),
    ]
}
