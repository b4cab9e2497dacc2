//! The two sides of a comparison: their recordings, and the metrics and names that can be compared.

use std::fmt;

use clrscope_recording::model::Recording;

use super::interval::Change;
use super::merging::{Merging, Per};
use super::reading::{Reading, totals};
use crate::metric::Metric;
use crate::parts::observed_ns;
use crate::query::{Query, QueryProblem};
use crate::select::resolve_names;

/// A recording with a name to show.
#[derive(Debug, Clone)]
pub struct NamedRecording<'a> {
    /// Name of the file.
    pub name: String,
    /// The recording.
    pub recording: &'a Recording,
}

/// Nanoseconds of an hour.
const HOUR_NS: f64 = 3.6e12;

/// Which side of the comparison a recording belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The baseline recordings.
    Before,
    /// The recordings that are compared with the baseline.
    After,
}

/// The labels that chose the recordings of both sides, and the unit of the amounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// What amounts are divided by.
    pub per: Per,
    /// The labels that chose the recordings before, as written.
    pub before: String,
    /// The labels that chose the recordings after, as written.
    pub after: String,
    /// Names of recordings that can't be read, so that their labels are unknown.
    pub unreadable: Vec<String>,
}

/// The two sides of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Sides<'a> {
    /// The baseline recordings.
    pub before: Vec<NamedRecording<'a>>,
    /// The recordings that are compared with the baseline.
    pub after: Vec<NamedRecording<'a>>,
    /// How labels chose the recordings; `None` if the recordings were named. Recordings chosen by
    /// labels are merged: amounts are means per hour or per recording instead of medians.
    pub chosen: Option<Chosen>,
}

/// Reason why recordings can't be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparisonProblem {
    /// Name of the recording with the problem; `None` if the problem concerns all recordings.
    pub recording: Option<String>,
    /// The problem.
    pub problem: QueryProblem,
}

impl fmt::Display for ComparisonProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.recording {
            Some(name) => write!(f, "{name}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

/// Change of a metric between the two sides, over all functions.
#[derive(Debug, Clone, Copy)]
pub struct SideTotal {
    /// The metric.
    pub metric: &'static Metric,
    /// Change of the metric.
    pub change: Change,
}

impl<'a> Sides<'a> {
    /// Every recording with its side, the recordings before first.
    pub fn each(&self) -> impl Iterator<Item = (Side, &NamedRecording<'a>)> {
        let before = self.before.iter().map(|one| (Side::Before, one));
        before.chain(self.after.iter().map(|one| (Side::After, one)))
    }

    /// The metric to compare: the query's metric, or if the query has none, the first metric that
    /// both sides have, in the views' order of preference.
    ///
    /// # Errors
    /// When a recording does not have the requested metric, no metric was recorded in all
    /// recordings, or different instruments recorded it.
    pub fn metric(&self, query: &Query) -> Result<&'static Metric, ComparisonProblem> {
        let is_in_all = |metric: &&'static Metric| self.each().all(|(_, one)| metric.is_in(one.recording));
        let wanted = |metric: &&'static Metric| query.metric.is_none_or(|asked| asked.name == metric.name);
        // The metric of the requested instrument, if the query names one.
        let exactly = query.metric.filter(is_in_all);
        if let Some(metric) = exactly.or_else(|| Metric::each().filter(wanted).find(is_in_all)) {
            return Ok(metric);
        }
        let mut instruments = Vec::new();
        for (_, one) in self.each() {
            if let Some(metric) = query.metric {
                let found = Metric::for_query(one.recording, query);
                let found =
                    found.map_err(|problem| ComparisonProblem { recording: Some(one.name.clone()), problem })?;
                if !instruments.contains(&found.instrument) {
                    instruments.push(found.instrument);
                }
                if instruments.len() > 1 {
                    return Err(everywhere(QueryProblem::MetricOfOthers { metric, instruments }));
                }
            }
        }
        let names = |all: &[NamedRecording<'_>]| {
            let is_there = |metric: &&Metric| all.iter().all(|one| metric.is_in(one.recording));
            let mut names: Vec<&'static str> = Metric::each().filter(is_there).map(|metric| metric.name).collect();
            names.dedup();
            names
        };
        let (before, after) = (names(&self.before), names(&self.after));
        Err(everywhere(QueryProblem::NoCommonMetric { before, after }))
    }

    /// Resolves the query's names of functions and assemblies in the first recording that has them.
    /// Not every recording needs to have them: a function may exist on one side only.
    ///
    /// # Errors
    /// When no recording has such a function or assembly.
    pub fn resolved(&self, query: &Query) -> Result<Query, ComparisonProblem> {
        let mut problem = None;
        for (_, one) in self.each() {
            match resolve_names(one.recording, query) {
                Ok(resolved) => return Ok(resolved),
                Err(found) => problem = Some(found),
            }
        }
        problem.map_or_else(|| Ok(query.clone()), |problem| Err(everywhere(problem)))
    }

    /// How the amounts of recordings are merged to the amount of their side.
    pub(super) fn merging(&self) -> Merging {
        match self.chosen.as_ref().map(|chosen| chosen.per) {
            None => Merging::default(),
            Some(Per::Recording) => self.merging_of_means(),
            Some(Per::Hour) => self.weighed(|one| {
                let ns = observed_ns(one.recording).max(1) as f64;
                (HOUR_NS / ns, ns)
            }),
        }
    }

    /// Like [`merging`](Self::merging), for amounts that do not grow with time, such as the mean
    /// time of a call.
    pub(super) fn merging_of_means(&self) -> Merging {
        self.weighed(|_| (1.0, 1.0))
    }

    /// Like [`merging`](Self::merging), for parts of the whole: a recording's weight is its whole.
    pub(super) fn merging_of_shares(&self, readings: &[Vec<Reading>; 2]) -> Merging {
        let side = |all: &[Reading]| all.iter().map(|reading| (1.0, reading.whole_amount())).collect();
        let [before, after] = readings;
        if self.chosen.is_some() { Merging::weighed([side(before), side(after)]) } else { Merging::default() }
    }

    fn weighed(&self, of: impl Fn(&NamedRecording<'a>) -> (f64, f64)) -> Merging {
        let side = |all: &[NamedRecording<'a>]| all.iter().map(&of).collect();
        if self.chosen.is_some() {
            Merging::weighed([side(&self.before), side(&self.after)])
        } else {
            Merging::default()
        }
    }

    /// Change of a metric between the two sides, summed over all functions. The query's filters of
    /// functions do not matter.
    ///
    /// # Errors
    /// As for [`Sides::metric`], and when the query selects no process or thread of a recording.
    pub fn total(&self, query: &Query) -> Result<SideTotal, ComparisonProblem> {
        let metric = self.metric(query)?;
        let query = Query { metric: Some(metric), functions: Vec::new(), modules: Vec::new(), ..query.clone() };
        let readings = self.read(|recording| Reading::read(recording, &query, metric))?;
        Ok(SideTotal { metric, change: totals(&readings, &self.merging()) })
    }

    /// Calls `read` for each recording and returns the results by side.
    pub(super) fn read<T>(
        &self,
        read: impl Fn(&'a Recording) -> Result<T, QueryProblem>,
    ) -> Result<[Vec<T>; 2], ComparisonProblem> {
        let of = |all: &[NamedRecording<'a>]| {
            let one = |named: &NamedRecording<'a>| {
                let failed = |problem| ComparisonProblem { recording: Some(named.name.clone()), problem };
                read(named.recording).map_err(failed)
            };
            all.iter().map(one).collect::<Result<Vec<T>, _>>()
        };
        Ok([of(&self.before)?, of(&self.after)?])
    }
}

fn everywhere(problem: QueryProblem) -> ComparisonProblem {
    ComparisonProblem { recording: None, problem }
}
