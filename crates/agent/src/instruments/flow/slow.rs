//! Slow paths of the hooks of `flow`: threads seen for the first time, chunks that are full,
//! frames of the tree that the fast path does not find.
//!
//! The thread is in cooperative mode here: a collection waits until we return. The same rules as in
//! [`calls::slow`](crate::instruments::calls::slow) hold.

use clrscope_recording::layout::flow;
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::threads;

use super::ring;
use crate::instruments::calls;

/// Appends an event of the calling thread.
pub(super) fn append(what: u32, sp: usize) {
    let Some(ring) = ring::ring() else { return };
    if let Some(record) = threads::current() {
        ring.append(record, what, sp);
    }
}

pub(super) extern "C" fn enter(function: u32, sp: usize) {
    guard(|| append(flow::ENTER | function, sp));
}

pub(super) extern "C" fn leave(function: u32, sp: usize) {
    guard(|| append(flow::LEAVE | function, sp));
}

pub(super) extern "C" fn tailcall(function: u32, sp: usize) {
    guard(|| append(flow::TAILCALL | function, sp));
}

/// Slow path of enter if `calls` runs too: does the work of both instruments.
pub(super) extern "C" fn enter_both(function: u32, sp: usize) {
    calls::slow::enter(function, sp);
    enter(function, sp);
}

pub(super) extern "C" fn leave_both(function: u32, sp: usize) {
    calls::slow::leave(sp);
    leave(function, sp);
}

pub(super) extern "C" fn tailcall_both(function: u32, sp: usize) {
    calls::slow::tailcall(sp);
    tailcall(function, sp);
}
