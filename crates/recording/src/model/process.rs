//! One profiled process: its dictionaries and its threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    AllocationSampling, CoveragePlan, Derived, EntryAssembly, EventBytes, Exit, HeapSnapshot, Identity, Loss,
    NativeSymbol, ObjectType, OwnMemory, Part, Remark, RemarkKind, Sampler, ShownWork, Stacks, TreeSource,
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
        /// From start of recording to its end or last sign of life.
        pub duration_ns: u64,
        /// CPU time of the whole process while recorded, if it could be read.
        pub cpu_ns: Option<u64>,
        /// End of the process, if it was seen.
        pub exit: Option<Exit>,
        /// Whether the program ended while we watched and said so.
        pub complete: bool,
        /// Meaning of the time stamps in events, if any were taken.
        pub ticks: TickClock,
        /// Processors that the process might use when it was first recorded; 0 where that is not
        /// known.
        pub processors: u32,
    }
    beside {
        /// Machine, container and labels; empty in recordings from before.
        pub identity: Identity,
        /// The assembly that the program begins in, where it was loaded while we looked.
        pub entry_assembly: EntryAssembly,
        /// Settings and measured constants of the `calls` instrument, if it ran.
        pub calls: Option<CallsInfo>,
        /// Indexed by [`Node::function`](super::Node); entry 0 stands for "no function".
        pub functions: Vec<Function>,
        /// Indexed by [`Function::module`]; entry 0 stands for "no module".
        pub modules: Vec<Module>,
        /// Types of objects, by the numbers that instruments about memory give; entry 0 stands for
        /// a type that is not known.
        pub types: Vec<ObjectType>,
        /// In the order in which they were first seen.
        pub threads: Vec<Thread>,
        /// Losses, by reason.
        pub losses: Vec<Loss>,
        /// Remarks for the head of reports.
        pub remarks: Vec<Remark>,
        /// Times that are shown, each from and to a nanosecond since the start of the run, in order
        /// and apart from each other, where the recording was reduced to some of its parts.
        pub shown: Option<Vec<(u64, u64)>>,
        /// The work that is shown, where the recording was reduced to what was done for some
        /// requests.
        pub shown_work: Option<Arc<ShownWork>>,
        /// The parts of the recording, in order; none where it was never switched and nothing was
        /// marked.
        pub parts: Vec<Part>,
        /// The patterns of the request that have matched something: `include=[App]*`, for instance.
        pub matched_patterns: Vec<String>,
        /// Functions whose names are like patterns that had matched nothing when they were met.
        pub near_names: Vec<NearName>,
        /// Sampling instruments that ran, each with how it took its samples.
        pub samplers: Vec<Sampler>,
        /// Sampling of allocations by `alloc`, if it ran.
        pub allocation_sampling: Option<AllocationSampling>,
        /// Memory of instruments' own, by instrument.
        pub own_memory: Vec<OwnMemory>,
        /// Snapshots of the heap, by number.
        pub snapshots: Vec<HeapSnapshot>,
        /// Names of places in native code, by module and offset in ascending order.
        pub native_symbols: Vec<NativeSymbol>,
        /// Plans of the assemblies whose coverage was recorded, as far as their files were there.
        pub coverage_plans: Vec<CoveragePlan>,
        /// The call stacks that records of instruments refer to by number.
        pub stacks: Arc<Stacks>,
        /// Raw event chunks of other instruments, by instrument name.
        pub events: Vec<EventArena>,
        /// Values that readers have derived from all that.
        pub derived: Derived,
    }
}

record! {
    /// A function whose name is like a pattern of the request.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct NearName {
        /// The pattern: `include=[App]*`, for instance.
        pub pattern: String,
        /// The function, `Namespace.Type::Method`.
        pub name: String,
    }
}

record! {
    /// The time stamp counter of a process.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct TickClock {
        /// Reading when recording started.
        pub start: u64,
        /// Nanoseconds per tick; 0 where that is not known.
        pub ns_per_tick: f64,
    }
}

impl TickClock {
    /// Nanoseconds from the start of recording to the moment of this time stamp.
    #[must_use]
    pub fn ns_since_start(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start) as f64 * self.ns_per_tick) as u64
    }
}

impl Process {
    /// Whether a moment, in nanoseconds since the start of the run, is shown.
    #[must_use]
    pub fn shows(&self, time_ns: u64) -> bool {
        self.shown.as_ref().is_none_or(|times| {
            let begun = times.partition_point(|(since, _)| *since <= time_ns);
            begun.checked_sub(1).is_some_and(|last| time_ns <= times[last].1)
        })
    }

    /// Whether what a thread did at a moment, in nanoseconds since the start of the run, is shown.
    /// Where only some work is shown, nothing is of a thread that is not known.
    #[must_use]
    pub fn shows_work(&self, thread: Option<&Thread>, time_ns: u64) -> bool {
        let Some(work) = &self.shown_work else { return true };
        thread.is_some_and(|thread| work.has(thread.id, time_ns))
    }

    /// Whether what was done for a request, by its id, or for none, is shown.
    #[must_use]
    pub fn shows_request(&self, request: Option<u64>) -> bool {
        let Some(work) = &self.shown_work else { return true };
        request.is_some_and(|request| work.requests.contains(&request))
    }

    /// Returns the name of the assembly that a plan of this process is of, loaded or not.
    #[must_use]
    pub fn covered_assembly<'a>(&'a self, plan: &'a CoveragePlan) -> &'a str {
        if plan.was_loaded() { self.module_name(plan.module) } else { &plan.assembly }
    }

    /// Returns the name of the module with this index; empty where there is none.
    #[must_use]
    pub fn module_name(&self, module: u32) -> &str {
        self.modules.get(module as usize).map_or("", |module| module.name.as_str())
    }

    /// Reason why the agent in this process disabled itself, if it did: then nothing else is known
    /// of the process.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        let refusal = self.remarks.iter().find(|remark| remark.kind == RemarkKind::Refusal);
        refusal.map(|remark| remark.text.as_str())
    }

    /// Memory of each instrument that says what it took for itself.
    pub fn memory_of_instruments(&self) -> impl Iterator<Item = (&str, u64)> {
        let said = self.own_memory.iter().map(|own| (own.instrument.as_str(), own.bytes));
        // Earlier versions noted the memory of one instrument alone, there.
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
    /// The chunks by thread, each thread's in the order in which it filled them.
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
    /// Index into [`Process::threads`], or `u32::MAX` when no thread is meant.
    pub thread: u32,
    /// Grows by one with each chunk of this instrument in this process.
    pub sequence: u64,
    /// The instrument's bytes.
    pub bytes: EventBytes,
}

/// Clock by which `calls` measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// A helper thread charges time to where each thread stands.
    #[default]
    Sampled,
    /// Each event reads the time stamp counter.
    Tsc,
}

numbered!(Clock: Sampled, Tsc);

record! {
    /// Settings of the `calls` instrument in one process, with what it measured about itself.
    #[derive(Debug, Clone, Default)]
    pub struct CallsInfo {
        /// The clock.
        pub clock: Clock,
        /// Inlining was switched off, so every call is seen.
        pub noinline: bool,
        /// Unmanaged calls are in the tree.
        pub native: bool,
        /// Runtime helpers of CoreLib are in the tree.
        pub helpers: bool,
        /// Tiny leaf methods are in the tree.
        pub trivial: bool,
        /// CPU time was measured: the `cpu_ns` columns mean something.
        pub cpu_measured: bool,
        /// Nanoseconds between two samples of the helper thread.
        pub interval_ns: u64,
        /// Cost of one call in hooks, where nothing better is known.
        pub hook_cost: HookCost,
        /// Costs measured in the program itself, by caller in ascending order.
        pub pair_costs: Vec<PairCost>,
        /// Weight of a sample; zeros where that is not known.
        pub sample_steps: SampleSteps,
    }
}

record! {
    /// Mean time that a sample charged, each sample weighed by what it charged: so far a sampled
    /// time may easily be off. On a busy machine samples come late, and then a step is longer than
    /// the interval.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct SampleSteps {
        /// Of wall time, nanoseconds; of threads that worked.
        pub wall_ns: u64,
        /// Of CPU time, nanoseconds.
        pub cpu_ns: u64,
    }
}

record! {
    /// Measured cost of a hook pair, in nanoseconds, with the bounds within which it is believed to
    /// lie.
    ///
    /// The enter hook's time falls on the caller, the leave hook's on the callee, because a
    /// thread's position moves at the very end of either.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct HookCost {
        /// Most likely cost of enter.
        pub enter_ns: f64,
        /// Most likely cost of leave.
        pub leave_ns: f64,
        /// The whole pair costs at least this.
        pub pair_low_ns: f64,
        /// The whole pair costs at most this.
        pub pair_high_ns: f64,
    }
}

record! {
    /// Measured cost of a hook pair where one function calls another.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct PairCost {
        /// Index of the caller in [`Process::functions`].
        pub caller: u32,
        /// Index of the function that it called most meanwhile.
        pub callee: u32,
        /// The cost.
        pub cost: HookCost,
    }
}

/// Kind of function that a row or node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u32)]
pub enum FunctionKind {
    /// IL code.
    #[default]
    Managed = 0,
    /// A function of an unmanaged library.
    Native = 1,
    /// Time of the runtime itself that is not a suspension: `[JIT]`, `(truncated)`.
    Runtime = 2,
    /// A thread stood still because the runtime suspended it: `[suspended: GC]`.
    Suspended = 3,
    /// A function of the kernel.
    Kernel = 4,
    /// Code that the runtime made and that is no method.
    Stub = 5,
}

numbered!(FunctionKind: Managed, Native, Runtime, Suspended, Kernel, Stub);

impl FunctionKind {
    /// The name in JSON: suspensions are the runtime's own time too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Native => "native",
            Self::Runtime | Self::Suspended => "runtime",
            Self::Kernel => "kernel",
            Self::Stub => "stub",
        }
    }
}

/// [`Function::name`] of the time the runtime spent compiling; its kind is
/// [`FunctionKind::Runtime`].
pub const JIT_NAME: &str = "[JIT]";
/// [`Function::name`] of the time a thread collected garbage; its kind is
/// [`FunctionKind::Runtime`].
pub const GC_NAME: &str = "[GC]";
/// [`Function::name`] of calls on paths that found no memory; its kind is
/// [`FunctionKind::Runtime`].
pub const TRUNCATED_NAME: &str = "(truncated)";

/// Part of the source method, which names it, that the compiler made a method from.
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
    /// Made at run time without metadata.
    pub dynamic: bool,
    /// Whether the module was unloaded again.
    pub unloaded: bool,
    /// Whether the compiler put it into another method somewhere, where calls of it are not
    /// counted.
    pub inlined: bool,
    /// Whether it calls itself as the last thing it does. Optimised code may go back to its
    /// beginning instead, and such calls are not counted.
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
        /// `Namespace.Type::Method`, without type arguments, arity or parameters; the source method
        /// of state machines, lambdas and local functions; `[JIT]` and the like for the runtime.
        pub name: String,
        /// As C# would write it, with type arguments and parameters.
        pub signature: String,
        /// The name in metadata, for instance `Shop.Checkout+<Pay>d__3::MoveNext`.
        pub raw_name: String,
        /// Index into [`Process::modules`].
        pub module: u32,
        /// Metadata token, 0 where there is none.
        pub token: u32,
        /// Kind of function.
        pub kind: FunctionKind,
        /// Part of the source method that the compiler made it from.
        pub source: SourceKind,
        /// More about it.
        pub flags: FunctionFlags,
    }
}

record! {
    /// One loaded module, or another place that code is in.
    #[derive(Debug, Clone, Default)]
    pub struct Module {
        /// The assembly's simple name, or the library's file name for unmanaged code.
        pub name: String,
        /// File that it was loaded from, if from a file.
        pub path: String,
        /// Assembly version, for instance `8.0.0.0`.
        pub version: String,
        /// Belongs to the framework (shared framework folder or trusted platform assembly).
        pub framework: bool,
        /// Kind of module.
        pub kind: ModuleKind,
        /// Number that linkers give a native library, in hexadecimal digits; empty where that is
        /// not known. A file with another number is another library.
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
    /// Code that the runtime made and that is no method, `[stub]`.
    Stub = 3,
}

numbered!(ModuleKind: Managed, Native, Kernel, Stub);

/// Role of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum ThreadRole {
    /// Any other thread.
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
    /// Serves the runtime or the framework otherwise: signals, debuggers, diagnostics, events of
    /// sockets and files.
    Runtime = 6,
}

numbered!(ThreadRole: User, Main, Finalizer, Gc, Tiering, Pool, Runtime);

impl ThreadRole {
    /// All there are, in the order of their numbers.
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

    /// Whether such threads wait for work most of the time, and no code of the program starts them:
    /// one that waits below none of the program's methods is idle.
    #[must_use]
    pub const fn waits_for_work(self) -> bool {
        !matches!(self, Self::User | Self::Main)
    }
}

record! {
    /// One thread that ran managed code.
    #[derive(Debug, Clone, Default)]
    pub struct Thread {
        /// Our own serial number within the process, from 1; never reused.
        pub id: u32,
        /// The operating system's id; may be reused.
        pub os_id: u32,
        /// Name of the thread, or empty.
        pub name: String,
        /// Role of the thread.
        pub role: ThreadRole,
        /// First seen, nanoseconds since the start of the run.
        pub created_ns: u64,
        /// Ended, or `None` while it lived at the end of the recording.
        pub ended_ns: Option<u64>,
        /// CPU time it used while recorded, if measured.
        pub cpu_ns: Option<u64>,
        /// Calls deep that it was when hardly any of its stack was left; 0 where that was never so.
        pub out_of_stack_at: u32,
    }
    beside {
        /// The calling-context tree, decoded on demand.
        pub tree: TreeSource,
    }
}
