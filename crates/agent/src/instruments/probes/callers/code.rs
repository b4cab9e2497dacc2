//! Inserted code that distinguishes the callers of a method, and the functions that this code
//! calls.
//!
//! The functions are called like those of [`code`](super::super::code), and the same rules apply.
//! The first receives the frame of the probed method and finds the record of its callers. The
//! method keeps the record's address in a local variable, so that begin and end of a call are
//! counted in the same record.

use clr_profiler::il::element::{I8, UINT, VOID};
use clr_profiler::il::{Code, Edits, NewLocal, Opcode};
use clr_profiler::{ModuleId, ProfilerInfo, Token};
use clrscope_recording::writer::CallerCell;
use clrscope_agent_base::hooks::is_stopped;
use clrscope_agent_base::clock::ticks;

use super::super::code::{NOT_COUNTED, add, ends_counted};
use super::super::nesting;
use super::{CalledMethod, arch};
use crate::services::code_address::function_address;


/// Signature of [`find`](arch::find), as managed code. In: the method. Out: the record.
const FIND: &[u8] = &[0, 1, UINT, UINT];
/// Signature of [`enter`]. In: the method and the record. Out: the time.
const ENTER: &[u8] = &[0, 2, I8, UINT, UINT];
/// Signature of [`leave`] and [`fail`]. In: the method, the time and the record.
const LEAVE: &[u8] = &[0, 3, VOID, UINT, I8, UINT];

/// Tokens of the functions' signatures in a module.
#[derive(Clone, Copy)]
pub(in crate::instruments::probes) struct CallerSignatures {
    find: Token,
    enter: Token,
    leave: Token,
}

impl CallerSignatures {
    /// Makes the signatures in a module.
    ///
    /// # Errors
    /// The runtime's error.
    pub(in crate::instruments::probes) fn make(info: &ProfilerInfo, module: ModuleId) -> clr_profiler::Result<Self> {
        let token = |signature: &[u8]| info.signature_token(module, signature);
        Ok(Self { find: token(FIND)?, enter: token(ENTER)?, leave: token(LEAVE)? })
    }
}

/// A probed method is called.
unsafe extern "C" fn enter(method: *const CalledMethod, record: usize) -> u64 {
    if is_stopped() {
        return NOT_COUNTED;
    }
    // SAFETY: the address that `edits` put into the code.
    let lanes = unsafe { &*method }.lanes;
    lanes.begin();
    // SAFETY: the address that `find` returned.
    if let Some(cell) = unsafe { CallerCell::at(record) } {
        cell.begin();
    }
    nesting::begin(lanes) | ticks().max(NOT_COUNTED + 1)
}

/// A probed method returns.
unsafe extern "C" fn leave(method: *const CalledMethod, began: u64, record: usize) {
    // SAFETY: as in `enter`.
    unsafe { end(method, began, record, false) };
}

/// An exception leaves a probed method.
unsafe extern "C" fn fail(method: *const CalledMethod, began: u64, record: usize) {
    // SAFETY: as in `enter`.
    unsafe { end(method, began, record, true) };
}

/// Counts the end of a call.
///
/// # Safety
/// The method and the record must come from the code of the method.
#[inline]
unsafe fn end(method: *const CalledMethod, began: u64, record: usize, has_failed: bool) {
    // SAFETY: the caller's promise.
    let (method, cell) = unsafe { (&*method, CallerCell::at(record)) };
    if !ends_counted(method.lanes, began) {
        return;
    }
    let took = add(method.lanes, began, ticks(), has_failed);
    if let Some(cell) = cell {
        cell.end(took, has_failed);
    }
}

/// The code for the method's entry that finds the record of the callers, and the local variable
/// that holds the record from then on.
pub(in crate::instruments::probes) fn keep_record(
    edits: &mut Edits,
    (method, signatures): (&'static CalledMethod, CallerSignatures),
) -> (Code, NewLocal) {
    let record = edits.new_local(&[UINT]);
    let code = Code::new().address(method_address(method)).address(function_address(arch::find as *const ()));
    (code.call(Opcode::Calli, signatures.find.as_raw(), 2, 1).store(record), record)
}

/// The edits that count a method's calls separately by callers.
pub(in crate::instruments::probes) fn edits(called: (&'static CalledMethod, CallerSignatures)) -> Edits {
    let (method, signatures) = called;
    let mut edits = Edits::new();
    let (found, record) = keep_record(&mut edits, called);
    let began = edits.new_local(&[I8]);
    let entered = found.address(method_address(method)).load(record).address(function_address(enter as *const ()));
    edits.at_entry(entered.call(Opcode::Calli, signatures.enter.as_raw(), 3, 1).store(began));
    let end = |function: *const ()| {
        let code = Code::new().address(method_address(method)).load(began).load(record).address(function_address(function));
        code.call(Opcode::Calli, signatures.leave.as_raw(), 4, 0)
    };
    edits.at_returns(end(leave as *const ()));
    edits.at_failures(end(fail as *const ()));
    edits
}

fn method_address(method: &'static CalledMethod) -> u64 {
    std::ptr::from_ref(method).expose_provenance() as u64
}


#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_say_as_many_values_as_the_code_hands_over() {
        let shape = |signature| clr_profiler::il::method_shape(signature).expect("a signature");
        assert_eq!((shape(FIND).takes, shape(FIND).result), (1, Some(&[UINT][..])));
        assert_eq!((shape(ENTER).takes, shape(ENTER).result), (2, Some(&[I8][..])));
        assert_eq!((shape(LEAVE).takes, shape(LEAVE).result), (3, None));
    }
}
