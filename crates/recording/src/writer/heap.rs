//! Writes snapshots of the heap while the program is suspended: chunk by chunk, with a few buffers
//! of fixed size.

use std::sync::atomic::Ordering;

use super::clock::monotonic_ns;
use super::events::EventStore;
use crate::codec;
use crate::layout::{chunk, heap};
use crate::model::{HeapAwait, HeapGeneration, HeapPlace, HeapType, RootKind};
use crate::varint::zigzag;

/// Maximum bytes of a chunk, except for a chunk with a single long record.
const CHUNK: usize = 256 << 10;
/// Bytes of the longest varint.
const LONGEST: usize = 10;
/// Maximum bytes of an object before its slots.
const OBJECT_MOST: usize = 3 * LONGEST + 8;

/// An object without its references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectHead {
    /// Number of the object's type.
    pub type_number: u32,
    /// Size of the object in bytes, up to the next object.
    pub bytes: u64,
    /// Number of elements, for types that have elements.
    pub length: Option<u64>,
    /// Number of the object's content, for types whose contents are recorded; equal contents have
    /// equal numbers.
    pub content: Option<u64>,
}

/// Writer of one snapshot.
///
/// The writer does not call the runtime, and requests disk space when it needs it. If the disk has
/// no space, [`has_room`](Self::has_room) is false and the writer drops further data.
#[derive(Debug)]
pub struct HeapWriter<'s> {
    store: &'s EventStore,
    snapshot: u32,
    objects: Buffer,
    /// Records of types found so far, written before the objects.
    met: Vec<u8>,
    roots: Buffer,
    dependents: Buffer,
    last_root: u64,
    last_pair: (u64, u64),
    generation: HeapGeneration,
    /// Address of the current object, or of the next one.
    at: u64,
    head: ObjectHead,
    /// Number of slots of the current object so far.
    slots: u64,
    first_chunk: u64,
    last_chunk: u64,
    has_room: bool,
}

impl<'s> HeapWriter<'s> {
    /// A writer of the snapshot with this number into `store`.
    #[must_use]
    pub fn new(store: &'s EventStore, snapshot: u32) -> Self {
        Self {
            store,
            snapshot,
            objects: Buffer::new(),
            met: Vec::new(),
            roots: Buffer::new(),
            dependents: Buffer::new(),
            last_root: 0,
            last_pair: (0, 0),
            generation: HeapGeneration::Gen0,
            at: 0,
            head: ObjectHead::default(),
            slots: 0,
            first_chunk: 0,
            last_chunk: 0,
            has_room: true,
        }
    }

    /// Whether there was room for all data so far.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.has_room
    }

    /// Sequence numbers of the first and the last chunk so far; 0 if there is none.
    #[must_use]
    pub fn chunks(&self) -> (u64, u64) {
        (self.first_chunk, self.last_chunk)
    }

    /// Begins a row of objects at an address.
    pub fn row(&mut self, generation: HeapGeneration, address: u64) {
        self.flush_objects();
        (self.generation, self.at) = (generation, address);
    }

    /// Skips bytes that belong to no object; `bytes` is a multiple of eight.
    pub fn gap(&mut self, bytes: u64) {
        self.make_room_for_object(0);
        self.objects.number(0);
        self.objects.number(bytes / 8);
        self.at = self.at.wrapping_add(bytes);
    }

    /// Writes the object at the current address. Afterwards call [`slot`](Self::slot) for each of
    /// its slots, then [`end`](Self::end).
    #[inline]
    pub fn object(&mut self, head: ObjectHead) {
        self.make_room_for_object(0);
        (self.head, self.slots) = (head, 0);
        self.put_head();
    }

    /// Writes the next slot of the object: the address that it refers to, 0 for a null reference.
    #[inline]
    pub fn slot(&mut self, target: u64) {
        if self.objects.used + LONGEST > CHUNK {
            self.make_room_for_object(self.slots);
            self.put_head();
        }
        self.slots += 1;
        let words = (target.wrapping_sub(self.at) as i64) >> 3;
        self.objects.number(if target == 0 { 0 } else { zigzag(words).wrapping_add(1) });
    }

    /// Ends the object.
    #[inline]
    pub fn end(&mut self) {
        self.at = self.at.wrapping_add(self.head.bytes);
    }

    fn put_head(&mut self) {
        let ObjectHead { type_number, length, content, .. } = self.head;
        self.objects.number(u64::from(type_number));
        if let Some(length) = length {
            self.objects.number(length);
        }
        if let Some(content) = content {
            self.objects.bytes(&content.to_le_bytes());
        }
    }

    /// Makes room in the chunk for an object's head; `slots` slots of the object are written
    /// already.
    #[inline]
    fn make_room_for_object(&mut self, slots: u64) {
        if self.objects.used == 0 || self.objects.used + OBJECT_MOST + LONGEST > CHUNK {
            self.begin_objects(slots);
        }
    }

    #[cold]
    fn begin_objects(&mut self, slots: u64) {
        self.flush_objects();
        self.objects.begin(self.snapshot, heap::OBJECTS);
        self.objects.bytes(&self.at.to_le_bytes());
        self.objects.bytes(&slots.to_le_bytes());
        self.objects.bytes(&(self.generation as u64).to_le_bytes());
    }

    fn flush_objects(&mut self) {
        if !self.met.is_empty() {
            let met = std::mem::take(&mut self.met);
            self.write(&met);
        }
        let buffer = std::mem::take(&mut self.objects);
        self.objects = self.flush(buffer);
    }

    /// Writes a root.
    pub fn root(&mut self, root: HeapRootRecord) {
        if self.roots.used == 0 || self.roots.used + 5 * LONGEST > CHUNK {
            let buffer = std::mem::take(&mut self.roots);
            self.roots = self.flush(buffer);
            self.roots.begin(self.snapshot, heap::ROOTS);
            self.last_root = 0;
        }
        let distance = root.object.wrapping_sub(self.last_root) as i64;
        self.last_root = root.object;
        for number in [root.kind as u64, root.flags.into(), zigzag(distance), root.thread.into(), root.function.into()]
        {
            self.roots.number(number);
        }
    }

    /// Writes a pair of objects: `value` lives as long as `key` does.
    pub fn dependent(&mut self, key: u64, value: u64) {
        if self.dependents.used == 0 || self.dependents.used + 2 * LONGEST > CHUNK {
            let buffer = std::mem::take(&mut self.dependents);
            self.dependents = self.flush(buffer);
            self.dependents.begin(self.snapshot, heap::DEPENDENTS);
            self.last_pair = (0, 0);
        }
        let (last_key, last_value) = self.last_pair;
        self.last_pair = (key, value);
        self.dependents.number(zigzag(key.wrapping_sub(last_key) as i64));
        self.dependents.number(zigzag(value.wrapping_sub(last_value) as i64));
    }

    /// Writes a type that was found while objects are written, before the first object of the type:
    /// this makes the written part of a truncated snapshot readable. If several records have the
    /// same number, the last one is valid.
    pub fn met_type(&mut self, met: &HeapType) {
        if self.met.is_empty() {
            self.met = head(self.snapshot, heap::TYPES);
        }
        push_record(&mut self.met, codec::encode(met).bytes());
    }

    /// Writes types.
    pub fn types<'t>(&mut self, types: impl IntoIterator<Item = &'t HeapType>) {
        self.records(heap::TYPES, types.into_iter().map(|entry| codec::encode(entry).bytes().to_vec()));
    }

    /// Writes places of static fields.
    pub fn places(&mut self, places: &[HeapPlace]) {
        self.records(heap::PLACES, places.iter().map(|entry| codec::encode(entry).bytes().to_vec()));
    }

    /// Writes state machine boxes with the awaits at which they wait. Records should stay well
    /// below the size of a chunk.
    pub fn awaits<'t>(&mut self, awaits: impl IntoIterator<Item = &'t HeapAwait>) {
        self.records(heap::AWAITS, awaits.into_iter().map(|entry| codec::encode(entry).bytes().to_vec()));
    }

    fn records(&mut self, kind: u32, records: impl Iterator<Item = Vec<u8>>) {
        let mut content = head(self.snapshot, kind);
        for record in records {
            push_record(&mut content, &record);
            if content.len() >= CHUNK {
                self.write(&content);
                content = head(self.snapshot, kind);
            }
        }
        if content.len() > heap::HEAD {
            self.write(&content);
        }
    }

    /// Writes out everything so far.
    pub fn flush_all(&mut self) {
        self.flush_objects();
        let (roots, dependents) = (std::mem::take(&mut self.roots), std::mem::take(&mut self.dependents));
        self.roots = self.flush(roots);
        self.dependents = self.flush(dependents);
    }

    /// Writes a buffer and returns it emptied.
    fn flush(&mut self, mut buffer: Buffer) -> Buffer {
        if buffer.used > 0 {
            self.write(&buffer.content[..buffer.used]);
            buffer.used = 0;
        }
        buffer
    }

    fn write(&mut self, content: &[u8]) {
        if !self.has_room {
            return;
        }
        let now = monotonic_ns();
        let bytes = content.len() + chunk::HEAD;
        let taken = self.store.allocate_chunk(0, bytes, now).or_else(|| {
            // A refusal shows in that nothing can be taken.
            let _ = self.store.back(bytes);
            self.store.allocate_chunk(0, bytes, now)
        });
        let written = taken.filter(|chunk| chunk.append(content, now));
        match written {
            Some(chunk) => {
                self.last_chunk = chunk.u64(chunk::SEQUENCE).load(Ordering::Relaxed);
                self.first_chunk = if self.first_chunk == 0 { self.last_chunk } else { self.first_chunk };
            }
            None => self.has_room = false,
        }
    }
}

/// Beginning of a chunk.
fn head(snapshot: u32, kind: u32) -> Vec<u8> {
    [snapshot.to_le_bytes(), kind.to_le_bytes()].concat()
}

fn push_record(content: &mut Vec<u8>, record: &[u8]) {
    content.extend_from_slice(&(record.len() as u32).to_le_bytes());
    content.extend_from_slice(record);
}

/// A root, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeapRootRecord {
    /// Kind of root that holds the object.
    pub kind: RootKind,
    /// Flags of [`layout::heap`](crate::layout::heap).
    pub flags: u32,
    /// Address of the object.
    pub object: u64,
    /// Serial number of the thread, 0 for none.
    pub thread: u32,
    /// Index of the function, 0 for none.
    pub function: u32,
}

/// Bytes of an unfinished chunk; empty until the chunk is begun.
#[derive(Debug, Default)]
struct Buffer {
    content: Vec<u8>,
    used: usize,
}

impl Buffer {
    fn new() -> Self {
        // A little larger than needed, so that one bounds check suffices for any number.
        Self { content: vec![0; CHUNK + 16], used: 0 }
    }

    fn begin(&mut self, snapshot: u32, kind: u32) {
        self.used = 0;
        self.bytes(&snapshot.to_le_bytes());
        self.bytes(&kind.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.content[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    #[inline]
    fn number(&mut self, mut value: u64) {
        let Some(room) = self.content.get_mut(self.used..).and_then(|rest| rest.first_chunk_mut::<16>()) else {
            return;
        };
        let mut length = 0;
        while value >= 0x80 {
            room[length & 15] = value as u8 | 0x80;
            value >>= 7;
            length += 1;
        }
        room[length & 15] = value as u8;
        self.used += length + 1;
    }
}
