//! Recordings of one period: the reader drops the events before and after it. The period is the
//! most recent time (`--last`), or one of the periods in which the launcher writes a recording
//! (`--every`).

use std::collections::{HashMap, HashSet};

use crate::events::records_within;
use crate::layout::{instrument, sample};
use crate::model::{Allocation, ByteSource, EventBytes, EventChunk, Part, Problem, Process, RemarkKind, Sample};

/// The period of a process whose events are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptTime {
    /// Monotonic nanoseconds of the start of the process's recording.
    start_ns: u64,
    /// Monotonic nanoseconds of the beginning of the period.
    since_ns: u64,
    /// End of the period in monotonic nanoseconds, exclusive.
    until_ns: u64,
    name: PeriodName,
}

/// Name of the kept period: the recording's only part gets it if no other parts lie in the period.
#[derive(Debug, Clone, Copy)]
enum PeriodName {
    /// The most recent time, with its length in nanoseconds.
    Last(u64),
    /// The period of this number.
    Number(u32),
}

impl KeptTime {
    /// The last `length_ns` of a recording from `start_ns` to `end_ns`, all times monotonic.
    pub(super) fn last(length_ns: u64, start_ns: u64, end_ns: u64) -> Self {
        let since_ns = end_ns.saturating_sub(length_ns).max(start_ns);
        // Events that were recorded after the last sign of life belong to the period.
        Self { start_ns, since_ns, until_ns: u64::MAX, name: PeriodName::Last(length_ns) }
    }

    /// The period of this number, between two monotonic times.
    pub(super) fn period(number: u32, start_ns: u64, (since_ns, until_ns): (u64, u64)) -> Self {
        let since_ns = since_ns.max(start_ns);
        Self { start_ns, since_ns, until_ns: until_ns.max(since_ns), name: PeriodName::Number(number) }
    }

    /// Beginning and end of the period, since the start of the process's recording.
    fn offsets(self) -> Offsets {
        Offsets { since_ns: self.since_ns - self.start_ns, until_ns: self.until_ns.saturating_sub(self.start_ns) }
    }

    /// The name that the kept period has as a part of the recording.
    fn name(self) -> String {
        match self.name {
            PeriodName::Last(length_ns) => format!("last {} s", length_ns as f64 / 1e9),
            PeriodName::Number(number) => format!("period {number}"),
        }
    }
}

/// Beginning and end of a period, in nanoseconds since the start of the process's recording. The
/// end is the first moment that is not in the period.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    since_ns: u64,
    until_ns: u64,
}

/// Encoding of an instrument's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Rows of samples, each taken at one moment.
    Moments,
    /// Rows of samples, each covering a span of time.
    Times,
    /// Event records.
    Records,
    /// Sums of allocations over short times; each sum counts as if it were made at the beginning of
    /// its time.
    Allocations,
    /// Data that applies to the whole recording.
    Other,
}

impl Encoding {
    pub(super) fn of_instrument(name: &str) -> Self {
        match name {
            instrument::CPU => Self::Moments,
            instrument::WALL => Self::Times,
            instrument::ALLOC => Self::Allocations,
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

    /// The bytes of a chunk without the events before and after the period.
    fn cut(self, bytes: &[u8], kept: Offsets) -> Vec<u8> {
        let Offsets { since_ns, until_ns } = kept;
        match self {
            Self::Moments => samples(bytes, |sample| (since_ns..until_ns).contains(&sample.time_ns).then_some(sample)),
            Self::Times => samples(bytes, |sample| within(sample, kept)),
            Self::Records => records_within(bytes, since_ns..until_ns),
            Self::Allocations => {
                let within = Allocation::all(bytes).filter(|one| (since_ns..until_ns).contains(&one.time_ns));
                within.flat_map(|one| one.to_bytes()).collect()
            }
            Self::Other => bytes.to_vec(),
        }
    }
}

fn samples(bytes: &[u8], keep: impl Fn(Sample) -> Option<Sample>) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len() / sample::BYTES * sample::BYTES);
    Sample::all(bytes).filter_map(keep).for_each(|sample| kept.extend_from_slice(&sample.to_bytes()));
    kept
}

/// The part of a sample record that lies in a period. The samples of a record are assumed to be
/// spread evenly over its time.
fn within(sample: Sample, kept: Offsets) -> Option<Sample> {
    let end_ns = sample.time_ns.saturating_add(sample.weight_ns);
    if sample.time_ns >= kept.since_ns && end_ns <= kept.until_ns {
        return Some(sample);
    }
    let time_ns = sample.time_ns.max(kept.since_ns);
    let weight_ns = end_ns.min(kept.until_ns).checked_sub(time_ns).filter(|&rest| rest > 0)?;
    let share = u128::from(sample.count) * u128::from(weight_ns) / u128::from(sample.weight_ns);
    Some(Sample { time_ns, weight_ns, count: (share as u32).max(1), ..sample })
}

/// A chunk found in the segment.
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

/// Removes events that are older or newer than the kept period from an instrument's chunks.
pub(super) fn keep(chunks: &mut Vec<FoundChunk>, encoding: Encoding, kept: KeptTime) {
    let (since_ns, offsets) = (kept.since_ns, kept.offsets());
    // The last chunk of each thread also tells the thread's activity since then.
    let mut seen = HashSet::new();
    let is_needed: Vec<bool> = chunks
        .iter()
        .rev()
        .map(|found| {
            let is_newest = found.first_ns < kept.until_ns && seen.insert(found.chunk.thread);
            let is_late = found.first_ns >= kept.until_ns.saturating_add(LATE_NS);
            let may_have_some = found.last_ns >= since_ns || found.first_ns >= since_ns;
            found.is_dictionary || is_newest || may_have_some && !is_late
        })
        .collect();
    let mut needed = is_needed.into_iter().rev();
    chunks.retain(|_| needed.next().unwrap_or(true));
    let may_be_cut = |found: &&mut FoundChunk| {
        !found.is_dictionary && (found.first_ns < since_ns + LATE_NS || found.last_ns >= kept.until_ns)
    };
    for found in chunks.iter_mut().filter(may_be_cut) {
        let bytes = std::mem::take(&mut found.chunk.bytes);
        found.chunk.bytes = EventBytes::new(CutChunk { bytes, encoding, kept: offsets });
    }
}

/// The bytes of a chunk, which are cut when they are read.
struct CutChunk {
    bytes: EventBytes,
    encoding: Encoding,
    kept: Offsets,
}

impl ByteSource for CutChunk {
    fn at_hand(&self) -> Option<&[u8]> {
        None
    }

    fn read(&self) -> Result<Vec<u8>, Problem> {
        let bytes = self.bytes.load();
        match self.bytes.problem() {
            Some(problem) => Err(problem.clone()),
            None => Ok(self.encoding.cut(&bytes, self.kept)),
        }
    }
}

/// Makes the kept period the only part of the recording, and drops sums over the whole run.
pub(super) fn keep_of_process(process: &mut Process, kept: KeptTime) {
    let Offsets { since_ns, until_ns } = kept.offsets();
    let until_ns = until_ns.min(process.duration_ns);
    keep_parts(&mut process.parts, since_ns, until_ns);
    match process.parts.as_mut_slice() {
        [] => process.parts = vec![Part { name: kept.name(), since_ns, until_ns, ..Part::default() }],
        // The whole period, without a span of the program.
        [part] if matches!(kept.name, PeriodName::Number(_)) && part.begins.is_empty() && is_number(&part.name) => {
            part.name = kept.name();
        }
        _ => {}
    }
    process.cpu_ns = None;
    process.threads.iter_mut().for_each(|thread| thread.cpu_ns = None);
    process.losses.retain(|loss| loss.last_ns >= since_ns && loss.first_ns < until_ns);
    process.remarks.retain(|remark| remark.kind != RemarkKind::Trigger || remark.time_ns >= since_ns);
}

/// Whether the name is a number, as the names of unnamed parts are.
fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Keeps only the parts that overlap the period, and cuts them to the period. Spans that began in
/// an earlier part and did not end there begin with the first part that is kept.
fn keep_parts(parts: &mut Vec<Part>, since_ns: u64, until_ns: u64) {
    parts.retain(|part| part.since_ns < until_ns || part.since_ns == since_ns);
    let first = parts.partition_point(|part| part.until_ns <= since_ns && part.since_ns < since_ns);
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
    for part in parts {
        part.since_ns = part.since_ns.max(since_ns);
        part.until_ns = part.until_ns.min(until_ns);
    }
}

#[cfg(test)]
mod tests {
    use clrscope_contract::instruments::ALL;

    use super::*;

    #[test]
    fn of_a_sample_of_a_long_wait_the_time_that_is_kept_stays() {
        let sample = Sample { time_ns: 100, weight_ns: 100, count: 10, stack: 7, ..Sample::default() };
        let period = |since_ns, until_ns| Offsets { since_ns, until_ns };
        let part =
            |since, until| within(sample, period(since, until)).map(|part| (part.time_ns, part.weight_ns, part.count));
        let rest = |since| part(since, u64::MAX);
        assert_eq!(rest(90), Some((100, 100, 10)));
        assert_eq!(rest(150), Some((150, 50, 5)));
        assert_eq!(rest(199), Some((199, 1, 1)));
        assert_eq!(rest(200), None);
        assert_eq!(
            [part(0, 200), part(0, 130), part(130, 180)],
            [Some((100, 100, 10)), Some((100, 30, 3)), Some((130, 50, 5))]
        );
        assert_eq!([part(0, 100), part(200, 300)], [None, None]);
        let (bytes, from) = (sample.to_bytes(), |since| period(since, u64::MAX));
        assert_eq!(Encoding::Moments.cut(&bytes, from(101)).len(), 0);
        assert_eq!(Encoding::Moments.cut(&bytes, period(0, 100)).len(), 0);
        assert_eq!(Encoding::Moments.cut(&bytes, period(0, 101)).len(), sample::BYTES);
        assert_eq!(Encoding::Times.cut(&bytes, from(150)).len(), sample::BYTES);
        assert_eq!(Encoding::Other.cut(&bytes, from(150)), bytes);
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
        let kept = KeptTime::last(100, 1_000, 2_000);
        let times = [(1, 1_100), (1, 1_200), (2, 1_100), (2, 1_950)];
        let mut chunks = Vec::from(times.map(|(thread, ns)| found(thread, ns, false)));
        chunks.insert(0, found(u32::MAX, 1_000, true));
        chunks.push(found(u32::MAX, 1_990, false));
        keep(&mut chunks, Encoding::Records, kept);
        let left: Vec<_> = chunks.iter().map(|found| (found.chunk.thread, found.first_ns)).collect();
        assert_eq!(left, [(u32::MAX, 1_000), (1, 1_200), (2, 1_950), (u32::MAX, 1_990)]);
    }
}
