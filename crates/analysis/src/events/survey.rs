//! First pass over all records of a process, before its first row is shown: it collects names, and
//! pairs of events that lie in different chunks.

use clrscope_recording::events::{Kind, OwnedRecord, Record, Records, Tag};
use clrscope_recording::model::{EventArena, EventChunk, Process, Thread};
use rustc_hash::{FxHashMap, FxHashSet};

use super::names::EventNames;
use super::pairing::{Crossing, Open, Pairing, Part};

/// Reason why a search for precompiled code has no end event.
pub(super) const REJECTED: &str = "the precompiled code was rejected";

/// The partner of an event, if it is in another chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DistantPartner {
    /// Nanoseconds between start and end.
    pub(super) duration_ns: u64,
    /// Whether the partner is on the same thread, so that the events between are nested within the
    /// pair.
    pub(super) nests: bool,
}

/// The events of one thread.
#[derive(Debug)]
pub(super) struct StreamSurvey<'a> {
    pub(super) thread: Option<&'a Thread>,
    pub(super) chunks: Vec<&'a EventChunk>,
    /// Partners in another chunk, by the index of the event among the events of the thread.
    pub(super) far: FxHashMap<u64, DistantPartner>,
    /// Searches at the end of a chunk that found no suitable code, unless they have an end event.
    pub(super) rejected: FxHashSet<u64>,
}

/// An arena of events.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    pub(super) process: &'a Process,
    pub(super) names: EventNames<'a>,
    /// Threads in the order in which they were first seen, then the events without a thread.
    pub(super) streams: Vec<StreamSurvey<'a>>,
}

impl<'a> Survey<'a> {
    pub(super) fn read(process: &'a Process, arena: &'a EventArena) -> Self {
        let mut names = EventNames::new(process);
        let mut crossing = Crossing::default();
        let mut streams = Vec::new();
        for (at, (thread, chunks)) in arena.by_thread().into_iter().enumerate() {
            let (mut far, mut rejected) = (FxHashMap::default(), FxHashSet::default());
            Pass::new(at, &mut names, &mut crossing, &mut far, &mut rejected).walk(&chunks);
            streams.push(StreamSurvey { thread: process.threads.get(thread as usize), chunks, far, rejected });
        }
        for ((start, a), (end, b), duration_ns) in crossing.pairs() {
            let far = DistantPartner { duration_ns, nests: false };
            streams[start].far.insert(a, far);
            streams[end].far.insert(b, far);
        }
        Self { process, names, streams }
    }
}

/// Whether `next` shows that the search that `search` began was unsuccessful. The runtime reports
/// the end of a search for precompiled code only if it uses the code. If the code does not fit this
/// process or processor, the runtime compiles the method without an end event.
pub(super) fn is_rejected(search: &Record<'_>, next: &Record<'_>) -> bool {
    search.kind == Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED
        && next.kind == Kind::JIT_COMPILATION_STARTED
        && search.entity(Tag::FUNCTION) == next.entity(Tag::FUNCTION)
}

/// A walk over the events of one thread.
struct Pass<'s, 'a> {
    stream: usize,
    names: &'s mut EventNames<'a>,
    crossing: &'s mut Crossing,
    far: &'s mut FxHashMap<u64, DistantPartner>,
    rejected: &'s mut FxHashSet<u64>,
    pairing: Pairing,
    at: u64,
}

impl<'s, 'a> Pass<'s, 'a> {
    fn new(
        stream: usize,
        names: &'s mut EventNames<'a>,
        crossing: &'s mut Crossing,
        far: &'s mut FxHashMap<u64, DistantPartner>,
        rejected: &'s mut FxHashSet<u64>,
    ) -> Self {
        Self { stream, names, crossing, far, rejected, pairing: Pairing::default(), at: 0 }
    }

    fn walk(mut self, chunks: &[&EventChunk]) {
        let mut search_before: Option<OwnedRecord> = None;
        for chunk in chunks {
            let bytes = chunk.bytes.load();
            let first = self.at;
            let mut last = None;
            for record in Records::new(&bytes) {
                self.names.learn(&record);
                if record.kind.name().is_none() {
                    continue;
                }
                if search_before.take().is_some_and(|search| is_rejected(&search.record(), &record)) {
                    self.rejected.insert(self.at - 1);
                }
                self.event(&record, first);
                self.at += 1;
                last = Some(record);
            }
            let searches = |last: &Record<'_>| last.kind == Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED;
            search_before = last.filter(searches).map(|last| OwnedRecord::from(&last)).or(search_before);
        }
        let (crossing, stream) = (self.crossing, self.stream);
        self.pairing.finish(|open| crossing.start(stream, open));
    }

    /// Processes an event of the chunk whose first event is `first`.
    fn event(&mut self, record: &Record<'_>, first: u64) {
        let (crossing, stream, at) = (&mut *self.crossing, self.stream, self.at);
        match self.pairing.add_event(record, at, |open| crossing.start(stream, open)) {
            Part::End { start: Some(Open { time_ns, at: start, .. }), .. } if start < first => {
                let far = DistantPartner { duration_ns: record.time_ns.saturating_sub(time_ns), nests: true };
                self.far.insert(start, far);
            }
            Part::End { of, start: None } => crossing.end(stream, of, record.time_ns, at),
            _ => {}
        }
    }
}
