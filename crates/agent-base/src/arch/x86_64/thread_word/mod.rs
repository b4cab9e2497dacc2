//! The words that hooks in assembly and Rust share: the thread-local ones, which lead to the
//! thread's record and to a value of its own, and the flag that turns the slow paths off.

use std::arch::global_asm;

#[cfg(target_env = "gnu")]
mod gnu;
#[cfg(target_env = "musl")]
mod musl;

#[cfg(target_env = "gnu")]
pub use gnu::{current_record, own_value, set_current_record, set_own_value};
#[cfg(target_env = "musl")]
pub use musl::{current_record, own_value, set_current_record, set_own_value};

global_asm!(
    // The thread's record, or 0 for a thread not seen yet. How it is reached depends on the C
    // library.
    ".section .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".hidden clrscope_thread",
    ".globl clrscope_thread",
    ".type clrscope_thread, @object",
    ".size clrscope_thread, 8",
    "clrscope_thread: .zero 8",
    // A value that belongs to the thread, or 0.
    ".hidden clrscope_own",
    ".globl clrscope_own",
    ".type clrscope_own, @object",
    ".size clrscope_own, 8",
    "clrscope_own: .zero 8",
    ".section .bss.clrscope_stopped,\"aw\",@nobits",
    ".hidden clrscope_stopped",
    ".globl clrscope_stopped",
    ".type clrscope_stopped, @object",
    ".size clrscope_stopped, 1",
    "clrscope_stopped: .zero 1",
    ".text",
);

unsafe extern "C" {
    static clrscope_stopped: std::sync::atomic::AtomicU8;
}

/// The flag that turns off the slow paths of hooks. Hooks record nothing once this flag is set and
/// each thread's top pointer is at a frame that matches nothing.
#[inline]
pub fn stopped_flag() -> &'static std::sync::atomic::AtomicU8 {
    // SAFETY: defined above, one byte, only ever used as an atomic.
    unsafe { &clrscope_stopped }
}

/// Returns the address of the calling thread's own memory, which no other living thread has. It is
/// never 0.
#[inline]
pub fn thread_address() -> usize {
    let address: usize;
    // SAFETY: the first word of a thread's own memory is its address (System V's ABI for x86-64,
    // "Thread-Local Storage").
    unsafe {
        std::arch::asm!("mov {0}, fs:[0]", out(reg) address, options(nostack, pure, readonly, preserves_flags));
    }
    address
}
