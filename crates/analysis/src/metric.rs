//! Metrics: the values that can be shown along the paths of a recording.
//!
//! A context is a path of frames, and instruments add metrics to contexts. Each metric is declared
//! once, as a [`Metric`] in [`METRICS`](crate::METRICS). The views of paths (`functions`, `tree`,
//! `callers`, `callees`, the call graph) and their exports work with every metric. Every metric is
//! a sum: values of threads, processes and paths add up.

use std::fmt;
use std::sync::Arc;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Clock, EventArena, Process, Sampler, Stacks};

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name on the command line. Depending on [`Source`], it is also the end of the keys in
    /// rows.
    pub name: &'static str,
    /// Title of the metric, such as `wall time`.
    pub title: &'static str,
    /// Unit of values.
    pub unit: Unit,
    /// The instrument that records the metric.
    pub instrument: &'static str,
    /// Whether rows have no totals: each row has only its own value, without its callees.
    pub exclusive: bool,
    /// JSON keys of a second number that rows have, own and total; `None` if rows have no second
    /// number.
    pub second: Option<[&'static str; 2]>,
    /// Source of the values.
    pub source: Source,
    /// Whether paths end in the types of the objects that their methods allocated:
    /// [`Query::type_leaves`](crate::Query::type_leaves).
    pub type_leaves: bool,
    /// Other instruments that record a metric of the same name. Their metric is shown if this
    /// instrument was not recorded.
    pub others: &'static [&'static str],
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// A number of items, which the metric's title names.
    Count,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The unit's name in the file formats of other programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

/// Source of a metric's values.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// A column of the calling-context trees of `calls`. Rows have all columns of
    /// [`Times`](crate::Times).
    Calls(Column),
    /// Events, each with a stack.
    Stacks {
        /// Reads the events of a process from the records of the metric's instrument. Only the work
        /// that is shown is read.
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

/// Events of one process, each with a stack and an amount of a metric.
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
    /// Index of the event's thread in [`Process::threads`].
    pub thread: u32,
    /// Time of the event, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of the stack in the table; 0 and invalid numbers mean an unknown stack.
    pub stack: u32,
    /// Duration in nanoseconds; 0 for an event without duration. If an event has a duration, only
    /// the part within the time range of a query counts.
    pub lasted_ns: u64,
    /// Amount that the event adds to the metric.
    pub amount: u64,
    /// Number of samples that the event represents; 0 if it is not a sample.
    pub samples: u64,
    /// [Flags](clrscope_recording::model::Sample::flags) of a sample; 0 if the event is not a
    /// sample.
    pub flags: u32,
    /// Whether the thread is a worker thread that had no work. Such events are left out unless the
    /// query names threads.
    pub idle: bool,
    /// Index into [`Process::types`] of the event's type; 0 for none.
    pub object_type: u32,
    /// Id of the event's request, if the event's record stores it; 0 if the request is found by
    /// thread and time, or is unknown.
    pub request: u64,
}

/// Amount of a metric in one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// The row's own amount, without its callees.
    pub own: u64,
    /// Amount including all callees, recursion counted once.
    pub total: u64,
    /// Number of samples of the row; 0 if no samples were taken.
    pub samples: SampleCount,
}

/// Numbers of samples of one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// Number of samples with the row's function on top of the stack.
    pub own: u64,
    /// Number of samples with the row's function anywhere on the stack, recursion counted once.
    pub total: u64,
}

/// Wall time. Views of `calls` show it unless another metric is requested.
pub static WALL: Metric = Metric {
    name: "wall",
    title: "wall time",
    unit: Unit::Nanoseconds,
    instrument: "calls",
    exclusive: false,
    second: None,
    source: Source::Calls(Column::Wall),
    type_leaves: false,
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
    type_leaves: false,
    others: &[instrument::CPU],
};

/// Number of calls. For `[JIT]` it is the number of compilations, for suspensions the number of
/// suspensions.
pub static CALLS: Metric = Metric {
    name: "calls",
    title: "calls",
    unit: Unit::Count,
    instrument: "calls",
    exclusive: true,
    second: None,
    source: Source::Calls(Column::Calls),
    type_leaves: false,
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

    /// Whether the values come from samples. If so, rows have numbers of samples and bounds of
    /// their shares.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        !self.is_of_calls() && [instrument::CPU, instrument::WALL].contains(&self.instrument)
    }

    /// Whether the values are numbers of samples, rather than the time that samples represent.
    #[must_use]
    pub fn counts_samples(&self) -> bool {
        self.is_sampled() && self.unit == Unit::Count
    }

    /// Whether rows have a second number: the number of samples, or the number that
    /// [`second`](Self::second) names.
    pub(crate) fn counts_beside(&self) -> bool {
        self.is_sampled() || self.second.is_some()
    }

    /// The requested time between two samples of a thread in a process, in nanoseconds; `None` if
    /// the values do not come from samples.
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

    /// Whether the values belong to objects, so that views can select them by type.
    #[must_use]
    pub fn has_types(&self) -> bool {
        self.instrument == instrument::ALLOC
    }

    /// JSON keys of a row's own amount and total; `None` if rows have the columns of `calls`.
    #[must_use]
    pub const fn keys(&self) -> Option<[&'static str; 2]> {
        match self.source {
            Source::Calls(_) => None,
            Source::Stacks { keys, .. } => Some(keys),
        }
    }

    /// The metric that decides which paths are too small to be shown: this metric, or wall time if
    /// rows have no totals.
    #[must_use]
    pub fn sizes(&'static self) -> &'static Self {
        if self.exclusive { &WALL } else { self }
    }
}
