//! `probes`: how often chosen methods are called, how long that takes, and how often an exception ends it.
//!
//! When a module is loaded, the runtime is asked to compile the chosen methods anew (ReJIT), wherever they are called from:
//! precompiled code stays in use for all others, and what had taken a chosen method in is compiled again without it. The methods'
//! new bodies call into this library at their beginning and at each end ([`code`]).
//!
//! | module | what it holds |
//! |---|---|
//! | [`code`] | the code that is put into methods, and the functions that it calls |
//! | [`methods`] | which methods have probes, and which others were compiled anew because of them |
//! | [`undo`] | the methods' own code comes back when the recording is over |
//! | [`store`] | room for the methods' numbers in the recording |

mod code;
mod methods;
mod options;
mod store;
mod undo;

use std::collections::HashMap;
use std::sync::Arc;

use clr_profiler::callback_args::FunctionControl;
use clr_profiler::il::Body;
use clr_profiler::{
    AssemblyId, BodyWriter, BodyWriters, Callbacks, Events, FunctionId, FunctionName, ModuleId, ProfilerInfo, Token,
};
use clrscope_recording::model::{LossReason, ProbedMethod};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::developer_log::{Level, log};
use crate::services::functions::{Functions, is_runtime_helper};
use crate::services::helper::Task;
use crate::services::patterns::ProbePatterns;

use code::Signatures;
use methods::{Method, Methods, Probed};
use store::ProbeStore;
use undo::Undo;

pub(crate) use options::ProbesOptions;

/// Refused methods of a module that are named.
const MOST_NAMED: usize = 20;

/// The running instrument.
pub(crate) struct Probes {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    patterns: Arc<ProbePatterns>,
    store: &'static ProbeStore,
    writers: BodyWriters,
    methods: Arc<Methods>,
}

impl Probes {
    /// Gives the chosen methods of a module probes.
    fn probe(&self, module: ModuleId) {
        let Some((assembly, chosen)) = self.chosen_in(module) else { return };
        if chosen.is_empty() || !self.methods.module_comes(module) {
            return;
        }
        let Ok(about) = self.info.module_info(module) else { return };
        if about.flags.is_collectible() {
            let why = "its assembly can be unloaded, whose methods the runtime does not compile anew";
            let refused: Vec<_> = chosen.into_iter().map(|name| (name.signature, why.to_owned())).collect();
            return self.refuse(&assembly, &refused);
        }
        let (chosen, mut refused) = self.with_code(module, chosen);
        if let Err(error) = self.prepare(module, chosen, &mut refused).and_then(|tokens| self.compile_anew(module, &tokens)) {
            refused.extend(self.withdraw_module(module).map(|signature| (signature, error.to_string())));
        }
        log(Level::Info, || format!("probes: {assembly}: {} methods refused", refused.len()));
        self.refuse(&assembly, &refused);
    }

    /// Assembly of a module and the methods in it that the patterns choose. `None` where the module is not there yet.
    fn chosen_in(&self, module: ModuleId) -> Option<(Arc<str>, Vec<FunctionName>)> {
        let assembly = self.functions.names().assembly(&self.info, module).ok()?;
        let about = self.info.module_info(module).ok()?;
        let is_framework = self.functions.is_framework_module(module, &about.path);
        let may_choose = !about.flags.is_resource() && self.patterns.may_choose_in(&assembly, is_framework);
        let chosen = if may_choose { self.chosen(module, is_framework) } else { Vec::new() };
        Some((assembly, chosen))
    }

    /// Checks that there is a method in a running program that the patterns choose: after probes the runtime does not let the agent
    /// go, so nothing is begun for one that is misspelt.
    fn check_choice(&self) -> Result<(), String> {
        let modules = self.info.modules().map_err(|error| error.to_string())?;
        let chooses = |module| self.chosen_in(module).is_some_and(|(_, chosen)| !chosen.is_empty());
        if modules.into_iter().any(chooses) { Ok(()) } else { Err(self.patterns.nothing_chosen()) }
    }

    /// Methods that the patterns choose.
    fn chosen(&self, module: ModuleId, is_framework: bool) -> Vec<FunctionName> {
        let Ok(metadata) = self.functions.names().metadata(&self.info, module) else { return Vec::new() };
        let types = std::iter::once(Token::new(GLOBAL_TYPE)).chain(metadata.type_defs().unwrap_or_default());
        let methods = types.filter_map(|ty| metadata.methods(ty).ok()).flatten();
        let named = methods.filter_map(|method| self.functions.names().method(&self.info, module, method).ok());
        named.filter(|name| self.patterns.choose(name, is_framework)).collect()
    }

    /// The methods whose code can be changed; the others with a reason.
    fn with_code(&self, module: ModuleId, chosen: Vec<FunctionName>) -> (Vec<FunctionName>, Vec<(String, String)>) {
        let mut refused = Vec::new();
        let metadata = self.functions.names().metadata(&self.info, module).ok();
        let has_code = |method: Token| metadata.as_ref().is_some_and(|metadata| metadata.has_il(method));
        let mut kept = Vec::with_capacity(chosen.len());
        for name in chosen {
            let why = if is_runtime_helper(&name) {
                "compiled code calls it by itself, where no other code may run"
            } else if !has_code(name.token) {
                "it has no code of its own: it is abstract, native, or made by the runtime"
            } else if self.relies_on_tail_calls(&name) {
                "it is always optimised, and ends by calls for which the compiler gives its own stack up"
            } else {
                kept.push(name);
                continue;
            };
            refused.push((name.signature, why.to_owned()));
        }
        (kept, refused)
    }

    /// Whether calls at a method's ends are tail calls each time, without being marked as such: a recursion may rely on that, and
    /// with probes they are plain calls. All other methods run without optimisation first, and so without tail calls.
    fn relies_on_tail_calls(&self, name: &FunctionName) -> bool {
        let metadata = self.functions.names().metadata(&self.info, name.module_id);
        let about = metadata.and_then(|metadata| metadata.method(name.token));
        if !about.is_ok_and(|about| about.impl_flags & AGGRESSIVE_OPTIMIZATION != 0) {
            return false;
        }
        let body = self.info.original_il_function_body(name.module_id, name.token);
        body.is_ok_and(|body| Body::read(&body).is_ok_and(|body| code::ends_by_calls(&body)))
    }

    /// Makes the methods' new bodies, and gives the tokens of those that have one.
    fn prepare(
        &self,
        module: ModuleId,
        chosen: Vec<FunctionName>,
        refused: &mut Vec<(String, String)>,
    ) -> clr_profiler::Result<Vec<Token>> {
        let signatures = Signatures {
            enter: self.info.signature_token(module, code::ENTER)?,
            leave: self.info.signature_token(module, code::LEAVE)?,
        };
        let index = self.functions.module_index(module);
        let records: Vec<_> = chosen
            .iter()
            .map(|name| ProbedMethod {
                module: index,
                token: name.token.as_raw(),
                name: name.name.clone(),
                signature: name.signature.clone(),
                ..ProbedMethod::default()
            })
            .collect();
        let mut tokens = Vec::with_capacity(chosen.len());
        for (name, lanes) in chosen.into_iter().zip(self.store.take(&records)) {
            match lanes {
                Some(lanes) => {
                    tokens.push(name.token);
                    let probed = Probed { signature: name.signature, lanes, signatures, body: None };
                    self.methods.lock().probed.insert((module, name.token), probed);
                }
                None => refused.push((name.signature, "there is no room for its numbers".to_owned())),
            }
        }
        let bodies = self.writers.written_bodies(module, &tokens)?;
        let mut written = Vec::with_capacity(tokens.len());
        for (token, body) in tokens.into_iter().zip(bodies) {
            match body {
                Ok(body) => {
                    let body = body.map(Arc::new);
                    if let Some(probed) = self.methods.lock().probed.get_mut(&(module, token)) {
                        probed.body = body;
                    }
                    written.push(token);
                }
                Err(error) => refused.extend(self.withdraw((module, token)).map(|name| (name, error.to_string()))),
            }
        }
        Ok(written)
    }

    /// Has the methods compiled anew, wherever they are called from.
    fn compile_anew(&self, module: ModuleId, tokens: &[Token]) -> clr_profiler::Result<()> {
        let methods: Vec<Method> = tokens.iter().map(|token| (module, *token)).collect();
        if methods.is_empty() {
            return Ok(());
        }
        self.info.request_rejit_with_inliners(&methods)?;
        if self.methods.are_over() {
            // The recording ended meanwhile, and whoever gave methods their own code back may have been too early for these.
            undo::revert(&self.info, &methods);
        }
        Ok(())
    }

    /// Takes a method's record back, and gives the method's signature: its code has no probes.
    fn withdraw(&self, method: Method) -> Option<String> {
        let probed = self.methods.lock().probed.remove(&method)?;
        probed.lanes.withdraw();
        Some(probed.signature)
    }

    /// Takes the records of all methods of a module back, and gives their signatures.
    fn withdraw_module(&self, module: ModuleId) -> impl Iterator<Item = String> {
        let gone: Vec<Method> = self.methods.lock().probed.keys().filter(|method| method.0 == module).copied().collect();
        gone.into_iter().filter_map(|method| self.withdraw(method))
    }

    /// Notes methods of an assembly that have no probes, and about some of them why.
    fn refuse(&self, assembly: &str, refused: &[(String, String)]) {
        if refused.is_empty() {
            return;
        }
        self.writer.state().lose(LossReason::NotProbed, refused.len() as u64, monotonic_ns());
        for (signature, why) in reasons_in_turn(refused).into_iter().take(MOST_NAMED) {
            self.writer.loss_detail(LossReason::NotProbed, &format!("{assembly}: {signature}: {why}"));
        }
    }
}

/// Methods with the reasons why each was refused, one of each reason before the second of any: a module has hundreds of abstract
/// methods, and they must not hide what keeps thousands of others from being probed.
fn reasons_in_turn(refused: &[(String, String)]) -> Vec<&(String, String)> {
    let mut met: HashMap<&str, u32> = HashMap::new();
    let turn = |one| {
        let (_, why): &(String, String) = one;
        let turn = met.entry(why).or_default();
        *turn += 1;
        (*turn, one)
    };
    let mut ordered: Vec<_> = refused.iter().map(turn).collect();
    ordered.sort_by_key(|(turn, _)| *turn);
    ordered.into_iter().map(|(_, one)| one).collect()
}

/// Token of the type `<Module>`, which has the methods outside of types and is in no list of types.
const GLOBAL_TYPE: u32 = 0x0200_0001;
/// `miAggressiveOptimization`: no code without optimisation first.
const AGGRESSIVE_OPTIMIZATION: u32 = 0x200;

impl Callbacks for Probes {
    /// Modules that are there already; one that comes meanwhile may be told of twice.
    fn profiler_attach_complete(&self) {
        self.info.modules().unwrap_or_default().into_iter().for_each(|module| self.probe(module));
    }

    /// Before this the assembly has no name, and after this its methods are compiled.
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.probe(module);
    }

    fn get_rejit_parameters(
        &self,
        module: ModuleId,
        method: Token,
        control: &FunctionControl<'_>,
    ) -> clr_profiler::Result<()> {
        // A method that had taken in a probed one is compiled anew as it is.
        let Some(body) = self.methods.body_of((module, method)) else { return Ok(()) };
        // SAFETY: the body is the method's own with calls of functions as their signatures say, at its beginning and at its
        // ends, which use a local variable of their own and leave the stack as it was.
        unsafe { control.set_il_function_body(&body.bytes)? };
        control.set_il_map(&body.moves)
    }

    fn rejit_error(&self, module: ModuleId, method: Token, _function: FunctionId, status: clr_profiler::Result<()>) {
        let Err(error) = status else { return };
        if let Some(signature) = self.withdraw((module, method)) {
            let assembly = self.functions.names().assembly(&self.info, module).unwrap_or_default();
            self.refuse(&assembly, &[(signature, error.to_string())]);
        }
    }

    /// The records stay: they say how often the methods were called.
    fn module_unload_started(&self, module: ModuleId) {
        self.methods.module_goes(module);
    }
}

impl Instrument for Probes {
    type Options = ProbesOptions;

    fn start(_options: &ProbesOptions, context: &Context) -> Result<Self, String> {
        let methods = Arc::<Methods>::default();
        let probes = Self {
            info: context.info.clone(),
            writer: context.writer,
            functions: Arc::clone(&context.functions),
            patterns: Arc::clone(&context.probes),
            store: Box::leak(Box::new(ProbeStore::create(context)?)),
            writers: BodyWriters::new(&context.info).with(Arc::clone(&methods) as Arc<dyn BodyWriter>),
            methods,
        };
        if context.beginning == Beginning::Attach {
            probes.check_choice()?;
        }
        Ok(probes)
    }

    fn events(&self) -> Events {
        Events::MODULE_LOADS | Events::ENABLE_REJIT
    }

    /// Room is asked for when a module is loaded.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![self.store.task(), Box::new(Undo::new(&self.info, &self.methods))]
    }

    fn outlive_recording(&self) {
        self.store.outlive_recording();
    }

    fn detach_in_child(&self) {
        self.store.detach_in_child();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_many_methods_have_does_not_hide_the_others() {
        let many = (0..30).map(|number| (format!("Abstract{number}"), "it has no code".to_owned()));
        let refused: Vec<_> = many.chain([("Late".to_owned(), "the recording was over".to_owned())]).collect();
        let named: Vec<&str> = reasons_in_turn(&refused).iter().map(|(signature, _)| signature.as_str()).collect();
        assert_eq!(named[..3], ["Abstract0", "Late", "Abstract1"]);
        assert_eq!(named.len(), refused.len());
    }
}
