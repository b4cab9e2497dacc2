//! The fast paths of `flow`. They are written in assembly: see [`arch`](super::arch).

use std::ffi::c_void;

use crate::hook_sets::{EntryPoints, HookParts, HookSet};

// Defined in `arch`.
unsafe extern "C" {
    fn clrscope_enter_flow();
    fn clrscope_leave_flow();
    fn clrscope_tailcall_flow();
    fn clrscope_enter_flow_sampled();
    fn clrscope_leave_flow_sampled();
    fn clrscope_tailcall_flow_sampled();
    fn clrscope_enter_flow_tsc();
    fn clrscope_leave_flow_tsc();
    fn clrscope_tailcall_flow_tsc();
}

/// Sets of hooks that append events, with or without the tree of `calls`.
pub(super) const SETS: &[HookSet] = &[
    HookSet { does: HookParts::EVENTS, entry_points: alone },
    HookSet { does: HookParts::EVENTS.and(HookParts::TREE_SAMPLED), entry_points: sampled },
    HookSet { does: HookParts::EVENTS.and(HookParts::TREE_TSC), entry_points: tsc },
];

/// Hooks that append events and nothing else.
fn alone() -> EntryPoints {
    EntryPoints {
        enter: clrscope_enter_flow as *const c_void,
        leave: clrscope_leave_flow as *const c_void,
        tailcall: clrscope_tailcall_flow as *const c_void,
    }
}

/// Hooks that append events and count.
fn sampled() -> EntryPoints {
    EntryPoints {
        enter: clrscope_enter_flow_sampled as *const c_void,
        leave: clrscope_leave_flow_sampled as *const c_void,
        tailcall: clrscope_tailcall_flow_sampled as *const c_void,
    }
}

/// Hooks that append events, count, and charge the time between two events.
fn tsc() -> EntryPoints {
    EntryPoints {
        enter: clrscope_enter_flow_tsc as *const c_void,
        leave: clrscope_leave_flow_tsc as *const c_void,
        tailcall: clrscope_tailcall_flow_tsc as *const c_void,
    }
}
