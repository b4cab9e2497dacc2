//! All objects of one snapshot and their references, for export formats that list each object.

use std::sync::Arc;

use clrscope_recording::model::Recording;

use super::holders::{HeapPathPlace, place_of_step};
use super::load::{HeapPathRoot, LoadedSnapshot};
use super::root_paths::PathContext;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::QueryProblem;

/// All objects of one snapshot, numbered from 0.
#[derive(Debug)]
pub struct HeapContents<'a>(LoadedSnapshot<'a>);

/// The objects of the snapshot that a query selects; `None` if nothing can be read from it.
///
/// # Errors
/// When the query selects no process or snapshot, or snapshots of several processes.
pub fn heap_contents<'a>(
    recording: &'a Recording,
    query: &HeapQuery,
    format: &'static str,
) -> Result<Option<HeapContents<'a>>, QueryProblem> {
    let chosen = query.select(recording, format)?;
    if chosen.len() > 1 {
        let why = "it has one heap, and several processes have snapshots; choose one with --pid";
        return Err(QueryProblem::NotAvailable { option: "more than one process", view: format, why });
    }
    let first = chosen.into_iter().next();
    Ok(first.and_then(|(process, snapshot)| LoadedSnapshot::new(process, snapshot)).map(HeapContents))
}

impl<'a> HeapContents<'a> {
    /// The snapshot that the objects belong to.
    #[must_use]
    pub fn snapshot(&self) -> SnapshotRef<'a> {
        SnapshotRef::new(&self.0)
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of types. [`type_of`](Self::type_of) returns numbers below this.
    #[must_use]
    pub fn types(&self) -> u32 {
        self.0.classes().len() as u32
    }

    /// Name of the type with this number.
    #[must_use]
    pub fn type_name(&self, of: u32) -> Arc<str> {
        self.0.classes().name(of)
    }

    /// Number of an object's type.
    #[must_use]
    pub fn type_of(&self, object: u32) -> u32 {
        self.0.kind(object)
    }

    /// Bytes of an object.
    #[must_use]
    pub fn bytes(&self, object: u32) -> u64 {
        self.0.sizes[object as usize]
    }

    /// Number of references of an object.
    #[must_use]
    pub fn references(&self, object: u32) -> u32 {
        self.0.graph.edges(object).len() as u32
    }

    /// References of an object: for each, its location in the object and its target.
    pub fn references_of(&self, object: u32) -> impl Iterator<Item = (HeapPathPlace, u32)> {
        self.0.graph.references_of(object).map(move |(target, slot)| {
            let (member, element) = self.0.step(object, slot);
            (place_of_step(&self.0, member, element), target)
        })
    }

    /// Objects that roots hold, as pairs of root and object. Weak handles hold nothing.
    pub fn roots(&self) -> impl Iterator<Item = (&HeapPathRoot<'a>, u32)> {
        self.0.holds.iter().map(|hold| (&self.0.roots[hold.root as usize], hold.object))
    }
}
