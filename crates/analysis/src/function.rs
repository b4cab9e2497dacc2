//! A function of a process, as rows show it.

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

/// Type that the runtime reports for methods generated at run time.
const DYNAMIC: &str = "DynamicClass::";

/// Whether a function is the program's own. Own functions are managed code that does not belong to
/// the framework and was not generated at run time by libraries (routes, expressions, serializers).
#[must_use]
pub fn is_own(function: &FunctionRef<'_>) -> bool {
    function.kind() == FunctionKind::Managed
        && !function.module().is_empty()
        && !function.module.framework
        && !function.name().starts_with(DYNAMIC)
}

/// Whether a function belongs to the agent, such as the targets of probes and hooks. Its time is
/// spent only because of the profiler.
pub(crate) fn is_profilers(function: &FunctionRef<'_>) -> bool {
    function.kind() == FunctionKind::Native && function.module() == AGENT_LIBRARY
}

/// A function of a process, by reference.
#[derive(Debug, Clone, Copy)]
pub struct FunctionRef<'a> {
    /// The process that the function ran in.
    pub pid: u32,
    /// The function; a placeholder named `(unknown)` if the recording's index is invalid.
    pub function: &'a Function,
    /// Module of the function; an empty module if the function has none.
    pub module: &'a Module,
}

impl<'a> FunctionRef<'a> {
    /// Refers to `function` of `process`; `None` represents a function that is not in the
    /// recording.
    pub(crate) fn new(process: &'a Process, function: Option<&'a Function>) -> Self {
        let function = function.unwrap_or(&UNKNOWN);
        let module = process.modules.get(function.module as usize).unwrap_or(&NO_MODULE);
        Self { pid: process.pid, function, module }
    }

    /// Name of the function: `Namespace.Type::Method`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.function.name
    }

    /// Signature in C# syntax; the name if the recording has no signature.
    #[must_use]
    pub fn signature(&self) -> &'a str {
        if self.function.signature.is_empty() { &self.function.name } else { &self.function.signature }
    }

    /// The signature without the marker.
    #[must_use]
    pub fn plain_signature(&self) -> &'a str {
        let plain = closures::split(self.function).0;
        if plain.is_empty() { &self.function.name } else { plain }
    }

    /// Kind of the code within its source method, such as `async` or `lambda, Program.cs:17`;
    /// `None` for the method's own body.
    #[must_use]
    pub fn marker(&self) -> Option<&'a str> {
        closures::split(self.function).1
    }

    /// The name followed by the marker: `Shop.Program::Main (lambda, Program.cs:17)`.
    #[must_use]
    pub fn label(&self) -> Cow<'a, str> {
        match self.marker() {
            Some(marker) => Cow::Owned(format!("{} ({marker})", self.name())),
            None => Cow::Borrowed(self.name()),
        }
    }

    /// Name of the assembly or library; empty if not known.
    #[must_use]
    pub fn module(&self) -> &'a str {
        &self.module.name
    }

    /// Whether the function is native code without a symbol, known only by its offset, such as
    /// `libcoreclr.so+0x1234`. Such functions of one library that call each other are folded into
    /// one frame, because they can't be distinguished.
    pub(crate) fn is_nameless(&self) -> bool {
        let place = || self.name().strip_prefix(library_of(Some(self.module)));
        self.kind() == FunctionKind::Native && place().is_some_and(|place| place.starts_with("+0x"))
    }

    /// Whether the function represents all code without symbols in its library.
    pub(crate) fn is_library(&self) -> bool {
        self.kind() == FunctionKind::Native && self.name() == library_frame(Some(self.module))
    }

    /// Name of the frame into which native code without a symbol is folded, such as
    /// `[libcoreclr.so]`; `None` for functions that have names.
    #[must_use]
    pub fn folded_into(&self) -> Option<String> {
        self.is_nameless().then(|| library_frame(Some(self.module)))
    }

    /// Metadata token of the function; 0 if it has none.
    #[must_use]
    pub fn token(&self) -> u32 {
        self.function.token
    }

    /// Kind of the function: managed, native or runtime.
    #[must_use]
    pub fn kind(&self) -> FunctionKind {
        self.function.kind
    }

    /// Order of rows that are otherwise equal: by name, signature, module, token and process.
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

/// Prefix of the names of code in a library.
pub(crate) fn library_of(module: Option<&Module>) -> &str {
    module.map(|module| module.name.as_str()).filter(|name| !name.is_empty()).unwrap_or("(unknown)")
}

/// Name of the function that represents all code without symbols in a library.
pub(crate) fn library_frame(module: Option<&Module>) -> String {
    match module.map(|module| module.name.as_str()).filter(|name| !name.is_empty()) {
        Some(library) => format!("[{library}]"),
        None => "[unknown library]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ASP.NET's generated routes were listed before the handlers that they call:
    /// `DynamicClass::lambda_method1`.
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
