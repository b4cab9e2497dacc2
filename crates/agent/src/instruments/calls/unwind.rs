//! Exceptions and the shadow stack.
//!
//! The caller's stack pointer alone keeps counts right. But while a finally, fault, catch or filter
//! block runs, the frames that it unwinds are still on the machine stack below it. The runtime
//! gives the frame pointer of the activation that a block belongs to. The framework has the rules
//! ([`clr_profiler::shadow_stack`]), which are applied here to the frames that the assembly keeps.

use clr_profiler::shadow_stack::{self, Filters, Frames};
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::threads;

use super::frames::{Frame, Stack};
use super::shared::Shared;
use super::slow::charge;

impl Frames for Stack {
    fn frames(&self) -> &[Frame] {
        self.above_bottom()
    }

    fn truncate(&mut self, len: usize) {
        self.keep(len);
    }

    fn push(&mut self, frame: Frame) -> bool {
        let room = !self.is_full();
        if room {
            Stack::push(self, frame);
        }
        room
    }
}

/// Call it when a finally, fault or catch block begins to run. Everything above the block's owner
/// is gone.
///
/// An exception is the runtime's own exception handling, which is managed code on .NET 9 and later.
/// It has called the block, and its active calls return once the block has ended. Their frames have
/// been removed by then, since calls of the block belong to the block's owner. Leave hooks of these
/// frames are not counted as lost ([`Stack::was_ended_by_block`]).
pub(super) fn block_enter(shared: &Shared, frame_pointer: usize) {
    with_own(shared, |stack, filters| {
        if shadow_stack::block_enter(stack, filters, frame_pointer) > 0 {
            stack.note_ended_by_block(frame_pointer);
        }
    });
}

/// Call it when a catch block has ended. The handling of its exception ends with it.
pub(super) fn catcher_leave(shared: &Shared) {
    with_own(shared, |stack, _| stack.forget_ended_by_block());
}

/// Call it when a filter begins to run. Everything above its owner is still alive.
pub(super) fn filter_enter(shared: &Shared, frame_pointer: usize) {
    with_own(shared, |stack, filters| {
        shadow_stack::filter_enter(stack, filters, frame_pointer);
    });
}

/// Call it when the filter has answered.
pub(super) fn filter_leave(shared: &Shared) {
    with_own(shared, |stack, filters| {
        shadow_stack::filter_leave(stack, filters);
    });
}

/// Passes the calling thread's stack and its active filters, which are in its record, to `act`.
/// `act` must run no callback: the thread handles one at a time. Does nothing on a thread without
/// frames.
fn with_own(shared: &Shared, act: impl FnOnce(&mut Stack, &mut Filters)) {
    const { assert!(size_of::<Filters>() <= own::FILTERS_BYTES && align_of::<Filters>() <= 8) };
    let Some(record) = threads::active() else { return };
    // SAFETY: the calling thread's record; no other `Stack` of it is in use: callbacks about
    // exceptions do not nest in `act`, and hooks do not run in it.
    let mut stack = unsafe { Stack::of_thread(record) };
    charge(shared, record, &stack);
    // SAFETY: the record is mapped for ever, this part of it belongs to its own thread and to this
    // function alone, and zeros are a valid value: no filter.
    let filters = unsafe { &mut *record.address().add(own::FILTERS).cast::<Filters>() };
    act(&mut stack, filters);
}
