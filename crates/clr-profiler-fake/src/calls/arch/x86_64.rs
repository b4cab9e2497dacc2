//! Calls of hooks on x86-64.

use std::arch::naked_asm;

use crate::calls::Hook;

/// The registers that a hook must preserve, before or after the call. At enter these are the
/// arguments (`rdi`, `rsi`, `rdx`, `rcx`, `r8`, `r9`, `xmm0` to `xmm7`), at leave the results
/// (`rax`, `rdx`, `rcx`, `xmm0`, `xmm1`), and always `rbx` and `r12` to `r15`.
#[repr(C, align(16))]
#[derive(Clone, Copy, PartialEq)]
struct Registers {
    vectors: [[u64; 2]; 8],
    general: [u64; 6],
    saved: [u64; 5],
    unused: u64,
}

impl Registers {
    /// Registers with a different value in each.
    fn pattern() -> Self {
        let mut next = 0x0123_4567_89ab_cdef_u64;
        let mut number = || {
            next = next.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            next
        };
        Self {
            vectors: std::array::from_fn(|_| [number(), number()]),
            general: std::array::from_fn(|_| number()),
            saved: std::array::from_fn(|_| number()),
            unused: 0,
        }
    }
}

/// Calls a hook at `entry`. `Err` names the registers that the hook changed.
pub(crate) fn call(hook: Hook, entry: usize, id: usize, sp: usize) -> Result<(), String> {
    let before = {
        let mut registers = Registers::pattern();
        if hook == Hook::Enter {
            // r14 and r15 hold the identifier and the stack pointer.
            registers.saved[3] = id as u64;
            registers.saved[4] = sp as u64;
        }
        registers
    };
    let mut after = before;
    // SAFETY: `entry` is a hook the profiler registered, called in the convention it was registered
    // for.
    unsafe {
        match hook {
            Hook::Enter => call_enter(entry, &mut after),
            Hook::Leave | Hook::Tailcall => call_leave(entry, id, sp, &mut after),
        }
    }
    let changed = changes(hook, &before, &after);
    if changed.is_empty() { Ok(()) } else { Err(format!("the {hook:?} hook changed {}", changed.join(", "))) }
}

/// Registers that the hook must preserve but has changed.
fn changes(hook: Hook, before: &Registers, after: &Registers) -> Vec<String> {
    let (general, vectors): (&[&str], usize) = match hook {
        Hook::Enter => (&["rdi", "rsi", "rdx", "rcx", "r8", "r9"], 8),
        Hook::Leave | Hook::Tailcall => (&["rax", "rdx", "rcx"], 2),
    };
    let differ = |names: &[&str], before: &[u64], after: &[u64]| -> Vec<String> {
        let values = names.iter().zip(before.iter().zip(after));
        values.filter(|(_, (before, after))| before != after).map(|(name, _)| (*name).to_owned()).collect()
    };
    let mut changed = differ(general, &before.general, &after.general);
    changed.extend((0..vectors).filter(|n| before.vectors[*n] != after.vectors[*n]).map(|n| format!("xmm{n}")));
    changed.extend(differ(&["rbx", "r12", "r13", "r14", "r15"], &before.saved, &after.saved));
    changed
}

/// `rdi`: the hook, `rsi`: the registers to load before and to store after. The stack is aligned at
/// the hook's call: six registers and 8 bytes after the return address.
#[unsafe(naked)]
unsafe extern "C" fn call_enter(entry: usize, registers: *mut Registers) {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rsi",
        "mov rax, rdi",
        "mov r10, rsi",
        "movaps xmm0, [r10]",
        "movaps xmm1, [r10 + 16]",
        "movaps xmm2, [r10 + 32]",
        "movaps xmm3, [r10 + 48]",
        "movaps xmm4, [r10 + 64]",
        "movaps xmm5, [r10 + 80]",
        "movaps xmm6, [r10 + 96]",
        "movaps xmm7, [r10 + 112]",
        "mov rdi, [r10 + 128]",
        "mov rsi, [r10 + 136]",
        "mov rdx, [r10 + 144]",
        "mov rcx, [r10 + 152]",
        "mov r8, [r10 + 160]",
        "mov r9, [r10 + 168]",
        "mov rbx, [r10 + 176]",
        "mov r12, [r10 + 184]",
        "mov r13, [r10 + 192]",
        "mov r14, [r10 + 200]",
        "mov r15, [r10 + 208]",
        "call rax",
        "mov r10, [rsp]",
        "movaps [r10], xmm0",
        "movaps [r10 + 16], xmm1",
        "movaps [r10 + 32], xmm2",
        "movaps [r10 + 48], xmm3",
        "movaps [r10 + 64], xmm4",
        "movaps [r10 + 80], xmm5",
        "movaps [r10 + 96], xmm6",
        "movaps [r10 + 112], xmm7",
        "mov [r10 + 128], rdi",
        "mov [r10 + 136], rsi",
        "mov [r10 + 144], rdx",
        "mov [r10 + 152], rcx",
        "mov [r10 + 160], r8",
        "mov [r10 + 168], r9",
        "mov [r10 + 176], rbx",
        "mov [r10 + 184], r12",
        "mov [r10 + 192], r13",
        "mov [r10 + 200], r14",
        "mov [r10 + 208], r15",
        "pop rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// `rdi`: the hook, `rsi`: identifier, `rdx`: stack pointer, `rcx`: the registers.
#[unsafe(naked)]
unsafe extern "C" fn call_leave(entry: usize, id: usize, sp: usize, registers: *mut Registers) {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rcx",
        "mov r11, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov r10, rcx",
        "movaps xmm0, [r10]",
        "movaps xmm1, [r10 + 16]",
        "mov rax, [r10 + 128]",
        "mov rdx, [r10 + 136]",
        "mov rcx, [r10 + 144]",
        "mov rbx, [r10 + 176]",
        "mov r12, [r10 + 184]",
        "mov r13, [r10 + 192]",
        "mov r14, [r10 + 200]",
        "mov r15, [r10 + 208]",
        "call r11",
        "mov r10, [rsp]",
        "movaps [r10], xmm0",
        "movaps [r10 + 16], xmm1",
        "mov [r10 + 128], rax",
        "mov [r10 + 136], rdx",
        "mov [r10 + 144], rcx",
        "mov [r10 + 176], rbx",
        "mov [r10 + 184], r12",
        "mov [r10 + 192], r13",
        "mov [r10 + 200], r14",
        "mov [r10 + 208], r15",
        "pop rcx",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}
