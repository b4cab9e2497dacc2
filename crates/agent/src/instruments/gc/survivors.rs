//! `gc:survivors`: the objects that survive each collection, by class and by their generation
//! before the collection.
//!
//! During a collection the runtime reports ranges of objects that it moves or leaves in place. The
//! ranges are only noted at first, since their addresses may not be read until the end of the
//! collection. At the end, while the program is still stopped, the ranges are walked object by
//! object at their new addresses. The runtime itself counts the objects of generation 0 by class
//! before the collection. Those that did not survive died young.
//!
//! The runtime reports survivors of blocking collections only, and runs no other collections while
//! survivors are requested.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::{Generations, MovedRanges, ObjectsOfClass, SurvivingRanges};
use clr_profiler::{ClassId, HeapRange, ObjectId, ProfilerInfo};
use clrscope_recording::events::{EntityRef, Kind, Tag};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::limits::{BYTES_OF_A_CLASS, BYTES_OF_A_RANGE, Limits};
use crate::services::event_log::EventLog;
use crate::services::object_types::ObjectTypes;

/// Objects begin at multiples of this many bytes.
const ALIGNMENT: usize = 8;

/// Adjacent objects that a collection moved together or left in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    /// Address before the collection.
    old: usize,
    /// Address after it.
    new: usize,
    bytes: usize,
}

// The limit is based on the size of these entries.
const _: () = assert!(size_of::<Range>() <= BYTES_OF_A_RANGE, "a range takes more than is counted with");
const _: () = assert!(2 * (size_of::<(ClassId, u32)>() + size_of::<Sums>()) <= BYTES_OF_A_CLASS / 2, "so does a class");

/// Notes on a collection so far.
struct CollectionNotes {
    /// Ranges of the heap before the collection, by address.
    heap: Vec<HeapRange>,
    ranges: Vec<Range>,
    /// Ranges and classes that found no room.
    left_out: u64,
    limits: Limits,
    /// Objects in generation 0 before the collection, by class.
    young: HashMap<ClassId, u64>,
}

/// Sums of a class and a generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    objects: u64,
    bytes: u64,
    moved: u64,
    died: u64,
}

/// Finds the survivors of collections.
pub(super) struct Survivors {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    log: &'static EventLog,
    types: Arc<ObjectTypes>,
    limits: Limits,
    noted: Mutex<CollectionNotes>,
    /// Largest number of bytes that the notes on a collection took.
    most_bytes: AtomicU64,
    /// A collection is running.
    is_collecting: AtomicBool,
}

impl Survivors {
    pub(super) fn new(
        info: &ProfilerInfo,
        writer: &'static ProcessWriter,
        log: &'static EventLog,
        (types, limits): (&Arc<ObjectTypes>, Limits),
    ) -> Self {
        let text = "gc:survivors: no collection runs in the background, because the runtime reports survivors only of \
                    blocking ones";
        writer.note(monotonic_ns(), text);
        let (info, types) = (info.clone(), Arc::clone(types));
        let (noted, is_collecting) = (Mutex::new(CollectionNotes::new(Vec::new(), limits)), AtomicBool::new(false));
        Self { info, writer, log, types, limits, noted, most_bytes: AtomicU64::new(0), is_collecting }
    }

    /// Locks the notes. Several threads of the collector may report at the same time; none of them
    /// is stopped while it does.
    fn noted(&self) -> MutexGuard<'_, CollectionNotes> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn collection_started(&self, generations: Generations<'_>) {
        let is_collected = |range: &HeapRange| generations.contains(range.generation.as_raw() as usize);
        let mut heap: Vec<_> =
            self.info.generation_bounds().unwrap_or_default().into_iter().filter(is_collected).collect();
        heap.sort_unstable_by_key(|range| range.start);
        *self.noted() = CollectionNotes::new(heap, self.limits);
        self.is_collecting.store(true, Ordering::Release);
    }

    pub(super) fn were_young(&self, objects: ObjectsOfClass<'_>) {
        let mut noted = self.noted();
        objects.iter().for_each(|(class, count)| noted.add_young(class, count.into()));
    }

    pub(super) fn moved(&self, ranges: MovedRanges<'_>) {
        let ranges =
            ranges.iter().map(|range| Range { old: range.old_start, new: range.new_start, bytes: range.bytes });
        self.noted().add(ranges);
    }

    pub(super) fn stayed(&self, ranges: SurvivingRanges<'_>) {
        self.noted().add(ranges.iter().map(|(start, bytes)| Range { old: start, new: start, bytes }));
    }

    /// Call it when a collection is over and the program is still stopped. The objects are at their
    /// final addresses then.
    pub(super) fn collection_finished(&self) {
        if !self.is_collecting.swap(false, Ordering::AcqRel) {
            return;
        }
        let noted = std::mem::replace(&mut *self.noted(), CollectionNotes::new(Vec::new(), self.limits));
        let (sums, left_out) = noted.sums(|range, visit| self.walk(range, visit));
        if noted.left_out + left_out > 0 {
            self.writer.state().lose(LossReason::EventDropped, noted.left_out + left_out, monotonic_ns());
        }
        self.most_bytes.fetch_max(noted.bytes() + (sums.capacity() * BYTES_OF_A_CLASS / 2) as u64, Ordering::Relaxed);
        for ((class, generation), of) in sums {
            let class = EntityRef { id: 0, index: self.types.reserved(class) };
            let mut fields = vec![
                (Tag::CLASS, class.into()),
                (Tag::GENERATION, generation.into()),
                (Tag::COUNT, of.objects.into()),
                (Tag::BYTES, of.bytes.into()),
                (Tag::MOVED, of.moved.into()),
            ];
            if generation == 0 {
                fields.push((Tag::DIED, of.died.into()));
            }
            self.log.write(Kind::GC_SURVIVORS, &fields);
        }
    }

    /// Visits the objects of a range at their new addresses, with their bytes.
    fn walk(&self, range: &Range, visit: &mut dyn FnMut(ClassId, u64)) {
        let mut at = range.new;
        let end = range.new.saturating_add(range.bytes);
        while at < end {
            // SAFETY: the runtime has reported the range as one of live objects that lie side by
            // side, and does so for whole objects only; nothing moves them while this callback
            // runs. Each further address is the end of the object before.
            let object = unsafe { ObjectId::from_address(at) };
            let (Ok(class), Ok(bytes)) = (self.info.class_of_object(object), self.info.object_size(object)) else {
                return;
            };
            if bytes == 0 {
                return;
            }
            visit(class, bytes as u64);
            at = at.saturating_add(bytes.next_multiple_of(ALIGNMENT));
        }
    }

    /// The most bytes that the notes on any collection took.
    pub(super) fn own_bytes(&self) -> u64 {
        self.most_bytes.load(Ordering::Relaxed)
    }

    /// Asks for the names of classes that were seen since the last call. Call only where the
    /// runtime may be queried.
    pub(super) fn name_types(&self) {
        self.types.settle();
    }
}

impl CollectionNotes {
    fn new(heap: Vec<HeapRange>, limits: Limits) -> Self {
        Self { heap, ranges: Vec::new(), left_out: 0, limits, young: HashMap::new() }
    }

    fn bytes(&self) -> u64 {
        let young = self.young.capacity() * BYTES_OF_A_CLASS / 2;
        (self.heap.capacity() * size_of::<HeapRange>() + self.ranges.capacity() * BYTES_OF_A_RANGE + young) as u64
    }

    fn add_young(&mut self, class: ClassId, count: u64) {
        let room = self.young.len() < self.limits.classes;
        match self.young.get_mut(&class) {
            Some(of) => *of += count,
            None if room => _ = self.young.insert(class, count),
            None => self.left_out += 1,
        }
    }

    fn add(&mut self, ranges: impl Iterator<Item = Range>) {
        for range in ranges {
            if self.ranges.last().is_some_and(|last| self.are_one(last, &range)) {
                self.ranges.last_mut().into_iter().for_each(|last| last.bytes += range.bytes);
            } else if self.ranges.len() < self.limits.ranges {
                self.ranges.push(range);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// Whether two ranges of one generation are adjacent before and after the collection.
    fn are_one(&self, last: &Range, next: &Range) -> bool {
        let side_by_side = last.old + last.bytes == next.old && last.new + last.bytes == next.new;
        side_by_side && self.generation(last.old) == self.generation(next.old)
    }

    /// Generation of an address before the collection.
    fn generation(&self, address: usize) -> u32 {
        let behind = self.heap.partition_point(|range| range.start <= address);
        let found = behind.checked_sub(1).and_then(|at| self.heap.get(at));
        found.map_or(0, |range| range.generation.as_raw())
    }

    /// Sums by class and generation, and the number of objects of classes that found no room;
    /// `walk` visits the objects of a range.
    fn sums(&self, walk: impl Fn(&Range, &mut dyn FnMut(ClassId, u64))) -> (HashMap<(ClassId, u32), Sums>, u64) {
        let mut sums: HashMap<(ClassId, u32), Sums> = HashMap::new();
        let mut left_out = 0;
        for range in &self.ranges {
            let (generation, is_moved) = (self.generation(range.old), range.old != range.new);
            walk(range, &mut |class, bytes| {
                if sums.len() >= self.limits.classes && !sums.contains_key(&(class, generation)) {
                    left_out += 1;
                    return;
                }
                let of = sums.entry((class, generation)).or_default();
                of.objects += 1;
                of.bytes += bytes;
                of.moved += u64::from(is_moved);
            });
        }
        for (&class, &count) in &self.young {
            let of = sums.entry((class, 0)).or_default();
            of.died = count.saturating_sub(of.objects);
        }
        (sums, left_out)
    }
}
