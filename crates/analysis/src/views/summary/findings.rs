//! Sentences of the summary.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{FunctionKind, Tier};

use super::cpu_places::CpuPlaces;
use super::elsewhere::ElsewhereKind;
use super::finding::{MOST_AT, Part, part, per_second};
use super::{Finding, FindingKind, KindRow, OwnWait, Summary, is_code};
use crate::function::{FunctionRef, is_own};
use crate::metric::CALLS;
use crate::numbers::{number, percent, time};
use crate::query::Sort;
use crate::samples::{SampleKind, kind_of_function};
use crate::sampling::{Steps, sampled_bounds};
use crate::views::rows::FunctionRow;
use crate::waits::{WaitKind, wait_kind};

/// A function's part of all work, with bounds computed from `calls`.
fn part_of_work(view: &Summary<'_>, amount: u64, bounds: (u64, u64)) -> Part {
    let (all, _) = all_work(view);
    match view.conditions.metric.is_sampled() {
        true => Part::of_samples(part(amount, all), view.conditions.samples),
        false => Part::between(amount, bounds, all),
    }
}

/// Bounds of a function's own work, if `calls` measured it.
fn bounds_of_work(row: &FunctionRow<'_>) -> (u64, u64) {
    row.times.exclusive_cpu_bounds_ns.unwrap_or(row.times.exclusive_bounds_ns)
}

/// Share of CPU time or of calls that is worth a sentence.
const MUCH: f64 = 0.05;
/// Share of CPU time that counts as most of it.
const MOST: f64 = 0.5;
/// The core library, whose methods are at the bottom of every thread's stack.
const CORE_LIBRARY: &str = "System.Private.CoreLib";
/// Minimum use of one processor for a sentence about code. In a nearly idle program, even the
/// busiest function is not worth a sentence.
const MUCH_OF_PROCESSOR: f64 = 0.05;
/// Number of exceptions per second that is worth a sentence.
const MANY_PER_SECOND: f64 = 100.0;
/// Cost of throwing and catching an exception, nanoseconds. Used only to order sentences. Measured
/// with two frames between throw and catch: 10 us on .NET 8, 2 to 3 us on .NET 9 and 10.
const THROW_NS: f64 = 10_000.0;
/// Waiting time below one function, as a share of the run, that is worth a sentence. It is low,
/// because the waits of a service's requests are a small part of the time that the service runs.
const MUCH_WAITED: f64 = 0.02;
/// Share of CPU time in unoptimised code that is worth a sentence. It is not low, because each
/// program starts with some unoptimised code.
const MUCH_UNOPTIMISED: f64 = 0.10;
/// Number of exceptions that is worth a sentence.
const MANY_EXCEPTIONS: u64 = 100;

/// The data that sentences are based on.
pub(super) struct Evidence<'v, 'a> {
    pub(super) view: &'v Summary<'a>,
    /// All rows of functions.
    pub(super) rows: &'v [FunctionRow<'a>],
    /// Waits by the names of functions.
    pub(super) waits: &'v [OwnWait<'a>],
    /// Places in own code where CPU time was spent.
    pub(super) places: CpuPlaces<'a>,
    /// Length of the shown time, in nanoseconds.
    pub(super) run_ns: u64,
    /// Whether the query selects only some functions.
    pub(super) is_filtered: bool,
    /// The command with which the user records more of the same program.
    pub(super) again: &'static str,
}

/// The sentences. Sentences about the program come first. Waits of idle threads get no sentence.
pub(super) fn findings(evidence: &Evidence<'_, '_>) -> Vec<Finding> {
    let Evidence { view, rows, run_ns, .. } = *evidence;
    let mut found = Vec::new();
    let libraries = busiest_library(evidence);
    let is_said = libraries.is_some();
    found.extend(libraries);
    found.extend(busiest_own(evidence).or_else(|| (!is_said).then(|| busiest(evidence)).flatten()));
    found.extend([WaitKind::Lock, WaitKind::Sleep].into_iter().filter_map(|kind| longest_wait(evidence, kind)));
    found.extend(most_thrown(view, run_ns).or_else(|| most_made(evidence)));
    found.extend(most_called(view, rows));
    if !evidence.is_filtered {
        found.extend(most_by_kind(evidence));
        found.extend(unoptimised(view, rows));
        found.extend(runtime(view));
    }
    found
}

impl Evidence<'_, '_> {
    /// Converts a time into an average number of threads.
    fn threads(&self, ns: u64) -> f64 {
        ns as f64 / self.run_ns.max(1) as f64
    }

    /// Whether an amount of work is worth a sentence, regardless of its share.
    fn is_much_work(&self, work_ns: u64) -> bool {
        !self.view.conditions.metric.is_sampled() || self.threads(work_ns) >= MUCH_OF_PROCESSOR
    }

    /// A sentence about the work of a function.
    fn of_work(&self, text: String, part: Part, function: &FunctionRef<'_>, work_ns: u64) -> Option<Finding> {
        let found = Finding::with_share(FindingKind::Cpu, text, part).costs(self.threads(work_ns));
        let metric = self.view.conditions.metric.name;
        self.is_much_work(work_ns).then(|| found.about(function).by(metric).shown_by_callers())
    }
}

/// The whole that shares of work refer to, and its name in a sentence.
fn all_work(view: &Summary<'_>) -> (u64, &'static str) {
    let conditions = &view.conditions;
    let is_cpu = conditions.totals.cpu_ns.is_some() || conditions.metric.instrument == instrument::CPU;
    (conditions.work_ns(), if is_cpu { "CPU time" } else { "time" })
}

/// The own function with the most work, summed over its instantiations. Its work includes the
/// framework code below it.
fn busiest_own(evidence: &Evidence<'_, '_>) -> Option<Finding> {
    let view = evidence.view;
    let mut work: BTreeMap<(&str, Cow<'_, str>), (u64, u64, u64)> = BTreeMap::new();
    for own in &view.own {
        let function = &own.row.function;
        let sum = work.entry((function.module(), function.label())).or_default();
        sum.0 = sum.0.saturating_add(own.work_ns);
        sum.1 = sum.1.saturating_add(own.work_bounds_ns.0);
        sum.2 = sum.2.saturating_add(own.work_bounds_ns.1);
    }
    // The first of equal functions.
    let ((module, name), (work, low, high)) = work.iter().rev().max_by_key(|(_, work)| work.0)?;
    let is_it = |function: &FunctionRef<'_>| function.module() == *module && function.label() == *name;
    let function = view.own.iter().map(|own| own.row.function).find(is_it)?;
    let (_, what) = all_work(view);
    let part = part_of_work(view, *work, (*low, *high));
    let text = format!("{name} and the framework code that it calls used {} of the {what}", percent(part.share));
    // Collections and exceptions below the function have sentences of their own.
    let others_ns = work.saturating_sub(evidence.places.apart_from_work_ns(&function));
    let found = part.is_surely(MUCH).then(|| evidence.of_work(text, part, &function, others_ns)).flatten()?;
    let place = evidence.places.busiest_place(&function);
    Some(found.at_known(&function, place, MOST_AT))
}

/// The innermost library function below which most of the CPU time was spent, if own code and its
/// callees used less. Programs whose threads start in a library do nearly all work below that
/// library. Methods of the core library are ignored, because they run all threads.
fn busiest_library(evidence: &Evidence<'_, '_>) -> Option<Finding> {
    let Evidence { view, rows, .. } = *evidence;
    if view.conditions.metric.instrument != instrument::CPU {
        return None;
    }
    let (all, what) = all_work(view);
    let own = view.own.iter().fold(0_u64, |sum, row| sum.saturating_add(row.work_ns));
    let is_of_library = |row: &&FunctionRow<'_>| {
        let function = &row.function;
        function.kind() == FunctionKind::Managed && !is_own(function) && function.module() != CORE_LIBRARY
    };
    let of_all = |row: &FunctionRow<'_>| Part::of_samples(part(row.amount.total, all), view.conditions.samples);
    let has_most = |row: &&FunctionRow<'_>| of_all(row).is_surely(MOST);
    let innermost = |a: &&FunctionRow<'_>, b: &&FunctionRow<'_>| {
        a.amount.total.cmp(&b.amount.total).then_with(|| a.compare(b, Sort::Name))
    };
    let row = rows.iter().filter(is_of_library).filter(has_most).min_by(innermost)?;
    let found = of_all(row);
    let text = format!("{} and what it calls used {} of the {what}", row.function.label(), percent(found.share));
    let is_most = part(own, all) < MOST;
    is_most.then(|| evidence.of_work(text, found, &row.function, row.amount.total)).flatten()
}

/// The framework function with the most work, if own code does little. `None` if threads were
/// sampled by `wall`: most threads then wait in native code that does not show the reason.
fn busiest(evidence: &Evidence<'_, '_>) -> Option<Finding> {
    let view = evidence.view;
    if view.conditions.metric.instrument == instrument::WALL {
        return None;
    }
    // Threads that wait for work spin a little before they sleep, which is no finding. Work of the
    // runtime has sentences by kind of work.
    let is_runtimes = |row: &FunctionRow<'_>| {
        row.function.kind() == FunctionKind::Native && kind_of_function(&row.function) != SampleKind::Native
    };
    let row = view.framework.iter().find(|row| wait_kind(&row.function).is_none() && !is_runtimes(row))?;
    let (_, what) = all_work(view);
    let part = part_of_work(view, row.work_ns(), bounds_of_work(row));
    let text = format!("{} used {} of the {what} itself", row.function.label(), percent(part.share));
    part.is_surely(MUCH).then(|| evidence.of_work(text, part, &row.function, row.work_ns())).flatten()
}

/// The own function below which threads waited longest for this kind. Whether the wait is worth a
/// sentence depends on the length of the run, not on the number of idle threads. Samples of `wall`
/// have other sentences.
fn longest_wait(evidence: &Evidence<'_, '_>, kind: WaitKind) -> Option<Finding> {
    let Evidence { view, waits, run_ns, .. } = *evidence;
    if view.conditions.metric.is_sampled() {
        return None;
    }
    let of_kind = waits.iter().filter(|wait| wait.kind == kind);
    let named = of_kind.filter_map(|wait| Some((wait.function?, wait.ns)));
    let (function, ns) = named.min_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.compare(&b.0)))?;
    let (low, high) = sampled_bounds(ns as f64, step_of_waits(view));
    let part = Part::between(ns, (low as u64, high as u64), run_ns);
    let what = if kind == WaitKind::Lock { "waiting for locks" } else { "sleeping" };
    let text = format!("in calls from {}, threads spent {} {what}", function.label(), time(ns));
    let metric = view.conditions.metric.name;
    // Sums of calls do not show which threads sleep by design.
    let cost = if kind == WaitKind::Lock { evidence.threads(ns) } else { 0.0 };
    let found = Finding::with_share(FindingKind::Wait, text, part).costs(cost).about(&function).by(metric);
    part.is_surely(MUCH_WAITED).then(|| found.shown_by(format!("--view tree --metric {metric} --just-my-code")))
}

/// Step of the wall clock of `calls`, nanoseconds; 0 if waits are exact.
fn step_of_waits(view: &Summary<'_>) -> f64 {
    let conditions = &view.conditions;
    let steps = conditions.processes.iter().filter_map(|process| Some(Steps::from_info(process.calls?).wall_ns));
    steps.fold(0.0, f64::max)
}

/// Whether an instrument was recorded.
pub(super) fn has(view: &Summary<'_>, instrument: &str) -> bool {
    view.conditions.instruments.iter().any(|request| request.name == instrument)
}

/// Kinds of work that the program's code does not do by itself.
fn most_by_kind(evidence: &Evidence<'_, '_>) -> Vec<Finding> {
    let Evidence { view, again, .. } = *evidence;
    let all = view.kinds.iter().fold(0_u64, |sum, row| sum.saturating_add(row.time_ns));
    let samples = view.kinds.iter().fold(0_u64, |sum, row| sum.saturating_add(row.samples));
    let said = |kind| {
        Some(match kind {
            SampleKind::Jit => (FindingKind::Runtime, "went to the compilation of methods"),
            SampleKind::Gc => (FindingKind::Gc, "went to garbage collection"),
            SampleKind::TypeLoading => (FindingKind::Runtime, "went to loading types and assemblies"),
            SampleKind::Exceptions => (FindingKind::Exceptions, "went to the handling of exceptions"),
            SampleKind::Locks => (FindingKind::Cpu, "went to locks, waits and wake-ups of threads"),
            SampleKind::Suspension => (FindingKind::Runtime, "went to suspending threads"),
            SampleKind::Kernel => (FindingKind::Cpu, "was spent in the kernel"),
            SampleKind::Profiler => (FindingKind::Profiler, "was the profiler's own"),
            _ => return None,
        })
    };
    let hint = |kind| match kind {
        SampleKind::Gc if !has(view, instrument::ALLOC) => {
            format!(" ({again} -i alloc shows which code allocates what)")
        }
        SampleKind::Exceptions if !has(view, instrument::EXCEPTIONS) => {
            format!(" ({again} -i exceptions shows types, stacks and catchers)")
        }
        _ => String::new(),
    };
    let of_all = |row: &KindRow| Part::of_samples(part(row.time_ns, all), samples);
    let found = view.kinds.iter().filter_map(|row| Some((row, of_all(row), said(row.kind)?)));
    let much = found.filter(|(row, part, _)| part.is_surely(MUCH) && evidence.is_much_work(row.time_ns));
    let metric = view.conditions.metric.name;
    much.map(|(row, part, (kind, what))| {
        let text = format!("{} of the CPU time {what}{}", percent(part.share), hint(row.kind));
        let found = Finding::with_share(kind, text, part).by(metric);
        // The profiler's own work is no problem of the program.
        let cost = if kind == FindingKind::Profiler { 0.0 } else { evidence.threads(row.time_ns) };
        below_own_code(evidence, row.kind, found.costs(cost))
    })
    .collect()
}

/// Adds to a sentence the own code below which most work of a kind was done, if that code is known.
fn below_own_code(evidence: &Evidence<'_, '_>, kind: SampleKind, found: Finding) -> Finding {
    let Some((function, place)) = evidence.places.most_of(kind) else { return found };
    let text = format!("{}, most of it in calls from {}", found.text, function.label());
    let found = Finding { text, ..found };
    found.at_known(&function, place, ", at ")
}

/// Time in methods that still ran the code of their first, quick compilation.
fn unoptimised(view: &Summary<'_>, rows: &[FunctionRow<'_>]) -> Option<Finding> {
    let of = |row: &FunctionRow<'_>| {
        let quick = [Tier::Tier0, Tier::InstrumentedTier0];
        quick.into_iter().fold(0_u64, |sum, tier| sum.saturating_add(row.tiers.samples(tier).own))
    };
    let all = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(of(row)));
    let samples = view.kinds.iter().fold(0_u64, |sum, row| sum.saturating_add(row.samples));
    let most = rows.iter().min_by(|a, b| of(b).cmp(&of(a)).then_with(|| a.function.compare(&b.function)))?;
    let part = Part::of_samples(part(all, samples), samples);
    let text = format!(
        "{} of the CPU time ran code that was not optimised yet (tier 0), the most in {}",
        percent(part.share),
        most.function.label()
    );
    let found = Finding::with_share(FindingKind::Runtime, text, part).about(&most.function);
    part.is_surely(MUCH_UNOPTIMISED).then(|| found.by(view.conditions.metric.name))
}

fn most_thrown(view: &Summary<'_>, run_ns: u64) -> Option<Finding> {
    let row = view.elsewhere.iter().find(|row| row.kind == ElsewhereKind::Exceptions)?;
    let (all, most) = (row.count?, row.exceptions.as_ref()?);
    let place = most.place.map_or_else(String::new, |place| format!(" in {}", place.label()));
    let [all_text, count] = [all, most.count].map(number);
    let text = match all {
        1 => format!("one exception was thrown: {}{place}", most.type_name),
        _ => format!("{all_text} exceptions were thrown, {count} of them {}{place}", most.type_name),
    };
    let found = Finding::exact(FindingKind::Exceptions, text, part(most.count, all));
    let per_second = per_second(all, run_ns);
    let found = found.costs(per_second * THROW_NS / 1e9).shown_by("--view exceptions");
    let found = match (most.place, &most.at) {
        (Some(place), Some(at)) => found.at(&place, at.clone()),
        (place, _) => found.about_known(place.as_ref()),
    };
    (per_second >= MANY_PER_SECOND).then_some(found)
}

/// The own function below which most exceptions were created, if `exceptions` did not record them.
fn most_made(evidence: &Evidence<'_, '_>) -> Option<Finding> {
    let Evidence { view, run_ns, again, .. } = *evidence;
    let row = view.elsewhere.iter().find(|row| row.kind == ElsewhereKind::ExceptionsMade)?;
    let (all, most) = (row.count?, row.exceptions.as_ref()?);
    let (place, [all_text, count]) = (most.place?, [all, most.count].map(number));
    let text = format!(
        "{all_text} exceptions were created, {count} of them in calls from {}: {again} -i exceptions shows types, \
         stacks and catchers",
        place.label()
    );
    let found = Finding::exact(FindingKind::Exceptions, text, part(most.count, all));
    let cost = per_second(all, run_ns) * THROW_NS / 1e9;
    (most.count >= MANY_EXCEPTIONS).then(|| found.costs(cost).about(&place))
}

/// The own function that was called most.
fn most_called(view: &Summary<'_>, rows: &[FunctionRow<'_>]) -> Option<Finding> {
    let own = rows.iter().filter(|row| is_code(row) && is_own(&row.function));
    let row = own.min_by(|a, b| a.compare(b, Sort::Calls))?;
    let share = part(row.times.calls, view.conditions.totals.calls);
    let calls = number(row.times.calls);
    let least = if row.counts_at_least() { "at least " } else { "" };
    let text = format!("{} was called {least}{calls} times, {} of all calls", row.function.label(), percent(share));
    let found = Finding::exact(FindingKind::Calls, text, share).about(&row.function).by(CALLS.name);
    (row.times.calls > 1 && share >= MUCH).then(|| found.shown_by_callers())
}

/// Sentences about the profiler's own time and about missing data.
fn runtime(view: &Summary<'_>) -> Vec<Finding> {
    let (totals, raw) = (&view.conditions.totals, view.conditions.raw);
    let measured = totals.functions_ns.saturating_add(if raw { 0 } else { totals.profiler_ns });
    let ours = if raw { "is left in" } else { "has been taken out" };
    let profilers = (totals.profiler_low_ns, totals.profiler_high_ns);
    let candidates = [
        (
            Part::between(totals.profiler_ns, profilers, measured),
            MUCH,
            FindingKind::Profiler,
            format!("of the measured thread time was the profiler's own and {ours}"),
        ),
        (
            Part::exact(part(totals.truncated_calls, totals.calls)),
            0.0,
            FindingKind::Recording,
            "of the calls ended in (truncated): the memory limit was reached".to_owned(),
        ),
    ];
    let said = candidates.into_iter().filter(|(part, least, ..)| part.is_surely(*least));
    let text = |part: Part, text| format!("{} {text}", percent(part.share));
    said.map(|(part, _, kind, rest)| Finding::with_share(kind, text(part, rest), part)).collect()
}
