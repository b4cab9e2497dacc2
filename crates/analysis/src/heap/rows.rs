//! The view `heap`: types with the bytes of their objects and the bytes they retain.

use std::cmp::Reverse;
use std::sync::Arc;

use clrscope_recording::model::{HeapGeneration, Process};

use super::heaps::{Heaps, OpenHeap};
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::{QueryProblem, Sort};

/// Number of generations.
const GENERATIONS: usize = HeapGeneration::ALL.len();

/// Objects of one generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generation {
    /// Number of objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// Objects of a type.
#[derive(Debug, Clone)]
pub struct HeapRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// Name of the type in C# syntax.
    pub type_name: Arc<str>,
    /// Name of the module that declares the type.
    pub module: &'a str,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects, without the bytes that they retain.
    pub bytes: u64,
    /// Bytes that the objects retain together.
    pub retained_bytes: u64,
    /// Objects by generation, in the order of [`HeapGeneration::ALL`].
    pub generations: [Generation; GENERATIONS],
}

/// The view `heap`.
#[derive(Debug)]
pub struct HeapView<'a> {
    /// The rows, sorted.
    pub rows: Vec<HeapRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

/// Types in the snapshots that a query selects, with their retained bytes; the most bytes first.
///
/// # Errors
/// When the query selects no process or snapshot.
pub fn heap<'a>(heaps: &Heaps<'a>, query: &HeapQuery) -> Result<HeapView<'a>, QueryProblem> {
    let (mut rows, mut snapshots) = (Vec::new(), Vec::new());
    for (process, snapshot) in query.select(heaps.recording, "heap")? {
        let Some(heap) = heaps.open(process, snapshot) else { continue };
        snapshots.push(SnapshotRef::new(&heap.loaded));
        rows.extend(types(&heap).into_iter().filter(|row| query.wants(&row.type_name, row.module)));
    }
    order(&mut rows, query.query.sort.unwrap_or(Sort::Total));
    let left_out = query.query.cut(&mut rows);
    Ok(HeapView { rows, left_out, snapshots })
}

/// A row for each type, in the order of the snapshot's classes.
pub(super) fn types<'a>(heap: &OpenHeap<'a>) -> Vec<HeapRow<'a>> {
    let loaded = &heap.loaded;
    let classes = loaded.classes().len();
    let retained = heap.retained().by_class(classes, |object| loaded.kind(object));
    let row = |class: u32| HeapRow {
        process: loaded.process,
        type_name: loaded.classes().name(class),
        module: loaded.classes().module(class),
        objects: 0,
        bytes: 0,
        retained_bytes: retained[class as usize],
        generations: [Generation::default(); GENERATIONS],
    };
    let mut rows: Vec<HeapRow<'a>> = (0..classes as u32).map(row).collect();
    for object in 0..loaded.len() {
        let (row, bytes) = (&mut rows[loaded.kind(object as u32) as usize], loaded.sizes[object]);
        let generation = &mut row.generations[loaded.generation[object] as usize];
        for (objects, sum) in [(&mut row.objects, &mut row.bytes), (&mut generation.objects, &mut generation.bytes)] {
            *objects += 1;
            *sum = sum.saturating_add(bytes);
        }
    }
    rows.retain(|row| row.objects > 0);
    rows
}

/// Sorts rows as a query asks; equal rows by name, module and process.
fn order(rows: &mut [HeapRow<'_>], sort: Sort) {
    rows.sort_by(|a, b| (&a.type_name, a.module, a.process.pid).cmp(&(&b.type_name, b.module, b.process.pid)));
    match sort {
        Sort::Own => rows.sort_by_key(|row| Reverse(row.bytes)),
        Sort::Calls => rows.sort_by_key(|row| Reverse(row.objects)),
        Sort::Name => {}
        Sort::Module => rows.sort_by_key(|row| row.module),
        _ => rows.sort_by_key(|row| Reverse((row.retained_bytes, row.bytes))),
    }
}
