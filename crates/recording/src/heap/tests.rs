//! Tests of chunks of the heap: reading returns what was written, whatever the size of objects, and
//! damaged chunks do no harm.

use std::path::Path;

use super::*;
use crate::layout::instrument;
use crate::model::{EventArena, EventBytes, ObjectType, SnapshotState};
use crate::writer::{EventStore, HeapRootRecord, HeapWriter, Keep, ObjectHead};

/// A type with two fields, an array of references, and strings.
fn types() -> Vec<HeapType> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let node = HeapType {
        number: 1,
        object_type: 2,
        name: "Shop.Node".into(),
        module: 5,
        base_bytes: 32,
        fields: names(&["Left", "Right"]),
        ..HeapType::default()
    };
    let array =
        HeapType { number: 2, base_bytes: 24, element_bytes: 8, element_fields: names(&[""]), ..HeapType::default() };
    let text =
        HeapType { number: 3, base_bytes: 22, element_bytes: 2, content: HeapType::STRING, ..HeapType::default() };
    vec![node, array, text]
}

const BASE: u64 = 0x7f00_0000_0000;
/// More slots than a chunk holds.
const MANY: u64 = 300_000;

/// Objects that a visit of all finds: address, type, bytes, length, content, and slot with target
/// of each reference.
type Seen = Vec<(u64, u32, u64, Option<u64>, Option<u64>, Vec<(u64, u64)>)>;

fn write(store: &EventStore) -> (u64, u64, u64) {
    let mut writer = HeapWriter::new(store, 1);
    writer.row(HeapGeneration::Gen2, BASE);
    writer.object(ObjectHead { type_number: 1, bytes: 32, ..ObjectHead::default() });
    writer.slot(BASE + 64);
    writer.slot(0);
    writer.end();
    writer.gap(32);
    writer.object(ObjectHead { type_number: 3, bytes: 32, length: Some(5), content: Some(u64::MAX) });
    writer.end();
    writer.row(HeapGeneration::Large, BASE + 0x100_0000);
    writer.object(ObjectHead { type_number: 2, bytes: 24 + 8 * MANY, length: Some(MANY), content: None });
    for slot in 0..MANY {
        writer.slot(if slot % 3 == 0 { 0 } else { BASE });
    }
    writer.end();
    writer.object(ObjectHead { type_number: 1, bytes: 32, ..ObjectHead::default() });
    writer.slot(BASE + 0x100_0000);
    writer.slot(BASE);
    writer.end();
    for number in 0..100_000 {
        let kind = if number % 2 == 0 { RootKind::WeakHandle } else { RootKind::PinnedHandle };
        writer.root(HeapRootRecord { kind, flags: heap::PINNING, object: BASE + 8 * number, thread: 2, function: 40 });
    }
    writer.dependent(BASE, BASE + 64);
    writer.dependent(BASE + 64, BASE);
    writer.flush_all();
    let tail = writer.chunks().1 + 1;
    writer.types(&types());
    writer.places(&[HeapPlace {
        address: BASE,
        kind: RootKind::Static,
        name: "Shop.Cache.items".to_owned(),
        thread: 0,
    }]);
    writer.awaits(&[HeapAwait { module: 5, token: 0x600_0007, il_offset: 40, boxes: vec![BASE, BASE + 64] }]);
    assert!(writer.has_room());
    let (first, last) = writer.chunks();
    (first, last, tail)
}

/// A process with a snapshot in memory, through the segment of a directory.
fn process(folder: &Path) -> Process {
    let path = folder.join("events-heap.seg");
    let store = EventStore::create(&path, 1 << 30, Keep::First).expect("a store");
    let chunks = write(&store);
    let node = ObjectType { name: "Shop.Node".to_owned(), module: 5 };
    let types = vec![ObjectType::default(), ObjectType::default(), node];
    Process { types, ..of_segment(&path, SnapshotState::Complete, chunks) }
}

/// A process with the chunks of a segment and one snapshot: its first and last chunk, and the first
/// behind objects.
fn of_segment(path: &Path, state: SnapshotState, chunks: (u64, u64, u64)) -> Process {
    let (first_chunk, last_chunk, tail_chunk) = chunks;
    let snapshot = HeapSnapshot { number: 1, state, first_chunk, last_chunk, tail_chunk, ..HeapSnapshot::default() };
    let file = std::fs::read(path).expect("the segment");
    let mut chunks = Vec::new();
    let mut at = crate::layout::HEADER_BYTES;
    while u32_at(&file, at + crate::layout::chunk::BYTES) > 0 {
        let used = u32_at(&file, at + crate::layout::chunk::USED) as usize;
        let from = at + crate::layout::chunk::HEAD;
        let sequence = u64_at(&file, at + crate::layout::chunk::SEQUENCE);
        let bytes = EventBytes::from(file[from..from + used].to_vec());
        chunks.push(EventChunk { thread: u32::MAX, sequence, bytes });
        at += u32_at(&file, at + crate::layout::chunk::BYTES) as usize;
    }
    let arena = EventArena { instrument: instrument::HEAP.to_owned(), chunks };
    Process { snapshots: vec![snapshot], events: vec![arena], ..Process::default() }
}

fn objects(data: &HeapData<'_>, types: &[HeapType]) -> Seen {
    let mut seen = Seen::new();
    for chunk in data.chunks() {
        let bytes = chunk.bytes.load();
        let HeapChunk::Objects(row) = data.chunk(&bytes) else { continue };
        let visited = row.visit(types, |object| {
            let references = object.references.iter().map(|reference| (reference.slot, reference.target));
            match seen.last_mut().filter(|_| object.goes_on) {
                Some(last) => last.5.extend(references),
                None => seen.push((
                    object.address,
                    object.type_number,
                    object.bytes,
                    object.length,
                    object.content,
                    references.collect(),
                )),
            }
        });
        assert_eq!(visited, Some(()));
    }
    seen
}

#[test]
fn objects_references_and_roots_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = process(folder.path());
    let data = process.heap(1).expect("the snapshot");
    assert_eq!(data.missing_chunks(), 0);
    assert!(data.chunks().len() > 6, "large arrays take several chunks");
    let known = data.types();
    assert_eq!(known[1..], types());
    assert_eq!(data.places()[0].name, "Shop.Cache.items");
    let waiting = HeapAwait { module: 5, token: 0x600_0007, il_offset: 40, boxes: vec![BASE, BASE + 64] };
    assert_eq!(data.awaits(), [waiting]);
    let large = BASE + 0x100_0000;
    let elements = (0..MANY).filter(|slot| slot % 3 != 0).map(|slot| (slot, BASE)).collect();
    let expected = vec![
        (BASE, 1, 32, None, None, vec![(0, BASE + 64)]),
        (BASE + 64, 3, 32, Some(5), Some(u64::MAX), vec![]),
        (large, 2, 24 + 8 * MANY, Some(MANY), None, elements),
        (large + 24 + 8 * MANY, 1, 32, None, None, vec![(0, large), (1, BASE)]),
    ];
    assert!(objects(&data, &known) == expected, "objects differ");
    let (mut roots, mut pairs) = (Vec::new(), Vec::new());
    for chunk in data.chunks() {
        match data.chunk(&chunk.bytes.load()) {
            HeapChunk::Roots(rows) => roots.extend(rows),
            HeapChunk::Dependents(rows) => pairs.extend(rows),
            _ => {}
        }
    }
    assert_eq!(roots.len(), 100_000);
    assert!((0..).zip(&roots).all(|(number, root)| root.object == BASE + 8 * number && root.is_pinning));
    assert!((roots[0].kind, roots[1].kind) == (RootKind::WeakHandle, RootKind::PinnedHandle));
    assert!(!roots[0].kind.holds() && (roots[0].thread, roots[0].function, roots[0].is_interior) == (2, 40, false));
    assert_eq!(pairs, [(BASE, BASE + 64), (BASE + 64, BASE)]);
}

#[test]
fn a_snapshot_that_is_not_complete_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = process(folder.path());
    assert!(process.heap(2).is_none());
    process.snapshots[0].state = SnapshotState::Begun;
    assert!(process.heap(1).is_none());
}

#[test]
fn damaged_chunks_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = process(folder.path());
    let data = process.heap(1).expect("the snapshot");
    let known = data.types();
    let small = data.chunks().iter().map(|chunk| chunk.bytes.load().into_owned()).min_by_key(Vec::len);
    let first = data.chunks()[0].bytes.load();
    for bytes in [small.expect("a chunk"), first[..first.len().min(200)].to_vec()] {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let mut slots = 0;
                match data.chunk(&changed) {
                    HeapChunk::Objects(row) => drop(row.visit(&known, |object| slots += object.references.len())),
                    HeapChunk::Roots(rows) => slots += rows.count(),
                    HeapChunk::Dependents(rows) => slots += rows.count(),
                    HeapChunk::Other => {}
                }
                assert!(slots <= bytes.len(), "{slots} of {} bytes", bytes.len());
            }
        }
    }
}

#[test]
fn numbers_of_types_that_cannot_be_take_no_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events-heap.seg");
    let store = EventStore::create(&path, 1 << 30, Keep::First).expect("a store");
    let mut writer = HeapWriter::new(&store, 1);
    let numbers = (0..300).map(|at| 1 + at * 60_000);
    let hostile: Vec<HeapType> = numbers.map(|number| HeapType { number, ..HeapType::default() }).collect();
    writer.types(&hostile);
    let process = of_segment(&path, SnapshotState::Complete, (1, writer.chunks().1, 1));
    let types = process.heap(1).expect("the snapshot").types();
    assert!(types.len() <= 300 * MISSING_FOR_EACH + MISSING + 1, "{}", types.len());
    assert_eq!(types[1].number, 1);
}

#[test]
fn one_long_name_of_many_types_is_there_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = process(folder.path());
    process.types[2].name = "N".repeat(1 << 20);
    let (one, other) = (process.heap(1).expect("the snapshot").types(), 1);
    assert_eq!((one[1].name.len(), one[other].module), (1 << 20, 5));
    let path = folder.path().join("again.seg");
    let store = EventStore::create(&path, 1 << 30, Keep::First).expect("a store");
    let mut writer = HeapWriter::new(&store, 1);
    let same: Vec<HeapType> =
        (1..500).map(|number| HeapType { number, object_type: 2, ..HeapType::default() }).collect();
    writer.types(&same);
    let again = of_segment(&path, SnapshotState::Complete, (1, writer.chunks().1, 1));
    let again = Process { types: process.types, ..again };
    let types = again.heap(1).expect("the snapshot").types();
    assert!(types[1..].iter().all(|found| Arc::ptr_eq(&found.name, &types[1].name)));
}

#[test]
fn a_snapshot_that_was_cut_is_read_as_far_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events-heap.seg");
    let store = EventStore::create(&path, 1 << 30, Keep::First).expect("a store");
    let mut first = HeapWriter::new(&store, 1);
    first.root(HeapRootRecord::default());
    first.flush_all();
    let mut writer = HeapWriter::new(&store, 2);
    writer.row(HeapGeneration::Gen2, BASE);
    let early = HeapType { name: "".into(), module: 0, object_type: 0, ..types()[0].clone() };
    for _ in 0..120_000 {
        writer.met_type(&early);
        writer.object(ObjectHead { type_number: 1, bytes: 32, ..ObjectHead::default() });
        writer.slot(BASE);
        writer.slot(0);
        writer.end();
    }
    // The rest is in the writer's memory when the program is killed.
    drop(writer);
    let mut process = of_segment(&path, SnapshotState::Complete, (1, 1, 1));
    process.snapshots.push(HeapSnapshot { number: 2, ..HeapSnapshot::default() });
    assert!(process.heap(2).is_none() && process.cut_heap(1).is_none() && process.cut_heap(3).is_none());
    let data = process.cut_heap(2).expect("what was written");
    let known = data.types();
    assert_eq!((known[1].number, known[1].base_bytes, data.missing_chunks()), (1, 32, 0));
    let seen = objects(&data, &known);
    assert!((10_000..120_000).contains(&seen.len()), "{}", seen.len());
    assert_eq!((seen[0].0, &seen[0].5), (BASE, &vec![(0, BASE)]));
}
