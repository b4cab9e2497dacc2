//! `calls`: the exact calling-context tree of every thread.
//!
//! | module | what it holds |
//! |---|---|
//! | [`arch`] | the fast paths in assembly, for each processor |
//! | [`hooks`] | the sets of hooks |
//! | [`current_path`] | the current path of a thread, for other instruments |
//! | [`slow`] | the slow paths of the hooks |
//! | [`edge_map`] | how the edges of callers with many callees are found |
//! | [`frames`] | a thread's shadow stack |
//! | [`stacks`] | a thread's begin and end |
//! | [`stack_room`] | whether a thread has used up its stack |
//! | [`shared`] | state that all threads share; the fields of an edge |
//! | [`sampler`] | the helper thread's samples of all threads |
//! | [`calibrate`] | cost of a pair of hooks in a loop of our own |
//! | [`parts`] | gains of the trees from one boundary between parts to the next |
//! | [`hook_cost`] | cost of a pair of hooks in the program itself |
//! | [`unwind`] | exceptions |

pub(crate) mod arch;
mod calibrate;
pub(crate) mod edge_map;
mod frames;
pub(crate) mod current_path;
pub(crate) mod hooks;
mod options;
mod parts;
mod hook_cost;
mod recent;
mod sampler;
pub(crate) mod shared;
pub(crate) mod slow;
mod stack_room;
mod stacks;
mod unwind;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::callback_args::{DynamicIl, SuspendReason, TransitionReason};
use clr_profiler::{Callbacks, Events, FunctionId, ObjectId, ProfilerInfo, Result, ThreadId};
use clrscope_recording::layout::{block, function};
use clrscope_recording::model::{CallsInfo, Clock, Function, FunctionKind, GC_NAME};
use clrscope_recording::writer::ThreadRecord;
use clrscope_agent_base::faults::{OddCallback, odd_callback};
use clrscope_agent_base::functions::{FunctionSelection, Functions};
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::memory::Patience;
use clrscope_agent_base::threads;

use crate::hook_sets::{HookParts, HookSet};
use clrscope_agent_base::hooks as all_hooks;
use crate::instrument::Instrument;
use crate::services::context::Context;

pub(crate) use options::CallsOptions;
use shared::Shared;

/// The instrument `calls` while it runs.
pub(crate) struct Calls {
    shared: &'static Shared,
    info: ProfilerInfo,
    functions: Arc<Functions>,
    options: CallsOptions,
    sampler: Mutex<Option<sampler::Sampler>>,
    /// Pseudo function of the current suspension.
    suspension: AtomicU32,
}

impl Calls {
    /// Makes the tree's memory and everything the hooks need.
    fn make(options: &CallsOptions, context: &Context) -> std::result::Result<Self, String> {
        let writer = context.writer;
        let arena =
            writer.create_arena(options.max_bytes).map_err(|error| format!("no memory for the tree: {error}"))?;
        let times = writer.create_times().map_err(|error| format!("no memory for times: {error}"))?;
        stacks::prepare();
        let tsc = options.clock == Clock::Tsc;
        writer.calls(&CallsInfo {
            clock: options.clock,
            noinline: options.noinline,
            native: options.native,
            helpers: options.helpers,
            trivial: options.trivial,
            interval_ns: context.interval_ns,
            ..CallsInfo::default()
        });
        // Readers know the names of the fixed functions that older recordings have as well.
        let [name, signature, raw_name] = [GC_NAME; 3].map(str::to_owned);
        let kind = FunctionKind::Runtime;
        writer.function(function::GC, Function { name, signature, raw_name, kind, ..Function::default() });
        let shared = shared::publish(Shared {
            writer,
            arena,
            stride: if tsc { block::STRIDE_TSC } else { block::STRIDE_SAMPLED } as u32,
            patience: Patience::new(context.helper.clone()),
            lost_carries: 0.into(),
        });
        let sampler = sampler::Sampler::new(shared, times, !tsc, context.interval_ns);
        // The cost of a pair can be measured only where hooks do nothing else.
        let is_alone = context.hooks == Self::hook_parts(options);
        let sampler = if is_alone { sampler.with_cost_experiment() } else { sampler };
        Ok(Self {
            shared,
            info: context.info.clone(),
            functions: Arc::clone(&context.functions),
            options: options.clone(),
            sampler: Mutex::new(Some(sampler)),
            suspension: AtomicU32::new(function::SUSPENDED),
        })
    }

    fn enter_runtime(&self, function: u32) {
        slow::enter_pseudo(self.shared, function);
    }

    fn leave_runtime(&self, function: u32) -> bool {
        slow::leave_pseudo(self.shared, function)
    }

    fn odd(&self, which: OddCallback) {
        odd_callback(self.shared.writer, which);
    }
}

impl Instrument for Calls {
    type Options = CallsOptions;

    fn hook_sets() -> &'static [HookSet] {
        hooks::SETS
    }

    fn hook_parts(options: &CallsOptions) -> HookParts {
        match options.clock {
            Clock::Sampled => HookParts::TREE_SAMPLED,
            Clock::Tsc => HookParts::TREE_TSC,
        }
    }

    fn choose(options: &CallsOptions, choice: &mut FunctionSelection) {
        choice.helpers = options.helpers;
        choice.trivial = options.trivial;
        choice.counts_calls = true;
    }

    fn start(options: &CallsOptions, context: &Context) -> std::result::Result<Self, String> {
        Self::make(options, context)
    }

    fn events(&self) -> Events {
        let mut events = Events::JIT_COMPILATION | Events::SUSPENSIONS | Events::EXCEPTIONS;
        if self.options.noinline {
            events |= Events::DISABLE_INLINING;
        }
        if self.options.native {
            events |= Events::CODE_TRANSITIONS;
        }
        events
    }

    fn thread_begins(&self, record: ThreadRecord) -> bool {
        stacks::begin(self.shared, record)
    }

    fn thread_ends(&self, record: ThreadRecord) {
        stacks::end(self.shared, record);
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).take();
        sampler.into_iter().map(|sampler| Box::new(sampler) as Box<dyn Task>).collect()
    }

    fn detach_in_child(&self) {
        shared::withdraw();
        self.shared.arena.segment().detach_in_child();
    }
}

impl Callbacks for Calls {
    fn jit_compilation_started(&self, _function: FunctionId, _is_safe_to_block: bool) {
        self.enter_runtime(function::JIT);
    }

    fn jit_compilation_finished(&self, _function: FunctionId, _status: Result<()>, _is_safe_to_block: bool) {
        self.leave_compiler();
    }

    fn dynamic_method_jit_compilation_started(&self, _function: FunctionId, _is_safe_to_block: bool, _il: DynamicIl<'_>) {
        self.enter_runtime(function::JIT);
    }

    fn dynamic_method_jit_compilation_finished(&self, _function: FunctionId, _status: Result<()>, _is_safe_to_block: bool) {
        self.leave_compiler();
    }

    fn runtime_suspend_started(&self, reason: SuspendReason) {
        let number = function::SUSPENDED + reason.as_raw().min(9);
        self.suspension.store(number, Ordering::Release);
        // The thread that stops the others for a collection also collects.
        let is_collection = matches!(reason, SuspendReason::Gc | SuspendReason::GcPreparation);
        self.enter_runtime(if is_collection { function::GC } else { number });
    }

    fn runtime_suspend_aborted(&self) {
        self.leave_suspension();
    }

    fn runtime_resume_finished(&self) {
        self.leave_suspension();
    }

    fn runtime_thread_suspended(&self, _thread: ThreadId) {
        self.enter_runtime(self.suspension.load(Ordering::Acquire));
    }

    fn runtime_thread_resumed(&self, _thread: ThreadId) {
        // The runtime may resume a thread that it never suspended, once per thread (measured).
        self.leave_suspension();
    }

    fn managed_to_unmanaged_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        // A return to unmanaged code ends a callback; its frames have already left.
        if reason == TransitionReason::Call {
            let index = self.functions.native(function);
            self.enter_runtime(index);
        }
    }

    fn unmanaged_to_managed_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        if reason == TransitionReason::Return {
            let index = self.functions.native(function);
            if !self.leave_runtime(index) {
                self.odd(OddCallback::UnmanagedReturn);
            }
        }
    }

    fn exception_search_filter_enter(&self, _function: FunctionId) {
        self.with_clause(OddCallback::Filter, |frame| unwind::filter_enter(self.shared, frame));
    }

    fn exception_search_filter_leave(&self) {
        unwind::filter_leave(self.shared);
    }

    fn exception_unwind_finally_enter(&self, _function: FunctionId) {
        self.with_clause(OddCallback::Finally, |frame| unwind::block_enter(self.shared, frame));
    }

    fn exception_catcher_enter(&self, _function: FunctionId, _exception: ObjectId<'_>) {
        self.with_clause(OddCallback::Catch, |frame| unwind::block_enter(self.shared, frame));
    }

    fn exception_catcher_leave(&self) {
        // With hooks in the runtime's exception handling we can't tell whether the catch block was
        // in a finally block of its own method, whose handlers have yet to leave.
        if !self.options.helpers {
            unwind::catcher_leave(self.shared);
        }
    }
}

impl Calls {
    fn leave_compiler(&self) {
        if !self.leave_runtime(function::JIT) && !all_hooks::is_stopped() {
            self.odd(OddCallback::CompilationEnd);
        }
    }

    /// Leaves the suspension on this thread's stack, if any.
    fn leave_suspension(&self) {
        slow::leave_suspension(self.shared);
    }

    /// Asks which activation the block that is about to run belongs to, and passes its frame
    /// pointer to `act`. Only threads with frames matter. Where the runtime can't answer, the
    /// callback is noted as `callback`.
    fn with_clause(&self, callback: OddCallback, act: impl FnOnce(usize)) {
        if threads::active().is_none() {
            return;
        }
        match self.info.exception_clause() {
            Ok(clause) => act(clause.frame_pointer),
            Err(_) => self.odd(callback),
        }
    }
}
