//! Takes readings of the process's memory: decides when, and records what each reading shows.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clrscope_agent_base::clock::own_cpu_ns;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::os::process::{Resident, executable, resident, resident_mappings};
use clrscope_agent_base::os::threads;
use clrscope_recording::events::{Kind, Tag};
use clrscope_recording::model::MemoryPlace;
use clrscope_recording::writer::monotonic_ns;

use super::mappings::parse;
use super::places::{Amount, Marks, extents, sum_up};
use crate::services::event_log::EventLog;
use crate::services::gc_events::{GENERATIONS, GenerationSizes};

/// Time between two checks of the resident size.
const EVERY_NS: u64 = 100_000_000;
/// Readings take at most this part (one in so many) of a processor's time, except the first and the
/// last.
const PART_OF_TIME: u64 = 100;
/// Growth beyond the largest reading that counts as a new peak: at least a twentieth, and at least
/// this many bytes.
const LEAST_GROWTH: u64 = 1 << 20;
/// Files that a reading records one by one: those with most resident memory. The others are
/// recorded as one.
const MOST_FILES: usize = 32;

/// What the runtime's threads have reported about the managed heap.
#[derive(Debug, Default)]
pub(super) struct ManagedHeap(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// All ranges that have belonged to the collector so far, by their beginning: the collector
    /// keeps its reserved ranges, even if a collection frees memory.
    heap: BTreeMap<u64, u64>,
    frozen: Vec<Range<u64>>,
    asked_ns: u64,
    /// Sizes after the collection that is ending, summed over the heaps that have reported theirs.
    of_collection: [GenerationSizes; GENERATIONS],
    /// Sizes after the last collection.
    generations: Option<[GenerationSizes; GENERATIONS]>,
}

impl Told {
    fn add(&mut self, range: Range<u64>) {
        let before = self.heap.range_mut(..=range.start).next_back();
        match before.filter(|(_, end)| range.start <= **end) {
            Some((_, end)) => *end = range.end.max(*end),
            None => _ = self.heap.insert(range.start, range.end),
        }
    }
}

impl ManagedHeap {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is time to ask for the ranges: once a second is enough.
    pub(super) fn is_due(&self) -> bool {
        let (mut told, now) = (self.told(), monotonic_ns());
        let due = told.asked_ns == 0 || now.saturating_sub(told.asked_ns) > 1_000_000_000;
        if due {
            told.asked_ns = now;
        }
        due
    }

    /// Sets the current ranges of the collector.
    pub(super) fn lies_in(&self, heap: Vec<Range<u64>>, frozen: Vec<Range<u64>>) {
        let mut told = self.told();
        told.frozen = frozen;
        heap.into_iter().for_each(|range| told.add(range));
    }

    /// Adds a range of the collector.
    pub(super) fn has_range(&self, range: Range<u64>) {
        self.told().add(range);
    }

    /// Adds the sizes of one heap after a collection. The collection ends once all heaps have
    /// reported theirs.
    pub(super) fn heap(&self, sizes: &[Option<GenerationSizes>; GENERATIONS]) {
        let mut told = self.told();
        for (sum, size) in told.of_collection.iter_mut().zip(sizes) {
            let size = size.unwrap_or_default();
            sum.after += size.after;
            sum.free_after += size.free_after;
        }
    }

    /// Call it when a collection is over.
    pub(super) fn collection_ended(&self) {
        let mut told = self.told();
        told.generations = Some(std::mem::take(&mut told.of_collection));
    }
}

/// Takes readings of the memory now and then, on the helper thread.
pub(super) struct Looker {
    log: &'static EventLog,
    heap: Arc<ManagedHeap>,
    recording: String,
    schedule: Schedule,
    looks: u64,
}

impl Looker {
    pub(super) fn new(log: &'static EventLog, heap: &Arc<ManagedHeap>, recording: String) -> Self {
        Self { log, heap: Arc::clone(heap), recording, schedule: Schedule::default(), looks: 0 }
    }

    fn look(&mut self) {
        let began_ns = own_cpu_ns().unwrap_or(0);
        let is = resident();
        let mut marks = self.marks();
        let mappings = parse(&resident_mappings());
        // Memory that was reserved with the ranges belongs to the collector for good.
        marks.heap = extents(&mappings, &marks.heap);
        marks.heap.iter().for_each(|extent| self.heap.has_range(extent.clone()));
        let sums = few_files(sum_up(&mappings, &marks));
        let generations = self.heap.told().generations;
        let total: u64 = sums.iter().map(|(_, _, amount)| amount.resident).sum();
        self.write(&sums, generations, total, is);
        let took_ns = own_cpu_ns().unwrap_or(0).saturating_sub(began_ns);
        self.schedule.looked(total.max(is.bytes), monotonic_ns(), took_ns);
    }

    fn write(
        &mut self,
        sums: &[(MemoryPlace, String, Amount)],
        generations: Option<[GenerationSizes; GENERATIONS]>,
        total: u64,
        is: Resident,
    ) {
        self.looks += 1;
        let number = self.looks;
        let records = sums.len() + generations.map_or(0, |all| all.len());
        self.log.write(
            Kind::MEMORY_LOOK,
            &[
                (Tag::NUMBER, number.into()),
                (Tag::COUNT, (records as u64).into()),
                (Tag::BYTES, total.into()),
                (Tag::MOST, is.most_bytes.into()),
            ],
        );
        for (place, file, amount) in sums {
            self.log.write_with(Some(monotonic_ns()), Kind::MEMORY_PLACE, |encoder| {
                encoder
                    .number(Tag::NUMBER, number)
                    .number(Tag::PLACE, place.number())
                    .number(Tag::BYTES, amount.resident);
                encoder.number(Tag::COMMITTED, amount.committed).number(Tag::SWAPPED, amount.swapped);
                encoder.number(Tag::COUNT, amount.mappings);
                if !file.is_empty() {
                    encoder.text(Tag::NAME, file);
                }
            });
        }
        for (generation, sizes) in (0..).zip(generations.iter().flatten()) {
            self.log.write_with(Some(monotonic_ns()), Kind::MEMORY_GENERATION, |encoder| {
                encoder.number(Tag::NUMBER, number).number(Tag::GENERATION, generation);
                encoder.number(Tag::AFTER, sizes.after).number(Tag::FREE_AFTER, sizes.free_after);
            });
        }
    }

    fn marks(&self) -> Marks {
        let here = 0_u8;
        let own = std::ptr::from_ref(&here) as u64;
        let others = threads::all().into_iter().filter(|os_id| *os_id != threads::thread_id());
        let stacks = others.filter_map(threads::stack_pointer).map(|at| at as u64).chain([own]).collect();
        let told = self.heap.told();
        let own_code = parse as *const () as u64;
        Marks {
            heap: told.heap.iter().map(|(start, end)| *start..*end).collect(),
            frozen: told.frozen.clone(),
            stacks,
            own_code,
            recording: self.recording.clone(),
            executable: executable(),
        }
    }
}

impl Task for Looker {
    fn slow_tick(&mut self, now_ns: u64) {
        if self.schedule.is_time(now_ns) && self.schedule.is_due(now_ns, resident()) {
            self.look();
        }
    }

    fn end(&mut self) {
        if self.schedule.is_last() {
            self.look();
        }
    }

    /// Nothing is written once recording has stopped, so the last reading comes before.
    fn finish(&mut self) -> bool {
        self.end();
        true
    }

    fn start_again(&mut self, _now_ns: u64) {
        self.schedule = Schedule::default();
    }

    fn get_ready_for_copy(&mut self) {
        self.look();
    }
}

/// The files with most resident memory one by one, and the others of each place as one.
fn few_files(sums: BTreeMap<(MemoryPlace, String), Amount>) -> Vec<(MemoryPlace, String, Amount)> {
    let mut files: Vec<_> = sums.iter().filter(|((_, file), _)| !file.is_empty()).collect();
    files.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.resident));
    let kept: HashSet<_> = files.iter().take(MOST_FILES).map(|(key, _)| (*key).clone()).collect();
    let mut few: BTreeMap<(MemoryPlace, String), Amount> = Default::default();
    for (key, amount) in sums {
        let key = if kept.contains(&key) { key } else { (key.0, String::new()) };
        *few.entry(key).or_default() += amount;
    }
    few.into_iter().map(|((place, file), amount)| (place, file, amount)).collect()
}

/// When to take readings: at the beginning, at each new peak, at the end.
#[derive(Debug, Default)]
struct Schedule {
    read_ns: u64,
    /// The largest reading.
    greatest: u64,
    next_ns: u64,
    has_ended: bool,
}

impl Schedule {
    fn is_time(&mut self, now_ns: u64) -> bool {
        let is_time = now_ns.saturating_sub(self.read_ns) >= EVERY_NS;
        if is_time {
            self.read_ns = now_ns;
        }
        is_time
    }

    fn is_due(&self, now_ns: u64, is: Resident) -> bool {
        now_ns >= self.next_ns && is.bytes >= self.greatest + self.greatest / 20 + LEAST_GROWTH
    }

    /// A reading has ended and has taken `took_ns` of CPU time. Its wall time may be much longer on
    /// a busy machine; counting that would delay later readings and miss the peak.
    fn looked(&mut self, bytes: u64, ended_ns: u64, took_ns: u64) {
        self.greatest = self.greatest.max(bytes);
        self.next_ns = ended_ns.saturating_add(took_ns.saturating_mul(PART_OF_TIME));
    }

    /// The end comes in several rounds; only the first one takes a reading.
    fn is_last(&mut self) -> bool {
        !std::mem::replace(&mut self.has_ended, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_at_new_peaks_and_take_a_hundredth_of_the_time() {
        let mut schedule = Schedule::default();
        let is = |bytes| Resident { bytes, most_bytes: bytes };
        assert!(schedule.is_time(EVERY_NS) && !schedule.is_time(EVERY_NS + 1));
        assert!(schedule.is_due(EVERY_NS, is(100 << 20)));
        schedule.looked(100 << 20, 10, 10);
        assert!(!schedule.is_due(1_009, is(200 << 20)), "a look of 10 ns is followed by 1,000 without");
        assert!(schedule.is_due(1_010, is(200 << 20)) && !schedule.is_due(1_010, is(105 << 20)));
        assert!(schedule.is_last() && !schedule.is_last());
    }

    #[test]
    fn files_with_little_in_memory_are_one() {
        let amount = |resident| Amount { resident, swapped: 0, committed: resident, mappings: 1 };
        let files = (1..=MOST_FILES as u64 + 10).map(|n| ((MemoryPlace::Files, format!("/{n}")), amount(n)));
        let few = few_files(files.collect());
        assert_eq!(few.len(), MOST_FILES + 1);
        assert_eq!(
            few[0],
            (MemoryPlace::Files, String::new(), Amount { resident: 55, committed: 55, mappings: 10, swapped: 0 })
        );
    }

    #[test]
    fn sizes_are_those_of_all_heaps_after_the_last_collection() {
        let heap = ManagedHeap::default();
        let size = |after| Some(GenerationSizes { after, free_after: 1, ..GenerationSizes::default() });
        for _ in 0..2 {
            heap.heap(&[size(1), size(2), size(3), None, size(5)]);
            heap.heap(&[size(10), size(20), size(30), size(40), None]);
            heap.collection_ended();
        }
        let sizes = heap.told().generations.expect("sizes").map(|sizes| (sizes.after, sizes.free_after));
        assert_eq!(sizes, [(11, 2), (22, 2), (33, 2), (40, 1), (5, 1)]);
    }
}
