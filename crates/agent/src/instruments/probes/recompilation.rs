//! Answers to the runtime while it recompiles methods.

use std::sync::Arc;

use clr_profiler::{FunctionId, WrittenBody};
use clrscope_agent_base::developer_log::{Level, log};

use crate::services::fixed_modules::reason;
use crate::services::kept_code;
use super::methods::Method;
use super::prober::Prober;

impl Prober {
    /// The new body of a method that is being recompiled; `None` if it keeps its own body. A
    /// changed body is returned even if it has no probes: the runtime applies the map of original
    /// instructions only to the version that the map was supplied for.
    pub(super) fn body_of(&self, method: Method) -> Option<Arc<WrittenBody>> {
        let body = self.methods.body_of(method);
        let body = body.or_else(|| kept_code::body_of(method));
        if body.is_some() || !self.has_changed_at_load {
            return body;
        }
        let written = self.writers.written_bodies(method.0, &[method.1]).and_then(|mut bodies| bodies.remove(0));
        written.unwrap_or_else(|error| {
            log(Level::Warn, || format!("probes: a method is recompiled without the positions of its instructions: \
                                         {error}"));
            None
        })
        .map(Arc::new)
    }

    /// Call it when a function is about to be recompiled.
    pub(super) fn compiles(&self, function: FunctionId) {
        let Some(types) = self.each.as_ref().and_then(|each| each.types) else { return };
        let Ok(about) = self.info.function_info(function) else { return };
        if let Some(watched) = self.methods.watched((about.module, about.token)) {
            watched.compiles(types, function);
        }
    }

    /// Call it when the runtime could not recompile a method.
    pub(super) fn not_compiled(&self, method: Method, error: &clr_profiler::Error) {
        let calls = self.withdraw_calls(method);
        let lines = self.methods.withdraw_all_lines(method);
        let name = || Some(self.functions.names().method(&self.info, method.0, method.1).ok()?.signature);
        if let Some(signature) = calls.or_else(|| if lines { name() } else { None }) {
            let assembly = self.functions.names().assembly(&self.info, method.0).unwrap_or_default();
            self.refuse(&assembly, &[(signature, reason(error))]);
        }
    }
}
