//! Per-thread fields of the agent's hooks. These fields lie in the thread's record, in the part
//! that the format leaves to the writer.
//!
//! So one thread-local word leads hooks both to these fields and to the recorded data of the
//! thread. The first cache line of the record has the fields that most events use.

use std::sync::atomic::Ordering;

use clrscope_recording::layout::thread;
use clrscope_recording::writer::ThreadRecord;

/// Declares areas of a thread's record, each with its offset and size. Checks that no area overlaps
/// another one or a field of the format.
macro_rules! areas {
    ($($(#[$doc:meta])* $name:ident: $bytes:expr, at $offset:literal;)*) => {
        $($(#[$doc])* pub const $name: usize = $offset;)*

        const AREAS: &[(usize, usize)] = &[$(($offset, $offset + $bytes)),*];
    };
}

areas! {
    /// `u64`: address of the frame on top of the shadow stack.
    TOP: 8, at 0;
    /// `u64`: address of the block at offset 0.
    BASE: 8, at 8;
    /// `u64`: time stamp counter at the thread's last event.
    LAST_TICKS: 8, at 16;
    /// `u32`: next free block of the thread's piece of the arena.
    FREE_NEXT: 4, at 24;
    /// `u32`: end of that piece.
    FREE_END: 4, at 28;
    /// `u64`: address of the thread's lowest frame.
    FRAMES: 8, at 32;
    /// `u64`: address past the last usable frame.
    FRAMES_END: 8, at 40;
    /// `u32`: bytes of the thread's last piece of the arena.
    PIECE_BYTES: 4, at 48;
    /// `u32`: 1 while hooks with `clock=tsc` must not read the clock, to measure the cost of
    /// reading it.
    CLOCK_OFF: 4, at 52;
    /// `u64`: address of the thread's map of edges, 0 if none of its callers has many callees.
    EDGE_MAP: 8, at 56;
    /// `u32`: number of bits by which a fingerprint is shifted right to give its index in the map
    /// of edges.
    EDGE_MAP_SHIFT: 4, at 112;
    /// `u32`: edges in the map.
    EDGE_MAP_LENGTH: 4, at 116;
    /// `u32`: number of edges that should be in the map but found no room.
    EDGE_MAP_LACKS: 4, at 120;
    /// `u32`: one more than the number of the wait after which the thread has just resumed a
    /// method, until the outcome is known; 0 for none.
    AWAIT: 4, at 124;
    /// `u64`: the highest frame pointer below which a running finally or catch block has ended
    /// frames; 0 if none has.
    ENDED_BY_BLOCK: 8, at 224;
    /// `u64`: the stack is nearly used up below this address; 0 if its end is unknown.
    LITTLE_STACK: 8, at 232;
    /// The active filters, as the shadow stack's rules keep them.
    FILTERS: FILTERS_BYTES, at 128;
    /// `u64`: address of the chunk that receives the thread's `flow` events.
    FLOW_CHUNK: 8, at 208;
    /// `u32`: bytes of free room in that chunk, 0 if there is no chunk.
    FLOW_ROOM: 4, at 216;
    /// `u32`: bytes of free room in the thread's chunk for calls of probed methods, 0 if there is
    /// no chunk.
    PROBE_ROOM: 4, at 220;
    /// `u64`: address of the chunk that receives the thread's calls of probed methods.
    PROBE_CHUNK: 8, at 240;
}

/// Bytes that the list of active exception filters takes.
pub const FILTERS_BYTES: usize = 80;

/// Areas that a thread hands on with its tree to the next thread that gets its record, and those
/// that others may still read until that thread has its own values.
const HANDED_ON: [usize; 11] = [
    TOP,
    BASE,
    FREE_NEXT,
    FREE_END,
    FRAMES,
    FRAMES_END,
    PIECE_BYTES,
    EDGE_MAP,
    EDGE_MAP_SHIFT,
    EDGE_MAP_LENGTH,
    EDGE_MAP_LACKS,
];

/// Clears the fields of a new thread's record that another thread may have had before.
pub fn clear(record: ThreadRecord) {
    for (from, to) in AREAS.iter().filter(|(from, _)| !HANDED_ON.contains(from)) {
        (*from..*to).step_by(4).for_each(|at| record.u32(at).store(0, Ordering::Relaxed));
    }
}

const _: () = {
    let mut this = 0;
    while this < AREAS.len() {
        let (from, to) = AREAS[this];
        let [first, second] = thread::OWN;
        assert!(from >= first.start && to <= first.end || from >= second.start && to <= second.end);
        let mut other = 0;
        while other < this {
            assert!(to <= AREAS[other].0 || from >= AREAS[other].1);
            other += 1;
        }
        this += 1;
    }
};
