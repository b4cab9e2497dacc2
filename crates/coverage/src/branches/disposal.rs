//! Compiler-generated conditions of `await foreach`, `await using` and async iterators. They test
//! whether there is an object to dispose of, and whether the iterator was disposed.

use clr_il::Opcode;
use clr_metadata::FieldFact;

use crate::code::{Code, Step};

/// Whether a condition of an `async` state machine belongs to `await foreach` or `await using`. The
/// condition of an `await foreach` that asks for the next item does not count: it belongs to the
/// loop itself.
pub(super) fn is_made(code: &Code<'_>, number: usize) -> bool {
    is_no_enumerator(code, number)
        || was_thrown(code, number)
        || is_exception(code, number)
        || skips_disposal(code, number)
        || is_cleanup(code, number)
}

fn is_field(field: Option<FieldFact>, asked: impl Fn(&FieldFact) -> bool) -> bool {
    field.is_some_and(|field| asked(&field))
}

/// Tests whether the enumerator was created: `ldarg.0`, `ldfld IAsyncEnumerator<T>`, `brfalse`.
fn is_no_enumerator(code: &Code<'_>, number: usize) -> bool {
    let loaded =
        code.before(number, 1).filter(|step| step.is(Opcode::Ldfld)).and_then(|step| code.generated_field(step));
    code.steps[number].is(Opcode::Brfalse)
        && code.is_before(number, 2, Opcode::Ldarg)
        && is_field(loaded, |field| field.type_name.starts_with("System.Collections.Generic.IAsyncEnumerator"))
}

/// Tests whether an exception was thrown before the awaited disposal: the stored object is loaded
/// after `GetResult`.
fn was_thrown(code: &Code<'_>, number: usize) -> bool {
    let gets_result = |step: &Step| {
        let of = |owner: &str| owner.starts_with("System.Runtime.CompilerServices") && owner.contains("TaskAwait");
        step.is(Opcode::Call) && code.callee(step).is_some_and(|callee| callee.name == "GetResult" && of(&callee.owner))
    };
    let loads_kept = |back: &usize| {
        let loaded = code.before(number, *back).filter(|step| step.is(Opcode::Ldfld));
        is_field(loaded.and_then(|step| code.generated_field(step)), |field| field.type_name == "System.Object")
    };
    let mut loads = (1..=3).filter(loads_kept);
    code.steps[number].is(Opcode::Brfalse)
        && loads.any(|back| (1..=4).any(|more| code.before(number, back + more).is_some_and(gets_result)))
}

/// Tests whether the thrown object is an exception: `ldloc`, `isinst Exception`, `brtrue`.
fn is_exception(code: &Code<'_>, number: usize) -> bool {
    let asks = |back: usize| {
        code.before(number, back).is_some_and(|step| code.asks_for_exception(step))
            && code.is_before(number, back + 1, Opcode::Ldloc)
    };
    code.steps[number].is(Opcode::Brtrue) && (1..=3).any(asks)
}

/// Tests whether there is an object to dispose of: the value is loaded again directly afterwards,
/// for `DisposeAsync`, after the end of a block that stores the caught exception.
fn skips_disposal(code: &Code<'_>, number: usize) -> bool {
    if !code.steps[number].is(Opcode::Brfalse) {
        return false;
    }
    let disposes = |step: &Step| {
        step.is(Opcode::Callvirt) && code.callee(step).is_some_and(|callee| callee.name == "DisposeAsync")
    };
    let loaded = code.before(number, 1);
    let is_local = loaded.is_some_and(|step| step.is(Opcode::Ldloc))
        && code.is_after(number, 1, Opcode::Ldloc)
        && code.after(number, 2).is_some_and(disposes);
    let field = loaded.filter(|step| step.is(Opcode::Ldfld)).filter(|step| code.generated_field(step).is_some());
    let loads_again = |on: usize| {
        let again = code.after(number, on).filter(|step| step.is(Opcode::Ldfld));
        again.zip(field).is_some_and(|(again, field)| again.number == field.number)
            && code.after(number, on + 1).is_some_and(disposes)
    };
    let is_disposed = is_local || (1..=2).any(loads_again);
    let ends_block = |back: usize| {
        let keeps = code.before(number, back + 1).filter(|step| step.is(Opcode::Stfld));
        code.is_before(number, back, Opcode::Leave) && keeps.and_then(|step| code.generated_field(step)).is_some()
    };
    is_disposed && (1..=4).any(ends_block)
}

/// Tests whether a `return` left the block; this follows the code that rethrows an exception.
fn is_cleanup(code: &Code<'_>, number: usize) -> bool {
    let is_comparison = code.steps[number].is_one_of(&[Opcode::Beq, Opcode::BneUn]);
    let loads_kept = |back: &usize| {
        let loaded = code.before(number, *back).filter(|step| step.is(Opcode::Ldfld));
        loaded.and_then(|step| code.generated_field(step)).is_some()
    };
    let throws = |back: usize| code.before(number, back).is_some_and(|step| code.throws_again(step));
    is_comparison
        && code.is_before(number, 1, Opcode::LdcI4)
        && (2..=5).filter(loads_kept).any(|back| (1..=4).any(|more| throws(back + more)))
}

/// Whether a condition in an async iterator's state machine tests the iterator's state, or whether
/// the iterator is disposed.
pub(super) fn is_iterators(code: &Code<'_>, number: usize) -> bool {
    let loads = |back: usize, name: &str| {
        let loaded = code.before(number, back).filter(|step| step.is(Opcode::Ldfld));
        is_field(loaded.and_then(|step| code.generated_field(step)), |field| field.name.ends_with(name))
            && code.is_before(number, back + 1, Opcode::Ldarg)
    };
    match code.steps[number].opcode {
        Opcode::Switch => (1..=5).any(|back| loads(back, "__state")),
        Opcode::Brfalse => loads(1, "__disposeMode"),
        _ => false,
    }
}

/// Whether a condition tests the token source that an async iterator creates from two cancellation
/// tokens.
pub(super) fn asks_for_tokens(code: &Code<'_>, number: usize) -> bool {
    let loaded = code.before(number, 1).filter(|step| step.is(Opcode::Ldfld)).and_then(|step| code.field(step));
    code.steps[number].is(Opcode::Brfalse)
        && code.is_before(number, 2, Opcode::Ldarg)
        && is_field(loaded, |field| {
            field.name.ends_with("x__combinedTokens") && field.type_name == "System.Threading.CancellationTokenSource"
        })
}
