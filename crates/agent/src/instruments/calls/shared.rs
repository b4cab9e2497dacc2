//! What all threads of `calls` share, and the fields of an edge.

use std::sync::atomic::AtomicU64;

use clrscope_recording::layout::block;
use clrscope_recording::writer::{Arena, ProcessWriter};

use crate::services::memory::{Patience, Published};

/// Shared state; made once, never freed, because hooks run on after `Shutdown`.
pub(crate) struct Shared {
    pub(crate) writer: &'static ProcessWriter,
    pub(crate) arena: Arena,
    /// Bytes from one block to the next: tells the clock too.
    pub(crate) stride: u32,
    pub(crate) patience: Patience,
    /// Carries that found the log busy; the helper notes them as lost calls.
    pub(crate) lost_carries: AtomicU64,
}

static SHARED: Published<Shared> = Published::nothing();

/// Makes `shared` known to the hooks.
pub(crate) fn publish(shared: Shared) -> &'static Shared {
    SHARED.publish(shared)
}

/// The shared state, once `calls` has started.
pub(crate) fn shared() -> Option<&'static Shared> {
    SHARED.get()
}

/// Forgets the shared state: for a forked child, whose hooks must do nothing.
pub(crate) fn withdraw() {
    SHARED.withdraw();
}

impl Shared {
    fn field(&self, at: u32, field: usize, slot: usize) -> *mut u32 {
        debug_assert!((at as usize) < self.arena.segment().capacity() && slot < block::EDGES);
        self.arena.base().wrapping_add(at as usize + field + slot * 4).cast()
    }

    /// Offset of the block an edge lies in, and its slot.
    fn place(&self, edge: *mut u32) -> (u32, usize) {
        let offset = edge.addr() - self.arena.base().addr();
        let at = offset as u32 & !(self.stride - 1);
        (at, (offset - at as usize - block::CHILDREN) / 4)
    }

    /// The edge in `slot` of the block at `at`: the address of its child field.
    pub(crate) fn edge(&self, at: u32, slot: usize) -> *mut u32 {
        self.field(at, block::CHILDREN, slot)
    }

    /// The number of an edge in the recording.
    pub(crate) fn edge_id(&self, edge: *mut u32) -> u32 {
        let (at, slot) = self.place(edge);
        block::edge_id(at, slot as u32)
    }

    /// The function an edge leads to.
    pub(crate) fn key_of(&self, edge: *mut u32) -> u32 {
        let (at, slot) = self.place(edge);
        self.key(at, slot)
    }

    /// The function in `slot`, 0 for a free one.
    pub(crate) fn key(&self, at: u32, slot: usize) -> u32 {
        // SAFETY: blocks handed out lie in the committed arena; keys are written once by their thread.
        unsafe { self.field(at, block::KEYS, slot).read() }
    }

    /// Makes the edge in `slot`.
    pub(crate) fn set_key(&self, at: u32, slot: usize, function: u32, after_tail_call: bool) {
        // SAFETY: as above, and only the thread that owns the block gets here.
        unsafe {
            if after_tail_call {
                let next = self.field(at, block::NEXT, 0);
                next.write(next.read() | 1 << slot);
            }
            self.field(at, block::KEYS, slot).write_volatile(function);
        }
    }

    /// The next block of the same caller, 0 for none.
    pub(crate) fn next(&self, at: u32) -> u32 {
        // SAFETY: as in `key`.
        unsafe { self.field(at, block::NEXT, 0).read() & !block::MARKS }
    }

    /// Chains a block behind another.
    pub(crate) fn set_next(&self, at: u32, next: u32) {
        // SAFETY: as in `set_key`.
        unsafe {
            let field = self.field(at, block::NEXT, 0);
            field.write_volatile(field.read() & block::MARKS | next);
        }
    }

    /// The first block of the calls of an edge, 0 for none.
    pub(crate) fn first_block(&self, edge: *mut u32) -> u32 {
        // SAFETY: as in `calls`.
        unsafe { edge.read_volatile() }
    }

    /// Calls of an edge, modulo 2^32.
    pub(crate) fn calls_of(&self, edge: *mut u32) -> u32 {
        let (at, slot) = self.place(edge);
        self.calls(at, slot)
    }

    /// Calls of the edge in `slot`, modulo 2^32.
    pub(crate) fn calls(&self, at: u32, slot: usize) -> u32 {
        // SAFETY: as in `key`; its thread adds to it all the time.
        unsafe { self.field(at, block::COUNTS, slot).read_volatile() }
    }

    /// Counts a call; whether the count passed 2^32.
    pub(crate) fn count(&self, edge: *mut u32) -> bool {
        let count = edge.wrapping_byte_add(block::COUNTS - block::CHILDREN);
        // SAFETY: as in `set_key`.
        unsafe {
            let (sum, carried) = count.read().overflowing_add(1);
            count.write(sum);
            carried
        }
    }

    /// Charges ticks to an edge (`clock=tsc` only).
    pub(crate) fn add_ticks(&self, edge: *mut u32, ticks: u64) {
        let (at, slot) = self.place(edge);
        let address = self.arena.base().wrapping_add(at as usize + block::TICKS + slot * 8).cast::<u64>();
        // SAFETY: with this clock blocks are twice as large, so the second half exists.
        unsafe { address.write(address.read().wrapping_add(ticks)) };
    }
}
