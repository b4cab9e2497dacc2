//! A function of a process as rows name it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::LazyLock;

use clrscope_contract::AGENT_LIBRARY;
use clrscope_recording::model::{Function, FunctionKind, Module, Process};

use crate::closures;

static UNKNOWN: LazyLock<Function> = LazyLock::new(|| Function {
    name: "(unknown)".to_owned(),
    signature: "(unknown)".to_owned(),
    kind: FunctionKind::Runtime,
    ..Function::default()
});

static NO_MODULE: LazyLock<Module> = LazyLock::new(Module::default);

/// Type that the runtime gives methods which are made while the program runs.
const DYNAMIC: &str = "DynamicClass::";

/// Whether a function is the program's own: managed code that is not of the framework, nor made
/// while the program runs, as libraries do (routes, expressions, serializers).
pub(crate) fn is_own(function: &FunctionRef<'_>) -> bool {
    function.kind() == FunctionKind::Managed
        && !function.module().is_empty()
        && !function.module.framework
        && !function.name().starts_with(DYNAMIC)
}

/// Whether a function is the agent's: what probes and hooks call, for which only the profiler is to
/// blame.
pub(crate) fn is_profilers(function: &FunctionRef<'_>) -> bool {
    function.kind() == FunctionKind::Native && function.module() == AGENT_LIBRARY
}

/// A function of a process, by reference.
#[derive(Debug, Clone, Copy)]
pub struct FunctionRef<'a> {
    /// The process it ran in.
    pub pid: u32,
    /// The function; a placeholder named `(unknown)` where the recording's index leads nowhere.
    pub function: &'a Function,
    /// Module of the function; an empty one where there is none.
    pub module: &'a Module,
}

impl<'a> FunctionRef<'a> {
    /// Refers to `function` of `process`; `None` stands for one that the recording does not have.
    pub(crate) fn new(process: &'a Process, function: Option<&'a Function>) -> Self {
        let function = function.unwrap_or(&UNKNOWN);
        let module = process.modules.get(function.module as usize).unwrap_or(&NO_MODULE);
        Self { pid: process.pid, function, module }
    }

    /// `Namespace.Type::Method`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.function.name
    }

    /// As C# would write it; the name where the recording has no signature.
    #[must_use]
    pub fn signature(&self) -> &'a str {
        if self.function.signature.is_empty() { &self.function.name } else { &self.function.signature }
    }

    /// The signature without what says which code of its method a function is.
    #[must_use]
    pub fn plain_signature(&self) -> &'a str {
        let plain = closures::split(self.function).0;
        if plain.is_empty() { &self.function.name } else { plain }
    }

    /// Part of its source method that the function's code is, where that is not the method's own
    /// body: `async`, `lambda, Program.cs:17`.
    #[must_use]
    pub fn marker(&self) -> Option<&'a str> {
        closures::split(self.function).1
    }

    /// The name, and the marker behind it: `Shop.Program::Main (lambda, Program.cs:17)`.
    #[must_use]
    pub fn label(&self) -> Cow<'a, str> {
        match self.marker() {
            Some(marker) => Cow::Owned(format!("{} ({marker})", self.name())),
            None => Cow::Borrowed(self.name()),
        }
    }

    /// The assembly's or library's name, or empty.
    #[must_use]
    pub fn module(&self) -> &'a str {
        &self.module.name
    }

    /// Whether it is native code that is known only by its place, `libcoreclr.so+0x1234`: such
    /// functions of a library that call one another are folded into one frame, since they can't be
    /// told apart.
    pub(crate) fn is_nameless(&self) -> bool {
        let place = || self.name().strip_prefix(library_of(Some(self.module)));
        self.kind() == FunctionKind::Native && place().is_some_and(|place| place.starts_with("+0x"))
    }

    /// Whether it stands for all nameless code of its library.
    pub(crate) fn is_library(&self) -> bool {
        self.kind() == FunctionKind::Native && self.name() == library_frame(Some(self.module))
    }

    /// Name of the frame that native code that is known only by its place is folded into,
    /// `[libcoreclr.so]`; `None` for functions that have names.
    #[must_use]
    pub fn folded_into(&self) -> Option<String> {
        self.is_nameless().then(|| library_frame(Some(self.module)))
    }

    /// Metadata token, 0 where there is none.
    #[must_use]
    pub fn token(&self) -> u32 {
        self.function.token
    }

    /// Managed, native or runtime.
    #[must_use]
    pub fn kind(&self) -> FunctionKind {
        self.function.kind
    }

    /// The order of rows that are otherwise equal: name, signature, module, token, process.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        self.name()
            .cmp(other.name())
            .then_with(|| self.signature().cmp(other.signature()))
            .then_with(|| self.module().cmp(other.module()))
            .then_with(|| self.token().cmp(&other.token()))
            .then_with(|| self.pid.cmp(&other.pid))
            .then_with(|| self.module.path.cmp(&other.module.path))
            .then_with(|| (self.kind(), &self.function.raw_name).cmp(&(other.kind(), &other.function.raw_name)))
    }
}

/// Beginning of names of code in a library.
pub(crate) fn library_of(module: Option<&Module>) -> &str {
    module.map(|module| module.name.as_str()).filter(|name| !name.is_empty()).unwrap_or("(unknown)")
}

/// Name of the function that stands for all code of a library that has no names.
pub(crate) fn library_frame(module: Option<&Module>) -> String {
    match module.map(|module| module.name.as_str()).filter(|name| !name.is_empty()) {
        Some(library) => format!("[{library}]"),
        None => "[unknown library]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Routes of ASP.NET came before the handlers that they call: `DynamicClass::lambda_method1`.
    #[test]
    fn methods_made_while_the_program_runs_are_not_its_own() {
        let module = Module { name: "Shop".to_owned(), ..Module::default() };
        let is_own_named = |name: &str| {
            let function = Function { name: name.to_owned(), ..Function::default() };
            is_own(&FunctionRef { pid: 1, function: &function, module: &module })
        };
        assert!(is_own_named("Shop.Cart::Total") && !is_own_named("DynamicClass::lambda_method1"));
    }
}
