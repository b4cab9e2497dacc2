//! Interface of instruments: their callbacks of the runtime, their specification and start, and
//! what they need from the agent.
//!
//! An instrument receives all callbacks of the runtime, as [`Callbacks`]. Callbacks run on the
//! program's threads behind the framework's panic boundary. None may write to the program's
//! streams, and none is called before the instrument's [`start`](Instrument::start) has returned.
//!
//! Recording can stop and start again while the process lives ([`HelperHandle`]). The instrument's
//! [tasks](Instrument::tasks) do this work on the helper thread. Hooks can be installed only at the
//! start of the runtime, so they stay; they do nothing while recording is stopped.
//!
//! [`HelperHandle`]: clrscope_agent_base::helper::HelperHandle

use std::sync::Arc;

use clr_profiler::{Callbacks, Events, FunctionId, InfoHooks};
use clrscope_agent_base::functions::FunctionSelection;
use clrscope_agent_base::helper::Task;
use clrscope_contract::instruments::{CheckedInstrument, Spec};
use clrscope_recording::writer::ThreadRecord;

use crate::hook_sets::{HookParts, HookSet};
use crate::services::context::{Beginning, Context};

/// Options of an instrument, as requested. Missing options have their default values.
pub(crate) trait InstrumentOptions: Sized {
    /// The specification of the instrument that has these options.
    const SPEC: &'static Spec;

    /// Reads the options of a request that was checked against the specification.
    fn from_request(request: &CheckedInstrument) -> Self;
}

/// One instrument.
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub(crate) trait Instrument: Callbacks {
    /// Options of the instrument.
    type Options: InstrumentOptions
    where
        Self: Sized;

    /// The sets of hooks that the instrument brings: for itself alone, and for use together with
    /// other instruments.
    fn hook_sets() -> &'static [HookSet]
    where
        Self: Sized,
    {
        &[]
    }

    /// Parts of the work at enter, leave and tail call that the instrument's hooks do.
    fn hook_parts(options: &Self::Options) -> HookParts
    where
        Self: Sized,
    {
        HookParts::NONE
    }

    /// Marks the functions that the instrument does not need.
    fn choose(options: &Self::Options, choice: &mut FunctionSelection)
    where
        Self: Sized,
    {
    }

    /// Makes the instrument with everything that its hooks and callbacks need.
    ///
    /// # Errors
    /// A sentence for the user, when a file or a thread key could not be made.
    fn start(options: &Self::Options, context: &Context) -> Result<Self, String>
    where
        Self: Sized;

    /// The events that the instrument wants from the runtime.
    fn events(&self) -> Events;

    /// Called when the agent runs. This is the last step of the runtime's `Initialize` or
    /// `InitializeForAttach`, on the thread that makes that call.
    fn begins(&self, beginning: Beginning) {}

    /// Whether the helper thread must work for the instrument in each of the request's intervals.
    /// That is so if the helper thread takes samples, or if the program's threads wait for memory
    /// that the helper thread backs in advance. Without such an instrument the helper thread wakes
    /// rarely.
    fn needs_frequent_help(&self) -> bool {
        true
    }

    /// Tasks of the instrument on the helper thread: regular work, and work when recording stops
    /// and starts again. Called once.
    fn tasks(&self) -> Vec<Box<dyn Task>> {
        Vec::new()
    }

    /// Gives handles back to the runtime before an attached agent detaches. No callback is running,
    /// and the runtime can still be queried.
    fn release_handles(&self) {}

    /// In a forked child: releases all mappings. Async-signal-safe.
    fn detach_in_child(&self) {}

    /// Called when the recording of an attached agent is over but the runtime does not detach the
    /// agent. Changed code of the program may still store to some mappings of the recording: the
    /// instrument replaces these by private memory of the process. No callback comes any more.
    /// Afterwards all other mappings of the recording and its
    /// [parts](clrscope_agent_base::recording_lifetime) are dropped.
    fn outlive_recording(&self) {}

    /// Prepares the record of the calling thread, which is new. Runs in a hook, so it neither
    /// blocks nor waits. Returns false if there is no room; the thread is then not recorded at all.
    fn thread_begins(&self, record: ThreadRecord) -> bool {
        true
    }

    /// Called when the calling thread ends, after its last hook or between two hooks.
    fn thread_ends(&self, record: ThreadRecord) {}

    /// Hooks that query the runtime about each call, instead of the parts of
    /// [`hook_parts`](Self::hook_parts). If such hooks are registered, all hooks of the process are
    /// of the slow kind.
    fn slow_hooks(&self) -> Option<Arc<dyn InfoHooks>> {
        None
    }

    /// Client identifier for the hooks of a function that is about to be compiled; 0 for no hooks.
    /// `client` is the identifier that the hooks would get without this instrument. The answer must
    /// be the same each time.
    fn mapped(&self, function: FunctionId, index: u32, client: usize) -> usize {
        client
    }

    /// Client identifier for the hooks of a function that the filters left out; `None` unless this
    /// instrument needs hooks in it nevertheless. The answer must be the same each time.
    fn needs(&self, function: FunctionId, index: u32) -> Option<usize> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use clrscope_contract::instruments::{CheckedInstrument, check};
    use clrscope_contract::request::InstrumentRequest;

    /// A checked request, as an instrument receives it.
    pub(crate) fn checked(text: &str) -> CheckedInstrument {
        check(&InstrumentRequest::parse(text).expect("the grammar")).expect("a request")
    }
}
