//! The list of metrics, and the choice of the metric that a view shows.

use clrscope_recording::model::{Process, Recording};

use crate::allocations::{BYTES, OBJECTS, with_type_leaves};
use crate::awaits::AWAITED;
use crate::exceptions::EXCEPTIONS;
use crate::metric::{CALLS, CPU, Column, Metric, Source, WALL};
use crate::query::{Query, QueryProblem};
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL, SAMPLES, WALL_SAMPLES};

/// Every metric that a user can request; each name occurs once.
pub static METRICS: [&Metric; 8] = [&WALL, &CPU, &CALLS, &SAMPLES, &EXCEPTIONS, &BYTES, &OBJECTS, &AWAITED];

/// Every metric that has its own values, in order of preference. If no metric is requested, views
/// show the first that was recorded.
static PREFERRED: [&Metric; 11] = [
    &WALL,
    &CPU,
    &CALLS,
    &SAMPLED_CPU,
    &SAMPLED_WALL,
    &SAMPLES,
    &WALL_SAMPLES,
    &BYTES,
    &OBJECTS,
    &EXCEPTIONS,
    &AWAITED,
];

impl Metric {
    /// The metric with this name; `None` for other names.
    #[must_use]
    pub fn parse(name: &str) -> Option<&'static Self> {
        METRICS.into_iter().find(|metric| metric.name == name)
    }

    /// Every metric with values of its own, in the views' order of preference. Several metrics may
    /// have the same name if different instruments record them.
    pub fn each() -> impl Iterator<Item = &'static Self> {
        PREFERRED.into_iter()
    }

    /// Whether some process of a recording has values of the metric, from any instrument.
    #[must_use]
    pub fn is_recorded(&'static self, recording: &Recording) -> bool {
        self.recorded(recording).is_some()
    }

    /// The metric itself or another of the same name, depending on whose values some process of a
    /// recording has.
    fn recorded(&'static self, recording: &Recording) -> Option<&'static Self> {
        let this = self.is_in(recording).then_some(self);
        this.or_else(|| PREFERRED.into_iter().find(|metric| metric.name == self.name && metric.is_in(recording)))
    }

    /// Whether some process has values of this metric from its own instrument.
    pub(crate) fn is_in(&self, recording: &Recording) -> bool {
        recording.processes.iter().any(|process| self.is_recorded_in(process))
    }

    fn is_recorded_in(&self, process: &Process) -> bool {
        match self.source {
            Source::Calls(Column::Cpu) => process.calls.as_ref().is_some_and(|calls| calls.cpu_measured),
            Source::Calls(_) => process.calls.is_some(),
            Source::Stacks { .. } => process.arenas(self.instrument).next().is_some(),
        }
    }

    /// Returns the metric that views show: the requested one. If none is requested, the first
    /// metric that was recorded, or wall time if none was recorded.
    ///
    /// # Errors
    /// When the requested metric was not recorded.
    pub fn for_query(recording: &Recording, query: &Query) -> Result<&'static Self, QueryProblem> {
        match query.metric {
            Some(metric) => metric.recorded(recording).ok_or(QueryProblem::MetricNotRecorded { metric }),
            None => Ok(PREFERRED.into_iter().find(|metric| metric.is_in(recording)).unwrap_or(&WALL)),
        }
    }

    /// The metric that `view` shows. Fails if its values do not support the query.
    pub(crate) fn of_view(
        recording: &Recording,
        query: &Query,
        view: &'static str,
    ) -> Result<&'static Self, QueryProblem> {
        let metric = Self::for_query(recording, query)?;
        metric.check(query, view)?;
        Ok(metric)
    }

    /// As [`of_view`](Self::of_view), for whole paths, which may end in types.
    pub(crate) fn of_paths(
        recording: &Recording,
        query: &Query,
        view: &'static str,
    ) -> Result<&'static Self, QueryProblem> {
        let metric = Self::of_view(recording, query, view)?;
        Ok(if query.type_leaves { with_type_leaves(metric) } else { metric })
    }

    /// The metric that `view` shows, for views that support only metrics of `calls` and of samples:
    /// the first such metric that was recorded. Fails if its values do not support the query.
    pub(crate) fn of_samples_or_calls(
        recording: &Recording,
        query: &Query,
        view: &'static str,
    ) -> Result<&'static Self, QueryProblem> {
        let all = [&WALL, &SAMPLED_CPU, &SAMPLED_WALL];
        let metric = all.into_iter().find(|metric| metric.is_in(recording)).unwrap_or(&WALL);
        metric.check(query, view)?;
        Ok(metric)
    }

    /// Fails if the query has filters that the metric's values do not support.
    pub(crate) fn check(&self, query: &Query, view: &'static str) -> Result<(), QueryProblem> {
        if !query.types.is_empty() && !self.has_types() {
            let why = "this metric does not count objects: add --metric bytes or --metric objects";
            return Err(QueryProblem::NotAvailable { option: "--type", view, why });
        }
        match self.source {
            Source::Calls(_) => query.whole_run(view),
            Source::Stacks { .. } if query.raw && self.is_sampled() => {
                let why = "samples in the profiler's own code are not subtracted";
                Err(QueryProblem::NotAvailable { option: "--raw", view, why })
            }
            Source::Stacks { .. } if query.raw => {
                let why = "its numbers are counts, which the profiler's own work does not change";
                Err(QueryProblem::NotAvailable { option: "--raw", view, why })
            }
            Source::Stacks { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_names_those_who_record_another_of_its_name() {
        for metric in METRICS {
            let of_name: Vec<&str> =
                PREFERRED.iter().filter(|known| known.name == metric.name).map(|known| known.instrument).collect();
            let said: Vec<&str> = std::iter::once(metric.instrument).chain(metric.others.iter().copied()).collect();
            assert_eq!(of_name, said, "{metric}");
        }
        assert!(PREFERRED.iter().all(|metric| METRICS.iter().any(|known| known.name == metric.name)));
    }
}
