//! Comparison of single snapshots or sets of snapshots: which objects were added or removed, and
//! which types retain more.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use clrscope_recording::model::{HeapSnapshot, Process};
use rustc_hash::{FxHashMap, FxHashSet};

use super::heaps::{Heaps, OpenHeap};
use super::holders::{HeapPath, paths_to};
use super::rows::types;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::comparison::{Change, IntervalEstimate, Verdict};
use crate::query::{QueryProblem, Sort};

/// Number of types for which new holders are looked up, beginning with the first types that grew.
const MOST_WAYS: usize = 30;

/// Objects of a type in the snapshots of one recording.
#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    objects: u64,
    bytes: u64,
    retained_bytes: u64,
}

/// Change of a type between the two sides. Amounts of single snapshots are exact. Amounts of sets
/// are medians with their intervals.
#[derive(Debug, Clone)]
pub struct HeapChange {
    /// Name of the type in C# syntax.
    pub type_name: Arc<str>,
    /// Name of the module that declares the type.
    pub module: String,
    /// Change of the number of objects.
    pub objects: Change,
    /// Change of the objects' own bytes, without the bytes that they retain.
    pub bytes: Change,
    /// Change of the bytes that the objects retain together.
    pub retained_bytes: Change,
    /// The path that holds most of the added bytes; `None` if no bytes were added, and for types
    /// beyond the first rows.
    pub held_by: Option<GrownPath>,
}

/// A path that now holds more objects of a type than before, on average over the recordings of each
/// side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrownPath {
    /// The root as text: `static field Shop.Cache.items`.
    pub root: String,
    /// Name of the static field, if the root is a static field; see
    /// [`HeapPathRoot::static_field`](crate::HeapPathRoot::static_field).
    pub static_field: Option<Arc<str>>,
    /// Each object on the path, with the member that refers to the next object, as text to append
    /// to the root.
    pub steps: String,
    /// Number of objects that this path holds, minus the number before.
    pub objects: i64,
    /// Bytes of these objects, minus the bytes before.
    pub bytes: i64,
}

impl GrownPath {
    /// Creates the path that `way` describes, without counts.
    fn new(way: &HeapPath<'_>) -> Self {
        let static_field = way.static_field().map(Arc::from);
        Self { root: way.root_label(), static_field, steps: way.steps_label(), objects: 0, bytes: 0 }
    }

    /// The path in one line: the root, then each object with the member that refers to the next
    /// one.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}{}", self.root, self.steps)
    }
}

/// Comparison of two snapshots, or of two sets of snapshots.
#[derive(Debug)]
pub struct HeapChanges<'a> {
    /// Types that changed. The largest growth comes first; in comparisons of sets, significant
    /// changes come first.
    pub rows: Vec<HeapChange>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// The snapshots on each side: before, after.
    pub snapshots: [Vec<SnapshotRef<'a>>; 2],
    /// Number of recordings on each side: before, after.
    pub recordings: [usize; 2],
}

impl HeapChange {
    /// Growth of the medians: of objects, bytes and retained bytes.
    #[must_use]
    pub fn growth(&self) -> [i64; 3] {
        [&self.objects, &self.bytes, &self.retained_bytes].map(|change| change.difference as i64)
    }

    /// Creates the row of a type with amounts of each recording; the first `before` are of the
    /// first side.
    fn from_amounts((type_name, module): (Arc<str>, String), amounts: &[Amounts], before: usize) -> Self {
        let change = |part: fn(&Amounts) -> u64| {
            let all: Vec<IntervalEstimate> =
                amounts.iter().map(|one| IntervalEstimate::exact(part(one) as f64)).collect();
            Change::between(&all[..before], &all[before..])
        };
        let (objects, bytes) = (change(|one| one.objects), change(|one| one.bytes));
        Self { type_name, module, objects, bytes, retained_bytes: change(|one| one.retained_bytes), held_by: None }
    }

    fn is_as_before(&self) -> bool {
        [&self.objects, &self.bytes, &self.retained_bytes].iter().all(|change| change.verdict == Verdict::Same)
    }
}

/// Compares types between the snapshots of two sides, each with one recording or several. The
/// second query determines order and limit. Types without a change have no row. Only one snapshot
/// is in memory at a time, but the snapshots of the last recording are kept.
///
/// # Errors
/// When the query selects no process or snapshot in one of the recordings.
pub fn heap_changes<'a>(
    before: (&[Heaps<'a>], &HeapQuery),
    after: (&[Heaps<'a>], &HeapQuery),
) -> Result<HeapChanges<'a>, QueryProblem> {
    let sides = [Side::new(before, Heaps::pass)?, Side::new(after, Heaps::open)?];
    let recordings = sides.each_ref().map(|side| side.chosen.len());
    let mut amounts: BTreeMap<(Arc<str>, String), Vec<Amounts>> = BTreeMap::new();
    let mut snapshots = [Vec::new(), Vec::new()];
    for (side, number) in [0, 1].into_iter().flat_map(|side| (0..recordings[side]).map(move |number| (side, number))) {
        let at = side * recordings[0] + number;
        sides[side].each_of(number, |heap| {
            snapshots[side].push(SnapshotRef::new(&heap.loaded));
            let query = sides[side].query;
            for row in types(heap).into_iter().filter(|row| query.wants(&row.type_name, row.module)) {
                let of_type = amounts.entry((row.type_name, row.module.to_owned()));
                let sums = &mut of_type.or_insert_with(|| vec![Amounts::default(); recordings.iter().sum()])[at];
                sums.objects = sums.objects.saturating_add(row.objects);
                sums.bytes = sums.bytes.saturating_add(row.bytes);
                sums.retained_bytes = sums.retained_bytes.saturating_add(row.retained_bytes);
            }
        });
    }
    let all = amounts.into_iter().map(|(key, amounts)| HeapChange::from_amounts(key, &amounts, recordings[0]));
    let mut rows: Vec<HeapChange> = all.filter(|row| !row.is_as_before()).collect();
    let query = &after.1.query;
    order(&mut rows, query.sort.unwrap_or(Sort::Total));
    let left_out = query.cut(&mut rows);
    find_holders(&mut rows, &sides);
    Ok(HeapChanges { rows, left_out, snapshots, recordings })
}

/// Sorts rows, which come in the order of names. Changes that may be due to chance come last.
fn order(rows: &mut [HeapChange], sort: Sort) {
    let by = |change: &Change| (change.verdict == Verdict::Unclear, Reverse(change.difference as i64));
    match sort {
        Sort::Own => rows.sort_by_key(|row| by(&row.bytes)),
        Sort::Calls => rows.sort_by_key(|row| by(&row.objects)),
        Sort::Name => {}
        Sort::Module => rows.sort_by(|a, b| a.module.cmp(&b.module)),
        _ => rows.sort_by_key(|row| (by(&row.retained_bytes), Reverse(row.growth()[1]))),
    }
}

/// Function that opens a snapshot, and either keeps it open or does not.
type Opening<'a> = fn(&Heaps<'a>, &'a Process, &'a HeapSnapshot) -> Option<Arc<OpenHeap<'a>>>;

/// Snapshots of one side.
struct Side<'s, 'a> {
    heaps: &'s [Heaps<'a>],
    query: &'s HeapQuery,
    /// Selected snapshots of each recording.
    chosen: Vec<Vec<(&'a Process, &'a HeapSnapshot)>>,
    /// Opens the snapshots of the last recording.
    opening: Opening<'a>,
}

impl<'s, 'a> Side<'s, 'a> {
    fn new((heaps, query): (&'s [Heaps<'a>], &'s HeapQuery), opening: Opening<'a>) -> Result<Self, QueryProblem> {
        let chosen = heaps.iter().map(|heaps| query.select(heaps.recording, "heap-diff")).collect::<Result<_, _>>()?;
        Ok(Self { heaps, query, chosen, opening })
    }

    /// Calls `take` with each snapshot of a recording. Each is released before the next is opened.
    fn each_of(&self, number: usize, mut take: impl FnMut(&OpenHeap<'a>)) {
        let opening: Opening<'a> = if number + 1 == self.chosen.len() { self.opening } else { Heaps::pass };
        for &(process, snapshot) in &self.chosen[number] {
            opening(&self.heaps[number], process, snapshot).iter().for_each(|heap| take(heap));
        }
    }

    /// Calls `take` with each snapshot, as `each_of` does.
    fn each(&self, mut take: impl FnMut(&OpenHeap<'a>)) {
        (0..self.chosen.len()).for_each(|number| self.each_of(number, &mut take));
    }

    /// Objects and bytes by type and path. Paths that differ only in the indices of elements are
    /// merged.
    fn sums(&self, wanted: &FxHashSet<Arc<str>>) -> FxHashMap<(String, String), (HeldObjects, GrownPath)> {
        let mut sums = FxHashMap::default();
        self.each(|heap| {
            for way in paths_to(heap, |class| wanted.contains(&heap.loaded.classes().name(class))) {
                let key = (way.type_name().to_owned(), way.shape());
                let (sum, _): &mut (HeldObjects, GrownPath) =
                    sums.entry(key).or_insert_with(|| (HeldObjects::default(), GrownPath::new(&way)));
                sum.objects = sum.objects.saturating_add(way.objects);
                sum.bytes = sum.bytes.saturating_add(way.bytes);
            }
        });
        sums
    }
}

/// Objects that one path holds, in all snapshots of a side.
#[derive(Debug, Clone, Copy, Default)]
struct HeldObjects {
    objects: u64,
    bytes: u64,
}

/// Looks up the holders of added objects, for the first types that grew.
fn find_holders(rows: &mut [HeapChange], [before, after]: &[Side<'_, '_>; 2]) {
    let grew = |row: &&mut HeapChange| row.growth()[1] > 0;
    let mut grown: Vec<&mut HeapChange> = rows.iter_mut().filter(grew).take(MOST_WAYS).collect();
    if grown.is_empty() {
        return;
    }
    let wanted: FxHashSet<Arc<str>> = grown.iter().map(|row| row.type_name.clone()).collect();
    let (now, then) = (after.sums(&wanted), before.sums(&wanted));
    let mut best: FxHashMap<String, GrownPath> = FxHashMap::default();
    for (key, (sum, way)) in now {
        let known = then.get(&key).map(|(sum, _)| *sum).unwrap_or_default();
        // Mean over the recordings.
        let more = |now: u64, then: u64| {
            let [now, then] = [(now, after), (then, before)].map(|(sum, side)| sum / side.chosen.len().max(1) as u64);
            now.wrapping_sub(then) as i64
        };
        let (objects, bytes) = (more(sum.objects, known.objects), more(sum.bytes, known.bytes));
        let way = GrownPath { objects, bytes, ..way };
        let is_more = |other: &GrownPath| (way.bytes, other.label()) > (other.bytes, way.label());
        if way.bytes > 0 && best.get(&key.0).is_none_or(is_more) {
            best.insert(key.0, way);
        }
    }
    grown.iter_mut().for_each(|row| row.held_by = best.get(&*row.type_name).cloned());
}
