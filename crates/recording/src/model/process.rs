//! One profiled process: its dictionaries and its threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    AllocationSampling, CoveragePlan, Derived, EntryAssembly, EventBytes, Exit, HeapSnapshot, Identity, Loss,
    LossReason, NativeSymbol, ObjectType, OwnMemory, Part, Remark, RemarkKind, Sampler, ShownWork, Stacks, TreeSource,
};
use crate::codec::{Field, numbered, record};
use crate::payload::{PayloadReader, PayloadWriter};

record! {
    /// One .NET process of a recording.
    #[derive(Debug, Clone, Default)]
    pub struct Process {
        /// Process id.
        pub pid: u32,
        /// Process id of its parent when it started.
        pub parent_pid: u32,
        /// Command line of the process.
        pub command: Vec<String>,
        /// The runtime, for instance `.NET 8.0.33`.
        pub runtime: String,
        /// Start of recording, nanoseconds since the start of the run.
        pub started_ns: u64,
        /// Nanoseconds from the start of recording to its end, or to the last sign of life.
        pub duration_ns: u64,
        /// CPU time of the whole process while it was recorded, in nanoseconds; `None` if it could
        /// not be read.
        pub cpu_ns: Option<u64>,
        /// How the process ended; `None` if its end was not seen.
        pub exit: Option<Exit>,
        /// Whether the program ended while the agent was recording, and the agent recorded the end.
        pub complete: bool,
        /// The clock of the time stamps in events; unset if there are none.
        pub ticks: TickClock,
        /// Number of processors available to the process when it was first recorded; 0 if unknown.
        pub processors: u32,
    }
    beside {
        /// Machine, container and labels; empty in recordings from versions that did not record
        /// them.
        pub identity: Identity,
        /// The assembly with the program's entry point, if it was loaded during the recording.
        pub entry_assembly: EntryAssembly,
        /// Settings and measured constants of the `calls` instrument, if it ran.
        pub calls: Option<CallsInfo>,
        /// Indexed by [`Node::function`](super::Node); entry 0 represents "no function".
        pub functions: Vec<Function>,
        /// Indexed by [`Function::module`]; entry 0 represents "no module".
        pub modules: Vec<Module>,
        /// Types of objects, indexed by the numbers that memory instruments use; entry 0 represents
        /// an unknown type.
        pub types: Vec<ObjectType>,
        /// Threads, in the order of their first appearance.
        pub threads: Vec<Thread>,
        /// Losses, sorted by reason.
        pub losses: Vec<Loss>,
        /// Remarks for the header of reports.
        pub remarks: Vec<Remark>,
        /// The shown periods, if the recording was reduced to some of its parts. Each has its start
        /// and its end in nanoseconds since the start of the run; the periods are sorted and do not
        /// overlap.
        pub shown: Option<Vec<(u64, u64)>>,
        /// The shown work, if the recording was reduced to the work for some requests.
        pub shown_work: Option<Arc<ShownWork>>,
        /// The parts of the recording, in order; empty if recording was never switched on or off,
        /// and no part was ever marked.
        pub parts: Vec<Part>,
        /// The patterns of the request that have matched a name, for instance `include=[App]*`.
        pub matched_patterns: Vec<String>,
        /// Functions whose names resemble a pattern that had matched nothing when the agent saw the
        /// function.
        pub near_names: Vec<NearName>,
        /// Sampling instruments that ran, and how each one took its samples.
        pub samplers: Vec<Sampler>,
        /// Sampling of allocations by `alloc`, if it ran.
        pub allocation_sampling: Option<AllocationSampling>,
        /// Memory that instruments use for themselves, with an entry for each instrument.
        pub own_memory: Vec<OwnMemory>,
        /// Snapshots of the heap, sorted by number.
        pub snapshots: Vec<HeapSnapshot>,
        /// Names of native code, sorted by module and offset.
        pub native_symbols: Vec<NativeSymbol>,
        /// Plans of the assemblies whose coverage was recorded, if their files existed.
        pub coverage_plans: Vec<CoveragePlan>,
        /// The call stacks; records of instruments refer to them by number.
        pub stacks: Arc<Stacks>,
        /// Event chunks of all other instruments, not decoded, sorted by instrument name.
        pub events: Vec<EventArena>,
        /// Values that readers have derived from the fields above.
        pub derived: Derived,
    }
}

record! {
    /// A function whose name resembles a pattern of the request.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct NearName {
        /// The pattern, for instance `include=[App]*`.
        pub pattern: String,
        /// Name of the function: `Namespace.Type::Method`.
        pub name: String,
    }
}

record! {
    /// The time stamp counter of a process.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct TickClock {
        /// Reading of the counter when recording started.
        pub start: u64,
        /// Nanoseconds per tick; 0 if unknown.
        pub ns_per_tick: f64,
    }
}

impl TickClock {
    /// Nanoseconds from the start of recording to this time stamp.
    #[must_use]
    pub fn ns_since_start(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start) as f64 * self.ns_per_tick) as u64
    }
}

impl Process {
    /// The [types](Self::types) as functions, at the same indices, for paths that end in the type
    /// of an allocated object. Their function indices follow those of all
    /// [`functions`](Self::functions): see [`function_at`](Self::function_at).
    #[must_use]
    pub fn type_functions(&self) -> &[Function] {
        self.derived.borrowed(|| -> Vec<Function> { self.types.iter().map(Function::of_type).collect() })
    }

    /// Function index of the type with this number.
    #[must_use]
    pub fn index_of_type(&self, number: u32) -> u32 {
        // Index 0 stands for no function, even where there are none.
        let behind = self.functions.len().max(1) as u32;
        behind.saturating_add(if (number as usize) < self.types.len() { number } else { 0 })
    }

    /// The function with this index. Indices after those of all functions denote types, in the same
    /// form. `None` for index 0 and for invalid indices.
    #[must_use]
    pub fn function_at(&self, index: u32) -> Option<&Function> {
        let behind = self.functions.len().max(1);
        match (index as usize).checked_sub(behind) {
            None => self.functions.get(index as usize).filter(|_| index != 0),
            Some(number) => self.type_functions().get(number),
        }
    }

    /// Number of items that the recording lacks.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let losses = self.losses.iter().filter(|loss| !loss.reason.is_benign());
        losses.fold(0, |sum, loss| sum.saturating_add(loss.count))
    }

    /// Whether anything was lost for this reason.
    #[must_use]
    pub fn has_lost(&self, reason: LossReason) -> bool {
        self.losses.iter().any(|loss| loss.reason == reason)
    }

    /// Whether reports show a time, given in nanoseconds since the start of the run.
    #[must_use]
    pub fn shows(&self, time_ns: u64) -> bool {
        self.shown.as_ref().is_none_or(|times| {
            let begun = times.partition_point(|(since, _)| *since <= time_ns);
            begun.checked_sub(1).is_some_and(|last| time_ns <= times[last].1)
        })
    }

    /// Whether reports show what a thread did at a time, given in nanoseconds since the start of
    /// the run. If only the work for some requests is shown, the work of an unknown thread is not.
    #[must_use]
    pub fn shows_work(&self, thread: Option<&Thread>, time_ns: u64) -> bool {
        let Some(work) = &self.shown_work else { return true };
        thread.is_some_and(|thread| work.has(thread.id, time_ns))
    }

    /// Whether reports show work for the request with this id, or, with `None`, work for no
    /// request.
    #[must_use]
    pub fn shows_request(&self, request: Option<u64>) -> bool {
        let Some(work) = &self.shown_work else { return true };
        request.is_some_and(|request| work.requests.contains(&request))
    }

    /// Returns the name of the assembly that `plan` describes, whether or not the process loaded
    /// the assembly.
    #[must_use]
    pub fn covered_assembly<'a>(&'a self, plan: &'a CoveragePlan) -> &'a str {
        if plan.was_loaded() { self.module_name(plan.module) } else { &plan.assembly }
    }

    /// Returns the name of the module with this index; empty if there is none.
    #[must_use]
    pub fn module_name(&self, module: u32) -> &str {
        self.modules.get(module as usize).map_or("", |module| module.name.as_str())
    }

    /// Reason why the agent in this process disabled itself, if it did; nothing else is known about
    /// the process then.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        let refusal = self.remarks.iter().find(|remark| remark.kind == RemarkKind::Refusal);
        refusal.map(|remark| remark.text.as_str())
    }

    /// The memory in bytes that each instrument uses for itself, if it was recorded.
    pub fn memory_of_instruments(&self) -> impl Iterator<Item = (&str, u64)> {
        let said = self.own_memory.iter().map(|own| (own.instrument.as_str(), own.bytes));
        // Earlier versions recorded the memory of a single instrument, in this field.
        let earlier =
            self.allocation_sampling.as_ref().map(|sampling| (crate::layout::instrument::ALLOC, sampling.own_bytes));
        said.chain(earlier).filter(|(_, bytes)| *bytes > 0)
    }

    /// Event arenas of the instrument of this name (see
    /// [`layout::instrument`](crate::layout::instrument)).
    pub fn arenas(&self, instrument: &str) -> impl Iterator<Item = &EventArena> {
        self.events.iter().filter(move |arena| arena.instrument == instrument)
    }
}

/// All event chunks of one instrument in one process.
#[derive(Debug, Clone, Default)]
pub struct EventArena {
    /// The instrument, for instance `flow`.
    pub instrument: String,
    /// Chunks in the order of their sequence numbers.
    pub chunks: Vec<EventChunk>,
}

impl EventArena {
    /// The chunks of each thread, in the order of writing.
    #[must_use]
    pub fn by_thread(&self) -> BTreeMap<u32, Vec<&EventChunk>> {
        let mut by_thread: BTreeMap<u32, Vec<&EventChunk>> = BTreeMap::new();
        for chunk in &self.chunks {
            by_thread.entry(chunk.thread).or_default().push(chunk);
        }
        by_thread
    }
}

/// One chunk of events, in the encoding of its instrument.
#[derive(Debug, Clone, Default)]
pub struct EventChunk {
    /// Index into [`Process::threads`], or `u32::MAX` for a chunk of no thread.
    pub thread: u32,
    /// Number of the chunk: grows by one with each chunk of this instrument in this process.
    pub sequence: u64,
    /// The instrument's bytes.
    pub bytes: EventBytes,
}

/// Clock of the times of `calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// A helper thread charges time to each thread's current position.
    #[default]
    Sampled,
    /// Each event reads the time stamp counter.
    Tsc,
}

numbered!(Clock: Sampled, Tsc);

record! {
    /// Settings of the `calls` instrument in one process, and its measurements of itself.
    #[derive(Debug, Clone, Default)]
    pub struct CallsInfo {
        /// The clock.
        pub clock: Clock,
        /// Whether inlining was disabled, so that every call is recorded.
        pub noinline: bool,
        /// Whether the tree includes unmanaged calls.
        pub native: bool,
        /// Whether the tree includes runtime helpers of CoreLib.
        pub helpers: bool,
        /// Whether the tree includes tiny leaf methods.
        pub trivial: bool,
        /// Whether CPU time was measured: only then are the `cpu_ns` columns valid.
        pub cpu_measured: bool,
        /// Nanoseconds between two samples of the helper thread.
        pub interval_ns: u64,
        /// Cost of one call in hooks, used for calls without an entry in
        /// [`pair_costs`](Self::pair_costs).
        pub hook_cost: HookCost,
        /// Costs measured in the program, sorted by caller.
        pub pair_costs: Vec<PairCost>,
        /// Mean time that one sample represents; zeros if unknown.
        pub sample_steps: SampleSteps,
    }
}

record! {
    /// Mean time that one sample charged to a position, weighted by that time. A sampled time may
    /// easily be wrong by this much. On a busy machine samples come late, so a step can exceed the
    /// interval.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct SampleSteps {
        /// Wall time in nanoseconds, of running threads.
        pub wall_ns: u64,
        /// CPU time in nanoseconds.
        pub cpu_ns: u64,
    }
}

record! {
    /// Measured cost of a hook pair, in nanoseconds, with estimated bounds.
    ///
    /// The time of the enter hook counts for the caller and that of the leave hook for the callee,
    /// because each hook updates the thread's position at its very end.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct HookCost {
        /// Most likely cost of enter.
        pub enter_ns: f64,
        /// Most likely cost of leave.
        pub leave_ns: f64,
        /// Minimum cost of an enter and its leave together.
        pub pair_low_ns: f64,
        /// Maximum cost of an enter and its leave together.
        pub pair_high_ns: f64,
    }
}

record! {
    /// Measured cost of a hook pair for calls from one function to another.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct PairCost {
        /// Index of the caller in [`Process::functions`].
        pub caller: u32,
        /// Index of the function that the caller called most often during the measurement.
        pub callee: u32,
        /// The cost.
        pub cost: HookCost,
    }
}

/// Kind of the function of a row or node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u32)]
pub enum FunctionKind {
    /// IL code.
    #[default]
    Managed = 0,
    /// A function of an unmanaged library.
    Native = 1,
    /// Work of the runtime other than suspensions: `[JIT]`, `(truncated)`.
    Runtime = 2,
    /// The runtime suspended the thread: `[suspended: GC]`.
    Suspended = 3,
    /// A function of the kernel.
    Kernel = 4,
    /// Runtime-generated code that is not a method.
    Stub = 5,
    /// A type of objects, as the end of a path that allocated some. Not in recordings: see
    /// [`Process::type_functions`].
    Type = 6,
}

numbered!(FunctionKind: Managed, Native, Runtime, Suspended, Kernel, Stub);

impl FunctionKind {
    /// The name in JSON; a suspension has the same name as other work of the runtime.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Native => "native",
            Self::Runtime | Self::Suspended => "runtime",
            Self::Kernel => "kernel",
            Self::Stub => "stub",
            Self::Type => "type",
        }
    }
}

/// [`Function::name`] of the runtime's compilation time; its kind is [`FunctionKind::Runtime`].
pub const JIT_NAME: &str = "[JIT]";
/// [`Function::name`] of the time that a thread spent on garbage collection; its kind is
/// [`FunctionKind::Runtime`].
pub const GC_NAME: &str = "[GC]";
/// [`Function::name`] of calls on paths for which there was no memory; its kind is
/// [`FunctionKind::Runtime`].
pub const TRUNCATED_NAME: &str = "(truncated)";

/// The part of a source method that a method was compiled from. The method is named after the
/// source method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum SourceKind {
    /// The source method itself.
    #[default]
    Plain = 0,
    /// `MoveNext` of an async method.
    Async = 1,
    /// `MoveNext` of an iterator.
    Iterator = 2,
    /// A lambda.
    Lambda = 3,
    /// A local function.
    LocalFunction = 4,
}

numbered!(SourceKind: Plain, Async, Iterator, Lambda, LocalFunction);

/// Properties of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FunctionFlags {
    /// Generated at run time without metadata.
    pub dynamic: bool,
    /// The module was unloaded.
    pub unloaded: bool,
    /// The compiler inlined the function into another method at least once; such calls are not
    /// counted.
    pub inlined: bool,
    /// The function calls itself in tail position. Optimised code may jump to its beginning
    /// instead, and such calls are not counted.
    pub tail_recursive: bool,
}

/// A `u32`: 1 dynamic, 2 unloaded, 4 inlined, 8 tail recursive.
impl Field for FunctionFlags {
    fn put(&self, payload: &mut PayloadWriter) {
        let bits = [self.dynamic, self.unloaded, self.inlined, self.tail_recursive];
        payload.u32(bits.iter().rev().fold(0, |flags, bit| flags << 1 | u32::from(*bit)));
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        let flags = payload.u32();
        let [dynamic, unloaded, inlined, tail_recursive] = [1, 2, 4, 8].map(|bit| flags & bit != 0);
        Some(Self { dynamic, unloaded, inlined, tail_recursive })
    }
}

record! {
    /// One function: a managed instantiation or overload, an unmanaged function, or a part of the
    /// runtime.
    #[derive(Debug, Clone, Default)]
    pub struct Function {
        /// `Namespace.Type::Method`, without type arguments, arity or parameters. State machines,
        /// lambdas and local functions have the name of their source method, work of the runtime
        /// has names like `[JIT]`.
        pub name: String,
        /// The signature in C# form, with type arguments and parameters.
        pub signature: String,
        /// The name in metadata, for instance `Shop.Checkout+<Pay>d__3::MoveNext`.
        pub raw_name: String,
        /// Index into [`Process::modules`].
        pub module: u32,
        /// Metadata token, 0 if there is none.
        pub token: u32,
        /// Kind of function.
        pub kind: FunctionKind,
        /// Part of the source method that the function was compiled from.
        pub source: SourceKind,
        /// Further properties.
        pub flags: FunctionFlags,
    }
}

impl Function {
    /// The function that represents a type of objects.
    fn of_type(of: &ObjectType) -> Self {
        let name = if of.name.is_empty() { "(unknown type)" } else { &of.name };
        let [name, signature, raw_name] = [name; 3].map(str::to_owned);
        Self { name, signature, raw_name, module: of.module, kind: FunctionKind::Type, ..Self::default() }
    }
}

record! {
    /// A loaded module, or another container of code.
    #[derive(Debug, Clone, Default)]
    pub struct Module {
        /// The assembly's simple name, or the library's file name for unmanaged code.
        pub name: String,
        /// File that the module was loaded from; empty if there is none.
        pub path: String,
        /// Assembly version, for instance `8.0.0.0`.
        pub version: String,
        /// The module belongs to the framework: it is in a shared framework folder or a trusted
        /// platform assembly.
        pub framework: bool,
        /// Kind of module.
        pub kind: ModuleKind,
        /// A kind of module.
        pub build_id: String,
    }
}

/// Kind of module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum ModuleKind {
    /// An assembly.
    #[default]
    Managed = 0,
    /// A native library, the main executable, or `[vdso]`.
    Native = 1,
    /// The kernel, `[kernel]`.
    Kernel = 2,
    /// Runtime-generated code that is not a method, `[stub]`.
    Stub = 3,
}

numbered!(ModuleKind: Managed, Native, Kernel, Stub);

/// Role of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum ThreadRole {
    /// A thread with none of the other roles.
    #[default]
    User = 0,
    /// The program's first thread.
    Main = 1,
    /// Runs finalizers.
    Finalizer = 2,
    /// Collects garbage.
    Gc = 3,
    /// Recompiles hot methods.
    Tiering = 4,
    /// Belongs to the thread pool.
    Pool = 5,
    /// Does other work for the runtime or the framework: signals, debuggers, diagnostics, socket
    /// and file events.
    Runtime = 6,
}

numbered!(ThreadRole: User, Main, Finalizer, Gc, Tiering, Pool, Runtime);

impl ThreadRole {
    /// All roles, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::User, Self::Main, Self::Finalizer, Self::Gc, Self::Tiering, Self::Pool, Self::Runtime];

    /// The role with this number, if this version knows it.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|role| *role as u32 == number)
    }

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Main => "main",
            Self::Finalizer => "finalizer",
            Self::Gc => "gc",
            Self::Tiering => "tiering",
            Self::Pool => "pool",
            Self::Runtime => "runtime",
        }
    }

    /// Whether threads with this role wait for work most of the time, and are not started by the
    /// program's code. Such a thread is idle if it waits and has no method of the program on its
    /// stack.
    #[must_use]
    pub const fn waits_for_work(self) -> bool {
        !matches!(self, Self::User | Self::Main)
    }
}

record! {
    /// One thread that ran managed code.
    #[derive(Debug, Clone, Default)]
    pub struct Thread {
        /// clrscope's serial number of the thread within the process, from 1; never reused.
        pub id: u32,
        /// The operating system's id; may be reused.
        pub os_id: u32,
        /// Name of the thread; empty if it has none.
        pub name: String,
        /// Role of the thread.
        pub role: ThreadRole,
        /// Time when the agent first saw the thread, in nanoseconds since the start of the run.
        pub created_ns: u64,
        /// Time when the thread ended, in nanoseconds since the start of the run; `None` if it was
        /// alive at the end of the recording.
        pub ended_ns: Option<u64>,
        /// CPU time in nanoseconds that the thread used during the recording; `None` if it was not
        /// measured.
        pub cpu_ns: Option<u64>,
        /// Call depth at which the thread's stack was almost exhausted; 0 if that never happened.
        pub out_of_stack_at: u32,
    }
    beside {
        /// The calling-context tree, decoded on demand.
        pub tree: TreeSource,
    }
}
