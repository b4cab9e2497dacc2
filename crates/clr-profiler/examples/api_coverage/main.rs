//! A profiler that makes the queries that the other examples don't make: objects, handles, static
//! fields, enumerations, suspension, recompilation, EventPipe. It makes them in the callbacks that
//! allow them and on its own thread. It checks the answers against the known contents of the
//! fixture `Objects` and writes a line per check to the file named by `QUESTIONS_OUTPUT`.

mod checks;
mod code;
mod objects;
mod own_thread;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

use clr_profiler::callback_args::{EventPipeEvent, GcReason, Generations, MovedRanges, SurvivingRanges};
use clr_profiler::{
    Callbacks, ClassId, Events, FunctionId, NameCache, ObjectId, ObjectTracker, OwnThread, Profiler, ProfilerInfo,
    Result, Setup,
};

use checks::Checks;

clr_profiler::export_profiler!(Questions, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C07}");

struct Questions {
    state: &'static State,
}

/// State of the profiler. Lives as long as the process, because the profiler's own thread also uses
/// it.
struct State {
    info: ProfilerInfo,
    names: NameCache,
    checks: Checks,
    tracked: OnceLock<ClassId>,
    /// Class of the inspected exception, set after its inspection. Its static fields are then read
    /// once.
    look: OnceLock<ClassId>,
    statics: Once,
    /// The fixture's objects of class `Tracked`, and the number of them that were collected.
    objects: ObjectTracker<()>,
    died: AtomicU64,
    collections: AtomicU64,
    delivered: AtomicU64,
    /// Numbers of events with another thread's stack, and of events with a stack but no thread.
    samples: AtomicU64,
    stacks_of_nobody: AtomicU64,
    own_events: AtomicU64,
}

impl Profiler for Questions {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let state = State {
            info: info.clone(),
            names: NameCache::new(),
            checks: Checks::default(),
            tracked: OnceLock::new(),
            look: OnceLock::new(),
            statics: Once::new(),
            objects: ObjectTracker::new(),
            died: AtomicU64::new(0),
            collections: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            stacks_of_nobody: AtomicU64::new(0),
            own_events: AtomicU64::new(0),
        };
        let objects = Events::GC | Events::ENABLE_OBJECT_ALLOCATED | Events::OBJECT_ALLOCATED;
        let code = Events::JIT_COMPILATION | Events::ENABLE_REJIT | Events::ENABLE_STACK_SNAPSHOT;
        let setup = Setup::new(objects | code | Events::EXCEPTIONS | Events::EVENT_PIPE);
        Ok((Self { state: Box::leak(Box::new(state)) }, setup))
    }
}

impl Callbacks for Questions {
    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        let state = self.state;
        if state.names.function(&state.info, function).name == "Objects.Program::Answer" {
            state.checks.outcome("new IL", code::same_il(state, function));
        }
    }

    fn jit_compilation_finished(&self, function: FunctionId, _status: Result<()>, _is_safe_to_block: bool) {
        let state = self.state;
        match state.names.function(&state.info, function).name.as_str() {
            "Objects.Program::Main" => state.checks.outcome("code", code::ask(state, function)),
            // The class is known after the compilation of its constructor.
            "Objects.Tracked::.ctor" => {
                if let Some(class) = state.info.function_info(function).ok().and_then(|info| info.class) {
                    let _ = state.tracked.set(class);
                }
            }
            _ => (),
        }
    }

    fn object_allocated(&self, object: ObjectId<'_>, class: ClassId) {
        let state = self.state;
        let known = state.tracked.get().copied();
        let is_tracked =
            known.map_or_else(|| &*state.names.class(&state.info, class) == "Objects.Tracked", |k| k == class);
        if is_tracked {
            let _ = state.tracked.set(class);
            state.objects.track(object, ());
        }
    }

    fn garbage_collection_started(&self, generations: Generations<'_>, _reason: GcReason) {
        let state = self.state;
        state.collections.fetch_add(1, Ordering::Relaxed);
        state.objects.collection_started(&state.info, generations);
    }

    fn moved_references(&self, ranges: MovedRanges<'_>) {
        let state = self.state;
        if let Some(class) = state.tracked.get() {
            state.checks.refused_during_collection(state.info.class_info(*class).err());
        }
        state.objects.moved(ranges);
    }

    fn surviving_references(&self, ranges: SurvivingRanges<'_>) {
        let state = self.state;
        state.objects.survived(ranges);
    }

    fn garbage_collection_finished(&self) {
        let state = self.state;
        state.died.fetch_add(state.objects.collection_finished().len() as u64, Ordering::Relaxed);
    }

    fn exception_thrown(&self, exception: ObjectId<'_>) {
        let state = self.state;
        let class = state.info.class_of_object(exception);
        if class.is_ok_and(|class| &*state.names.class(&state.info, class) == "Objects.Look") {
            objects::write_tracked(state);
            state.checks.outcome("objects", objects::ask(state, exception));
        }
    }

    fn exception_search_function_enter(&self, _function: FunctionId) {
        let state = self.state;
        if let Some(class) = state.look.get() {
            state.statics.call_once(|| {
                state.checks.outcome("statics", objects::statics(state, *class));
                // The thread starts only after the queries, because it writes their results.
                let started = OwnThread::start(&state.info, "questions", |_| own_thread::run(state));
                state.checks.outcome("own thread starts", started.map(drop));
            });
        }
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        let state = self.state;
        let ours = event.event_id == own_thread::OWN_EVENT && event.data == own_thread::OWN_DATA;
        let count = match (event.thread, event.stack) {
            (Some(_), [_, ..]) => &state.samples,
            (None, [_, ..]) => &state.stacks_of_nobody,
            _ if ours => &state.own_events,
            _ => &state.delivered,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
