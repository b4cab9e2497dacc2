//! Changes the methods of the libraries that report requests.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{BodyWriter, BodyWriters, FunctionId, ModuleId, ProfilerInfo};
use clrscope_agent_base::functions::Functions;
use clrscope_contract::async_code::CORE_LIBRARY;
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::ProcessWriter;

use super::author::Author;
use super::members::NOT_AS_KNOWN;
use super::traces::ACTIVITIES;
use super::{commands, locals, made, served};
use crate::services::changed_methods::{Belongs, change_methods};
use crate::services::context::Context;
use crate::services::fixed_modules::reason;
use crate::services::kept_code::{self, Method};
use crate::services::own_code;
use crate::services::refused_methods::{Refused, note_refused};

/// Changes the libraries that report requests. Callbacks call it.
pub(super) struct Follower {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    author: Arc<Author>,
    writers: BodyWriters,
    /// Modules that were examined: a module may be reported twice, on two threads.
    claimed: Mutex<HashSet<ModuleId>>,
    switching: Arc<SwitchingMethods>,
}

/// Methods with changed code that give threads another context. Nothing that begins in them
/// continues in them later, so they can get their own code back.
#[derive(Default)]
pub(super) struct SwitchingMethods(Mutex<Vec<Method>>);

impl SwitchingMethods {
    fn add(&self, methods: &[Method]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(methods);
    }

    /// Restores the methods' own code, once.
    pub(super) fn revert(&self, info: &ProfilerInfo) {
        let methods = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        methods.iter().for_each(|method| kept_code::forget_body(*method));
        own_code::revert(info, "requests", &methods);
    }
}

impl Follower {
    pub(super) fn new(context: &Context) -> Self {
        let author = Author::new();
        Self {
            info: context.info.clone(),
            writer: context.writer,
            functions: Arc::clone(&context.functions),
            writers: context.code_authors.for_recompilation(&context.info, Arc::clone(&author) as Arc<dyn BodyWriter>),
            author,
            claimed: Mutex::default(),
            switching: Arc::default(),
        }
    }

    /// The methods whose own code can be restored.
    pub(super) fn switching(&self) -> Arc<SwitchingMethods> {
        Arc::clone(&self.switching)
    }

    fn claim(&self, module: ModuleId) -> bool {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(module)
    }

    /// Recompiles the methods of a module that report requests, unless they are recompiled already.
    pub(super) fn follow(&self, module: ModuleId) {
        let Ok(assembly) = self.functions.names().assembly(&self.info, module) else { return };
        let is_known = [served::LIBRARY, made::LIBRARY].contains(&&*assembly);
        if !(is_known || self.names_commands(module, &assembly)) || !self.claim(module) {
            return;
        }
        if &*assembly == served::LIBRARY {
            self.follow_contexts();
        }
        self.change_all(module, &assembly);
    }

    /// Whether a module may have database commands.
    fn names_commands(&self, module: ModuleId, assembly: &str) -> bool {
        let metadata = || self.functions.names().metadata(&self.info, module).ok();
        commands::may_have_commands(assembly) && metadata().is_some_and(|metadata| commands::base(&metadata).is_some())
    }

    /// Recompiles the methods that give threads another context, now that there are requests to
    /// serve.
    fn follow_contexts(&self) {
        let names = self.functions.names();
        let is_core = |module: &ModuleId| names.assembly(&self.info, *module).is_ok_and(|name| &*name == CORE_LIBRARY);
        let modules = self.info.modules().unwrap_or_default();
        if let Some(core) = modules.into_iter().find(is_core).filter(|core| self.claim(*core)) {
            self.change_all(core, CORE_LIBRARY);
        }
    }

    fn change_all(&self, module: ModuleId, assembly: &str) {
        let refused = match self.change(module, assembly) {
            Ok(refused) => refused,
            Err(error) => vec![(assembly.to_string(), reason(&error))],
        };
        note_refused(self.writer, LossReason::RequestsNotFollowed, assembly, &refused);
    }

    /// Changes methods of a module. Returns the methods that stay unchanged, each with the reason.
    fn change(&self, module: ModuleId, assembly: &str) -> clr_profiler::Result<Refused> {
        let metadata = self.functions.names().metadata(&self.info, module)?;
        let methods = self.author.prepare((&self.info, module), assembly, &metadata)?;
        let belongs = if self.author.are_alone(module) { Belongs::Alone } else { Belongs::Together };
        let outcome = change_methods(&self.info, &self.writers, module, (methods, belongs))?;
        let refused = outcome.refused.iter().map(|(method, error)| (self.name(*method), reason(error)));
        let (changed, refused) = (outcome.changed, refused.collect());
        if self.author.switches_threads(module) {
            self.switching.add(&changed);
        }
        Ok(refused)
    }

    /// Call it when the runtime could not recompile a method.
    pub(super) fn not_compiled(&self, method: Method, error: &clr_profiler::Error) {
        if self.is_followed(method.0) && kept_code::is_kept(method) {
            kept_code::forget_body(method);
            let assembly = self.functions.names().assembly(&self.info, method.0).unwrap_or_default();
            note_refused(
                self.writer,
                LossReason::RequestsNotFollowed,
                &assembly,
                &[(self.name(method), reason(error))],
            );
        }
    }

    fn is_followed(&self, module: ModuleId) -> bool {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).contains(&module)
    }

    /// Call it when a function is about to be recompiled, or was. Finds the field offsets of the
    /// objects that its code reads, unless they are known. Other threads run the new code before
    /// the runtime reports it, so the offsets are needed before the compilation. To be called on
    /// managed threads, since types are loaded.
    pub(super) fn look_into_types(&self, function: FunctionId) {
        let Ok(about) = self.info.function_info(function) else { return };
        let names = self.functions.names();
        if self.author.switches_threads(about.module) {
            locals::look_into(&self.info, names, about.module);
        } else if self.is_followed(about.module) {
            ACTIVITIES.look_into(&self.info, names);
        }
        if let Some(server) = self.author.server(about.module) {
            server.look_into(&self.info, names);
        }
    }

    /// Call it when a function was recompiled. Notes in the recording if objects that its code
    /// reads differ from the known ones.
    pub(super) fn compiled(&self, function: FunctionId) {
        self.look_into_types(function);
        let Ok(about) = self.info.function_info(function) else { return };
        if self.author.switches_threads(about.module) && !locals::is_known() {
            let why = (self.name((about.module, about.token)), NOT_AS_KNOWN.into());
            note_refused(self.writer, LossReason::RequestsNotFollowed, CORE_LIBRARY, &[why]);
        }
    }

    /// The signature of a method.
    fn name(&self, (module, method): Method) -> String {
        let name = self.functions.names().method(&self.info, module, method);
        name.map(|name| name.signature).unwrap_or_default()
    }
}
