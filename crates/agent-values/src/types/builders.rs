//! The builders of `async` methods: which of their methods end a task, and which tasks they build.

use std::sync::OnceLock;

use clr_profiler::{FunctionId, ModuleId, Token};

use super::Types;
use crate::completion::{AwaitedTask, set_canceling};

const BUILDERS: [&str; 6] = [
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder",
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1",
    "System.Runtime.CompilerServices.AsyncValueTaskMethodBuilder",
    "System.Runtime.CompilerServices.AsyncValueTaskMethodBuilder`1",
    "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder",
    "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1",
];

/// The methods of the builders that end an `async` method. The flag is `true` if the method reports
/// an exception.
#[derive(Default)]
pub(super) struct Completions(OnceLock<Vec<(Token, bool)>>);

impl Types {
    /// Finds out which exceptions cancel a task.
    pub(super) fn know_canceling(&self) {
        let names = ["System.OperationCanceledException", "System.Threading.Tasks.TaskCanceledException"];
        set_canceling(names.map(|name| self.core_class(name).map_or(0, |class| class.id)));
    }

    /// How a method of a task builder completes the `async` method: `Some(true)` with an exception,
    /// `Some(false)` without one. `None` if the method does not complete it.
    pub fn completes(&self, module: ModuleId, method: Token) -> Option<bool> {
        if !self.is_core(module) {
            return None;
        }
        let known = self.completions.0.get_or_init(|| self.find_completions(module));
        known.iter().find(|(token, _)| *token == method).map(|(_, by_exception)| *by_exception)
    }

    fn find_completions(&self, core: ModuleId) -> Vec<(Token, bool)> {
        let Ok(metadata) = self.metadata(core) else { return Vec::new() };
        let builders = BUILDERS.iter().filter_map(|name| metadata.find_type_def(name, None).ok()?);
        let methods = builders.flat_map(|builder| {
            let named = |name, by_exception| {
                let found = metadata.methods_named(builder, name).unwrap_or_default();
                found.into_iter().map(move |method| (method, by_exception))
            };
            named("SetResult", false).chain(named("SetException", true)).collect::<Vec<_>>()
        });
        methods.collect()
    }

    /// Whether a function is a builder's method that completes an `async` method.
    pub fn is_completion(&self, function: FunctionId) -> bool {
        let place = self.info().function_place(function);
        place.is_ok_and(|(_, module, method)| self.completes(module, method).is_some())
    }

    /// How to show the task of a builder of this type. `builder` is the offset of the builder from
    /// `this`.
    pub(crate) fn awaited(&self, builder_type: &str, builder: u32) -> Option<AwaitedTask> {
        let (plain, result) = match builder_type.split_once('<') {
            Some((plain, rest)) => (plain, rest.strip_suffix('>')),
            None => (builder_type, None),
        };
        if !BUILDERS.contains(&plain) {
            return None;
        }
        let task = if plain.contains("ValueTask") { "ValueTask" } else { "Task" };
        let status = self.task_status()?;
        let plain = format!("System.Threading.Tasks.{task}");
        let name = result.map_or_else(|| plain.clone(), |result| format!("{plain}<{result}>"));
        let class = self.shown_task(name.clone(), result);
        Some(AwaitedTask { builder, name: name.leak(), class, status })
    }
}
