//! Compiler-generated conditions of `async` state machines: tests of the state, of awaiters that
//! may already be completed, and of `catch` and `finally` blocks that await (the compiler moves
//! their code behind the block).

use clr_il::{ClauseKind, Opcode};

use crate::code::{Code, Step};

/// Whether the method begins with loading its state: `ldarg.0`, `ldfld <>1__state`, `stloc.0`.
pub(super) fn has_prolog(code: &Code<'_>) -> bool {
    let [this, load, store, ..] = &code.steps[..] else { return false };
    let is_state = code.field(load).is_some_and(|field| field.name == "<>1__state");
    this.is(Opcode::Ldarg) && load.is(Opcode::Ldfld) && is_state && store.is(Opcode::Stloc) && store.number == 0
}

/// Whether a condition tests the state, which is in the first local variable, or whether an awaiter
/// is completed.
pub(super) fn is_state_or_awaiter(code: &Code<'_>, number: usize) -> bool {
    let is_state = |step: &Step| step.is(Opcode::Ldloc) && step.number == 0;
    let loads_state = (1..=3).any(|back| number > back && code.before(number, back).is_some_and(is_state));
    let is_awaiter = |step: &Step| {
        code.callee(step).is_some_and(|callee| callee.name == "get_IsCompleted" && is_awaiter_type(&callee.owner))
    };
    loads_state || code.before(number, 1).is_some_and(is_awaiter)
}

/// `TaskAwaiter`, `ValueTaskAwaiter`1`, `YieldAwaitable/YieldAwaiter` and the like: `Task` is not
/// one: only user code tests it.
fn is_awaiter_type(owner: &str) -> bool {
    let own = owner.rsplit(['/', '.']).next().unwrap_or(owner);
    own.split('`').next().is_some_and(|name| name.ends_with("Awaiter"))
}

/// Conditions behind handlers that test whether an exception was caught, and by which handler. A
/// sequence of handlers has one condition for each.
pub(super) fn handler_checks(code: &Code<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut handlers = 1;
    for clause in &code.clauses {
        let end = clause.handler().1;
        if code.clauses.iter().any(|other| other.handler().0 == end) {
            handlers += 1;
            continue;
        }
        let mut at = code.bound(end);
        for _ in 0..handlers {
            let is_check =
                |on: &usize| code.after(at, *on).is_some_and(|step| step.is_one_of(&[Opcode::Beq, Opcode::BneUn]));
            let Some(on) = (1..=5).find(is_check) else { break };
            at += on;
            if code.is_before(at, 1, Opcode::LdcI4) && code.is_before(at, 2, Opcode::Ldloc) {
                found.push(at);
            }
        }
    }
    found
}

/// Whether a condition belongs to an exception that is stored across an `await`: the exception is
/// rethrown, or a `finally` tests it.
pub(super) fn is_made(code: &Code<'_>, number: usize) -> bool {
    throws_what_is_no_exception(code, number) || is_state_of_finally(code, number) || is_kept_exception(code, number)
}

/// `isinst Exception` before, and `throw` of the stored object directly after it.
fn throws_what_is_no_exception(code: &Code<'_>, number: usize) -> bool {
    let asks =
        [2, 3].into_iter().any(|back| code.before(number, back).is_some_and(|step| code.asks_for_exception(step)));
    asks && code.is_after(number, 1, Opcode::Ldarg)
        && code.is_after(number, 2, Opcode::Ldfld)
        && code.is_after(number, 3, Opcode::Throw)
}

/// `ldfld int <>s__N`, `stloc`, `ldloc`, `ldc.i4.1`, `beq`, in a method with a `finally`.
fn is_state_of_finally(code: &Code<'_>, number: usize) -> bool {
    let loads_kept = |back: usize| {
        let kept = code.before(number, back).filter(|step| step.is(Opcode::Ldfld));
        let kept = kept.and_then(|step| code.generated_field(step));
        let is_number = kept.is_some_and(|field| field.type_name == "System.Int32" && field.name.starts_with("<>s__"));
        is_number && code.is_before(number, back + 1, Opcode::Ldarg)
    };
    let is_one = |step: &Step| step.is(Opcode::LdcI4) && step.number == 1;
    code.steps[number].is(Opcode::Beq)
        && code.before(number, 1).is_some_and(is_one)
        && code.is_before(number, 2, Opcode::Ldloc)
        && (3..=6).any(loads_kept)
        && code.clauses.iter().any(|clause| clause.kind() == ClauseKind::Finally)
}

/// Tests whether the stored exception is null: `ldfld object <>s__N` (`<>7__wrapN` in optimised
/// code), possibly through a local variable.
fn is_kept_exception(code: &Code<'_>, number: usize) -> bool {
    let through_local = code.is_before(number, 1, Opcode::Ldloc) && code.is_before(number, 2, Opcode::Stloc);
    let back = if through_local { 3 } else { 1 };
    let kept = code.before(number, back).filter(|step| step.is(Opcode::Ldfld));
    let is_exception = |name: &str| name == "System.Object" || name == "System.Exception";
    let is_keeper = |name: &str| name.starts_with("<>s__") || name.starts_with("<>7__wrap");
    code.steps[number].is_one_of(&[Opcode::Brfalse, Opcode::Brtrue])
        && code.is_before(number, back + 1, Opcode::Ldarg)
        && kept
            .and_then(|step| code.generated_field(step))
            .is_some_and(|field| is_exception(&field.type_name) && is_keeper(&field.name))
}

/// Whether a `nop` follows `ExceptionDispatchInfo.Throw`, directly or through the jump that leads
/// to the `nop`.
pub(super) fn follows_rethrow(code: &Code<'_>, number: usize) -> bool {
    if last_real(code, number).is_some_and(|before| code.throws_again(&code.steps[before])) {
        return true;
    }
    let here = code.steps[number].offset;
    let leads_here = |jump: usize| {
        let next = code.steps[jump + 1].offset;
        code.steps[jump].targets.first().is_some_and(|target| *target == here || *target == next)
            && !code.steps[jump].is(Opcode::Switch)
    };
    let jump = (0..number).rev().find(|jump| leads_here(*jump));
    let before = jump.and_then(|jump| last_real(code, jump));
    before.is_some_and(|before| code.throws_again(&code.steps[before]))
}

/// The last instruction before a given one that is not a `nop`.
fn last_real(code: &Code<'_>, number: usize) -> Option<usize> {
    (0..number).rev().find(|before| !code.steps[*before].is(Opcode::Nop))
}
