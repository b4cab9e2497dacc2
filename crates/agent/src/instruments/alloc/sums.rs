//! Sums of allocations by type and path. Each thread has a table; the sums themselves lie in the
//! recording.
//!
//! A thread finds the record of a type and a path in a table of its own, without a lock, and adds
//! to the record. Now and then the helper thread begins another period: each thread then begins new
//! records, so that reports can show allocations over time. Periods grow longer as the recording
//! grows. A thread that starts to work for another request begins new records, too.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use clr_profiler::ClassId;
use clrscope_agent_base::helper::{Gains, Task};
use clrscope_agent_base::memory::Patience;
use clrscope_agent_base::thread_own::{WordOwn, WordOwnPool};
use clrscope_agent_values::object_size::SizeRule;
use clrscope_recording::layout::{allocation, chunk, instrument};
use clrscope_recording::model::{Allocation, LossReason, ObjectHeap};
use clrscope_recording::writer::{AllocationCell, Chunk, EventStore, ProcessWriter, ThreadRecord, monotonic_ns};

use crate::services::context::Context;
use crate::services::{request_work, rings};

use super::own_paths::OwnPaths;

use super::limits::{CountedList, Limits};

/// A thread's first chunk; each further one is twice as large, up to [`LARGEST_CHUNK`].
const FIRST_CHUNK: usize = 4 << 10;
const LARGEST_CHUNK: usize = 64 << 10;
/// Places of a thread's first table. A power of two.
const FIRST_PLACES: usize = 64;
/// Places of a first table where the limit is reached. A power of two.
const LEAST_PLACES: usize = 4;
/// Most places of a table, fewer where the limit is near. A full table is started again. A power of
/// two.
const MOST_PLACES: usize = 1 << 16;
/// Most places that are searched for one record.
const PROBES: usize = 16;
/// Shortest period.
const PERIOD_NS: u64 = 100_000_000;
/// Length of the periods where only recent records are kept.
const PERIOD_IN_RING_NS: u64 = 1_000_000_000;
/// The limit is divided into this many parts; periods double in length with each part that is used.
const DOUBLINGS: usize = 32;

static TABLES: WordOwnPool<Table> = WordOwnPool::nothing();

/// Drops the tables of sums when the recording is over.
pub(crate) fn let_go() {
    TABLES.give_back_all();
}

/// Key of a sum. It has two words without padding, so it is copied and compared as words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Key {
    /// The runtime's identifier of the class, an address of the program, with the number of the
    /// heap in the highest bits.
    class_on_heap: u64,
    /// Hash of the return addresses on the stack.
    pub(super) path: u64,
}

/// Position of the heap's number in a key. No address of a program uses these bits.
const HEAP_AT: u32 = 60;
const _: () = assert!(ObjectHeap::ALL.len() <= 1 << (u64::BITS - HEAP_AT), "a heap's number finds room");

impl Key {
    #[inline]
    pub(super) fn new(class: ClassId, path: u64, heap: ObjectHeap) -> Self {
        Self { class_on_heap: class.as_raw() as u64 | (heap as u64) << HEAP_AT, path }
    }

    /// The heap that the sum's objects are on.
    pub(super) fn heap(self) -> ObjectHeap {
        ObjectHeap::from_number((self.class_on_heap >> HEAP_AT) as u32)
    }
}

/// The sums of a recording.
pub(super) struct Sums {
    writer: &'static ProcessWriter,
    store: EventStore,
    start_ns: u64,
    limits: Limits,
    patience: Patience,
    tables: WordOwn<Table>,
    /// Table for records that belong to no thread.
    of_nobody: Mutex<Table>,
    /// Distinguishes these sums from the sums of earlier recordings, whose tables they reuse.
    number: u32,
    /// The current period. Unloads end it, too: classes and addresses then get other meanings.
    period: AtomicU32,
}

/// A thread's table of its sums, and its paths.
#[derive(Default)]
struct Table {
    own: OwnPaths,
    number: u32,
    /// Serial number of the thread.
    thread: u32,
    next_bytes: usize,
    chunk: OwnChunk,
    places: CountedList<Place>,
    used: usize,
}

/// The chunk that a thread fills. When it is dropped, a ring may use it again.
#[derive(Default)]
struct OwnChunk {
    /// Number of the sums that it belongs to.
    number: u32,
    chunk: Option<Chunk>,
}

impl Drop for OwnChunk {
    fn drop(&mut self) {
        if let Some(chunk) = self.chunk {
            rings::give_back(self.number, chunk);
        }
    }
}

/// Span of time in which a thread adds to the same records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    /// 0 for a free place.
    period: u32,
    /// Number of the work, such as a request, that the thread does.
    work: u32,
}

#[derive(Clone, Copy)]
struct Place {
    key: Key,
    stretch: Stretch,
    rule: SizeRule,
    cell: AllocationCell,
}

impl Sums {
    /// Creates the store for sums, of at most `limit` bytes.
    ///
    /// # Errors
    /// A sentence for the user, when the file or the thread key could not be made.
    pub(super) fn create(context: &Context, limit: u64) -> Result<Self, String> {
        let (writer, helper, start_ns) = (context.writer, context.helper.clone(), context.start_ns);
        let kept = context.kept_events;
        let store = writer
            .create_events(instrument::ALLOC, kept.limit(limit), kept.keep())
            .map_err(|error| format!("no memory for allocations: {error}"))?;
        let tables = TABLES.borrow_values().map_err(|error| format!("no thread key for allocations: {error}"))?;
        let number = rings::next_number();
        let patience = Patience::new(helper);
        let limits = Limits::from_max_bytes(limit);
        Ok(Self {
            writer,
            store,
            start_ns,
            limits,
            patience,
            tables,
            of_nobody: Mutex::default(),
            number,
            period: AtomicU32::new(1),
        })
    }

    /// Begins to use the chunks of threads that ended again, where only recent records are kept.
    /// Call it once, when the sums have their place.
    pub(super) fn use_chunks_again(&'static self) {
        rings::add(self.number, &self.store);
    }

    /// The store that holds the records.
    pub(super) fn store(&self) -> &EventStore {
        &self.store
    }

    /// Begins the next period. Sums of the current period do not grow any more.
    pub(super) fn next_period(&self) {
        self.period.fetch_add(1, Ordering::AcqRel);
    }

    /// Calls `add` with the calling thread's sums for a key. `key_of` receives the thread's
    /// knowledge of its own stack and returns the key. Returns the key, and `add`'s result if the
    /// current period has a record; `None` if the thread is already inside this function. Takes no
    /// lock, and allocates only for new frames.
    #[inline]
    pub(super) fn add<R>(
        &self,
        thread: ThreadRecord,
        key_of: impl FnOnce(&mut OwnPaths) -> Key,
        add: impl FnOnce(AllocationCell, SizeRule) -> R,
    ) -> Option<(Key, Option<R>)> {
        let stretch = self.stretch();
        let (number, serial) = (self.number, thread.serial());
        self.tables.with(|table| {
            let key = key_of(&mut table.own);
            if table.number != number || table.thread != serial {
                return (key, None);
            }
            (key, table.find(key, stretch).map(|place| add(place.cell, place.rule)))
        })
    }

    /// Begins a record for the key, with the type and stack of `record`. `None` if there is no
    /// room; the object is then counted as lost.
    pub(super) fn begin(
        &self,
        thread: ThreadRecord,
        key: Key,
        rule: SizeRule,
        record: &Allocation,
    ) -> Option<AllocationCell> {
        let now = monotonic_ns();
        let record = Allocation { time_ns: now.saturating_sub(self.start_ns), ..*record };
        let stretch = self.stretch();
        let begun = self.tables.with(|table| {
            table.belong_to(self.number, thread.serial());
            let cell = table.append(self, &record, now)?;
            table.insert(Place { key, stretch, rule, cell }, self.limits);
            Some(cell)
        });
        begun.flatten().or_else(|| {
            self.lose(1);
            None
        })
    }

    /// Appends a record of the calling thread, to which nothing is added later. `None` if there is
    /// no room, which is counted as a loss.
    pub(super) fn append(&self, thread: ThreadRecord, record: &Allocation) -> Option<AllocationCell> {
        let now = monotonic_ns();
        let record = Allocation { time_ns: now.saturating_sub(self.start_ns), ..*record };
        let appended = self.tables.with(|table| {
            table.belong_to(self.number, thread.serial());
            table.append(self, &record, now)
        });
        appended.flatten().or_else(|| {
            self.lose(1);
            None
        })
    }

    /// Appends a record that belongs to no thread. Call it on threads of the agent's own.
    pub(super) fn append_for_nobody(&self, record: &Allocation) {
        let now = monotonic_ns();
        let record = Allocation { time_ns: now.saturating_sub(self.start_ns), ..*record };
        let mut table = self.of_nobody.lock().unwrap_or_else(PoisonError::into_inner);
        if table.append(self, &record, now).is_none() {
            drop(table);
            self.lose(1);
        }
    }

    /// Counts objects that found no room.
    pub(super) fn lose(&self, objects: u64) {
        self.writer.state().lose(LossReason::EventDropped, objects, monotonic_ns());
    }

    /// The calling thread's stretch.
    #[inline]
    fn stretch(&self) -> Stretch {
        Stretch { period: self.period.load(Ordering::Relaxed), work: request_work::stretch() }
    }

    /// Length of the period that begins now.
    fn period_ns(&self) -> u64 {
        if self.store.is_ring() {
            return PERIOD_IN_RING_NS;
        }
        let doublings = self.store.used().saturating_mul(DOUBLINGS) / self.store.limit().max(1);
        PERIOD_NS << doublings.min(DOUBLINGS)
    }

    /// Task of the helper thread for the sums.
    pub(super) fn task(&'static self) -> Box<dyn Task> {
        Box::new(KeepSums { sums: self, period_ends_ns: 0 })
    }
}

impl Table {
    /// Clears the table if the thread has another record now, or if another recording has begun.
    fn belong_to(&mut self, number: u32, thread: u32) {
        if self.number != number || self.thread != thread {
            // The old entries are useless, and a table of the first size is cheap.
            *self = Self { number, thread, ..Self::default() };
        }
    }

    #[inline]
    fn find(&self, key: Key, stretch: Stretch) -> Option<&Place> {
        let mask = self.places.len().checked_sub(1)?;
        let first = home(key);
        let place = &self.places[first & mask];
        let place = if place.key == key { place } else { self.find_further(key, first)? };
        (place.stretch == stretch).then_some(place)
    }

    /// Place of a key that is not at its first place.
    #[inline(never)]
    fn find_further(&self, key: Key, first: usize) -> Option<&Place> {
        let mask = self.places.len().checked_sub(1)?;
        (1..PROBES).map(|step| &self.places[first.wrapping_add(step) & mask]).find(|place| place.key == key)
    }

    /// Takes the place of the key's last record, or a free one.
    fn insert(&mut self, new: Place, limits: Limits) {
        if self.places.is_empty() {
            let has_room = limits.has_room(FIRST_PLACES * size_of::<Place>());
            self.places = empty(new, if has_room { FIRST_PLACES } else { LEAST_PLACES });
            self.used = 0;
        }
        if self.used * 2 >= self.places.len() {
            self.grow(new, limits);
        }
        self.put(new);
    }

    fn put(&mut self, new: Place) {
        let mask = self.places.len() - 1;
        let first = home(new.key);
        let steps = (0..PROBES).map(|step| first.wrapping_add(step) & mask);
        let own = steps.clone().find(|&at| self.places[at].key == new.key);
        let free = || steps.clone().find(|&at| self.places[at].stretch.period == 0);
        // Where all places are taken, the first is replaced: its key begins another record when it
        // comes again.
        let at = own.or_else(free).unwrap_or(first & mask);
        self.used += usize::from(self.places[at].stretch.period == 0);
        self.places[at] = new;
    }

    /// Makes room: drops entries of earlier stretches, and doubles the table where that is not
    /// enough.
    fn grow(&mut self, new: Place, limits: Limits) {
        let old = std::mem::take(&mut self.places);
        let current: Vec<Place> = old.iter().copied().filter(|place| place.stretch == new.stretch).collect();
        let is_wanted = current.len() * 4 >= old.len() && old.len() < MOST_PLACES;
        let may_grow = is_wanted && limits.has_room(old.len() * size_of::<Place>());
        let places = if may_grow { old.len() * 2 } else { old.len() };
        drop(old);
        self.places = empty(new, places);
        self.used = 0;
        if current.len() * 2 < places {
            current.into_iter().for_each(|place| self.put(place));
        }
    }

    fn append(&mut self, sums: &Sums, record: &Allocation, now: u64) -> Option<AllocationCell> {
        if let Some(cell) = self.chunk.chunk.and_then(|chunk| chunk.append_allocation(record, now)) {
            return Some(cell);
        }
        let bytes = self.next_bytes.clamp(FIRST_CHUNK, LARGEST_CHUNK);
        self.next_bytes = bytes * 2;
        let take = || sums.store.allocate_chunk(self.thread, bytes, now);
        let chunk = take().or_else(|| sums.patience.wait(&sums.store, bytes, take));
        self.chunk = OwnChunk { number: sums.number, chunk };
        chunk?.append_allocation(record, now)
    }
}

// A thread's first chunk holds records.
const _: () = assert!(FIRST_CHUNK > chunk::HEAD + allocation::BYTES, "a chunk holds records");

/// A list of `places` free places; their other fields come from `any`.
fn empty(any: Place, places: usize) -> CountedList<Place> {
    CountedList::filled(Place { stretch: Stretch { period: 0, work: 0 }, key: Key::default(), ..any }, places)
}

/// First place to search for a key, before it is reduced to the table's size.
#[inline]
fn home(key: Key) -> usize {
    // Classes lie eight bytes apart at least; paths are mixed already.
    let mixed = (key.class_on_heap >> 3 ^ key.path).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize
}

struct KeepSums {
    sums: &'static Sums,
    period_ends_ns: u64,
}

impl Task for KeepSums {
    fn tick(&mut self, _now_ns: u64) {
        // A refusal shows when a record finds no room, and is counted there.
        let _ = self.sums.store.keep_ahead();
    }

    fn slow_tick(&mut self, now_ns: u64) {
        if now_ns >= self.period_ends_ns {
            self.sums.next_period();
            self.period_ends_ns = now_ns + self.sums.period_ns();
        }
    }

    fn write_out(&mut self) {
        // A failed write is tried again at the next round.
        let _ = self.sums.store.segment().write_out();
    }

    fn has_gains(&self) -> bool {
        true
    }

    fn begin_period(&mut self) {
        // Records that began before the boundary was drawn belong to the period that has ended.
        self.sums.next_period();
    }

    fn gains(&mut self) -> Gains {
        // Allocations from now on belong to the next part.
        self.sums.next_period();
        Gains::Noted(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_classes_paths_and_heaps_apart() {
        // SAFETY: the runtime is asked nothing.
        let class = |number: usize| unsafe { ClassId::from_raw(number) };
        let keys = ObjectHeap::ALL.iter().flat_map(|&heap| {
            [(0x7fff_dead_bee8, 1), (0x7fff_dead_bee8, 2), (0x7fff_dead_bef0, 1)]
                .map(|(at, path)| (class(at), path, heap))
        });
        let keys: Vec<_> = keys.map(|(class, path, heap)| (Key::new(class, path, heap), heap)).collect();
        assert!(keys.iter().all(|(key, heap)| key.heap() == *heap), "{keys:?}");
        let same = |at: usize| keys.iter().filter(|(key, _)| *key == keys[at].0).count();
        assert!((0..keys.len()).all(|at| same(at) == 1), "{keys:?}");
    }
}
