//! Interface of instruments: callbacks with a specification, a start, and needs.
//!
//! An instrument receives all callbacks of the runtime, as [`Callbacks`]. Callbacks run on the
//! program's threads behind the framework's panic boundary. None may write to the program's
//! streams, and none is called before the instrument's [`start`](Instrument::start) has returned.
//!
//! Recording can stop and start again while the process lives ([`HelperHandle`]): the work is that
//! of the instrument's [tasks](Instrument::tasks), on the helper thread. Hooks can be had at the
//! start of the runtime only, so they stay; they do nothing while recording is stopped.
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

/// Options of an instrument as requested, with every default filled in.
pub(crate) trait InstrumentOptions: Sized {
    /// The specification of the instrument that these are the options of.
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

    /// The sets of hooks that the instrument brings, alone and together with others.
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

    /// Says which functions the instrument can do without.
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

    /// Notification that the agent runs: the last step of the runtime's `Initialize` or
    /// `InitializeForAttach`, on the thread that calls it.
    fn begins(&self, beginning: Beginning) {}

    /// Whether the helper thread must look after the instrument in each of the request's intervals:
    /// it takes samples itself, or the program's threads wait for the memory that it backs ahead of
    /// them. Without such an instrument the thread wakes rarely.
    fn needs_frequent_help(&self) -> bool {
        true
    }

    /// Tasks of the instrument on the helper thread: regular work, and work where recording stops
    /// and starts again. Called once.
    fn tasks(&self) -> Vec<Box<dyn Task>> {
        Vec::new()
    }

    /// An attached agent leaves: handles of the runtime are given back. No callback is under way,
    /// and the runtime can still be asked.
    fn release_handles(&self) {}

    /// In a forked child: lets go of everything that is mapped. Async-signal-safe.
    fn detach_in_child(&self) {}

    /// The recording of an attached agent is over, which the runtime does not let go: what code of
    /// the program that was changed may still store to is made memory of the process's own. No
    /// callback comes any more, and then all other mappings of the recording go, and its
    /// [parts](clrscope_agent_base::recording_lifetime).
    fn outlive_recording(&self) {}

    /// Prepares the record of the calling thread, which is new. Runs in a hook, so it neither
    /// blocks nor waits; false when there is no room, and then the thread is not recorded at all.
    fn thread_begins(&self, record: ThreadRecord) -> bool {
        true
    }

    /// The calling thread ends. Runs after its last hook, or between two.
    fn thread_ends(&self, record: ThreadRecord) {}

    /// Hooks that ask the runtime about each call, in the place of the parts of
    /// [`hook_parts`](Self::hook_parts): where these are registered, all hooks of the process are
    /// of the slow kind.
    fn slow_hooks(&self) -> Option<Arc<dyn InfoHooks>> {
        None
    }

    /// Client identifier for the hooks of a function that is about to be compiled, from the one
    /// that the hooks would get without this instrument; 0 for no hooks. The answer must be the
    /// same each time.
    fn mapped(&self, function: FunctionId, index: u32, client: usize) -> usize {
        client
    }

    /// Client identifier for the hooks of a function that the filters left out, where this
    /// instrument needs hooks in it. The answer must be the same each time.
    fn needs(&self, function: FunctionId, index: u32) -> Option<usize> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use clrscope_contract::instruments::{CheckedInstrument, check};
    use clrscope_contract::request::InstrumentRequest;

    /// A request as an instrument gets it.
    pub(crate) fn checked(text: &str) -> CheckedInstrument {
        check(&InstrumentRequest::parse(text).expect("the grammar")).expect("a request")
    }
}
