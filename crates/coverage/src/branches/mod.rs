//! Branches: which conditions of a method its author wrote.
//!
//! A condition is a conditional jump or a `switch`; it belongs to the last line that begins at or
//! before it. Compilers make conditions of their own, which are known by the shape of the code
//! around them; the shapes are those that coverlet leaves out, where they are needed with more
//! forms (docs/coverage.md has the differences):
//!
//! - `machine`: what runs `async` methods and iterators in pieces: the state, awaiters, handlers
//!   that await;
//! - `disposal`: `await foreach`, `await using`, async iterators and their tokens;
//! - `made`: lambdas and method groups kept in fields, filters, `finally` blocks without a line,
//!   jumps for debuggers.

mod disposal;
mod machine;
mod made;

use clr_il::Opcode;
use clr_metadata::SequencePoint;
use clrscope_recording::model::PlannedBranch;

use crate::code::{Code, Machine, Step};

/// Branches of a method whose visible points are `points`; `file` numbers a document.
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

/// Conditions at the start of an iterator that look at its state: a `switch`, or two jumps.
fn iterator_states(code: &Code<'_>, machine: Machine) -> usize {
    let first = code.steps.iter().find(|step| step.is_condition());
    match first {
        Some(step) if machine.is_iterator => 1 + usize::from(!step.is(Opcode::Switch)),
        _ => 0,
    }
}

/// The last point at or before an offset; the first one where there is none.
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

/// Offset that is reached from another one through jumps that nothing depends on.
fn reached(code: &Code<'_>, offset: u32) -> u32 {
    let mut offset = offset;
    // A circle of jumps ends where it began, sooner or later.
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

/// Whether a point at an offset can't be reached by itself: the `nop` behind an exception that is
/// thrown again out of an `async` handler, and the `nop` that a debugger stops at within a
/// condition.
pub(crate) fn is_unreachable(code: &Code<'_>, machine: Machine, offset: u32) -> bool {
    let Some(number) = code.at(offset).filter(|number| code.steps[*number].is(Opcode::Nop)) else { return false };
    (machine.is_async && machine::follows_rethrow(code, number)) || made::is_debuggers_stop(code, number)
}
