//! Exceptions and the shadow stack.
//!
//! The caller's stack pointer alone keeps counts right, but while a finally, fault, catch or filter
//! block runs, the frames it unwinds still lie on the machine's stack below it. The runtime says which
//! activation a block belongs to, by its frame pointer; the rules are the framework's
//! ([`clr_profiler::shadow_stack`]), applied here to the frames that the assembly keeps.

use clr_profiler::shadow_stack::{self, Filters, Frames};
use clrscope_recording::layout::thread;
use clrscope_recording::writer::ThreadRecord;

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

/// A finally, fault or catch block runs: everything above its owner is gone.
pub(super) fn block_enter(shared: &Shared, record: ThreadRecord, frame_pointer: usize) {
    let mut stack = Stack::of(record);
    charge(shared, record, &stack);
    shadow_stack::block_enter(&mut stack, filters(record), frame_pointer);
}

/// A filter runs while everything above its owner is still alive.
pub(super) fn filter_enter(shared: &Shared, record: ThreadRecord, frame_pointer: usize) {
    let mut stack = Stack::of(record);
    charge(shared, record, &stack);
    shadow_stack::filter_enter(&mut stack, filters(record), frame_pointer);
}

/// The filter has answered.
pub(super) fn filter_leave(shared: &Shared, record: ThreadRecord) {
    let mut stack = Stack::of(record);
    charge(shared, record, &stack);
    shadow_stack::filter_leave(&mut stack, filters(record));
}

/// The thread's filters under way, kept in its record.
fn filters<'a>(record: ThreadRecord) -> &'a mut Filters {
    const { assert!(thread::SCRATCH + size_of::<Filters>() <= thread::BYTES) };
    // SAFETY: the record is mapped for ever, this part of it belongs to its own thread, which runs one
    // exception callback at a time, and zeros are a valid value: no filter.
    unsafe { &mut *record.address().add(thread::SCRATCH).cast::<Filters>() }
}
