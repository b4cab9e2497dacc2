//! Code that could run only if a call returned that never returns.

use std::collections::HashSet;

use clr_il::{ClauseKind, Label, Opcode};

use crate::code::Code;

/// Offsets of the instructions that control can reach only if calls of the methods in `no_return`
/// returned.
///
/// Any instruction in a protected block may throw, so a handler is reached together with the first
/// instruction of its block. The target of a `leave` is reached if the `finally` blocks on the way
/// reach their ends.
pub(crate) fn behind_no_return(code: &Code<'_>, no_return: &HashSet<u32>) -> HashSet<u32> {
    let stops: Vec<bool> =
        code.steps.iter().map(|step| code.called(step).is_some_and(|to| no_return.contains(&to))).collect();
    if !stops.contains(&true) {
        return HashSet::new();
    }
    let (all, left) = (reached(code, &vec![false; stops.len()]), reached(code, &stops));
    let is_behind = |number: &usize| all[*number] && !left[*number];
    (0..stops.len()).filter(is_behind).map(|number| code.steps[number].offset).collect()
}

/// A protected block and its handler, by instruction index.
struct Range {
    kind: ClauseKind,
    protected: std::ops::Range<usize>,
    handler: std::ops::Range<usize>,
    /// First instruction of the handler or filter.
    entry: usize,
}

fn ranges(code: &Code<'_>) -> Vec<Range> {
    let range = |(from, to): (Label, Label)| code.bound(from)..code.bound(to);
    let clauses = code.clauses.iter().map(|clause| {
        let handler = range(clause.handler());
        let entry = match clause.kind() {
            ClauseKind::Filter(start) => code.bound(start),
            _ => handler.start,
        };
        Range { kind: clause.kind(), protected: range(clause.protected()), handler, entry }
    });
    clauses.collect()
}

/// The instructions that are reached if those calls do not return.
fn reached(code: &Code<'_>, stops: &[bool]) -> Vec<bool> {
    let ranges = ranges(code);
    let mut reached = vec![false; code.steps.len()];
    // Instructions that leave blocks, each with its target.
    let mut leaving: Vec<(usize, usize)> = Vec::new();
    let mut next = vec![0];
    while !next.is_empty() {
        while let Some(number) = next.pop() {
            if number >= reached.len() || reached[number] {
                continue;
            }
            reached[number] = true;
            next.extend(ranges.iter().filter(|range| range.protected.contains(&number)).map(|range| range.entry));
            if stops[number] {
                continue;
            }
            let step = &code.steps[number];
            let targets = step.targets.iter().filter_map(|target| code.at(*target));
            if step.opcode.is_leave() {
                leaving.extend(targets.map(|target| (number, target)));
            } else {
                next.extend(targets);
            }
            if step.opcode.flow().goes_on() {
                next.push(number + 1);
            }
            if step.is(Opcode::Endfilter) {
                let of = ranges.iter().filter(|range| (range.entry..range.handler.start).contains(&number));
                next.extend(of.map(|range| range.handler.start));
            }
        }
        leaving.retain(|(from, to)| {
            let is_through = ranges.iter().all(|range| {
                let is_passed = matches!(range.kind, ClauseKind::Finally)
                    && range.protected.contains(from)
                    && !range.protected.contains(to);
                !is_passed || ends(code, range, &reached)
            });
            if is_through {
                next.push(*to);
            }
            !is_through
        });
    }
    reached
}

/// Whether control reaches the end of a `finally` block.
fn ends(code: &Code<'_>, range: &Range, reached: &[bool]) -> bool {
    range.handler.clone().any(|number| reached.get(number) == Some(&true) && code.steps[number].is(Opcode::Endfinally))
}
