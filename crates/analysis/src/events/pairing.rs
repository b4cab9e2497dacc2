//! Pairs of events: a start with its end.
//!
//! A start without an end stays unpaired. The runtime does not report the end of an unwind that
//! reached its catcher, nor the end of a block that another exception left.

use std::collections::BTreeMap;

use clrscope_recording::events::{Kind, Phase, Record};

/// Maximum number of open starts of one thread. If there are more, the oldest stay unpaired.
const MOST_OPEN: usize = 1 << 16;

/// A start that has no end yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) kind: Kind,
    /// Nanoseconds since the start of the process's recording.
    pub(super) time_ns: u64,
    /// Index of the event among the events of its thread.
    pub(super) at: u64,
}

/// The role of an event in a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Single,
    Start,
    /// The end of an event of the kind `of`: of the event `start`, or `None` if that is not on this
    /// thread.
    End {
        of: Kind,
        start: Option<Open>,
    },
}

/// Pairs the events of one thread: an end closes the innermost open start of its kind, and the
/// starts that are still open within it.
#[derive(Debug)]
pub(super) struct Pairing {
    open: Vec<Open>,
    by_kind: [u32; 256],
}

impl Default for Pairing {
    fn default() -> Self {
        Self { open: Vec::new(), by_kind: [0; 256] }
    }
}

impl Pairing {
    /// Adds the event at this index. Calls `alone` with each start that can't have an end on this
    /// thread.
    pub(super) fn add_event(&mut self, record: &Record<'_>, at: u64, mut alone: impl FnMut(Open)) -> Part {
        match record.phase() {
            Phase::Single => Part::Single,
            Phase::Start => {
                if self.open.len() >= MOST_OPEN {
                    self.drop_from(0, MOST_OPEN / 2, &mut alone);
                }
                self.by_kind[usize::from(record.kind.0)] += 1;
                self.open.push(Open { kind: record.kind, time_ns: record.time_ns, at });
                Part::Start
            }
            Phase::End(of) => Part::End { of, start: self.innermost(of, &mut alone) },
        }
    }

    /// Takes out the innermost start of this kind, and the starts that are still open within it.
    fn innermost(&mut self, of: Kind, alone: &mut impl FnMut(Open)) -> Option<Open> {
        if self.by_kind[usize::from(of.0)] == 0 {
            return None;
        }
        let place = self.open.iter().rposition(|open| open.kind == of)?;
        self.drop_from(place + 1, self.open.len(), alone);
        self.by_kind[usize::from(of.0)] -= 1;
        self.open.pop()
    }

    /// Calls `alone` with each open start, because the thread has no more events.
    pub(super) fn finish(mut self, mut alone: impl FnMut(Open)) {
        self.drop_from(0, self.open.len(), &mut alone);
    }

    fn drop_from(&mut self, first: usize, end: usize, alone: &mut impl FnMut(Open)) {
        for open in self.open.drain(first..end) {
            self.by_kind[usize::from(open.kind.0)] -= 1;
            alone(open);
        }
    }
}

/// Whether an event of this kind can end on another thread: only events of the whole process can.
pub(super) fn may_cross(kind: Kind) -> bool {
    matches!(kind, Kind::GARBAGE_COLLECTION_STARTED | Kind::RUNTIME_SUSPEND_STARTED | Kind::RUNTIME_RESUME_STARTED)
}

/// An event on any thread of a process: the thread and the event's index in it.
pub(super) type Anywhere = (usize, u64);

/// Events whose partner is on another thread.
#[derive(Debug, Default)]
pub(super) struct Crossing {
    starts: Vec<(u64, Kind, Anywhere)>,
    ends: Vec<(u64, Kind, Anywhere)>,
}

impl Crossing {
    /// Notes a start without an end on its thread.
    pub(super) fn start(&mut self, stream: usize, open: Open) {
        if may_cross(open.kind) {
            self.starts.push((open.time_ns, open.kind, (stream, open.at)));
        }
    }

    /// Notes an end whose start, of this kind, is not on the end's thread.
    pub(super) fn end(&mut self, stream: usize, start: Kind, time_ns: u64, at: u64) {
        if may_cross(start) {
            self.ends.push((time_ns, start, (stream, at)));
        }
    }

    /// Pairs each end, in the order of time, with the latest start of its kind before it. Returns
    /// start, end and the time between them.
    pub(super) fn pairs(mut self) -> Vec<(Anywhere, Anywhere, u64)> {
        self.starts.sort_by_key(|&(time_ns, ..)| time_ns);
        self.ends.sort_by_key(|&(time_ns, ..)| time_ns);
        let mut starts = self.starts.into_iter().peekable();
        let mut waiting: BTreeMap<Kind, Vec<(u64, Anywhere)>> = BTreeMap::new();
        let mut found = Vec::new();
        for (until, kind, end) in self.ends {
            while let Some((since, of, start)) = starts.next_if(|&(time_ns, ..)| time_ns <= until) {
                waiting.entry(of).or_default().push((since, start));
            }
            if let Some((since, start)) = waiting.get_mut(&kind).and_then(Vec::pop) {
                found.push((start, end, until - since));
            }
        }
        found
    }
}
