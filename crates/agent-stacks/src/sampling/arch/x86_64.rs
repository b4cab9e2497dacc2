//! Registers of x86-64 in signal frames and in samples of the kernel.

use crate::sampling::raw::Registers;

/// Registers requested from the kernel: `rbp`, `rsp` and `rip` (asm/perf_regs.h).
pub(crate) const PERF_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// The registers of the code that a signal interrupted.
pub(crate) fn interrupted(context: &libc::ucontext_t) -> Registers {
    let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize] as usize;
    Registers { ip: register(libc::REG_RIP), sp: register(libc::REG_RSP), bp: register(libc::REG_RBP) }
}

/// The registers of the calling function. This code is inlined into that function.
#[inline(always)]
pub(crate) fn current() -> Registers {
    let (ip, sp, bp): (usize, usize, usize);
    // SAFETY: reads three registers.
    unsafe {
        std::arch::asm!(
            "lea {0}, [rip]",
            "mov {1}, rsp",
            "mov {2}, rbp",
            out(reg) ip,
            out(reg) sp,
            out(reg) bp,
            options(nomem, nostack, preserves_flags)
        );
    }
    Registers { ip, sp, bp }
}

/// The registers that [`PERF_REGISTERS`] requests, given in the kernel's order.
pub(crate) fn of_perf(registers: [u64; 3]) -> Registers {
    let [bp, sp, ip] = registers.map(|register| register as usize);
    Registers { ip, sp, bp }
}

/// Body of a naked signal handler with SA_SIGINFO. It jumps to the function `ours` if a timer sent
/// the signal with a value whose upper half is `cookie`, and otherwise to the address in the word
/// `before`. In both cases registers and stack are as the kernel has set them up.
macro_rules! hand_on_unless_ours {
    (cookie = $cookie:ident, ours = $ours:ident, before = $before:ident) => {
        std::arch::naked_asm!(
            // `si_code`, then the upper half of `si_value`, as the kernel lays `siginfo_t` out.
            "cmp dword ptr [rsi + 8], {timer}",
            "jne 2f",
            "cmp dword ptr [rsi + 28], {cookie}",
            "jne 2f",
            "jmp {ours}",
            "2:",
            "jmp qword ptr [rip + {before}]",
            timer = const libc::SI_TIMER,
            cookie = const $cookie,
            ours = sym $ours,
            before = sym $before,
        )
    };
}
pub(crate) use hand_on_unless_ours;
