//! The fast paths of enter, leave and tail call. They are written in assembly: see
//! [`arch`](super::arch).

use std::ffi::c_void;

use crate::hook_sets::{EntryPoints, HookParts, HookSet};

// Defined in `arch`.
unsafe extern "C" {
    fn clrscope_enter_sampled();
    fn clrscope_leave_sampled();
    fn clrscope_tailcall_sampled();
    fn clrscope_enter_tsc();
    fn clrscope_leave_tsc();
    fn clrscope_tailcall_tsc();
}

/// Sets of hooks that only keep the tree.
pub(super) const SETS: &[HookSet] = &[
    HookSet { does: HookParts::TREE_SAMPLED, entry_points: sampled },
    HookSet { does: HookParts::TREE_TSC, entry_points: tsc },
];

/// Entry points of the hooks that only count calls.
pub(super) fn sampled() -> EntryPoints {
    EntryPoints {
        enter: clrscope_enter_sampled as *const c_void,
        leave: clrscope_leave_sampled as *const c_void,
        tailcall: clrscope_tailcall_sampled as *const c_void,
    }
}

/// Entry points of the hooks that count calls and read the clock.
pub(super) fn tsc() -> EntryPoints {
    EntryPoints {
        enter: clrscope_enter_tsc as *const c_void,
        leave: clrscope_leave_tsc as *const c_void,
        tailcall: clrscope_tailcall_tsc as *const c_void,
    }
}
