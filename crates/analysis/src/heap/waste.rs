//! The view `waste`: memory that a program could save, in equal strings and boxes and in unused
//! room of arrays.

use std::cmp::Reverse;
use std::sync::Arc;

use clrscope_recording::heap::HeapObject;
use clrscope_recording::model::{HeapType, Process};
use rustc_hash::FxHashMap;

use super::heaps::{Heaps, OpenHeap};
use super::holders::{HeapPathPlace, place_of_step};
use super::load::LoadedSnapshot;
use super::root_paths::PathContext;
use super::shortest::NO_OBJECT;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::{QueryProblem, Sort};

/// Kind of waste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WasteKind {
    /// Strings with the same characters.
    DuplicateStrings,
    /// Equal boxed values of one type.
    DuplicateBoxes,
    /// Collections of references with room for at least twice their elements.
    SparseCollections,
    /// Collections of references without elements.
    EmptyCollections,
    /// Arrays of references that are at least half null, and that belong to no collection.
    SparseArrays,
    /// Arrays without elements.
    EmptyArrays,
}

impl WasteKind {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuplicateStrings => "duplicate_strings",
            Self::DuplicateBoxes => "duplicate_boxes",
            Self::SparseCollections => "sparse_collections",
            Self::EmptyCollections => "empty_collections",
            Self::SparseArrays => "sparse_arrays",
            Self::EmptyArrays => "empty_arrays",
        }
    }

    /// Title of the kind, for display.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::DuplicateStrings => "equal strings",
            Self::DuplicateBoxes => "equal boxed values",
            Self::SparseCollections => "collections at most half full",
            Self::EmptyCollections => "empty collections",
            Self::SparseArrays => "arrays at most half used",
            Self::EmptyArrays => "empty arrays",
        }
    }
}

/// Objects of one type with one kind of waste.
#[derive(Debug, Clone)]
pub struct WasteRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// Kind of waste.
    pub kind: WasteKind,
    /// Type of the objects.
    pub type_name: Arc<str>,
    /// Module that declares the type.
    pub module: &'a str,
    /// Number of characters of equal strings; `None` for other kinds.
    pub length: Option<u64>,
    /// The object that refers to the first of the objects on its shortest path: the type, and where
    /// the reference is.
    pub held_by: Option<(Arc<str>, HeapPathPlace)>,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects; for collections, bytes of their arrays.
    pub bytes: u64,
    /// Bytes that the program could save.
    pub wasted_bytes: u64,
}

/// The view `waste`.
#[derive(Debug)]
pub struct HeapWaste<'a> {
    /// Rows, the most wasted bytes first.
    pub rows: Vec<WasteRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Wasted bytes of each kind, including rows that the limit left out.
    pub sums: Vec<(WasteKind, u64)>,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

/// Waste in the snapshots that a query selects.
///
/// # Errors
/// When the query selects no process or snapshot.
pub fn heap_waste<'a>(heaps: &Heaps<'a>, query: &HeapQuery) -> Result<HeapWaste<'a>, QueryProblem> {
    let (mut rows, mut snapshots) = (Vec::new(), Vec::new());
    for (process, snapshot) in query.select(heaps.recording, "waste")? {
        let Some(heap) = heaps.open(process, snapshot) else { continue };
        snapshots.push(SnapshotRef::new(&heap.loaded));
        rows.extend(rows_of(&heap, found(&heap.loaded), query));
    }
    rows.sort_by(|a: &WasteRow<'_>, b| {
        let key = |row: &WasteRow<'_>| match query.query.sort {
            Some(Sort::Calls) => row.objects,
            Some(Sort::Own) => row.bytes,
            _ => row.wasted_bytes,
        };
        (Reverse(key(a)), a.kind, &a.type_name, a.length).cmp(&(Reverse(key(b)), b.kind, &b.type_name, b.length))
    });
    let mut sums: FxHashMap<WasteKind, u64> = FxHashMap::default();
    for row in &rows {
        let sum = sums.entry(row.kind).or_default();
        *sum = sum.saturating_add(row.wasted_bytes);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(kind, bytes)| (Reverse(*bytes), *kind));
    let left_out = query.query.cut(&mut rows);
    Ok(HeapWaste { rows, left_out, sums, snapshots })
}

/// The key of a row, which its objects share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct WasteKey {
    kind: WasteKind,
    /// Class that represents the row's type.
    class: u32,
    /// Hash of the content of equal objects, and the length of strings.
    value: (u64, u64),
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    first: u32,
    objects: u64,
    bytes: u64,
    wasted: u64,
}

/// An array of references, with its length and the number of elements that are not null.
#[derive(Debug, Clone, Copy)]
struct Array {
    object: u32,
    length: u64,
    used: u64,
}

/// Finds all waste. Objects are processed in the order of their numbers.
fn found(loaded: &LoadedSnapshot<'_>) -> FxHashMap<WasteKey, Sum> {
    let mut sums = FxHashMap::default();
    let arrays = equals_and_arrays(loaded, &mut sums);
    // An object without a duplicate is no waste, nor is the first of several equal objects.
    sums.retain(|_, sum: &mut Sum| sum.objects > 1);
    sums.values_mut().for_each(|sum| sum.wasted = sum.bytes - sum.bytes / sum.objects);
    let collections = collections(loaded, &arrays);
    for array in arrays {
        let bytes = loaded.sizes[array.object as usize];
        let element = u64::from(loaded.source.classes.get(loaded.class[array.object as usize]).element_bytes);
        let free = array.length.saturating_sub(array.used).saturating_mul(element);
        let (kind, owner, wasted) = match collections.get(&array.object) {
            Some(&(owner, 0)) => (WasteKind::EmptyCollections, owner, bytes),
            Some(&(owner, _)) if array.used * 2 <= array.length => (WasteKind::SparseCollections, owner, free),
            None if array.length == 0 => (WasteKind::EmptyArrays, array.object, bytes),
            None if array.used * 2 <= array.length => (WasteKind::SparseArrays, array.object, free),
            _ => continue,
        };
        add(&mut sums, WasteKey { kind, class: loaded.kind(owner), value: (0, 0) }, owner, bytes, wasted);
    }
    sums
}

fn add(sums: &mut FxHashMap<WasteKey, Sum>, of: WasteKey, object: u32, bytes: u64, wasted: u64) {
    let sum = sums.entry(of).or_insert(Sum { first: object, objects: 0, bytes: 0, wasted: 0 });
    sum.objects += 1;
    sum.bytes = sum.bytes.saturating_add(bytes);
    sum.wasted = sum.wasted.saturating_add(wasted);
}

/// Sums up equal objects by their content, and finds arrays of references.
fn equals_and_arrays(loaded: &LoadedSnapshot<'_>, sums: &mut FxHashMap<WasteKey, Sum>) -> Vec<Array> {
    let mut arrays: Vec<Array> = Vec::new();
    let mut next = 0;
    loaded.source.objects(|found| {
        let of_type = loaded.source.classes.get(found.type_number);
        if found.goes_on && next > 0 {
            if let Some(array) = arrays.last_mut().filter(|array| array.object == next - 1) {
                array.used += used(of_type, found);
            }
            return;
        }
        let object = next;
        next += 1;
        if object as usize >= loaded.len() {
            return;
        }
        let kind = match of_type.content {
            HeapType::STRING => Some(WasteKind::DuplicateStrings),
            HeapType::BOX => Some(WasteKind::DuplicateBoxes),
            _ => None,
        };
        if let (Some(kind), Some(content)) = (kind, found.content) {
            let of = WasteKey { kind, class: loaded.kind(object), value: (content, found.length.unwrap_or(0)) };
            add(sums, of, object, found.bytes, 0);
        } else if let Some(length) = found.length.filter(|_| !of_type.element_fields.is_empty()) {
            arrays.push(Array { object, length, used: used(of_type, found) });
        }
    });
    arrays
}

/// Number of elements that hold a reference.
fn used(of_type: &HeapType, object: &HeapObject<'_>) -> u64 {
    let (fixed, each) = (of_type.fields.len() as u64, of_type.element_fields.len().max(1) as u64);
    let mut elements = object.references.iter().map(|found| found.slot.saturating_sub(fixed) / each);
    let mut count = 0;
    let mut last = None;
    for element in &mut elements {
        count += u64::from(last.replace(element) != Some(element));
    }
    count
}

/// Arrays that hold the elements of a collection, each with the collection and the maximum number
/// of used elements in one of its arrays.
fn collections(loaded: &LoadedSnapshot<'_>, arrays: &[Array]) -> FxHashMap<u32, (u32, u64)> {
    let used: FxHashMap<u32, u64> = arrays.iter().map(|array| (array.object, array.used)).collect();
    let is_collection: Vec<bool> =
        (0..loaded.classes().len() as u32).map(|class| is_collection(&loaded.classes().name(class))).collect();
    let mut owners = FxHashMap::default();
    for object in (0..loaded.len() as u32).filter(|&object| is_collection[loaded.class[object as usize] as usize]) {
        let own = || loaded.graph.targets(object).iter().filter(|target| used.contains_key(target));
        let most = own().map(|target| used[target]).max().unwrap_or(0);
        own().for_each(|&target| _ = owners.entry(target).or_insert((object, most)));
    }
    owners
}

/// Whether a type is one of the framework's collections, rather than a part of one.
fn is_collection(name: &str) -> bool {
    let plain = name.split('<').next().unwrap_or(name);
    let is_part = name.ends_with(']') || name.rsplit_once('>').is_some_and(|(_, rest)| !rest.is_empty());
    plain.starts_with("System.Collections.") && !is_part
}

/// Makes the rows of the waste found.
fn rows_of<'a>(heap: &OpenHeap<'a>, found: FxHashMap<WasteKey, Sum>, query: &HeapQuery) -> Vec<WasteRow<'a>> {
    let (loaded, search) = (&heap.loaded, heap.search());
    let classes = loaded.classes();
    let holder = |object: u32| {
        let from = search.from[object as usize];
        let (member, element) = (from != NO_OBJECT).then(|| loaded.step(from, search.place[object as usize]))?;
        Some((classes.name(loaded.kind(from)), place_of_step(loaded, member, element)))
    };
    let mut all: Vec<(WasteKey, Sum)> = found.into_iter().collect();
    all.sort_by_key(|(of, _)| *of);
    all.retain(|(of, _)| query.wants(&classes.name(of.class), classes.module(of.class)));
    let row = |(of, sum): (WasteKey, Sum)| WasteRow {
        process: loaded.process,
        kind: of.kind,
        type_name: classes.name(of.class),
        module: classes.module(of.class),
        length: (of.kind == WasteKind::DuplicateStrings).then_some(of.value.1),
        held_by: holder(sum.first),
        objects: sum.objects,
        bytes: sum.bytes,
        wasted_bytes: sum.wasted,
    };
    all.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_those_of_the_framework_and_not_what_they_are_made_of() {
        let all = ["System.Collections.Generic.List<Shop.Order>", "System.Collections.Hashtable"];
        assert!(all.into_iter().all(is_collection));
        let none = [
            "System.Collections.Generic.Dictionary<string, Shop.Order>.Entry[]",
            "System.Collections.Generic.Dictionary<string, Shop.Order>.KeyCollection",
            "System.Collections.Generic.List<Shop.Order>[]",
            "Shop.List<int>",
            "string",
        ];
        assert!(!none.into_iter().any(is_collection));
    }
}
