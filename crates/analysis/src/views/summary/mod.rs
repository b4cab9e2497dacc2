//! The view `summary`: findings, own functions and framework functions by work, and the rest of the
//! time.

mod allocating;
mod collections;
mod contended;
mod cpu_places;
mod elsewhere;
mod finding;
mod findings;
mod pool_times;
mod resident;
mod sampled;
mod slow_awaits;
mod snapshots;
mod unused;
mod wait_groups;
mod waiting;

use std::cmp::{Ordering, Reverse};

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{FunctionKind, Process, Recording};
use rustc_hash::FxHashMap;

use super::allocations::Allocations;
use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use super::rows::FunctionRow;
use crate::catalog::Slot;
use crate::function::{FunctionRef, is_own, is_profilers};
use crate::metric::Metric;
use crate::owners::Owners;
use crate::parts::{queried_ns, ran_on};
use crate::paths::{self, Paths};
use crate::programs::own_programs;
use crate::query::{Query, QueryProblem, Sort};
use crate::sampling::{HOOK_MARGIN, Steps, sampled_bounds};
use crate::waits::WaitKind;

pub use allocating::findings_about_allocations;
pub use collections::findings_about_collections;
use cpu_places::CpuPlaces;
pub use elsewhere::{Elsewhere, ElsewhereKind, FrequentExceptions};
pub use finding::{Finding, FindingFunction, FindingKind, FindingPlace};
use findings::Evidence;
pub use pool_times::PoolStep;
pub use sampled::{KindRow, SampledThreads, StateRow};

/// A function of the program itself, with the framework code that it calls.
#[derive(Debug, Clone, Copy)]
pub struct OwnRow<'a> {
    /// The function's own row, without the framework code that it calls.
    pub row: FunctionRow<'a>,
    /// Work of the function and of all framework code below it, up to the next own function. It is
    /// CPU time, or wall time if CPU time was not measured.
    pub work_ns: u64,
    /// 95 % bounds of that work: from the clock of `calls` and the cost of its hooks, or for
    /// sampled work, from its share of all samples.
    pub work_bounds_ns: (u64, u64),
    /// Time that threads waited below the function, for locks, timeouts, files, sockets, tasks and
    /// events.
    pub waited_ns: u64,
    /// The callees with the largest amounts of the metric, and these amounts. Only the first
    /// functions by samples have them.
    pub calls: [Option<(FunctionRef<'a>, u64)>; sampled::MOST_CALLEES],
}

/// Time that threads waited for one kind of thing, below one own function.
#[derive(Debug, Clone, Copy)]
struct OwnWait<'a> {
    function: Option<FunctionRef<'a>>,
    kind: WaitKind,
    ns: u64,
}

/// Waits and exceptions below own functions. The function is `None` if no own function is on the
/// stack.
#[derive(Debug, Default)]
struct OwnSums<'a> {
    waits: Vec<OwnWait<'a>>,
    /// Exceptions that were created.
    exceptions: Vec<(Option<FunctionRef<'a>>, u64)>,
}

/// The view `summary`.
#[derive(Debug, Clone, Default)]
pub struct Summary<'a> {
    /// Findings, the most important first.
    pub findings: Vec<Finding>,
    /// The first ten functions by exclusive time, or in the query's order.
    pub top: Vec<FunctionRow<'a>>,
    /// Number of functions that were called.
    pub functions: usize,
    /// The first own functions, ordered by work.
    pub own: Vec<OwnRow<'a>>,
    /// Number of own functions that were called.
    pub own_functions: usize,
    /// The first functions of the framework, ordered by work.
    pub framework: Vec<FunctionRow<'a>>,
    /// Number of functions of the framework that were called.
    pub framework_functions: usize,
    /// Time that threads did not spend on the work of functions: waits by kind, compilation,
    /// suspensions, collections, exceptions.
    pub elsewhere: Vec<Elsewhere<'a>>,
    /// Work by kind; empty if no samples of CPU time were taken.
    pub kinds: Vec<KindRow>,
    /// Thread time by state; empty if no samples of `wall` were taken.
    pub states: Vec<StateRow<'a>>,
    /// Threads; empty unless only samples were recorded.
    pub threads: SampledThreads<'a>,
    /// Allocations of all types, the most bytes first; `None` if they were not recorded.
    pub allocated: Option<Allocations<'a>>,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// Number of rows in [`Summary::top`] and [`Summary::own`] unless the query has a limit.
const TOP: usize = 10;
/// Number of rows in [`Summary::framework`] unless the query has a limit.
const TOP_FRAMEWORK: usize = 5;

/// The summary of the selected part of a recording.
///
/// # Errors
/// When the query matches no process or thread, or the query asks for a part of the time or for
/// rows per thread.
pub fn summary<'a>(recording: &'a Recording, query: &Query) -> Result<Summary<'a>, QueryProblem> {
    query.without_metric("summary")?;
    query.merged_threads("summary")?;
    let metric = Metric::of_samples_or_calls(recording, query, "summary")?;
    let order = query.order(metric, "summary", Sort::Own)?;
    let (mut rows, mut own, mut below, mut totals) = (Vec::new(), Vec::new(), OwnSums::default(), Vec::new());
    let (mut threads, mut sampled) = (Vec::new(), Vec::new());
    let paths = paths::select(recording, query, metric)?;
    let programs = own_programs(recording);
    let is_users = |process: &Process| programs.iter().any(|own| std::ptr::eq(*own, process));
    // Code of the SDK's tools is not own code if a program of the user was recorded as well.
    let has_users = paths.iter().any(|paths| is_users(paths.process));
    let has_states = metric.instrument == instrument::WALL;
    for paths in paths {
        let (sums, owners) = if has_states {
            let sums = ProcessSums::with_tiers(recording, &paths, query);
            let owners = sampled::owners(paths.process, &sums.catalog, query);
            (sums, owners)
        } else {
            ProcessSums::with_owners(recording, &paths, query)
        };
        totals.push((paths.process, sums.totals));
        let wanted = sums.catalog.wanted(query);
        let all: Vec<FunctionRow<'a>> = sums.rows(&wanted).collect();
        let clock = Clock::new(&paths, query);
        let is_own = !has_users || is_users(paths.process);
        own.extend(if is_own { own_rows(&sums, &owners, &wanted, &clock) } else { Vec::new() });
        below.add(&sums, &owners, is_own);
        rows.extend(all);
        if metric.is_sampled() {
            threads.extend(sums.threads);
            sampled.push((paths, sums.catalog));
        }
    }
    let conditions = conditions_of(recording, query, metric, &totals);
    rows.sort_by(|a, b| a.compare(b, Sort::Own));
    own.sort_by(compare_own);
    let own_functions = own.len();
    // Rows without work are noise, unless there are no others.
    let worked = own.iter().filter(|row| row.work_ns > 0 || row.waited_ns > 0).count();
    own.truncate(if worked > 0 { worked } else { own_functions });
    sampled::add_callees(&mut own, &sampled, query);
    let is_theirs = |row: &&FunctionRow<'_>| is_code(row) && !is_own(&row.function) && !is_profilers(&row.function);
    let mut framework: Vec<_> = rows.iter().filter(is_theirs).copied().collect();
    let by_work = if conditions.totals.cpu_ns.is_some() { Sort::ExclusiveCpu } else { Sort::Own };
    framework.sort_by(|a, b| a.compare(b, by_work));
    let places = CpuPlaces::read(recording, query)?;
    let mut view = Summary {
        functions: rows.len(),
        own_functions,
        framework_functions: framework.len(),
        // Where the states of threads are known, they show the waits.
        elsewhere: elsewhere::elsewhere(recording, query, &rows, &below, !has_states, &conditions),
        kinds: places.kinds(),
        states: sampled::states(recording, query)?,
        threads: SampledThreads::from_rows(threads),
        allocated: allocating::recorded(recording, query)?,
        own,
        framework,
        conditions,
        ..Summary::default()
    };
    let (waits, run_ns) = (below.waits.as_slice(), queried_ns(recording, query));
    let is_filtered = query.filters_functions();
    let again = again(recording);
    let evidence = Evidence { view: &view, rows: &rows, waits, places, run_ns, is_filtered, again };
    view.findings = ranked(&evidence, recording, query)?;
    if query.sort.is_some() {
        rows.sort_by(|a, b| a.compare(b, order));
    }
    rows.truncate(query.limit.unwrap_or(TOP));
    view.top = rows;
    view.own.truncate(query.limit.unwrap_or(TOP));
    view.framework.truncate(query.limit.unwrap_or(TOP_FRAMEWORK));
    Ok(view)
}

/// The command with which the user records more of the same program: `attach` if the program kept
/// running after the recording, else `run`.
fn again(recording: &Recording) -> &'static str {
    if ran_on(recording) { "clrscope attach PID" } else { "clrscope run" }
}

/// The sentences of a summary over all recorded data, ordered by cost.
fn ranked(evidence: &Evidence<'_, '_>, recording: &Recording, query: &Query) -> Result<Vec<Finding>, QueryProblem> {
    let Evidence { view, run_ns, is_filtered, .. } = *evidence;
    let mut found = findings::findings(evidence);
    if !is_filtered {
        found.extend(waiting::found(recording, query)?);
        // Samples of `wall` have sentences about the same waits.
        if !findings::has(view, instrument::WALL) {
            found.extend(contended::found(recording, query));
        }
    }
    found.extend(unused::found(evidence, recording, query));
    found.extend(collections::found(recording, query));
    found.extend(allocating::found(view.allocated.as_ref(), run_ns));
    found.extend(snapshots::found(recording, query));
    found.extend(resident::found(recording, query));
    if !is_filtered {
        let others = found.iter().any(|found| found.cost >= waiting::MUCH);
        found.extend(slow_awaits::found(recording, query, others));
    }
    // Sentences with equal costs stay in this order.
    found.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    Ok(found)
}

/// Whether a row belongs to a function and not to the runtime.
fn is_code(row: &FunctionRow<'_>) -> bool {
    matches!(row.function.kind(), FunctionKind::Managed | FunctionKind::Native)
}

/// The clock of `calls` in a process.
struct Clock {
    step_ns: f64,
    raw: bool,
}

impl Clock {
    fn new(paths: &Paths<'_>, query: &Query) -> Self {
        let calls = paths.process.calls.as_ref().filter(|_| paths.metric.is_of_calls());
        let step_ns = calls.map_or(0.0, |calls| {
            let steps = Steps::from_info(calls);
            if calls.cpu_measured { steps.cpu_ns } else { steps.wall_ns }
        });
        Self { step_ns, raw: query.raw }
    }

    /// The measured time of a function minus the cost of hooks, which is increased by `margin`.
    fn left(&self, measured: u64, hooks_ns: u64, margin: f64) -> f64 {
        if self.raw || measured == 0 { 1.0 } else { (1.0 - hooks_ns as f64 * margin / measured as f64).max(0.0) }
    }

    /// Bounds of work: `low` is the work if hooks cost most, `high` if they cost least.
    fn bounds(&self, low: u64, high: u64) -> (u64, u64) {
        (sampled_bounds(low as f64, self.step_ns).0 as u64, sampled_bounds(high as f64, self.step_ns).1 as u64)
    }
}

/// Own functions with the framework code below them.
fn own_rows<'a>(sums: &ProcessSums<'a>, owners: &Owners, wanted: &[bool], clock: &Clock) -> Vec<OwnRow<'a>> {
    let keeps = |slot: Slot, measured: u64| match sums.row_of(slot) {
        Some(row) if measured > 0 => (row.work_ns() as f64 / measured as f64).min(1.0),
        _ => 1.0,
    };
    let work = owners.work_by_owner(keeps);
    let hooks = |slot: Slot| sums.row_of(slot).map(|row| row.times).unwrap_or_default();
    let low = owners.work_by_owner(|slot, all| clock.left(all, hooks(slot).profiler_high_ns, 1.0 + HOOK_MARGIN));
    let high = owners.work_by_owner(|slot, all| clock.left(all, hooks(slot).profiler_low_ns, 1.0 - HOOK_MARGIN));
    let mut waited: FxHashMap<Slot, u64> = FxHashMap::default();
    let is_wait = |kind| !matches!(kind, WaitKind::Idle | WaitKind::Other);
    owners.waits().filter(|(_, kind, _)| is_wait(*kind)).for_each(|(owner, _, ns)| {
        let sum = waited.entry(owner).or_default();
        *sum = sum.saturating_add(ns);
    });
    let slots = (0..sums.catalog.len() as Slot).filter(|&slot| wanted.get(slot as usize) == Some(&true));
    let row = |slot: Slot| {
        let row = sums.row_of(slot).filter(|row| is_own(&row.function))?;
        let of = |sums: &FxHashMap<Slot, u64>| sums.get(&slot).copied().unwrap_or(0);
        let calls = [None; sampled::MOST_CALLEES];
        let work_bounds_ns = clock.bounds(of(&low).min(of(&work)), of(&high).max(of(&work)));
        Some(OwnRow { row, work_ns: of(&work), work_bounds_ns, waited_ns: of(&waited), calls })
    };
    slots.filter_map(row).collect()
}

/// Orders by most work, then by longest waits.
fn compare_own(a: &OwnRow<'_>, b: &OwnRow<'_>) -> Ordering {
    (Reverse(a.work_ns), Reverse(a.waited_ns))
        .cmp(&(Reverse(b.work_ns), Reverse(b.waited_ns)))
        .then_with(|| a.row.compare(&b.row, Sort::Name))
}

impl<'a> OwnSums<'a> {
    /// Adds the waits and exceptions of a process. If its code is not the user's own, they are
    /// added without functions.
    fn add(&mut self, sums: &ProcessSums<'a>, owners: &Owners, is_own: bool) {
        let function = |owner| (is_own && owner != sums.catalog.root()).then(|| sums.catalog.function(owner));
        self.waits.extend(owners.waits().map(|(owner, kind, ns)| OwnWait { function: function(owner), kind, ns }));
        self.exceptions.extend(owners.exceptions().map(|(owner, count)| (function(owner), count)));
    }
}
