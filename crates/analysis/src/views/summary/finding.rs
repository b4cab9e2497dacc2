//! A sentence of the summary, with data for programs that process the summary.

use super::pool_times::PoolStep;
use crate::code_place::CodePlace;
use crate::function::FunctionRef;
use crate::sampling::share_bounds;

/// Kind of problem that a sentence reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// At least as many threads of the pool are blocked as there are processors.
    PoolStarved,
    /// Several threads wait for a lock at the same time.
    LockConvoy,
    /// Threads wait for something.
    Wait,
    /// Async methods wait for something.
    Await,
    /// Code uses CPU time.
    Cpu,
    /// Exceptions are thrown.
    Exceptions,
    /// One function was called most often.
    Calls,
    /// Work of the runtime: compilation, loading of types, suspension.
    Runtime,
    /// Garbage collections.
    Gc,
    /// Allocations.
    Allocation,
    /// Memory grows from one collection to the next, or from one heap snapshot to the next.
    GrowingHeap,
    /// Contents of the heap.
    Heap,
    /// The profiler's own work.
    Profiler,
    /// The recording lacks data.
    Recording,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::PoolStarved,
        Self::LockConvoy,
        Self::Wait,
        Self::Await,
        Self::Cpu,
        Self::Exceptions,
        Self::Calls,
        Self::Runtime,
        Self::Gc,
        Self::Allocation,
        Self::GrowingHeap,
        Self::Heap,
        Self::Profiler,
        Self::Recording,
    ];

    /// The meaning of sentences of this kind, in words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::PoolStarved => "as many threads of the pool are blocked as there are processors, or more",
            Self::LockConvoy => "several threads at once wait for a lock",
            Self::Wait => "threads wait",
            Self::Await => "async methods wait",
            Self::Cpu => "code uses CPU time",
            Self::Exceptions => "exceptions are thrown",
            Self::Calls => "a function is called often or takes long",
            Self::Runtime => "the runtime compiles, loads types or suspends threads",
            Self::Gc => "garbage collections",
            Self::Allocation => "memory is allocated",
            Self::GrowingHeap => "memory grows from one collection, or one snapshot of the heap, to the next",
            Self::Heap => "contents of the heap",
            Self::Profiler => "the profiler's own work",
            Self::Recording => "data that the recording lacks",
        }
    }

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PoolStarved => "pool-starved",
            Self::LockConvoy => "lock-convoy",
            Self::Wait => "wait",
            Self::Await => "await",
            Self::Cpu => "cpu",
            Self::Exceptions => "exceptions",
            Self::Calls => "calls",
            Self::Runtime => "runtime",
            Self::Gc => "gc",
            Self::Allocation => "allocation",
            Self::GrowingHeap => "growing-heap",
            Self::Heap => "heap",
            Self::Profiler => "profiler",
            Self::Recording => "recording",
        }
    }
}

/// One sentence of the summary.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// Kind of problem that the sentence reports.
    pub kind: FindingKind,
    /// Average number of threads that the problem occupies over the shown time: 1 means one thread
    /// all the time. Sentences are ordered by this cost. 0 if the sentence reports no problem, or
    /// if the time is not known.
    pub cost: f64,
    /// The share that the sentence mentions, 0 to 1.
    pub share: f64,
    /// 95 % bounds of the share; both equal it if it is exact. A sentence that needs a minimum
    /// share appears only if the lower bound reaches it.
    pub bounds: (f64, f64),
    /// The function that the sentence names; `None` if it names none.
    pub function: Option<FindingFunction>,
    /// Whether the sentence is about threads that sleep.
    pub is_sleep: bool,
    /// Name of the metric that the finding is based on.
    pub metric: Option<&'static str>,
    /// Options of `clrscope report` that show more about the sentence.
    pub report: Option<String>,
    /// Size of the thread pool and length of its queue over time; empty if the sentence is not
    /// about the pool.
    pub pool: Vec<PoolStep>,
}

/// A function that a sentence names, with the data to look up its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingFunction {
    /// Name of the function: `Namespace.Type::Method`.
    pub name: String,
    /// Path of the assembly's file.
    pub module_path: String,
    /// Metadata token of the method in that assembly.
    pub token: u32,
    /// Location in the function's code that the sentence is about; `None` for the whole function.
    pub place: Option<FindingPlace>,
}

/// A code location like [`CodePlace`], with owned data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingPlace {
    place: CodePlace<'static>,
    callee: Option<String>,
    /// Text between the sentence and the source line.
    pub lead: &'static str,
}

/// Text that stands before the line with the largest part.
pub(super) const MOST_AT: &str = ", the most at ";

impl FindingPlace {
    /// Creates a place. `lead` is the text before its line.
    pub(super) fn new(place: CodePlace<'_>, lead: &'static str) -> Self {
        let callee = place.callee.map(str::to_owned);
        Self { place: CodePlace { callee: None, ..place }, callee, lead }
    }

    /// The location without its text.
    #[must_use]
    pub fn code_place(&self) -> CodePlace<'_> {
        CodePlace { callee: self.callee.as_deref(), ..self.place }
    }
}

impl Finding {
    /// Creates a sentence about a share that was measured completely.
    #[must_use]
    pub fn exact(kind: FindingKind, text: String, share: f64) -> Self {
        let (bounds, cost, is_sleep) = ((share, share), 0.0, false);
        let pool = Vec::new();
        Self { text, kind, cost, share, bounds, function: None, is_sleep, metric: None, report: None, pool }
    }

    /// Creates a sentence about a part of the whole, with bounds.
    pub(super) fn with_share(kind: FindingKind, text: String, part: Part) -> Self {
        Self { bounds: part.bounds(), ..Self::exact(kind, text, part.share) }
    }

    /// Adds the function that the sentence names.
    #[must_use]
    pub(super) fn about(self, function: &FunctionRef<'_>) -> Self {
        self.names(function, None)
    }

    /// Adds the function that the sentence names, if it is known.
    #[must_use]
    pub(super) fn about_known(self, function: Option<&FunctionRef<'_>>) -> Self {
        match function {
            Some(function) => self.about(function),
            None => self,
        }
    }

    /// Adds the function that the sentence names, and a place in its code.
    #[must_use]
    pub(super) fn at(self, function: &FunctionRef<'_>, place: FindingPlace) -> Self {
        self.names(function, Some(place))
    }

    /// Adds the function that the sentence names. If a place in its code is known, adds the place
    /// too, with the text before its line.
    #[must_use]
    pub(super) fn at_known(self, function: &FunctionRef<'_>, place: Option<CodePlace<'_>>, lead: &'static str) -> Self {
        self.names(function, place.map(|place| FindingPlace::new(place, lead)))
    }

    /// Sets the average number of threads that the problem occupies.
    #[must_use]
    pub(super) fn costs(self, threads: f64) -> Self {
        Self { cost: threads, ..self }
    }

    fn names(self, function: &FunctionRef<'_>, place: Option<FindingPlace>) -> Self {
        let function = FindingFunction {
            name: function.name().to_owned(),
            module_path: function.module.path.clone(),
            token: function.token(),
            place,
        };
        Self { function: Some(function), ..self }
    }

    /// Sets the metric that the finding is based on.
    #[must_use]
    pub(super) fn by(self, metric: &'static str) -> Self {
        Self { metric: Some(metric), ..self }
    }

    /// Sets the options of `clrscope report` that show more.
    #[must_use]
    pub(super) fn shown_by(self, options: impl Into<String>) -> Self {
        Self { report: Some(options.into()), ..self }
    }

    /// Sets options that show the callers of the function, if the sentence names one.
    #[must_use]
    pub(super) fn shown_by_callers(self) -> Self {
        // Code without names appears as its library, `[libcoreclr.so]`, and as a pattern that would
        // match a whole module.
        let named = self.function.as_ref().filter(|function| !function.name.starts_with('['));
        let options = named
            .zip(self.metric)
            .map(|(function, metric)| format!("--view callers --function '{}' --metric {metric}", function.name));
        Self { report: options.or(self.report), ..self }
    }
}

/// A part of a whole that was estimated from samples, with 95 % bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) share: f64,
    low: f64,
    high: f64,
}

impl Part {
    /// The part of `all` that an amount with bounds makes up.
    pub(super) fn between(amount: u64, (low, high): (u64, u64), all: u64) -> Self {
        Self { share: part(amount, all), low: part(low.min(amount), all), high: part(high.max(amount), all) }
    }

    /// A share that was estimated from `samples` samples.
    pub(super) fn of_samples(share: f64, samples: u64) -> Self {
        let (low, high) = share_bounds(share, samples);
        Self { share, low, high }
    }

    /// A share that is known exactly.
    pub(super) fn exact(share: f64) -> Self {
        Self { share, low: share, high: share }
    }

    /// Bounds of the share.
    pub(super) fn bounds(self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether the lower bound of the part reaches `least`.
    pub(super) fn is_surely(self, least: f64) -> bool {
        self.low >= least && self.low > 0.0
    }
}

/// Amount per second over `run_ns`.
pub(super) fn per_second(amount: u64, run_ns: u64) -> f64 {
    amount as f64 * 1e9 / run_ns.max(1) as f64
}

/// `of` as a part of `all`, at most 1.
pub(super) fn part(of: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { (of as f64 / all as f64).min(1.0) }
}
