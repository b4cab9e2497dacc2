//! The hooks of `exceptions:args`: each call of a named method puts its arguments on a shadow
//! stack.
//!
//! These hooks always take the slow path, since there is always a value to read. If `calls` runs
//! too, they also do the work of `calls`.

use std::ffi::c_void;

use clrscope_agent_base::boundary::guard;
use clrscope_agent_values::arguments::ArgumentRegisters;
use clrscope_agent_values::plans::{plan_of, sample};

use super::arguments;
use crate::hook_sets::{EntryPoints, HookParts, HookSet};
use crate::instruments::calls;

// Defined in `arch`.
unsafe extern "C" {
    fn clrscope_enter_kept();
    fn clrscope_leave_kept();
    fn clrscope_tailcall_kept();
}

/// Sets of hooks that keep arguments, with or without the tree of `calls`. They always take the
/// slow path, which does all of the work.
pub(super) const SETS: &[HookSet] = &[
    HookSet { does: HookParts::ARGUMENTS, entry_points },
    HookSet { does: HookParts::ARGUMENTS.and(HookParts::TREE_SAMPLED), entry_points },
    HookSet { does: HookParts::ARGUMENTS.and(HookParts::TREE_TSC), entry_points },
];

fn entry_points() -> EntryPoints {
    EntryPoints {
        enter: clrscope_enter_kept as *const c_void,
        leave: clrscope_leave_kept as *const c_void,
        tailcall: clrscope_tailcall_kept as *const c_void,
    }
}

pub(super) extern "C" fn enter(function: u32, sp: usize, registers: *const ArgumentRegisters) {
    // Does nothing where `calls` does not run.
    calls::slow::enter(function, sp);
    guard(|| {
        let Some(plan) = plan_of(function) else { return };
        // SAFETY: the stub's own stack: the registers of the function that was just entered.
        if arguments::keep(function, sp, |buffer| unsafe { (*registers).write(plan, sp, buffer, false) }) {
            sample(function);
        }
    });
}

pub(super) extern "C" fn leave(sp: usize) {
    // Does nothing where `calls` does not run.
    calls::slow::leave(sp);
    guard(|| arguments::drop_below(sp + 1));
}

pub(super) extern "C" fn tailcall(sp: usize) {
    // Does nothing where `calls` does not run.
    calls::slow::tailcall(sp);
    guard(|| arguments::drop_below(sp + 1));
}
