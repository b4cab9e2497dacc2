//! `alloc`: which types are allocated, and on which call paths.
//!
//! | module | what it holds |
//! |---|---|
//! | [`sums`] | objects and bytes by type and path, per thread |
//! | [`paths`] | the stacks that allocate |
//! | [`events`] | sampled objects, which the runtime's own events report |
//! | [`limits`] | memory limits of these tables |
//! | [`fast_path`] | objects that the runtime allocates without a callback |
//! | [`follow`] | objects that are followed until they are collected |
//!
//! Allocations come from one of two engines. With `exact` the runtime calls back for each object,
//! and therefore allocates by its slow path. Otherwise the runtime's own events report sampled
//! objects: on .NET 10 randomly chosen objects, on earlier versions the object that completes
//! another 100 KiB. Both engines see each large object, and if the agent was loaded at the start of
//! the runtime also each object of the pinned heap. During these events nothing refers to the
//! object yet, so the runtime is not queried there. Classes are kept as numbers and stacks as
//! addresses, and the agent's own thread looks them up.

mod events;
mod fast_path;
mod follow;
mod limits;
mod options;
mod own_paths;
mod paths;
pub(crate) mod sums;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clr_profiler::callback_args::{EventPipeEvent, GcReason, Generations};
use clr_profiler::internals::NativeFrame;
use clr_profiler::{
    AssemblyId, Callbacks, ClassId, Events, FunctionId, ModuleId, ObjectId, OwnThread, ProfilerInfo, Result,
};
use clrscope_agent_base::event_pipe::{self, EventPipe};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::own_memory::OwnMemory;
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_agent_base::threads;
use clrscope_agent_stacks::code::CodeFeed;
use clrscope_agent_values::object_size::SizeRule;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Allocation, AllocationEngine, AllocationSampling, ObjectHeap};
use clrscope_recording::writer::{AllocationCell, ProcessWriter, ThreadRecord, monotonic_ns};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::object_types::ObjectTypes;

use events::SampledObject;
use fast_path::FastPathPatch;
use follow::Follow;
use limits::Limits;
pub(crate) use options::AllocOptions;
use own_paths::OwnPaths;
use paths::Paths;
use sums::{Key, Sums};

/// Pause between two rounds of the thread that does the lookups that callbacks can't do.
const PAUSE: Duration = Duration::from_millis(5);
/// The first version of .NET with randomly sampled events.
const RANDOMIZED_SINCE: u16 = 10;

/// Site of an allocation: the thread, the type and path, and where the frames of the runtime begin.
#[derive(Clone, Copy)]
struct Site {
    thread: ThreadRecord,
    key: Key,
    frame: NativeFrame,
}

/// The instrument `alloc` while it runs.
pub(crate) struct Alloc(&'static Shared);

/// State of the instrument, which its own thread uses too.
struct Shared {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    types: Arc<ObjectTypes>,
    functions: Arc<Functions>,
    fast_path: FastPathPatch,
    sums: Sums,
    paths: Paths,
    engine: AllocationEngine,
    follow: Option<Follow>,
    /// The session of the runtime's events, where objects are sampled.
    event_pipe: Option<&'static EventPipe>,
    /// Each object of the pinned heap is seen.
    sees_pinned: AtomicBool,
    large_from: u64,
    /// Memory of the instrument's own tables.
    own: Arc<OwnMemory>,
    /// The thread that does the lookups has ended.
    is_over: AtomicBool,
}

impl Instrument for Alloc {
    type Options = AllocOptions;

    fn start(options: &AllocOptions, context: &Context) -> std::result::Result<Self, String> {
        let engine = match context.info.runtime_version() {
            _ if options.exact => AllocationEngine::Exact,
            Ok(version) if version.major < RANDOMIZED_SINCE => AllocationEngine::Ticks,
            _ => AllocationEngine::Randomized,
        };
        let limits = Limits::from_max_bytes(options.max_bytes);
        let event_pipe = (!options.exact).then(|| context.event_pipe());
        let shared = keep(Shared {
            info: context.info.clone(),
            writer: context.writer,
            types: Arc::clone(&context.object_types),
            functions: Arc::clone(&context.functions),
            fast_path: FastPathPatch::default(),
            sums: Sums::create(context, options.max_bytes)?,
            paths: Paths::new(context, (options.frames, limits), options.exact)?,
            engine,
            follow: options.live.then(|| Follow::new(&context.info, limits.followed)),
            event_pipe,
            sees_pinned: AtomicBool::new(true),
            own: Arc::new(OwnMemory::new(context.writer, instrument::ALLOC)),
            is_over: AtomicBool::new(false),
            large_from: context.info.large_object_threshold().map_or(events::LARGE_FROM, u64::from),
        });
        shared.sums.use_chunks_again();
        if let Some(event_pipe) = event_pipe {
            let (keywords, level) = shared.wanted_events();
            event_pipe.want(event_pipe::RUNTIME, keywords, level);
        }
        Ok(Self(shared))
    }

    fn events(&self) -> Events {
        let events = CodeFeed::EVENTS | Events::ENABLE_STACK_SNAPSHOT;
        let events = match self.0.event_pipe {
            Some(event_pipe) => {
                events | event_pipe.events() | Events::LARGE_OBJECT_ALLOCATED | Events::PINNED_OBJECT_ALLOCATED
            }
            None => events | Events::OBJECT_ALLOCATED | Events::ENABLE_OBJECT_ALLOCATED | Events::CACHE_SEARCHES,
        };
        events | Events::BASIC_GC
    }

    fn begins(&self, beginning: Beginning) {
        let shared = self.0;
        // The runtime reports each object of the pinned heap only to the main profiler that was
        // loaded at its start.
        let is_told = beginning == Beginning::Launch && !shared.info.is_notification_only();
        shared.sees_pinned.store(is_told || shared.event_pipe.is_none(), Ordering::Relaxed);
        shared.tell();
        if let Some(event_pipe) = shared.event_pipe {
            event_pipe.begin();
        }
        let Some(mut map) = shared.paths.take_map() else { return };
        let started = OwnThread::start(&shared.info, "clrscope-alloc", move |thread| {
            loop {
                let goes_on = thread.sleep(PAUSE);
                shared.types.settle();
                shared.paths.look_up(&mut map);
                if let Some(follow) = &shared.follow {
                    follow.look(&shared.sums);
                    follow.let_go_if_over();
                }
                shared.own.takes(shared.own_bytes());
                if !goes_on {
                    break;
                }
            }
            shared.is_over.store(true, Ordering::Release);
        });
        if let Err(error) = started {
            shared.writer.note(monotonic_ns(), &format!("alloc: no stacks and no names of types: {error}"));
        }
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![self.0.sums.task(), self.0.paths.recorded().task(), OwnMemory::task(&self.0.own), Box::new(Settle(self.0))]
    }

    fn detach_in_child(&self) {
        self.0.sums.store().segment().detach_in_child();
        self.0.paths.recorded().detach_in_child();
    }
}

/// Lets recording stop only when all pending lookups are done and no object is followed any more.
struct Settle(&'static Shared);

impl Task for Settle {
    fn stop(&mut self) -> bool {
        let Shared { paths, follow, is_over, .. } = self.0;
        follow.iter().for_each(|follow| follow.set_over(true));
        let is_settled = || paths.is_settled() && follow.as_ref().is_none_or(Follow::is_empty);
        is_over.load(Ordering::Acquire) || is_settled()
    }

    fn start_again(&mut self, _now_ns: u64) {
        self.0.follow.iter().for_each(|follow| follow.set_over(false));
    }
}

impl Shared {
    /// Keyword and level of the events that report sampled objects.
    fn wanted_events(&self) -> (u64, u32) {
        match self.engine {
            AllocationEngine::Ticks => (events::TICK_KEYWORD, event_pipe::level::VERBOSE),
            _ => (events::SAMPLED_KEYWORD, event_pipe::level::INFORMATIONAL),
        }
    }

    /// Bytes of the instrument's own tables.
    fn own_bytes(&self) -> u64 {
        limits::lists_bytes() + self.paths.own_bytes() + self.follow.as_ref().map_or(0, Follow::own_bytes)
    }

    /// Notes in the recording how allocations are observed.
    fn tell(&self) {
        self.writer.allocation_sampling(&AllocationSampling {
            engine: self.engine,
            mean_bytes: if self.engine == AllocationEngine::Exact { 0 } else { events::MEAN_BYTES },
            large_exact: true,
            pinned_exact: self.sees_pinned.load(Ordering::Relaxed),
            follows: self.follow.is_some(),
            why_engine: match self.engine {
                AllocationEngine::Ticks => {
                    "random samples need .NET 10; ticks miss what loops allocate in step with them, \
                                            and alloc:exact misses nothing"
                        .to_owned()
                }
                AllocationEngine::Randomized => {
                    "while it takes these, the runtime sends no GCAllocationTick events, not even to the program's own \
                     listeners; alloc:exact leaves them alone"
                        .to_owned()
                }
                AllocationEngine::Exact | AllocationEngine::Unknown => String::new(),
            },
            ..AllocationSampling::default()
        });
    }

    /// An object that the runtime has called back for.
    #[inline]
    fn allocated(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
        let Some(thread) = threads::current() else { return };
        let key_of = |own: &mut OwnPaths| {
            let path = self.paths.here(thread, frame, own);
            let heap = if self.event_pipe.is_some() { self.other_heap(object) } else { ObjectHeap::Small };
            Key::new(class, path, heap)
        };
        match self.sums.add(thread, key_of, |cell, rule| cell.add(rule.size(&self.info, object))) {
            Some((_, Some(()))) if self.follow.is_none() => {}
            Some((key, added)) => self.more_of(object, class, Site { thread, key, frame }, added.is_some()),
            None => self.sums.lose(1),
        }
    }

    /// Begins a new record for an object that is not `added` to one yet, and follows the object if
    /// wanted.
    #[cold]
    #[inline(never)]
    fn more_of(&self, object: ObjectId<'_>, class: ClassId, site: Site, added: bool) {
        // Literals and similar objects, which are never collected: the runtime makes them once and
        // does not count them.
        if !added && self.info.is_frozen(object).unwrap_or(false) {
            return;
        }
        let (rule, bytes) = SizeRule::for_object(&self.info, object, class);
        if !added && let Some(cell) = self.begin(site, class, rule) {
            cell.add(bytes);
        }
        if let Some(follow) = &self.follow {
            self.follow(follow, site, (class, bytes, bytes, object.address()));
        }
    }

    /// The heap of an object, large or pinned, where only objects of these two heaps are called
    /// back for.
    #[cold]
    fn other_heap(&self, object: ObjectId<'_>) -> ObjectHeap {
        let bytes = self.info.object_size(object).unwrap_or(0) as u64;
        if bytes >= self.large_from { ObjectHeap::Large } else { ObjectHeap::Pinned }
    }

    /// Records an object that one of the runtime's events reports.
    fn sampled(&self, object: &SampledObject, frame: NativeFrame) {
        let is_seen = match object.heap {
            ObjectHeap::Large => true,
            ObjectHeap::Pinned => self.sees_pinned.load(Ordering::Relaxed),
            _ => false,
        };
        let Some(thread) = threads::current().filter(|_| !is_seen) else { return };
        let key_of = |own: &mut OwnPaths| {
            let path = self.paths.here(thread, frame, own);
            Key::new(object.class, path, object.heap)
        };
        let added = self.sums.add(thread, key_of, |cell, _| cell.add_sampled(object.bytes, object.weight));
        let Some((key, added)) = added else { return self.sums.lose(1) };
        let site = Site { thread, key, frame };
        if added.is_none()
            && let Some(cell) = self.begin(site, object.class, SizeRule::default())
        {
            cell.add_sampled(object.bytes, object.weight);
        }
        if let Some(follow) = &self.follow {
            self.follow(follow, site, (object.class, object.bytes, object.weight, object.address));
        }
    }

    /// Begins the record of a type on a path, whose stack and name may follow later.
    #[cold]
    fn begin(&self, site: Site, class: ClassId, rule: SizeRule) -> Option<AllocationCell> {
        let Site { thread, key, frame } = site;
        let stack = self.paths.number(thread, key.path);
        let record = Allocation {
            object_type: self.types.reserved(class),
            stack: stack.unwrap_or(0),
            heap: key.heap(),
            ..Allocation::default()
        };
        let cell = self.sums.begin(thread, key, rule, &record)?;
        if stack.is_none() {
            self.look_up_later(key.path, frame, cell);
        }
        Some(cell)
    }

    /// Follows an object, given its class, its bytes, the bytes that it represents, and its
    /// address.
    fn follow(&self, follow: &Follow, site: Site, object: (ClassId, u64, u64, usize)) {
        let Site { thread, key, frame } = site;
        let (class, bytes, weight, address) = object;
        let stack = self.paths.number(thread, key.path);
        let seen = Allocation {
            objects: 1,
            bytes,
            weight,
            objects_weight: (weight as f64 / bytes.max(1) as f64 * 1024.0) as u64,
            object_type: self.types.reserved(class),
            stack: stack.unwrap_or(0),
            heap: key.heap(),
            ..Allocation::default()
        };
        let cell = follow.begin(&self.sums, thread, &seen, address);
        if let Some(cell) = cell.filter(|_| stack.is_none()) {
            self.look_up_later(key.path, frame, cell);
        }
    }

    /// Queues the calling thread's stack for lookup; the record gets it later.
    fn look_up_later(&self, path: u64, frame: NativeFrame, cell: AllocationCell) {
        if !self.paths.look_up_later(path, frame, cell) {
            // Frames without information would be taken for frames without methods, so start again.
            self.unloaded();
        }
    }

    /// Classes or code have been unloaded, and their identifiers and addresses may be used again.
    fn unloaded(&self) {
        // Before and after: forgetting frames makes the numbers shorter again, and earlier numbers
        // become invalid.
        self.sums.next_period();
        self.paths.code_unloaded();
        self.sums.next_period();
    }
}

impl Callbacks for Alloc {
    fn object_allocated_in(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
        self.0.allocated(object, class, frame);
    }

    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        let shared = self.0;
        if shared.event_pipe.is_none()
            && let Err(error) = shared.fast_path.module_loaded(&shared.info, &shared.functions, module)
        {
            let text = format!("alloc: the runtime does not report boxes of its fast allocator: {error}");
            shared.writer.note(monotonic_ns(), &text);
        }
    }

    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        self.0.event_pipe.is_some() || self.0.fast_path.allows_precompiled(&self.0.info, function)
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        let shared = self.0;
        let Some(found) = shared.event_pipe.and_then(|event_pipe| event_pipe.of_runtime(event)) else { return };
        let object = match (found.id, shared.engine) {
            (events::SAMPLED, AllocationEngine::Randomized) => SampledObject::of_sampled(found.fields),
            (events::TICK, AllocationEngine::Ticks) => SampledObject::of_tick(found.fields),
            _ => None,
        };
        if let Some(object) = object {
            shared.sampled(&object, event.frame);
        }
    }

    /// No callback comes any more. Another recording of the process may use the tables that threads
    /// keep.
    fn profiler_detach_succeeded(&self) {
        sums::let_go();
    }

    fn garbage_collection_started(&self, generations: Generations<'_>, _reason: GcReason) {
        self.0.paths.collection_starts();
        if let Some(follow) = &self.0.follow {
            follow.collection_starts(generations);
        }
    }

    fn garbage_collection_finished(&self) {
        if let Some(follow) = &self.0.follow {
            follow.collection_ends();
        }
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.0.unloaded();
    }

    fn module_unload_finished(&self, _module: ModuleId, _status: Result<()>) {
        self.0.unloaded();
    }
}
