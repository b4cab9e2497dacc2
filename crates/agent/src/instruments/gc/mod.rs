//! `gc`: garbage collections.
//!
//! There are two sources, and both are recorded as they come. Callbacks report suspensions, and
//! begin and end of collections. The runtime's own events, from the
//! [session](clrscope_agent_base::event_pipe) that instruments share, report number, reason and
//! type of each collection, and sizes of the generations. The reader of the recording finds out
//! which records belong together. Background collections stay enabled, as the instrument asks only
//! for their begin and end, not for survivors.
//!
//! The stack of the thread that caused a collection is walked before the program stands still. If
//! the collector runs on the program's threads, that is at the begin of the suspension; if it has
//! threads of its own, at the event that requests a collection.

mod limits;
mod options;
mod survivors;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clr_profiler::callback_args::{
    EventPipeEvent, GcReason, Generations, MovedRanges, ObjectsOfClass, SurvivingRanges, SuspendReason,
};
use clr_profiler::{Callbacks, ClassId, Error, Events, FunctionId, ModuleId, ObjectId, ProfilerInfo, Result};
use clrscope_agent_base::event_pipe::{EventPipe, RUNTIME, level};
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::os::threads::thread_id;
use clrscope_agent_base::own_memory::OwnMemory;
use clrscope_agent_stacks::stacks::{CallStacks, StackOptions, Walk};
use clrscope_recording::events::{Encoder, Kind, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::writer::monotonic_ns;

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::event_log::EventLog;
use crate::services::gc_events::{GC_KEYWORD, GENERATIONS, GcEvent, GenerationSizes};
use crate::services::no_stack_remark::NoStackRemark;

use limits::Limits;
use survivors::Survivors;

pub(crate) use options::GcOptions;

/// Frames kept of the stack that caused a collection.
const FRAMES: usize = 64;

/// Remark where a stack is missing.
const NO_STACK: &str = "gc: the runtime could not walk the stack of a thread that caused a collection";

/// The instrument `gc` while it runs.
pub(crate) struct Gc {
    info: ProfilerInfo,
    log: &'static EventLog,
    pipe: &'static EventPipe,
    stacks: CallStacks,
    /// Thread that has begun to stop the others, 0 for none.
    suspender: AtomicU32,
    no_stack: NoStackRemark,
    /// Survivors, where they are wanted.
    survivors: Option<Survivors>,
    /// Memory of the instrument's own tables.
    own: Arc<OwnMemory>,
}

impl Gc {
    /// Adds up the memory of the tables.
    fn look_at_memory(&self) {
        self.own.takes(self.survivors.as_ref().map_or(0, Survivors::own_bytes) + self.stacks.own_bytes());
    }

    /// The number of the calling thread's stack; 0 on a thread of the collector's own.
    fn stack(&self) -> u32 {
        if self.info.current_thread().is_err() {
            return 0;
        }
        self.no_stack.number(self.stacks.snapshot_here())
    }

    /// Asks for the names of the survivors' classes. Only on threads of the program, where the
    /// runtime may be queried.
    fn name_types(&self) {
        if let Some(survivors) = self.survivors.as_ref().filter(|_| self.info.current_thread().is_ok()) {
            survivors.name_types();
        }
    }

    fn put(&self, kind: Kind) {
        self.log.write(kind, &[]);
    }

    fn write_event(&self, event: &GcEvent) {
        let now = monotonic_ns();
        let write = |kind, fill: &dyn Fn(&mut Encoder<'_>)| _ = self.log.write_with(Some(now), kind, fill);
        match *event {
            GcEvent::Triggered { reason } => {
                let stack = if self.suspender.load(Ordering::Relaxed) == thread_id() { 0 } else { self.stack() };
                write(Kind::GC_TRIGGERED, &|e| {
                    _ = e.number(Tag::REASON_CODE, reason.into()).number(Tag::STACK_NODE, stack.into())
                });
            }
            GcEvent::Started { number, generation, reason, kind } => write(Kind::GC_STARTED, &|e| {
                e.number(Tag::NUMBER, number.into()).number(Tag::GENERATION, generation.into());
                e.number(Tag::REASON_CODE, reason.into()).number(Tag::GC_TYPE, kind.into());
            }),
            GcEvent::Ended { number, generation } => write(Kind::GC_ENDED, &|e| {
                e.number(Tag::NUMBER, number.into()).number(Tag::GENERATION, generation.into());
            }),
            GcEvent::Statistics { promoted, pinned, handles } => write(Kind::GC_STATISTICS, &|e| {
                for (generation, promoted) in (0..).zip(promoted) {
                    e.number(Tag::GENERATION, generation).number(Tag::PROMOTED, promoted);
                }
                e.number(Tag::PINNED, pinned.into()).number(Tag::HANDLES, handles.into());
            }),
            GcEvent::Heap { heap, ref generations } => write(Kind::GC_HEAP, &|e| put_heap(e, heap, generations)),
            GcEvent::Mechanisms { generation, mechanisms, memory_load } => write(Kind::GC_MECHANISMS, &|e| {
                e.number(Tag::GENERATION, generation.into()).number(Tag::MECHANISMS, mechanisms.into());
                if let Some(load) = memory_load {
                    e.number(Tag::MEMORY_LOAD, load.into());
                }
            }),
            GcEvent::Suspension { step, reason } => write(Kind::GC_SUSPENSION, &|e| {
                e.number(Tag::STEP, step.into());
                if let Some(reason) = reason {
                    e.number(Tag::REASON_CODE, reason.into());
                }
            }),
            GcEvent::Finalizers { count } => write(Kind::GC_FINALIZERS, &|e| _ = e.number(Tag::COUNT, count.into())),
            // The ranges are known from the heap's own list.
            GcEvent::Range { .. } => {}
        }
    }
}

fn put_heap(encoder: &mut Encoder<'_>, heap: u32, generations: &[Option<GenerationSizes>; GENERATIONS]) {
    encoder.number(Tag::HEAP, heap.into());
    for (generation, sizes) in (0..).zip(generations) {
        let Some(sizes) = sizes else { continue };
        encoder.number(Tag::GENERATION, generation);
        encoder.number(Tag::BEFORE, sizes.before).number(Tag::FREE_BEFORE, sizes.free_before);
        encoder.number(Tag::AFTER, sizes.after).number(Tag::FREE_AFTER, sizes.free_after);
    }
}

impl Instrument for Gc {
    type Options = GcOptions;

    fn start(options: &GcOptions, context: &Context) -> std::result::Result<Self, String> {
        let log = EventLog::create(context, instrument::GC, options.max_bytes)?;
        let limits = Limits::from_max_bytes(options.max_bytes);
        let remembered = limits.stacks;
        let wanted = StackOptions { frames: FRAMES, walk: Walk::Snapshot, frame_pointers: false, remembered };
        let survivors = || Survivors::new(&context.info, context.writer, log, (&context.object_types, limits));
        let pipe = context.event_pipe();
        pipe.want(RUNTIME, GC_KEYWORD, level::INFORMATIONAL);
        Ok(Self {
            info: context.info.clone(),
            log,
            pipe,
            stacks: context.call_stacks(wanted)?,
            suspender: AtomicU32::new(0),
            no_stack: NoStackRemark::new(context.writer, NO_STACK),
            survivors: options.survivors.then(survivors),
            own: Arc::new(OwnMemory::new(context.writer, instrument::GC)),
        })
    }

    fn events(&self) -> Events {
        let code = Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS | Events::ENABLE_STACK_SNAPSHOT;
        let collections = if self.survivors.is_some() { Events::GC } else { Events::BASIC_GC };
        collections | Events::SUSPENSIONS | code | self.pipe.events()
    }

    fn begins(&self, _beginning: Beginning) {
        self.pipe.begin();
    }

    /// Collections are rare, and a burst of their events fits into the memory that is backed
    /// already.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![self.log.task(), self.stacks.task(), OwnMemory::task(&self.own)]
    }

    fn detach_in_child(&self) {
        self.log.detach_in_child();
        self.stacks.detach_in_child();
    }
}

impl Callbacks for Gc {
    fn runtime_suspend_started(&self, reason: SuspendReason) {
        let now = monotonic_ns();
        self.suspender.store(thread_id(), Ordering::Relaxed);
        let stack = if reason == SuspendReason::Gc { self.stack() } else { 0 };
        self.log.write_with(Some(now), Kind::RUNTIME_SUSPEND_STARTED, |encoder| {
            encoder.number(Tag::REASON_CODE, reason.as_raw().into()).number(Tag::STACK_NODE, stack.into());
        });
    }

    fn runtime_suspend_finished(&self) {
        self.put(Kind::RUNTIME_SUSPEND_FINISHED);
    }

    fn runtime_suspend_aborted(&self) {
        self.put(Kind::RUNTIME_SUSPEND_ABORTED);
        self.suspender.store(0, Ordering::Relaxed);
    }

    fn runtime_resume_started(&self) {
        self.put(Kind::RUNTIME_RESUME_STARTED);
    }

    fn runtime_resume_finished(&self) {
        self.put(Kind::RUNTIME_RESUME_FINISHED);
        self.suspender.store(0, Ordering::Relaxed);
        self.look_at_memory();
        self.name_types();
    }

    fn garbage_collection_started(&self, generations: Generations<'_>, reason: GcReason) {
        let bits = generations.iter().fold(0_u64, |bits, generation| bits | 1 << generation.min(63));
        let fields = [(Tag::GENERATIONS, bits.into()), (Tag::ANSWER, (reason == GcReason::Induced).into())];
        self.log.write(Kind::GARBAGE_COLLECTION_STARTED, &fields);
        if let Some(survivors) = &self.survivors {
            survivors.collection_started(generations);
        }
    }

    fn objects_allocated_by_class(&self, objects: ObjectsOfClass<'_>) {
        if let Some(survivors) = &self.survivors {
            survivors.were_young(objects);
        }
    }

    fn moved_references(&self, moved: MovedRanges<'_>) {
        if let Some(survivors) = &self.survivors {
            survivors.moved(moved);
        }
    }

    fn surviving_references(&self, surviving: SurvivingRanges<'_>) {
        if let Some(survivors) = &self.survivors {
            survivors.stayed(surviving);
        }
    }

    /// The refusal ends the runtime's own heap walk at the first object. The runtime begins this
    /// walk after every collection.
    fn object_references(&self, _object: ObjectId<'_>, _class: ClassId, _references: &[ObjectId<'_>]) -> Result<()> {
        match self.survivors {
            Some(_) => Err(Error::refused("ObjectReferences", "survivors are known without")),
            None => Ok(()),
        }
    }

    fn garbage_collection_finished(&self) {
        if let Some(survivors) = &self.survivors {
            survivors.collection_finished();
        }
        self.put(Kind::GARBAGE_COLLECTION_FINISHED);
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        if let Some(event) = self.pipe.of_runtime(event).and_then(GcEvent::read) {
            self.write_event(&event);
            if matches!(event, GcEvent::Finalizers { .. }) {
                // On the finalizer's thread, after each collection, whichever threads collected.
                self.name_types();
            }
        }
    }

    fn module_unload_finished(&self, _module: ModuleId, _status: Result<()>) {
        self.stacks.code_unloaded();
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.stacks.code_unloaded();
    }
}
