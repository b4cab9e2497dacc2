//! Metrics: what can be shown along the paths of a recording.
//!
//! A context is a path of frames, and instruments add metrics to contexts. Each metric is declared
//! once, as a [`Metric`] in [`METRICS`](crate::METRICS); the views of paths (`functions`, `tree`,
//! `callers`, `callees`, the call graph) and the exports made of them work on any of these. Every
//! metric is a sum: values of threads, processes and paths add up.

use std::fmt;
use std::sync::Arc;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Clock, EventArena, Process, Sampler, Stacks};

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name on the command line, and the end of the keys of rows where [`Source`] says so.
    pub name: &'static str,
    /// Title of the metric: `wall time`.
    pub title: &'static str,
    /// Unit of values.
    pub unit: Unit,
    /// The instrument that records the metric.
    pub instrument: &'static str,
    /// Rows count for themselves alone: what lies below them is not in their total, which is their
    /// own value again.
    pub exclusive: bool,
    /// JSON keys of what rows count in addition to the amount, their own and in all; `None` where
    /// they count nothing.
    pub second: Option<[&'static str; 2]>,
    /// Source of the values.
    pub source: Source,
    /// Other instruments that record a metric of this name, shown where this one was not recorded.
    pub others: &'static [&'static str],
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// A number of something, named by the metric's title.
    Count,
    /// Bytes.
    Bytes,
}

/// Source of a metric's values.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// A column of the calling-context trees of `calls`. Rows have the columns of
    /// [`Times`](crate::Times), all of them.
    Calls(Column),
    /// Events with a stack each.
    Stacks {
        /// Reads them from what the metric's instrument recorded in a process, as far as they are
        /// of work that is shown.
        read: fn(&Process, &EventArena) -> StackEvents,
        /// JSON keys of a row's own amount and of its total: `self_NAME` and `total_NAME`.
        keys: [&'static str; 2],
    },
}

/// A column of the trees of `calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Wall time.
    Wall,
    /// CPU time.
    Cpu,
    /// Number of calls.
    Calls,
}

/// Events of one process, each with a stack and so much of a metric.
#[derive(Debug, Clone, Default)]
pub struct StackEvents {
    /// The stacks that the events refer to.
    pub table: Arc<Stacks>,
    /// The events, in any order.
    pub events: Vec<StackEvent>,
}

/// One event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackEvent {
    /// Index into [`Process::threads`].
    pub thread: u32,
    /// Time, nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of the stack in the table; 0, and what is no stack's, stand for a stack that is not
    /// known.
    pub stack: u32,
    /// Duration, nanoseconds; 0 for a moment. Of what lasts, the part within the time of a query
    /// counts.
    pub lasted_ns: u64,
    /// Amount that the event adds to the metric.
    pub amount: u64,
    /// Samples that the event stands for, 0 where it is no sample.
    pub samples: u64,
    /// [Flags](clrscope_recording::model::Sample::flags) of a sample, 0 where it is none.
    pub flags: u32,
    /// The thread is one of those that wait for work, and had none: left out, unless threads are
    /// asked for by name.
    pub idle: bool,
    /// Index into [`Process::types`] of the type that the event is about, 0 for none.
    pub object_type: u32,
    /// Id of the request that the event was for, where its record says it; 0 where that is known by
    /// its thread and time, or not at all.
    pub request: u64,
}

/// Amount of a metric in one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// The row's own: without what it called.
    pub own: u64,
    /// With everything it called, recursion counted once.
    pub total: u64,
    /// The samples that fell there, where samples were taken.
    pub samples: SampleCount,
}

/// Samples in one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// With the row's function on top.
    pub own: u64,
    /// With the row's function anywhere on the stack, recursion counted once.
    pub total: u64,
}

/// Wall time, the metric of `calls` unless another is asked for.
pub static WALL: Metric = Metric {
    name: "wall",
    title: "wall time",
    unit: Unit::Nanoseconds,
    instrument: "calls",
    exclusive: false,
    second: None,
    source: Source::Calls(Column::Wall),
    others: &[instrument::WALL],
};

/// CPU time.
pub static CPU: Metric = Metric {
    name: "cpu",
    title: "CPU time",
    unit: Unit::Nanoseconds,
    instrument: "calls",
    exclusive: false,
    second: None,
    source: Source::Calls(Column::Cpu),
    others: &[instrument::CPU],
};

/// Number of calls; of `[JIT]` compilations, of suspensions their number.
pub static CALLS: Metric = Metric {
    name: "calls",
    title: "calls",
    unit: Unit::Count,
    instrument: "calls",
    exclusive: true,
    second: None,
    source: Source::Calls(Column::Calls),
    others: &[],
};

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Metric {}

impl Default for &'static Metric {
    fn default() -> Self {
        &WALL
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Metric {
    /// Whether rows have the columns of the trees of `calls`.
    #[must_use]
    pub const fn is_of_calls(&self) -> bool {
        matches!(self.source, Source::Calls(_))
    }

    /// Whether the values are those of samples: rows have numbers of samples and bounds of their
    /// shares.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        !self.is_of_calls() && [instrument::CPU, instrument::WALL].contains(&self.instrument)
    }

    /// Whether rows have a number besides the amount: of samples, or of what
    /// [`second`](Self::second) names.
    pub(crate) fn counts_beside(&self) -> bool {
        self.is_sampled() || self.second.is_some()
    }

    /// Nanoseconds between two samples of a thread by which the values of a process came about, as
    /// asked for; `None` where they are no samples.
    #[must_use]
    pub fn sampling_period_ns(&self, process: &Process) -> Option<u64> {
        let period = if self.is_of_calls() {
            let calls = process.calls.as_ref().filter(|calls| calls.clock == Clock::Sampled && self.name != CALLS.name);
            calls.map(|calls| calls.interval_ns)
        } else {
            let instrument = |sampler: &&Sampler| self.is_sampled() && sampler.instrument == self.instrument;
            process.samplers.iter().find(instrument).map(|sampler| sampler.interval_ns)
        };
        period.filter(|period| *period > 0)
    }

    /// Whether the values are of objects, which can be chosen by their type.
    #[must_use]
    pub fn has_types(&self) -> bool {
        self.instrument == instrument::ALLOC
    }

    /// The keys of what a row has of its own and in all, where rows have no columns of `calls`.
    #[must_use]
    pub const fn keys(&self) -> Option<[&'static str; 2]> {
        match self.source {
            Source::Calls(_) => None,
            Source::Stacks { keys, .. } => Some(keys),
        }
    }

    /// The metric that says which paths are too small to be shown: the metric itself, but wall time
    /// where rows have no totals.
    #[must_use]
    pub fn sizes(&'static self) -> &'static Self {
        if self.exclusive { &WALL } else { self }
    }
}
