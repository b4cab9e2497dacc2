//! Fields that the agent keeps of each thread for its hooks: in the thread's record, where the
//! format leaves room to the writer.
//!
//! One thread-local word leads hooks to both, the thread's own words and what the recording keeps
//! of the thread. The first line of the record is for what most events touch.

use clrscope_recording::layout::thread;

/// Declares areas of a thread's record, each with its offset and bytes, and checks that each lies
/// where the format has nothing, and on no other.
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
    /// `u32`: 1 while hooks of `clock=tsc` are not to read the clock, to measure what that costs.
    CLOCK_OFF: 4, at 52;
    /// `u64`: address of the thread's map of edges, 0 where none of its callers has many callees.
    EDGE_MAP: 8, at 56;
    /// `u32`: by how many bits a fingerprint is shifted to the right to be a place in the map of
    /// edges.
    EDGE_MAP_SHIFT: 4, at 112;
    /// `u32`: edges in the map.
    EDGE_MAP_LENGTH: 4, at 116;
    /// `u32`: edges that belong into the map and found no room there.
    EDGE_MAP_LACKS: 4, at 120;
    /// `u32`: number and one of the wait after which the thread has just gone on with a method,
    /// until the outcome is known; 0 for none.
    AWAIT: 4, at 124;
    /// `u64`: the highest frame pointer below which a finally or catch block that runs has ended
    /// frames; 0 where none has.
    ENDED_BY_BLOCK: 8, at 224;
    /// `u64`: below this address the thread's stack is nearly used up; 0 where its end is unknown.
    LITTLE_STACK: 8, at 232;
    /// The filters under way, as the shadow stack's rules keep them.
    FILTERS: FILTERS_BYTES, at 128;
    /// `u64`: address of the chunk that the thread's events of `flow` go to.
    FLOW_CHUNK: 8, at 208;
    /// `u32`: bytes of events the chunk has room for, 0 where there is no chunk.
    FLOW_ROOM: 4, at 216;
    /// `u32`: bytes of calls of probed methods that the thread's chunk has room for, 0 where there
    /// is no chunk.
    PROBE_ROOM: 4, at 220;
    /// `u64`: address of the chunk that the thread's calls of probed methods go to.
    PROBE_CHUNK: 8, at 240;
}

/// Bytes for the filters under way.
pub const FILTERS_BYTES: usize = 80;

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
