//! Amounts of a metric in one recording, with their exactness.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::Recording;

use super::interval::{Change, IntervalEstimate};
use super::merging::Merging;
use crate::metric::{Amount, Column, Metric, Source, Unit};
use crate::query::{Query, QueryProblem};
use crate::sampling::{Steps, bounds, share_bounds};
use crate::times::Times;
use crate::views::conditions::Conditions;
use crate::views::functions::{Functions, functions};
use crate::views::rows::FunctionRow;

/// Sums of the rows that have the same identity.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) amount: Amount,
    /// Bounds of the own amount; only used if the rows have bounds.
    own_bounds: (u64, u64),
    /// Whether some calls were not counted.
    is_at_least: bool,
}

impl Sum {
    pub(super) fn new(times: &Times, amount: Amount, metric: &Metric, is_at_least: bool) -> Self {
        let own_bounds = match metric.source {
            Source::Calls(Column::Cpu) => times.exclusive_cpu_bounds_ns.unwrap_or_default(),
            Source::Calls(Column::Wall) => times.exclusive_bounds_ns,
            _ => (0, 0),
        };
        Self { amount, own_bounds, is_at_least }
    }

    fn of_row(row: &FunctionRow<'_>, metric: &Metric) -> Self {
        Self::new(&row.times, row.amount, metric, row.counts_at_least())
    }

    pub(super) fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.amount.own, other.amount.own);
        add(&mut self.amount.total, other.amount.total);
        add(&mut self.amount.samples.own, other.amount.samples.own);
        add(&mut self.amount.samples.total, other.amount.samples.total);
        add(&mut self.own_bounds.0, other.own_bounds.0);
        add(&mut self.own_bounds.1, other.own_bounds.1);
        self.is_at_least |= other.is_at_least;
    }
}

/// Exactness of the amounts of a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Exactness {
    /// Each event was recorded.
    Exact,
    /// The amounts are estimated from samples of equal weight. `step` is the weight of one sample,
    /// used if there are no samples.
    Samples { step: f64 },
    /// Times of `calls`. Own times have their own bounds. Bounds of totals come from the clock's
    /// step and the hooks' cost, which is assumed to be spread evenly. `taken` is the hooks' cost
    /// as a share of a time: minimum, estimate and maximum.
    Times { step: f64, taken: [f64; 3] },
}

/// The amounts of one recording: the whole, and the exactness of each amount.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    metric: &'static Metric,
    doubt: Exactness,
    /// The metric's total over everything selected, regardless of the query's function filters.
    total: f64,
    /// Number of samples in that total.
    samples: f64,
}

/// An amount and its part of the whole, own and total.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Amounts {
    pub(super) own: IntervalEstimate,
    pub(super) total: IntervalEstimate,
    pub(super) own_share: IntervalEstimate,
    pub(super) total_share: IntervalEstimate,
}

impl Reading {
    /// Reads the data that is needed to compare amounts of `metric`.
    pub(super) fn read(recording: &Recording, query: &Query, metric: &'static Metric) -> Result<Self, QueryProblem> {
        let everything = Query { functions: Vec::new(), modules: Vec::new(), ..query.clone() };
        let Functions { rows, conditions, .. } = functions(recording, &plain(&everything, metric))?;
        let total = conditions.total as f64;
        let mean = mean_bytes(recording);
        let (doubt, samples) = match metric.source {
            Source::Calls(Column::Calls) => (Exactness::Exact, 0.0),
            Source::Calls(column) => (doubt_of_times(&conditions, column), 0.0),
            Source::Stacks { .. } if metric.is_sampled() => {
                let samples = conditions.samples as f64;
                let of_metric = |of: &&crate::samples::SamplingConditions<'_>| of.instrument == metric.instrument;
                let reached = conditions.sampling.iter().find(of_metric).map_or(0.0, |of| of.reached_ns as f64);
                let step = match metric.unit {
                    Unit::Count => 1.0,
                    _ if samples > 0.0 => total / samples,
                    _ => reached,
                };
                (Exactness::Samples { step }, samples)
            }
            Source::Stacks { .. } if metric.has_types() && mean > 0.0 => {
                let seen = rows.iter().fold(0.0, |sum, row| sum + row.amount.samples.own as f64);
                let step = if seen > 0.0 { total / seen } else { mean };
                (Exactness::Samples { step }, seen)
            }
            Source::Stacks { .. } => (Exactness::Exact, 0.0),
        };
        Ok(Self { metric, doubt, total, samples })
    }

    /// The amounts of a sum.
    pub(super) fn amounts(&self, sum: &Sum) -> Amounts {
        let Amount { own, total, samples } = sum.amount;
        let mut found = match self.doubt {
            Exactness::Exact => {
                let [own, total] = [own, total].map(|amount| IntervalEstimate::exact(amount as f64));
                Amounts { own, total, ..Amounts::default() }
            }
            Exactness::Samples { step } => Amounts {
                own: IntervalEstimate::sampled(own as f64, samples.own as f64, step),
                total: IntervalEstimate::sampled(total as f64, samples.total as f64, step),
                ..Amounts::default()
            },
            Exactness::Times { step, taken } => {
                let bounds = (sum.own_bounds.0 as f64, sum.own_bounds.1 as f64);
                let own = IntervalEstimate::between(own as f64, bounds);
                Amounts { own, total: of_time(total as f64, step, taken), ..Amounts::default() }
            }
        };
        if sum.is_at_least && self.doubt == Exactness::Exact && self.metric.is_of_calls() {
            (found.own.high, found.total.high) = (f64::INFINITY, f64::INFINITY);
        }
        found.own_share = self.share(&found.own);
        found.total_share = self.share(&found.total);
        found
    }

    /// The metric's total over everything selected, regardless of the query's function filters.
    pub(super) fn whole_amount(&self) -> f64 {
        self.total
    }

    /// The whole as one amount.
    fn whole(&self) -> IntervalEstimate {
        match self.doubt {
            Exactness::Exact => IntervalEstimate::exact(self.total),
            Exactness::Samples { step } => IntervalEstimate::sampled(self.total, self.samples, step),
            Exactness::Times { step, taken } => of_time(self.total, step, taken),
        }
    }

    /// An amount as a part of the whole.
    fn share(&self, amount: &IntervalEstimate) -> IntervalEstimate {
        if self.total <= 0.0 {
            return IntervalEstimate::default();
        }
        let share = (amount.amount / self.total).min(1.0);
        match self.doubt {
            Exactness::Samples { .. } => IntervalEstimate::between(share, share_bounds(share, self.samples as u64)),
            _ => IntervalEstimate::between(share, (amount.low / self.total, (amount.high / self.total).min(1.0))),
        }
    }
}

/// The change of the whole.
pub(super) fn totals([before, after]: &[Vec<Reading>; 2], merging: &Merging) -> Change {
    let whole = |all: &[Reading]| all.iter().map(Reading::whole).collect::<Vec<_>>();
    merging.change(&whole(before), &whole(after))
}

/// The query without limit, for all rows by `metric`.
pub(super) fn plain(query: &Query, metric: &'static Metric) -> Query {
    Query { metric: Some(metric), limit: None, sort: None, per_thread: false, type_leaves: false, ..query.clone() }
}

/// Rows of a recording with their sums.
pub(super) fn rows<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &'static Metric,
) -> Result<Vec<(FunctionRow<'a>, Sum)>, QueryProblem> {
    let rows = functions(recording, &plain(query, metric))?.rows;
    Ok(rows.into_iter().map(|row| (row, Sum::of_row(&row, metric))).collect())
}

/// Mean number of bytes between two sampled objects; 0 if every process recorded each object.
pub(super) fn mean_bytes(recording: &Recording) -> f64 {
    let recorded = recording.processes.iter().filter(|process| process.arenas(instrument::ALLOC).next().is_some());
    recorded.flat_map(|process| &process.allocation_sampling).map(|of| of.mean_bytes).max().unwrap_or(0) as f64
}

fn doubt_of_times(conditions: &Conditions<'_>, column: Column) -> Exactness {
    let steps = conditions.processes.iter().filter_map(|process| process.calls).map(Steps::from_info);
    let of_column = |steps: Steps| if column == Column::Cpu { steps.cpu_ns } else { steps.wall_ns };
    let step = steps.map(of_column).fold(0.0, f64::max);
    let totals = &conditions.totals;
    let all = if column == Column::Cpu { totals.cpu_ns.unwrap_or(0) } else { totals.functions_ns };
    let part = |cost: u64| if all > 0 { cost as f64 / all as f64 } else { 0.0 };
    // Raw times include the cost of hooks.
    let took = if conditions.raw { 0.0 } else { part(totals.profiler_ns) };
    Exactness::Times { step, taken: [part(totals.profiler_low_ns), took, part(totals.profiler_high_ns)] }
}

/// The time of many functions together, which includes hooks.
fn of_time(amount: f64, step: f64, [least, took, most]: [f64; 3]) -> IntervalEstimate {
    let cost = |part: f64| (amount * part) as u64;
    let (low, high) = bounds((amount * (1.0 + took)) as u64, step, (cost(least), cost(most)));
    IntervalEstimate::between(amount, (low as f64, high as f64))
}
