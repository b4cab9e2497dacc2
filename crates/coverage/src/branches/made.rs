//! Compiler-generated conditions in methods of any kind: delegates that are created once, exception
//! filters, `finally` blocks that are not in the source, and jumps for debuggers.

use clr_il::{ClauseKind, Opcode};
use clr_metadata::SequencePoint;

use crate::code::{Code, Step};

/// Whether the compiler generated a condition in one of these ways. `points` are the visible
/// sequence points of the method.
pub(super) fn is_made(code: &Code<'_>, number: usize, points: &[SequencePoint]) -> bool {
    is_debuggers_jump(code, number)
        || makes_delegate(code, number)
        || is_in_filter(code, number)
        || is_in_hidden_finally(code, number, points)
}

/// `ldc.i4.1` and a jump over the next `nop`: a debugger can stop there at the parts of a pattern.
fn is_debuggers_jump(code: &Code<'_>, number: usize) -> bool {
    let is_one = |step: &Step| step.is(Opcode::LdcI4) && step.number == 1;
    let over = code.after(number, 2).map(|step| step.offset);
    code.before(number, 1).is_some_and(is_one)
        && code.is_after(number, 1, Opcode::Nop)
        && over.is_some()
        && code.steps[number].targets.first().copied() == over
}

/// Whether a jump for debuggers skips a `nop`.
pub(super) fn is_debuggers_stop(code: &Code<'_>, number: usize) -> bool {
    let jump = number.checked_sub(1).filter(|jump| code.steps[*jump].is(Opcode::Brtrue));
    jump.is_some_and(|jump| is_debuggers_jump(code, jump))
}

/// Tests whether the field that caches a lambda (`<>9__1_0`) or a method group (`<0>__Name`) is
/// empty.
fn makes_delegate(code: &Code<'_>, number: usize) -> bool {
    let is_kept = |name: &str| name.starts_with("<>9_") || is_method_group(name);
    let keeps =
        |step: &Step| step.is(Opcode::Ldsfld) && code.generated_field(step).is_some_and(|field| is_kept(&field.name));
    (1..=2).any(|back| code.before(number, back).is_some_and(keeps))
}

fn is_method_group(name: &str) -> bool {
    let rest = name.strip_prefix('<').and_then(|rest| rest.split_once(">__"));
    rest.is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_in_filter(code: &Code<'_>, number: usize) -> bool {
    code.clauses.iter().any(|clause| match clause.kind() {
        ClauseKind::Filter(start) => (code.bound(start)..code.bound(clause.handler().0)).contains(&number),
        _ => false,
    })
}

/// `using`, `lock` and `foreach` end with a `finally` that is not in the source: no line begins
/// inside it.
fn is_in_hidden_finally(code: &Code<'_>, number: usize, points: &[SequencePoint]) -> bool {
    code.clauses.iter().filter(|clause| clause.kind() == ClauseKind::Finally).any(|clause| {
        let (start, end) = (code.bound(clause.handler().0), code.bound(clause.handler().1));
        let offset = |number: usize| code.steps.get(number).map_or(u32::MAX, |step| step.offset);
        let (first, behind) = (offset(start), offset(end));
        let has_line = points.iter().any(|point| (first..behind).contains(&point.il_offset));
        (start..end).contains(&number) && !has_line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_keep_method_groups_are_known_by_their_names() {
        assert!(is_method_group("<0>__Map") && is_method_group("<12>__Add"));
        assert!(!is_method_group("<Name>k__BackingField") && !is_method_group("<>__x") && !is_method_group("x"));
    }
}
