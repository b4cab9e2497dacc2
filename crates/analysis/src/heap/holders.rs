//! The view `roots`: the paths that hold the objects of a type.

use std::cmp::Reverse;
use std::sync::Arc;

use clrscope_recording::model::Process;
use rustc_hash::FxHashMap;

use super::heaps::{Heaps, OpenHeap};
use super::load::{HeapPathRoot, LoadedSnapshot};
use super::root_paths::{Member, PathContext, RootPaths};
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::{QueryProblem, Sort};

/// Where an object on a path refers to the next object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeapPathPlace {
    /// Not in an object: a root refers to the object.
    Root,
    /// A field, by its name.
    Field(Arc<str>),
    /// An element of an array. The number is the index for the first object that the path holds.
    Index(u64),
    /// A field of an array element that is a struct. The number is the index of the element.
    FieldOfElement(u64, Arc<str>),
    /// The entry of a conditional weak table: the value lives as long as the key.
    Dependent,
    /// A collectible load context, which keeps the type of the previous object loaded.
    Loader,
    /// Unknown.
    Unknown,
}

/// A step of a path: an object, and where the previous object refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapPathStep {
    /// Type of the object.
    pub type_name: Arc<str>,
    /// Where the previous object refers to this object.
    pub place: HeapPathPlace,
    /// Whether the step occurs several times in a row, for example the nodes of a linked list.
    pub repeats: bool,
}

/// Objects with the same path, which is the shortest from any root.
#[derive(Debug, Clone)]
pub struct HeapPath<'a> {
    /// The process.
    pub process: &'a Process,
    /// Number of objects with this path.
    pub objects: u64,
    /// Bytes of these objects, without the bytes that they retain.
    pub bytes: u64,
    /// The root; `None` if no root leads to the objects.
    pub root: Option<HeapPathRoot<'a>>,
    /// Objects on the path, beginning with the object that the root holds. The last one is an
    /// object of the type. If no root holds the object, it is the only step.
    pub steps: Vec<HeapPathStep>,
}

/// The view `roots`: paths that hold objects.
#[derive(Debug)]
pub struct HeapPaths<'a> {
    /// Rows, the most bytes first.
    pub rows: Vec<HeapPath<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

/// Returns the paths from roots to objects of the types that a query selects.
///
/// # Errors
/// When the query selects no process or snapshot, or there is no type of that name.
pub fn heap_paths<'a>(heaps: &Heaps<'a>, query: &HeapQuery) -> Result<HeapPaths<'a>, QueryProblem> {
    let (mut rows, mut snapshots) = (Vec::new(), Vec::new());
    for (process, snapshot) in query.select(heaps.recording, "roots")? {
        let Some(heap) = heaps.open(process, snapshot) else { continue };
        snapshots.push(SnapshotRef::new(&heap.loaded));
        let classes = heap.loaded.classes();
        rows.extend(paths_to(&heap, |class| query.wants(&classes.name(class), classes.module(class))));
    }
    match query.query.sort {
        Some(Sort::Calls) => rows.sort_by_key(|row| Reverse(row.objects)),
        Some(Sort::Name) => {
            rows.sort_by_cached_key(|row: &HeapPath<'_>| row.steps.last().map(|step| step.type_name.clone()))
        }
        _ => rows.sort_by_key(|row| Reverse(row.bytes)),
    }
    let left_out = query.query.cut(&mut rows);
    Ok(HeapPaths { rows, left_out, snapshots })
}

/// Returns the paths to the objects of selected classes, a row for each shape.
pub(super) fn paths_to<'a>(heap: &OpenHeap<'a>, is_wanted: impl Fn(u32) -> bool) -> Vec<HeapPath<'a>> {
    let loaded = &heap.loaded;
    let wanted: Vec<bool> = (0..loaded.classes().len() as u32).map(is_wanted).collect();
    paths_to_objects(heap, |object| wanted[loaded.class[object as usize] as usize])
}

/// Returns the paths to the selected objects, a row for each shape.
pub(super) fn paths_to_objects<'a>(heap: &OpenHeap<'a>, is_wanted: impl Fn(u32) -> bool) -> Vec<HeapPath<'a>> {
    let loaded = &heap.loaded;
    let paths = RootPaths::new(heap.search(), loaded, &is_wanted);
    let mut sums: FxHashMap<(Option<u32>, u32), (u64, u64)> = FxHashMap::default();
    for object in (0..loaded.len() as u32).filter(|&object| is_wanted(object)) {
        let last = paths.last(object);
        // Objects that no root holds are distinguished by their type only. Objects at a repeated
        // step are also distinguished by their own type.
        let (objects, bytes) = sums.entry((last, loaded.kind(object))).or_default();
        (*objects, *bytes) = (*objects + 1, bytes.saturating_add(loaded.sizes[object as usize]));
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    // Objects that no root holds come last among equals.
    sums.sort_unstable_by_key(|&((last, kind), _)| (last.is_none(), last, kind));
    let row = |((last, kind), (objects, bytes)): ((Option<u32>, u32), (u64, u64))| {
        let steps = last.map(|last| paths.to(last)).unwrap_or_default();
        let root = steps.first().map(|step| loaded.roots[step.root as usize].clone());
        let mut shown: Vec<HeapPathStep> = Vec::with_capacity(steps.len());
        for step in &steps {
            let place = place_of_step(loaded, step.member, step.element);
            shown.push(HeapPathStep { type_name: loaded.classes().name(step.class), place, repeats: step.repeats });
        }
        if steps.is_empty() {
            let type_name = loaded.classes().name(kind);
            shown.push(HeapPathStep { type_name, place: HeapPathPlace::Unknown, repeats: false });
        }
        HeapPath { process: loaded.process, objects, bytes, root, steps: shown }
    };
    sums.into_iter().map(row).collect()
}

/// Returns the place of a step in the previous object.
pub(super) fn place_of_step(loaded: &LoadedSnapshot<'_>, member: Member, element: Option<u64>) -> HeapPathPlace {
    let field = |number: u32| loaded.classes().field(number);
    match (member, element) {
        (Member::Root, _) => HeapPathPlace::Root,
        (Member::Dependent, _) => HeapPathPlace::Dependent,
        (Member::Loader, _) => HeapPathPlace::Loader,
        (Member::Field(number), None) => HeapPathPlace::Field(field(number)),
        (Member::Field(number), Some(element)) => HeapPathPlace::FieldOfElement(element, field(number)),
        (Member::Element | Member::Unknown, Some(element)) => HeapPathPlace::Index(element),
        (Member::Element | Member::Unknown, None) => HeapPathPlace::Unknown,
    }
}

impl PathContext for LoadedSnapshot<'_> {
    fn class(&self, object: u32) -> u32 {
        self.kind(object)
    }

    fn member(&self, object: u32, place: u32) -> (Member, Option<u64>) {
        self.classes().member(self.class[object as usize], place)
    }

    fn root_group(&self, hold: u32) -> u32 {
        self.holds[hold as usize].root
    }
}
