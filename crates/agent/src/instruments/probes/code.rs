//! Code that probes insert into methods, and the functions that it calls.
//!
//! A probed method calls the three functions of this module by address, as managed code calls
//! managed code. The thread stays in cooperative mode, where collections wait for it; no transition
//! frame is pushed, and nothing is marshalled. So the functions must obey the rules of hooks: a few
//! instructions, no lock, no allocation, no call of the runtime, no panic. A thread is stopped for
//! a collection in managed code only, so a loop must not consist of such calls alone. Each of the
//! functions is called once per call of the method, at its beginning or its end, and the runtime
//! inlines no probed method ([`request_rejit_with_inliners`]).
//!
//! A new local variable of the method holds the data of a call until its end: the time when the
//! call began, and whether it is the outermost call of the method on its thread ([`nesting`]). So
//! exceptions and threads need no special handling.
//!
//! [`request_rejit_with_inliners`]: clr_profiler::ProfilerInfo::request_rejit_with_inliners

use clr_profiler::Token;
use clr_profiler::il::element::{I4, I8, UINT, VOID};
use clr_profiler::il::{Body, Code, Edits, Flow, Opcode, Operand};
use clrscope_recording::writer::MethodLanes;
use clrscope_agent_base::hooks::is_stopped;
use clrscope_agent_base::clock::ticks;

use super::nesting::{self, OUTERMOST};
use crate::services::code_address::function_address;


/// Signature of [`enter`] as managed code. Arguments: the address of the lanes (a method's
/// counters), and their number. Result: the time.
pub(super) const ENTER: &[u8] = &[0, 2, I8, UINT, I4];
/// Signature of [`leave`] and [`fail`] as managed code. Arguments: the address of the lanes, their
/// number, and the time.
pub(super) const LEAVE: &[u8] = &[0, 3, VOID, UINT, I4, I8];

/// Tokens of the two signatures in a module.
#[derive(Clone, Copy)]
pub(super) struct Signatures {
    pub(super) enter: Token,
    pub(super) leave: Token,
}

/// Stands for the begin time of a call that began while nothing was recorded. The end of such a
/// call is not counted either.
pub(super) const NOT_COUNTED: u64 = 0;

/// A probed method is called.
unsafe extern "C" fn enter(lanes: *mut u8, count: u32) -> u64 {
    if is_stopped() {
        return NOT_COUNTED;
    }
    // SAFETY: the two numbers that `edits` put into the code.
    let lanes = unsafe { MethodLanes::at(lanes, count) };
    lanes.begin();
    nesting::begin(lanes) | ticks().max(NOT_COUNTED + 1)
}

/// A probed method returns.
unsafe extern "C" fn leave(lanes: *mut u8, count: u32, began: u64) {
    // SAFETY: as in `enter`.
    end(unsafe { MethodLanes::at(lanes, count) }, began, false);
}

/// An exception leaves a probed method.
unsafe extern "C" fn fail(lanes: *mut u8, count: u32, began: u64) {
    // SAFETY: as in `enter`.
    end(unsafe { MethodLanes::at(lanes, count) }, began, true);
}

#[inline]
fn end(lanes: MethodLanes, began: u64, has_failed: bool) {
    if ends_counted(lanes, began) {
        add(lanes, began, ticks(), has_failed);
    }
}

/// Ends a call for [`nesting`]. Returns whether the end is counted: the begin was counted, and
/// recording still runs.
#[inline]
pub(super) fn ends_counted(lanes: MethodLanes, began: u64) -> bool {
    if began == NOT_COUNTED {
        return false;
    }
    nesting::end(lanes, began);
    !is_stopped()
}

/// Counts a call that has ended. Returns its duration in ticks.
#[inline]
pub(super) fn add(lanes: MethodLanes, began: u64, now: u64, has_failed: bool) -> u64 {
    let took = now.saturating_sub(began & !OUTERMOST);
    lanes.end(took, has_failed);
    if began & OUTERMOST == 0 {
        lanes.add_nested(took);
    }
    took
}

/// Whether the method ends with a call somewhere: a call that is directly followed by the method's
/// return.
pub(super) fn ends_by_calls(body: &Body) -> bool {
    let opcodes = body.instructions().windows(2).map(|pair| [pair[0].opcode(), pair[1].opcode()]);
    opcodes.into_iter().any(|[first, second]| first.flow() == Flow::Call && second == Opcode::Ret)
}

/// The edits that count a method's calls.
pub(super) fn edits(lanes: MethodLanes, signatures: Signatures) -> Edits {
    let mut edits = Edits::new();
    let began = edits.new_local(&[I8]);
    let lanes = Code::new()
        .address(lanes.address())
        .with(Opcode::LdcI4, Operand::Int(lanes.count().cast_signed()));
    let end = |function: *const ()| {
        let time = lanes.clone().load(began);
        time.address(function_address(function)).call(Opcode::Calli, signatures.leave.as_raw(), 4, 0)
    };
    let entered = lanes.clone().address(function_address(enter as *const ()));
    edits.at_entry(entered.call(Opcode::Calli, signatures.enter.as_raw(), 3, 1).store(began));
    edits.at_returns(end(leave as *const ()));
    edits.at_failures(end(fail as *const ()));
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_before_a_return_are_seen() {
        let tiny = |code: &[u8]| Body::read(&[&[(code.len() as u8) << 2 | 2], code].concat()).expect("a body");
        // call, ret; call, pop, ret
        assert!(ends_by_calls(&tiny(&[0x28, 1, 0, 0, 6, 0x2a])));
        assert!(!ends_by_calls(&tiny(&[0x28, 1, 0, 0, 6, 0x26, 0x2a])));
    }

    #[test]
    fn signatures_say_as_many_values_as_the_code_hands_over() {
        let shape = |signature| clr_profiler::il::method_shape(signature).expect("a signature");
        assert_eq!((shape(ENTER).takes, shape(ENTER).result), (2, Some(&[I8][..])));
        assert_eq!((shape(LEAVE).takes, shape(LEAVE).result), (3, None));
    }
}
