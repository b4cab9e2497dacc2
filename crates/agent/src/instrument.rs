//! What every instrument is: a name, needs, callbacks.
//!
//! Callbacks run on the program's threads behind the framework's panic boundary. None may write to
//! the program's streams, and none is called before the instrument's `start` has returned.

use std::sync::Arc;

use clr_profiler::notice::{SuspendReason, TransitionReason};
use clr_profiler::{Callbacks, Events, FunctionId, ProfilerInfo};
use clrscope_recording::writer::{ProcessWriter, ThreadRecord};

use crate::hooks::HookNeed;
use crate::services::functions::Functions;
use crate::services::helper::{HelperHandle, Task};
use crate::services::patterns::Redaction;
use crate::services::stacks::table::SharedStackTable;
use crate::services::values::types::Types;

/// What an instrument finds when it starts.
pub(crate) struct Context {
    pub(crate) info: ProfilerInfo,
    pub(crate) writer: &'static ProcessWriter,
    pub(crate) functions: Arc<Functions>,
    pub(crate) helper: HelperHandle,
    pub(crate) interval_ns: u64,
    /// Monotonic nanoseconds when the recording of the process began.
    pub(crate) start_ns: u64,
    /// Parameters and fields whose values are never to be read.
    pub(crate) redact: Arc<Redaction>,
    /// The stack table of the recording, for instruments that record stacks.
    pub(crate) stacks: SharedStackTable,
}

/// One instrument.
#[expect(unused_variables, reason = "the defaults ignore what they are told; the names are documentation")]
pub(crate) trait Instrument: Send + Sync {
    /// The events it wants from the runtime.
    fn events(&self) -> Events;
    /// The agent runs: the last thing in the runtime's `Initialize`, on the thread that makes the runtime.
    fn begins(&self) {}
    /// What it wants to happen at enter, leave and tail call, if anything.
    fn hooks(&self) -> Option<HookNeed> {
        None
    }
    /// It has [`hooks`](Self::hooks), and it is not the only one. Told before anything else is asked.
    fn shares_hooks(&self) {}
    /// What it wants done regularly on the helper thread; asked once.
    fn tasks(&self) -> Vec<Box<dyn Task>> {
        Vec::new()
    }
    /// Itself, if it wants to hear every callback of its [`events`](Self::events); asked once.
    fn callbacks(self: Arc<Self>) -> Option<Arc<dyn Callbacks>> {
        None
    }
    /// In a forked child: let go of everything that is mapped. Async-signal-safe.
    fn detach_in_child(&self) {}

    /// The calling thread is new: prepare its record. Runs in a hook, so it neither blocks nor waits;
    /// false when there is no room, and then the thread is not recorded at all.
    fn thread_begins(&self, record: ThreadRecord) -> bool {
        true
    }
    /// The calling thread ends. Runs after its last hook, or between two.
    fn thread_ends(&self, record: ThreadRecord) {}

    /// A function with hooks is about to be compiled; what its hooks are to be given, from what they would
    /// be given without this instrument. The answer must be the same each time.
    fn mapped(&self, function: FunctionId, index: u32, client: usize) -> usize {
        client
    }
    /// The types of the program where it stores values: they are told of modules, classes and compilations. Asked once.
    fn types(&self) -> Option<&'static Types> {
        None
    }
    /// A function that nobody chose is about to be compiled; what its hooks are to be given if this instrument
    /// needs them all the same. The answer must be the same each time.
    fn needs(&self, function: FunctionId, index: u32) -> Option<usize> {
        None
    }
    /// Whether calls of `callee` in the function `caller` are to stay calls, so that its hooks see them.
    fn keeps_call(&self, caller: u32, callee: FunctionId) -> bool {
        false
    }

    /// Compilation of a method begins on this thread.
    fn jit_started(&self, function: FunctionId) {}
    /// It has ended.
    fn jit_finished(&self, function: FunctionId) {}
    /// A garbage collection begins; every thread that runs managed code stands still.
    fn collection_started(&self) {}
    /// A garbage collection has ended.
    fn collection_finished(&self) {}
    /// The runtime begins to suspend all threads, on the thread that asks for it.
    fn suspend_started(&self, reason: SuspendReason) {}
    /// All threads run again, or the suspension was given up.
    fn resume_finished(&self) {}
    /// This thread stands still from here on.
    fn thread_suspended(&self) {}
    /// This thread goes on.
    fn thread_resumed(&self) {}
    /// Managed code calls unmanaged code, or returns to it.
    fn to_unmanaged(&self, function: Option<FunctionId>, reason: TransitionReason) {}
    /// Unmanaged code returns to managed code, or calls it.
    fn to_managed(&self, function: Option<FunctionId>, reason: TransitionReason) {}

    /// The search for a catcher runs a filter of `function`. This and what follows: only with [`hooks`](Self::hooks).
    fn filter_enter(&self, function: FunctionId) {}
    /// The filter has answered.
    fn filter_leave(&self) {}
    /// A finally or fault block of `function` runs.
    fn unwind_finally_enter(&self, function: FunctionId) {}
    /// The catch block of `function` runs.
    fn catcher_enter(&self, function: FunctionId) {}
}
