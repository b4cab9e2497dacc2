//! Snapshots of the managed heap: reads objects, references and roots from the chunks of the
//! instrument `heap`.
//!
//! [`layout::heap`](crate::layout::heap) is the specification of the chunks, and
//! [`HeapWriter`](crate::writer::HeapWriter) writes them. A process's
//! [`snapshots`](crate::model::Process::snapshots) list them; [`Process::heap`] opens one. Chunks
//! are read one at a time, so that walking a heap of any size needs little memory, and several
//! threads can read chunks in parallel.
//!
//! Each object of a snapshot has an address, by which it is identified within the snapshot.
//! References point to the beginning of objects. In a damaged recording, a reference may point
//! outside all object rows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::codec::{Field, decode};
use crate::layout::{heap, u32_at, u64_at};
use crate::model::{EventChunk, HeapAwait, HeapGeneration, HeapPlace, HeapSnapshot, HeapType, Process, RootKind};
use crate::payload::PayloadReader;
use crate::varint::{Varints, unzigzag};

/// Limit for missing types in a damaged recording: this many for each existing type, plus this
/// many.
const MISSING_FOR_EACH: usize = 4;
const MISSING: usize = 1 << 10;

impl Process {
    /// The snapshot of the heap with this number, if it is complete and its chunks exist.
    #[must_use]
    pub fn heap(&self, number: u32) -> Option<HeapData<'_>> {
        let snapshot =
            self.snapshots.iter().find(|found| found.number == number).filter(|found| found.is_complete())?;
        let range = snapshot.first_chunk..=snapshot.last_chunk;
        let chunks = self.heap_chunks().filter(|chunk| range.contains(&chunk.sequence)).collect();
        Some(HeapData { process: self, snapshot, chunks, types_from: snapshot.tail_chunk })
    }

    /// The written part of an incomplete snapshot: the program was killed during the snapshot, or
    /// space ran out. Objects, names of types and names of static fields may be missing. `None` if
    /// nothing was written. Reads all chunks that belong to no complete snapshot.
    #[must_use]
    pub fn cut_heap(&self, number: u32) -> Option<HeapData<'_>> {
        let snapshot = self.snapshots.iter().find(|found| found.number == number)?;
        let complete: Vec<_> = self.snapshots.iter().filter(|found| found.is_complete()).collect();
        let is_free = |chunk: &EventChunk| {
            complete.iter().all(|other| !(other.first_chunk..=other.last_chunk).contains(&chunk.sequence))
        };
        let is_of_it = |chunk: &&EventChunk| is_free(chunk) && u32_at(&chunk.bytes.load(), 0) == number;
        let chunks: Vec<_> = self.heap_chunks().filter(is_of_it).collect();
        (!snapshot.is_complete() && !chunks.is_empty()).then_some(HeapData {
            process: self,
            snapshot,
            chunks,
            types_from: 0,
        })
    }

    fn heap_chunks(&self) -> impl Iterator<Item = &EventChunk> {
        self.arenas(crate::layout::instrument::HEAP).flat_map(|arena| &arena.chunks)
    }
}

/// The chunks of one snapshot.
#[derive(Debug, Clone)]
pub struct HeapData<'r> {
    process: &'r Process,
    snapshot: &'r HeapSnapshot,
    chunks: Vec<&'r EventChunk>,
    /// Sequence number of the first chunk with types and places.
    types_from: u64,
}

/// Contents of one chunk.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum HeapChunk<'b> {
    /// A run of adjacent objects.
    Objects(ObjectRow<'b>),
    /// Roots.
    Roots(RootRows<'b>),
    /// Pairs of objects; the second lives as long as the first does.
    Dependents(DependentRows<'b>),
    /// Anything else.
    Other,
}

impl<'r> HeapData<'r> {
    /// The snapshot's record with all its facts.
    #[must_use]
    pub fn snapshot(&self) -> &'r HeapSnapshot {
        self.snapshot
    }

    /// Number of missing chunks of the snapshot, whose objects and roots are missing too. For an
    /// incomplete snapshot the number is unknown.
    #[must_use]
    pub fn missing_chunks(&self) -> u64 {
        if !self.snapshot.is_complete() {
            return 0;
        }
        let all = self.snapshot.last_chunk.saturating_sub(self.snapshot.first_chunk).saturating_add(1);
        all.saturating_sub(self.chunks.len() as u64)
    }

    /// The chunks, whose bytes [`chunk`](Self::chunk) parses. They are in writing order; the
    /// objects of a generation are ordered by address.
    #[must_use]
    pub fn chunks(&self) -> &[&'r EventChunk] {
        &self.chunks
    }

    /// Parses the bytes of a chunk of this snapshot.
    #[must_use]
    pub fn chunk<'b>(&self, bytes: &'b [u8]) -> HeapChunk<'b> {
        if u32_at(bytes, 0) != self.snapshot.number {
            return HeapChunk::Other;
        }
        let content = bytes.get(heap::HEAD..).unwrap_or(&[]);
        match u32_at(bytes, 4) {
            heap::OBJECTS => HeapChunk::Objects(ObjectRow { content }),
            heap::ROOTS => HeapChunk::Roots(RootRows { numbers: Varints::new(content), last: 0 }),
            heap::DEPENDENTS => HeapChunk::Dependents(DependentRows { numbers: Varints::new(content), last: (0, 0) }),
            _ => HeapChunk::Other,
        }
    }

    /// The types of objects, by number. Entry 0 and missing numbers are empty types. For a complete
    /// snapshot, this reads only the last chunks.
    #[must_use]
    pub fn types(&self) -> Vec<HeapType> {
        let mut found: Vec<HeapType> = Vec::new();
        self.records(heap::TYPES, |one: HeapType| found.push(one));
        // Damage must not reserve memory for impossible types.
        let most = found.len().saturating_mul(MISSING_FOR_EACH).saturating_add(MISSING);
        found.retain(|one| one.number as usize <= most);
        let last = found.iter().map(|one| one.number as usize).max();
        let mut types = vec![HeapType::default(); last.map_or(0, |last| last + 1)];
        // Each name is stored once, even if several types share it.
        let mut names: HashMap<u32, Arc<str>> = HashMap::new();
        for mut one in found {
            if let Some(entry) = self.process.types.get(one.object_type as usize) {
                one.name = names.entry(one.object_type).or_insert_with(|| entry.name.as_str().into()).clone();
                one.module = entry.module;
            }
            // Types met during the walk get their names later, if at all.
            let at = one.number as usize;
            types[at] = one;
        }
        types
    }

    /// The locations of static fields: each is a reference in an object of the runtime. Reads only
    /// the last chunks.
    #[must_use]
    pub fn places(&self) -> Vec<HeapPlace> {
        let mut places = Vec::new();
        self.records(heap::PLACES, |found| places.push(found));
        places
    }

    /// Boxes of async methods with the awaits at which they wait; empty in recordings from versions
    /// that did not record them. Reads only the last chunks.
    #[must_use]
    pub fn awaits(&self) -> Vec<HeapAwait> {
        let mut awaits = Vec::new();
        self.records(heap::AWAITS, |found| awaits.push(found));
        awaits
    }

    fn records<R: Field>(&self, kind: u32, mut take: impl FnMut(R)) {
        for chunk in self.chunks.iter().filter(|chunk| chunk.sequence >= self.types_from) {
            let bytes = chunk.bytes.load();
            if (u32_at(&bytes, 0), u32_at(&bytes, 4)) != (self.snapshot.number, kind) {
                continue;
            }
            let mut rest = bytes.get(heap::HEAD..).unwrap_or(&[]);
            while let Some(length) = rest.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize) {
                let Some(record) = rest[4..].get(..length) else { break };
                decode(PayloadReader::new(record)).into_iter().for_each(&mut take);
                rest = &rest[4 + length..];
            }
        }
    }
}

/// An object in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapObject<'v> {
    /// Address of the object, which identifies it.
    pub address: u64,
    /// Number of its type.
    pub type_number: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// Heap area that contains the object.
    pub generation: HeapGeneration,
    /// Number of elements of an array, or of characters of a string.
    pub length: Option<u64>,
    /// Hash of the content of a string or a box: equal for equal contents of one type. Hashes of
    /// different snapshots can't be compared.
    pub content: Option<u64>,
    /// Whether the object continues from the previous chunk, which has its earlier references. Such
    /// an object must not be counted again.
    pub goes_on: bool,
    /// The non-null references that the object holds; if the object continues from or in another
    /// chunk, only those in this chunk.
    pub references: &'v [HeapReference],
    /// Number of slots read, including null ones.
    pub slots: u64,
}

/// A reference of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeapReference {
    /// Slot in the object that holds it; [`HeapType::slot`] names the slot.
    pub slot: u64,
    /// Address of the referenced object.
    pub target: u64,
}

/// The objects of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRow<'b> {
    content: &'b [u8],
}

impl ObjectRow<'_> {
    /// Address of the first object. The chunks of a heap can be searched by these addresses.
    #[must_use]
    pub fn address(&self) -> u64 {
        u64_at(self.content, 0)
    }

    /// Visits the objects in the order of their addresses. Returns `None` on invalid data, after
    /// visiting the objects before it. `types` are those of the snapshot.
    pub fn visit(&self, types: &[HeapType], mut visit: impl FnMut(&HeapObject<'_>)) -> Option<()> {
        let mut at = self.address();
        let mut first_slot = u64_at(self.content, 8);
        let generation = HeapGeneration::from_number(u32_at(self.content, 16));
        let mut numbers = Varints::new(self.content.get(heap::OBJECTS_HEAD..)?);
        let mut references = Vec::new();
        while numbers.len() > 0 {
            let type_number = numbers.next_u32()?;
            if type_number == 0 {
                at = at.checked_add(numbers.next()?.checked_mul(8)?)?;
                continue;
            }
            let kind = types.get(type_number as usize).filter(|kind| kind.number == type_number)?;
            let length = if kind.element_bytes > 0 { Some(numbers.next()?) } else { None };
            let content = match kind.content {
                HeapType::NO_CONTENT => None,
                _ => Some(u64_at(numbers.split_off(8)?.bytes(), 0)),
            };
            let slots = kind.slots_of(length.unwrap_or(0));
            references.clear();
            let mut slot = first_slot;
            while slot < slots && numbers.len() > 0 {
                if let Some(distance) = numbers.next()?.checked_sub(1) {
                    let target = at.wrapping_add((unzigzag(distance) as u64) << 3);
                    references.push(HeapReference { slot, target });
                }
                slot += 1;
            }
            let bytes = kind.bytes_of(length.unwrap_or(0));
            visit(&HeapObject {
                address: at,
                type_number,
                bytes,
                generation,
                length,
                content,
                goes_on: first_slot > 0,
                references: &references,
                slots: slot - first_slot.min(slot),
            });
            first_slot = 0;
            at = at.checked_add(bytes)?;
        }
        Some(())
    }
}

/// A root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HeapRoot {
    /// Kind of the root.
    pub kind: RootKind,
    /// Whether the object must not be moved.
    pub is_pinning: bool,
    /// Whether the root points into the object rather than to its beginning.
    pub is_interior: bool,
    /// Address of the object.
    pub object: u64,
    /// Serial number of the thread ([`Thread::id`](crate::model::Thread::id)) whose stack or field
    /// contains the root, 0 if unknown.
    pub thread: u32,
    /// Index of the function ([`Process::functions`]) that has the root as a variable, 0 if
    /// unknown.
    pub function: u32,
}

/// The roots of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct RootRows<'b> {
    numbers: Varints<'b>,
    last: u64,
}

impl Iterator for RootRows<'_> {
    type Item = HeapRoot;

    fn next(&mut self) -> Option<HeapRoot> {
        let kind = RootKind::from_number(self.numbers.next_u32()?);
        let flags = self.numbers.next_u32()?;
        self.last = self.last.wrapping_add(unzigzag(self.numbers.next()?) as u64);
        Some(HeapRoot {
            kind,
            is_pinning: flags & heap::PINNING != 0,
            is_interior: flags & heap::INTERIOR != 0,
            object: self.last,
            thread: self.numbers.next_u32()?,
            function: self.numbers.next_u32()?,
        })
    }
}

/// Pairs of objects in a chunk: a key, and a value that lives as long as the key.
#[derive(Debug, Clone, Copy)]
pub struct DependentRows<'b> {
    numbers: Varints<'b>,
    last: (u64, u64),
}

impl Iterator for DependentRows<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let mut step = |last: u64| Some(last.wrapping_add(unzigzag(self.numbers.next()?) as u64));
        let (key, value) = self.last;
        self.last = (step(key)?, step(value)?);
        Some(self.last)
    }
}

#[cfg(test)]
mod tests;
