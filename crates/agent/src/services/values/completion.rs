//! How an `async` method comes by its result: its code gives it to the builder that stands behind the task,
//! by a call of `SetResult` or `SetException`. That call is looked at, because afterwards it may be too late: the
//! code may be replaced by it (a tail call), a pooled task may have served its purpose and been given to the
//! next, and a collection may have moved all of it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use clr_profiler::{FunctionId, ModuleId, Token};

use super::kinds::{Class, Kind};
use super::plan::{Argument, ArgumentLocation};
use super::types::Types;

const BUILDERS: [&str; 6] = [
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder",
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1",
    "System.Runtime.CompilerServices.AsyncValueTaskMethodBuilder",
    "System.Runtime.CompilerServices.AsyncValueTaskMethodBuilder`1",
    "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder",
    "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1",
];

/// The first words of exceptions by which a task is canceled instead of failed.
static CANCELING: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Whether an exception that begins with this word cancels a task. For hooks.
pub(crate) fn cancels(class: usize) -> bool {
    CANCELING.iter().any(|known| known.load(Ordering::Relaxed) == class)
}

/// The methods of the builders that end an `async` method, each with whether it does so by an exception.
#[derive(Default)]
pub(super) struct Completions(OnceLock<Vec<(Token, bool)>>);

/// Meaning of a call of such a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) outcome: Outcome,
    /// Whether the method is hooked for this alone, without an event of its own.
    pub(crate) is_silent: bool,
}

/// How the `async` method ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// In order, with a result where it has one.
    Result(Option<(ArgumentLocation, Kind)>),
    /// By the exception in this place.
    Exception(ArgumentLocation),
}

/// Task that the code of an `async` method completes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Awaited {
    /// Where its builder lies, behind `this`.
    pub(crate) builder: u32,
    /// The type of its task, as C# writes it.
    pub(crate) name: &'static str,
    /// Task as shown: state and result.
    pub(crate) class: &'static Class,
    /// The class of the states of tasks.
    pub(crate) status: &'static Class,
}

impl Completion {
    /// Outcome that a completing function reports, from its arguments, `this` first.
    pub(super) fn new(by_exception: bool, arguments: &[Argument]) -> Option<Self> {
        let given = arguments.get(1).map(|argument| (argument.location, argument.kind));
        let outcome = match (by_exception, given) {
            (false, given) => Outcome::Result(given),
            (true, given) => Outcome::Exception(given?.0),
        };
        Some(Self { outcome, is_silent: false })
    }
}

impl Types {
    /// Finds out which exceptions cancel a task.
    pub(super) fn know_canceling(&self) {
        let names = ["System.OperationCanceledException", "System.Threading.Tasks.TaskCanceledException"];
        for (known, name) in CANCELING.iter().zip(names) {
            known.store(self.core_class(name).map_or(0, |class| class.id), Ordering::Relaxed);
        }
    }

    /// Whether a function ends `async` methods: then by an exception or not.
    pub(crate) fn completes(&self, module: ModuleId, method: Token) -> Option<bool> {
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

    /// Whether a function is one whose calls tell the results of `async` methods.
    pub(crate) fn is_completion(&self, function: FunctionId) -> bool {
        let place = self.info().function_place(function);
        place.is_ok_and(|(_, module, method)| self.completes(module, method).is_some())
    }

    /// Form in which the task of a builder of this type is shown.
    pub(super) fn awaited(&self, builder_type: &str, builder: u32) -> Option<Awaited> {
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
        Some(Awaited { builder, name: name.leak(), class, status })
    }
}
