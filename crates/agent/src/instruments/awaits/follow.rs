//! Chooses the methods that are followed: those of the program's own modules that await, as far as
//! they can be changed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{BodyWriter, BodyWriters, FunctionId, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_stacks::awaiters::{BUILDERS, STATES};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::ProcessWriter;

use super::author::Author;
use super::methods;
use super::recorder::Recorder;
use crate::services::context::Context;
use crate::services::fixed_modules::{FixedModules, reason};
use crate::services::kept_code::{self, Method};
use crate::services::refused_methods::{Refused, note_refused};

/// Chooses methods and has them recompiled. Callbacks call it.
pub(super) struct Follower {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    author: Arc<Author>,
    writers: BodyWriters,
    fixed: FixedModules,
    /// Methods that were examined: a module may be reported twice, on two threads.
    claimed: Mutex<HashSet<Method>>,
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
            fixed: FixedModules::new(),
            claimed: Mutex::default(),
        }
    }

    /// Whether a method is examined for the first time.
    fn claim(&self, method: Method) -> bool {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(method)
    }

    /// Recompiles the awaiting methods of a module, unless they are recompiled already.
    pub(super) fn follow(&self, module: ModuleId) {
        let Ok(assembly) = self.functions.names().assembly(&self.info, module) else { return };
        let mut chosen = self.chosen(module);
        chosen.retain(|method| !kept_code::is_kept((module, *method)) && self.claim((module, *method)));
        if chosen.is_empty() {
            return;
        }
        let refused = match self.fixed.why(&self.info, self.functions.names(), module) {
            Some(why) => chosen.into_iter().map(|method| (method, why.to_owned())).collect(),
            None => self.change(module, &chosen),
        };
        self.refuse(&assembly, module, &refused);
    }

    /// Changes methods of a module. Returns the methods that stay unchanged, each with the reason.
    fn change(&self, module: ModuleId, chosen: &[Token]) -> Vec<(Token, String)> {
        let written =
            self.author.prepare(&self.info, module).and_then(|()| self.writers.written_bodies(module, chosen));
        let written = match written {
            Ok(written) => written,
            Err(error) => return chosen.iter().map(|method| (*method, reason(&error))).collect(),
        };
        let (mut refused, mut changed) = (Vec::new(), Vec::new());
        for (method, body) in chosen.iter().zip(written) {
            match body {
                Ok(Some(body)) => {
                    kept_code::keep_body((module, *method), body);
                    changed.push((module, *method));
                }
                // Without an await.
                Ok(None) => {}
                Err(error) => refused.push((*method, reason(&error))),
            }
        }
        if !changed.is_empty()
            && let Err(error) = self.info.request_rejit_with_inliners(&changed)
        {
            for method in changed {
                kept_code::forget_body(method);
                refused.push((method.1, reason(&error)));
            }
        }
        refused
    }

    /// Methods of a module whose code numbers its awaits; none for modules of the framework.
    fn chosen(&self, module: ModuleId) -> Vec<Token> {
        let Ok(about) = self.info.module_info(module) else { return Vec::new() };
        if about.flags.is_resource() || self.functions.is_framework_module(module, &about.path) {
            return Vec::new();
        }
        let Ok(metadata) = self.functions.names().metadata(&self.info, module) else { return Vec::new() };
        let has_one = |ty: Token, names: [&str; 2]| {
            names.iter().any(|name| metadata.fields_named(ty, name).is_ok_and(|found| !found.is_empty()))
        };
        let code = |ty: Token| metadata.methods_named(ty, "MoveNext").unwrap_or_default().into_iter().next();
        let types = metadata.type_defs().unwrap_or_default().into_iter();
        // Iterators have a number, too, but no task builder.
        let is_async = |ty: Token| has_one(ty, BUILDERS) && has_one(ty, STATES);
        let found = types.filter_map(|ty| code(ty).filter(|_| is_async(ty)));
        found.filter(|method| metadata.has_il(*method) && self.functions.passes_method(module, *method)).collect()
    }

    /// Tells the recorder the places of methods that were compiled for an earlier recording.
    pub(super) fn announce_compiled(&self, recorder: &Recorder) {
        for (method, places) in methods::all() {
            if let Some(function) = kept_code::function_of(method) {
                methods::announce(places, (&self.info, &self.functions), recorder, (method.0, function));
            }
        }
    }

    /// Call it when a function is about to be recompiled. Tells the recorder its places.
    pub(super) fn announce(&self, recorder: &Recorder, function: FunctionId) {
        let Ok(about) = self.info.function_info(function) else { return };
        if let Some(places) = methods::places_of((about.module, about.token)) {
            methods::announce(places, (&self.info, &self.functions), recorder, (about.module, function));
        }
    }

    /// Call it when the runtime could not recompile a method.
    pub(super) fn not_compiled(&self, method: Method, error: &clr_profiler::Error) {
        if kept_code::is_kept(method) {
            kept_code::forget_body(method);
            let assembly = self.functions.names().assembly(&self.info, method.0).unwrap_or_default();
            self.refuse(&assembly, method.0, &[(method.1, reason(error))]);
        }
    }

    /// Notes the methods of an assembly that are not followed, with the reason for some of them.
    fn refuse(&self, assembly: &str, module: ModuleId, refused: &[(Token, String)]) {
        let named = |(method, why): &(Token, String)| {
            let name = self.functions.names().method(&self.info, module, *method);
            (name.map(|name| name.signature).unwrap_or_default(), why.clone())
        };
        let named: Refused = refused.iter().map(named).collect();
        note_refused(self.writer, LossReason::AwaitsNotFollowed, assembly, &named);
    }
}
