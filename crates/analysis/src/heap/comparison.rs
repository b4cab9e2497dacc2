//! Two snapshots side by side: what came, what went, and what retains more.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use clrscope_recording::model::{HeapSnapshot, Process};
use rustc_hash::{FxHashMap, FxHashSet};

use super::heaps::{Heaps, OpenHeap};
use super::holders::{HeapWay, ways_to};
use super::rows::types;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::{QueryProblem, Sort};

/// Types that grew of which is looked up who holds what came: the first ones.
const MOST_WAYS: usize = 30;

/// Objects of a type in one snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapAmounts {
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects alone.
    pub bytes: u64,
    /// Bytes that they retain together.
    pub retained_bytes: u64,
}

/// A type in two snapshots.
#[derive(Debug, Clone)]
pub struct HeapChange {
    /// Name as C# writes it.
    pub type_name: Arc<str>,
    /// Name of the module that declares the type.
    pub module: String,
    /// Amounts in the first snapshot.
    pub before: HeapAmounts,
    /// Amounts in the second snapshot.
    pub after: HeapAmounts,
    /// The way in which most of the bytes are held that came in between; `None` where none came, and of types far down.
    pub held_by: Option<GrownWay>,
}

/// A way in which more objects of a type are held than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrownWay {
    /// The way in a line: the root, then each object with what leads on.
    pub label: String,
    /// Objects that are held in this way now, less those that were before.
    pub objects: i64,
    /// Bytes of the objects, less those before.
    pub bytes: i64,
}

/// Two snapshots, or sets of snapshots of several processes, side by side.
#[derive(Debug)]
pub struct HeapChanges<'a> {
    /// Types with what changed, the largest growth first.
    pub rows: Vec<HeapChange>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// The snapshots on both sides.
    pub snapshots: [Vec<SnapshotRef<'a>>; 2],
}

impl HeapChange {
    /// Growth from the first snapshot to the second, of objects, bytes and retained bytes.
    #[must_use]
    pub fn growth(&self) -> [i64; 3] {
        let of = |amounts: HeapAmounts| [amounts.objects, amounts.bytes, amounts.retained_bytes];
        let (before, after) = (of(self.before), of(self.after));
        [0, 1, 2].map(|at| after[at].wrapping_sub(before[at]) as i64)
    }
}

/// The types of two snapshots, of one recording or of two. The second query says order and limit. Types that are alike in
/// both have no row. One snapshot is in memory at a time, the second one last.
///
/// # Errors
/// When no process or snapshot is meant on either side.
pub fn heap_changes<'a>(
    before: (&Heaps<'a>, &HeapQuery),
    after: (&Heaps<'a>, &HeapQuery),
) -> Result<HeapChanges<'a>, QueryProblem> {
    let sides = [Side::new(before.0, before.1, Heaps::pass)?, Side::new(after.0, after.1, Heaps::open)?];
    let mut amounts: BTreeMap<(Arc<str>, String), [HeapAmounts; 2]> = BTreeMap::new();
    let mut snapshots = [Vec::new(), Vec::new()];
    for (at, side) in sides.iter().enumerate() {
        side.each(|heap| {
            snapshots[at].push(SnapshotRef::of(&heap.loaded));
            for row in types(heap).into_iter().filter(|row| side.query.wants(&row.type_name, row.module)) {
                let amounts = &mut amounts.entry((row.type_name, row.module.to_owned())).or_default()[at];
                amounts.objects = amounts.objects.saturating_add(row.objects);
                amounts.bytes = amounts.bytes.saturating_add(row.bytes);
                amounts.retained_bytes = amounts.retained_bytes.saturating_add(row.retained_bytes);
            }
        });
    }
    let changed = amounts.into_iter().filter(|(_, [before, after])| before != after);
    let row = |((type_name, module), [before, after]): ((Arc<str>, String), [HeapAmounts; 2])| HeapChange {
        type_name,
        module,
        before,
        after,
        held_by: None,
    };
    let mut rows: Vec<HeapChange> = changed.map(row).collect();
    let query = &after.1.query;
    match query.sort.unwrap_or(Sort::Total) {
        Sort::Own => rows.sort_by_key(|row| Reverse(row.growth()[1])),
        Sort::Calls => rows.sort_by_key(|row| Reverse(row.growth()[0])),
        Sort::Name => {}
        Sort::Module => rows.sort_by(|a, b| a.module.cmp(&b.module)),
        _ => rows.sort_by_key(|row| Reverse([row.growth()[2], row.growth()[1]])),
    }
    let left_out = query.cut(&mut rows);
    find_holders(&mut rows, &sides);
    Ok(HeapChanges { rows, left_out, snapshots })
}

/// Function that gives a snapshot: one that stays open, or one that does not.
type Opening<'a> = fn(&Heaps<'a>, &'a Process, &'a HeapSnapshot) -> Option<Arc<OpenHeap<'a>>>;

/// Snapshots of one side.
struct Side<'s, 'a> {
    heaps: &'s Heaps<'a>,
    query: &'s HeapQuery,
    chosen: Vec<(&'a Process, &'a HeapSnapshot)>,
    opening: Opening<'a>,
}

impl<'s, 'a> Side<'s, 'a> {
    fn new(heaps: &'s Heaps<'a>, query: &'s HeapQuery, opening: Opening<'a>) -> Result<Self, QueryProblem> {
        Ok(Self { heaps, query, chosen: query.select(heaps.recording, "heap-diff")?, opening })
    }

    /// Hands over each snapshot, which is not needed any more when the next one comes.
    fn each(&self, mut take: impl FnMut(&OpenHeap<'a>)) {
        for &(process, snapshot) in &self.chosen {
            (self.opening)(self.heaps, process, snapshot).iter().for_each(|heap| take(heap));
        }
    }

    /// Objects and bytes by type and way, however the elements are numbered that it comes by.
    fn sums(&self, wanted: &FxHashSet<Arc<str>>) -> FxHashMap<(String, String), (HeapAmounts, String)> {
        let mut sums = FxHashMap::default();
        self.each(|heap| {
            for way in ways_to(heap, |class| wanted.contains(&heap.loaded.classes().name(class))) {
                let key = (way.type_name().to_owned(), way.shape());
                let (sum, _): &mut (HeapAmounts, String) =
                    sums.entry(key).or_insert_with(|| (HeapAmounts::default(), HeapWay::label(&way)));
                sum.objects = sum.objects.saturating_add(way.objects);
                sum.bytes = sum.bytes.saturating_add(way.bytes);
            }
        });
        sums
    }
}

/// Fills in who holds what came, for the first types that grew.
fn find_holders(rows: &mut [HeapChange], [before, after]: &[Side<'_, '_>; 2]) {
    let grew = |row: &&mut HeapChange| row.growth()[1] > 0;
    let mut grown: Vec<&mut HeapChange> = rows.iter_mut().filter(grew).take(MOST_WAYS).collect();
    if grown.is_empty() {
        return;
    }
    let wanted: FxHashSet<Arc<str>> = grown.iter().map(|row| row.type_name.clone()).collect();
    let (now, then) = (after.sums(&wanted), before.sums(&wanted));
    let mut best: FxHashMap<String, GrownWay> = FxHashMap::default();
    for (key, (sum, label)) in now {
        let known = then.get(&key).map(|(sum, _)| *sum).unwrap_or_default();
        let more = |now: u64, then: u64| now.wrapping_sub(then) as i64;
        let way = GrownWay { label, objects: more(sum.objects, known.objects), bytes: more(sum.bytes, known.bytes) };
        let is_more = |other: &GrownWay| (way.bytes, &other.label) > (other.bytes, &way.label);
        if way.bytes > 0 && best.get(&key.0).is_none_or(is_more) {
            best.insert(key.0, way);
        }
    }
    grown.iter_mut().for_each(|row| row.held_by = best.get(&*row.type_name).cloned());
}
