//! `probes`: how often chosen methods are called, how long that takes, and how often an exception ends it; and how often chosen lines
//! are reached.
//!
//! When a module is loaded, the runtime is asked to compile the chosen methods anew (ReJIT), wherever they are called from:
//! precompiled code stays in use for all others, and what had taken a chosen method in is compiled again without it. The methods'
//! new bodies call into this library at their beginning and at each end ([`code`]). While the recording goes on, commands from
//! outside choose more methods, or fewer.
//!
//! | module | what it holds |
//! |---|---|
//! | [`code`] | the code that is put into methods, and the functions that it calls |
//! | [`prober`] | which methods are chosen, and how they get probes and lose them |
//! | [`line_prober`] | how lines get counters and lose them |
//! | [`lines`] | which lines are wanted |
//! | [`line_search`] | where lines are in the methods of an assembly, by its PDB |
//! | [`line_code`] | the code that counts a line |
//! | [`lined`], [`line_table`] | which lines of which methods are counted |
//! | [`line_store`] | room for the counters of lines in the recording |
//! | [`commands`] | commands from outside to give more methods probes, or to take them away |
//! | [`methods`] | which methods have probes, and which others were compiled anew because of them |
//! | [`undo`] | the methods' own code comes back when the recording is over |
//! | [`store`] | room for the methods' numbers in the recording |

mod code;
mod commands;
mod line_code;
mod line_prober;
mod line_search;
mod line_store;
mod line_table;
mod lined;
mod lines;
mod methods;
mod options;
mod prober;
mod store;
mod undo;

use std::sync::Arc;

use clr_profiler::callback_args::FunctionControl;
use clr_profiler::{AssemblyId, Callbacks, Events, FunctionId, ModuleId, Token};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::helper::Task;

use commands::Commands;
use prober::Prober;
use undo::Undo;

pub(crate) use options::ProbesOptions;

/// The running instrument.
pub(crate) struct Probes(Arc<Prober>);

impl Callbacks for Probes {
    /// Modules that are there already; one that comes meanwhile may be told of twice.
    fn profiler_attach_complete(&self) {
        self.0.probe_all();
    }

    /// Before this the assembly has no name, and after this its methods are compiled.
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.0.probe(module);
    }

    fn get_rejit_parameters(
        &self,
        module: ModuleId,
        method: Token,
        control: &FunctionControl<'_>,
    ) -> clr_profiler::Result<()> {
        // A method that had taken in a probed one is compiled anew as it is.
        let Some(body) = self.0.methods.body_of((module, method)) else { return Ok(()) };
        // SAFETY: the body is the method's own with calls of functions as their signatures say, at its beginning and at its
        // ends, and with additions to memory that is mapped for ever, at places of lines. Both use local variables of their own and
        // leave the stack as it was.
        unsafe { control.set_il_function_body(&body.bytes)? };
        control.set_il_map(&body.moves)
    }

    fn rejit_error(&self, module: ModuleId, method: Token, _function: FunctionId, status: clr_profiler::Result<()>) {
        if let Err(error) = status {
            self.0.not_compiled((module, method), &error);
        }
    }

    /// The records stay: they say how often the methods were called.
    fn module_unload_started(&self, module: ModuleId) {
        self.0.methods.module_goes(module);
    }
}

impl Instrument for Probes {
    type Options = ProbesOptions;

    fn start(_options: &ProbesOptions, context: &Context) -> Result<Self, String> {
        let prober = Prober::new(context)?;
        if context.beginning == Beginning::Attach {
            prober.check_choice()?;
        }
        Ok(Self(Arc::new(prober)))
    }

    fn events(&self) -> Events {
        Events::MODULE_LOADS | Events::ENABLE_REJIT
    }

    /// Room is asked for when a module is loaded.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let stores = [self.0.store.task(), self.0.lines.store.task()];
        let others: [Box<dyn Task>; 2] = [Box::new(Commands::new(&self.0)), Box::new(Undo::new(&self.0.info, &self.0.methods))];
        stores.into_iter().chain(others).collect()
    }

    fn outlive_recording(&self) {
        self.0.store.outlive_recording();
        self.0.lines.store.outlive_recording();
        self.0.methods.forget();
    }

    fn detach_in_child(&self) {
        self.0.store.detach_in_child();
        self.0.lines.store.detach_in_child();
    }
}
