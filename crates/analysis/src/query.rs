//! The query of a report: the filters that all views share.

use std::fmt;
use std::path::PathBuf;

use clrscope_contract::request::{Glob, Pattern};
use clrscope_recording::model::{Function, Process, Thread};

use crate::metric::Metric;
use crate::request_filter::RequestFilter;
use crate::waits::TimeState;

/// Which part of a recording a view shows, and how. Default: the whole recording, with compensated
/// times, in the view's own order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Only the process with this id.
    pub pid: Option<u32>,
    /// Only processes whose command matches; see [`process_matches`](crate::process_matches).
    pub process: Option<Glob>,
    /// Only these threads; empty means all.
    pub threads: Vec<ThreadSelector>,
    /// Only functions that match one of these patterns; empty means all.
    pub functions: Vec<Pattern>,
    /// Only functions of modules (assembly names) that match one of these patterns; empty means
    /// all.
    pub modules: Vec<Glob>,
    /// Only times in these states, for metrics whose states are known; empty means all.
    pub states: Vec<TimeState>,
    /// Only these parts of the recording; empty means all. [`keep_parts`](crate::keep_parts)
    /// applies this filter before a view is computed.
    pub parts: Vec<String>,
    /// Only from this time on, in nanoseconds since the start of the run; `None` for no lower
    /// limit.
    pub since_ns: Option<u64>,
    /// Only up to this time, in nanoseconds since the start of the run; `None` for no upper limit.
    pub until_ns: Option<u64>,
    /// Maximum number of rows; in trees, maximum number of children of each node. `None` for no
    /// limit.
    pub limit: Option<usize>,
    /// Order of the rows, or of the children of a node; `None` for the view's own order.
    pub sort: Option<Sort>,
    /// Whether to show one row or tree per thread.
    pub per_thread: bool,
    /// Whether to show times as measured, including the profiler's share.
    pub raw: bool,
    /// Whether to show own code only. Other code is then folded into the own code that called it.
    pub just_my_code: bool,
    /// Whether to leave out inlined methods. Their amounts then count for the methods that they
    /// were inlined into. [`leave_inlined_out`](crate::leave_inlined_out) applies this option
    /// before a view is computed.
    pub no_inlined: bool,
    /// Kind of paths: logical or physical; `None` for the default.
    /// [`make_paths_logical`](crate::make_paths_logical) applies this option before a view is
    /// computed.
    pub paths: Option<PathKind>,
    /// How native code without names is shown; `None` for the view's default.
    pub native_code: Option<NativeCode>,
    /// Folder with symbol files, which name native functions when a recording is opened.
    pub symbols: Option<PathBuf>,
    /// Only objects whose types match one of these patterns; empty means all.
    pub types: Vec<Glob>,
    /// Ends the paths of an object metric in the objects' types: each method calls the types that
    /// it allocated, as functions of the kind `Type`, and has no own amount. Only for views and
    /// exports of whole paths.
    pub type_leaves: bool,
    /// Only requests that pass this filter.
    pub requests: RequestFilter,
    /// Metric of paths; `None` for the first recorded metric, in the order of
    /// [`METRICS`](crate::METRICS).
    pub metric: Option<&'static Metric>,
}

/// Maximum number of part names that an error lists.
const MOST_PARTS: usize = 20;

/// Kind of paths: which frame is the caller of a method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// The caller is the calling method, or for a method resumed after an `await`, the method that
    /// awaits it.
    #[default]
    Logical,
    /// The caller is the frame below the method on its thread's stack.
    Physical,
}

impl PathKind {
    /// All kinds, each with its name on the command line and a short description.
    pub const ALL: [(&'static str, &'static str, Self); 2] = [
        ("logical", "the caller of a resumed method is the method that awaits it", Self::Logical),
        ("physical", "stacks as they were on the threads, with schedulers and completions", Self::Physical),
    ];
}

/// How native functions without names are shown. Such functions are known only by library and
/// offset (`libcoreclr.so+0x1234`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum NativeCode {
    /// One frame per library: `[libcoreclr.so]` represents a chain of its functions that call each
    /// other.
    #[default]
    Libraries,
    /// One frame per function.
    Places,
}

impl NativeCode {
    /// All choices, each with its name on the command line and a short description.
    pub const ALL: [(&'static str, &'static str, Self); 2] = [
        ("libraries", "adjacent frames of a library become one, [libcoreclr.so]", Self::Libraries),
        ("places", "each is a function, libcoreclr.so+0x46dc90", Self::Places),
    ];

    /// The choice with this name; `None` for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, ..)| *name == text).map(|(.., choice)| *choice)
    }
}

/// Selects threads by number or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadSelector {
    /// The recording's own thread number, or the operating system's thread id.
    Number(u32),
    /// Only the recording's own thread number.
    Id(u32),
    /// Name or role of the thread, with `*` and `?`.
    Name(Glob),
}

impl ThreadSelector {
    /// Parses a selector. A number selects threads by either number; any other text selects them by
    /// name or role.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim().parse() {
            Ok(number) => Self::Number(number),
            Err(_) => Self::Name(Glob::new(text)),
        }
    }

    /// Whether the selector matches `thread`.
    #[must_use]
    pub fn matches(&self, thread: &Thread) -> bool {
        match self {
            Self::Number(number) => thread.id == *number || thread.os_id == *number,
            Self::Id(id) => thread.id == *id,
            Self::Name(name) => name.matches(&thread.name) || name.matches(thread.role.name()),
        }
    }
}

impl fmt::Display for ThreadSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) | Self::Id(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// Order of rows. Numbers are sorted in descending order, names in ascending order. Equal rows are
/// ordered by name, signature, module, token, process and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Own amount of the view's metric.
    Own,
    /// Total of the view's metric, callees included.
    Total,
    /// Exclusive wall time.
    Exclusive,
    /// Inclusive wall time.
    Inclusive,
    /// Wall time in calls to other functions.
    Callee,
    /// Time that the thread was suspended while the function was on top of the stack.
    Suspended,
    /// The profiler's share of the time.
    Profiler,
    /// Exclusive CPU time.
    ExclusiveCpu,
    /// Inclusive CPU time.
    InclusiveCpu,
    /// Number of calls.
    Calls,
    /// Number of activations in the deepest recursion.
    Recursion,
    /// Name, then signature.
    Name,
    /// Module, then name.
    Module,
}

impl Sort {
    /// All keys, each with its name on the command line.
    pub const ALL: [(&'static str, Self); 13] = [
        ("self", Self::Own),
        ("total", Self::Total),
        ("exclusive", Self::Exclusive),
        ("inclusive", Self::Inclusive),
        ("callee", Self::Callee),
        ("suspended", Self::Suspended),
        ("profiler", Self::Profiler),
        ("exclusive-cpu", Self::ExclusiveCpu),
        ("inclusive-cpu", Self::InclusiveCpu),
        ("calls", Self::Calls),
        ("recursion", Self::Recursion),
        ("name", Self::Name),
        ("module", Self::Module),
    ];

    /// Further names that the command line accepts: the headings of columns.
    pub const ALIASES: [(&'static str, Self); 5] = [
        ("cpu", Self::ExclusiveCpu),
        ("cpu-total", Self::InclusiveCpu),
        ("bytes", Self::Own),
        ("retained", Self::Total),
        ("objects", Self::Calls),
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, sort)| *sort == self).map_or("", |(name, _)| name)
    }

    /// The key with this name. Names of JSON columns (`exclusive_ns`) and headings of the text
    /// output (`cpu`, `cpu-total`) are also accepted.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let dashed = text.trim().replace('_', "-");
        let name = match dashed.as_str() {
            "max-recursion" => "recursion",
            other => other.strip_suffix("-ns").or(other.strip_suffix("-bytes")).unwrap_or(other),
        };
        Self::ALL.iter().chain(&Self::ALIASES).find(|(known, _)| *known == name).map(|(_, sort)| *sort)
    }
}

/// Reason why a view can't answer a query.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryProblem {
    /// The option has no meaning in this view.
    NotAvailable {
        /// The option, as on the command line.
        option: &'static str,
        /// The view.
        view: &'static str,
        /// Reason, as part of a sentence.
        why: &'static str,
    },
    /// The query matches no process of the recording.
    NoProcess {
        /// Pattern, name or option of the query.
        wanted: String,
        /// The process ids of the recording.
        known: Vec<u32>,
    },
    /// The query matches no thread.
    NoThread {
        /// Pattern, name or option of the query.
        wanted: String,
    },
    /// The view is about a function, and none was named.
    FunctionNeeded {
        /// The view.
        view: &'static str,
    },
    /// The instrument that the view shows was not recorded.
    NotRecorded {
        /// The view.
        view: &'static str,
        /// The instrument that records what the view shows.
        instrument: &'static str,
    },
    /// The requested metric was not recorded.
    MetricNotRecorded {
        /// The metric.
        metric: &'static Metric,
    },
    /// The metric comes from different instruments in the compared recordings.
    MetricOfOthers {
        /// The metric.
        metric: &'static Metric,
        /// The instruments.
        instruments: Vec<&'static str>,
    },
    /// Recordings that are compared have no metric in common.
    NoCommonMetric {
        /// Metrics that all recordings of the side before have.
        before: Vec<&'static str>,
        /// Metrics that all recordings of the side after have.
        after: Vec<&'static str>,
    },
    /// Not all calls of inlined methods were counted, so a limit on their number means nothing.
    CallsNotCounted {
        /// The pattern of the methods.
        wanted: String,
    },
    /// A requested column needs instruments that were not recorded.
    ColumnNotRecorded {
        /// Key of the column.
        column: String,
        /// Instruments that record the column's values.
        instruments: Vec<&'static str>,
    },
    /// No process has a part with one of these names.
    NoPart {
        /// The names.
        wanted: String,
        /// The names of the parts in the recording.
        known: Vec<String>,
    },
    /// The query filters requests, and no process has recorded any.
    RequestsNotRecorded,
    /// No request passes the request filters.
    NoRequest {
        /// Some names of recorded requests, the most frequent first.
        known: Vec<String>,
    },
    /// No process has a heap snapshot with this number.
    NoSnapshot {
        /// The number.
        wanted: u32,
        /// Numbers of the recorded snapshots.
        known: Vec<u32>,
    },
    /// A heap snapshot is not complete.
    SnapshotCut {
        /// Number of the snapshot.
        number: u32,
        /// Reason, as part of a sentence.
        why: String,
    },
    /// No function matches.
    NoFunction {
        /// The patterns.
        wanted: String,
        /// Functions with similar names.
        nearest: Vec<String>,
    },
    /// No assembly matches.
    NoModule {
        /// The patterns.
        wanted: String,
        /// An assembly with a similar name.
        nearest: Option<String>,
        /// The view that lists the recording's assemblies.
        lists: &'static str,
    },
}

impl fmt::Display for QueryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAvailable { option, view, why } => {
                write!(f, "{option} is not available for the view {view}: {why}")
            }
            Self::NoProcess { wanted, known } => {
                let known: Vec<String> = known.iter().map(u32::to_string).collect();
                write!(f, "no process matches {wanted}; the recording has {}", known.join(", "))
            }
            Self::NoThread { wanted } => write!(f, "no thread matches {wanted}"),
            Self::FunctionNeeded { view } => write!(f, "the view {view} needs a function"),
            Self::ColumnNotRecorded { column, instruments } => {
                let instruments = instruments.join(" or ");
                write!(f, "the column '{column}' needs the instrument {instruments}, which was not recorded")
            }
            Self::NotRecorded { view, instrument } => {
                write!(f, "the view {view} needs the instrument '{instrument}', which was not recorded")
            }
            Self::MetricNotRecorded { metric: Metric { name, instrument, others, .. } } => {
                let all: Vec<String> =
                    std::iter::once(instrument).chain(*others).map(|name| format!("'{name}'")).collect();
                let all = all.join(" or ");
                write!(f, "the metric {name} needs the instrument {all}, which did not record it")
            }
            Self::CallsNotCounted { wanted } => {
                write!(f, "methods that match '{wanted}' were inlined, and calls of inlined methods are not counted")
            }
            Self::MetricOfOthers { metric, instruments } => {
                let instruments = instruments.join(" and by ");
                write!(f, "the metric {metric} was recorded by {instruments}, whose numbers can't be compared")
            }
            Self::NoCommonMetric { before, after } => {
                let named = |all: &[&str]| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
                let (before, after) = (named(before), named(after));
                write!(f, "no metric was recorded in all of them: before {before}; after {after}")
            }
            Self::NoPart { wanted, known } if known.is_empty() => {
                write!(f, "no part is named {wanted}; the recording has none")
            }
            Self::NoPart { wanted, known } => {
                let more = match known.len().saturating_sub(MOST_PARTS) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let named = known.iter().take(MOST_PARTS).map(String::as_str).collect::<Vec<_>>().join(", ");
                write!(f, "no part is named {wanted}; the recording has {named}{more}")
            }
            Self::RequestsNotRecorded => {
                write!(f, "filtering by request needs the instrument 'requests', which was not recorded")
            }
            Self::NoRequest { known } if known.is_empty() => write!(f, "the recording has no requests"),
            Self::NoRequest { known } => {
                write!(f, "no request matches these options; the recording has {}", known.join(", "))
            }
            Self::NoSnapshot { wanted, known } => {
                let known: Vec<String> = known.iter().map(u32::to_string).collect();
                write!(f, "no snapshot of the heap has the number {wanted}; the recording has {}", known.join(", "))
            }
            Self::SnapshotCut { number, why } => write!(f, "snapshot {number} of the heap is not complete: {why}"),
            Self::NoFunction { wanted, .. } => write!(f, "no recorded function matches {wanted}"),
            Self::NoModule { wanted, lists, .. } => {
                let what = if *lists == "coverage" { "line" } else { "function" };
                write!(f, "no recorded {what} is in an assembly that matches {wanted}")
            }
        }
    }
}

impl std::error::Error for QueryProblem {}

impl Query {
    /// Fails if the query has filters that a view of sums over the whole run can't apply, or
    /// filters that can't be applied to trees that were built while the program ran.
    pub(crate) fn whole_run(&self, view: &'static str) -> Result<(), QueryProblem> {
        if self.just_my_code {
            let why = "own code was chosen when the program ran: give the option to 'clrscope run', or record samples";
            return Err(QueryProblem::NotAvailable { option: "--just-my-code", view, why });
        }
        if self.no_inlined {
            let why = "calls of inlined methods are not counted: only samples have frames for them";
            return Err(QueryProblem::NotAvailable { option: "--no-inlined", view, why });
        }
        if self.paths.is_some() {
            let why = "its trees always have the actual callers";
            return Err(QueryProblem::NotAvailable { option: "--paths", view, why });
        }
        let why = "its numbers are totals of the whole run";
        for (given, option) in [(self.since_ns, "--since"), (self.until_ns, "--until")] {
            if given.is_some() {
                return Err(QueryProblem::NotAvailable { option, view, why });
            }
        }
        self.all_requests(view, "its numbers are totals of all requests")
    }

    /// Fails if the query filters requests. For views whose data is not attributed to requests.
    pub(crate) fn all_requests(&self, view: &'static str, why: &'static str) -> Result<(), QueryProblem> {
        match self.requests.first_option() {
            Some(option) => Err(QueryProblem::NotAvailable { option, view, why }),
            None => Ok(()),
        }
    }

    /// The order of rows of paths: the query's order, or `first` if the query has none. If rows
    /// have only the metric, exclusive and inclusive mean its own amount and its total. Fails for
    /// keys that such rows lack.
    pub(crate) fn order(&self, metric: &Metric, view: &'static str, first: Sort) -> Result<Sort, QueryProblem> {
        let asked = self.sort.unwrap_or(first);
        if metric.is_of_calls() {
            return Ok(asked);
        }
        match asked {
            Sort::Exclusive => Ok(Sort::Own),
            Sort::Inclusive => Ok(Sort::Total),
            Sort::Own | Sort::Total | Sort::Recursion | Sort::Name | Sort::Module => Ok(asked),
            _ => {
                let why = "rows of this metric can be ordered by self, total, recursion, name or module";
                Err(QueryProblem::NotAvailable { option: "this --sort", view, why })
            }
        }
    }

    /// Fails if the query has a metric. For views whose rows have none.
    pub(crate) fn without_metric(&self, view: &'static str) -> Result<(), QueryProblem> {
        let why = "its rows have no metric to choose";
        if self.metric.is_some() {
            return Err(QueryProblem::NotAvailable { option: "--metric", view, why });
        }
        Ok(())
    }

    /// Fails if the query has `per_thread`. For views whose rows are sums over threads.
    pub(crate) fn merged_threads(&self, view: &'static str) -> Result<(), QueryProblem> {
        let why = "it adds up all threads; choose one with --thread";
        if self.per_thread { Err(QueryProblem::NotAvailable { option: "--per-thread", view, why }) } else { Ok(()) }
    }

    /// How native code without names is shown: the query's choice, or the views' default if the
    /// query has none.
    pub(crate) fn native_code(&self) -> NativeCode {
        self.native_code.unwrap_or_default()
    }

    /// Truncates the rows at the limit and returns how many were removed.
    pub(crate) fn cut<T>(&self, rows: &mut Vec<T>) -> usize {
        let before = rows.len();
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        before - rows.len()
    }

    /// Whether an event in `process` at `time_ns` is in the query's time range.
    pub(crate) fn wants_time(&self, process: &Process, time_ns: u64) -> bool {
        process.shows(time_ns) && self.wants_span(time_ns, time_ns)
    }

    /// Returns how much of the time from `first_ns` to `last_ns` in `process` lies in the query's
    /// time range, in nanoseconds; `None` if the two do not touch.
    pub(crate) fn wanted_ns(&self, process: &Process, first_ns: u64, last_ns: u64) -> Option<u64> {
        if !self.wants_span(first_ns, last_ns) {
            return None;
        }
        let first = first_ns.max(self.since_ns.unwrap_or(first_ns)).min(last_ns);
        let last = last_ns.min(self.until_ns.unwrap_or(last_ns)).max(first);
        let whole = [(first, last)];
        let shown = process.shown.as_deref().unwrap_or(&whole).iter();
        let touched = shown.filter(|(since, until)| *until >= first && *since <= last);
        touched.map(|&(since, until)| last.min(until) - first.max(since)).reduce(|sum, more| sum + more)
    }

    /// Whether the time from `first_ns` to `last_ns` touches the query's time range.
    pub(crate) fn wants_span(&self, first_ns: u64, last_ns: u64) -> bool {
        self.since_ns.is_none_or(|since| last_ns >= since) && self.until_ns.is_none_or(|until| first_ns <= until)
    }

    /// Whether events on `thread` are wanted; `None` represents an unknown thread.
    pub(crate) fn wants_thread_if_known(&self, thread: Option<&Thread>) -> bool {
        thread.map_or(self.threads.is_empty(), |thread| self.wants_thread(thread))
    }

    /// Whether `thread` is wanted.
    pub(crate) fn wants_thread(&self, thread: &Thread) -> bool {
        self.threads.is_empty() || self.threads.iter().any(|s| s.matches(thread))
    }

    /// Whether `function` of `module` is wanted.
    pub(crate) fn wants_function(&self, module: &str, function: &Function) -> bool {
        self.wants_method(module, &function.name, &function.signature)
    }

    /// Whether a method of `module` with this name and signature is wanted.
    pub(crate) fn wants_method(&self, module: &str, name: &str, signature: &str) -> bool {
        let is_named = |pattern: &Pattern| pattern.matches(module, name, signature);
        (self.functions.is_empty() || self.functions.iter().any(is_named)) && Glob::any_matches(&self.modules, module)
    }

    /// Whether the query excludes some functions.
    pub(crate) fn filters_functions(&self) -> bool {
        !self.functions.is_empty() || !self.modules.is_empty()
    }
}
