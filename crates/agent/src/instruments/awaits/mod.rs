//! `awaits`: how long the program's own async methods wait at each of their awaits.
//!
//! When a module is loaded, its async methods are recompiled (ReJIT) with code that notes when a
//! method begins to wait and when it resumes. The method itself keeps a number that leads to the
//! data of the wait: its box may be moved meanwhile, and may resume on any thread. An await whose
//! operation is complete does not wait, and costs nothing.
//!
//! A waiting method resumes in the code that began the wait. So the methods keep their changed code
//! when the recording is over, but the code then notes nothing
//! ([`kept_code`](crate::services::kept_code)).
//!
//! | module | what it holds |
//! |---|---|
//! | [`place`] | the data of an await that a method's code uses |
//! | [`author`] | the author of the methods' code |
//! | [`code`] | the code that is put into methods, and the functions that it calls |
//! | [`waits`] | the pending waits, by their numbers |
//! | [`methods`] | the methods that are followed |
//! | [`recorder`] | recording of waits |
//! | [`follow`] | which methods are chosen, and how they get their code |

mod author;
mod code;
mod follow;
mod methods;
mod options;
mod place;
mod recorder;
mod waits;

use std::sync::Arc;

use clr_profiler::internals::NativeFrame;
use clr_profiler::{
    AssemblyId, Callbacks, Events, FunctionId, ModuleId, ObjectId, ProfilerInfo, ReJitId, Result, Token,
};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::helper::Task;
use clrscope_agent_stacks::code::CodeFeed;
use clrscope_agent_stacks::stacks::{REMEMBERED, StackOptions, Walk};
use clrscope_recording::layout::instrument;

use crate::instrument::Instrument;
use crate::services::context::Context;
use crate::services::event_log::EventLog;
use crate::services::stop_of_threads::StopOfThreads;

use follow::Follower;
pub(crate) use options::AwaitsOptions;
use recorder::{Outcome, Recorder};

/// Frames of a stack: the method that waited. Its awaiters are recorded with it.
const FRAMES: usize = 1;
/// Type that cancellations are derived from.
const CANCELLATION: &str = "System.OperationCanceledException";
/// Most base classes of an exception that are looked at.
const MOST_BASES: usize = 16;

/// The instrument `awaits` while it runs.
pub(crate) struct Awaits {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    follower: Follower,
    recorder: &'static Recorder,
}

impl Awaits {
    /// Whether the class of an exception is derived from the class of cancellations.
    fn is_cancellation(&self, exception: ObjectId<'_>) -> bool {
        let Ok(class) = self.info.class_of_object(exception) else { return false };
        let parent = |class: &clr_profiler::ClassId| self.info.class_info(*class).ok()?.parent;
        let mut classes = std::iter::successors(Some(class), parent).take(MOST_BASES);
        classes.any(|class| &*self.functions.names().class(&self.info, class) == CANCELLATION)
    }
}

impl Instrument for Awaits {
    type Options = AwaitsOptions;

    fn start(options: &AwaitsOptions, context: &Context) -> std::result::Result<Self, String> {
        waits::open().ok_or("no address space for waits")?;
        let log = EventLog::create(context, instrument::AWAITS, options.max_bytes)?;
        let wanted = StackOptions { frames: FRAMES, walk: Walk::Frames, frame_pointers: false, remembered: REMEMBERED };
        let stacks = context.call_stacks(wanted)?;
        Ok(Self {
            info: context.info.clone(),
            functions: Arc::clone(&context.functions),
            follower: Follower::new(context),
            recorder: Recorder::publish(log, stacks, context.writer, options.exact),
        })
    }

    fn events(&self) -> Events {
        Events::MODULE_LOADS | Events::ENABLE_REJIT | Events::EXCEPTIONS | CodeFeed::EVENTS
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let end = End { recorder: self.recorder, stop: StopOfThreads::new(&self.info, "clrscope-awaits") };
        vec![Box::new(end), self.recorder.log.task(), self.recorder.stacks.task()]
    }

    fn detach_in_child(&self) {
        Recorder::withdraw();
        self.recorder.log.detach_in_child();
        self.recorder.stacks.detach_in_child();
    }
}

impl Callbacks for Awaits {
    /// Comes before the helper thread's last round, for which the program waits only a moment.
    fn shutdown(&self) {
        record_pending(self.recorder);
    }

    /// Handles modules that are loaded already, and methods that were compiled for an earlier
    /// recording. A module that is loaded meanwhile may be reported twice.
    fn profiler_attach_complete(&self) {
        self.follower.announce_compiled(self.recorder);
        self.info.modules().unwrap_or_default().into_iter().for_each(|module| self.follower.follow(module));
    }

    /// Before this the assembly has no name, and after this its methods are compiled.
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.follower.follow(module);
    }

    fn rejit_compilation_started(&self, function: FunctionId, _rejit: ReJitId, _is_safe_to_block: bool) {
        self.follower.announce(self.recorder, function);
    }

    fn rejit_error(&self, module: ModuleId, method: Token, _function: FunctionId, status: Result<()>) {
        if let Err(error) = status {
            self.follower.not_compiled((module, method), &error);
        }
    }

    /// The awaited operation throws its exception when the method asks for the result.
    fn exception_thrown_in(&self, exception: ObjectId<'_>, _frame: NativeFrame) {
        code::end_current(|| match self.is_cancellation(exception) {
            true => Outcome::Cancellation,
            false => Outcome::Failure,
        });
    }

    fn module_unload_finished(&self, _module: ModuleId, _status: Result<()>) {
        self.recorder.stacks.code_unloaded();
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.recorder.stacks.code_unloaded();
    }
}

/// The end of the recording.
struct End {
    recorder: &'static Recorder,
    stop: StopOfThreads,
}

/// Records all waits that have not ended, once.
fn record_pending(recorder: &Recorder) {
    if let Some(waits) = waits::of_process() {
        recorder.pending(waits);
    }
}

impl Task for End {
    fn slow_tick(&mut self, _now_ns: u64) {
        self.recorder.scale.measure();
    }

    fn finish(&mut self) -> bool {
        record_pending(self.recorder);
        true
    }

    /// No method finds the recording any more. Methods that had found it are done with it once the
    /// runtime has stopped all threads, since the runtime does not stop a thread inside such a
    /// call.
    fn undo(&mut self) -> bool {
        self.stop.is_over(Recorder::withdraw)
    }
}
