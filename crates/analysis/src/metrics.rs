//! The list of metrics, and which of them a view shows.

use clrscope_recording::model::{Process, Recording};

use crate::exceptions::EXCEPTIONS;
use crate::metric::{CALLS, CPU, Column, Metric, Source, WALL};
use crate::query::{Query, QueryProblem};

/// Every metric. Where none is asked for, views show the first of these that was recorded.
pub static METRICS: [&Metric; 4] = [&WALL, &CPU, &CALLS, &EXCEPTIONS];

impl Metric {
    /// The metric of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<&'static Self> {
        METRICS.into_iter().find(|metric| metric.name == name)
    }

    /// Whether some process of a recording has values of the metric.
    #[must_use]
    pub fn is_recorded(&self, recording: &Recording) -> bool {
        recording.processes.iter().any(|process| self.is_recorded_in(process))
    }

    fn is_recorded_in(&self, process: &Process) -> bool {
        match self.source {
            Source::Calls(Column::Cpu) => process.calls.as_ref().is_some_and(|calls| calls.cpu_measured),
            Source::Calls(_) => process.calls.is_some(),
            Source::Stacks { .. } => process.arenas(self.instrument).next().is_some(),
        }
    }

    /// The metric that views show: the one the query asks for, or else the first that was recorded (wall time where none was).
    ///
    /// # Errors
    /// When the one that is asked for was not recorded.
    pub fn of(recording: &Recording, query: &Query) -> Result<&'static Self, QueryProblem> {
        match query.metric {
            Some(metric) if !metric.is_recorded(recording) => Err(QueryProblem::MetricNotRecorded { metric }),
            Some(metric) => Ok(metric),
            None => Ok(METRICS.into_iter().find(|metric| metric.is_recorded(recording)).unwrap_or(&WALL)),
        }
    }

    /// The metric that `view` shows, if its values can follow the query.
    pub(crate) fn of_view(
        recording: &Recording,
        query: &Query,
        view: &'static str,
    ) -> Result<&'static Self, QueryProblem> {
        let metric = Self::of(recording, query)?;
        metric.check(query, view)?;
        Ok(metric)
    }

    /// Refuses filters that the metric's values can't follow.
    fn check(&self, query: &Query, view: &'static str) -> Result<(), QueryProblem> {
        match self.source {
            Source::Calls(_) => query.whole_run(view),
            Source::Stacks { .. } if query.raw => {
                let why = "its numbers are counts, and hold nothing of the profiler's";
                Err(QueryProblem::NotAvailable { option: "--raw", view, why })
            }
            Source::Stacks { .. } => Ok(()),
        }
    }
}
