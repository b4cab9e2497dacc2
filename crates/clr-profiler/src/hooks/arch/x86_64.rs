//! Entry points for the fast hooks on x86-64 System V. They translate the register convention of
//! the JIT compiler into the calling convention of Rust.
//!
//! Enter: identifier in `r14`, caller's stack pointer in `r15`; argument registers are live,
//! vectors too. Leave and tail call: `rdi` and `rsi`; the result registers are live, and `rcx` is
//! kept for runtime-async continuations. Rust code may use any caller-saved register, so the stubs
//! save all registers that the hook convention preserves. Of vector registers they save only the
//! lower 128 bits: compiled code assumes that a call overwrites the upper parts.

use std::arch::naked_asm;

use super::super::dispatch;

extern "C" fn on_enter(id: usize, sp: usize) {
    dispatch(id, sp, |hooks, id, sp| hooks.enter(id, sp));
}

extern "C" fn on_leave(id: usize, sp: usize) {
    dispatch(id, sp, |hooks, id, sp| hooks.leave(id, sp));
}

extern "C" fn on_tailcall(id: usize, sp: usize) {
    dispatch(id, sp, |hooks, id, sp| hooks.tailcall(id, sp));
}

/// Does nothing.
#[unsafe(naked)]
pub(in crate::hooks) extern "C" fn nothing() {
    naked_asm!("ret")
}

/// At entry the stack pointer is 8 bytes off a multiple of 16. 184 bytes align it again and hold 7
/// registers and 8 vectors.
#[unsafe(naked)]
pub(in crate::hooks) extern "C" fn enter() {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 184",
        ".cfi_adjust_cfa_offset 184",
        "mov [rsp + 128], rdi",
        "mov [rsp + 136], rsi",
        "mov [rsp + 144], rdx",
        "mov [rsp + 152], rcx",
        "mov [rsp + 160], r8",
        "mov [rsp + 168], r9",
        "mov [rsp + 176], rax",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "mov rdi, r14",
        "mov rsi, r15",
        "call {on_enter}",
        "mov rdi, [rsp + 128]",
        "mov rsi, [rsp + 136]",
        "mov rdx, [rsp + 144]",
        "mov rcx, [rsp + 152]",
        "mov r8, [rsp + 160]",
        "mov r9, [rsp + 168]",
        "mov rax, [rsp + 176]",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "add rsp, 184",
        ".cfi_adjust_cfa_offset -184",
        "ret",
        ".cfi_endproc",
        on_enter = sym on_enter,
    )
}

macro_rules! leave_stub {
    ($(#[$doc:meta])* $name:ident, $target:ident) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(in crate::hooks) extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "sub rsp, 56",
                ".cfi_adjust_cfa_offset 56",
                "mov [rsp + 32], rax",
                "mov [rsp + 40], rdx",
                "mov [rsp + 48], rcx",
                "movaps [rsp], xmm0",
                "movaps [rsp + 16], xmm1",
                "call {target}",
                "mov rax, [rsp + 32]",
                "mov rdx, [rsp + 40]",
                "mov rcx, [rsp + 48]",
                "movaps xmm0, [rsp]",
                "movaps xmm1, [rsp + 16]",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                target = sym $target,
            )
        }
    };
}

leave_stub! {
    /// 56 bytes align the stack and hold 3 registers and 2 vectors.
    leave, on_leave
}

leave_stub! {
    /// As for leave: the arguments of the tail-called function are loaded into registers after the
    /// hook.
    tailcall, on_tailcall
}
