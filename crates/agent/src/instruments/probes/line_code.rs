//! Code that counts lines, and what it calls.
//!
//! A method that is called asks once for each counted place which counter is its thread's, and keeps the address in a local variable.
//! The place itself adds to the number at that address: a loop that is nothing but such places is as ready for collections as it
//! was, and no slower than by an addition. Since each thread has a counter of its own, plain additions lose nothing.

use std::sync::atomic::AtomicU64;

use clr_profiler::Token;
use clr_profiler::il::{Code, Edits, Label, Opcode};
use clrscope_recording::writer::LineLanes;

use crate::hooks::is_stopped;

/// `native unsigned int`, as signatures have it.
const UINT: u8 = 0x19;
/// Signature of [`counter`]: of managed code, address of the lanes in, that of a counter out.
pub(super) const COUNTER: &[u8] = &[0, 1, UINT, UINT];

/// Number to which is added what nobody counts.
static NOWHERE: AtomicU64 = AtomicU64::new(0);

/// A line in a method.
pub(super) struct PlacedLine {
    /// Path of the source file.
    pub(super) file: String,
    pub(super) line: u32,
    /// Offsets of the instructions that the place begins with, in the method's own code.
    pub(super) offsets: Vec<u32>,
    pub(super) lanes: LineLanes,
    /// Token of [`COUNTER`] in the method's module.
    pub(super) signature: Token,
    pub(super) is_counted: bool,
}

/// A method with counted places is called; which counter of the lanes is the thread's. Called as functions of `code` are.
unsafe extern "C" fn counter(lanes: *mut u8) -> *mut u8 {
    if is_stopped() {
        return NOWHERE.as_ptr().cast();
    }
    // SAFETY: takes nothing and can't fail; no two threads that live have the same.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the address that `edits` put into the code.
    unsafe { LineLanes::at(lanes) }.counter(thread)
}

/// The edits that count places of a method.
pub(super) fn edits<'p>(places: impl Iterator<Item = &'p PlacedLine>) -> Edits {
    let mut edits = Edits::new();
    let address = (counter as *const ()).expose_provenance() as u64;
    for place in places {
        let own = edits.new_local(&[UINT]);
        let asked = Code::new().address(place.lanes.address()).address(address);
        edits.at_entry(asked.call(Opcode::Calli, place.signature.as_raw(), 2, 1).store(own));
        for offset in &place.offsets {
            edits.before(Label::at(*offset), Code::new().load(own).add_one_there());
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_says_as_many_values_as_the_code_hands_over() {
        let shape = clr_profiler::il::method_shape(COUNTER).expect("a signature");
        assert_eq!((shape.takes, shape.result), (1, Some(&[UINT][..])));
    }
}
