//! Entry point for x86-64 System V. A probed method has an exception block, and such methods keep
//! the frame pointer in `rbp`. Rust code may use that register for anything from its first
//! instruction on, so the register is read before any Rust code runs.

use std::arch::naked_asm;

use super::super::find::find_from;
use crate::instruments::probes::callers::CalledMethod;

/// Called by a probed method at its beginning. Passes on the frame pointer, and the address at
/// which the method continues, as second and third argument.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn find(method: *const CalledMethod) -> usize {
    naked_asm!("mov rsi, rbp", "mov rdx, [rsp]", "jmp {target}", target = sym find_from)
}
