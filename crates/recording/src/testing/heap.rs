//! Handmade snapshots of the heap: a few objects whose types have descriptive names.

use crate::codec::encode;
use crate::layout::{heap, instrument};
use crate::model::{
    EventArena, EventBytes, EventChunk, HeapAwait, HeapGeneration, HeapPlace, HeapSnapshot, HeapType, ObjectType,
    Process, RootKind, SnapshotState,
};

/// Address of the first object.
const BASE: u64 = 0x7f00_0000_0000;
/// Bytes between two rows of objects.
const BETWEEN_ROWS: u64 = 1 << 20;
/// Distance of an array's first element from its address.
const ELEMENTS: u64 = 16;

/// Builds a heap. Objects have numbers, in the order in which they are added.
#[derive(Debug, Default)]
pub struct HandmadeHeap {
    types: Vec<HeapType>,
    rows: Vec<HeapGeneration>,
    objects: Vec<Object>,
    roots: Vec<Root>,
    statics: Vec<(u32, u64, String, RootKind, u32)>,
    dependents: Vec<(u32, u32)>,
    /// State machine boxes, each with the module, token and IL offset of the await at which it
    /// waits.
    awaits: Vec<(u32, [u32; 3])>,
}

#[derive(Debug)]
struct Object {
    row: usize,
    address: u64,
    type_number: u32,
    length: Option<u64>,
    content: u64,
    /// The object to which each slot refers.
    slots: Vec<Option<u32>>,
}

#[derive(Debug)]
struct Root {
    kind: RootKind,
    object: u32,
    thread: u32,
    function: u32,
}

impl HandmadeHeap {
    /// Adds a class with references in these fields, whose objects take `bytes` bytes. Returns its
    /// number.
    pub fn class(&mut self, name: &str, bytes: u32, fields: &[&str]) -> u32 {
        self.add_type(HeapType { base_bytes: bytes, fields: names(fields), ..named(name) })
    }

    /// Adds an array class with references in these fields of each element; if the elements are
    /// themselves references, `fields` is one empty name. Returns its number.
    pub fn array(&mut self, name: &str, element_bytes: u32, fields: &[&str]) -> u32 {
        self.add_type(HeapType { base_bytes: 24, element_bytes, element_fields: names(fields), ..named(name) })
    }

    /// Adds a class of strings or of boxed eight-byte values whose contents are recorded. Returns
    /// its number.
    pub fn with_content(&mut self, name: &str, content: u32) -> u32 {
        let (base_bytes, element_bytes) = if content == HeapType::STRING { (22, 2) } else { (24, 0) };
        self.add_type(HeapType { base_bytes, element_bytes, content, ..named(name) })
    }

    /// The class with this number, so that a test can change it: its module, or the object that
    /// keeps it loaded.
    pub fn type_mut(&mut self, number: u32) -> &mut HeapType {
        &mut self.types[number as usize - 1]
    }

    fn add_type(&mut self, mut added: HeapType) -> u32 {
        added.number = self.types.len() as u32 + 1;
        self.types.push(added);
        self.types.len() as u32
    }

    /// Begins a row of objects of this generation. Objects added before the first call are of
    /// generation 2.
    pub fn row(&mut self, generation: HeapGeneration) {
        self.rows.push(generation);
    }

    /// Adds an object of a class; `length` is its number of elements if the class has elements.
    /// Returns its number.
    pub fn object(&mut self, type_number: u32, length: u64) -> u32 {
        if self.rows.is_empty() {
            self.row(HeapGeneration::Gen2);
        }
        let row = self.rows.len() - 1;
        let address = match self.objects.last() {
            None => BASE,
            Some(last) if last.row == row => last.address + self.bytes(last),
            Some(last) => last.address + self.bytes(last) + BETWEEN_ROWS,
        };
        let kind = &self.types[type_number as usize - 1];
        let length = (kind.element_bytes > 0).then_some(length);
        let slots = vec![None; kind.slots_of(length.unwrap_or(0)) as usize];
        self.objects.push(Object { row, address, type_number, length, content: 0, slots });
        self.objects.len() as u32 - 1
    }

    /// Adds an object with a content; objects of one class with equal content numbers have the same
    /// content.
    pub fn object_with(&mut self, type_number: u32, length: u64, content: u64) -> u32 {
        let object = self.object(type_number, length);
        self.objects[object as usize].content = content;
        object
    }

    /// Sets a slot of an object to a reference to another object.
    pub fn refer(&mut self, from: u32, slot: u64, to: u32) {
        self.objects[from as usize].slots[slot as usize] = Some(to);
    }

    /// Adds a root that holds an object; `thread` and `function` are 0 for none.
    pub fn root(&mut self, kind: RootKind, object: u32, thread: u32, function: u32) {
        self.roots.push(Root { kind, object, thread, function });
    }

    /// Makes an element of an array a static field; if `thread` is not 0, a thread-static field of
    /// that thread.
    pub fn static_field(&mut self, array: u32, element: u64, name: &str, thread: u32) {
        let kind = if thread == 0 { RootKind::Static } else { RootKind::ThreadStatic };
        self.statics.push((array, element, name.to_owned(), kind, thread));
    }

    /// Adds a dependent handle: the object `value` lives as long as `key`.
    pub fn dependent(&mut self, key: u32, value: u32) {
        self.dependents.push((key, value));
    }

    /// Makes a state machine box wait at an await, given by module, token and IL offset.
    pub fn awaits_at(&mut self, boxed: u32, module: u32, token: u32, il_offset: u32) {
        self.awaits.push((boxed, [module, token, il_offset]));
    }

    /// Address of an object.
    #[must_use]
    pub fn address(&self, object: u32) -> u64 {
        self.objects[object as usize].address
    }

    /// Adds the heap to a process as its next snapshot, and returns the snapshot's description.
    pub fn add_to<'p>(&self, process: &'p mut Process) -> &'p mut HeapSnapshot {
        if process.arenas(instrument::HEAP).next().is_none() {
            process.events.push(EventArena { instrument: instrument::HEAP.to_owned(), chunks: Vec::new() });
        }
        let number = process.snapshots.len() as u32 + 1;
        let arena = process.events.iter_mut().find(|arena| arena.instrument == instrument::HEAP);
        let chunks = arena.map(|arena| &mut arena.chunks).expect("made just now");
        let first_chunk = chunks.last().map_or(1, |chunk| chunk.sequence + 1);
        let mut contents = self.rows(number);
        contents.push(self.root_rows(number));
        contents.push(self.pairs(number));
        let tail_chunk = first_chunk + contents.len() as u64;
        let types = self.types.iter().map(|kind| {
            let object_type = number_of(&mut process.types, kind);
            encode(&HeapType { object_type, ..kind.clone() }).bytes().to_vec()
        });
        contents.push(records(number, heap::TYPES, types));
        contents.push(records(number, heap::PLACES, self.places().map(|place| encode(&place).bytes().to_vec())));
        let awaits = self.awaits.iter().map(|(boxed, [module, token, il_offset])| HeapAwait {
            module: *module,
            token: *token,
            il_offset: *il_offset,
            boxes: vec![self.address(*boxed)],
        });
        if !self.awaits.is_empty() {
            contents.push(records(number, heap::AWAITS, awaits.map(|entry| encode(&entry).bytes().to_vec())));
        }
        let last_chunk = first_chunk + contents.len() as u64 - 1;
        chunks.extend((first_chunk..).zip(contents).map(|(sequence, content)| EventChunk {
            thread: u32::MAX,
            sequence,
            bytes: EventBytes::from(content),
        }));
        process.snapshots.push(HeapSnapshot {
            number,
            collected: true,
            state: SnapshotState::Complete,
            objects: self.objects.len() as u64,
            bytes: self.objects.iter().map(|object| self.bytes(object)).sum(),
            references: self.objects.iter().flat_map(|object| &object.slots).flatten().count() as u64,
            roots: self.roots.len() as u64,
            first_chunk,
            last_chunk,
            tail_chunk,
            ..HeapSnapshot::default()
        });
        process.snapshots.last_mut().expect("added just now")
    }

    fn bytes(&self, object: &Object) -> u64 {
        self.types[object.type_number as usize - 1].bytes_of(object.length.unwrap_or(0))
    }

    fn rows(&self, snapshot: u32) -> Vec<Vec<u8>> {
        let row = |(at, generation): (usize, &HeapGeneration)| {
            let objects = || self.objects.iter().filter(move |object| object.row == at);
            let mut bytes = head(snapshot, heap::OBJECTS);
            bytes.extend(objects().next().map_or(0, |object| object.address).to_le_bytes());
            bytes.extend(0_u64.to_le_bytes());
            bytes.extend((*generation as u64).to_le_bytes());
            objects().for_each(|object| self.put_object(&mut bytes, object));
            bytes
        };
        self.rows.iter().enumerate().map(row).collect()
    }

    fn put_object(&self, bytes: &mut Vec<u8>, object: &Object) {
        number(bytes, object.type_number.into());
        object.length.into_iter().for_each(|length| number(bytes, length));
        if self.types[object.type_number as usize - 1].content != HeapType::NO_CONTENT {
            bytes.extend(object.content.to_le_bytes());
        }
        for slot in &object.slots {
            let words = slot.map(|to| (self.address(to).wrapping_sub(object.address) as i64) >> 3);
            number(bytes, words.map_or(0, |words| zigzag(words) + 1));
        }
    }

    fn root_rows(&self, snapshot: u32) -> Vec<u8> {
        let (mut bytes, mut last) = (head(snapshot, heap::ROOTS), 0_u64);
        for root in &self.roots {
            let address = self.address(root.object);
            let distance = address.wrapping_sub(last) as i64;
            last = address;
            [root.kind as u64, 0, zigzag(distance), root.thread.into(), root.function.into()]
                .into_iter()
                .for_each(|value| number(&mut bytes, value));
        }
        bytes
    }

    fn pairs(&self, snapshot: u32) -> Vec<u8> {
        let (mut bytes, mut last) = (head(snapshot, heap::DEPENDENTS), (0, 0));
        for &(key, value) in &self.dependents {
            let pair = (self.address(key), self.address(value));
            number(&mut bytes, zigzag(pair.0.wrapping_sub(last.0) as i64));
            number(&mut bytes, zigzag(pair.1.wrapping_sub(last.1) as i64));
            last = pair;
        }
        bytes
    }

    fn places(&self) -> impl Iterator<Item = HeapPlace> {
        self.statics.iter().map(|(array, element, name, kind, thread)| HeapPlace {
            address: self.address(*array) + ELEMENTS + 8 * element,
            kind: *kind,
            name: name.clone(),
            thread: *thread,
        })
    }
}

/// Number of a type in the dictionary of a process.
fn number_of(types: &mut Vec<ObjectType>, kind: &HeapType) -> u32 {
    if types.is_empty() {
        types.push(ObjectType::default());
    }
    let wanted = ObjectType { name: kind.name.to_string(), module: kind.module };
    let known = types.iter().position(|known| known.name == wanted.name && known.module == wanted.module);
    known.unwrap_or_else(|| {
        types.push(wanted);
        types.len() - 1
    }) as u32
}

/// Objects per chunk of a large heap.
const IN_CHUNK: u64 = 10_000;
/// Bytes per object of a large heap.
const NODE: u32 = 40;

/// A process with a snapshot of this many objects. Each object has three references: to the next
/// object, to one of the first few objects of a tree, and to an arbitrary object. A static field
/// holds the first object, and a stack holds every thousandth one.
#[must_use]
pub fn large_heap(objects: u64) -> Process {
    let mut process = Process::default();
    let mut few = HandmadeHeap::default();
    let statics = few.array("object[]", 8, &[""]);
    let node = few.class("Made.Up.Node", NODE, &["Next", "Parent", "Other"]);
    let leaf = few.class("Made.Up.Leaf", NODE, &["Next", "Parent", "Other"]);
    let (of_statics, first) = (few.object(statics, 1), few.object(node, 0));
    few.refer(of_statics, 0, first);
    few.static_field(of_statics, 0, "Made.Up.Program.first", 0);
    few.root(RootKind::PinnedHandle, of_statics, 0, 0);
    let from = few.address(first);
    few.add_to(&mut process);
    // The first node begins the large rows; the row made by hand keeps the array in front alone.
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let address = |at: u64| from + at * u64::from(NODE);
    let slot = |bytes: &mut Vec<u8>, own: u64, target: u64| {
        number(bytes, zigzag((address(target).wrapping_sub(address(own)) as i64) >> 3) + 1);
    };
    let mut contents = Vec::new();
    for begin in (1..objects).step_by(IN_CHUNK as usize) {
        let mut bytes = head(1, heap::OBJECTS);
        bytes.extend(address(begin).to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend((HeapGeneration::Gen2 as u64).to_le_bytes());
        for at in begin..objects.min(begin + IN_CHUNK) {
            number(&mut bytes, if at % 3 == 0 { leaf.into() } else { node.into() });
            slot(&mut bytes, at, if at + 1 < objects { at + 1 } else { 0 });
            slot(&mut bytes, at, at / 8);
            slot(&mut bytes, at, random() % objects);
        }
        contents.push(bytes);
    }
    let mut roots = head(1, heap::ROOTS);
    for at in (0..objects).step_by(1_000) {
        let distance = if at == 0 { address(0) } else { 1_000 * u64::from(NODE) };
        [RootKind::Stack as u64, 0, zigzag(distance as i64), 0, 0]
            .into_iter()
            .for_each(|value| number(&mut roots, value));
    }
    contents.push(roots);
    let chunks = &mut process.events[0].chunks;
    let more = contents.len() as u64;
    // Types and places come last.
    let tail = process.snapshots[0].tail_chunk;
    chunks.iter_mut().filter(|chunk| chunk.sequence >= tail).for_each(|chunk| chunk.sequence += more);
    chunks.extend((tail..).zip(contents).map(|(sequence, content)| EventChunk {
        thread: u32::MAX,
        sequence,
        bytes: EventBytes::from(content),
    }));
    chunks.sort_by_key(|chunk| chunk.sequence);
    let snapshot = &mut process.snapshots[0];
    snapshot.tail_chunk += more;
    snapshot.last_chunk += more;
    snapshot.objects += objects - 1;
    process
}

fn named(name: &str) -> HeapType {
    HeapType { name: name.into(), ..HeapType::default() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn head(snapshot: u32, kind: u32) -> Vec<u8> {
    [snapshot.to_le_bytes(), kind.to_le_bytes()].concat()
}

fn records(snapshot: u32, kind: u32, records: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = head(snapshot, kind);
    for record in records {
        bytes.extend((record.len() as u32).to_le_bytes());
        bytes.extend(record);
    }
    bytes
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
