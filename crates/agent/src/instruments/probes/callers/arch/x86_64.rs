//! Entry point for x86-64 System V. A probed method has a block for exceptions, and such methods
//! keep the frame pointer in `rbp`; Rust code may use that register for anything from its first
//! instruction on, so it is taken before any of it runs.

use std::arch::naked_asm;

use super::super::find::find_from;
use crate::instruments::probes::callers::CalledMethod;

/// A probed method is called: the frame pointer and the address at which the method goes on are a
/// second and a third argument.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn find(method: *const CalledMethod) -> usize {
    naked_asm!("mov rsi, rbp", "mov rdx, [rsp]", "jmp {target}", target = sym find_from)
}
