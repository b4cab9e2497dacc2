//! Writing inside the profiled process. Segments are mapped shared, so every store is part of the
//! file at once.
//!
//! `fallocate(2)` reserves space before it is used, because a store into a mapped page without disk
//! space raises SIGBUS in the user's program. This module keeps no file descriptor open, because
//! programs close descriptors that are not theirs.

mod allocations;
mod arena;
pub(crate) mod bounds;
mod clock;
mod control;
mod coverage;
mod events;
mod fields;
mod gains;
mod growing;
mod heap;
mod log;
mod mapping;
mod probe_callers;
mod probe_lines;
mod probes;
mod process;
mod random_id;
mod run;
mod stacks;
mod state;
mod threads;
mod times;

pub use allocations::AllocationCell;
pub use arena::{Arena, Piece};
pub use bounds::Bound;
pub use clock::monotonic_ns;
pub use control::{Answer, Command, ControlError, command};
pub use coverage::MethodCounters;
pub use events::{Chunk, ChunkCell, EventStore, Keep};
pub use gains::GainLog;
pub use heap::{HeapRootRecord, HeapWriter, ObjectHead};
pub use log::LogWriter;
pub use mapping::{CommitError, Segment, first_refusal, limit_size, unmap_all_in};
pub use probe_callers::CallerCell;
pub use probe_lines::LineLanes;
pub use probes::MethodLanes;
pub use process::{ProcessRecord, ProcessWriter};
pub(crate) use random_id::id_of_period;
pub use random_id::random_id;
pub use run::{
    RunWriter, Standing, is_abandoned, is_over, last_sign_ns, living_processes, lock_at, process_folders, request_stop,
    standing, take_abandoned, triggered,
};
pub use stacks::StackTable;
pub use state::StateWriter;
pub use threads::{ThreadRecord, ThreadTable};
pub use times::TimeTable;
