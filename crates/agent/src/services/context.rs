//! Context in which instruments and services start.

use std::sync::{Arc, OnceLock};

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::event_pipe::{EventPipe, SharedEventPipe};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::helper::HelperHandle;
use clrscope_agent_base::patterns::{ProbePatterns, Redaction};
use clrscope_agent_stacks::code::{CodeFeed, CodeMap, SharedCodeFeed};
use clrscope_agent_stacks::sampling::{Sampler, SamplerContext, SharedSampler};
use clrscope_agent_stacks::stacks::table::SharedStackTable;
use clrscope_agent_stacks::stacks::{CallStacks, StackOptions};
use clrscope_agent_values::types::Types;
use clrscope_contract::request::SourceLine;
use clrscope_recording::layout::instrument;
use clrscope_recording::writer::{EventStore, Keep, ProcessWriter};

use super::code_authors::CodeAuthors;
use super::kept_events::KeptEvents;
use super::object_types::ObjectTypes;
use super::triggers::Triggers;
use crate::hook_sets::HookParts;

/// Address space for the dictionary of types, which is mapped once and can't grow.
const TYPES_BYTES: u64 = 256 << 20;

/// How the recording of a process begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Together with the runtime.
    Launch,
    /// In a program that was already running.
    Attach,
}

/// Context in which an instrument starts.
pub(crate) struct Context {
    pub(crate) info: ProfilerInfo,
    pub(crate) writer: &'static ProcessWriter,
    pub(crate) functions: Arc<Functions>,
    /// Types of objects, for instruments that record memory.
    pub(crate) object_types: Arc<ObjectTypes>,
    pub(crate) helper: HelperHandle,
    pub(crate) interval_ns: u64,
    /// Time in monotonic nanoseconds at which the recording of the process began.
    pub(crate) start_ns: u64,
    pub(crate) beginning: Beginning,
    /// Which events the instruments keep.
    pub(crate) kept_events: KeptEvents,
    /// Conditions that cause the kept events to be written out.
    pub(crate) triggers: &'static Triggers,
    /// Parameters and fields whose values must never be read.
    pub(crate) redact: Arc<Redaction>,
    /// Methods whose calls are probed.
    pub(crate) probes: ProbePatterns,
    /// Lines of the source that are counted.
    pub(crate) probe_lines: Vec<SourceLine>,
    /// The parts of the hooks' work that all instruments need together.
    pub(crate) hooks: HookParts,
    pub(crate) types: SharedTypes,
    /// The stack table of the recording, for instruments that record stacks.
    pub(crate) stacks: SharedStackTable,
    /// Changes of compiled code, for all users that look up addresses.
    pub(crate) code: SharedCodeFeed,
    /// Authors of changed code. An instrument that changes methods at load starts before an
    /// instrument that changes them later.
    pub(crate) code_authors: CodeAuthors,
    /// The sampler, for instruments that record samples.
    pub(crate) sampler: SharedSampler,
    /// The session that delivers the runtime's own events.
    pub(crate) event_pipe: SharedEventPipe,
}

/// The types of the program, created when an instrument first asks for them.
#[derive(Default)]
pub(crate) struct SharedTypes(OnceLock<&'static Types>);

impl SharedTypes {
    /// The types; `None` if no instrument has asked for them.
    pub(crate) fn in_use(&self) -> Option<&'static Types> {
        self.0.get().copied()
    }
}

impl Context {
    /// The session that delivers the runtime's own events, created when the first instrument asks.
    pub(crate) fn event_pipe(&self) -> &'static EventPipe {
        self.event_pipe.open(&self.info, self.writer)
    }

    /// The sampler, created when the first instrument asks for it.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(crate) fn sampler(&self) -> Result<&'static Sampler, String> {
        let Self { info, writer, helper, stacks, start_ns, .. } = self;
        let code = || self.code_map();
        self.sampler.open(SamplerContext { info, writer, helper, stacks, start_ns: *start_ns, code: &code })
    }

    /// A new map of code. Its user must ask the runtime for [`CodeFeed::EVENTS`].
    pub(crate) fn code_map(&self) -> CodeMap {
        CodeMap::new(&self.info, &self.functions, &self.code, self.code_authors.changes_at_load())
    }

    /// Changes of the program's code. They are complete only if the runtime is asked for
    /// [`CodeFeed::EVENTS`].
    pub(crate) fn code_feed(&self) -> Arc<CodeFeed> {
        self.code.open(&self.info, &self.functions, self.code_authors.changes_at_load())
    }

    /// Call stacks for callbacks, with numbers in the recording's stack table. The user must ask
    /// the runtime for the events about unloaded code.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(crate) fn call_stacks(&self, wanted: StackOptions) -> Result<CallStacks, String> {
        let recorded = self.stacks.open(self.writer, &self.helper)?;
        let code = self.code_feed();
        CallStacks::new(wanted, &self.info, &self.functions, (recorded, code.inlined(), code.awaiters()))
    }

    /// Creates the store of an instrument's samples, of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// A sentence for the user, when its file could not be made.
    pub(crate) fn sample_store(&self, instrument: &str, max_bytes: u64) -> Result<EventStore, String> {
        let kept = self.kept_events;
        let made = self.writer.create_slow_events(instrument, kept.limit(max_bytes), kept.keep());
        made.map_err(|error| format!("no memory for samples: {error}"))
    }

    /// The types of the program, for instruments that store values: one dictionary for all of them,
    /// created when the first instrument asks. `takes_values`: hooks store numbers from registers
    /// at once.
    ///
    /// # Errors
    /// A sentence for the user, when the dictionary's file could not be made.
    pub(crate) fn types(&self, takes_values: bool) -> Result<&'static Types, String> {
        if let Some(types) = self.types.in_use() {
            return Ok(types);
        }
        // The file has the name that the first instrument with values gave it, which recordings
        // keep.
        let store = self
            .writer
            .create_events(instrument::FLOW_TYPES, TYPES_BYTES, Keep::First)
            .map_err(|error| format!("no memory for types: {error}"))?;
        let types = Types::publish(&self.info, store, self.functions.clone(), self.redact.clone(), takes_values);
        Ok(self.types.0.get_or_init(|| types))
    }
}
