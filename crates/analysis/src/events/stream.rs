//! Events of one thread with their depth and duration, computed while the records are walked.
//!
//! Only pairs nest. Pairs within a chunk are found at the begin of the chunk. The
//! [survey](super::survey) knows the other pairs.

use std::vec;

use clrscope_recording::events::{Kind, OwnedRecord, Phase, Record, Records};
use clrscope_recording::model::Thread;

use super::cursor::{Cursor, Stream};
use super::pairing::{Pairing, Part};
use super::survey::{REJECTED, StreamSurvey, Survey, is_rejected};
use super::{EventNames, EventQuery, EventRow, wants};

/// A start or an end in the current chunk.
#[derive(Debug, Clone, Copy)]
struct PairedEvent {
    /// Index among the events of the thread.
    at: u64,
    duration_ns: Option<u64>,
    /// Whether the events between the two are nested within the pair.
    nests: bool,
}

/// Columns of a row that depend on other events.
#[derive(Debug, Clone, Copy, Default)]
struct PairColumns {
    depth: u32,
    duration_ns: Option<u64>,
    remark: Option<&'static str>,
}

/// The events of one thread.
pub(super) struct EventStream<'l, 'a> {
    survey: &'l Survey<'a>,
    of: &'l StreamSurvey<'a>,
    cursor: Cursor<'a>,
    /// Number of the chunk that `paired` belongs to, plus 1.
    begun: usize,
    paired: vec::IntoIter<PairedEvent>,
    pairing: Pairing,
    /// Index of the next event.
    at: u64,
    depth: u32,
}

impl<'l, 'a> EventStream<'l, 'a> {
    pub(super) fn new(survey: &'l Survey<'a>, of: &'l StreamSurvey<'a>) -> Self {
        Self {
            survey,
            of,
            cursor: Cursor::new(of.chunks.clone()),
            begun: 0,
            paired: Vec::new().into_iter(),
            pairing: Pairing::default(),
            at: 0,
            depth: 0,
        }
    }

    /// The thread; `None` if unknown.
    pub(super) fn thread(&self) -> Option<&'a Thread> {
        self.of.thread
    }

    /// Reads the next event. Returns its row if the query selects it.
    pub(super) fn step(&mut self, query: &EventQuery) -> Option<EventRow<'l>> {
        self.settle();
        let at = self.at;
        let mut records = self.cursor.records()?;
        let record = records.next()?;
        let phase = record.phase();
        let mut standing = PairColumns { depth: self.depth, ..PairColumns::default() };
        if phase != Phase::Single {
            let paired = self.paired.next();
            standing.duration_ns = paired.and_then(|paired| paired.duration_ns);
            if paired.is_some_and(|paired| paired.nests) {
                if phase == Phase::Start {
                    self.depth = self.depth.saturating_add(1);
                } else {
                    self.depth = self.depth.saturating_sub(1);
                    standing.depth = self.depth;
                }
            }
        }
        let (survey, of) = (self.survey, self.of);
        let time_ns = survey.process.started_ns.saturating_add(record.time_ns);
        let row = wants(query, &record, time_ns, of.thread, &survey.names).then(|| {
            if record.kind == Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED && standing.duration_ns.is_none() {
                let next = records.find(is_named);
                let is_rejected = next.map_or_else(|| of.rejected.contains(&at), |next| is_rejected(&record, &next));
                standing.remark = is_rejected.then_some(REJECTED);
            }
            row(survey, of.thread, time_ns, &record, standing)
        });
        self.at += 1;
        self.cursor.advance();
        row
    }

    /// Moves to the next record that is an event. At the begin of a chunk, finds the pairs of the
    /// chunk.
    fn settle(&mut self) -> Option<u64> {
        loop {
            let record = self.cursor.record()?;
            let (is_named, time_ns) = (is_named(&record), record.time_ns);
            if self.begun != self.cursor.number() + 1 {
                self.begin_chunk();
            }
            if is_named {
                return Some(time_ns);
            }
            self.cursor.advance();
        }
    }

    fn begin_chunk(&mut self) {
        self.begun = self.cursor.number() + 1;
        let (mut paired, mut at, first) = (Vec::new(), self.at, self.at);
        let Some(bytes) = self.cursor.chunk() else { return };
        // Places of starts in `paired`, by their place in the chunk.
        let mut starts: Vec<u32> = Vec::new();
        for record in Records::new(bytes).filter(is_named) {
            match self.pairing.add_event(&record, at, |_| ()) {
                Part::Single => starts.push(u32::MAX),
                Part::Start => {
                    starts.push(paired.len() as u32);
                    paired.push(PairedEvent { at, duration_ns: None, nests: false });
                }
                Part::End { start, .. } => {
                    starts.push(u32::MAX);
                    let duration_ns = start.map(|start| record.time_ns.saturating_sub(start.time_ns));
                    if let Some(place) = start.and_then(|start| starts.get(start.at.checked_sub(first)? as usize)) {
                        let start: &mut PairedEvent = &mut paired[*place as usize];
                        (start.duration_ns, start.nests) = (duration_ns, true);
                    }
                    paired.push(PairedEvent { at, duration_ns, nests: duration_ns.is_some() });
                }
            }
            at += 1;
        }
        for open in paired.iter_mut().filter(|paired| paired.duration_ns.is_none()) {
            if let Some(far) = self.of.far.get(&open.at) {
                (open.duration_ns, open.nests) = (Some(far.duration_ns), far.nests);
            }
        }
        self.paired = paired.into_iter();
    }
}

impl Stream for EventStream<'_, '_> {
    fn time_ns(&mut self) -> Option<u64> {
        let time_ns = self.settle()?;
        Some(self.survey.process.started_ns.saturating_add(time_ns))
    }

    fn unload(&mut self) {
        self.cursor.unload();
    }
}

/// Whether the record is an event of a known kind, rather than a dictionary entry or a record of a
/// later version.
fn is_named(record: &Record<'_>) -> bool {
    record.kind.name().is_some()
}

fn row<'l>(
    survey: &'l Survey<'_>,
    thread: Option<&'l Thread>,
    time_ns: u64,
    record: &Record<'_>,
    standing: PairColumns,
) -> EventRow<'l> {
    let PairColumns { depth, duration_ns, remark } = standing;
    let names: &'l EventNames<'l> = &survey.names;
    EventRow {
        process: survey.process,
        thread,
        time_ns,
        depth,
        duration_ns,
        remark,
        record: OwnedRecord::from(record),
        names,
    }
}
