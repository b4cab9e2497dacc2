//! Chooses methods by patterns, and adds and removes their probes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::il::Body;
use clr_profiler::{BodyWriter, BodyWriters, FunctionName, ModuleId, ProfilerInfo, Token};
use clrscope_contract::request::Pattern;
use clrscope_recording::model::{LossReason, ProbedMethod};
use clrscope_recording::writer::{Answer, ProcessWriter};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::functions::{Functions, is_runtime_helper};
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_agent_base::patterns::ProbePatterns;

use super::callers::{CallerSignatures, Callers};
use super::code::{self, Signatures};
use super::each::{EachCall, EachSignatures};
use crate::services::fixed_modules::{FixedModules, reason};
use crate::services::{kept_code, own_code};
use super::lines::Lines;
use super::methods::{Method, Methods, MethodProbes, Standing};
use super::options::ProbesOptions;
use super::store::ProbeStore;
use crate::services::context::Context;
use crate::services::refused_methods::note_refused;

/// Token of the type `<Module>`, which holds the methods outside of types and is not listed among
/// the types.
const GLOBAL_TYPE: u32 = 0x0200_0001;
/// Reason why a method that compiled code itself calls has no probes.
pub(super) const RUNTIME_HELPER: &str = "compiled code calls it by itself, where no other code may run";
/// `miAggressiveOptimization`: the method is optimised from its first call on.
const AGGRESSIVE_OPTIMIZATION: u32 = 0x200;

/// Adds and removes probes. Callbacks and threads of the agent's own call it.
pub(super) struct Prober {
    pub(super) info: ProfilerInfo,
    writer: &'static ProcessWriter,
    pub(super) functions: Arc<Functions>,
    patterns: Mutex<ProbePatterns>,
    pub(super) lines: Lines,
    pub(super) store: &'static ProbeStore,
    pub(super) writers: BodyWriters,
    /// Whether another instrument may have changed the code of methods without probes.
    pub(super) has_changed_at_load: bool,
    pub(super) methods: Arc<Methods>,
    /// Modules whose methods can't get probes.
    pub(super) fixed: FixedModules,
    /// Records each call; `None` if calls are not recorded singly.
    pub(super) each: Option<EachCall>,
    /// Counts calls by callers; `None` if this was not requested.
    pub(super) callers: Option<&'static Callers>,
    /// Number of the next method whose calls or callers are recorded.
    next_number: AtomicU32,
}

impl Prober {
    /// Creates a prober without any probes.
    ///
    /// # Errors
    /// A sentence for the user, if there is no room for numbers.
    pub(super) fn new(options: &ProbesOptions, context: &Context) -> Result<Self, String> {
        let methods = Arc::<Methods>::default();
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            functions: Arc::clone(&context.functions),
            patterns: Mutex::new(context.probes.clone()),
            lines: Lines::new(&context.probe_lines, context.writer),
            store: keep(ProbeStore::create(context)?),
            writers: context.code_authors.for_recompilation(&context.info, Arc::clone(&methods) as Arc<dyn BodyWriter>),
            has_changed_at_load: context.code_authors.change_at_load(),
            methods,
            fixed: FixedModules::new(),
            each: options.each.map(|each| EachCall::start(&each, context)).transpose()?,
            callers: options.callers.map(|frames| Callers::publish(context, frames)).transpose()?,
            next_number: AtomicU32::new(1),
        })
    }

    /// Adds probes to the methods that a pattern matches, also in modules that are loaded later. To
    /// be called on a thread that the runtime knows.
    pub(super) fn add(&self, pattern: &Pattern) -> Answer {
        let only = self.patterns().only(pattern);
        if !self.is_any_chosen(&only) {
            return Answer::NoMethod;
        }
        self.change_patterns(|patterns| patterns.and(pattern, true));
        self.probe_all();
        let again = self.methods.put_back(pattern);
        if let Err(error) = self.write_lined(&again).and_then(|()| self.recompile(&again)) {
            log(Level::Warn, || format!("probes: {} methods stay without: {error}", again.len()));
            self.methods.take_out(pattern);
            return Answer::Failed;
        }
        match self.methods.count(pattern) {
            0 => Answer::Failed,
            count => Answer::Changed(count),
        }
    }

    /// Removes the probes of the methods that a pattern matches. To be called on a thread that the
    /// runtime knows.
    pub(super) fn remove(&self, pattern: &Pattern) -> Answer {
        self.change_patterns(|patterns| patterns.and(pattern, false));
        let removed = self.methods.take_out(pattern);
        if removed.is_empty() {
            return Answer::NoMethod;
        }
        // Methods are reverted only when no method has probes any more. Until then the original
        // code of one may have inlined a method that still has probes.
        if let Some(all) = self.methods.all_unless_probed() {
            own_code::revert(&self.info, "probes", &all);
        } else if let Err(error) = self.write_lined(&removed).and_then(|()| self.compile_plain(&removed)) {
            log(Level::Warn, || format!("probes: {} methods keep theirs: {error}", removed.len()));
            self.methods.put_back(pattern);
            return Answer::Failed;
        }
        Answer::Changed(removed.len() as u32)
    }

    /// Adds probes to the chosen methods of all modules.
    pub(super) fn probe_all(&self) {
        self.info.modules().unwrap_or_default().into_iter().for_each(|module| self.probe(module));
    }

    /// Adds probes to the chosen methods of a module, and counters to its wanted lines.
    pub(super) fn probe(&self, module: ModuleId) {
        self.probe_methods(module);
        self.probe_lines(module);
    }

    /// Adds probes to the chosen methods of a module, unless they got probes or were refused
    /// before.
    fn probe_methods(&self, module: ModuleId) {
        let Some((assembly, mut chosen)) = self.chosen_in(module, &self.patterns()) else { return };
        chosen.retain(|name| self.methods.claim((module, name.token)));
        if chosen.is_empty() {
            return;
        }
        if let Some(why) = self.fixed.why(&self.info, self.functions.names(), module) {
            let refused: Vec<_> = chosen.into_iter().map(|name| (name.signature, why.to_owned())).collect();
            return self.refuse(&assembly, &refused);
        }
        let (chosen, mut refused) = self.with_code(module, chosen);
        if let Err(error) = self.prepare(module, chosen, &mut refused).and_then(|methods| self.recompile(&methods)) {
            refused.extend(self.withdraw_module(module).map(|signature| (signature, reason(&error))));
        }
        log(Level::Info, || format!("probes: {assembly}: {} methods refused", refused.len()));
        self.refuse(&assembly, &refused);
    }

    /// The patterns as they are now.
    fn patterns(&self) -> ProbePatterns {
        self.lock_patterns().clone()
    }

    fn change_patterns(&self, change: impl FnOnce(&ProbePatterns) -> ProbePatterns) {
        let mut patterns = self.lock_patterns();
        *patterns = change(&patterns);
    }

    fn lock_patterns(&self) -> MutexGuard<'_, ProbePatterns> {
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assembly of a module and the methods in it that patterns choose. `None` if the module is not
    /// ready yet.
    fn chosen_in(&self, module: ModuleId, patterns: &ProbePatterns) -> Option<(Arc<str>, Vec<FunctionName>)> {
        let assembly = self.functions.names().assembly(&self.info, module).ok()?;
        let about = self.info.module_info(module).ok()?;
        let is_framework = self.functions.is_framework_module(module, &about.path);
        let may_choose = !about.flags.is_resource() && patterns.may_choose_in(&assembly, is_framework);
        let chosen = if may_choose { self.chosen(module, patterns, is_framework) } else { Vec::new() };
        Some((assembly, chosen))
    }

    /// Checks that a running program has a method that the patterns choose, or a wanted line. A
    /// misspelt name must not start a recording, because the runtime does not detach the agent any
    /// more once there were probes.
    pub(super) fn check_choice(&self) -> Result<(), String> {
        let (patterns, missed) = (self.patterns(), self.missed_lines());
        if self.is_any_chosen(&patterns) || (missed.is_empty() && !self.lines.is_empty()) {
            return Ok(());
        }
        let methods = (!patterns.is_empty()).then(|| patterns.nothing_chosen());
        let lines = missed.iter().map(|missed| format!("--probe-at {}: {missed}", missed.line));
        Err(methods.into_iter().chain(lines).collect::<Vec<_>>().join("; "))
    }

    /// Whether patterns choose a method in a loaded module.
    fn is_any_chosen(&self, patterns: &ProbePatterns) -> bool {
        let chooses = |module| self.chosen_in(module, patterns).is_some_and(|(_, chosen)| !chosen.is_empty());
        self.info.modules().unwrap_or_default().into_iter().any(chooses)
    }

    /// Methods that patterns choose.
    fn chosen(&self, module: ModuleId, patterns: &ProbePatterns, is_framework: bool) -> Vec<FunctionName> {
        let Ok(metadata) = self.functions.names().metadata(&self.info, module) else { return Vec::new() };
        let types = std::iter::once(Token::new(GLOBAL_TYPE)).chain(metadata.type_defs().unwrap_or_default());
        let methods = types.filter_map(|ty| metadata.methods(ty).ok()).flatten();
        let named = methods.filter_map(|method| self.functions.names().method(&self.info, module, method).ok());
        named.filter(|name| patterns.choose(name, is_framework)).collect()
    }

    /// The methods whose code can be changed, and the others with a reason.
    fn with_code(&self, module: ModuleId, chosen: Vec<FunctionName>) -> (Vec<FunctionName>, Vec<(String, String)>) {
        let mut refused = Vec::new();
        let metadata = self.functions.names().metadata(&self.info, module).ok();
        let has_code = |method: Token| metadata.as_ref().is_some_and(|metadata| metadata.has_il(method));
        let mut kept = Vec::with_capacity(chosen.len());
        for name in chosen {
            let why = if is_runtime_helper(&name) {
                RUNTIME_HELPER
            } else if !has_code(name.token) {
                "it has no code of its own: it is abstract, native, or made by the runtime"
            } else if kept_code::is_kept((module, name.token)) {
                kept_code::WHY
            } else if self.relies_on_tail_calls(&name) {
                "it is always optimised, and ends with tail calls, which a probe would prevent"
            } else {
                kept.push(name);
                continue;
            };
            refused.push((name.signature, why.to_owned()));
        }
        (kept, refused)
    }

    /// Whether calls at a method's ends are always tail calls, without being marked as such. A
    /// recursion may rely on that, but with probes they are plain calls. All other methods first
    /// run without optimisation, and so without tail calls.
    fn relies_on_tail_calls(&self, name: &FunctionName) -> bool {
        let metadata = self.functions.names().metadata(&self.info, name.module_id);
        let about = metadata.and_then(|metadata| metadata.method(name.token));
        if !about.is_ok_and(|about| about.impl_flags & AGGRESSIVE_OPTIMIZATION != 0) {
            return false;
        }
        let body = self.info.original_il_function_body(name.module_id, name.token);
        body.is_ok_and(|body| Body::read(&body).is_ok_and(|body| code::ends_by_calls(&body)))
    }

    /// Makes the methods' new bodies, and returns the methods that have one.
    fn prepare(
        &self,
        module: ModuleId,
        chosen: Vec<FunctionName>,
        refused: &mut Vec<(String, String)>,
    ) -> clr_profiler::Result<Vec<Method>> {
        let signatures = Signatures {
            enter: self.info.signature_token(module, code::ENTER)?,
            leave: self.info.signature_token(module, code::LEAVE)?,
        };
        let each = match &self.each {
            Some(each) => {
                let metadata = self.functions.names().metadata(&self.info, module)?;
                Some((each, EachSignatures::make(&self.info, module)?, metadata))
            }
            None => None,
        };
        let callers = match self.callers {
            Some(callers) => Some((callers, CallerSignatures::make(&self.info, module)?)),
            None => None,
        };
        let index = self.functions.module_index(module);
        let is_numbered = each.is_some() || callers.is_some();
        let number = || if is_numbered { self.next_number.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let records: Vec<_> = chosen
            .iter()
            .map(|name| ProbedMethod {
                module: index,
                token: name.token.as_raw(),
                name: name.name.clone(),
                signature: name.signature.clone(),
                number: number(),
                ..ProbedMethod::default()
            })
            .collect();
        let mut methods = Vec::with_capacity(chosen.len());
        for ((name, record), lanes) in chosen.into_iter().zip(&records).zip(self.store.allocate_lanes(&records)) {
            match lanes {
                Some(lanes) => {
                    let method = (module, name.token);
                    methods.push(method);
                    let each = each.as_ref().map(|(each, signatures, metadata)| {
                        let typed = each.type_tokens(&self.info, method, metadata);
                        (each.method(record.number, lanes, typed), *signatures)
                    });
                    let called = callers.map(|(callers, signatures)| (callers.method(record.number, lanes), signatures));
                    let (name, standing) = (name.into(), Standing::Probed);
                    let probed = MethodProbes { name, lanes, signatures, each, called, is_ready: false, standing };
                    self.methods.lock().probed.insert(method, probed);
                }
                None => refused.push((name.signature, "there is no room for its numbers".to_owned())),
            }
        }
        let failed = self.write_bodies(&methods)?;
        methods.retain(|method| !failed.iter().any(|(of, _)| of == method));
        for (method, error) in failed {
            refused.extend(self.withdraw_calls(method).map(|name| (name, reason(&error))));
        }
        self.methods.are_ready(&methods);
        Ok(methods)
    }

    /// Writes the bodies of methods with their current probes. Returns the methods whose body could
    /// not be written, with the reasons. These methods keep the body that they have.
    pub(super) fn write_bodies(&self, methods: &[Method]) -> clr_profiler::Result<Vec<(Method, clr_profiler::Error)>> {
        let mut failed = Vec::new();
        for of_module in methods.chunk_by(|a, b| a.0 == b.0) {
            let tokens: Vec<Token> = of_module.iter().map(|method| method.1).collect();
            let bodies = self.writers.written_bodies(of_module[0].0, &tokens)?;
            for (method, body) in of_module.iter().zip(bodies) {
                match body {
                    Ok(body) => self.methods.set_body(*method, body),
                    Err(error) => failed.push((*method, error)),
                }
            }
        }
        Ok(failed)
    }

    /// Rewrites the bodies of the methods that have, or had, counted lines: these bodies change
    /// with the other probes.
    pub(super) fn write_lined(&self, methods: &[Method]) -> clr_profiler::Result<()> {
        match self.write_bodies(&self.methods.lined_of(methods))?.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Has methods recompiled with their current probes, for all callers.
    pub(super) fn recompile(&self, methods: &[Method]) -> clr_profiler::Result<()> {
        if methods.is_empty() {
            return Ok(());
        }
        self.info.request_rejit_with_inliners(methods)?;
        if self.methods.are_over() {
            // The recording ended meanwhile, and the code that reverts methods may have run too
            // early for these.
            own_code::revert(&self.info, "probes", methods);
        }
        Ok(())
    }

    /// Has methods recompiled from their own code. Code of probed methods is not inlined into them.
    pub(super) fn compile_plain(&self, methods: &[Method]) -> clr_profiler::Result<()> {
        self.info.request_rejit(methods)?;
        if self.methods.are_over() {
            own_code::revert(&self.info, "probes", methods);
        }
        Ok(())
    }

    /// Withdraws a method's record of calls, since its code has no probes for calls. Returns the
    /// method's signature.
    pub(super) fn withdraw_calls(&self, method: Method) -> Option<String> {
        let probed = self.methods.lock().probed.remove(&method)?;
        probed.lanes.withdraw();
        Some(probed.name.signature)
    }

    /// Withdraws the records of all methods of a module, and returns the methods' signatures.
    fn withdraw_module(&self, module: ModuleId) -> impl Iterator<Item = String> {
        let gone: Vec<Method> = self.methods.lock().probed.keys().filter(|method| method.0 == module).copied().collect();
        gone.into_iter().filter_map(|method| self.withdraw_calls(method))
    }

    /// Notes in the recording the methods of an assembly that could not get probes, with the reason
    /// for some of them.
    pub(super) fn refuse(&self, assembly: &str, refused: &[(String, String)]) {
        note_refused(self.writer, LossReason::NotProbed, assembly, refused);
    }
}
