//! Code that is inserted into async methods, and the functions that it calls.
//!
//! An async method stores the number of its await before it waits. The inserted code behind that
//! store replaces the number by one that contains the number of the [wait](super::waits). When the
//! method resumes, inserted code at its beginning restores the number of the await, so the method
//! itself never sees the changed number. The awaited operation has a result when the call that
//! fetches the result returns, and has none when that call throws.
//!
//! The functions are called like those of `probes`: by address, as managed code calls managed code.
//! They do not query the runtime. On any path through the method, each is called only once.

use std::sync::atomic::Ordering;

use clr_profiler::Token;
use clr_profiler::il::element::{I4, UINT, VOID};
use clr_profiler::il::{Code, Edits, Opcode, Operand};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::clock::ticks;
use clrscope_agent_base::hooks::{is_stopped, own};
use clrscope_agent_base::threads;
use clrscope_contract::async_code::{AWAIT_BITS, NUMBERED_WAIT, await_number};

use super::place::{MethodPlaces, Place};
use crate::services::code_address::function_address;
use crate::services::await_places::AsyncCode;
use super::recorder::{Outcome, Recorder};
use super::waits::{self, Waits};


/// Signature of [`begin`] as managed code. Arguments: the number of the await, and the address of
/// its place. Result: the number that the method stores.
pub(super) const BEGIN: &[u8] = &[0, 2, I4, I4, UINT];
/// Signature of [`resume`] as managed code. Arguments: the number that the method has stored, and
/// the address of its state. Result: the number of the await.
pub(super) const RESUME: &[u8] = &[0, 2, I4, I4, UINT];
/// Signature of [`succeed`] as managed code.
pub(super) const SUCCEED: &[u8] = &[0, 0, VOID];

/// Tokens of the three signatures in a module.
#[derive(Clone, Copy)]
pub(super) struct Signatures {
    pub(super) begin: Token,
    pub(super) resume: Token,
    pub(super) succeed: Token,
}

/// A method is about to wait. Returns the number that the method stores: the number of the await
/// itself where the wait is not recorded.
unsafe extern "C" fn begin(number: u32, place: *const Place) -> u32 {
    if is_stopped() {
        return number;
    }
    let mut stored = number;
    guard(|| {
        // SAFETY: the address that `edits` put into the code, of a place that is never freed.
        let wait = numbered_wait(unsafe { &*place });
        stored |= wait.map_or(0, |wait| NUMBERED_WAIT | (wait << AWAIT_BITS));
    });
    stored
}

/// The number of a wait that begins at a place; `None` if it is not recorded.
fn numbered_wait(place: &'static Place) -> Option<u32> {
    let recorder = Recorder::current().filter(|recorder| place.is_known_to(recorder.number()))?;
    let taken = waits::of_process().and_then(|waits| {
        let number = waits.take_number()?;
        Some((waits.known(number)?, number))
    });
    let Some((wait, number)) = taken else {
        recorder.drop_wait();
        return None;
    };
    wait.begin(place, ticks());
    Some(number)
}

/// A method resumes after a wait that has a number. Returns the number of its await.
unsafe extern "C" fn resume(stored: u32, this: usize) -> u32 {
    guard(|| {
        if let Some(waits) = waits::of_process() {
            resumed(waits, (stored & !NUMBERED_WAIT) >> AWAIT_BITS, this);
        }
    });
    await_number(stored)
}

fn resumed(waits: &Waits, number: u32, this: usize) {
    let recorder = Recorder::current().filter(|_| !is_stopped());
    let recorded = recorder.and_then(|recorder| {
        let wait = waits.known(number)?;
        wait.began()?;
        let place = wait.place()?;
        let now = ticks();
        wait.ended.store(now, Ordering::Relaxed);
        if recorder.wants_path(now) {
            wait.path.store(recorder.path(place, this), Ordering::Relaxed);
        }
        let record = threads::current().filter(|_| place.has_result);
        match record {
            Some(record) => {
                let before = record.u32(own::AWAIT).swap(number + 1, Ordering::Relaxed);
                // An earlier wait without a result, whose exception was not seen.
                if let Some(before) = before.checked_sub(1) {
                    recorder.ended(waits, before, Outcome::Failure);
                }
            }
            None => recorder.ended(waits, number, Outcome::Result),
        }
        Some(())
    });
    if recorded.is_none() {
        waits.give_back(number);
    }
}

/// The awaited operation has returned its result.
unsafe extern "C" fn succeed() {
    guard(|| end_current(|| Outcome::Result));
}

/// Ends the wait after which the calling thread has just resumed a method. Does nothing if there is
/// no such wait, or if its outcome is already known.
pub(super) fn end_current(outcome: impl FnOnce() -> Outcome) {
    let Some(record) = threads::known() else { return };
    let Some(number) = record.u32(own::AWAIT).swap(0, Ordering::Relaxed).checked_sub(1) else { return };
    let Some(waits) = waits::of_process() else { return };
    match Recorder::current().filter(|_| !is_stopped()) {
        Some(recorder) => recorder.ended(waits, number, outcome()),
        None => waits.give_back(number),
    }
}

/// The edits to a method's code that make its awaits followed.
pub(super) fn edits(code: &AsyncCode, places: &MethodPlaces, signatures: Signatures) -> Edits {
    let mut edits = Edits::new();
    let stored = edits.new_local(&[I4]);
    let this = || Code::new().plain(Opcode::Ldarg0);
    let number = |number: u32| (Opcode::LdcI4, Operand::Int(number.cast_signed()));
    let state = |opcode| (opcode, Operand::Token(code.state));
    let with = |code: Code, (opcode, operand): (Opcode, Operand)| code.with(opcode, operand);
    // Negative numbers mean that the method runs for the first time; they are smaller.
    let unless_numbered = |mut code: Code, inner: &dyn Fn(Code) -> Code| {
        let behind = code.new_mark();
        let code = with(code.load(stored), number(NUMBERED_WAIT)).branch(Opcode::Blt, behind);
        inner(code).mark(behind)
    };

    let entry = with(this(), state(Opcode::Ldfld)).store(stored);
    edits.at_entry(unless_numbered(entry, &|code| {
        let handed = code.plain(Opcode::Ldarg0).load(stored).plain(Opcode::Ldarg0).plain(Opcode::ConvU);
        let called = handed.address(function_address(resume as *const ()));
        with(called.call(Opcode::Calli, signatures.resume.as_raw(), 3, 1), state(Opcode::Stfld))
    }));
    for (found, place) in code.awaits.iter().zip(places.places()) {
        let handed = with(this(), number(found.number)).address(place.address());
        let called = handed.address(function_address(begin as *const ()));
        let called = called.call(Opcode::Calli, signatures.begin.as_raw(), 3, 1);
        edits.after(found.store, with(called, state(Opcode::Stfld)));
        if let Some(result) = found.result {
            let succeeded = |code: Code| {
                let called = code.address(function_address(succeed as *const ()));
                let called = called.call(Opcode::Calli, signatures.succeed.as_raw(), 1, 0);
                // Once: a loop may get here again without a wait.
                with(called, number(0)).store(stored)
            };
            edits.after(result, unless_numbered(Code::new(), &succeeded));
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_say_as_many_values_as_the_code_hands_over() {
        let shape = |signature| clr_profiler::il::method_shape(signature).expect("a signature");
        assert_eq!((shape(BEGIN).takes, shape(BEGIN).result), (2, Some(&[I4][..])));
        assert_eq!((shape(RESUME).takes, shape(RESUME).result), (2, Some(&[I4][..])));
        assert_eq!((shape(SUCCEED).takes, shape(SUCCEED).result), (0, None));
    }
}
