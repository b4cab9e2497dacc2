//! The instruments, one module each, and the single list of them, from which all code about all
//! instruments is generated.

use std::sync::Arc;

use clr_profiler::{Events, FunctionId, InfoHooks};
use clrscope_agent_base::functions::FunctionSelection;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::threads::FollowThreads;
use clrscope_contract::instruments::{CheckedInstrument, Spec};
use clrscope_recording::writer::ThreadRecord;

use crate::hook_sets::{HookParts, HookSet};
use crate::instrument::{Instrument, InstrumentOptions};
use crate::services::context::{Beginning, Context};

/// Declares the instruments: `NAME: TYPE`, where `NAME` is the module.
macro_rules! instruments {
    ($($name:ident: $type:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*

        /// The specifications of all instruments, in the order in which they receive callbacks.
        pub(crate) const ALL: &[&Spec] = &[$(<<$name::$type as Instrument>::Options as InstrumentOptions>::SPEC),*];

        /// The options of the instruments that were requested.
        #[derive(Default)]
        pub(crate) struct Requested {
            $($name: Option<<$name::$type as Instrument>::Options>,)*
        }

        impl Requested {
            /// Takes the options of a request.
            ///
            /// # Errors
            /// A sentence for the user, when there is no such instrument in this agent.
            pub(crate) fn add(&mut self, request: &CheckedInstrument) -> Result<(), String> {
                $(if request.spec().name == <<$name::$type as Instrument>::Options as InstrumentOptions>::SPEC.name {
                    self.$name = Some(InstrumentOptions::from_request(request));
                    return Ok(());
                })*
                Err(format!("the instrument '{}' is not in this agent", request.spec().name))
            }

            /// All parts of the hooks' work that at least one instrument needs.
            pub(crate) fn hook_parts(&self) -> HookParts {
                let parts = HookParts::NONE;
                $(let parts = self.$name.as_ref().map_or(parts, |options| {
                    parts.and(<$name::$type as Instrument>::hook_parts(options))
                });)*
                parts
            }

            /// Chooses the functions that get hooks: all functions that at least one instrument
            /// needs.
            pub(crate) fn choose(&self, choice: &mut FunctionSelection) {
                $(if let Some(options) = &self.$name {
                    <$name::$type as Instrument>::choose(options, choice);
                })*
            }
        }

        /// The instruments that run.
        #[derive(Default)]
        pub(crate) struct Instruments {
            $($name: Option<$name::$type>,)*
        }

        clr_profiler::compose_callbacks! { Instruments { $($name),* } }

        impl Instruments {
            /// Starts the requested instruments, in the order of the list.
            ///
            /// # Errors
            /// A sentence for the user, when an instrument could not start.
            pub(crate) fn start(requested: &Requested, context: &Context) -> Result<Self, String> {
                let mut started = Self::default();
                $(if let Some(options) = &requested.$name {
                    started.$name = Some(<$name::$type as Instrument>::start(options, context)?);
                })*
                Ok(started)
            }

            /// All instruments as trait objects, `None` for those that do not run.
            fn places(&self) -> [Option<&dyn Instrument>; ALL.len()] {
                [$(self.$name.as_ref().map(|instrument| instrument as &dyn Instrument)),*]
            }
        }

        /// The sets of hooks of all instruments.
        fn hook_sets() -> impl Iterator<Item = &'static HookSet> {
            [$(<$name::$type as Instrument>::hook_sets()),*].into_iter().flatten()
        }
    };
}

// Bodies with probes include the code that `coverage` has put into methods, so `coverage` comes
// before `probes`.
instruments! {
    calls: Calls,
    flow: Flow,
    events: Events,
    exceptions: Exceptions,
    cpu: Cpu,
    wall: Wall,
    gc: Gc,
    locks: Locks,
    awaits: Awaits,
    requests: Requests,
    counters: Counters,
    memory: Memory,
    heap: Heap,
    alloc: Alloc,
    coverage: Coverage,
    probes: Probes,
}

impl Instruments {
    fn all(&self) -> impl Iterator<Item = &dyn Instrument> {
        self.places().into_iter().flatten()
    }

    /// All events that at least one instrument wants from the runtime.
    pub(crate) fn events(&self) -> Events {
        Events::of_parts(self.all().map(|instrument| instrument.events()))
    }

    /// Tells the instruments that the agent runs now.
    pub(crate) fn begin(&self, beginning: Beginning) {
        self.all().for_each(|instrument| instrument.begins(beginning));
    }

    /// Whether an instrument needs the helper thread in each of the request's intervals.
    pub(crate) fn need_frequent_help(&self) -> bool {
        self.all().any(|instrument| instrument.needs_frequent_help())
    }

    /// Tasks of all instruments on the helper thread. Called once.
    pub(crate) fn tasks(&self) -> Vec<Box<dyn Task>> {
        self.all().flat_map(|instrument| instrument.tasks()).collect()
    }

    /// Hooks that ask the runtime about each call; `None` unless an instrument wants them.
    pub(crate) fn slow_hooks(&self) -> Option<Arc<dyn InfoHooks>> {
        self.all().find_map(Instrument::slow_hooks)
    }

    /// Gives handles back to the runtime before an attached agent detaches.
    pub(crate) fn release_handles(&self) {
        self.all().for_each(Instrument::release_handles);
    }

    /// In a forked child: releases all mappings. Async-signal-safe.
    pub(crate) fn detach_in_child(&self) {
        self.all().for_each(|instrument| instrument.detach_in_child());
    }

    /// Call it when the recording is over but changed code of the program may still write to it.
    pub(crate) fn outlive_recording(&self) {
        self.all().for_each(|instrument| instrument.outlive_recording());
    }

    /// Client identifier for the hooks of a chosen function; 0 for no hooks.
    pub(crate) fn mapped(&self, function: FunctionId, index: u32) -> usize {
        self.all().fold(index as usize, |client, instrument| instrument.mapped(function, index, client))
    }

    /// Client identifier for the hooks of a function that the filters left out. `None` unless an
    /// instrument needs hooks in it nevertheless.
    pub(crate) fn needs(&self, function: FunctionId, index: u32) -> Option<usize> {
        self.all().find_map(|instrument| instrument.needs(function, index))
    }
}

impl FollowThreads for Instruments {
    fn thread_begins(&self, record: ThreadRecord) -> bool {
        let failed = self.all().position(|instrument| !instrument.thread_begins(record));
        if let Some(at) = failed {
            self.all().take(at).for_each(|begun| begun.thread_ends(record));
        }
        failed.is_none()
    }

    fn thread_ends(&self, record: ThreadRecord) {
        self.all().for_each(|instrument| instrument.thread_ends(record));
    }
}

/// The set of hooks that does exactly these parts of the work; `None` if there is none.
pub(crate) fn hook_set(parts: HookParts) -> Option<&'static HookSet> {
    hook_sets().find(|set| set.does == parts)
}
