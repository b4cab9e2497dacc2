//! Computes the columns of a row from its sums.

use clrscope_recording::model::NodeValues;

use crate::catalog::Catalog;
use crate::cost::{Cost, Share};
use crate::metric::Metric;
use crate::paths::Paths;
use crate::query::Query;
use crate::sampling::{self, Steps};
use crate::sums::Sums;
use crate::times::Times;

/// Corrections for the rows of one process.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    pub(crate) cost: Cost,
    /// Whether times are shown as measured, without correction.
    pub(crate) raw: bool,
    /// Whether the CPU columns have values: CPU time, or numbers of samples.
    pub(crate) cpu: bool,
    /// The metric if its values come from samples; `None` for other metrics.
    pub(crate) sampled: Option<&'static Metric>,
    /// Step between samples.
    pub(crate) steps: Steps,
}

impl Columns {
    /// Corrections for the rows of a process. Hooks have a cost only in trees of `calls`.
    pub(crate) fn new(paths: &Paths<'_>, catalog: &Catalog<'_>, query: &Query) -> Self {
        let calls = paths.process.calls.as_ref().filter(|_| paths.metric.is_of_calls());
        Self {
            cost: calls.map_or(Cost::default(), |c| Cost::new(c, catalog.len() + 1, |function| catalog.slot(function))),
            raw: query.raw,
            cpu: calls.is_some_and(|c| c.cpu_measured) || paths.metric.counts_beside(),
            sampled: Some(paths.metric).filter(|metric| metric.is_sampled()),
            steps: calls.map_or(Steps::default(), Steps::from_info),
        }
    }

    /// Computes the times of a row in one thread. All calls in the row are calls of the function in
    /// `slot`. The documentation of the crate defines the times.
    pub(crate) fn times(&self, slot: u32, sums: &Sums) -> Times {
        let share = self.cost.share(slot, sums.hooks, sums.own.metric);
        let exclusive = sums.own.metric - share.likely;
        let least = exclusive.saturating_add(sums.suspended_ns);
        // Rounding, and times of odd recordings, must not make anything negative.
        let inclusive = if self.raw {
            sums.inclusive.metric.max(least.saturating_add(share.likely))
        } else {
            sums.inclusive.metric.saturating_sub(sums.inclusive_cost_ns).max(least)
        };
        let inside = if self.raw { least.saturating_add(share.likely) } else { least };
        let exclusive_cpu = if self.raw { sums.own.cpu_ns } else { sums.own.cpu_ns.saturating_sub(share.likely) };
        let inclusive_cpu = if self.raw {
            sums.inclusive.cpu_ns
        } else {
            sums.inclusive.cpu_ns.saturating_sub(sums.inclusive_cost_ns).max(exclusive_cpu)
        };
        Times {
            calls: sums.calls,
            inclusive_ns: inclusive,
            exclusive_ns: exclusive,
            callee_ns: inclusive - inside,
            suspended_ns: sums.suspended_ns,
            profiler_ns: share.likely,
            profiler_low_ns: share.low,
            profiler_high_ns: share.high,
            inclusive_cpu_ns: self.cpu.then_some(inclusive_cpu),
            exclusive_cpu_ns: self.cpu.then_some(exclusive_cpu),
            exclusive_bounds_ns: self.wall_bounds(sums.own, share),
            exclusive_cpu_bounds_ns: self.cpu_bounds(sums.own, share),
        }
    }

    /// Bounds of own wall time. Hooks take processor time. If the thread waited for a processor,
    /// the hooks may have lengthened this wait too, at most by the ratio of wall time to CPU time.
    pub(crate) fn wall_bounds(&self, own: NodeValues, share: Share) -> (u64, u64) {
        let waited = if self.cpu && own.cpu_ns > 0 { (own.metric as f64 / own.cpu_ns as f64).max(1.0) } else { 1.0 };
        let most = (share.high as f64 * waited) as u64;
        sampling::bounds(own.metric, self.steps.wall_ns, (share.low, most))
    }

    /// Bounds of own CPU time; `None` if it was not measured. Neither bound exceeds the upper bound
    /// of the wall time.
    pub(crate) fn cpu_bounds(&self, own: NodeValues, share: Share) -> Option<(u64, u64)> {
        self.cpu.then(|| {
            let (low, high) = sampling::bounds(own.cpu_ns, self.steps.cpu_ns, (share.low, share.high));
            let most = if self.sampled.is_some() { u64::MAX } else { self.wall_bounds(own, share).1 };
            (low.min(most), high.min(most))
        })
    }
}
