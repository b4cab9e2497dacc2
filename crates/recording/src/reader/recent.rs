//! Recordings that keep only the most recent period: the reader drops older events.

use std::collections::{HashMap, HashSet};

use crate::events::records_since;
use crate::layout::{instrument, sample};
use crate::model::{ByteSource, EventBytes, EventChunk, Part, Problem, Process, RemarkKind, Sample};

/// The period of a process from which events are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptTime {
    /// Length of the period.
    length_ns: u64,
    /// Monotonic nanoseconds of the start of the process's recording.
    start_ns: u64,
    /// Monotonic nanoseconds of its last sign of life.
    end_ns: u64,
}

impl KeptTime {
    pub(super) fn new(length_ns: u64, start_ns: u64, end_ns: u64) -> Self {
        Self { length_ns, start_ns, end_ns }
    }

    /// Monotonic nanoseconds of the beginning of the period.
    fn since_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.length_ns).max(self.start_ns)
    }

    /// Beginning of the period, since the start of the process's recording.
    fn offset_ns(self) -> u64 {
        self.since_ns() - self.start_ns
    }
}

/// Encoding of an instrument's events, which decides how older events are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Rows of samples, each at a moment.
    Moments,
    /// Rows of samples, each for a span of time.
    Times,
    /// Records.
    Records,
    /// Data that applies to the whole recording.
    Other,
}

impl Encoding {
    pub(super) fn of_instrument(name: &str) -> Self {
        match name {
            instrument::CPU => Self::Moments,
            instrument::WALL => Self::Times,
            instrument::EVENTS
            | instrument::EXCEPTIONS
            | instrument::GC
            | instrument::LOCKS
            | instrument::AWAITS
            | instrument::REQUESTS
            | instrument::COUNTERS
            | instrument::MEMORY => Self::Records,
            _ => Self::Other,
        }
    }

    /// The bytes of a chunk without the events before `since_ns`, a time since the start of the
    /// process's recording.
    fn cut(self, bytes: &[u8], since_ns: u64) -> Vec<u8> {
        match self {
            Self::Moments => samples(bytes, |sample| (sample.time_ns >= since_ns).then_some(sample)),
            Self::Times => samples(bytes, |sample| rest_of_sample(sample, since_ns)),
            Self::Records => records_since(bytes, since_ns),
            Self::Other => bytes.to_vec(),
        }
    }
}

fn samples(bytes: &[u8], keep: impl Fn(Sample) -> Option<Sample>) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len() / sample::BYTES * sample::BYTES);
    Sample::all(bytes).filter_map(keep).for_each(|sample| kept.extend_from_slice(&sample.to_bytes()));
    kept
}

/// The part of a sample record after the moment `since_ns`. The samples of a record are assumed to
/// be spread evenly over its time.
fn rest_of_sample(sample: Sample, since_ns: u64) -> Option<Sample> {
    let end_ns = sample.time_ns.saturating_add(sample.weight_ns);
    if sample.time_ns >= since_ns {
        return Some(sample);
    }
    let weight_ns = end_ns.checked_sub(since_ns).filter(|&rest| rest > 0)?;
    let share = u128::from(sample.count) * u128::from(weight_ns) / u128::from(sample.weight_ns);
    Some(Sample { time_ns: since_ns, weight_ns, count: (share as u32).max(1), ..sample })
}

/// A chunk as found in the segment.
pub(super) struct FoundChunk {
    pub(super) chunk: EventChunk,
    /// Monotonic nanoseconds at which the chunk was begun.
    pub(super) first_ns: u64,
    /// Monotonic nanoseconds at which an event was last added.
    pub(super) last_ns: u64,
    /// Whether events of other chunks refer to the contents of this chunk.
    pub(super) is_dictionary: bool,
}

/// An event may have happened up to this long before the beginning of its chunk.
const LATE_NS: u64 = 10_000_000_000;

/// Removes events that are older than the kept period from an instrument's chunks.
pub(super) fn keep(chunks: &mut Vec<FoundChunk>, encoding: Encoding, kept: KeptTime) {
    let (since_ns, offset_ns) = (kept.since_ns(), kept.offset_ns());
    // The last chunk of each thread also tells the thread's activity since then.
    let mut seen = HashSet::new();
    let is_needed: Vec<bool> = chunks
        .iter()
        .rev()
        .map(|found| {
            let is_newest = seen.insert(found.chunk.thread);
            found.is_dictionary || is_newest || found.last_ns >= since_ns || found.first_ns >= since_ns
        })
        .collect();
    let mut needed = is_needed.into_iter().rev();
    chunks.retain(|_| needed.next().unwrap_or(true));
    let may_be_older = |found: &&mut FoundChunk| !found.is_dictionary && found.first_ns < since_ns + LATE_NS;
    for found in chunks.iter_mut().filter(may_be_older) {
        let bytes = std::mem::take(&mut found.chunk.bytes);
        found.chunk.bytes = EventBytes::new(CutChunk { bytes, encoding, since_ns: offset_ns });
    }
}

/// The bytes of a chunk, which are cut when they are read.
struct CutChunk {
    bytes: EventBytes,
    encoding: Encoding,
    since_ns: u64,
}

impl ByteSource for CutChunk {
    fn at_hand(&self) -> Option<&[u8]> {
        None
    }

    fn read(&self) -> Result<Vec<u8>, Problem> {
        let bytes = self.bytes.load();
        match self.bytes.problem() {
            Some(problem) => Err(problem.clone()),
            None => Ok(self.encoding.cut(&bytes, self.since_ns)),
        }
    }
}

/// Makes the kept period the only part of the recording, and drops sums over the whole run.
pub(super) fn keep_of_process(process: &mut Process, kept: KeptTime) {
    let until_ns = kept.end_ns.saturating_sub(kept.start_ns);
    let since_ns = kept.offset_ns();
    if process.parts.is_empty() {
        let name = format!("last {} s", kept.length_ns as f64 / 1e9);
        process.parts = vec![Part { name, since_ns, until_ns, ..Part::default() }];
    } else {
        keep_parts(&mut process.parts, since_ns);
        process.parts.iter_mut().for_each(|part| part.since_ns = part.since_ns.max(since_ns));
    }
    process.cpu_ns = None;
    process.threads.iter_mut().for_each(|thread| thread.cpu_ns = None);
    process.losses.retain(|loss| loss.last_ns >= since_ns);
    process.remarks.retain(|remark| remark.kind != RemarkKind::Trigger || remark.time_ns >= since_ns);
}

/// Keeps the parts that end at or after this moment. The first of them also gets the names that
/// earlier parts began and did not end.
fn keep_parts(parts: &mut Vec<Part>, since_ns: u64) {
    let first = parts.partition_point(|part| part.until_ns < since_ns);
    let (mut begun, mut ended) = (Vec::new(), HashMap::new());
    for part in parts.drain(..first) {
        begun.extend(part.begins);
        part.ends.into_iter().for_each(|name| *ended.entry(name).or_insert(0_usize) += 1);
    }
    begun.retain(|name| match ended.get_mut(name).filter(|times| **times > 0) {
        Some(times) => {
            *times -= 1;
            false
        }
        None => true,
    });
    if let Some(part) = parts.first_mut() {
        part.begins.splice(..0, begun);
    }
}

#[cfg(test)]
mod tests {
    use clrscope_contract::instruments::ALL;

    use super::*;

    #[test]
    fn of_a_sample_of_a_long_wait_the_time_that_is_kept_stays() {
        let sample = Sample { time_ns: 100, weight_ns: 100, count: 10, stack: 7, ..Sample::default() };
        let rest = |since| rest_of_sample(sample, since).map(|rest| (rest.time_ns, rest.weight_ns, rest.count));
        assert_eq!(rest(90), Some((100, 100, 10)));
        assert_eq!(rest(150), Some((150, 50, 5)));
        assert_eq!(rest(199), Some((199, 1, 1)));
        assert_eq!(rest(200), None);
        let bytes = sample.to_bytes();
        assert_eq!(Encoding::Moments.cut(&bytes, 101).len(), 0);
        assert_eq!(Encoding::Times.cut(&bytes, 150).len(), sample::BYTES);
        assert_eq!(Encoding::Other.cut(&bytes, 150), bytes);
    }

    #[test]
    fn older_events_are_left_out_of_the_instruments_that_keep_their_last_time() {
        for spec in ALL {
            assert_eq!(Encoding::of_instrument(spec.name) != Encoding::Other, spec.keeps_last, "{}", spec.name);
        }
    }

    #[test]
    fn the_newest_chunk_of_each_thread_and_dictionaries_stay_for_what_they_say_of_later_times() {
        let found = |thread, first_ns, is_dictionary| FoundChunk {
            chunk: EventChunk { thread, ..EventChunk::default() },
            first_ns,
            last_ns: first_ns + 10,
            is_dictionary,
        };
        let kept = KeptTime::new(100, 1_000, 2_000);
        let times = [(1, 1_100), (1, 1_200), (2, 1_100), (2, 1_950)];
        let mut chunks = Vec::from(times.map(|(thread, ns)| found(thread, ns, false)));
        chunks.insert(0, found(u32::MAX, 1_000, true));
        chunks.push(found(u32::MAX, 1_990, false));
        keep(&mut chunks, Encoding::Records, kept);
        let left: Vec<_> = chunks.iter().map(|found| (found.chunk.thread, found.first_ns)).collect();
        assert_eq!(left, [(u32::MAX, 1_000), (1, 1_200), (2, 1_950), (u32::MAX, 1_990)]);
    }
}
