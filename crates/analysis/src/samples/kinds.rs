//! Kinds of work, which tell in whose code a sample was taken.

use std::sync::Arc;

use clrscope_recording::model::{
    Activity, FunctionKind, GC_NAME, JIT_NAME, Process, Sample, StackFrame, Thread, ThreadRole,
};

use super::metric::thread_numbered;
use crate::function::{FunctionRef, is_own};
use crate::metric_events::{Event, MetricEvents};
use crate::titled::titled;
use crate::waits::{WaitKind, wait_kind};

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
        /// Locks, waits and wake-ups: spinning, blocking and waking of threads.
        Locks "locks" "locks, waits, wake-ups",
        /// Suspension of threads.
        Suspension "suspension" "suspending threads",
        /// Other native code of the runtime, and its stubs.
        Runtime "runtime" "other runtime code",
        /// Native code of other libraries.
        Native "native" "native libraries",
        /// The kernel.
        Kernel "kernel" "kernel",
        /// The profiler's own code.
        Profiler "profiler" "the profiler",
        /// Unknown: no stack was available.
        Unknown "unknown" "unknown",
    }
}

/// Native libraries of the runtime, by prefixes of their names, with the kind of work that they do
/// unless the stack shows more.
const RUNTIME_LIBRARIES: [(&str, SampleKind); 6] = [
    ("libclrjit", SampleKind::Jit),
    ("libclrgc", SampleKind::Gc),
    // It unwinds frames; on .NET 8 also for managed exceptions.
    ("libgcc_s", SampleKind::Exceptions),
    ("libcoreclr", SampleKind::Runtime),
    ("libhostfxr", SampleKind::Runtime),
    ("libhostpolicy", SampleKind::Runtime),
];

/// Framework types whose methods search handlers and unwind in .NET 9 and later, as prefixes of
/// names.
const EXCEPTION_HANDLING: [&str; 2] = ["System.Runtime.EH::", "System.Runtime.StackFrameIterator::"];

/// Finds the kinds of a process's samples.
pub(crate) struct Kinds<'a> {
    process: &'a Process,
    /// By index in the stack table.
    by_stack: Arc<Vec<SampleKind>>,
}

impl<'a> Kinds<'a> {
    pub(crate) fn new(process: &'a Process) -> Self {
        Self { process, by_stack: process.derived.get("kinds of stacks", || of_stacks(process)) }
    }

    /// Returns the kind of work that a sample fell into. The runtime's own state decides first,
    /// then the stack.
    pub(crate) fn kind_of_sample(&self, sample: &Sample) -> SampleKind {
        let thread = thread_numbered(self.process, sample.thread);
        of_sample(sample, thread, || self.of_place(self.process.stacks.node_position(sample.stack)))
    }

    fn of_place(&self, place: Option<usize>) -> SampleKind {
        place.map_or(SampleKind::Unknown, |place| self.by_stack[place])
    }
}

/// Finds the kinds of the events that were read for a metric.
pub(crate) struct EventKinds<'a> {
    process: &'a Process,
    /// By number of the stack among the events' stacks.
    by_stack: Vec<SampleKind>,
}

impl<'a> EventKinds<'a> {
    pub(crate) fn new(process: &'a Process, measured: &MetricEvents) -> Self {
        let kinds = Kinds::new(process);
        let by_stack = (0..measured.stacks() as u32).map(|stack| kinds.of_place(measured.position_of_stack(stack)));
        Self { process, by_stack: by_stack.collect() }
    }

    /// Returns the kind of the work that a sample fell into.
    #[inline]
    pub(crate) fn kind_of_event(&self, event: &Event) -> SampleKind {
        let thread = self.process.threads.get(event.thread as usize);
        of_sample(&Sample::flagged(event.flags), thread, || self.by_stack[event.stack as usize])
    }
}

#[inline]
fn of_sample(sample: &Sample, thread: Option<&Thread>, by_stack: impl FnOnce() -> SampleKind) -> SampleKind {
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
    match thread.map(|thread| thread.role) {
        Some(ThreadRole::Gc) => return SampleKind::Gc,
        Some(ThreadRole::Tiering) => return SampleKind::Jit,
        _ => {}
    }
    match by_stack() {
        found if belongs_to_caller(found) => found,
        _ if sample.kernel => SampleKind::Kernel,
        other => other,
    }
}

/// Kind of a function's code, for the colour of its frames in charts: the name of its
/// [`SampleKind`], `waiting` for framework functions in which threads wait, or `type` for types of
/// objects.
#[must_use]
pub fn kind_of_code(function: &FunctionRef<'_>) -> &'static str {
    match function.kind() {
        FunctionKind::Type => "type",
        _ if wait_kind(function).is_some() => "waiting",
        _ => kind_of_function(function).name(),
    }
}

/// Kinds of all stacks of a process. The innermost frame determines the kind. Exception: code that
/// the compiler, the collector or exception handling calls has their kind, unless a method lies in
/// between.
fn of_stacks(process: &Process) -> Vec<SampleKind> {
    let functions =
        process.functions.iter().map(|function| kind_of_function(&FunctionRef::new(process, Some(function))));
    let functions: Vec<SampleKind> = functions.collect();
    let mut all: Vec<SampleKind> = Vec::with_capacity(process.stacks.len());
    for place in 0..process.stacks.len() {
        let here = match process.stacks.frame_at(place) {
            Some(StackFrame::Method { function, .. }) => functions.get(function as usize).copied(),
            _ => None,
        };
        let here = here.unwrap_or(SampleKind::Unknown);
        let above = process.stacks.caller_of(place).map(|caller| all[caller]);
        let is_method = matches!(here, SampleKind::Own | SampleKind::Framework | SampleKind::Locks);
        let is_part = |above: &SampleKind| belongs_to_caller(*above) && !is_method && !belongs_to_caller(here);
        all.push(above.filter(is_part).unwrap_or(here));
    }
    all
}

/// Whether native code and the kernel, called by code of this kind, do the same kind of work.
const fn belongs_to_caller(kind: SampleKind) -> bool {
    matches!(kind, SampleKind::Jit | SampleKind::Gc | SampleKind::Exceptions | SampleKind::Locks)
}

/// Whether a function of the framework waits for other threads. Input and output is no wait here:
/// the kernel's time for it is work.
fn waits_for_threads(function: &FunctionRef<'_>) -> bool {
    wait_kind(function).is_some_and(|kind| kind != WaitKind::Io)
}

fn handles_exceptions(name: &str) -> bool {
    EXCEPTION_HANDLING.iter().any(|beginning| name.starts_with(beginning))
}

/// Returns the kind of a function's own code.
pub(crate) fn kind_of_function(function: &FunctionRef<'_>) -> SampleKind {
    match function.kind() {
        FunctionKind::Managed if function.name().is_empty() => SampleKind::Unknown,
        FunctionKind::Managed if is_own(function) => SampleKind::Own,
        FunctionKind::Managed if handles_exceptions(function.name()) => SampleKind::Exceptions,
        FunctionKind::Managed if waits_for_threads(function) => SampleKind::Locks,
        FunctionKind::Managed => SampleKind::Framework,
        FunctionKind::Kernel => SampleKind::Kernel,
        FunctionKind::Suspended => SampleKind::Suspension,
        FunctionKind::Runtime if function.name() == JIT_NAME => SampleKind::Jit,
        FunctionKind::Runtime if function.name() == GC_NAME => SampleKind::Gc,
        FunctionKind::Stub | FunctionKind::Runtime => SampleKind::Runtime,
        FunctionKind::Type => SampleKind::Unknown,
        FunctionKind::Native => {
            let is_it = |(library, _): &&(&str, SampleKind)| function.module().starts_with(library);
            RUNTIME_LIBRARIES.iter().find(is_it).map_or(SampleKind::Native, |(_, kind)| *kind)
        }
    }
}
