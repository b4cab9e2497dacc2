//! `heap`: snapshots of the managed heap.
//!
//! A snapshot is taken in a full collection that the agent requests, while the program stands still
//! anyway. The runtime reports the roots ([`shot`]). At the end of the collection the heap is read
//! from memory, object by object ([`walk`], by the [`shape`]s of classes), which takes a fraction
//! of the time of callbacks about each object. The walk writes the objects straight into chunks of
//! the recording, and each type at its first object. Names are asked for after the program has
//! resumed ([`taker`]). With `collect=off` the heap is read at the beginning of the collection,
//! garbage included. The runtime still reports roots at the end, so their addresses are mapped back
//! to the addresses before the collection ([`moves`]).
//!
//! | module | what it holds |
//! |---|---|
//! | [`taker`] | a snapshot from its beginning to its end, on a thread of the agent's own |
//! | [`shot`] | the data that callbacks of the collection add to a snapshot |
//! | [`walk`] | the objects; [`memory`] their words, [`shape`] and [`types`] the meaning of these words |
//! | [`task_words`] | at which awaits async methods wait |
//! | [`stacks`] | on which thread's stack an object is held |
//! | [`root_events`] | the roots where another profiler may have the main slot; only the main profiler gets callbacks about roots |
//! | [`moves`] | addresses of objects before the collection |
//! | [`statics`] | the places of static fields; [`generics`] static fields of generic classes |
//! | [`maps`] | the process's mappings |
//! | [`task`] | when snapshots are taken |

mod generics;
mod maps;
mod memory;
mod moves;
mod options;
mod root_events;
mod shape;
mod shot;
mod stacks;
mod statics;
mod taker;
mod task;
mod task_words;
mod thread_values;
mod types;
mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clr_profiler::callback_args::{EventPipeEvent, GcReason, Generations, MovedRanges, Roots, WeakTableElements};
use clr_profiler::{Callbacks, ClassId, Error, Events, FunctionId, ModuleId, ObjectId, Result};
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::os::signals;
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::SnapshotReason;
use clrscope_recording::writer::{Keep, monotonic_ns};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};

use memory::StopProof;
use taker::Taker;
use task::HeapTask;

pub(crate) use options::HeapOptions;

/// Address space for the chunks of all snapshots: a mapping can't grow.
const ADDRESS_SPACE: u64 = 256 << 30;

/// The instrument `heap` while it runs.
pub(crate) struct Heap {
    taker: &'static Taker,
    options: HeapOptions,
    /// Whether the final snapshot was taken, or is being taken.
    has_ended: Arc<AtomicBool>,
}

impl Callbacks for Heap {
    fn garbage_collection_started(&self, generations: Generations<'_>, reason: GcReason) {
        // SAFETY: this is the callback, and the proof is dropped with the statement.
        let stopped = unsafe { StopProof::in_collection() };
        let is_full = generations.contains(2);
        // Without callbacks about objects, background collections run too; these report no roots.
        let may_be_ours = self.taker.root_events.is_none() || reason == GcReason::Induced;
        signals::with_all_blocked(|| {
            self.taker.exposure.collection_started(is_full && may_be_ours, &self.taker.info, &stopped)
        });
    }

    fn moved_references(&self, moved: MovedRanges<'_>) {
        signals::with_all_blocked(|| self.taker.exposure.moved(moved));
    }

    fn root_references2(&self, roots: Roots<'_>) {
        // The server GC has threads of its own, which a file size limit would kill by a signal.
        signals::with_all_blocked(|| self.taker.exposure.roots(roots));
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        if let Some(roots) = &self.taker.root_events {
            signals::with_all_blocked(|| roots.deliver(event, &self.taker.exposure));
        }
    }

    fn conditional_weak_table_element_references(&self, elements: WeakTableElements<'_>) {
        signals::with_all_blocked(|| self.taker.exposure.dependents(elements));
    }

    /// The refusal ends the runtime's own heap walk at the first object. The runtime begins this
    /// walk after every collection.
    fn object_references(&self, _object: ObjectId<'_>, _class: ClassId, _references: &[ObjectId<'_>]) -> Result<()> {
        Err(Error::refused("ObjectReferences", "the heap is read from memory"))
    }

    fn garbage_collection_finished(&self) {
        // SAFETY: this is the callback, and the proof is dropped with the statement.
        let stopped = unsafe { StopProof::in_collection() };
        let is_taken =
            signals::with_all_blocked(|| self.taker.exposure.collection_finished(&self.taker.info, &stopped));
        if is_taken {
            self.taker.unloads.keep();
        }
    }

    fn class_load_finished(&self, class: ClassId, status: Result<()>) {
        if status.is_ok() {
            self.taker.class_loaded(class);
        }
    }

    fn class_unload_started(&self, class: ClassId) {
        self.taker.class_unloads(class);
    }

    fn module_unload_started(&self, _module: ModuleId) {
        self.taker.module_unloads();
    }

    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        self.taker.module_unloaded(module);
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.taker.unloads.method_unloads();
    }

    /// The program ends after the snapshot is taken.
    fn shutdown(&self) {
        if !self.options.at_end || self.has_ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let taker = self.taker;
        // Threads of the framework have been told to end, and callbacks may not ask for a
        // collection.
        let take = move || {
            clrscope_agent_base::boundary::guard(|| {
                // Where this is refused, the collection is refused too.
                let _ = taker.info.initialize_current_thread();
                taker.take_snapshot(SnapshotReason::End, "");
            });
        };
        let thread = signals::with_all_blocked(|| std::thread::Builder::new().name("clrscope-heap".into()).spawn(take));
        if let Ok(thread) = thread {
            // A panic was caught, and counted.
            let _ = thread.join();
        }
    }
}

impl Instrument for Heap {
    type Options = HeapOptions;

    fn start(options: &HeapOptions, context: &Context) -> std::result::Result<Self, String> {
        let store = context
            .writer
            .create_events(instrument::HEAP, ADDRESS_SPACE, Keep::First)
            .map_err(|error| format!("no memory for snapshots: {error}"))?;
        let store = keep(store);
        let taker = keep(Taker::new(context, store, options.collects));
        Ok(Self { taker, options: options.clone(), has_ended: Arc::default() })
    }

    fn events(&self) -> Events {
        let collections = match &self.taker.root_events {
            None => Events::GC,
            Some(_) => Events::BASIC_GC | Events::GC_MOVED_OBJECTS | Events::EVENT_PIPE,
        };
        collections | Events::CLASS_LOADS | Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS
    }

    fn begins(&self, beginning: Beginning) {
        if let Some(events) = &self.taker.root_events {
            events.begin();
        }
        match beginning {
            Beginning::Launch if self.taker.root_events.is_some() => {}
            Beginning::Launch => {
                let text = "heap: no collection runs in the background while heap records, because the runtime reports \
                            what holds objects only in blocking ones";
                self.taker.writer.note(monotonic_ns(), text);
            }
            Beginning::Attach => self.taker.comes_late(),
        }
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![Box::new(HeapTask::new(self.taker, &self.options, &self.has_ended))]
    }

    fn detach_in_child(&self) {
        self.taker.store.segment().detach_in_child();
    }
}
