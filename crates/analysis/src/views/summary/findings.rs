//! Sentences of the summary.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{FunctionKind, Tier};

use super::elsewhere::ElsewhereKind;
use super::{OwnWait, Summary, is_code};
use crate::function::is_own;
use crate::numbers::{number, percent, time};
use crate::query::Sort;
use crate::samples::SampleKind;
use crate::views::rows::FunctionRow;
use crate::waits::{WaitKind, wait_kind};

/// One sentence of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// The share it speaks of, 0 to 1.
    pub share: f64,
}

/// Shares of CPU time, and of calls, that are worth a sentence.
const MUCH: f64 = 0.05;
/// Share of CPU time that is most of it.
const MOST: f64 = 0.5;
/// Assembly of what each thread runs in.
const CORE_LIBRARY: &str = "System.Private.CoreLib";
/// Share of the run that threads waited below one function that is worth a sentence: what a service's requests wait for is little
/// of the time that it runs.
const MUCH_WAITED: f64 = 0.02;
/// Share of CPU time in code that is not optimised that is worth a sentence: each program starts with some.
const MUCH_UNOPTIMISED: f64 = 0.10;
/// Exceptions that are worth a sentence.
const MANY_EXCEPTIONS: u64 = 100;

/// The sentences, those about the program first. Waits of idle threads are none.
pub(super) fn findings(
    view: &Summary<'_>,
    rows: &[FunctionRow<'_>],
    waits: &[OwnWait<'_>],
    run_ns: u64,
    filtered: bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let libraries = busiest_library(view, rows);
    let is_said = libraries.is_some();
    found.extend(libraries);
    found.extend(busiest_own(view).or_else(|| (!is_said).then(|| busiest(view)).flatten()));
    found.extend([WaitKind::Lock, WaitKind::Sleep].into_iter().filter_map(|kind| longest_wait(waits, kind, run_ns)));
    found.extend(most_thrown(view).or_else(|| most_made(view)));
    found.extend(most_called(view, rows));
    if !filtered {
        found.extend(most_by_kind(view));
        found.extend(unoptimised(view, rows));
        found.extend(runtime(view));
    }
    found
}

fn part(of: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { (of as f64 / all as f64).min(1.0) }
}

/// Whole of which shares of work are given, and its name in a sentence.
fn all_work(view: &Summary<'_>) -> (u64, &'static str) {
    let conditions = &view.conditions;
    let is_cpu = conditions.totals.cpu_ns.is_some() || conditions.metric.instrument == instrument::CPU;
    (conditions.work_ns(), if is_cpu { "CPU time" } else { "time" })
}

/// The own function with the most work below it in the framework, in all its instantiations.
fn busiest_own(view: &Summary<'_>) -> Option<Finding> {
    let mut work: BTreeMap<(&str, Cow<'_, str>), u64> = BTreeMap::new();
    for own in &view.own {
        let function = &own.row.function;
        let sum = work.entry((function.module(), function.label())).or_default();
        *sum = sum.saturating_add(own.work_ns);
    }
    // The first of those that are equal.
    let ((_, name), work) = work.iter().rev().max_by_key(|(_, work)| **work)?;
    let (all, what) = all_work(view);
    let share = part(*work, all);
    let text = format!("{name} and the framework code that it calls used {} of the {what}", percent(share));
    (share >= MUCH).then_some(Finding { text, share })
}

/// The innermost function of a library below which most of the CPU time was spent, where own code and what it calls used less: a program
/// whose threads begin in a library does nearly everything there. Methods of the core library, which runs all threads, say nothing.
fn busiest_library(view: &Summary<'_>, rows: &[FunctionRow<'_>]) -> Option<Finding> {
    if view.conditions.metric.instrument != instrument::CPU {
        return None;
    }
    let (all, what) = all_work(view);
    let own = view.own.iter().fold(0_u64, |sum, row| sum.saturating_add(row.work_ns));
    let is_of_library = |row: &&FunctionRow<'_>| {
        let function = &row.function;
        function.kind() == FunctionKind::Managed && !is_own(function) && function.module() != CORE_LIBRARY
    };
    let has_most = |row: &&FunctionRow<'_>| part(row.amount.total, all) >= MOST;
    let innermost = |a: &&FunctionRow<'_>, b: &&FunctionRow<'_>| {
        a.amount.total.cmp(&b.amount.total).then_with(|| a.compare(b, Sort::Name))
    };
    let row = rows.iter().filter(is_of_library).filter(has_most).min_by(innermost)?;
    let share = part(row.amount.total, all);
    let text = format!("{} and what it calls used {} of the {what}", row.function.label(), percent(share));
    (part(own, all) < MOST).then_some(Finding { text, share })
}

/// The function of the framework with the most work, where own code does little. None where all threads were sampled by
/// the clock: most of them wait then, in native code that does not say for what.
fn busiest(view: &Summary<'_>) -> Option<Finding> {
    if view.conditions.metric.instrument == instrument::WALL {
        return None;
    }
    // Threads that wait for work spin a little before they sleep: that is no finding.
    let row = view.framework.iter().find(|row| wait_kind(&row.function).is_none())?;
    let (all, what) = all_work(view);
    let share = part(row.work_ns(), all);
    let text = format!("{} used {} of the {what} itself", row.function.label(), percent(share));
    (share >= MUCH).then_some(Finding { text, share })
}

/// The own function below which threads waited longest for this: worth a sentence by how long the program ran, however many
/// idle threads it had.
fn longest_wait(waits: &[OwnWait<'_>], kind: WaitKind, run_ns: u64) -> Option<Finding> {
    let of_kind = waits.iter().filter(|wait| wait.kind == kind);
    let named = of_kind.filter_map(|wait| Some((wait.function?, wait.ns)));
    let (function, ns) = named.min_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.compare(&b.0)))?;
    let share = part(ns, run_ns);
    let what = if kind == WaitKind::Lock { "waiting for locks" } else { "sleeping" };
    let text = format!("below {} threads spent {} {what}", function.label(), time(ns));
    (share >= MUCH_WAITED).then_some(Finding { text, share })
}

/// Whether an instrument recorded.
pub(super) fn has(view: &Summary<'_>, instrument: &str) -> bool {
    view.conditions.instruments.iter().any(|request| request.name == instrument)
}

/// Kinds of work that the program's code does not do by itself.
fn most_by_kind(view: &Summary<'_>) -> Vec<Finding> {
    let all = view.kinds.iter().fold(0_u64, |sum, row| sum.saturating_add(row.time_ns));
    let said = |kind| {
        Some(match kind {
            SampleKind::Jit => "went to the compilation of methods",
            SampleKind::Gc if !has(view, instrument::ALLOC) => {
                "went to garbage collection: run -i alloc shows which code allocates what"
            }
            SampleKind::Gc => "went to garbage collection",
            SampleKind::TypeLoading => "went to loading types and assemblies",
            SampleKind::Exceptions if !has(view, instrument::EXCEPTIONS) => {
                "went to the handling of exceptions: run -i exceptions shows types, stacks and catchers"
            }
            SampleKind::Exceptions => "went to the handling of exceptions",
            SampleKind::Suspension => "went to suspending threads",
            SampleKind::Kernel => "was spent in the kernel",
            SampleKind::Profiler => "was the profiler's own",
            _ => return None,
        })
    };
    let found = view.kinds.iter().filter_map(|row| Some((part(row.time_ns, all), said(row.kind)?)));
    let much = found.filter(|(share, _)| *share >= MUCH);
    much.map(|(share, what)| Finding { text: format!("{} of the CPU time {what}", percent(share)), share }).collect()
}

/// Time in methods whose code was still that of their first, quick compilation.
fn unoptimised(view: &Summary<'_>, rows: &[FunctionRow<'_>]) -> Option<Finding> {
    let of = |row: &FunctionRow<'_>| {
        let quick = [Tier::Tier0, Tier::InstrumentedTier0];
        quick.into_iter().fold(0_u64, |sum, tier| sum.saturating_add(row.tiers.samples(tier).own))
    };
    let all = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(of(row)));
    let samples = view.kinds.iter().fold(0_u64, |sum, row| sum.saturating_add(row.samples));
    let most = rows.iter().min_by(|a, b| of(b).cmp(&of(a)).then_with(|| a.function.compare(&b.function)))?;
    let share = part(all, samples);
    let text = format!(
        "{} of the CPU time ran code that was not optimised yet (tier 0), the most in {}",
        percent(share),
        most.function.label()
    );
    (samples > 0 && share >= MUCH_UNOPTIMISED).then_some(Finding { text, share })
}

fn most_thrown(view: &Summary<'_>) -> Option<Finding> {
    let row = view.elsewhere.iter().find(|row| row.kind == ElsewhereKind::Exceptions)?;
    let (all, most) = (row.count?, row.exceptions.as_ref()?);
    let place = most.place.map_or_else(String::new, |place| format!(" in {}", place.label()));
    let [all_text, count] = [all, most.count].map(number);
    let text = match all {
        1 => format!("one exception was thrown: {}{place}", most.type_name),
        _ => format!("{all_text} exceptions were thrown, {count} of them {}{place}", most.type_name),
    };
    Some(Finding { text, share: part(most.count, all) })
}

/// The own function below which most exceptions were made, where `exceptions` did not record them.
fn most_made(view: &Summary<'_>) -> Option<Finding> {
    let row = view.elsewhere.iter().find(|row| row.kind == ElsewhereKind::ExceptionsMade)?;
    let (all, most) = (row.count?, row.exceptions.as_ref()?);
    let (place, [all_text, count]) = (most.place?, [all, most.count].map(number));
    let text = format!(
        "{all_text} exceptions were made, {count} of them below {}: run -i exceptions shows types, stacks and catchers",
        place.label()
    );
    (most.count >= MANY_EXCEPTIONS).then_some(Finding { text, share: part(most.count, all) })
}

/// The own function that was called most.
fn most_called(view: &Summary<'_>, rows: &[FunctionRow<'_>]) -> Option<Finding> {
    let own = rows.iter().filter(|row| is_code(row) && is_own(&row.function));
    let row = own.min_by(|a, b| a.compare(b, Sort::Calls))?;
    let share = part(row.times.calls, view.conditions.totals.calls);
    let calls = number(row.times.calls);
    let least = if row.inlined { "at least " } else { "" };
    let text = format!("{} was called {least}{calls} times, {} of all calls", row.function.label(), percent(share));
    (row.times.calls > 1 && share >= MUCH).then_some(Finding { text, share })
}

/// The profiler's own time, and what is missing.
fn runtime(view: &Summary<'_>) -> Vec<Finding> {
    let (totals, raw) = (&view.conditions.totals, view.conditions.raw);
    let measured = totals.functions_ns.saturating_add(if raw { 0 } else { totals.profiler_ns });
    let ours = if raw { "is left in" } else { "has been taken out" };
    let candidates = [
        (
            part(totals.profiler_ns, measured),
            MUCH,
            format!("of the measured thread time was the profiler's own and {ours}"),
        ),
        (
            part(totals.truncated_calls, totals.calls),
            0.0,
            "of the calls ended in (truncated): the memory limit was reached".to_owned(),
        ),
    ];
    let said = candidates.into_iter().filter(|(share, least, _)| share > least);
    said.map(|(share, _, text)| Finding { text: format!("{} {text}", percent(share)), share }).collect()
}
