//! The view `summary`: what stands out, and the ten first functions.

use clrscope_recording::model::{FunctionKind, Recording};
use rustc_hash::FxHashMap;

use super::conditions::Conditions;
use super::functions::{Functions, functions_by};
use super::rows::FunctionRow;
use crate::metric::WALL;
use crate::query::{Query, QueryProblem, Sort};

/// One sentence of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// The share it speaks of, 0 to 1.
    pub share: f64,
}

/// The view `summary`.
#[derive(Debug, Clone, Default)]
pub struct Summary<'a> {
    /// Findings, the most important first.
    pub findings: Vec<Finding>,
    /// The ten first functions by exclusive time.
    pub top: Vec<FunctionRow<'a>>,
    /// Functions that were called in all.
    pub functions: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// Rows in [`Summary::top`] unless the query has a limit.
const TOP: usize = 10;

/// Findings in the selected part of a recording.
///
/// # Errors
/// When no process or thread is meant, or the query asks for a part of the time or for
/// threads apart.
pub fn summary<'a>(recording: &'a Recording, query: &Query) -> Result<Summary<'a>, QueryProblem> {
    query.whole_run("summary")?;
    query.without_metric("summary")?;
    query.merged_threads("summary")?;
    let all = Query { limit: None, sort: Some(Sort::Exclusive), ..query.clone() };
    let functions = functions_by(recording, &all, &WALL)?;
    let findings = findings(&functions, query.filters_functions());
    let Functions { mut rows, conditions, .. } = functions;
    let count = rows.len();
    if let Some(sort) = query.sort {
        rows.sort_by(|a, b| a.compare(b, sort));
    }
    rows.truncate(query.limit.unwrap_or(TOP));
    Ok(Summary { findings, top: rows, functions: count, conditions })
}

/// The sentences, those about the program first, the largest share first among their like.
fn findings(functions: &Functions<'_>, filtered: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(hottest(functions));
    found.extend(busiest(functions));
    found.extend(broadest(functions));
    found.extend(hottest_module(functions));
    found.extend(most_called(functions));
    if !filtered {
        found.extend(waiting(functions));
        found.extend(runtime(functions));
    }
    found
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn own_code<'r, 'a>(functions: &'r Functions<'a>) -> impl Iterator<Item = &'r FunctionRow<'a>> {
    functions.rows.iter().filter(|r| matches!(r.function.kind(), FunctionKind::Managed | FunctionKind::Native))
}

/// The function with the most time of its own.
fn hottest(functions: &Functions<'_>) -> Option<Finding> {
    let row = own_code(functions).next()?;
    let share = functions.conditions.totals.share(row.times.exclusive_ns);
    let text = format!("{} has {} of the time to itself", row.function.label(), percent(share));
    (row.times.exclusive_ns > 0).then_some(Finding { text, share })
}

/// The function with the most CPU time of its own, where waiting hides it.
fn busiest(functions: &Functions<'_>) -> Option<Finding> {
    let row = own_code(functions).reduce(|a, b| if b.compare(a, Sort::ExclusiveCpu).is_lt() { b } else { a })?;
    let own = row.times.exclusive_cpu_ns.filter(|&ns| ns > 0)?;
    let all = functions.conditions.totals.cpu_ns.unwrap_or(0);
    let share = if all == 0 { 0.0 } else { own as f64 / all as f64 };
    let text = format!("{} used {} of the processor time itself", row.function.label(), percent(share));
    let hottest = own_code(functions).next()?;
    (!std::ptr::eq(hottest, row)).then_some(Finding { text, share })
}

/// The function that does little itself, with the most time in what it calls, below the outermost.
fn broadest(functions: &Functions<'_>) -> Option<Finding> {
    let totals = &functions.conditions.totals;
    let mut rows: Vec<_> = own_code(functions).filter(|r| totals.share(r.times.inclusive_ns) < 0.9).collect();
    rows.sort_by(|a, b| a.compare(b, Sort::Inclusive));
    let row = rows.into_iter().find(|r| r.times.callee_ns > r.times.exclusive_ns)?;
    let share = totals.share(row.times.inclusive_ns);
    let text = format!("{} and what it calls take {}", row.function.label(), percent(share));
    (share >= 0.1).then_some(Finding { text, share })
}

fn hottest_module(functions: &Functions<'_>) -> Option<Finding> {
    let mut sums: FxHashMap<&str, u64> = FxHashMap::default();
    for row in own_code(functions) {
        let sum = sums.entry(row.function.module()).or_default();
        *sum = sum.saturating_add(row.times.exclusive_ns);
    }
    let (module, ns) =
        sums.into_iter().filter(|(m, _)| !m.is_empty()).max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0)))?;
    let share = functions.conditions.totals.share(ns);
    let text = format!("{} of the time is in functions of {module}", percent(share));
    (ns > 0).then_some(Finding { text, share })
}

fn most_called(functions: &Functions<'_>) -> Option<Finding> {
    let row = own_code(functions).reduce(|a, b| if b.compare(a, Sort::Calls).is_lt() { b } else { a })?;
    let all = functions.conditions.totals.calls;
    let share = if all == 0 { 0.0 } else { row.times.calls as f64 / all as f64 };
    let text =
        format!("{} was called {} times, {} of all calls", row.function.label(), row.times.calls, percent(share));
    (row.times.calls > 1).then_some(Finding { text, share })
}

/// Wall time that was no CPU time, where CPU time was measured.
fn waiting(functions: &Functions<'_>) -> Option<Finding> {
    let totals = &functions.conditions.totals;
    let awake = totals.functions_ns.saturating_sub(totals.suspended_ns);
    let share = totals.share(awake.saturating_sub(totals.cpu_ns?));
    let text = format!("in {} of the time threads waited or slept rather than ran", percent(share));
    (share >= 0.05).then_some(Finding { text, share })
}

/// The runtime's own time, ours, and what is missing.
fn runtime(functions: &Functions<'_>) -> Vec<Finding> {
    let totals = &functions.conditions.totals;
    let measured = totals.functions_ns.saturating_add(if functions.conditions.raw { 0 } else { totals.profiler_ns });
    let profiler = if measured == 0 { 0.0 } else { totals.profiler_ns as f64 / measured as f64 };
    let ours = if functions.conditions.raw { "is left in" } else { "has been taken out" };
    let cut = if totals.calls == 0 { 0.0 } else { totals.truncated_calls as f64 / totals.calls as f64 };
    let candidates = [
        (
            totals.share(totals.jit_ns),
            0.01,
            "of the time the runtime compiled, part of it only because of the profiler".to_owned(),
        ),
        (
            totals.share(totals.suspended_ns),
            0.01,
            "of the time threads stood suspended, mostly for garbage collection".to_owned(),
        ),
        (profiler, 0.01, format!("of the measured time was the profiler's own and {ours}")),
        (cut, 0.0, "of the calls ended in (truncated): the memory limit was reached".to_owned()),
    ];
    let said = candidates.into_iter().filter(|(share, least, _)| share > least);
    said.map(|(share, _, text)| Finding { text: format!("{} {text}", percent(share)), share }).collect()
}
