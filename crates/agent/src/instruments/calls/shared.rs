//! State that all threads of `calls` share, and the fields of an edge.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use clrscope_recording::layout::block;
use clrscope_recording::writer::{Arena, ProcessWriter};
use clrscope_agent_base::memory::{Patience, PublishedState};

/// State that all threads share. Created once and never freed, because hooks run on after
/// `Shutdown`.
pub(crate) struct Shared {
    pub(crate) writer: &'static ProcessWriter,
    pub(crate) arena: Arena,
    /// Distance in bytes from one block to the next. It also tells which clock the hooks use.
    pub(crate) stride: u32,
    pub(crate) patience: Patience,
    /// Number of carries (see [`slow`](super::slow)) that were lost because the log was busy. The
    /// helper thread records them as lost calls.
    pub(crate) lost_carries: AtomicU64,
}

static SHARED: PublishedState<Shared> = PublishedState::nothing();

/// Makes `shared` known to the hooks.
pub(crate) fn publish(shared: Shared) -> &'static Shared {
    SHARED.publish(shared)
}

/// The shared state; `None` before `calls` has started.
pub(crate) fn shared() -> Option<&'static Shared> {
    SHARED.get()
}

/// Forgets the shared state in a forked child, whose hooks must do nothing.
pub(crate) fn withdraw() {
    SHARED.withdraw();
}

impl Shared {
    /// A word of the block at `at`: the word of `slot` in the row that begins at `field`. Several
    /// threads and hooks access blocks, so a word is an atomic. Panics if the word is outside the
    /// arena.
    fn word(&self, at: u32, field: usize, slot: usize) -> &AtomicU32 {
        // SAFETY: `offset` checks that the word lies in committed memory, which stays mapped, and
        // is aligned.
        unsafe { AtomicU32::from_ptr(self.arena.base().add(self.offset(at, field + slot * 4, slot)).cast()) }
    }

    /// Number of an edge in a map of edges: the place of its child field in the arena.
    pub(crate) fn place_in_arena(&self, edge: *mut u32) -> u32 {
        edge.addr().wrapping_sub(self.arena.base().addr()) as u32
    }

    /// The edge at a place that [`place_in_arena`](Self::place_in_arena) returned.
    pub(crate) fn edge_at(&self, place: u32) -> *mut u32 {
        self.arena.base().wrapping_add(place as usize).cast()
    }

    /// Offset in the arena of `within` and `slot` in the block at `at`.
    fn offset(&self, at: u32, within: usize, slot: usize) -> usize {
        let (at, stride) = (at as usize, self.stride as usize);
        let is_block = at.is_multiple_of(block::STRIDE_SAMPLED) && at + stride <= self.arena.segment().committed();
        assert!(is_block && slot < block::EDGES && within < stride, "no edge {slot} in a block at {at}");
        at + within
    }

    /// Returns the offset of the block an edge lies in, and its slot.
    fn block_and_slot(&self, edge: *mut u32) -> (u32, usize) {
        let offset = self.place_in_arena(edge);
        let at = offset & !(self.stride - 1);
        (at, offset.wrapping_sub(at + block::CHILDREN as u32) as usize / 4)
    }

    /// The edge in `slot` of the block at `at`: the address of its child field.
    pub(crate) fn edge(&self, at: u32, slot: usize) -> *mut u32 {
        self.arena.base().wrapping_add(at as usize + block::CHILDREN + slot * 4).cast()
    }

    /// The number of an edge in the recording.
    pub(crate) fn edge_id(&self, edge: *mut u32) -> u32 {
        let (at, slot) = self.block_and_slot(edge);
        block::edge_id(at, slot as u32)
    }

    /// The function that an edge leads to.
    pub(crate) fn key_of(&self, edge: *mut u32) -> u32 {
        let (at, slot) = self.block_and_slot(edge);
        self.key(at, slot)
    }

    /// The function in `slot` of a block; 0 for a free slot.
    pub(crate) fn key(&self, at: u32, slot: usize) -> u32 {
        self.word(at, block::KEYS, slot).load(Ordering::Relaxed)
    }

    /// Makes the edge in `slot` of a block. Only the thread that owns the block may call this.
    pub(crate) fn set_key(&self, at: u32, slot: usize, function: u32, after_tail_call: bool) {
        if after_tail_call {
            let next = self.word(at, block::NEXT, 0);
            next.store(next.load(Ordering::Relaxed) | 1 << slot, Ordering::Relaxed);
        }
        self.word(at, block::KEYS, slot).store(function, Ordering::Release);
    }

    /// The next block of the same caller; 0 for none.
    pub(crate) fn next(&self, at: u32) -> u32 {
        self.word(at, block::NEXT, 0).load(Ordering::Relaxed) & block::OFFSET
    }

    /// Whether the edges of the blocks behind this one are in the [map](super::edge_map) of their
    /// thread.
    pub(crate) fn is_mapped(&self, at: u32) -> bool {
        self.word(at, block::NEXT, 0).load(Ordering::Relaxed) & block::MAPPED != 0
    }

    /// Makes hooks search the map for the edges of the blocks behind this one. Only the thread that
    /// owns the block may call this.
    pub(crate) fn set_mapped(&self, at: u32) {
        let field = self.word(at, block::NEXT, 0);
        field.store(field.load(Ordering::Relaxed) | block::MAPPED, Ordering::Release);
    }

    /// Links the block `next` behind another one. Only the thread that owns the block may call
    /// this.
    ///
    /// # Safety
    /// `next` must be the offset of a block that was taken from the arena: hooks follow it
    /// unchecked.
    pub(crate) unsafe fn set_next(&self, at: u32, next: u32) {
        let field = self.word(at, block::NEXT, 0);
        field.store(field.load(Ordering::Relaxed) & !block::OFFSET | next, Ordering::Release);
    }

    /// The first block of the calls of an edge; 0 for none.
    pub(crate) fn first_block(&self, edge: *mut u32) -> u32 {
        let (at, slot) = self.block_and_slot(edge);
        self.word(at, block::CHILDREN, slot).load(Ordering::Relaxed)
    }

    /// Makes the block at `first` the first of the calls of an edge.
    ///
    /// # Safety
    /// `first` must be the offset of a block that was taken from the arena. Its edges must be
    /// complete, and it must lead to the block that was there before: hooks of the edge's thread
    /// follow it unchecked.
    pub(crate) unsafe fn set_first_block(&self, edge: *mut u32, first: u32) {
        let (at, slot) = self.block_and_slot(edge);
        self.word(at, block::CHILDREN, slot).store(first, Ordering::Release);
    }

    /// Number of calls of an edge, modulo 2^32.
    pub(crate) fn calls_of(&self, edge: *mut u32) -> u32 {
        let (at, slot) = self.block_and_slot(edge);
        self.calls(at, slot)
    }

    /// Number of calls of the edge in `slot`, modulo 2^32.
    pub(crate) fn calls(&self, at: u32, slot: usize) -> u32 {
        self.word(at, block::COUNTS, slot).load(Ordering::Relaxed)
    }

    /// Counts a call. Returns whether the count passed 2^32. Only the thread that owns the edge may
    /// call this.
    pub(crate) fn count(&self, edge: *mut u32) -> bool {
        let (at, slot) = self.block_and_slot(edge);
        let count = self.word(at, block::COUNTS, slot);
        // No other thread adds to the count, so the addition need not be atomic.
        let (sum, carried) = count.load(Ordering::Relaxed).overflowing_add(1);
        count.store(sum, Ordering::Relaxed);
        carried
    }

    /// Ticks of the edge in `slot` (`clock=tsc` only).
    pub(crate) fn ticks(&self, at: u32, slot: usize) -> u64 {
        self.tick_word(at, slot).load(Ordering::Relaxed)
    }

    fn tick_word(&self, at: u32, slot: usize) -> &AtomicU64 {
        let offset = self.offset(at, block::TICKS + slot * 8, slot);
        // SAFETY: `offset` checks that the word lies in committed memory, which stays mapped; it is
        // a multiple of eight.
        unsafe { AtomicU64::from_ptr(self.arena.base().add(offset).cast()) }
    }

    /// Charges ticks to an edge (`clock=tsc` only). Only the thread that owns the edge may call
    /// this.
    pub(crate) fn add_ticks(&self, edge: *mut u32, ticks: u64) {
        let (at, slot) = self.block_and_slot(edge);
        let sum = self.tick_word(at, slot);
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(ticks), Ordering::Relaxed);
    }
}
