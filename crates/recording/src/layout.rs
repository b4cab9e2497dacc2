//! Version 2 of the segments: sizes, offsets and numbers shared by writer and reader.
//!
//! # A recording directory
//!
//! `NAME.clrs.d/` (mode 0700) holds `run.log`, written by the launcher, and a folder
//! `p<PID>-<START>` per process with the segments below. Every file starts with a [`HEADER_BYTES`]
//! header (`magic`, `kind`, `version`), numbers are little endian, and bytes never written are
//! zero.
//!
//! | file | kind | content |
//! |---|---|---|
//! | `run.log`, `process.log` | 1 | log records: names, settings, remarks |
//! | `state.seg` | 2 | clocks, sign of life, stop flag, losses |
//! | `threads.seg` | 3 | a [`thread`] record per thread |
//! | `tree.seg` | 4 | the [`block`]s of all calling-context trees |
//! | `times.seg` | 5 | a [`time`] record per edge that was ever charged time by the helper thread |
//! | `events-INSTRUMENT.seg` | 6 | [`chunk`]s of events, in the encoding of that instrument |
//! | `parts.log` | 1 | records of tree gains from one boundary between parts to the next (module `gains`) |
//! | `parts-before.log` | 1 | the same for the previous period, if recorded in periods |
//! | `stacks.seg` | 7 | the nodes of all call [`stack`]s that instruments record |
//!
//! An agent that could not start recording leaves `refused-PID.txt` instead: one line with the
//! reason.
//!
//! Readers ignore files and log records of an unknown kind, so that later instruments can add their
//! own without breaking older readers.
//!
//! # Log records
//!
//! `u32 length` (of everything after the eight-byte head, at least 1), `u16 kind`, `u16 version`,
//! then the payload, padded to four bytes. The length is written last, so a record is either
//! complete or absent; a length of zero ends the log. The module `records` declares kinds and
//! payloads.
//!
//! # Trees
//!
//! An edge means "this caller, on this path, calls that function". A caller's edges are in a chain
//! of 64-byte blocks, five edges to a block; a function that calls nothing has no block. Blocks are
//! addressed by their byte offset from the end of the header; offset 0 is a block that stays empty,
//! so that "no block" needs no test. If a caller has many callees, hooks follow the chain only up
//! to the first block marked [`block::MAPPED`] and look up the later edges in a map; new blocks are
//! inserted directly after the marked one. With `clock=tsc` blocks are 128 bytes apart and the
//! second half holds the time of each edge in ticks of the time stamp counter.
//!
//! # Events
//!
//! A segment of events is a sequence of [`chunk`]s, each a multiple of [`chunk::GRAIN`] bytes and
//! filled by one thread. A chunk contains its length, so readers can walk the sequence. A chunk
//! that was handed out but has no head yet contains zeros; the reader then tries again one grain
//! further on. A ring reuses chunks in place, with a new sequence number: the numbers give the
//! order of a segment's chunks, and gaps in them are overwritten chunks. A recording that keeps
//! only its last period ([`state::KEPT`]) is such a ring: chunks may contain older events, which
//! readers leave out.

/// Bytes before the content of every segment.
pub const HEADER_BYTES: usize = 4096;
/// The first eight bytes of every segment.
pub const MAGIC: [u8; 8] = *b"CLRSSEG\0";
/// Version of the segments.
pub const VERSION: u32 = 2;
/// File with the tree gains of the previous period, the last one that has ended.
pub(crate) const PARTS_BEFORE: &str = "parts-before.log";
/// File with the tree gains since the previous period.
pub(crate) const PARTS: &str = "parts.log";

/// Offsets within a segment's header.
pub mod header {
    /// `u32`: kind of the segment.
    pub const KIND: usize = 8;
    /// `u32`: version of the layout.
    pub const VERSION: usize = 12;
    /// `u64`: bytes of content that are backed by disk space.
    pub const COMMITTED: usize = 16;
    /// `u32`, in `run.log` only: nonzero once the recording is over; agents that start later then
    /// disable themselves.
    pub const OVER: usize = 24;
}

/// Kinds of segments.
pub mod kind {
    /// Log records.
    pub const LOG: u32 = 1;
    /// Process state.
    pub const STATE: u32 = 2;
    /// Thread records.
    pub const THREADS: u32 = 3;
    /// Tree blocks.
    pub const TREE: u32 = 4;
    /// Sampled times.
    pub const TIMES: u32 = 5;
    /// Event chunks.
    pub const EVENTS: u32 = 6;
    /// Nodes of call stacks.
    pub const STACKS: u32 = 7;
}

/// The instruments that have segments of events: `events-INSTRUMENT.seg`.
pub mod instrument {
    /// Enter, leave and tail call in order; see [`flow`](super::flow).
    pub const FLOW: &str = "flow";
    /// The dictionary of the [values](super::value) in `flow` and of arguments in `exceptions`.
    pub const FLOW_TYPES: &str = "flow-types";
    /// Callbacks of the runtime, as [records](crate::events).
    pub const EVENTS: &str = "events";
    /// Callbacks about exceptions, with stacks, as [records](crate::events).
    pub const EXCEPTIONS: &str = "exceptions";
    /// Collections: callbacks and events of the runtime, as [records](crate::events).
    pub const GC: &str = "gc";
    /// Threads that wait for locks, as [records](crate::events).
    pub const LOCKS: &str = "locks";
    /// Awaits of async methods, as [records](crate::events).
    pub const AWAITS: &str = "awaits";
    /// Served and made requests, as [records](crate::events).
    pub const REQUESTS: &str = "requests";
    /// Counters of event sources and meters, as [records](crate::events).
    pub const COUNTERS: &str = "counters";
    /// Measurements of the process's memory by kind, as [records](crate::events).
    pub const MEMORY: &str = "memory";
    /// [Samples](super::sample) of threads by their CPU time.
    pub const CPU: &str = "cpu";
    /// [Samples](super::sample) of threads by wall-clock time.
    pub const WALL: &str = "wall";
    /// [Allocations](super::allocation) of objects.
    pub const ALLOC: &str = "alloc";
    /// [Snapshots](super::heap) of the heap.
    pub const HEAP: &str = "heap";
    /// [Counters](super::coverage) of lines and branches.
    pub const COVERAGE: &str = "coverage";
    /// [Counters and times](super::probes) of chosen methods.
    pub const PROBES: &str = "probes";
    /// [Each call](super::probe_calls) of the methods that `probes` measures.
    pub const PROBE_CALLS: &str = "probe-calls";
    /// [Counters](super::probe_lines) of source lines for `probes`.
    pub const PROBE_LINES: &str = "probe-lines";
    /// [Callers](super::probe_callers) of the methods that `probes` measures.
    pub const PROBE_CALLERS: &str = "probe-callers";
}

/// A block of five edges.
pub mod block {
    /// Edges in a block.
    pub const EDGES: usize = 5;
    /// Bytes from one block to the next with `clock=sampled`.
    pub const STRIDE_SAMPLED: usize = 64;
    /// Bytes from one block to the next with `clock=tsc`.
    pub const STRIDE_TSC: usize = 128;
    /// `u32` each: function indices; 0 is a free edge.
    pub const KEYS: usize = 0;
    /// `u32` each: offset of the first block of the callee's own edges, 0 for none.
    pub const CHILDREN: usize = 20;
    /// `u32` each: calls, modulo 2^32; each overflow is in a log record `CARRY`.
    pub const COUNTS: usize = 40;
    /// `u32`: offset of the next block of the same caller ([`OFFSET`]); the lowest five bits mark
    /// edges that were first entered by a tail call ([`MARKS`]), the sixth is [`MAPPED`].
    pub const NEXT: usize = 60;
    /// `u64` each: ticks, in the second half of a block with `clock=tsc`.
    pub const TICKS: usize = 64;
    /// The bits of `NEXT` that mark edges.
    pub const MARKS: u32 = 31;
    /// The bit of `NEXT` at which hooks stop following the chain. Readers ignore the bit.
    pub const MAPPED: u32 = 32;
    /// The bits of `NEXT` that contain the offset.
    pub const OFFSET: u32 = !(MARKS | MAPPED);
    /// The key of a thread's root edge.
    pub const ROOT_KEY: u32 = u32::MAX;

    /// A number for the edge `slot` of the block at `offset`, unique within a process.
    #[must_use]
    pub const fn edge_id(offset: u32, slot: u32) -> u32 {
        (offset / 64) * 8 + slot
    }
}

/// A chunk of events: a head of [`chunk::HEAD`] bytes, then the instrument's bytes.
pub mod chunk {
    /// Alignment and size granularity of chunks.
    pub const GRAIN: usize = 4096;
    /// Bytes of the head.
    pub const HEAD: usize = 64;
    /// `u32`: [`VERSION`] once the head is written, 0 before.
    pub const FORMAT: usize = 0;
    /// `u32`: serial number of the thread, 0 for a chunk of no thread.
    pub const THREAD: usize = 4;
    /// `u64`: number of the chunk within its segment, from 1; 0 while a chunk is being reused.
    pub const SEQUENCE: usize = 8;
    /// `u32`: length of the events in bytes; stored after the events.
    pub const USED: usize = 16;
    /// `u32`: length of the chunk in bytes, head included.
    pub const BYTES: usize = 20;
    /// `u64`: monotonic nanoseconds when the chunk was handed out.
    pub const FIRST: usize = 24;
    /// `u64`: monotonic nanoseconds when the chunk was last published.
    pub const LAST: usize = 32;
    /// `u32`: number of bytes in [`flow`](super::flow) that are not starts and ends of calls. The
    /// writer uses it to report how many calls are lost when a ring reuses the chunk.
    pub const NON_CALL_BYTES: usize = 40;
    /// `u32`: nonzero if other chunks refer to this one's contents. A ring never reuses such a
    /// chunk.
    pub const DICTIONARY: usize = 44;
    /// Version of this layout.
    pub const VERSION: u32 = 1;
}

/// The events of `flow`: records of [`flow::BYTES`] bytes, some followed by further data.
///
/// `USED` says how many bytes of a chunk are valid. It is stored after each event, so nothing
/// recorded is lost if the program is killed.
pub mod flow {
    /// Bytes of an event, and alignment of all data.
    pub const BYTES: usize = 16;
    /// `u64`: the time stamp counter.
    pub const TICKS: usize = 0;
    /// `u32`: the upper two bits are the kind of event, the other bits the function.
    pub const WHAT: usize = 8;
    /// `u32`: the lower half of the caller's stack pointer. The signed difference of two such
    /// values orders the activations of a thread: callers have higher values.
    pub const SP: usize = 12;
    /// The bits of `WHAT` with the kind of event.
    pub const KIND: u32 = 3 << 30;
    /// The lowest of the three bits of `WHAT` that tell how many [`BYTES`]-byte units of registers
    /// follow directly. Only events of functions whose arguments are plain numbers have registers.
    /// At enter these are the general registers in the order of arguments, as many pairs as are
    /// used, then the lower halves of the vector registers in the same way; at leave they are `rax`
    /// and the lower half of `xmm0`.
    pub const REGISTERS: u32 = 27;
    /// The bits of `WHAT` with the function, except for events of the kind `OTHER`.
    pub const FUNCTION: u32 = (1 << REGISTERS) - 1;
    /// A function was entered.
    pub const ENTER: u32 = 0;
    /// A function is about to return.
    pub const LEAVE: u32 = 1 << 30;
    /// A tail call is about to replace a function.
    pub const TAILCALL: u32 = 2 << 30;
    /// None of the kinds above: the other bits give the kind.
    pub const OTHER: u32 = 3 << 30;
    /// A finally, fault or catch block is about to run: every activation at or below `SP` is over.
    pub const BLOCK: u32 = OTHER | 1;
    /// A filter is about to run, for the innermost activation above `SP`.
    pub const FILTER_ENTER: u32 = OTHER | 2;
    /// The filter has returned its result.
    pub const FILTER_LEAVE: u32 = OTHER | 3;
    /// Values of the preceding event: `SP` is their length in bytes, and the next event is at the
    /// next multiple of [`BYTES`].
    pub const VALUES: u32 = OTHER | 4;
    /// The result of the `async` method whose code runs in the activation with this `SP`:
    /// [`VALUES`] with the result follow. If the activation ended just before by a tail call, that
    /// tail call set the result.
    pub const RESULT: u32 = OTHER | 5;

    /// Length in bytes of the registers that follow an event with this `WHAT`.
    #[must_use]
    pub const fn register_bytes(what: u32) -> usize {
        if what & KIND == OTHER { 0 } else { (what >> REGISTERS & 7) as usize * BYTES }
    }
}

/// Values of the program in [`flow::VALUES`]: a tag of one byte, then data that depends on the tag.
/// Numbers are little endian and not aligned. A class is a number in the dictionary of types.
pub mod value {
    /// The value could not be read.
    pub const UNKNOWN: u8 = 0;
    /// A null reference, or a nullable without a value.
    pub const NULL: u8 = 1;
    /// Not recorded: the user asked only for types.
    pub const HIDDEN: u8 = 2;
    /// Not recorded: by its name, it may hold a secret.
    pub const REDACTED: u8 = 3;
    /// `u8`.
    pub const BOOL: u8 = 4;
    /// `u16`.
    pub const CHAR: u8 = 5;
    /// `i64`.
    pub const INT: u8 = 6;
    /// `u64`.
    pub const UINT: u8 = 7;
    /// `f32`.
    pub const FLOAT: u8 = 8;
    /// `f64`.
    pub const DOUBLE: u8 = 9;
    /// `u64`.
    pub const POINTER: u8 = 10;
    /// `u32` total number of characters, `u16` number of characters that follow, each a `u16`.
    pub const STRING: u8 = 11;
    /// `u32` class, `i64` value.
    pub const ENUM: u8 = 12;
    /// `u32` class, `u64` address, `u32` bytes of the object, `u16` number of fields, which follow
    /// as values.
    pub const OBJECT: u8 = 13;
    /// `u32` class, `u16` number of fields, which follow as values.
    pub const STRUCT: u8 = 14;
    /// `u32` class, `u64` address, `u32` total number of elements, `u16` number of elements that
    /// follow as values.
    pub const ARRAY: u8 = 15;
    /// A boxed number, character or boolean: `u32` class, then the value.
    pub const BOXED: u8 = 16;
    /// `u32` class; used if the user asked only for types.
    pub const OF_CLASS: u8 = 17;
    /// An array of several dimensions: `u32` class, `u64` address, `u32` total number of elements,
    /// `u8` number of dimensions and a `u32` length for each, `u16` number of elements that follow
    /// as values.
    pub const MATRIX: u8 = 18;
    /// An object that represents a type: `u32` class, `u64` address, `u32` represented class.
    pub const TYPE: u8 = 19;
    /// Kinds of records in the dictionary of types (the instrument `flow-types`): `u32` length of
    /// the rest, then `u32` kind.
    ///
    /// A class: `u32` number, text name, `u32` 1 for a value type, list of texts field names, list
    /// of texts field types, `u32` count of constants, each a text and a `u64`, `u32` bytes of an
    /// object (0 if unknown). The record may come after values that use its number: objects are
    /// seen before their class is examined.
    pub const CLASS: u32 = 1;
    /// A function: `u32` index, then `u32` number of parameters (`this` is the first if there is
    /// one) and for each: text name, text type, `u32` passing (0 by value, 1 `ref`, 2 `in`, 3
    /// `out`); finally the text of the return type, empty for `void`.
    ///
    /// An enter event has the values of all parameters except `out`, in that order; a leave event
    /// has those of `ref` and `out` parameters, then the result.
    ///
    /// Then a `u32`: 1 if the events are followed by registers instead of values (see
    /// [`flow::REGISTERS`](super::flow::REGISTERS)). If so, a `u32` follows for each parameter and
    /// the result. Its bits from 0 are the tag of the value, from 8 the value's size in bytes, from
    /// 16 the register's number, from 24 whether it is a vector register.
    pub const FUNCTION: u32 = 2;
    /// The method at a code address, for delegates: `u64` address, `u32` index of the function. The
    /// record may come after values with that address, because a method is compiled after delegates
    /// of it are created.
    pub const METHOD: u32 = 3;
    /// A probed method: [its number](super::probes::NUMBER), then all fields of [`FUNCTION`],
    /// without registers. The record covers all instantiations: a type that depends on type
    /// arguments is named after its type parameter.
    pub const PROBED: u32 = 4;
}

/// The samples of `cpu` and `wall`: arrays of [`sample::BYTES`]-byte records, in chunks of no
/// thread. Each record names its thread.
pub mod sample {
    /// Bytes of a sample.
    pub const BYTES: usize = 32;
    /// `u64`: nanoseconds from the start of the process's recording to the sample; if the count is
    /// above 1, to the first sample.
    pub const TIME: usize = 0;
    /// `u64`: nanoseconds of CPU time (`cpu`) or of wall time (`wall`) for all samples of the
    /// record together.
    pub const WEIGHT: usize = 8;
    /// `u32`: serial number of the thread, 0 if unknown.
    pub const THREAD: usize = 16;
    /// `u32`: node of the [stack](super::stack) table, 0 for none.
    pub const STACK: usize = 20;
    /// `u32`: number of samples in the record. A sleeping thread that does not change has one
    /// record for many samples.
    pub const COUNT: usize = 24;
    /// `u32`: flags, composed of the other constants of this module.
    pub const FLAGS: usize = 28;
    /// The bits of `FLAGS` with the activity of the thread: a `ThreadState`.
    pub const STATE: u32 = 0xFF;
    /// The lowest of the eight bits of `FLAGS` with the activity of the runtime: an `Activity`.
    pub const ACTIVITY: u32 = 8;
    /// Flag: the stack is complete, from the innermost frame to the start of the thread.
    pub const COMPLETE: u32 = 1 << 16;
    /// Flag: the thread was in the kernel.
    pub const KERNEL: u32 = 1 << 17;
    /// Flag: the thread was in the profiler's own code, a hook or the agent.
    pub const PROFILER: u32 = 1 << 18;
    /// Flag: a frame of the stack was found by a guess. Recordings from before 2026-11-25 never
    /// have it, even for such stacks.
    pub const GUESSED: u32 = 1 << 19;
    /// The lowest of the two bits of `FLAGS` that hold what is known about inlined methods: an
    /// `Inlining`.
    pub const INLINING: u32 = 20;
}

/// Records of `alloc`: arrays of [`allocation::BYTES`]-byte records, in chunks of the allocating
/// thread.
///
/// A record counts objects of one type, on one path, on one heap. Its counts grow while the program
/// runs, until the thread begins a further record of that type and path. Its stack may be filled in
/// later.
pub mod allocation {
    /// Bytes of a record.
    pub const BYTES: usize = 72;
    /// `u64`: nanoseconds from the start of the process's recording until the record was begun.
    pub const TIME: usize = 0;
    /// `u64`: number of recorded objects.
    pub const OBJECTS: usize = 8;
    /// `u64`: bytes of these objects.
    pub const SIZE: usize = 16;
    /// `u64`: bytes that sampled objects represent beyond their own size.
    pub const BEYOND: usize = 24;
    /// `u64`: number of objects that sampled objects represent beyond themselves, in 1024ths.
    pub const OBJECTS_BEYOND: usize = 32;
    /// `u64`: sum of squares: for each sampled object, the square of the number of objects that it
    /// represents.
    pub const SQUARES: usize = 40;
    /// `u32`: index of the type, 0 if unknown.
    pub const TYPE: usize = 48;
    /// `u32`: node of the [stack](super::stack) table, 0 for none.
    pub const STACK: usize = 52;
    /// `u32`: the lowest eight bits are the heap, an `ObjectHeap`; the next eight are the kind of
    /// record, an `AllocationKind`.
    pub const FLAGS: usize = 56;
    /// `u32`: number of the tracked object, from 1; 0 if none.
    pub const OBJECT: usize = 60;
    /// `u64`: number of collections in the process that had ended when the object was allocated, or
    /// when it was found to be gone.
    pub const COLLECTIONS: usize = 64;
    /// The lowest of the eight bits of `FLAGS` with the kind of record.
    pub const KIND: u32 = 8;
}

/// The chunks of heap snapshots; they belong to no thread. The chunks of one snapshot are
/// consecutive; its record ([`HeapSnapshot`](crate::model::HeapSnapshot)) in the log lists them,
/// and a snapshot is complete only if the record says so. For an incomplete snapshot, the chunks
/// with its number are those written before the program ended or the room ran out.
///
/// A chunk is `u32` number of the snapshot, `u32` kind, then the data of that kind. Varints have
/// seven bits per byte, lowest first, top bit set if more follow; differences are zigzag (0, -1, 1,
/// -2, ... are 0, 1, 2, 3).
pub mod heap {
    /// Length of a chunk's head in bytes: the data of its kind follows.
    pub const HEAD: usize = 8;
    /// Adjacent objects: `u64` address of the first, `u64` number of its slots in the previous
    /// chunk (for an object that continues here), `u32` generation (a `HeapGeneration`), `u32`
    /// zero. Then for each object, in varints: the number of its type, or 0 for a gap, followed by
    /// the gap's length in eight-byte words; for types with elements, the number of elements; for
    /// types with content, eight bytes of it; then for each slot 0 for a null reference, or 1 plus
    /// the difference of the referenced address from the object's own, in eight-byte words, zigzag.
    /// If the chunk ends within an object, the next chunk repeats the object and has the remaining
    /// slots.
    pub const OBJECTS: u32 = 1;
    /// Bytes before the first object.
    pub const OBJECTS_HEAD: usize = 24;
    /// Roots, five varints each: kind (a `RootKind`), flags, difference of the object's address
    /// from that of the previous root, zigzag, serial number of the thread (0 for none), index of
    /// the function (0 for none).
    pub const ROOTS: u32 = 2;
    /// Pairs of objects; the second lives as long as the first does. Two varints each: the
    /// differences of both addresses from those of the previous pair, zigzag.
    pub const DEPENDENTS: u32 = 3;
    /// Records [`HeapType`](crate::model::HeapType): `u32` length, then the payload. If several
    /// records have the same number, the last one is valid: a type is written without names before
    /// its objects, and with names after all objects.
    pub const TYPES: u32 = 4;
    /// Records [`HeapPlace`](crate::model::HeapPlace): `u32` length, then the payload.
    pub const PLACES: u32 = 5;
    /// Records [`HeapAwait`](crate::model::HeapAwait): `u32` length, then the payload.
    pub const AWAITS: u32 = 6;
    /// Flag of a root: the object may not be moved.
    pub const PINNING: u32 = 1;
    /// Flag of a root: the root points into the object.
    pub const INTERIOR: u32 = 2;
}

/// Records of `coverage`: one for each method that has counters, in chunks of no thread. The
/// counters grow while the program runs: the method's own code increments them.
///
/// A record is a head of [`coverage::HEAD`] bytes, sums, and counters. The hits are those of the
/// method's points in the order of its plan, then those of its branches; each is a sum of some of
/// the counters. The assembly and its symbols define the points and branches; the fingerprint of
/// the plan tells whether a plan made later matches the hits.
pub mod coverage {
    /// Bytes of the head.
    pub const HEAD: usize = 32;
    /// `u32`: index of the module.
    pub const MODULE: usize = 0;
    /// `u32`: token of the method; 0 in a withdrawn record.
    pub const TOKEN: usize = 4;
    /// `u64`: fingerprint of the plan.
    pub const FINGERPRINT: usize = 8;
    /// `u32`: number of points.
    pub const POINTS: usize = 16;
    /// `u32`: number of branches.
    pub const BRANCHES: usize = 20;
    /// `u32`: size of a counter in bytes. A counter of 8 bytes is a `u64` with the number of hits.
    /// A counter of 1 byte is 1 if there was a hit, else 0; zeros fill such a record up to a
    /// multiple of eight.
    pub const COUNTER: usize = 24;
    /// `u32`: number of `u32` words in the sums; zeros fill the sums up to a multiple of eight
    /// bytes. The first word is the number of counters. Then each point and each branch has the
    /// number of its counters and their indices, followed by zeros. 0: each point and branch has
    /// its own counter, in their order.
    pub const SUMS: usize = 28;
    /// Alignment of the counters in a chunk; zeros after the sums provide it. Processors combine
    /// stores to one aligned block of this size, and a loop stores to counters that lie next to
    /// each other.
    pub const ALIGNMENT: usize = 32;

    /// Length in bytes of a record with `sums` words of sums and `counters` counters of `counter`
    /// bytes each.
    #[must_use]
    pub const fn bytes(sums: usize, counters: usize, counter: usize) -> usize {
        HEAD + (sums * 4).next_multiple_of(8) + (counters * counter).next_multiple_of(8)
    }
}

/// The calls of probed methods, if each call is recorded: a record for the start of a call and one
/// for its end, in chunks of the calling thread.
///
/// A record is a head of [`probe_calls::HEAD`] bytes, for the end of a call also
/// [`probe_calls::BEGAN`], then values (module [`value`]). The next record is at the next multiple
/// of [`probe_calls::HEAD`]. The end of a call has the same method, thread and start time as its
/// start record. Chunks may be reused, so one of the two records may be missing.
pub mod probe_calls {
    /// Bytes of a head, and alignment of all data.
    pub const HEAD: usize = 16;
    /// `u64`: ticks of the process's clock at the event.
    pub const TICKS: usize = 0;
    /// `u32`: the upper two bits are the kind of event, the others the
    /// [number](super::probes::NUMBER) of the method.
    pub const WHAT: usize = 8;
    /// `u32`: length in bytes of the values that follow: at the start of a call those of all
    /// parameters except `out`, at its end those of `ref` and `out` and then the result. 0 if no
    /// values were recorded.
    pub const VALUES: usize = 12;
    /// The bits of `WHAT` with the kind of event.
    pub const KIND: u32 = 3 << 30;
    /// The bits of `WHAT` with the method.
    pub const METHOD: u32 = !KIND;
    /// A call began.
    pub const BEGIN: u32 = 0;
    /// A call returned.
    pub const RETURN: u32 = 1 << 30;
    /// An exception ended a call.
    pub const FAIL: u32 = 2 << 30;
    /// In the record of an end, `u64`: ticks when the call began; eight zero bytes follow.
    pub const BEGAN: usize = HEAD;

    /// Offset of the values in a record with this `WHAT`.
    #[must_use]
    pub const fn before_values(what: u32) -> usize {
        if what & KIND == BEGIN { HEAD } else { BEGAN + HEAD }
    }
}

/// The callers of probed methods, if they are recorded: a record for each thread, method and path
/// of callers, in chunks of no thread. The counters grow while the program runs; only one thread
/// adds to a record.
pub mod probe_callers {
    /// Bytes of a record.
    pub const BYTES: usize = 64;
    /// `u64`: calls that began.
    pub const CALLS: usize = 0;
    /// `u64`: calls that an exception ended.
    pub const FAILED: usize = 8;
    /// `u64`: calls that ended.
    pub const ENDED: usize = 16;
    /// `u64`: ticks of all calls that ended.
    pub const TICKS: usize = 24;
    /// `u64`: number of the path, the writer's key to the record.
    pub const PATH: usize = 32;
    /// `u64`: nanoseconds from the start of the process's recording until the record was begun.
    pub const TIME: usize = 40;
    /// `u32`: [number](super::probes::NUMBER) of the method.
    pub const METHOD: usize = 48;
    /// `u32`: serial number of the thread.
    pub const THREAD: usize = 52;
    /// `u32`: node of the [stack](super::stack) table, 0 for none. The stack consists of the method
    /// and the recorded callers.
    pub const STACK: usize = 56;
    /// `u32`: only the writer uses it. One bit for each caller that is followed by further callers
    /// without a frame pointer.
    pub const GAPS: usize = 60;
}

/// Records of source lines for `probes`: one for each method with code on such a line, in chunks of
/// no thread. The counters grow while the program runs.
///
/// A record is a head of [`probe_lines::HEAD`] bytes, [`probe_lines::LANES`] lanes of
/// [`probe_lines::LANE`] bytes, then the path of the source file and the method's name and
/// signature, with zeros up to a multiple of a lane. Each thread adds to its own lane, or to the
/// first one if no lane is free: a line's hits are the sums over its lanes.
pub mod probe_lines {
    /// Bytes before the lanes.
    pub const HEAD: usize = 64;
    /// `u32`: length of the record in bytes.
    pub const BYTES: usize = 0;
    /// `u32`: index of the module.
    pub const MODULE: usize = 4;
    /// `u32`: token of the method; 0 in a withdrawn record.
    pub const TOKEN: usize = 8;
    /// `u32`: number of the line, from 1.
    pub const LINE: usize = 12;
    /// `u32`: length of the source file's path in bytes.
    pub const FILE: usize = 16;
    /// `u32`: length of the method's name in bytes.
    pub const NAME: usize = 20;
    /// `u32`: length of the method's signature in bytes.
    pub const SIGNATURE: usize = 24;
    /// `u32`: 1 once the probe has been removed during the recording, 0 while it exists.
    pub const REMOVED: usize = 28;

    /// Number of lanes.
    pub const LANES: usize = 64;
    /// Length of a lane in bytes, so chosen that no two lanes share a cache line.
    pub const LANE: usize = 64;
    /// In a lane, `u64`: the thread that owns it; 0 while unowned. Only the writer uses it.
    pub const OWNER: usize = 0;
    /// In a lane, `u64`: hits.
    pub const HITS: usize = 8;

    /// Offset of the texts.
    pub const TEXTS: usize = HEAD + LANES * LANE;

    /// Length in bytes of a record whose texts have `texts` bytes together.
    #[must_use]
    pub const fn bytes(texts: usize) -> usize {
        (TEXTS + texts).next_multiple_of(LANE)
    }
}

/// Records of `probes`: one for each probed method, in chunks of no thread. The counters grow while
/// the program runs.
///
/// A record is a head of [`probes::HEAD`] bytes, lanes of [`probes::LANE`] bytes, then the method's
/// name and signature, with zeros up to a multiple of eight. Each call adds to one of the lanes, so
/// that threads rarely wait for each other; the method's numbers are the sums over its lanes. Times
/// are ticks of the process's clock.
pub mod probes {
    /// Bytes before the lanes.
    pub const HEAD: usize = 64;
    /// `u32`: length of the record in bytes.
    pub const BYTES: usize = 0;
    /// `u32`: index of the module.
    pub const MODULE: usize = 4;
    /// `u32`: token of the method; 0 in a withdrawn record.
    pub const TOKEN: usize = 8;
    /// `u32`: length of the method's name in bytes.
    pub const LANES: usize = 12;
    /// `u32`: length of the method's signature in bytes.
    pub const NAME: usize = 16;
    /// `u32`: bytes of the signature.
    pub const SIGNATURE: usize = 20;
    /// `u32`: 1 once the method's probes have been removed during the recording, 0 while they
    /// exist.
    pub const REMOVED: usize = 24;
    /// `u32`: the method's number, from 1, among those whose [calls](super::probe_calls) or
    /// [callers](super::probe_callers) the process records; 0 if neither are recorded.
    pub const NUMBER: usize = 28;

    /// Length of a lane in bytes.
    pub const LANE: usize = BUCKETS + BUCKET_COUNT * 8;
    /// In a lane, `u64`: calls that began.
    pub const CALLS: usize = 0;
    /// In a lane, `u64`: calls that an exception ended.
    pub const FAILED: usize = 8;
    /// In a lane, `u64`: ticks of all calls that ended.
    pub const TICKS: usize = 16;
    /// In a lane, `u64`: ticks of the longest call that ended.
    pub const LONGEST: usize = 24;
    /// In a lane, `u64`: ticks of calls that ended within another call of the method on the same
    /// thread; earlier versions recorded 0.
    pub const NESTED: usize = 32;
    /// In a lane, `u64` each: number of ended calls by duration. See [`bucket`].
    pub const BUCKETS: usize = 64;
    /// Number of buckets.
    pub const BUCKET_COUNT: usize = (LAST_POWER - SUB_BITS + 2) << SUB_BITS;

    /// Each power of two has 2^`SUB_BITS` buckets, so that a bucket's bounds differ by at most 6 %.
    const SUB_BITS: usize = 4;
    /// Durations from this power of two on, about a day, are all in the last bucket.
    const LAST_POWER: usize = 47;
    /// Maximum number of lanes of a record.
    pub const MOST_LANES: usize = 64;

    /// Length in bytes of a record with `lanes` lanes and `names` bytes of names.
    #[must_use]
    pub const fn bytes(lanes: usize, names: usize) -> usize {
        (HEAD + lanes * LANE + names).next_multiple_of(8)
    }

    /// Index of the bucket for a number of ticks.
    #[must_use]
    #[inline]
    pub const fn bucket(ticks: u64) -> usize {
        if ticks < 1 << SUB_BITS {
            return ticks as usize;
        }
        let power = ticks.ilog2() as usize;
        if power > LAST_POWER {
            return BUCKET_COUNT - 1;
        }
        let sub = (ticks >> (power - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
        ((power - SUB_BITS + 1) << SUB_BITS) + sub
    }

    /// The lowest number of ticks in a bucket.
    #[must_use]
    pub const fn least(bucket: usize) -> u64 {
        if bucket < 1 << SUB_BITS {
            return bucket as u64;
        }
        let (power, sub) = ((bucket >> SUB_BITS) + SUB_BITS - 1, bucket & ((1 << SUB_BITS) - 1));
        ((1 << SUB_BITS) + sub as u64) << (power - SUB_BITS)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn buckets_follow_each_other_and_hold_what_they_say() {
            for number in 0..BUCKET_COUNT {
                assert_eq!(bucket(least(number)), number);
                assert!(number == 0 || bucket(least(number) - 1) == number - 1, "{number}");
                let width = least(number + 1) - least(number);
                assert!(width <= 1 || width * 16 <= least(number), "{number}");
            }
            assert_eq!([u64::MAX, 1 << 48, (1 << 48) - 1].map(bucket), [BUCKET_COUNT - 1; 3]);
        }
    }
}

/// The stack table: nodes of [`stack::BYTES`] bytes, each a frame and its caller's node. The number
/// of the innermost frame's node identifies a stack, and stacks with the same outer frames share
/// nodes.
///
/// Nodes are numbered from 1 in the order of writing; node `n` is at offset `n` times
/// [`stack::BYTES`], and number 0 means no stack. Nodes are only ever appended.
pub mod stack {
    /// Bytes of a node.
    pub const BYTES: usize = 16;
    /// `u32`: number of the caller's node, always smaller than the node's own number; 0 for none.
    pub const PARENT: usize = 0;
    /// `u32`: kind of the node; stored last, 0 if the node is not written yet. The lowest eight
    /// bits are the kind: readers show unknown kinds as unknown frames. The next eight bits are a
    /// method's `Tier`, and the upper half is the uncertainty of a method's offset.
    pub const KIND: usize = 4;
    /// `u32`: index of the function or module.
    pub const SUBJECT: usize = 8;
    /// `u32`: offset in the function or module.
    pub const OFFSET: usize = 12;
    /// A method: index of the function, and the offset in its IL plus 1, or 0 if the offset is
    /// unknown.
    pub const METHOD: u32 = 1;
    /// A location in native code: index of the module, and the byte offset from the module's load
    /// address: the location's address in the file less the lowest address of a loaded segment. In
    /// the kernel it is the byte offset from `_text`.
    pub const NATIVE: u32 = 2;
    /// Not a frame, and without a caller: the stack had more frames than were kept.
    pub const CUT: u32 = 3;
    /// Not a frame: the stack ends here, and a chain of awaiters follows. The caller's node is the
    /// async method that awaits the innermost resumed method of this stack (resumed after an
    /// `await`). That node's caller is its own awaiter, and so on up to a node of kind
    /// `AWAITS_END`.
    pub const AWAITED_BY: u32 = 4;
    /// Not a frame, and without a caller: the chain of awaiters ends here. `SUBJECT` gives the
    /// reason, see `ChainEnd`.
    pub const AWAITS_END: u32 = 5;
    /// The bits of `KIND` with the kind.
    pub const KIND_BITS: u32 = 0xFF;
    /// The lowest of the eight bits of `KIND` with the tier.
    pub const TIER: u32 = 8;
    /// The lowest of the sixteen bits of `KIND` with the uncertainty: the number of bytes of IL,
    /// from the offset on, that contain the location; 0 if the offset is exact.
    pub const SPAN: u32 = 16;
    /// The span of a location that may be anywhere from the offset to the end of the method.
    pub const TO_THE_END: u16 = u16::MAX;
    /// Maximum number of frames in a stack: readers stop after this many.
    pub const DEEPEST: usize = 4096;
}

/// Function indices with a fixed meaning; ordinary functions start at [`function::FIRST`].
pub mod function {
    /// Compilation by the just-in-time compiler.
    pub const JIT: u32 = 1;
    /// Stands for the rest of a path that was not recorded for lack of memory.
    pub const TRUNCATED: u32 = 2;
    /// Not a call: while the agent measures the cost of hooks, it puts blocks full of this key
    /// before a caller's own blocks for a moment. Readers ignore such edges.
    pub const PADDING: u32 = 3;
    /// Work of a collection, on the thread that triggered it, while the other threads are
    /// suspended. A record in the log names it, as for ordinary functions.
    pub const GC: u32 = 4;
    /// The index of suspensions for a reason is this number plus the runtime's number of the reason
    /// (0 to 9).
    pub const SUSPENDED: u32 = 8;
    /// The first index of an ordinary function.
    pub const FIRST: u32 = 32;
}

/// A thread record of 256 bytes.
pub mod thread {
    /// Bytes per record.
    pub const BYTES: usize = 256;
    /// Maximum number of thread records.
    pub const MOST: usize = 65_536;
    /// Bytes that the writer uses within its own process: meaningless to readers, and not part of
    /// the format.
    pub const OWN: [std::ops::Range<usize>; 2] = [0..64, 112..248];
    /// `u32`: serial number from 1; 0 for a record never used. A recording that keeps only its last
    /// period gives the record of a thread that ended before it to a new thread, under a new serial
    /// number above [`MOST`]. The new thread continues the counts of the old one's tree: what it
    /// called itself are the gains since the last boundaries between parts.
    pub const SERIAL: usize = 64;
    /// `u32`: the operating system's id.
    pub const OS_ID: usize = 68;
    /// `u64`: monotonic nanoseconds when the agent first saw the thread.
    pub const CREATED: usize = 72;
    /// `u64`: monotonic nanoseconds when the thread ended; 0 while it lives.
    pub const ENDED: usize = 80;
    /// `u64`: CPU time in nanoseconds at the last sample.
    pub const CPU: usize = 88;
    /// `u32`: offset of the block whose first edge is the thread's root. Its second edge, if it has
    /// one, is `(truncated)`: calls on paths for which there was no room.
    pub const ROOT: usize = 96;
    /// `u32`: role of the thread, a `ThreadRole`.
    pub const ROLE: usize = 100;
    /// `u32`: number of blocks that the thread uses; a reader follows no more than these.
    pub const BLOCKS: usize = 104;
    /// `u32`: 1 if CPU time was ever measured.
    pub const CPU_KNOWN: usize = 108;
    /// `u32`: call depth of the thread when its stack was almost exhausted; 0 if that never
    /// happened.
    pub const OUT_OF_STACK: usize = 248;
    /// `u32`: [`ROOT`] of the thread that had the record before, until this thread continues that
    /// tree; 0 if there was none. Only the writer uses it.
    pub const ROOT_BEFORE: usize = 252;
}

/// A record of sampled time, 32 bytes.
pub mod time {
    /// Bytes per record.
    pub const BYTES: usize = 32;
    /// `u32`: the edge.
    pub const EDGE: usize = 0;
    /// `u32`: 1 once the record is valid.
    pub const VALID: usize = 4;
    /// `u64`: wall time in nanoseconds.
    pub const WALL: usize = 8;
    /// `u64`: CPU time in nanoseconds.
    pub const CPU: usize = 16;
    /// `u64`: number of samples that found the thread on this edge.
    pub const SAMPLES: usize = 24;
}

/// The state of a process.
pub mod state {
    /// Bytes of content.
    pub const BYTES: usize = 4096;
    /// `u32`: process id.
    pub const PID: usize = 0;
    /// `u32`: bit 0 is set once the process has ended in order.
    pub const FLAGS: usize = 4;
    /// `u32`: set to 1 from outside to end the recording.
    pub const STOP: usize = 8;
    /// `u32`: set to 1 by the agent once it no longer records, and to [`DETACHED`] once the runtime
    /// has detached it.
    pub const STOPPED: usize = 12;
    /// `u64`: monotonic nanoseconds at the start.
    pub const MONO_START: usize = 16;
    /// `u64`: Unix nanoseconds at the start.
    pub const UNIX_START: usize = 24;
    /// `u64`: time stamp counter at the start.
    pub const TICKS_START: usize = 32;
    /// `u64`: monotonic nanoseconds of the last sign of life.
    pub const MONO_LAST: usize = 40;
    /// `u64`: time stamp counter at the last sign of life.
    pub const TICKS_LAST: usize = 48;
    /// `u64`: CPU time of the process in nanoseconds.
    pub const CPU: usize = 56;
    /// `u64`: only the events of this many nanoseconds up to the last sign of life are kept; 0 if
    /// all events are kept.
    pub const KEPT: usize = 64;
    /// `u32`: number of times that a trigger for writing out the recording fired.
    pub const TRIGGERED: usize = 72;
    /// Array of losses, indexed by the number of the loss's reason.
    pub const LOSSES: usize = 256;
    /// Length of a loss in bytes: `u64` count, `u64` first and `u64` last monotonic nanoseconds.
    pub const LOSS_BYTES: usize = 24;
    /// Maximum number of losses.
    pub const LOSSES_MOST: usize = 64;
    /// Value of [`STOPPED`]: the runtime has detached the agent.
    pub const DETACHED: u32 = 2;
    /// Flag: the process ended in order.
    pub const FLAG_ENDED: u32 = 1;
    /// `u32`: 1 once the agent accepts commands.
    pub const LISTENS: usize = 2048;
    /// `u32`: number of the last command that was executed or refused, 0 before the first.
    pub const ANSWERED: usize = 2052;
    /// `u32`: result of the command, a number of `control::Answer`.
    pub const ANSWER: usize = 2056;
    /// `u32`: a number that belongs to the answer, such as the number of methods affected by a
    /// command.
    pub const ANSWER_NUMBER: usize = 2060;
    /// `u32`: number of the last command from outside, one more than [`ANSWERED`]; written last.
    pub const COMMAND: usize = 2064;
    /// `u32`: the command: 1 start, 2 stop, 3 mark, 4 take a snapshot of the heap, 5 probe methods,
    /// 6 remove their probes, 7 probe a line, 8 remove its probes, 9 prepare for a copy.
    pub const COMMAND_KIND: usize = 2068;
    /// `u32`: length in bytes of the name of the new part (0 for none), of the method pattern, or
    /// of the line.
    pub const COMMAND_NAME_BYTES: usize = 2072;
    /// The part's name, the pattern or the line, UTF-8.
    pub const COMMAND_NAME: usize = 2080;
    /// Maximum length of [`COMMAND_NAME`] in bytes.
    pub const COMMAND_NAME_MOST: usize = 1024;
}

/// Reads a little-endian `u32`; 0 if it is past the end of `bytes`.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at.saturating_add(4)) {
        Some(found) => u32::from_le_bytes([found[0], found[1], found[2], found[3]]),
        None => 0,
    }
}

/// Reads a little-endian `u64`; 0 if it is past the end of `bytes`.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at.saturating_add(4))) << 32
}
