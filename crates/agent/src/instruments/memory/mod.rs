//! `memory`: what the memory of the process is used for, now and at its peak.
//!
//! The system gives the mappings and their resident sizes. The runtime gives the collector's
//! ranges, and its events give the sizes of the generations after each collection. The helper
//! thread takes a reading at the beginning, at each new peak of the resident size, and at the end.

mod look;
mod mappings;
mod options;
mod places;

use std::ops::Range;
use std::sync::Arc;

use clr_profiler::callback_args::EventPipeEvent;
use clr_profiler::{Callbacks, Events, HeapRange, ProfilerInfo};
use clrscope_agent_base::event_pipe::{EventPipe, RUNTIME, level};
use clrscope_agent_base::helper::Task;
use clrscope_recording::layout::instrument;

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::event_log::EventLog;
use crate::services::gc_events::{GC_KEYWORD, GcEvent};

use look::{Looker, ManagedHeap};

pub(crate) use options::MemoryOptions;

/// The instrument `memory` while it runs.
pub(crate) struct Memory {
    info: ProfilerInfo,
    log: &'static EventLog,
    pipe: &'static EventPipe,
    heap: Arc<ManagedHeap>,
    recording: String,
}

impl Memory {
    /// Asks for the collector's ranges, which the runtime gives as of the last collection. Not on
    /// the helper thread, which the runtime does not know.
    fn find_heap(&self) {
        let ranges = |bounds: Vec<HeapRange>| bounds.iter().map(range).collect::<Vec<_>>();
        let heap = self.info.generation_bounds().unwrap_or_default();
        let frozen = self.info.non_gc_heap_bounds().unwrap_or_default();
        self.heap.lies_in(ranges(heap), ranges(frozen));
    }
}

fn range(range: &HeapRange) -> Range<u64> {
    let start = range.start as u64;
    start..start.saturating_add(range.bytes.max(range.reserved_bytes) as u64)
}

impl Instrument for Memory {
    type Options = MemoryOptions;

    fn start(options: &MemoryOptions, context: &Context) -> std::result::Result<Self, String> {
        let log = EventLog::create(context, instrument::MEMORY, options.max_bytes)?;
        let pipe = context.event_pipe();
        pipe.want(RUNTIME, GC_KEYWORD, level::INFORMATIONAL);
        let recording = context.writer.folder().to_string_lossy().into_owned();
        Ok(Self { info: context.info.clone(), log, pipe, heap: Arc::default(), recording })
    }

    fn events(&self) -> Events {
        Events::BASIC_GC | self.pipe.events()
    }

    fn begins(&self, _beginning: Beginning) {
        self.pipe.begin();
        self.find_heap();
    }

    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![self.log.task(), Box::new(Looker::new(self.log, &self.heap, self.recording.clone()))]
    }

    fn detach_in_child(&self) {
        self.log.detach_in_child();
    }
}

impl Callbacks for Memory {
    fn garbage_collection_finished(&self) {
        if self.heap.is_due() {
            self.find_heap();
        }
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        match self.pipe.of_runtime(event).and_then(GcEvent::read) {
            Some(GcEvent::Range { start, bytes }) => self.heap.has_range(start..start.saturating_add(bytes)),
            Some(GcEvent::Ended { .. }) => self.heap.collection_ended(),
            Some(GcEvent::Heap { ref generations, .. }) => self.heap.heap(generations),
            _ => {}
        }
    }
}
