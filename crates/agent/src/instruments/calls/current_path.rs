//! The current path of the calling thread in its tree, for instruments that run together with
//! `calls`.

use clrscope_recording::writer::ThreadRecord;

use super::frames::{Frame, Stack, edge_of};
use super::shared::{Shared, shared};
use super::slow::top_of;

/// The path of a thread, read from its shadow stack.
pub(crate) struct CurrentPath {
    shared: &'static Shared,
    stack: Stack,
}

impl CurrentPath {
    /// Returns the path of the calling thread; `None` if the thread has no tree. Takes no lock and
    /// allocates nothing.
    ///
    /// # Safety
    /// `record` must be the calling thread's. The caller must be in a callback, where none of our
    /// code changes the thread's shadow stack.
    pub(crate) unsafe fn of_thread(record: ThreadRecord) -> Option<Self> {
        let shared = shared()?;
        top_of(record)?;
        // SAFETY: as the caller promises.
        Some(Self { shared, stack: unsafe { Stack::of_thread(record) } })
    }

    /// Number of the thread's current edge. It identifies the whole path.
    pub(crate) fn edge(&self) -> u32 {
        self.shared.place_in_arena(edge_of(self.stack.top()))
    }

    /// Functions on the path, innermost first.
    pub(crate) fn functions(&self) -> impl Iterator<Item = u32> {
        self.stack.above_bottom().iter().rev().map(|frame: &Frame| self.shared.key_of(edge_of(*frame)))
    }
}
