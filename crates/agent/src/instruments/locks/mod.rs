//! `locks`: threads that wait for locks held by other threads, and other blocking waits.
//!
//! The runtime raises an event on the thread that begins to wait, after it has spun in vain, and
//! another event when that thread has the lock. Free locks cost nothing. Both events are recorded
//! as they come. The first one has the lock, the type of its object, the holder, and the stack. The
//! reader of the recording finds out which threads waited at the same time, and what a holder did.
//!
//! | module | what it holds |
//! |---|---|
//! | [`runtime_events`] | the fields of the events |

mod options;
mod runtime_events;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clr_profiler::callback_args::EventPipeEvent;
use clr_profiler::internals::NativeFrame;
use clr_profiler::{Callbacks, ClassId, Events, FunctionId, ModuleId, OwnThread, ProfilerInfo, Result};
use clrscope_agent_base::event_pipe::{EventPipe, RUNTIME, level};
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::os::memory::word_if_there;
use clrscope_agent_stacks::code::CodeFeed;
use clrscope_agent_stacks::stacks::{CallStacks, REMEMBERED, StackOptions, Walk};
use clrscope_recording::events::{EntityRef, Kind, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::event_log::EventLog;
use crate::services::no_stack_remark::NoStackRemark;
use crate::services::object_types::ObjectTypes;
use crate::services::stack_rate::StackRate;

pub(crate) use options::LocksOptions;
use runtime_events::{CONTENTION_KEYWORD, ContendedLock, Contention, WAIT_KEYWORD, WAITS_SINCE};

/// Frames kept of the stack of a thread that waits.
const FRAMES: usize = 64;

/// Remark about a runtime without events for other waits.
const NO_WAITS: &str = "locks: this runtime raises events for locks only; waits for semaphores, events and tasks \
                        appear only as samples, if wall records, too";
/// Remark where a stack is missing.
const NO_STACK: &str = "locks: the runtime could not walk the stack of a thread that waits";
/// Most stacks that are taken in each tenth of a second, unless all are wanted.
const STACKS: u64 = 250;
/// Time between two searches for types without names.
const PAUSE: Duration = Duration::from_millis(50);

/// The instrument `locks` while it runs.
pub(crate) struct Locks {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    log: &'static EventLog,
    pipe: &'static EventPipe,
    object_types: Arc<ObjectTypes>,
    stacks: CallStacks,
    /// Limit of the waits whose stack is taken; `None` for all.
    rate: Option<StackRate>,
    no_stack: NoStackRemark,
    /// Names are no longer asked for.
    is_over: Arc<AtomicBool>,
}

impl Locks {
    fn started(&self, contended: ContendedLock, frame: NativeFrame) {
        let now = monotonic_ns();
        let class = self.object_types.reserved(class_of(contended));
        let stack = self.stack(frame, now);
        self.log.write_with(Some(now), Kind::CONTENTION_STARTED, |encoder| {
            encoder.number(Tag::LOCK, contended.lock).number(Tag::HOLDER, contended.holder);
            if contended.is_monitor() {
                encoder.entity(Tag::CLASS, EntityRef { id: 0, index: class });
            }
            if let Some(stack) = stack {
                encoder.number(Tag::STACK_NODE, stack.into());
            }
        });
    }

    fn blocks(&self, frame: NativeFrame) {
        let now = monotonic_ns();
        let stack = self.stack(frame, now);
        self.log.write_with(Some(now), Kind::BLOCKING_STARTED, |encoder| {
            if let Some(stack) = stack {
                encoder.number(Tag::STACK_NODE, stack.into());
            }
        });
    }

    /// The number of the calling thread's stack; `None` if no more of them are taken now.
    fn stack(&self, frame: NativeFrame, now_ns: u64) -> Option<u32> {
        if self.rate.as_ref().is_some_and(|rate| !rate.admits(now_ns)) {
            return None;
        }
        Some(self.no_stack.number(self.stacks.number_here(frame, |_| ())))
    }
}

/// The class of the object whose monitor is contended; null for a `System.Threading.Lock`.
///
/// The event of a monitor is raised in cooperative mode, in which no collection moves the object
/// (`AwareLock::EnterEpilogHelper` in `vm/syncblk.cpp`). The event of a `System.Threading.Lock` is
/// raised by a P/Invoke, during which a collection may move the object.
fn class_of(contended: ContendedLock) -> ClassId {
    let word = if contended.is_monitor() { word_if_there(contended.object) } else { None };
    // SAFETY: the first word of an object, which the calling thread is about to lock, is its class;
    // the class stays as long as the object, and its names are forgotten when a module unloads.
    word.map_or(ClassId::NULL, |word| unsafe { ClassId::from_raw(word) })
}

impl Instrument for Locks {
    type Options = LocksOptions;

    fn start(options: &LocksOptions, context: &Context) -> std::result::Result<Self, String> {
        let log = EventLog::create(context, instrument::LOCKS, options.max_bytes)?;
        let wanted = StackOptions { frames: FRAMES, walk: Walk::Frames, frame_pointers: false, remembered: REMEMBERED };
        let pipe = context.event_pipe();
        pipe.want(RUNTIME, CONTENTION_KEYWORD, level::INFORMATIONAL);
        if context.info.runtime_version().is_ok_and(|version| version.major >= WAITS_SINCE) {
            pipe.want(RUNTIME, WAIT_KEYWORD, level::VERBOSE);
        } else {
            context.writer.note(monotonic_ns(), NO_WAITS);
        }
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            log,
            pipe,
            object_types: Arc::clone(&context.object_types),
            stacks: context.call_stacks(wanted)?,
            rate: (!options.exact).then(|| StackRate::new(STACKS)),
            no_stack: NoStackRemark::new(context.writer, NO_STACK),
            is_over: Arc::default(),
        })
    }

    fn events(&self) -> Events {
        CodeFeed::EVENTS | Events::ENABLE_STACK_SNAPSHOT | self.pipe.events()
    }

    fn begins(&self, _beginning: Beginning) {
        self.pipe.begin();
        let (types, is_over) = (Arc::clone(&self.object_types), Arc::clone(&self.is_over));
        let started = OwnThread::start(&self.info, "clrscope-locks", move |thread| {
            while thread.sleep(PAUSE) {
                types.settle();
            }
            types.settle();
            is_over.store(true, Ordering::Release);
        });
        if let Err(error) = started {
            self.is_over.store(true, Ordering::Release);
            self.writer.note(monotonic_ns(), &format!("locks: no names of types: {error}"));
        }
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let names = NamesFirst { object_types: Arc::clone(&self.object_types), is_over: Arc::clone(&self.is_over) };
        vec![self.log.task(), self.stacks.task(), Box::new(names)]
    }

    fn detach_in_child(&self) {
        self.log.detach_in_child();
        self.stacks.detach_in_child();
    }
}

/// Lets recording stop only when the types of all objects have names.
struct NamesFirst {
    object_types: Arc<ObjectTypes>,
    is_over: Arc<AtomicBool>,
}

impl Task for NamesFirst {
    fn stop(&mut self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.object_types.is_settled()
    }
}

impl Callbacks for Locks {
    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        match self.pipe.of_runtime(event).and_then(Contention::read) {
            Some(Contention::Started(contended)) => self.started(contended, event.frame),
            Some(Contention::Blocks) => self.blocks(event.frame),
            Some(Contention::Unblocks) => _ = self.log.write_with(Some(monotonic_ns()), Kind::BLOCKING_ENDED, |_| ()),
            Some(Contention::Ended) => _ = self.log.write_with(Some(monotonic_ns()), Kind::CONTENTION_ENDED, |_| ()),
            None => {}
        }
    }

    fn module_unload_finished(&self, _module: ModuleId, _status: Result<()>) {
        self.stacks.code_unloaded();
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.stacks.code_unloaded();
    }
}
