//! Analysis of a clrscope recording, from recording to tables and trees: pure and deterministic.
//!
//! Nothing here reads files, reads a clock or prints. Nothing fails on odd data. The same recording
//! yields the same values in the same order for any number of processors.
//!
//! # What the columns mean
//!
//! For each thread, a recording holds a calling-context tree. It has a node for each distinct path
//! of calls, with the number of calls along that path and the time in which the path's last
//! function was on top of the stack. From this tree the following values are computed for a
//! function in a thread (and, as sums over threads, in a process):
//!
//! - **calls**: the sum over its nodes.
//! - **measured exclusive** *X*: the sum of its nodes' own times.
//! - **suspended** *S*: the time of `[suspended: …]` nodes directly below its nodes: the runtime
//!   had suspended the thread while the function was on top. The suspensions are also rows of their
//!   own (kind `runtime`), so the exclusive times of all rows add up to the whole time.
//! - **measured inclusive** *I*: the whole subtrees of its outermost nodes, which are the nodes
//!   without an ancestor of the same function. A recursion is counted once.
//! - **profiler** *P*: a call costs an enter hook, in the caller's time, and a leave hook, in the
//!   callee's time. A function's share is `calls × leave + calls it made × enter`, over functions
//!   that have hooks, and at most *X*. The cost is compared with the time per function and thread,
//!   never per node: a sampled tree has time on few of its nodes. The low and high values use the
//!   bounds of the measured pair instead.
//! - **exclusive**: *X − P*.
//!
//! In *raw* rows `inclusive = I`. In *compensated* rows, the default, the modelled cost of all
//! hooks in the outermost subtrees is subtracted from *I*, after each function's cost is scaled
//! down to fit into its *X*. Then
//!
//! ```text
//! raw:          inclusive = exclusive + callee + suspended + profiler
//! compensated:  inclusive = exclusive + callee + suspended              (profiler: what was taken out)
//! ```
//!
//! hold exactly on every row, and all terms are at least 0. Callee is the remainder: time in calls
//! to *other* functions. In the recursion A-B-A the inner A's own time counts in A's exclusive
//! time, and not a second time in A's callee time. The time of B does count in A's callee time.
//!
//! CPU time has separate columns, which are absent where it was not measured. In compensated rows
//! the profiler's share is subtracted from CPU time as well, because hooks do not wait.
//!
//! Nodes of a [tree](Forest) have the same columns for their path alone; callee covers all their
//! children except suspensions. In compensated trees a node's inclusive time is distributed among
//! itself and its children in proportion to their measured time minus their hooks' cost, so that
//! the equations hold at every node.

//! # Metrics
//!
//! The numbers above are those of `calls`. Other [metrics](Metric) are sums of events along their
//! stacks. Each row has an own amount (`self`) and a total (`total`). The own amount covers the
//! events whose stack ends in the function; the total covers the events whose stack contains the
//! function. The sums are the same as above, for a tree built from the stacks.

mod allocations;
mod allocations_by_call;
mod at_once;
mod awaits;
mod catalog;
mod closures;
mod code_place;
mod collections;
mod columns;
mod comparison;
mod cost;
mod counters;
mod coverage;
mod cpu_within_wall;
mod durations;
mod edges;
mod events;
mod exceptions;
mod flow;
mod forest;
mod function;
mod heap;
mod idle_threads;
mod label_selection;
mod limit;
mod locks;
mod logical;
mod memory;
mod metric;
mod metric_events;
mod metrics;
mod module_sums;
mod native;
pub mod numbers;
mod overflow;
mod owners;
mod parts;
mod paths;
mod patterns;
mod pictures;
mod pieces;
mod printable;
mod probe_callers;
mod probe_calls;
mod probe_watch;
mod probes;
mod programs;
mod query;
mod request_filter;
mod requests;
mod resource;
mod runs;
mod samples;
mod sampling;
mod select;
mod stack_log;
mod stack_trees;
mod sums;
mod thread_stacks;
mod tiers;
mod time_states;
mod times;
mod titled;
mod views;
mod waits;

pub use allocations::{BYTES, OBJECTS};
pub use allocations_by_call::CallAllocations;
pub use awaits::{AwaitPath, AwaitRow, awaits};
pub use closures::{FindLine, tell_closures_apart};
pub use clrscope_recording::model::CounterKind;
pub use clrscope_recording::parallel::with_processors;
pub use code_place::CodePlace;
pub use collections::{
    Collection, CollectionFacts, CollectionKind, GENERATION_NAMES, GenerationSizes, Growth, Reason, SurvivorQuery,
    SurvivorRow, collection_facts, collections, survivors,
};
pub use comparison::{
    AllocationChanges, Change, Chosen, ComparisonProblem, ExceptionChange, ExceptionChanges, FunctionChanges, Gate,
    GateError, IntervalEstimate, Judgement, Level, Limit, NamedRecording, Outcome, PathChange, Per, ProbeChange,
    ProbeChanges, Shown, Side, SideTotal, Sides, SmallerPaths, Thrower, TreeChanges, TypeChange, Verdict, Verdicts,
    allocation_changes, exception_changes, function_changes, judge, probe_changes, tree_changes,
};
pub use counters::{CounterPoint, CounterRow, counters};
pub use coverage::{BranchCoverage, Coverage, CoverageSums, FileCoverage, LineCoverage, MethodCoverage, coverage};
pub use events::{EventLog, EventNames, EventQuery, EventRow, Subject};
pub use exceptions::{
    CallStack, EXCEPTIONS, Exception, ExceptionGroup, ExceptionLog, ExceptionQuery, Filter, Frame, Inner,
};
pub use flow::{Argument, CapturedValues, Elements, Field, FlowFunction, FlowKind, FlowLog, FlowRow, Passing, Value};
pub use forest::{Forest, NodePiece, PrunedPaths, Tree, TreeNode, TreeOptions, TreePlace, tree};
pub use function::{FunctionRef, is_own};
pub use heap::{
    AwaitPlace, BlockedThread, CutSnapshot, DominatorNode, DominatorTree, Generation, GrownPath, HeapChange,
    HeapChanges, HeapContents, HeapPath, HeapPathPlace, HeapPathRoot, HeapPathStep, HeapPaths, HeapQuery, HeapRow,
    HeapSummary, HeapView, HeapWaste, Heaps, Missing, PendingFrame, PendingOperation, PendingOperations, Retainer,
    SmallerNodes, SnapshotRef, WasteKind, WasteRow, complete_snapshots, cut_snapshots, dominator_tree, heap,
    heap_changes, heap_contents, heap_paths, heap_summary, heap_waste, pending_operations,
};
pub use label_selection::{LabelSelection, SelectionError};
pub use limit::LeftOut;
pub use locks::{LockKind, LockPath, LockQuery, LockRow, locks};
pub use logical::make_paths_logical;
pub use memory::{MemoryPart, MemoryRow, MemoryTimes, MemoryView, memory};
pub use metric::{Amount, CALLS, CPU, Column, Metric, SampleCount, Source, StackEvent, StackEvents, Unit, WALL};
pub use metrics::METRICS;
pub use native::{leave_inlined_out, name_native_code};
pub use overflow::{StackOverflow, stack_overflows};
pub use parts::{keep_parts, observed_ns, observed_unix_ns, ran_on, recorded_time};
pub use patterns::{UnmatchedPattern, methods_like, missed_line, unmatched_patterns};
pub use pictures::{
    ChangedTree, FunctionAmounts, Neighbours as PictureNeighbours, PictureChange, PictureFunction, PictureFunctions,
    PictureMeasure, PictureRow, Pictures,
};
pub use pieces::Pieces;
pub use printable::{is_printable, one_line};
pub use probe_callers::{CallerNode, CallerSums, ProbeCallers};
pub use probe_calls::{ProbeCall, ProbeLog};
pub use probe_watch::{ProbeWatch, WatchedProbe};
pub use probes::{ProbeRow, ProbedPlace, has_probes, probes};
pub use programs::{Program, own_programs};
pub use query::{NativeCode, PathKind, Query, QueryProblem, Sort, ThreadSelector};
pub use request_filter::RequestFilter;
pub use requests::{
    Direction, KnownRequest, Load, LoadCurve, LoadLevel, NoKnee, Request, RequestEnd, RequestRow, RequestStep,
    RequestSteps, RequestWork, StepKind, ThreadStates, TraceIds, each_request, keep_requests, loads, request_steps,
    requests,
};
pub use resource::{AttributeValue, RESOURCE_KEYS, Resource};
pub use samples::{
    InliningKnowledge, SAMPLED_CPU, SAMPLED_WALL, SAMPLES, SampleKind, SamplingConditions, kind_of_code,
};
pub use sampling::{HOOK_MARGIN, sampled_bounds, share_bounds};
pub use select::{check_selection, process_matches, resolve_names};
pub use stack_log::{StackLog, StackMoment, ThreadStacks};
pub use stack_trees::StateTimes;
pub use thread_stacks::{ThreadStack, thread_stacks};
pub use tiers::Tiers;
pub use times::{Times, Totals};
pub use views::allocations::{AllocatedBy, AllocationRow, Allocations, LiveSum, allocations};
pub use views::conditions::{Conditions, ProcessConditions, Resolution, conditions};
pub use views::functions::{Functions, functions};
pub use views::lines::{FindPlace, FoundPlace, LineRow, LinesView, lines};
pub use views::losses::{LossRow, Losses, losses};
pub use views::modules::{ModuleRow, Modules, modules};
pub use views::neighbours::{CallGraph, EdgeRow, GraphEdge, Neighbours, NeighboursView, call_graph, callees, callers};
pub use views::rows::{FunctionRow, ThreadRow};
pub use views::spans::{Span, spans};
pub use views::summary::{
    Elsewhere, ElsewhereKind, Finding, FindingFunction, FindingKind, FindingPlace, FrequentExceptions, KindRow, OwnRow,
    PoolStep, SampledThreads, StateRow, Summary, findings_about_allocations, findings_about_collections, summary,
};
pub use views::threads::{Threads, threads};
pub use views::timeline::{Lane, Timeline, TimelineRow, cpu_timeline, timeline, timeline_pieces};
pub use views::triage::{Evidence, Triage, TriageVerdict, Trouble, Vitals, triage};
pub use waits::{TimeState, WaitKind};
