//! Kinds of work: to whose code the time of a sample went.

use clrscope_recording::model::{Activity, FunctionKind, Process, Sample, StackFrame, ThreadRole};
use rustc_hash::FxHashMap;

use crate::function::{FunctionRef, is_own};

/// Kind of work that a sample fell into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleKind {
    /// Methods of the program itself.
    Own,
    /// Methods of the framework.
    Framework,
    /// Compilation of methods.
    Jit,
    /// Garbage collection.
    Gc,
    /// Loading of types and assemblies.
    TypeLoading,
    /// Exception handling by the runtime.
    Exceptions,
    /// Suspension of threads.
    Suspension,
    /// Other native code of the runtime, and its stubs.
    Runtime,
    /// Native code of other libraries.
    Native,
    /// The kernel.
    Kernel,
    /// The profiler's own code.
    Profiler,
    /// Nobody knows: no stack was to be had.
    Unknown,
}

impl SampleKind {
    /// Every kind with its name in JSON and its title in text.
    pub const ALL: [(Self, &'static str, &'static str); 12] = [
        (Self::Own, "own", "own code"),
        (Self::Framework, "framework", "framework"),
        (Self::Jit, "jit", "compiling methods (JIT)"),
        (Self::Gc, "gc", "collecting garbage (GC)"),
        (Self::TypeLoading, "type_loading", "loading types and assemblies"),
        (Self::Exceptions, "exceptions", "handling exceptions"),
        (Self::Suspension, "suspension", "suspending threads"),
        (Self::Runtime, "runtime", "runtime otherwise"),
        (Self::Native, "native", "native libraries"),
        (Self::Kernel, "kernel", "kernel"),
        (Self::Profiler, "profiler", "the profiler"),
        (Self::Unknown, "unknown", "unknown"),
    ];

    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    /// The title in text.
    #[must_use]
    pub fn title(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., title)| title)
    }
}

/// Native libraries of the runtime, as beginnings of their names; what they do where nothing else is known.
const RUNTIME_LIBRARIES: [(&str, SampleKind); 5] = [
    ("libclrjit", SampleKind::Jit),
    ("libclrgc", SampleKind::Gc),
    ("libcoreclr", SampleKind::Runtime),
    ("libhostfxr", SampleKind::Runtime),
    ("libhostpolicy", SampleKind::Runtime),
];

/// Finds the kinds of a process's samples.
pub(crate) struct Kinds<'a> {
    process: &'a Process,
    by_stack: FxHashMap<u32, SampleKind>,
}

impl<'a> Kinds<'a> {
    pub(crate) fn new(process: &'a Process) -> Self {
        Self { process, by_stack: FxHashMap::default() }
    }

    /// Kind of the work that a sample fell into: what the runtime says of itself first, then what the stack says.
    pub(crate) fn of(&mut self, sample: &Sample) -> SampleKind {
        if sample.profiler {
            return SampleKind::Profiler;
        }
        match sample.activity {
            Activity::Gc => return SampleKind::Gc,
            Activity::Jit => return SampleKind::Jit,
            Activity::TypeLoading => return SampleKind::TypeLoading,
            Activity::Exceptions => return SampleKind::Exceptions,
            Activity::Suspension => return SampleKind::Suspension,
            _ => {}
        }
        let thread = sample.thread.checked_sub(1).and_then(|index| self.process.threads.get(index as usize));
        match thread.map(|thread| thread.role) {
            Some(ThreadRole::Gc) => return SampleKind::Gc,
            Some(ThreadRole::Tiering) => return SampleKind::Jit,
            _ => {}
        }
        let process = self.process;
        let by_stack = *self.by_stack.entry(sample.stack).or_insert_with(|| of_stack(process, sample.stack));
        match by_stack {
            SampleKind::Jit | SampleKind::Gc => by_stack,
            _ if sample.kernel => SampleKind::Kernel,
            other => other,
        }
    }
}

fn of_stack(process: &Process, stack: u32) -> SampleKind {
    let mut innermost = None;
    for frame in process.stacks.frames(stack) {
        let function = match frame {
            StackFrame::Method { function, .. } => process.functions.get(function as usize),
            _ => None,
        };
        let Some(function) = function.map(|function| FunctionRef::of(process, Some(function))) else {
            innermost.get_or_insert(SampleKind::Unknown);
            continue;
        };
        let here = of_function(&function);
        // Compilation and collection go on below methods; what those call belongs to them.
        if matches!(here, SampleKind::Jit | SampleKind::Gc) {
            return here;
        }
        innermost.get_or_insert(here);
        if matches!(here, SampleKind::Own | SampleKind::Framework) {
            break;
        }
    }
    innermost.unwrap_or(SampleKind::Unknown)
}

fn of_function(function: &FunctionRef<'_>) -> SampleKind {
    match function.kind() {
        FunctionKind::Managed if function.name().is_empty() => SampleKind::Unknown,
        FunctionKind::Managed if is_own(function) => SampleKind::Own,
        FunctionKind::Managed => SampleKind::Framework,
        FunctionKind::Kernel => SampleKind::Kernel,
        FunctionKind::Stub | FunctionKind::Runtime | FunctionKind::Suspended => SampleKind::Runtime,
        FunctionKind::Native => {
            let is_it = |(library, _): &&(&str, SampleKind)| function.module().starts_with(library);
            RUNTIME_LIBRARIES.iter().find(is_it).map_or(SampleKind::Native, |(_, kind)| *kind)
        }
    }
}
