//! Inserted code that counts lines, and the function that this code calls.
//!
//! On each call a method asks once per counted place for its thread's counter, and keeps the
//! address in a local variable. The place itself adds to the number at that address. So a loop that
//! consists only of such places can be stopped for collections as before, and is slower only by an
//! addition. Each thread has a counter of its own, so plain additions lose nothing.

use std::sync::atomic::AtomicU64;

use clr_profiler::Token;
use clr_profiler::il::element::UINT;
use clr_profiler::il::{Code, Edits, Label, NewLocal, Opcode};
use clrscope_recording::writer::LineLanes;
use clrscope_agent_base::arch::thread_address;
use clrscope_agent_base::hooks::is_stopped;

use super::line_search::Start;
use crate::services::code_address::function_address;

/// Signature of [`counter`] as managed code. Argument: the address of the lanes (a line's
/// counters). Result: the address of the thread's counter.
pub(super) const COUNTER: &[u8] = &[0, 1, UINT, UINT];

/// Number that takes the additions that are not counted.
static NOWHERE: AtomicU64 = AtomicU64::new(0);

/// A place in a method at which a line is counted.
pub(super) struct PlacedLine {
    /// Path of the source file.
    pub(super) file: String,
    pub(super) line: u32,
    /// Instructions at which the place begins.
    pub(super) starts: Vec<Start>,
    pub(super) lanes: LineLanes,
    /// Token of [`COUNTER`] in the method's module.
    pub(super) signature: Token,
    pub(super) is_counted: bool,
}

/// A method with counted places is called. Returns the thread's counter among the lanes. Called
/// like the functions of `code`.
unsafe extern "C" fn counter(lanes: *mut u8) -> *mut u8 {
    if is_stopped() {
        return NOWHERE.as_ptr().cast();
    }
    // SAFETY: the address that `edits` put into the code.
    unsafe { LineLanes::at(lanes) }.counter(thread_address() as u64)
}

/// Adds one where the method has values on the stack.
///
/// The optimising compiler maps an IL offset to native code where the stack is empty, and behind
/// calls; stack traces find lines by this mapping. Behind a call, with values on the stack, the
/// counter takes the mapping entry, and keeps it.
fn add_one_with_a_note(own: NewLocal) -> Code {
    Code::new().load(own).add_one_there()
}

/// Adds one where the stack is empty. The instruction behind the counter has a mapping entry of its
/// own there, and the counter must leave none. The `dup` of a constant takes the entry and is then
/// dropped; the stack is not empty while the counter's code runs.
fn add_one_without_a_note(own: NewLocal) -> Code {
    let taken = Code::new().plain(Opcode::LdcI4_1).plain(Opcode::Dup).plain(Opcode::Pop);
    taken.load(own).add_one_there().plain(Opcode::Pop)
}

/// The edits that count the places in a method.
pub(super) fn edits<'p>(places: impl Iterator<Item = &'p PlacedLine>) -> Edits {
    let mut edits = Edits::new();
    let address = function_address(counter as *const ());
    for place in places {
        let own = edits.new_local(&[UINT]);
        let asked = Code::new().address(place.lanes.address()).address(address);
        edits.at_entry(asked.call(Opcode::Calli, place.signature.as_raw(), 2, 1).store(own));
        for start in &place.starts {
            let code = if start.has_values { add_one_with_a_note(own) } else { add_one_without_a_note(own) };
            edits.before(Label::at(start.offset), code);
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
