//! Finds the method that a call instruction calls.

use std::ops::Range;

use clr_profiler::FunctionId;
use clrscope_agent_base::arch::{BEFORE_CALL, Destination, LONGEST_JUMP, called, jump};
use clrscope_agent_base::os::memory::{copy_if_there, word_if_there};

/// Most jumps between a call and the code of the method.
const MOST_JUMPS: usize = 6;
/// Most bytes of a body that are searched for calls.
const MOST_CODE: usize = 16 << 10;

/// What is at an address, as far as calls are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeAt<Id = FunctionId> {
    /// Code of a method, which begins at `start`.
    Method {
        /// The method whose code it is.
        method: Id,
        /// Beginning of the method's code.
        start: usize,
    },
    /// A piece of code outside of methods, which may pass the call on.
    Piece,
    /// Code of a library.
    Library,
    /// Unknown.
    Unknown,
}

/// The target of a call, as far as the instruction tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallTarget<Id = FunctionId> {
    /// The call calls this method.
    Method(Id),
    /// The call certainly calls no method.
    Nothing,
    /// Not known now: the runtime may not have stored the method's address there yet.
    Unknown,
}

/// The method called by the call that returns to an address. `code_at` says what is at an address.
/// A method's own code is never searched: a method that begins with a jump passes its caller's call
/// on to another method, but is itself the called method.
pub(crate) fn called_before<Id>(return_address: usize, mut code_at: impl FnMut(usize) -> CodeAt<Id>) -> CallTarget<Id> {
    let mut before = [0; BEFORE_CALL];
    let is_read = return_address.checked_sub(BEFORE_CALL).is_some_and(|start| copy_if_there(start, &mut before));
    let destination = called(&before, return_address).filter(|_| is_read);
    destination.map_or(CallTarget::Nothing, |destination| reached(destination, &mut code_at))
}

/// The methods that code calls by direct instructions, without duplicates, as far as they are known
/// now. Any bytes that look like a call are taken for a call, so `code_at` is also asked about
/// addresses that no call leads to.
pub(crate) fn called_by<Id: PartialEq>(
    addresses: &Range<usize>,
    mut code_at: impl FnMut(usize) -> CodeAt<Id>,
) -> Vec<Id> {
    let mut code = vec![0; addresses.len().min(MOST_CODE)];
    let mut found = Vec::new();
    if !copy_if_there(addresses.start, &mut code) {
        return found;
    }
    for (end, before) in (BEFORE_CALL..).zip(code.windows(BEFORE_CALL)) {
        let destination = before.first_chunk().and_then(|before| called(before, addresses.start + end));
        let Some(destination) = destination else { continue };
        if let CallTarget::Method(method) = reached(destination, &mut code_at)
            && !found.contains(&method)
        {
            found.push(method);
        }
    }
    found
}

/// The method to which a destination leads.
fn reached<Id>(mut destination: Destination, code_at: &mut impl FnMut(usize) -> CodeAt<Id>) -> CallTarget<Id> {
    for jumps in 0..MOST_JUMPS {
        let address = match destination {
            Destination::Code(address) => Some(address),
            Destination::Cell(cell) => word_if_there(cell),
        };
        let Some(address) = address else { return CallTarget::Unknown };
        match code_at(address) {
            // A call into the middle of a method is one to a block of the method.
            CodeAt::Method { method, start } if start == address => return CallTarget::Method(method),
            CodeAt::Method { .. } => return CallTarget::Nothing,
            // The jumps may lead to the runtime's code that compiles the method first.
            CodeAt::Library if jumps == 0 => return CallTarget::Nothing,
            CodeAt::Library | CodeAt::Unknown => return CallTarget::Unknown,
            CodeAt::Piece => {}
        }
        let mut code = [0; LONGEST_JUMP];
        let next = copy_if_there(address, &mut code).then(|| jump(&code, address)).flatten();
        // Calls of methods lead to jumps. Other pieces look the method up at each call.
        let Some(next) = next else { return if jumps == 0 { CallTarget::Nothing } else { CallTarget::Unknown } };
        destination = next;
    }
    CallTarget::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for code. A call at the beginning leads to offset 64.
    #[repr(align(64))]
    struct Room([u8; 192]);

    impl Room {
        fn new(at_64: &[u8]) -> Self {
            let mut room = Self([0xCC; 192]);
            room.0[16..21].copy_from_slice(&[0xE8, 43, 0, 0, 0]);
            room.0[64..64 + at_64.len()].copy_from_slice(at_64);
            room
        }

        /// The called method, where the code at offsets is as given.
        fn called(&self, at: &[(usize, CodeAt<u32>)]) -> CallTarget<u32> {
            let base = std::hint::black_box(&self.0).as_ptr().expose_provenance();
            let code_at = |address: usize| {
                let found = at.iter().find(|(offset, _)| base + offset == address).map(|(_, code)| *code);
                match found {
                    Some(CodeAt::Method { method, start }) => CodeAt::Method { method, start: base + start },
                    found => found.unwrap_or(CodeAt::Unknown),
                }
            };
            called_before(base + 21, code_at)
        }
    }

    #[test]
    fn a_call_leads_through_the_runtimes_jumps_but_not_through_methods_that_jump() {
        let jump = Room::new(&[0xE9, 59, 0, 0, 0]);
        let method = |number, start| CodeAt::Method { method: number, start };
        let found = CallTarget::Method;
        assert_eq!(jump.called(&[(64, CodeAt::Piece), (128, method(2, 128))]), found(2));
        assert_eq!(jump.called(&[(64, method(1, 64)), (128, method(2, 128))]), found(1), "a method that hands on");
        assert_eq!(jump.called(&[(64, method(1, 16))]), CallTarget::Nothing, "a block of the method itself");
        assert_eq!(jump.called(&[(64, CodeAt::Library)]), CallTarget::Nothing);
        assert_eq!(jump.called(&[(64, CodeAt::Piece), (128, CodeAt::Library)]), CallTarget::Unknown);
        assert_eq!(jump.called(&[]), CallTarget::Unknown);
        let base = std::hint::black_box(&jump.0).as_ptr().expose_provenance();
        let code_at = |address: usize| match address - base {
            64 => CodeAt::Piece,
            128 => CodeAt::Method { method: 2, start: address },
            _ => CodeAt::Unknown,
        };
        assert_eq!(called_by(&(base..base + 64), code_at), [2]);
        assert_eq!(Room::new(&[0x90]).called(&[(64, CodeAt::Piece)]), CallTarget::Nothing);
        assert_eq!(jump.called(&[(64, CodeAt::Piece), (128, CodeAt::Piece)]), CallTarget::Unknown);
    }
}
