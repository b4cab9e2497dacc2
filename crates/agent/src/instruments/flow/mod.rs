//! `flow`: every enter, leave and tail call, in order, with its time.
//!
//! | module | what it holds |
//! |---|---|
//! | [`arch`] | the fast paths in assembly, alone and together with `calls`, for each processor |
//! | [`hooks`] | the sets of hooks |
//! | [`slow`] | the slow paths of the hooks |
//! | [`ring`] | the ring of events, and the code that writes them |
//! | [`values`] | arguments and results |
//! | [`by_reference`] | arguments passed by reference, until the call ends |
//! | [`results`] | results of `async` methods |

mod arch;
mod by_reference;
pub(crate) mod hooks;
mod options;
mod results;
mod ring;
mod slow;
pub(crate) mod values;

use std::sync::Arc;

use clr_profiler::callback_args::{Inlining, SuspendReason};
use clr_profiler::{Callbacks, Events, FunctionId, InfoHooks, ObjectId, ProfilerInfo};
use clrscope_recording::layout::{flow, instrument};
use clrscope_recording::writer::{Keep, ProcessWriter, ThreadRecord};
use clrscope_agent_base::faults::{OddCallback, odd_callback};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::threads;
use clrscope_agent_values::types::{self, Types};
use clrscope_agent_values::check::Check;
use clrscope_agent_values::{arguments, overhead_advice::AdviseOverhead, plans, unread::ReportUnread};

use crate::hook_sets::{HookParts, HookSet};
use crate::instrument::Instrument;
use crate::services::context::Context;
use crate::services::event_ring::{self, EventRing};

pub(crate) use options::FlowOptions;
use options::{Args, Retention};

/// Address space for everything: a mapping can't grow.
const ALL_BYTES: u64 = 128 << 30;
/// From this number of chunks of values on (two gigabytes, some seconds' worth) a remark names the
/// methods that the values belong to.
const COSTLY_CHUNKS: u64 = (2 << 30) / event_ring::CHUNK as u64;

/// The instrument `flow` while it runs.
pub(crate) struct Flow {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    ring: &'static EventRing,
    /// Types of the program, where arguments are wanted.
    types: Option<&'static Types>,
    check: Option<Arc<Check>>,
}

impl Flow {
    /// Makes the ring and everything the hooks need.
    fn make(options: &FlowOptions, context: &Context) -> std::result::Result<Self, String> {
        let (limit, keep) = match options.kept {
            Retention::Last(bytes) => (Some(bytes), Keep::Last),
            Retention::All => (None, Keep::First),
        };
        let writer = context.writer;
        let store = writer
            .create_events(instrument::FLOW, limit.unwrap_or(ALL_BYTES), keep)
            .map_err(|error| format!("no memory for events: {error}"))?
            .with_reserve(event_ring::RESERVE);
        // At once, since the start of a program makes more events than any later millisecond. A
        // refusal is counted where an event finds no place.
        let _ = store.keep_ahead_at_least(event_ring::AHEAD);
        let ring = ring::publish(writer, store, context.helper.clone(), limit);
        let types = match options.args {
            Args::Nothing => None,
            taken => {
                values::configure(taken == Args::Types);
                arguments::open_objects(options.depth);
                Some(context.types(taken == Args::Values)?)
            }
        };
        let check = (options.args == Args::Check).then(|| Arc::new(Check::new(writer)));
        Ok(Self { info: context.info.clone(), writer, functions: Arc::clone(&context.functions), ring, types, check })
    }

    /// Notes that the exception handling is about to run a block, and the activation that the block
    /// belongs to. Where the runtime can't name the activation, the callback is noted as
    /// `callback`.
    fn block(&self, what: u32, callback: OddCallback) {
        if threads::active().is_none() {
            return;
        }
        match self.info.exception_clause() {
            Ok(clause) => slow::append(what, clause.frame_pointer),
            Err(_) => odd_callback(self.writer, callback),
        }
    }
}

impl Instrument for Flow {
    type Options = FlowOptions;

    fn hook_sets() -> &'static [HookSet] {
        hooks::SETS
    }

    fn hook_parts(options: &FlowOptions) -> HookParts {
        if options.args == Args::Check { HookParts::NONE } else { HookParts::EVENTS }
    }

    fn start(options: &FlowOptions, context: &Context) -> std::result::Result<Self, String> {
        Self::make(options, context)
    }

    fn events(&self) -> Events {
        let always = Events::EXCEPTIONS | Events::SUSPENSIONS;
        match self.types {
            Some(_) => always | types::EVENTS,
            None => always,
        }
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let advise_overhead = AdviseOverhead::new(self.writer, "flow:args", COSTLY_CHUNKS);
        let mut tasks: Vec<Box<dyn Task>> = vec![self.ring.task("flow", by_reference::forget_all), Box::new(advise_overhead)];
        if self.types.is_some() {
            tasks.push(Box::new(ReportUnread::new(self.writer)));
        }
        tasks
    }

    fn slow_hooks(&self) -> Option<Arc<dyn InfoHooks>> {
        self.check.clone().map(|check| check as Arc<dyn InfoHooks>)
    }

    fn detach_in_child(&self) {
        ring::withdraw();
        self.ring.store().segment().detach_in_child();
    }

    fn thread_begins(&self, record: ThreadRecord) -> bool {
        self.ring.begin(record);
        true
    }

    fn thread_ends(&self, record: ThreadRecord) {
        self.ring.finish(record);
    }

    fn mapped(&self, function: FunctionId, index: u32, client: usize) -> usize {
        let Some(types) = self.types.filter(|_| index <= flow::FUNCTION) else { return client };
        let plan = plans::prepare(types, self.functions.names(), function, index);
        plan.map_or(client, |plan| client | values::client_bits(plan))
    }

    fn needs(&self, function: FunctionId, index: u32) -> Option<usize> {
        let types = self.types.filter(|types| types.takes_values() && index <= flow::FUNCTION)?;
        types.is_completion(function).then_some(())?;
        let plan = plans::prepare_completion(types, function, index)?;
        Some(index as usize | values::client_bits(plan))
    }
}

impl Callbacks for Flow {
    fn shutdown(&self) {
        if let Some(check) = &self.check {
            check.report();
        }
    }

    /// Calls that end an `async` method are not inlined into its code, so that their hooks run.
    fn jit_inlining(&self, caller: FunctionId, callee: FunctionId) -> Inlining {
        let Some(types) = self.types else { return Inlining::Allow };
        let is_async = || {
            let plan = plans::plan_of(self.functions.get(caller).index);
            plan.is_some_and(|plan| plan.awaited.is_some())
        };
        if is_async() && types.is_completion(callee) { Inlining::Forbid } else { Inlining::Allow }
    }

    fn runtime_suspend_started(&self, _reason: SuspendReason) {
        self.ring.suspends(true);
    }

    fn runtime_suspend_finished(&self) {
        self.ring.suspends(false);
    }

    fn runtime_suspend_aborted(&self) {
        self.ring.suspends(false);
    }

    fn exception_search_filter_enter(&self, _function: FunctionId) {
        self.block(flow::FILTER_ENTER, OddCallback::Filter);
    }

    fn exception_search_filter_leave(&self) {
        if threads::active().is_some() {
            slow::append(flow::FILTER_LEAVE, 0);
        }
    }

    fn exception_unwind_finally_enter(&self, _function: FunctionId) {
        self.block(flow::BLOCK, OddCallback::Finally);
    }

    fn exception_catcher_enter(&self, _function: FunctionId, _exception: ObjectId<'_>) {
        self.block(flow::BLOCK, OddCallback::Catch);
    }
}
