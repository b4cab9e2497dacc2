//! `coverage`: which lines and branches of the program's own assemblies run, and how often.
//!
//! When a module with symbols is loaded, each of its methods gets counters. The counters tell the
//! hits of every point and branch of the method's plan (crate `clrscope-coverage`). The method also
//! gets a body in which its own code adds to the counters: no call, no lock, no hook. Counters lie
//! in the recording itself, so nothing is lost however the program ends. Precompiled code of those
//! modules is not used.
//!
//! With `hits=off` a counter is a byte that is set once. Whenever the runtime recompiles the
//! method, the method gets a body without the counters that are set already.
//!
//! | module | what it holds |
//! |---|---|
//! | [`covered`] | the modules with counters, and their methods |
//! | [`instrumentation`] | a method's counters, and the code that adds to them |
//! | [`counters`] | room for the counters in the recording |

mod counters;
mod covered;
mod options;
mod instrumentation;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clr_profiler::il::Edits;
use clr_profiler::{
    AssemblyId, BodyWriter, BodyWriters, Callbacks, Events, FunctionId, MethodToWrite, ModuleId, ProfilerInfo, Token,
};
use clrscope_coverage::{CounterPlan, MethodPlan, NoPlan, Opener};
use clrscope_recording::model::{CounterSums, LossReason, MethodHits};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::functions::{Functions, beside_program};
use clrscope_agent_base::helper::Task;

use crate::instrument::Instrument;
use crate::services::context::Context;

use counters::Counters;
use covered::{CoveredModule, CoveredModules};
use instrumentation::InstrumentedMethod;

pub(crate) use options::CoverageOptions;

/// End of the path of the runtime's core library.
const CORE: &str = "System.Private.CoreLib.dll";

/// Most refused methods of a module that are named.
const MOST_NAMED: usize = 20;

/// The instrument `coverage` while it runs.
pub(crate) struct Coverage {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    /// Held while files are read, never while the runtime is queried.
    opener: Mutex<Opener>,
    /// File of the core library, where plans need it; the runtime loads this library before all
    /// others.
    core: OnceLock<PathBuf>,
    needs_core: bool,
    /// Names of the assemblies that were loaded from memory.
    from_memory: Mutex<HashSet<String>>,
    counters: &'static Counters,
    modules: Arc<CoveredModules>,
    writers: BodyWriters,
    counts_hits: bool,
}

/// Author of the code that adds to counters.
struct Author(Arc<CoveredModules>);

impl BodyWriter for Author {
    fn edits(&self, method: &MethodToWrite<'_>) -> clr_profiler::Result<Edits> {
        let instrumented = self.0.method(method.module, method.token);
        Ok(instrumented.map_or_else(Edits::new, |instrumented| instrumented.edits(method.body)))
    }
}

impl Coverage {
    /// Gives the methods of a module counters, if the module is to be covered.
    fn cover(&self, module: ModuleId) {
        let Ok(about) = self.info.module_info(module) else { return };
        if self.needs_core && self.core.get().is_none() && about.path.ends_with(CORE) {
            // When the plans are made again, it is looked up among the modules.
            self.functions.module_index(module);
            let _ = self.core.set(beside_program(about.path).into());
            return;
        }
        if about.flags.is_dynamic() || about.flags.is_resource() || (!self.functions.names_functions() && self.functions.is_framework_module(module, &about.path)) {
            return;
        }
        let has_folder = about.path.contains('/');
        let path = beside_program(about.path);
        let core = self.core.get().map(PathBuf::as_path);
        let opened = self.opener.lock().unwrap_or_else(PoisonError::into_inner).open(path.as_ref(), core);
        let symbols = match opened {
            Ok(symbols) => symbols,
            Err(NoPlan::Unreadable) if !has_folder => return self.refuse_memory(module, &path),
            Err(why) => return log(Level::Info, || format!("coverage: {path} is left out: {why}")),
        };
        // For covered and other modules: readers take a module that the recording does not name for
        // never loaded.
        let index = self.functions.module_index(module);
        let is_named = self.functions.names_functions();
        if !is_named && (symbols.is_test_project() || !symbols.has_sources()) {
            return log(Level::Info, || format!("coverage: {path} holds tests, or was written elsewhere"));
        }
        let plans = symbols.methods().filter_map(|token| symbols.plan(token));
        let plans: Vec<_> =
            plans.filter(|plan| self.functions.passes_method(module, Token::new(plan.token))).collect();
        if plans.is_empty() {
            return log(Level::Info, || format!("coverage: {path} has no method to be covered"));
        }
        let places: Vec<_> = plans.iter().map(|plan| symbols.counters(plan)).collect();
        let record = |(plan, counters): (&MethodPlan, &CounterPlan)| {
            let about = MethodHits {
                module: index,
                token: plan.token,
                fingerprint: plan.fingerprint(),
                points: plan.points.len() as u32,
                branches: plan.branches.len() as u32,
                counted: self.counts_hits,
                hits: Vec::new(),
            };
            (about, CounterSums::new(counters.places.len(), &counters.sums))
        };
        let methods: Vec<_> = plans.iter().zip(&places).map(record).collect();
        let Some(counters) = self.counters.allocate(&methods) else {
            return self.refuse(&path, methods.len(), ["there is no room for the counters of any of its methods".into()]);
        };
        let methods = plans.iter().zip(places).zip(counters).map(|((plan, places), counters)| {
            (Token::new(plan.token), Arc::new(InstrumentedMethod::new(places, counters, self.counts_hits)))
        });
        let covered = CoveredModule::new(methods);
        let tokens = covered.tokens();
        self.modules.insert(module, covered);
        // SAFETY: stores to memory that is mapped for ever, and additions to it, are right in every
        // method: they leave the stack as it was and use nothing of the method.
        match unsafe { self.writers.write_methods(module, &tokens) } {
            Ok(written) => {
                log(Level::Info, || format!("coverage: {}: {} methods, {} refused", path, written.changed, written.refused.len()));
                for (method, _) in &written.refused {
                    self.modules.withdraw(module, *method);
                }
                let words = written.refused.iter().take(MOST_NAMED).map(|(method, error)| {
                    let name = self.functions.names().method(&self.info, module, *method);
                    let name = name.map_or_else(|_| format!("{:#x}", method.as_raw()), |name| name.signature);
                    format!("{name}: {error}")
                });
                self.refuse(&path, written.refused.len(), words);
            }
            Err(error) => {
                self.modules.remove(module).iter().for_each(|module| module.withdraw());
                self.refuse(&path, tokens.len(), [error.to_string()]);
            }
        }
    }

    /// Notes the methods of a module that was loaded from memory: where its symbols are is unknown.
    fn refuse_memory(&self, module: ModuleId, path: &str) {
        let names = self.functions.names();
        let Ok(metadata) = names.metadata(&self.info, module) else { return };
        let types = metadata.type_defs().unwrap_or_default();
        let methods = types.into_iter().flat_map(|of| metadata.methods(of).unwrap_or_default());
        let methods = methods.filter(|method| metadata.has_il(*method));
        let count = methods.filter(|method| self.functions.passes_method(module, *method)).count();
        let name = names.assembly(&self.info, module).map_or_else(|_| path.to_owned(), |name| name.to_string());
        // A program may load the same assembly again and again.
        let is_new = self.from_memory.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        let words = is_new.then(|| "it was loaded from memory, not from a file that has symbols".to_owned());
        self.refuse(&name, count, words);
    }

    /// Notes methods of the module at `path` that have no counters, with a few words about some.
    fn refuse(&self, path: &str, methods: usize, words: impl IntoIterator<Item = String>) {
        if methods == 0 {
            return;
        }
        self.writer.state().lose(LossReason::NotCovered, methods as u64, monotonic_ns());
        let file = path.rsplit('/').next().unwrap_or(path);
        for text in words {
            self.writer.loss_detail(LossReason::NotCovered, &format!("{file}: {text}"));
        }
    }

    /// A covered method is about to be compiled.
    fn compiles(&self, function: FunctionId) -> clr_profiler::Result<()> {
        let (_, module, token) = self.info.function_place(function)?;
        let Some(method) = self.modules.method(module, token) else { return Ok(()) };
        if method.is_compiled_first() {
            self.info.set_il_map(function, &self.writers.moves(module, token)?)?;
        }
        if method.can_leave_out_more() {
            // SAFETY: as in `cover`; the code of counters that have fired became the same length of
            // code that does nothing, so every body of the method has the other instructions at the
            // same offsets.
            unsafe { self.writers.rewrite(module, token)? };
        }
        Ok(())
    }
}

impl Callbacks for Coverage {
    /// Before this callback the assembly has no name, and after it the methods are compiled.
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.cover(module);
    }

    fn module_unload_started(&self, module: ModuleId) {
        self.modules.remove(module);
    }

    /// Precompiled code has no counters.
    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        let module = self.info.function_place(function).map(|(_, module, _)| module);
        !module.is_ok_and(|module| self.modules.has(module))
    }

    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        if let Err(error) = self.compiles(function) {
            log(Level::Warn, || format!("coverage: a method that is compiled: {error}"));
        }
    }
}

impl Instrument for Coverage {
    type Options = CoverageOptions;

    fn start(options: &CoverageOptions, context: &Context) -> Result<Self, String> {
        let modules = Arc::<CoveredModules>::default();
        let writers = context.code_authors.at_load(&context.info, Arc::new(Author(Arc::clone(&modules))));
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            functions: Arc::clone(&context.functions),
            opener: Mutex::new(Opener::new(options.plans.clone())),
            core: OnceLock::new(),
            needs_core: options.plans.needs_framework(),
            from_memory: Mutex::default(),
            counters: Box::leak(Box::new(Counters::create(context)?)),
            modules,
            writers,
            counts_hits: options.counts_hits,
        })
    }

    fn events(&self) -> Events {
        Events::MODULE_LOADS | Events::JIT_COMPILATION | Events::CACHE_SEARCHES
    }

    /// Room is requested when a module is loaded.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![self.counters.task()]
    }

    fn detach_in_child(&self) {
        self.counters.detach_in_child();
    }
}
