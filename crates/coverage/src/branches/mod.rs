//! Branches: finds the conditions of a method that its author wrote.
//!
//! A condition is a conditional jump or a `switch`; it belongs to the last line that begins at or
//! before it. Compilers add conditions of their own; they are recognised by the shape of the code
//! around them. The shapes are those that coverlet leaves out, extended by further forms where
//! needed (docs/coverage.md lists the differences):
//!
//! - `machine`: state machines of `async` methods and iterators: the state, awaiters, handlers that
//!   await;
//! - `disposal`: `await foreach`, `await using`, async iterators and their tokens;
//! - `made`: lambdas and method groups cached in fields, filters, `finally` blocks without a line,
//!   jumps for debuggers.

mod disposal;
mod machine;
mod made;

use clr_il::Opcode;
use clr_metadata::SequencePoint;
use clrscope_recording::model::PlannedBranch;

use crate::code::{Code, Machine, Step};

/// Branches of a method with the visible sequence points `points`; `file` maps a document to its
/// file number.
pub(crate) fn branches(code: &Code<'_>, machine: Machine, points: &[SequencePoint]) -> Vec<PlannedBranch> {
    let mut found = Vec::new();
    let mut unseen = iterator_states(code, machine);
    let handlers = if machine.is_async { machine::handler_checks(code) } else { Vec::new() };
    let has_prolog = machine.is_async && machine::has_prolog(code);
    for (number, step) in code.steps.iter().enumerate().filter(|(_, step)| step.is_condition()) {
        if unseen > 0 {
            unseen -= 1;
            continue;
        }
        let is_made = (has_prolog && machine::is_state_or_awaiter(code, number))
            || (machine.is_async && (handlers.contains(&number) || machine::is_made(code, number)))
            || (machine.is_async && disposal::is_made(code, number))
            || (machine.is_async_iterator && disposal::is_iterators(code, number))
            || disposal::asks_for_tokens(code, number)
            || made::is_made(code, number, points);
        if !is_made && let Some(point) = point_of(points, step.offset) {
            add(code, number, point, &mut found);
        }
    }
    found
}

/// Conditions at the start of an iterator that test its state: a `switch`, or two jumps.
fn iterator_states(code: &Code<'_>, machine: Machine) -> usize {
    let first = code.steps.iter().find(|step| step.is_condition());
    match first {
        Some(step) if machine.is_iterator => 1 + usize::from(!step.is(Opcode::Switch)),
        _ => 0,
    }
}

/// The last sequence point at or before an offset; the first one if there is none.
fn point_of(points: &[SequencePoint], offset: u32) -> Option<&SequencePoint> {
    let behind = points.partition_point(|point| point.il_offset <= offset);
    points.get(behind.saturating_sub(1))
}

fn add(code: &Code<'_>, number: usize, point: &SequencePoint, found: &mut Vec<PlannedBranch>) {
    let step = &code.steps[number];
    let Some(next) = code.after(number, 1) else { return };
    let ways = std::iter::once(next.offset).chain(step.targets.iter().copied());
    found.extend((0..).zip(ways).map(|(path, way)| PlannedBranch {
        il_offset: step.offset,
        path,
        target_offset: reached(code, way),
        file: point.document,
        line: point.start_line,
    }));
}

/// Offset reached from another one by following unconditional jumps.
fn reached(code: &Code<'_>, offset: u32) -> u32 {
    let mut offset = offset;
    // The loop bound stops at a cycle of jumps.
    for _ in 0..code.steps.len() {
        let next = code.at(offset).and_then(|number| jump(&code.steps[number]));
        let Some(next) = next else { break };
        offset = next;
    }
    offset
}

fn jump(step: &Step) -> Option<u32> {
    if step.is(Opcode::Br) { step.targets.first().copied() } else { None }
}

/// Whether the point at an offset can't be reached on its own. This is so for the `nop` after an
/// exception that an `async` handler rethrows, and for the `nop` within a condition at which a
/// debugger stops.
pub(crate) fn is_unreachable(code: &Code<'_>, machine: Machine, offset: u32) -> bool {
    let Some(number) = code.at(offset).filter(|number| code.steps[*number].is(Opcode::Nop)) else { return false };
    (machine.is_async && machine::follows_rethrow(code, number)) || made::is_debuggers_stop(code, number)
}
