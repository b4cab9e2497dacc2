//! What all hooks share: the thread-local word that leads to the thread's record, the flag that
//! turns the slow paths off, and the entry points.

pub(crate) mod macros;
pub(crate) mod own;

use std::arch::global_asm;
use std::ffi::c_void;

global_asm!(
    // The thread's record, or 0 for a thread not seen yet. Initial-exec: one load, no call that could allocate.
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

/// What hooks do at enter, leave and tail call: parts, each of which an instrument may want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookParts(u8);

impl HookParts {
    /// Nothing: no hooks are needed.
    pub(crate) const NONE: Self = Self(0);
    /// Count calls in the calling-context tree.
    pub(crate) const TREE_SAMPLED: Self = Self(1);
    /// Count calls in the calling-context tree, and charge ticks to its edges.
    pub(crate) const TREE_TSC: Self = Self(2);
    /// Append every event.
    pub(crate) const EVENTS: Self = Self(4);
    /// Keep the arguments of calls that have not ended.
    pub(crate) const ARGUMENTS: Self = Self(8);

    /// The parts of both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One set of hooks, by what it does.
pub(crate) struct HookSet {
    pub(crate) does: HookParts,
    pub(crate) entry_points: fn() -> EntryPoints,
}

/// The three entry points of one set of hooks.
#[derive(Clone, Copy)]
pub(crate) struct EntryPoints {
    pub(crate) enter: *const c_void,
    pub(crate) leave: *const c_void,
    pub(crate) tailcall: *const c_void,
}

/// The flag that turns the slow paths off: with every thread's top at a frame that matches nothing,
/// hooks then record nothing.
#[inline]
pub(crate) fn stopped_flag() -> &'static std::sync::atomic::AtomicU8 {
    // SAFETY: defined above, one byte, only ever used as an atomic.
    unsafe { &clrscope_stopped }
}

/// Whether recording has ended.
#[inline]
pub(crate) fn is_stopped() -> bool {
    stopped_flag().load(std::sync::atomic::Ordering::Relaxed) != 0
}

/// The calling thread's record, or null.
#[inline]
pub(crate) fn current_record() -> *mut u8 {
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
pub(crate) fn set_current_record(record: *mut u8) {
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
