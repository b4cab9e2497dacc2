//! Registers of x86-64 in signal frames and in samples of the kernel.

use crate::services::sampling::raw::Registers;

/// Registers that the kernel is asked for: `rbp`, `rsp` and `rip` (asm/perf_regs.h).
pub(crate) const PERF_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// The registers of what a signal interrupted.
pub(crate) fn interrupted(context: &libc::ucontext_t) -> Registers {
    let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize] as usize;
    Registers { ip: register(libc::REG_RIP), sp: register(libc::REG_RSP), bp: register(libc::REG_RBP) }
}

/// The registers of [`PERF_REGISTERS`], in the order in which the kernel gives them.
pub(crate) fn of_perf(registers: [u64; 3]) -> Registers {
    let [bp, sp, ip] = registers.map(|register| register as usize);
    Registers { ip, sp, bp }
}
