//! The function that code belongs to, by an address that has run.
//!
//! The runtime may be asked only about code that has run, or that it has prepared. Of precompiled
//! code it finds the piece at an address, and goes down from there to a piece whose method it has
//! prepared: it takes what it finds for the method, and where it has prepared none further down, it
//! reads on in front of its table until the program dies (seen on 9 and 10). Words on stacks that
//! look like return addresses are often places where methods begin, on their way to be called: the
//! byte before such a place is in a gap behind another method, which may never have been called.
//! Where a call returns to has run.

use clr_profiler::{FunctionId, ProfilerInfo, ReJitId, StackFrame};

use crate::arch::{LONGEST_CALL, follows_call};
use crate::os::memory::copy_if_there;

/// An address of code that has run, or that the runtime has prepared to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunAddress(usize);

impl RunAddress {
    /// The call that returns to an address. `None` where no call ends there. Where the system does
    /// not let us read the bytes, the address is taken to be a return address, as the caller says.
    pub fn before_return(return_address: usize) -> Option<Self> {
        if is_call_before(return_address) == Some(false) {
            return None;
        }
        return_address.checked_sub(1).map(Self)
    }

    /// The place at which a frame of the runtime's own walk is.
    pub fn of_frame(frame: &StackFrame) -> Option<Self> {
        frame.address.checked_sub(1).map(Self)
    }

    /// The instruction at which a thread was interrupted, or that failed, or the block that the
    /// runtime enters next.
    pub const fn executed(address: usize) -> Self {
        Self(address)
    }

    /// The destination of a call that has been made, or whose address the runtime has given to
    /// callers.
    pub const fn called(address: usize) -> Self {
        Self(address)
    }

    /// The address.
    pub const fn address(self) -> usize {
        self.0
    }
}

/// Whether a call ends right before an address; `None` where the bytes can't be read.
pub fn is_call_before(address: usize) -> Option<bool> {
    let mut before = [0; LONGEST_CALL];
    copy_if_there(address.checked_sub(before.len())?, &mut before).then(|| follows_call(&before))
}

/// The function whose code lies at an address, and its version; `None` for what is no function's.
/// Not in signal handlers.
pub fn function_at(info: &ProfilerInfo, address: RunAddress) -> Option<(FunctionId, ReJitId)> {
    // SAFETY: the code has run, or is prepared.
    unsafe { info.function_at(address.0) }.ok()
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
        let found = [7, 8].map(|at| RunAddress::before_return(start + at).map(RunAddress::address));
        assert_eq!(found, [Some(start + 6), None]);
    }
}
