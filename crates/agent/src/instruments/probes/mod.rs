//! `probes`: how often chosen methods are called, how long the calls take, and how many of them end
//! with an exception; also how often chosen lines are reached.
//!
//! When a module is loaded, the runtime is asked to recompile the chosen methods (ReJIT) for all
//! their callers. Precompiled code of all other methods stays in use; methods that had inlined a
//! chosen method are recompiled without inlining it. The new bodies call into this library at their
//! beginning and at each end ([`code`]). During the recording, commands from outside can add and
//! remove methods.
//!
//! | module | what it holds |
//! |---|---|
//! | [`code`] | the code that is put into methods, and the functions that it calls |
//! | [`nesting`] | nested calls of a method |
//! | [`callers`] | counting by callers |
//! | [`each`] | recording of each call, with arguments and results |
//! | [`prober`] | the choice of methods; adds and removes their probes |
//! | [`recompilation`] | answers to the runtime while it recompiles methods |
//! | [`line_prober`] | adds and removes the counters of lines |
//! | [`lines`] | which lines are wanted |
//! | [`line_search`] | where lines are in the methods of an assembly, by its PDB |
//! | [`line_code`] | the code that counts a line |
//! | [`lined`], [`line_table`] | which lines are counted, by method |
//! | [`line_store`] | room for the counters of lines in the recording |
//! | [`commands`] | commands from outside to give more methods probes, or to take them away |
//! | [`methods`] | which methods have probes, and which others were recompiled because of them |
//! | [`undo`] | the methods' own code comes back when the recording is over |
//! | [`store`] | room for the methods' numbers in the recording |

mod callers;
mod code;
mod commands;
mod each;
mod line_code;
mod line_prober;
mod line_search;
mod line_store;
mod line_table;
mod lined;
mod lines;
mod methods;
mod nesting;
mod options;
mod prober;
mod recompilation;
mod store;
mod undo;

use std::sync::Arc;

use clr_profiler::callback_args::{FunctionControl, SuspendReason};
use clr_profiler::{AssemblyId, Callbacks, Events, FunctionId, ModuleId, ReJitId, Token};
use clrscope_recording::writer::{ProcessWriter, ThreadRecord};
use clrscope_agent_base::helper::Task;
use clrscope_agent_values::types;
use clrscope_agent_values::unread::ReportUnread;
use clrscope_agent_stacks::code::CodeFeed;

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::kept_code;

use callers::Callers;
use commands::Commands;
use each::{EachCall, LookIntoTypes};
use prober::Prober;
use undo::Undo;

pub(crate) use options::ProbesOptions;

/// The instrument `probes` while it runs.
pub(crate) struct Probes {
    prober: Arc<Prober>,
    writer: &'static ProcessWriter,
}

impl Probes {
    /// Notes whether the runtime is stopping the threads: no thread may wait inside a recorded call
    /// then.
    fn suspends(&self, is_suspending: bool) {
        if let Some(each) = &self.prober.each {
            each.calls.ring().suspends(is_suspending);
        }
    }

    /// The addresses of callers may hold other code from now on.
    fn code_unloaded(&self) {
        if let Some(callers) = self.prober.callers {
            callers.code_unloaded();
        }
    }
}

impl Callbacks for Probes {
    /// Handles modules that are loaded already. A module that is loaded meanwhile may be reported
    /// twice.
    fn profiler_attach_complete(&self) {
        self.prober.probe_all();
    }

    /// Before this the assembly has no name, and after this its methods are compiled.
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.prober.probe(module);
    }

    fn get_rejit_parameters(
        &self,
        module: ModuleId,
        method: Token,
        control: &FunctionControl<'_>,
    ) -> clr_profiler::Result<()> {
        // A method that had inlined a probed method is recompiled unchanged.
        let Some(body) = self.prober.body_of((module, method)) else { return Ok(()) };
        // SAFETY: the body is the method's own with calls of functions as their signatures say, at
        // its beginning and at its ends, and with additions to memory that is mapped for ever, at
        // places of lines. Both use local variables of their own and leave the stack as it was. The
        // code that other instruments have inserted since the load of its module is valid in every
        // method.
        unsafe { control.set_il_function_body(&body.bytes)? };
        control.set_il_map(&body.moves)
    }

    /// Makes the plan for reading the values of the method's calls: here the runtime may load
    /// types.
    fn rejit_compilation_started(&self, function: FunctionId, _rejit: ReJitId, _is_safe_to_block: bool) {
        self.prober.compiles(function);
    }

    fn runtime_suspend_started(&self, _reason: SuspendReason) {
        self.suspends(true);
    }

    fn runtime_suspend_finished(&self) {
        self.suspends(false);
    }

    fn runtime_suspend_aborted(&self) {
        self.suspends(false);
    }

    fn rejit_error(&self, module: ModuleId, method: Token, _function: FunctionId, status: clr_profiler::Result<()>) {
        if let Err(error) = status {
            self.prober.not_compiled((module, method), &error);
        }
    }

    /// The records stay: they hold the counts of the methods' calls.
    fn module_unload_started(&self, module: ModuleId) {
        self.prober.methods.module_goes(module);
    }

    fn module_unload_finished(&self, _module: ModuleId, _status: clr_profiler::Result<()>) {
        self.code_unloaded();
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.code_unloaded();
    }
}

impl Instrument for Probes {
    type Options = ProbesOptions;

    fn start(options: &ProbesOptions, context: &Context) -> Result<Self, String> {
        let prober = Prober::new(options, context)?;
        if context.beginning == Beginning::Attach {
            prober.check_choice()?;
        }
        kept_code::set_answered(true);
        Ok(Self { prober: Arc::new(prober), writer: context.writer })
    }

    fn events(&self) -> Events {
        let always = Events::MODULE_LOADS | Events::ENABLE_REJIT;
        let always = if self.prober.callers.is_some() { always | CodeFeed::EVENTS } else { always };
        match &self.prober.each {
            None => always,
            Some(EachCall { types: None, .. }) => always | Events::SUSPENSIONS,
            Some(EachCall { types: Some(_), .. }) => always | Events::SUSPENSIONS | types::EVENTS,
        }
    }

    fn begins(&self, _beginning: Beginning) {
        if let Some(callers) = self.prober.callers {
            callers.begins();
        }
    }

    /// Room for counters is requested when a module is loaded; room for calls must be ready when
    /// they come.
    fn needs_frequent_help(&self) -> bool {
        self.prober.each.is_some()
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let prober = &self.prober;
        let undo = Undo::new(&prober.info, &prober.methods);
        let mut tasks: Vec<Box<dyn Task>> =
            vec![prober.store.task(), prober.lines.store.task(), Box::new(Commands::new(prober)), Box::new(undo)];
        tasks.push(Box::new(nesting::NoteFull::new(self.writer)));
        tasks.extend(prober.callers.into_iter().flat_map(Callers::tasks));
        if let Some(each) = &prober.each {
            tasks.push(each.calls.task());
            if let Some(types) = each.types {
                tasks.push(Box::new(LookIntoTypes::new(&prober.info, types)));
                tasks.push(Box::new(ReportUnread::new(self.writer)));
            }
        }
        tasks
    }

    fn thread_begins(&self, record: ThreadRecord) -> bool {
        if let Some(each) = &self.prober.each {
            each.calls.ring().begin(record);
        }
        true
    }

    fn thread_ends(&self, record: ThreadRecord) {
        if let Some(each) = &self.prober.each {
            each.calls.ring().finish(record);
        }
    }

    fn outlive_recording(&self) {
        self.prober.store.outlive_recording();
        self.prober.lines.store.outlive_recording();
        if let Some(each) = &self.prober.each {
            each.calls.outlive_recording();
        }
        if let Some(callers) = self.prober.callers {
            callers.outlive_recording();
        }
        self.prober.methods.forget();
        kept_code::set_answered(false);
    }

    fn detach_in_child(&self) {
        self.prober.store.detach_in_child();
        self.prober.lines.store.detach_in_child();
        if let Some(each) = &self.prober.each {
            each.calls.detach_in_child();
        }
        if let Some(callers) = self.prober.callers {
            callers.detach_in_child();
        }
    }
}
