//! The model of a recording: plain values that readers return.
//!
//! All types here are data whose methods can't fail. Errors in the bytes on disk are entries in
//! [`Recording::problems`] or a [`Loss`] of the process.

#[macro_use]
mod by_number;

mod allocations;
mod awaiters;
mod counters;
mod coverage;
mod coverage_plan;
mod derived;
mod event_bytes;
mod exit;
mod heap;
mod identity;
mod memory;
mod object_types;
mod one_after_another;
mod own_memory;
mod parts;
mod probe_callers;
mod probe_lines;
mod probes;
mod process;
mod remarks;
mod run;
mod sampling;
mod shown_work;
mod stack_frame;
mod stack_nodes;
mod stacks;
mod tree;

pub use allocations::{Allocation, AllocationEngine, AllocationKind, AllocationSampling, ObjectHeap};
pub use awaiters::{AwaiterChain, ChainEnd};
pub use counters::{CounterKind, CounterReading, full_counter_name};
pub use coverage::{CounterSums, MethodHits};
pub use coverage_plan::{CoveragePlan, CoverageSource, PlannedBranch, PlannedMethod, PlannedPoint};
pub use derived::Derived;
pub(crate) use event_bytes::ByteSource;
pub use event_bytes::EventBytes;
pub use exit::Exit;
pub use heap::{HeapAwait, HeapGeneration, HeapPlace, HeapSnapshot, HeapType, RootKind, SnapshotReason, SnapshotState};
pub use identity::{EntryAssembly, Identity};
pub use memory::MemoryPlace;
pub use object_types::ObjectType;
pub use own_memory::OwnMemory;
pub use parts::{BoundaryKind, Part, PartBoundary, PartSpan, PartTrees};
pub use probe_callers::ProbeCaller;
pub use probe_lines::ProbedLine;
pub use probes::{ProbeCallEnd, ProbeCallRecord, ProbedMethod};
pub use process::{
    CallsInfo, Clock, EventArena, EventChunk, Function, FunctionFlags, FunctionKind, GC_NAME, HookCost, JIT_NAME,
    Module, ModuleKind, NearName, PairCost, Process, SampleSteps, SourceKind, TRUNCATED_NAME, Thread, ThreadRole,
    TickClock,
};
pub use remarks::{Advice, Loss, LossReason, Problem, Remark, RemarkKind};
pub use run::{Recording, Run};
pub use sampling::{Activity, Inlining, NativeSymbol, Sample, Sampler, SamplingEngine, ThreadState, Tier};
pub use shown_work::ShownWork;
pub use stack_frame::StackFrame;
pub(crate) use stack_nodes::StackNode;
pub use stacks::{ChangedFrame, FrameToChange, NamedPlace, Stacks, StacksBuilder};
pub use tree::{CallTree, CallTreeBuilder, Node, NodeFlags, NodeValues, ROOT, TreeSource};
