//! The objects of a snapshot in the order of their addresses, for repeated reading.

use clrscope_recording::heap::{HeapChunk, HeapData, HeapObject, HeapRoot};
use clrscope_recording::model::{EventChunk, HeapAwait, HeapPlace, Process};
use clrscope_recording::parallel::fold;

use super::await_place::AwaitPlace;
use super::classes::Classes;

/// A snapshot that is read chunk by chunk.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    data: HeapData<'a>,
    pub(crate) classes: Classes<'a>,
    /// Chunks with objects, by the address of the first object.
    rows: Vec<&'a EventChunk>,
    others: Vec<&'a EventChunk>,
}

impl<'a> Source<'a> {
    /// Opens the snapshot with this number, or the existing part of an incomplete one; `None` if
    /// there is nothing to read.
    pub(crate) fn open(process: &'a Process, number: u32) -> Option<Self> {
        let data = process.heap(number).or_else(|| process.cut_heap(number))?;
        let classes = Classes::new(process, data.types());
        let chunks = data.chunks();
        let address = |chunk: &EventChunk| match data.chunk(&chunk.bytes.load()) {
            HeapChunk::Objects(row) => Some(row.address()),
            _ => None,
        };
        let states = fold(chunks.len(), Vec::new, |found, at| found.push((address(chunks[at]), at)));
        let mut found: Vec<(Option<u64>, usize)> = states.into_iter().flatten().collect();
        // A chunk whose first object continues from another chunk has the same address, and comes
        // after it.
        found.sort_unstable();
        let of = |is_row: bool| {
            let found = found.iter().filter(move |(address, _)| address.is_some() == is_row);
            found.map(|(_, at)| chunks[*at]).collect()
        };
        Some(Self { rows: of(true), others: of(false), classes, data })
    }

    /// Chunks of the snapshot that are missing.
    pub(crate) fn missing_chunks(&self) -> u64 {
        self.data.missing_chunks()
    }

    /// Number of chunks with objects.
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Visits the objects of the chunk with an index, in the order of addresses.
    pub(crate) fn objects_of(&self, at: usize, visit: impl FnMut(&HeapObject<'_>)) {
        if let HeapChunk::Objects(row) = self.data.chunk(&self.rows[at].bytes.load()) {
            // Invalid data ends its chunk; references to the lost objects are counted as missing.
            let _ = row.visit(self.classes.types(), visit);
        }
    }

    /// Visits every object. An object with very many references is visited several times; from the
    /// second time on it [continues](HeapObject::goes_on).
    pub(crate) fn objects(&self, mut visit: impl FnMut(&HeapObject<'_>)) {
        (0..self.rows()).for_each(|at| self.objects_of(at, &mut visit));
    }

    /// Visits every root.
    pub(crate) fn roots(&self, mut visit: impl FnMut(HeapRoot)) {
        for chunk in &self.others {
            if let HeapChunk::Roots(roots) = self.data.chunk(&chunk.bytes.load()) {
                roots.for_each(&mut visit);
            }
        }
    }

    /// Visits every pair of objects in which the second lives as long as the first.
    pub(crate) fn dependents(&self, mut visit: impl FnMut((u64, u64))) {
        for chunk in &self.others {
            if let HeapChunk::Dependents(pairs) = self.data.chunk(&chunk.bytes.load()) {
                pairs.for_each(&mut visit);
            }
        }
    }

    /// Awaits, each with the addresses of the boxes that wait there.
    pub(crate) fn awaits(&self) -> impl Iterator<Item = (AwaitPlace, Vec<u64>)> {
        let place =
            |found: &HeapAwait| AwaitPlace { module: found.module, token: found.token, il_offset: found.il_offset };
        self.data.awaits().into_iter().map(move |found| (place(&found), found.boxes))
    }

    /// Places of static fields.
    pub(crate) fn places(&self) -> Vec<HeapPlace> {
        self.data.places()
    }
}
