//! Tracks objects through collections.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::callback_args::{Generations, MovedRanges, SurvivingRanges};
use crate::{HeapRange, ObjectId, ProfilerInfo};

/// Objects that a profiler has chosen, with a value for each object. The tracker follows the
/// objects through collections by the callbacks about moved and surviving references.
///
/// Request [`Events::GC`](crate::Events::GC), and forward four callbacks:
///
/// ```
/// use clr_profiler::callback_args::{GcReason, Generations, MovedRanges, SurvivingRanges};
/// use clr_profiler::{Callbacks, ClassId, Events, ObjectId, ObjectTracker, Profiler, ProfilerInfo, Result, Setup};
///
/// /// Counts the objects that die, of all that were allocated.
/// struct Deaths {
///     info: ProfilerInfo,
///     objects: ObjectTracker<ClassId>,
/// }
///
/// impl Profiler for Deaths {
///     fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         let setup = Setup::new(Events::GC | Events::ENABLE_OBJECT_ALLOCATED | Events::OBJECT_ALLOCATED);
///         Ok((Self { info: info.clone(), objects: ObjectTracker::new() }, setup))
///     }
/// }
///
/// impl Callbacks for Deaths {
///     fn object_allocated(&self, object: ObjectId<'_>, class: ClassId) {
///         self.objects.track(object, class);
///     }
///     fn garbage_collection_started(&self, generations: Generations<'_>, _reason: GcReason) {
///         self.objects.collection_started(&self.info, generations);
///     }
///     fn moved_references(&self, ranges: MovedRanges<'_>) {
///         self.objects.moved(ranges);
///     }
///     fn surviving_references(&self, ranges: SurvivingRanges<'_>) {
///         self.objects.survived(ranges);
///     }
///     fn garbage_collection_finished(&self) {
///         let dead: Vec<ClassId> = self.objects.collection_finished();
///         # let _ = dead.len();
///     }
/// }
/// ```
///
/// Usable from all threads, including the several threads on which a server collection reports. It
/// takes a lock, and holds it only while it accesses its own table. Not for hooks. An entry costs
/// about 40 bytes in addition to its value.
pub struct ObjectTracker<T> {
    table: Mutex<Table<T>>,
}

struct Table<T> {
    /// Tracked objects by address. During a collection: only the objects that the collection can't
    /// move or free.
    live: BTreeMap<usize, T>,
    /// During a collection: objects without a report so far, by their old address.
    doubtful: BTreeMap<usize, T>,
    /// During a collection: objects reported as moved or surviving, by their new address. They are
    /// kept apart, because a new address may be the old address of another object.
    arrived: BTreeMap<usize, T>,
}

impl<T> Default for ObjectTracker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ObjectTracker<T> {
    /// Creates a tracker without objects.
    #[must_use]
    pub const fn new() -> Self {
        let table = Table { live: BTreeMap::new(), doubtful: BTreeMap::new(), arrived: BTreeMap::new() };
        Self { table: Mutex::new(table) }
    }

    /// Tracks an object from now on; returns its previous value, if any. Call it in a callback that
    /// received the object, not during a collection.
    pub fn track(&self, object: ObjectId<'_>, value: T) -> Option<T> {
        self.lock().live.insert(object.address(), value)
    }

    /// Stops tracking an object, and returns its value.
    pub fn forget(&self, object: ObjectId<'_>) -> Option<T> {
        self.lock().live.remove(&object.address())
    }

    /// Runs `look` with the value of an object. Call it in a callback that received the object.
    pub fn with<R>(&self, object: ObjectId<'_>, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock().live.get_mut(&object.address()).map(look)
    }

    /// Visits all tracked objects, by ascending address. Not during a collection, because it leaves
    /// out objects that the collection has not reported yet.
    pub fn for_each(&self, mut visit: impl FnMut(usize, &T)) {
        self.lock().live.iter().for_each(|(address, value)| visit(*address, value));
    }

    /// Number of tracked objects; during a collection this includes objects that may turn out to be
    /// dead.
    #[must_use]
    pub fn len(&self) -> usize {
        let table = self.lock();
        table.live.len() + table.doubtful.len() + table.arrived.len()
    }

    /// Whether no object is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A collection begins: call it in `garbage_collection_started`. Queries the bounds of the
    /// heap, since only objects in a collected generation can die.
    pub fn collection_started(&self, info: &ProfilerInfo, generations: Generations<'_>) {
        let bounds = info.generation_bounds().unwrap_or_default();
        let collected = bounds.into_iter().filter(|range| generations.contains(range.generation.as_raw() as usize));
        self.begin(collected);
    }

    fn begin(&self, collected: impl Iterator<Item = HeapRange>) {
        let mut table = self.lock();
        let table = &mut *table;
        for range in collected {
            remove_range(&mut table.live, range.start, range.bytes, |address, value| {
                table.doubtful.insert(address, value);
            });
        }
    }

    /// Objects were moved: call it in `moved_references`.
    pub fn moved(&self, ranges: MovedRanges<'_>) {
        let mut table = self.lock();
        let table = &mut *table;
        for range in ranges.iter() {
            let arrived = &mut table.arrived;
            let mut arrive = |address: usize, value| {
                arrived.insert(range.new_start + (address - range.old_start), value);
            };
            remove_range(&mut table.doubtful, range.old_start, range.bytes, &mut arrive);
            remove_range(&mut table.live, range.old_start, range.bytes, &mut arrive);
        }
    }

    /// Objects have stayed where they are: call it in `surviving_references`.
    pub fn survived(&self, ranges: SurvivingRanges<'_>) {
        let mut table = self.lock();
        let table = &mut *table;
        for (start, bytes) in ranges.iter() {
            remove_range(&mut table.doubtful, start, bytes, |address, value| {
                table.arrived.insert(address, value);
            });
        }
    }

    /// The collection has ended: call it in `garbage_collection_finished`. Returns the values of
    /// the dead objects, by ascending old address.
    pub fn collection_finished(&self) -> Vec<T> {
        let mut table = self.lock();
        let dead = std::mem::take(&mut table.doubtful).into_values().collect();
        let mut arrived = std::mem::take(&mut table.arrived);
        table.live.append(&mut arrived);
        dead
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the entries of a range of addresses from a table.
fn remove_range<T>(table: &mut BTreeMap<usize, T>, start: usize, bytes: usize, mut found: impl FnMut(usize, T)) {
    let addresses: Vec<usize> = table.range(start..start.saturating_add(bytes)).map(|(address, _)| *address).collect();
    for address in addresses {
        if let Some(value) = table.remove(&address) {
            found(address, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback_args::Generation;

    fn range(start: usize, bytes: usize) -> HeapRange {
        HeapRange { generation: Generation::Gen0, start, bytes, reserved_bytes: bytes }
    }

    fn moved(tracker: &ObjectTracker<char>, old: &[usize], new: &[usize], bytes: &[usize]) {
        tracker.moved(MovedRanges { old, new, bytes });
    }

    fn live(tracker: &ObjectTracker<char>) -> Vec<(usize, char)> {
        let mut found = Vec::new();
        tracker.for_each(|address, value| found.push((address, *value)));
        found
    }

    fn tracker(objects: &[(usize, char)]) -> ObjectTracker<char> {
        let tracker = ObjectTracker::new();
        for (address, value) in objects {
            tracker.track(ObjectId::new(*address), *value);
        }
        tracker
    }

    #[test]
    fn moved_ones_move_surviving_ones_stay_and_the_others_are_dead() {
        let tracker = tracker(&[(100, 'a'), (140, 'b'), (200, 'c'), (300, 'd'), (900, 'e')]);
        tracker.begin([range(100, 300)].into_iter());
        moved(&tracker, &[140], &[104], &[60]);
        tracker.survived(SurvivingRanges { starts: &[300], bytes: &[8] });
        assert_eq!(tracker.len(), 5);
        assert_eq!(tracker.collection_finished(), ['a', 'c']);
        assert_eq!(live(&tracker), [(104, 'b'), (300, 'd'), (900, 'e')]);
        assert_eq!(tracker.with(ObjectId::new(104), |value| *value), Some('b'));
    }

    #[test]
    fn a_new_address_may_be_the_old_one_of_another_that_is_told_later() {
        let tracker = tracker(&[(100, 'a'), (200, 'b'), (300, 'c')]);
        tracker.begin([range(100, 300)].into_iter());
        moved(&tracker, &[200], &[100], &[40]);
        moved(&tracker, &[300, 100], &[200, 500], &[40, 40]);
        assert_eq!(tracker.collection_finished(), []);
        assert_eq!(live(&tracker), [(100, 'b'), (200, 'c'), (500, 'a')]);
    }

    #[test]
    fn nothing_is_lost_when_the_heap_is_not_told() {
        let tracker = tracker(&[(100, 'a'), (200, 'b')]);
        tracker.begin(std::iter::empty());
        moved(&tracker, &[200], &[400], &[8]);
        assert_eq!(tracker.collection_finished(), []);
        assert_eq!(live(&tracker), [(100, 'a'), (400, 'b')]);
        assert_eq!(tracker.forget(ObjectId::new(400)), Some('b'));
        assert_eq!((tracker.len(), tracker.is_empty()), (1, false));
    }
}
