//! The view `lines`: samples, or another metric with stacks, by the source lines on the stacks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use clrscope_recording::model::{Process, Recording, StackFrame};
use rustc_hash::{FxHashMap, FxHashSet};

use super::conditions::{Conditions, conditions_of};
use super::process;
use crate::allocations::BYTES;
use crate::code_place::CodePlace;
use crate::function::{FunctionRef, is_own};
use crate::metric::{Metric, SampleCount};
use crate::paths;
use crate::query::{Query, QueryProblem, Sort};
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL};
use crate::stack_trees::StackSum;
use crate::tiers::Tiers;

/// Looks up the source line of an instruction. Arguments: path of the module, metadata token of the
/// method, location in its code.
pub type FindPlace<'l> = dyn FnMut(&str, u32, CodePlace<'_>) -> FoundPlace + 'l;

/// Outcome of the search for an instruction's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundPlace {
    /// The line.
    Line {
        /// Path of the file as passed to the compiler.
        file: String,
        /// Number of the line, from 1.
        line: u32,
        /// Whether only the call determined the line: of several possible lines, it is the only one
        /// that calls the next function on the stack.
        by_call: bool,
    },
    /// The method has a source, and several of its lines are possible.
    Unknown {
        /// Path of the file.
        file: String,
    },
    /// No source is known. The amount counts for the line of the caller.
    NoSource,
}

/// Key of a place: index of the function, place in its code, whether the code was not optimised,
/// and index of the called function.
type PlaceKey = (u32, Option<u32>, u16, bool, u32);

/// Key of a row: file and line; if the line is unknown, file and index of the function.
type LineKey = (String, Option<u32>, u32);

/// One line of a source file.
#[derive(Debug, Clone)]
pub struct LineRow<'a> {
    /// Path of the file as passed to the compiler.
    pub file: String,
    /// Number of the line, from 1; `None` for code of the function whose line is unknown.
    pub line: Option<u32>,
    /// The function with most of the line's samples, or of its amount.
    pub function: FunctionRef<'a>,
    /// Samples whose innermost line with a source is this line. They include samples of code
    /// without a source that the line called.
    pub samples: u64,
    /// Samples with the line's own code on top of the stack.
    pub self_samples: u64,
    /// Samples with the line anywhere on the stack.
    pub total_samples: u64,
    /// Amount of the metric, counted for the innermost line with a source. For a sampled metric,
    /// the time that `samples` represent, in nanoseconds.
    pub amount: u64,
    /// Amount of the metric with the line anywhere on the stack.
    pub total: u64,
    /// `samples` and `total_samples`, by the tier of the line's code.
    pub tiers: Tiers,
}

/// The view `lines`.
#[derive(Debug, Clone, Default)]
pub struct LinesView<'a> {
    /// The rows, sorted and limited.
    pub rows: Vec<LineRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Number of samples without a known line anywhere on their stacks.
    pub without_line: u64,
    /// Amount of the metric without a known line anywhere on the stacks.
    pub amount_without_line: u64,
    /// Samples, or the amount of another metric, in code whose file is known but whose line is not.
    /// These are the rows without a line.
    pub of_unknown_lines: u64,
    /// Samples, or amount of another metric, whose line was inferred from the function that it
    /// calls.
    pub by_call: u64,
    /// Modules whose code has no lines: paths of the modules of the innermost own methods on stacks
    /// without a line, ordered by amount.
    pub modules_without_line: Vec<&'a str>,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// Lines ordered by samples. The query may sort them by `total` or `name` (file and line). Another
/// metric with stacks is used if the query names one, or if allocations were recorded but no
/// samples.
///
/// # Errors
/// When the query matches no process or thread, nothing with stacks was recorded, or the query asks
/// for something that lines do not have.
pub fn lines<'a>(
    recording: &'a Recording,
    query: &Query,
    find: &mut FindPlace<'_>,
) -> Result<LinesView<'a>, QueryProblem> {
    query.merged_threads("lines")?;
    let metric = metric_of(recording, query)?;
    metric.check(query, "lines")?;
    let mut sums: BTreeMap<LineKey, LineSums<'a>> = BTreeMap::new();
    let (mut totals, mut without) = (Vec::new(), StackSum::default());
    let mut by_call = StackSum::default();
    let mut blamed: BTreeMap<&str, u64> = BTreeMap::new();
    for paths in paths::select(recording, query, metric)? {
        let process = paths.process;
        totals.push((process, process::totals(&paths, query)));
        let mut places = Places { process, query, metric, find, known: FxHashMap::default(), by_call: &mut by_call };
        for (stack, sum) in paths::sums_of_stacks(recording, process, query, metric) {
            if let Some(own) = places.add(&mut sums, stack, sum) {
                without.add(sum);
                let blame = own.map(|function| blamed.entry(function.module.path.as_str()).or_default());
                blame.into_iter().for_each(|blame| *blame = blame.saturating_add(sum.samples.max(sum.amount)));
            }
        }
    }
    let mut rows: Vec<LineRow<'a>> = sums.into_iter().map(|(place, sums)| sums.row(place)).collect();
    // Rows are ordered by file and line here, and the sort is stable.
    match query.sort {
        Some(Sort::Name) => {}
        Some(Sort::Total | Sort::Inclusive) if metric.is_sampled() => {
            rows.sort_by_key(|row| Reverse(row.total_samples))
        }
        Some(Sort::Total | Sort::Inclusive) => rows.sort_by_key(|row| Reverse(row.total)),
        _ if metric.is_sampled() => rows.sort_by_key(|row| Reverse((row.samples, row.total_samples))),
        _ => rows.sort_by_key(|row| Reverse((row.amount, row.total))),
    }
    let unknown = rows.iter().filter(|row| row.line.is_none());
    let of_unknown_lines = unknown.map(|row| if metric.is_sampled() { row.samples } else { row.amount }).sum();
    let left_out = query.cut(&mut rows);
    let conditions = conditions_of(recording, query, metric, &totals);
    let mut blamed: Vec<(&str, u64)> = blamed.into_iter().collect();
    blamed.sort_by_key(|(_, blame)| Reverse(*blame));
    let modules_without_line = blamed.into_iter().map(|(path, _)| path).collect();
    let StackSum { samples: without_line, amount: amount_without_line, .. } = without;
    Ok(LinesView {
        rows,
        left_out,
        without_line,
        amount_without_line,
        of_unknown_lines,
        by_call: if metric.is_sampled() { by_call.samples } else { by_call.amount },
        modules_without_line,
        conditions,
    })
}

/// The metric that the view shows. Its values must have stacks.
fn metric_of(recording: &Recording, query: &Query) -> Result<&'static Metric, QueryProblem> {
    let Some(wanted) = query.metric else {
        let found = [&SAMPLED_CPU, &SAMPLED_WALL, &BYTES].into_iter().find(|metric| metric.is_in(recording));
        return found.ok_or(QueryProblem::NotRecorded { view: "lines", instrument: SAMPLED_CPU.instrument });
    };
    let with_stacks =
        Metric::each().find(|metric| *metric == wanted && !metric.is_of_calls() && metric.is_in(recording));
    with_stacks.ok_or(match wanted.is_recorded(recording) {
        true => QueryProblem::NotAvailable {
            option: "this --metric",
            view: "lines",
            why: "calls are counted by function, not by line",
        },
        false => QueryProblem::MetricNotRecorded { metric: wanted },
    })
}

/// Sums of a line.
#[derive(Default)]
struct LineSums<'a> {
    samples: u64,
    self_samples: u64,
    total_samples: u64,
    amount: u64,
    total: u64,
    tiers: Tiers,
    /// Samples, or amounts, by function.
    functions: Vec<(FunctionRef<'a>, u64)>,
}

impl<'a> LineSums<'a> {
    fn met(&mut self, function: FunctionRef<'a>, of: StackSum, is_sampled: bool) {
        self.total_samples = self.total_samples.saturating_add(of.samples);
        self.total = self.total.saturating_add(of.amount);
        let weight = if is_sampled { of.samples } else { of.amount };
        match self.functions.iter_mut().find(|(known, _)| known.compare(&function).is_eq()) {
            Some((_, sum)) => *sum = sum.saturating_add(weight),
            None => self.functions.push((function, weight)),
        }
    }

    fn row(self, (file, line, _): LineKey) -> LineRow<'a> {
        let by_samples =
            |a: &&(FunctionRef<'a>, u64), b: &&(FunctionRef<'a>, u64)| b.1.cmp(&a.1).then_with(|| a.0.compare(&b.0));
        let function = self.functions.iter().min_by(by_samples).map(|(function, _)| *function);
        let Self { samples, self_samples, total_samples, amount, total, tiers, .. } = self;
        let function = function.expect("a line is made when a function meets it");
        LineRow { file, line, function, samples, self_samples, total_samples, amount, total, tiers }
    }
}

/// Finds lines of a process's frames.
struct Places<'a, 'q, 'f, 'l> {
    process: &'a Process,
    query: &'q Query,
    metric: &'static Metric,
    find: &'f mut FindPlace<'l>,
    known: FxHashMap<PlaceKey, FoundPlace>,
    by_call: &'f mut StackSum,
}

impl<'a> Places<'a, '_, '_, '_> {
    /// Adds the amount of a stack. For a stack without a line, returns its innermost own method, if
    /// any.
    fn add(
        &mut self,
        sums: &mut BTreeMap<LineKey, LineSums<'a>>,
        stack: u32,
        sum: StackSum,
    ) -> Option<Option<FunctionRef<'a>>> {
        let (mut met, mut own, mut callee) = (FxHashSet::default(), None, 0);
        let stacks = &self.process.stacks;
        for (depth, frame) in stacks.frames(stack).enumerate() {
            let StackFrame::Method { function, il_offset, il_span, tier } = frame else {
                callee = 0;
                continue;
            };
            let named = FunctionRef::new(self.process, self.process.functions.get(function as usize));
            let called = std::mem::replace(&mut callee, function);
            let found = self.locate((function, il_offset, il_span, tier.has_exact_offset(), called), &named);
            let (place, is_by_call) = match found {
                FoundPlace::Line { file, line, by_call } => ((file, Some(line), 0), by_call),
                FoundPlace::Unknown { file } => ((file, None, function), false),
                FoundPlace::NoSource => {
                    own = own.or(Some(named).filter(is_own));
                    continue;
                }
            };
            if !met.insert(place.clone()) || !self.query.wants_function(named.module(), named.function) {
                continue;
            }
            let line = sums.entry(place).or_default();
            line.met(named, sum, self.metric.is_sampled());
            let innermost = if met.len() == 1 { sum.samples } else { 0 };
            line.tiers.add(tier, SampleCount { own: innermost, total: sum.samples });
            if met.len() == 1 {
                line.samples = line.samples.saturating_add(sum.samples);
                line.amount = line.amount.saturating_add(sum.amount);
                line.self_samples = line.self_samples.saturating_add(if depth == 0 { sum.samples } else { 0 });
                if is_by_call {
                    self.by_call.add(sum);
                }
            }
        }
        met.is_empty().then_some(own)
    }

    fn locate(&mut self, key: PlaceKey, named: &FunctionRef<'_>) -> FoundPlace {
        let Self { process, find, known, .. } = self;
        let (_, il_offset, il_span, is_unoptimised, callee) = key;
        let look = || {
            let callee = process.functions.get(callee as usize).map(|function| function.raw_name.as_str());
            let place =
                CodePlace { il_offset, il_span, is_unoptimised, callee: callee.filter(|name| !name.is_empty()) };
            let is_odd = |found: &FoundPlace| matches!(found, FoundPlace::Line { file, line, .. } if file.is_empty() || *line == 0);
            let found = find(&named.module.path, named.token(), place);
            if is_odd(&found) { FoundPlace::NoSource } else { found }
        };
        known.entry(key).or_insert_with(look).clone()
    }
}
