//! `calls`: the exact calling-context tree of every thread.
//!
//! | module | what it holds |
//! |---|---|
//! | [`hooks`] | the fast paths in assembly |
//! | [`slow`] | what they do out of line |
//! | [`frames`] | a thread's shadow stack |
//! | [`stacks`] | a thread's begin and end |
//! | [`shared`] | what all threads share; the fields of an edge |
//! | [`sampler`] | the helper thread's looks |
//! | [`calibrate`] | what a pair of hooks costs in a loop of our own |
//! | [`probe`] | what it costs in the program itself |
//! | [`unwind`] | exceptions |

mod calibrate;
mod frames;
pub(crate) mod hooks;
mod options;
mod probe;
mod recent;
mod sampler;
pub(crate) mod shared;
pub(crate) mod slow;
mod stacks;
mod unwind;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::notice::{SuspendReason, TransitionReason};
use clr_profiler::{Events, FunctionId, ProfilerInfo};
use clrscope_recording::layout::{block, function};
use clrscope_recording::model::Clock;
use clrscope_recording::writer::{Settings, ThreadRecord};

use crate::hooks::{self as all_hooks, HookNeed};
use crate::instrument::{Context, Instrument};
use crate::services::faults::{OddCallback, odd_callback};
use crate::services::functions::Functions;
use crate::services::helper::Task;
use crate::services::memory::Patience;
use crate::services::threads;

pub(crate) use options::Options;
use shared::Shared;

/// The running instrument.
pub(crate) struct Calls {
    shared: &'static Shared,
    info: ProfilerInfo,
    functions: Arc<Functions>,
    options: Options,
    sampler: Mutex<Option<sampler::Sampler>>,
    shares_hooks: AtomicBool,
    /// Pseudo function of the suspension under way.
    suspension: AtomicU32,
}

impl Calls {
    /// Makes the tree's memory and everything the hooks need.
    pub(crate) fn start(options: &Options, context: &Context) -> Result<Self, String> {
        let writer = context.writer;
        let arena =
            writer.create_arena(options.max_bytes).map_err(|error| format!("no memory for the tree: {error}"))?;
        let times = writer.create_times().map_err(|error| format!("no memory for times: {error}"))?;
        stacks::prepare();
        let tsc = options.clock == Clock::Tsc;
        writer.calls(&Settings {
            clock: options.clock,
            noinline: options.noinline,
            native: options.native,
            helpers: options.helpers,
            trivial: options.trivial,
            interval_ns: context.interval_ns,
        });
        let shared = shared::publish(Shared {
            writer,
            arena,
            stride: if tsc { block::STRIDE_TSC } else { block::STRIDE_SAMPLED } as u32,
            patience: Patience::new(context.helper.clone()),
            lost_carries: 0.into(),
        });
        let sampler = sampler::Sampler::new(shared, times, !tsc, context.interval_ns);
        Ok(Self {
            shared,
            info: context.info.clone(),
            functions: Arc::clone(&context.functions),
            options: options.clone(),
            sampler: Mutex::new(Some(sampler)),
            shares_hooks: AtomicBool::new(false),
            suspension: AtomicU32::new(function::SUSPENDED),
        })
    }

    fn here(&self) -> Option<ThreadRecord> {
        threads::current()
    }

    fn enter_runtime(&self, function: u32) {
        if let Some(record) = self.here() {
            slow::enter_pseudo(self.shared, record, function);
        }
    }

    fn leave_runtime(&self, function: u32) -> bool {
        self.here().is_some_and(|record| slow::leave_pseudo(self.shared, record, function))
    }

    fn odd(&self, which: OddCallback) {
        odd_callback(self.shared.writer, which);
    }
}

impl Instrument for Calls {
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

    fn hooks(&self) -> Option<HookNeed> {
        Some(HookNeed::Calls(self.options.clock))
    }

    fn thread_begins(&self, record: ThreadRecord) -> bool {
        stacks::begin(self.shared, record)
    }

    fn thread_ends(&self, record: ThreadRecord) {
        stacks::end(self.shared, record);
    }

    fn shares_hooks(&self) {
        self.shares_hooks.store(true, Ordering::Relaxed);
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).take();
        // What a pair costs can be measured only where it does nothing else.
        let is_alone = !self.shares_hooks.load(Ordering::Relaxed);
        let sampler = sampler.map(|sampler| if is_alone { sampler.with_probe() } else { sampler });
        sampler.into_iter().map(|sampler| Box::new(sampler) as Box<dyn Task>).collect()
    }

    fn detach_in_child(&self) {
        shared::withdraw();
        self.shared.arena.segment().detach_in_child();
    }

    fn jit_started(&self, _function: FunctionId) {
        self.enter_runtime(function::JIT);
    }

    fn jit_finished(&self, _function: FunctionId) {
        if !self.leave_runtime(function::JIT) && !all_hooks::is_stopped() {
            self.odd(OddCallback::CompilationEnd);
        }
    }

    fn suspend_started(&self, reason: SuspendReason) {
        let number = function::SUSPENDED + reason.raw().min(9);
        self.suspension.store(number, Ordering::Release);
        let Some(record) = self.here() else { return };
        slow::enter_pseudo(self.shared, record, number);
    }

    fn resume_finished(&self) {
        self.leave_suspension();
    }

    fn thread_suspended(&self) {
        self.enter_runtime(self.suspension.load(Ordering::Acquire));
    }

    fn thread_resumed(&self) {
        // The runtime may resume a thread that it never suspended, once per thread (measured).
        self.leave_suspension();
    }

    fn to_unmanaged(&self, function: Option<FunctionId>, reason: TransitionReason) {
        // A return to unmanaged code ends a callback, whose frames have left by themselves.
        if reason == TransitionReason::Call {
            let index = self.functions.native(function);
            self.enter_runtime(index);
        }
    }

    fn to_managed(&self, function: Option<FunctionId>, reason: TransitionReason) {
        if reason == TransitionReason::Return {
            let index = self.functions.native(function);
            if !self.leave_runtime(index) {
                self.odd(OddCallback::UnmanagedReturn);
            }
        }
    }

    fn filter_enter(&self, _function: FunctionId) {
        self.with_clause(OddCallback::Filter, |record, frame| unwind::filter_enter(self.shared, record, frame));
    }

    fn filter_leave(&self) {
        if let Some(record) = threads::active() {
            unwind::filter_leave(self.shared, record);
        }
    }

    fn unwind_finally_enter(&self, _function: FunctionId) {
        self.with_clause(OddCallback::Finally, |record, frame| unwind::block_enter(self.shared, record, frame));
    }

    fn catcher_enter(&self, _function: FunctionId) {
        self.with_clause(OddCallback::Catch, |record, frame| unwind::block_enter(self.shared, record, frame));
    }
}

impl Calls {
    /// Leaves whatever suspension is on this thread's stack.
    fn leave_suspension(&self) {
        if let Some(record) = threads::active() {
            slow::leave_suspension(self.shared, record);
        }
    }

    /// Asks which activation the block that is about to run belongs to. Only threads with frames matter. `callback` is
    /// which one it is where that can't be said.
    fn with_clause(&self, callback: OddCallback, act: impl FnOnce(ThreadRecord, usize)) {
        let Some(record) = threads::active() else { return };
        match self.info.exception_clause() {
            Ok(clause) => act(record, clause.frame_pointer),
            Err(_) => self.odd(callback),
        }
    }
}
