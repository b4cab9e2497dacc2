//! Call sites: whether a call returns to an address, and the method that it is in.
//!
//! The runtime may be asked only about code that has run. Of precompiled code it finds the piece at an address, and goes down from there to a
//! piece whose method it has prepared: it takes what it finds for the method, and where it has prepared none further down, it
//! reads on in front of its table until the program dies. Words on stacks that look like return addresses are often places
//! where methods begin, on their way to be called: the byte before such a place is in a gap behind another method, which
//! may never have been called. Where a call returns to has run.

use clr_profiler::{FunctionId, ProfilerInfo};

use crate::arch::{LONGEST_CALL, follows_call};
use crate::os::memory::copy_if_there;

/// Whether a call ends right before an address; `None` where the bytes can't be read.
pub(crate) fn is_call_before(address: usize) -> Option<bool> {
    let mut before = [0; LONGEST_CALL];
    copy_if_there(address.checked_sub(before.len())?, &mut before).then(|| follows_call(&before))
}

/// The method with a call that returns to an address; `None` for what is no method, and where no call returns to. The runtime is asked also where
/// the system lets nobody look at the bytes.
pub(super) fn method_of_call(info: &ProfilerInfo, return_address: usize) -> Option<FunctionId> {
    if is_call_before(return_address) == Some(false) {
        return None;
    }
    info.function_at(return_address.checked_sub(1)?).ok().map(|(method, _)| method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_before_where_it_returns_to_and_nowhere_else() {
        // call rax, nop, and the room up to a method that begins at a multiple of 16.
        let mut code = [0xCC_u8; 16];
        code[5..8].copy_from_slice(&[0xFF, 0xD0, 0x90]);
        let start = code.as_ptr().expose_provenance();
        assert_eq!([7, 8, 16].map(|at| is_call_before(start + at)), [true, false, false].map(Some));
        assert_eq!([0, 7, 4096].map(is_call_before), [None; 3]);
    }
}
