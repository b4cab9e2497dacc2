//! The heap in a summary: its retained bytes, the roots that hold them, and the growth from one
//! snapshot to the next.

use std::cmp::Reverse;
use std::sync::Arc;

use clrscope_recording::model::{HeapSnapshot, Process};
use rustc_hash::FxHashMap;

use super::findings::{self, RootHold, TypeHistory};
use super::heaps::{Heaps, OpenHeap};
use super::holders::{HeapPath, paths_to};
use super::preorder::TOP;
use super::rows::{HeapRow, types};
use super::snapshots::{HeapQuery, SnapshotRef};
use super::source::Source;
use crate::query::QueryProblem;
use crate::views::summary::Finding;

/// Maximum number of types in the summary. The view `heap` has all types.
const TOP_TYPES: usize = 10;

/// A type, and the path that holds most of its bytes.
#[derive(Debug, Clone)]
pub struct Retainer<'a> {
    /// The type's row of the view `heap`.
    pub row: HeapRow<'a>,
    /// The path that holds most bytes of the type.
    pub way: Option<HeapPath<'a>>,
}

/// The heap in a summary.
#[derive(Debug, Default)]
pub struct HeapSummary<'a> {
    /// Findings, the most important first.
    pub findings: Vec<Finding>,
    /// Types that retain most bytes, over all processes.
    pub types: Vec<Retainer<'a>>,
    /// Number of all types, including those that the summary leaves out.
    pub all_types: usize,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

/// The summary of the snapshots that a query selects; empty if there are none.
///
/// # Errors
/// When the query selects no process.
pub fn heap_summary<'a>(heaps: &Heaps<'a>, query: &HeapQuery) -> Result<HeapSummary<'a>, QueryProblem> {
    let mut summary = HeapSummary::default();
    let chosen = match query.select(heaps.recording, "summary") {
        Err(problem @ QueryProblem::NoProcess { .. }) => return Err(problem),
        Err(_) => return Ok(summary),
        Ok(chosen) => chosen,
    };
    for (process, snapshot) in chosen {
        let Some(heap) = heaps.open(process, snapshot) else { continue };
        let loaded = &heap.loaded;
        summary.snapshots.push(SnapshotRef::new(loaded));
        let mut rows = types(&heap);
        rows.sort_by_key(|row| Reverse((row.retained_bytes, row.bytes)));
        summary.all_types += rows.len();
        rows.truncate(query.query.limit.map_or(TOP_TYPES, |limit| limit.min(TOP_TYPES)));
        let history = history(process, snapshot);
        let grown = findings::most_grown(&history);
        let holds = most_held(&heap);
        let names = rows.iter().map(|row| &row.type_name).chain(grown.map(|grown| &grown.type_name));
        let names: Vec<Arc<str>> = names.cloned().collect();
        let ways = paths_to(&heap, |class| names.contains(&loaded.classes().name(class)));
        let way = |name: &str| ways.iter().filter(|way| way.type_name() == name).max_by_key(|way| way.bytes).cloned();
        summary.findings.extend(grown.map(|grown| findings::growth(grown, way(&grown.type_name).as_ref())));
        summary.findings.extend(holds.iter().map(|hold| findings::hold(hold, loaded.bytes())));
        summary.types.extend(rows.into_iter().map(|row| Retainer { way: way(&row.type_name), row }));
    }
    summary.types.sort_by_key(|retainer| Reverse((retainer.row.retained_bytes, retainer.row.bytes)));
    summary.types.truncate(query.query.limit.map_or(TOP_TYPES, |limit| limit.min(TOP_TYPES)));
    Ok(summary)
}

/// Maximum number of roots that are reported. Each root but the first must also keep a certain part
/// of the heap alive.
const MOST_ROOTS: usize = 3;
const MUCH: f64 = 0.1;

/// The root that alone keeps most bytes alive, and further roots that keep a large part of the heap
/// alive. Each comes with the type that has most of these bytes.
fn most_held<'a>(heap: &OpenHeap<'a>) -> Vec<RootHold<'a>> {
    let (loaded, retained) = (&heap.loaded, heap.retained());
    // If an object has several roots, the first is the most informative.
    let mut root_of: FxHashMap<u32, u32> = FxHashMap::default();
    loaded.holds.iter().for_each(|hold| _ = root_of.entry(hold.object).or_insert(hold.root));
    let mut sums: FxHashMap<u32, (u64, Vec<u32>)> = FxHashMap::default();
    for &number in retained.children(TOP) {
        if let Some(&root) = root_of.get(&retained.order.object[number as usize]) {
            let (bytes, numbers) = sums.entry(root).or_default();
            *bytes = bytes.saturating_add(retained.bytes(number));
            numbers.push(number);
        }
    }
    let named = sums.into_iter().filter(|(root, _)| !loaded.roots[*root as usize].name.is_empty());
    let mut named: Vec<_> = named.map(|(root, (bytes, numbers))| (bytes, root, numbers)).collect();
    named.sort_unstable_by_key(|(bytes, root, _)| (Reverse(*bytes), *root));
    let is_much = |bytes: u64| bytes as f64 >= MUCH * loaded.bytes() as f64;
    let worth = named.into_iter().enumerate().take(MOST_ROOTS).filter(|(at, (bytes, ..))| *at == 0 || is_much(*bytes));
    worth.filter_map(|(_, (bytes, root, numbers))| hold_of(heap, root, bytes, numbers)).collect()
}

/// A root that keeps `bytes` alive: the bytes of these numbers and of everything below them in the
/// dominator tree.
fn hold_of<'a>(heap: &OpenHeap<'a>, root: u32, bytes: u64, numbers: Vec<u32>) -> Option<RootHold<'a>> {
    let (loaded, retained) = (&heap.loaded, heap.retained());
    // Everything below these in the tree of dominators.
    let mut below = vec![false; loaded.len()];
    let mut open = numbers;
    let mut by_class: FxHashMap<u32, u64> = FxHashMap::default();
    while let Some(number) = open.pop() {
        let object = retained.order.object[number as usize];
        below[object as usize] = true;
        let sum = by_class.entry(loaded.kind(object)).or_default();
        *sum = sum.saturating_add(loaded.sizes[object as usize]);
        open.extend_from_slice(retained.children(number));
    }
    let (class, _) = by_class.into_iter().max_by_key(|(class, bytes)| (*bytes, Reverse(*class)))?;
    let ways = super::holders::paths_to_objects(heap, |object| below[object as usize] && loaded.kind(object) == class);
    let most = ways.into_iter().max_by_key(|way| way.bytes);
    Some(RootHold { root: loaded.roots[root as usize].clone(), retained_bytes: bytes, most })
}

/// Objects and bytes of one type, in each of several snapshots.
type SumsOfType = Vec<(u64, u64)>;

/// Objects and bytes of each type in the complete snapshots of a process up to one of them.
fn history(process: &Process, last: &HeapSnapshot) -> Vec<TypeHistory> {
    let complete = process.snapshots.iter().filter(|snapshot| snapshot.is_complete() && snapshot.number <= last.number);
    let sources: Vec<_> = complete.filter_map(|snapshot| Source::open(process, snapshot.number)).collect();
    let mut all: FxHashMap<(Arc<str>, bool), SumsOfType> = FxHashMap::default();
    for (at, source) in sources.iter().enumerate().filter(|_| sources.len() > 1) {
        let mut sums = vec![(0_u64, 0_u64); source.classes.len()];
        source.objects(|object| {
            let (objects, bytes) = &mut sums[object.type_number as usize];
            if !object.goes_on {
                (*objects, *bytes) = (*objects + 1, bytes.saturating_add(object.bytes));
            }
        });
        for (class, (objects, bytes)) in (0..).zip(sums).filter(|(_, (objects, _))| *objects > 0) {
            let key = (source.classes.name(class), source.classes.is_own(class));
            let sums = all.entry(key).or_insert_with(|| vec![(0, 0); sources.len()]);
            sums[at] = (sums[at].0 + objects, sums[at].1.saturating_add(bytes));
        }
    }
    let history = |((type_name, is_own), amounts)| TypeHistory { type_name, is_own, amounts };
    let mut all: Vec<TypeHistory> = all.into_iter().map(history).collect();
    all.sort_by(|a, b| a.type_name.cmp(&b.type_name));
    all
}
