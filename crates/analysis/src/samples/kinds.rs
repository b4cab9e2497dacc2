//! Kinds of work: to whose code the time of a sample went.

use clrscope_recording::model::{Activity, FunctionKind, GC_NAME, JIT_NAME, Process, Sample, StackFrame, ThreadRole};
use rustc_hash::FxHashMap;

use crate::function::{FunctionRef, is_own};
use crate::titled::titled;
use crate::waits::wait_kind;

titled! {
    /// Kind of work that a sample fell into.
    SampleKind {
        /// Methods of the program itself.
        Own "own" "own code",
        /// Methods of the framework.
        Framework "framework" "framework",
        /// Compilation of methods.
        Jit "jit" "compiling methods (JIT)",
        /// Garbage collection.
        Gc "gc" "collecting garbage (GC)",
        /// Loading of types and assemblies.
        TypeLoading "type_loading" "loading types and assemblies",
        /// Exception handling by the runtime.
        Exceptions "exceptions" "handling exceptions",
        /// Suspension of threads.
        Suspension "suspension" "suspending threads",
        /// Other native code of the runtime, and its stubs.
        Runtime "runtime" "runtime otherwise",
        /// Native code of other libraries.
        Native "native" "native libraries",
        /// The kernel.
        Kernel "kernel" "kernel",
        /// The profiler's own code.
        Profiler "profiler" "the profiler",
        /// Nobody knows: no stack was to be had.
        Unknown "unknown" "unknown",
    }
}

/// Native libraries of the runtime, as beginnings of their names; what they do where nothing else is known.
const RUNTIME_LIBRARIES: [(&str, SampleKind); 6] = [
    ("libclrjit", SampleKind::Jit),
    ("libclrgc", SampleKind::Gc),
    // It undoes frames, for .NET 8 those of managed exceptions, too.
    ("libgcc_s", SampleKind::Exceptions),
    ("libcoreclr", SampleKind::Runtime),
    ("libhostfxr", SampleKind::Runtime),
    ("libhostpolicy", SampleKind::Runtime),
];

/// Types of the framework in whose methods .NET 9 and later search handlers and unwind, as beginnings of names.
const EXCEPTION_HANDLING: [&str; 2] = ["System.Runtime.EH::", "System.Runtime.StackFrameIterator::"];

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
            SampleKind::Jit | SampleKind::Gc | SampleKind::Exceptions => by_stack,
            _ if sample.kernel => SampleKind::Kernel,
            other => other,
        }
    }
}

/// Kind of a function's code, by which pictures colour frames: the name of its [`SampleKind`], and `waiting` for functions of
/// the framework in which threads wait.
#[must_use]
pub fn kind_of_code(function: &FunctionRef<'_>) -> &'static str {
    if wait_kind(function).is_some() { "waiting" } else { of_function(function).name() }
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
        // These go on below methods; what they call belongs to them.
        if matches!(here, SampleKind::Jit | SampleKind::Gc | SampleKind::Exceptions) {
            return here;
        }
        innermost.get_or_insert(here);
        if matches!(here, SampleKind::Own | SampleKind::Framework) {
            break;
        }
    }
    innermost.unwrap_or(SampleKind::Unknown)
}

fn handles_exceptions(name: &str) -> bool {
    EXCEPTION_HANDLING.iter().any(|beginning| name.starts_with(beginning))
}

fn of_function(function: &FunctionRef<'_>) -> SampleKind {
    match function.kind() {
        FunctionKind::Managed if function.name().is_empty() => SampleKind::Unknown,
        FunctionKind::Managed if is_own(function) => SampleKind::Own,
        FunctionKind::Managed if handles_exceptions(function.name()) => SampleKind::Exceptions,
        FunctionKind::Managed => SampleKind::Framework,
        FunctionKind::Kernel => SampleKind::Kernel,
        FunctionKind::Suspended => SampleKind::Suspension,
        FunctionKind::Runtime if function.name() == JIT_NAME => SampleKind::Jit,
        FunctionKind::Runtime if function.name() == GC_NAME => SampleKind::Gc,
        FunctionKind::Stub | FunctionKind::Runtime => SampleKind::Runtime,
        FunctionKind::Native => {
            let is_it = |(library, _): &&(&str, SampleKind)| function.module().starts_with(library);
            RUNTIME_LIBRARIES.iter().find(is_it).map_or(SampleKind::Native, |(_, kind)| *kind)
        }
    }
}
