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

/// Address space for the dictionary of types: a mapping can't grow.
const TYPES_BYTES: u64 = 256 << 20;

/// Beginning of the recording of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With the runtime.
    Launch,
    /// In a program that was running.
    Attach,
}

/// Context in which an instrument starts.
pub(crate) struct Context {
    pub(crate) info: ProfilerInfo,
    pub(crate) writer: &'static ProcessWriter,
    pub(crate) functions: Arc<Functions>,
    /// Types of objects, for instruments about memory.
    pub(crate) object_types: Arc<ObjectTypes>,
    pub(crate) helper: HelperHandle,
    pub(crate) interval_ns: u64,
    /// Monotonic nanoseconds when the recording of the process began.
    pub(crate) start_ns: u64,
    pub(crate) beginning: Beginning,
    /// Events that instruments keep.
    pub(crate) kept_events: KeptEvents,
    /// What has the kept events written out.
    pub(crate) triggers: &'static Triggers,
    /// Parameters and fields whose values are never to be read.
    pub(crate) redact: Arc<Redaction>,
    /// Methods whose calls are to be looked at.
    pub(crate) probes: ProbePatterns,
    /// Lines of the source that are to be counted.
    pub(crate) probe_lines: Vec<SourceLine>,
    /// Parts of the work of hooks that all instruments need together.
    pub(crate) hooks: HookParts,
    pub(crate) types: SharedTypes,
    /// The stack table of the recording, for instruments that record stacks.
    pub(crate) stacks: SharedStackTable,
    /// News of compiled code, for anything that looks addresses up.
    pub(crate) code: SharedCodeFeed,
    /// Authors of changed code. An instrument that changes methods when they are loaded starts
    /// before one that changes them later.
    pub(crate) code_authors: CodeAuthors,
    /// Sampler, for instruments that record samples.
    pub(crate) sampler: SharedSampler,
    /// The session that delivers the runtime's own events.
    pub(crate) event_pipe: SharedEventPipe,
}

/// The types of the program, once an instrument has asked for them.
#[derive(Default)]
pub(crate) struct SharedTypes(OnceLock<&'static Types>);

impl SharedTypes {
    /// The types, where an instrument asked for them.
    pub(crate) fn in_use(&self) -> Option<&'static Types> {
        self.0.get().copied()
    }
}

impl Context {
    /// The session that delivers the runtime's own events, made when the first instrument asks.
    pub(crate) fn event_pipe(&self) -> &'static EventPipe {
        self.event_pipe.open(&self.info, self.writer)
    }

    /// Sampler, made when the first instrument asks.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(crate) fn sampler(&self) -> Result<&'static Sampler, String> {
        let Self { info, writer, helper, stacks, start_ns, .. } = self;
        let code = || self.code_map();
        self.sampler.open(SamplerContext { info, writer, helper, stacks, start_ns: *start_ns, code: &code })
    }

    /// A new map of code. Who has one asks the runtime for [`CodeFeed::EVENTS`].
    pub(crate) fn code_map(&self) -> CodeMap {
        CodeMap::new(&self.info, &self.functions, &self.code, self.code_authors.changes_at_load())
    }

    /// Changes of the program's code, as far as the runtime is asked for [`CodeFeed::EVENTS`].
    pub(crate) fn code_feed(&self) -> Arc<CodeFeed> {
        self.code.open(&self.info, &self.functions, self.code_authors.changes_at_load())
    }

    /// Call stacks for callbacks, with numbers in the recording's stack table. Who has them asks
    /// the runtime for the events that tell of code that goes.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(crate) fn call_stacks(&self, wanted: StackOptions) -> Result<CallStacks, String> {
        let recorded = self.stacks.open(self.writer, &self.helper)?;
        let code = self.code_feed();
        CallStacks::new(wanted, &self.info, &self.functions, (recorded, code.inlined(), code.awaiters()))
    }

    /// The store of an instrument's samples, `max_bytes` long at most.
    ///
    /// # Errors
    /// A sentence for the user, when its file could not be made.
    pub(crate) fn sample_store(&self, instrument: &str, max_bytes: u64) -> Result<EventStore, String> {
        let kept = self.kept_events;
        let made = self.writer.create_slow_events(instrument, kept.limit(max_bytes), kept.keep());
        made.map_err(|error| format!("no memory for samples: {error}"))
    }

    /// The types of the program, for instruments that store values; one dictionary for all of them,
    /// made when the first asks. `takes_values`: hooks store numbers that lie in registers at once.
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
