//! The words that hooks in assembly and Rust share: the thread-local one that leads to the thread's
//! record, and the flag that turns the slow paths off.

use std::arch::global_asm;

global_asm!(
    // The thread's record, or 0 for a thread not seen yet. Initial-exec: one load, no call that
    // could allocate.
    ".section .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".hidden clrscope_thread",
    ".globl clrscope_thread",
    ".type clrscope_thread, @object",
    ".size clrscope_thread, 8",
    "clrscope_thread: .zero 8",
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

/// The flag that turns the slow paths of hooks off. Together with top pointers at a frame that
/// matches nothing, it makes all hooks record nothing.
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

/// The calling thread's record, or null.
#[inline]
pub fn current_record() -> *mut u8 {
    let record: *mut u8;
    // SAFETY: reads the thread-local word defined above.
    unsafe {
        std::arch::asm!(
            "mov {0}, [rip + clrscope_thread@GOTTPOFF]",
            "mov {0}, fs:[{0}]",
            out(reg) record,
            options(nostack, readonly, preserves_flags)
        );
    }
    record
}

/// Sets the calling thread's record.
#[inline]
pub fn set_current_record(record: *mut u8) {
    // SAFETY: writes the thread-local word defined above.
    unsafe {
        std::arch::asm!(
            "mov {1}, [rip + clrscope_thread@GOTTPOFF]",
            "mov fs:[{1}], {0}",
            in(reg) record,
            out(reg) _,
            options(nostack, preserves_flags)
        );
    }
}
