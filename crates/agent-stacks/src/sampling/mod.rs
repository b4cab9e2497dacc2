//! Sampling: an engine interrupts threads, and a thread of the profiler turns the samples into
//! stacks and records.
//!
//! | module | what it holds |
//! |---|---|
//! | `raw` | a sample as an engine takes it |
//! | `os` | interruption of threads by `os::signal` and `os::timers`, or by `os::perf`; the system's information on single threads |
//! | `object_copies` | copies, made by signal handlers, of the objects that lead to an async method's awaiters |
//! | `ring` | the ring into which signal handlers write; `targets` the threads that have a timer |
//! | `engine` | the choice between the engines, and their common interface |
//! | `unwind` | from registers and words to `walked` frames; `hijack` return addresses that the runtime has replaced; `type_loads` functions of the runtime that load types |
//! | `frames` | from samples to numbers of stacks, by the changes since the `last_stacks`; `output` the chunks that receive samples |
//! | `drain` | the thread that takes samples from the engine and records them; `known_threads` the threads of samples |
//! | `kernel_time` | time in the kernel that may not be sampled |
//! | `switches` | whether threads are switched too often for perf events |
//! | `runtime_work` | the runtime's work on each thread, by its callbacks |
//! | `poll` | states of threads that don't run |
//!
//! One [`Sampler`] serves all sampling instruments of the process. Only the draining thread asks
//! the runtime, reads files and allocates memory.

mod arch;
mod drain;
mod engine;
mod frames;
mod hijack;
mod kernel_time;
mod known_threads;
mod last_stacks;
mod object_copies;
mod os;
mod output;
mod poll;
mod raw;
mod ring;
mod runtime_work;
#[cfg(feature = "stops-on-demand")]
mod stops;
mod switches;
mod targets;
mod type_loads;
mod unwind;
mod walked;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use clr_profiler::callback_args::SuspendReason;
use clr_profiler::internals::CurrentStack;
use clr_profiler::{Callbacks, ClassId, Events, ModuleId, OwnThread, ProfilerInfo, Result, ThreadId};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::helper::{HelperHandle, Task};
use clrscope_agent_base::os::descriptors::CopiedDescriptor;
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_agent_base::threads;
use clrscope_recording::writer::{EventStore, ProcessWriter};

use drain::Drain;
use engine::Engine;
use hijack::RuntimeThreads;
use os::signal;
use runtime_work::{ObjectMoves, RuntimeWork, Work};
use targets::Targets;
use type_loads::TypeLoads;

use crate::code::{CodeFeed, CodeMap};
use crate::stacks::table::{RecordedStacks, SharedStackTable};

pub use engine::EngineRequest;

/// What the instrument `cpu` requests.
pub struct CpuRequest {
    /// The store that receives the samples.
    pub store: EventStore,
    /// CPU time between two samples of a thread, in nanoseconds.
    pub interval_ns: u64,
    /// The requested engine.
    pub engine: EngineRequest,
    /// Whether frames of the kernel are recorded.
    pub kernel: bool,
}

/// What the instrument `wall` requests.
pub struct WallRequest {
    /// The store that receives the samples.
    pub store: EventStore,
    /// Time on the clock between two samples of a thread, in nanoseconds.
    pub interval_ns: u64,
}

/// What the sampler needs from an instrument's start-up context.
pub struct SamplerContext<'a> {
    /// Access to the runtime.
    pub info: &'a ProfilerInfo,
    /// Writes the recording of this process.
    pub writer: &'static ProcessWriter,
    /// The agent's own thread.
    pub helper: &'a HelperHandle,
    /// The stack table of the recording.
    pub stacks: &'a SharedStackTable,
    /// Monotonic time in nanoseconds at which the recording began.
    pub start_ns: u64,
    /// Creates a map of code.
    pub code: &'a dyn Fn() -> CodeMap,
}

/// The sampler; empty until an instrument asks for it.
#[derive(Default)]
pub struct SharedSampler(OnceLock<&'static Sampler>);

impl SharedSampler {
    /// The sampler, if an instrument asked for it.
    pub fn in_use(&self) -> Option<&'static Sampler> {
        self.0.get().copied()
    }

    /// The sampler, created when the first instrument asks.
    pub fn open(&self, context: SamplerContext<'_>) -> std::result::Result<&'static Sampler, String> {
        if let Some(sampler) = self.in_use() {
            return Ok(sampler);
        }
        let stacks = context.stacks.open(context.writer, context.helper)?;
        let made = Sampler {
            info: context.info.clone(),
            writer: context.writer,
            stacks,
            start_ns: context.start_ns,
            map: Mutex::new(Some((context.code)())),
            cpu: OnceLock::new(),
            wall: OnceLock::new(),
            targets: OnceLock::new(),
            work: RuntimeWork::new(),
            moves: ObjectMoves::default(),
            threads: RuntimeThreads::default(),
            type_loads: TypeLoads::default(),
            state: AtomicU8::new(State::On as u8),
            left_open: Mutex::default(),
            begun: Once::new(),
        };
        Ok(self.0.get_or_init(|| keep(made)))
    }
}

/// Whether samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// Samples are being taken.
    On,
    /// Sampling is about to stop. The draining thread stops it.
    Stopping,
    /// No samples are taken, and all earlier samples are recorded.
    Off,
    /// No samples are taken, because the draining thread has ended.
    Ended,
}

/// Sampler of threads: takes samples and records them.
pub struct Sampler {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    stacks: &'static RecordedStacks,
    start_ns: u64,
    /// The map of code, until the draining thread takes it.
    map: Mutex<Option<CodeMap>>,
    cpu: OnceLock<CpuRequest>,
    wall: OnceLock<WallRequest>,
    /// The threads with timers, if the engine has timers.
    targets: OnceLock<Mutex<Targets>>,
    work: RuntimeWork,
    moves: ObjectMoves,
    threads: RuntimeThreads,
    type_loads: TypeLoads,
    state: AtomicU8,
    /// Descriptors of the draining thread that are also in the program's table, and must be closed
    /// there.
    left_open: Mutex<Vec<CopiedDescriptor>>,
    begun: Once,
}

impl Sampler {
    /// Requests samples of CPU time.
    pub fn want_cpu(&self, wanted: CpuRequest) {
        // Only one instrument requests them, once.
        let _ = self.cpu.set(wanted);
    }

    /// Requests samples by the clock.
    pub fn want_wall(&self, wanted: WallRequest) {
        let _ = self.wall.set(wanted);
    }

    /// The profiler events that the sampler needs. Call it after [`begin`](Self::begin).
    pub fn events(&self) -> Events {
        let code = CodeFeed::EVENTS | Events::THREADS | Events::SUSPENSIONS | Events::CLASS_LOADS;
        #[cfg(feature = "stops-on-demand")]
        let code = code | Events::ENABLE_STACK_SNAPSHOT;
        code
    }

    /// Starts sampling, once. To be called on the thread that calls `Initialize` or
    /// `InitializeForAttach`.
    pub fn begin(&'static self, at_launch: bool) {
        self.begun.call_once(|| self.start(at_launch));
    }

    fn start(&'static self, at_launch: bool) {
        if at_launch {
            // The first thread of the process is the first in the table.
            threads::current();
        }
        let Some(map) = self.map.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let (engine, choice) = Engine::choose(self, at_launch);
        log(Level::Info, || format!("sampling by {choice:?}"));
        if let Some(targets) = self.prepare(&engine).filter(|_| at_launch) {
            lock(targets).meet_this(CurrentStack::bounds());
        }
        engine.enable(true);
        let mut drain = Drain::new(self, engine, choice, map);
        let started = OwnThread::start(&self.info, "clrscope-drain", move |thread| drain.run(thread));
        if let Err(error) = started {
            self.set_state(State::Ended);
            self.writer.note(self.start_ns, &format!("nothing is sampled: {error}"));
        }
    }

    /// Registers the threads that the runtime already has; callbacks report later ones.
    fn meet_runtime_threads(&self) {
        for thread in self.info.threads().unwrap_or_default() {
            if let Ok(os_id) = self.info.os_thread(thread) {
                self.threads.assigned(thread, os_id);
            }
        }
    }

    /// The threads with timers, if the engine has timers. New threads are registered from now on.
    fn prepare(&self, engine: &Engine) -> Option<&Mutex<Targets>> {
        let Engine::Timers(shared) = engine else { return None };
        Some(self.targets.get_or_init(|| Mutex::new(Targets::new(shared))))
    }

    fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::On,
            1 => State::Stopping,
            2 => State::Off,
            _ => State::Ended,
        }
    }

    fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Moves from one state to another, if the current state is the first.
    fn change_state(&self, from: State, to: State) {
        // If it is not, other code has already moved on.
        let _ = self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The helper thread's task for this sampler.
    pub fn task(&'static self) -> Box<dyn Task> {
        Box::new(SamplerTask(self))
    }

    /// The helper thread's task for the table of stacks.
    pub fn stacks_task(&self) -> Box<dyn Task> {
        self.stacks.task()
    }

    /// In a forked child: releases everything that is mapped. Async-signal-safe.
    pub fn detach_in_child(&self) {
        signal::withdraw();
        for store in self.stores() {
            store.segment().detach_in_child();
        }
        self.stacks.detach_in_child();
    }

    fn stores(&self) -> impl Iterator<Item = &EventStore> {
        let cpu = self.cpu.get().map(|wanted| &wanted.store);
        cpu.into_iter().chain(self.wall.get().map(|wanted| &wanted.store))
    }
}

/// Provides memory ahead of need, and stops and starts the draining thread.
struct SamplerTask(&'static Sampler);

impl Task for SamplerTask {
    fn tick(&mut self, _now_ns: u64) {
        for store in self.0.stores() {
            // A refusal shows when a sample finds no room, and is counted there.
            let _ = store.keep_ahead();
        }
        lock(&self.0.left_open).drain(..).for_each(CopiedDescriptor::close);
    }

    fn write_out(&mut self) {
        for store in self.0.stores() {
            // A failed write is tried again at the next round.
            let _ = store.segment().write_out();
        }
    }

    fn stop(&mut self) -> bool {
        self.0.change_state(State::On, State::Stopping);
        matches!(self.0.state(), State::Off | State::Ended)
    }

    fn start_again(&mut self, _now_ns: u64) {
        self.0.change_state(State::Stopping, State::On);
        self.0.change_state(State::Off, State::On);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Callbacks for Sampler {
    fn module_load_started(&self, _module: ModuleId) {
        self.work.begin(Work::ModuleLoad);
    }

    fn module_load_finished(&self, _module: ModuleId, _status: Result<()>) {
        self.work.end(|work| work == Work::ModuleLoad);
    }

    fn class_load_started(&self, _class: ClassId) {
        self.type_loads.told();
    }

    fn runtime_suspend_started(&self, reason: SuspendReason) {
        self.threads.stop_begins();
        let is_collection = matches!(reason, SuspendReason::Gc | SuspendReason::GcPreparation);
        self.work.begin(if is_collection { Work::Collection } else { Work::Suspension });
    }

    fn runtime_suspend_finished(&self) {
        self.moves.change();
        self.work.stopped();
    }

    fn runtime_suspend_aborted(&self) {
        self.work.end(|work| work != Work::ModuleLoad);
    }

    fn runtime_resume_started(&self) {
        self.moves.change();
        self.work.end(|work| work != Work::ModuleLoad);
    }

    fn thread_destroyed(&self, thread: ThreadId) {
        self.threads.destroyed(thread);
    }

    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {
        self.threads.assigned(thread, os_thread);
        let is_here = clrscope_agent_base::os::threads::thread_id() == os_thread;
        if let Some(targets) = self.targets.get().filter(|_| is_here && self.state() == State::On) {
            // The runtime also knows the profiler's own threads.
            if !clrscope_agent_base::os::threads::own_name_starts_with(b"clrscope") {
                lock(targets).meet_this(CurrentStack::bounds());
            }
        }
    }
}
