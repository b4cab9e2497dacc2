//! Chunks of events: what threads store is read in order, whatever state it is in.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use clrscope_recording::events::{Kind, Records, ShortFields, ShortRecord};
use clrscope_recording::layout::{HEADER_BYTES, chunk};
use clrscope_recording::model::{EventChunk, Recording};
use clrscope_recording::writer::{EventStore, Keep, ProcessRecord, ProcessWriter, monotonic_ns};

fn writer(folder: &Path) -> ProcessWriter {
    let process = ProcessRecord { pid: 5, mono_ns: monotonic_ns(), ..ProcessRecord::default() };
    ProcessWriter::create(folder, &process).expect("a process")
}

fn read(folder: &Path) -> Recording {
    clrscope_recording::open(folder).expect("a recording")
}

fn chunks(recording: &Recording) -> &[EventChunk] {
    &recording.processes[0].events[0].chunks
}

fn scratch() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    (folder, name)
}

#[test]
fn chunks_of_several_threads_are_read_while_they_are_written_and_packed_afterwards() {
    let (folder, name) = scratch();
    let writer = writer(&name);
    let store = writer.create_events("events", 1 << 20, Keep::First).expect("a store");
    let [one, two] = [1, 2].map(|_| writer.threads().allocate_record(monotonic_ns()).expect("a record").serial());
    let first = store.allocate_chunk(one, 4096, 10).expect("room");
    let second = store.allocate_chunk(two, 9000, 20).expect("room");
    assert!(second.append(b"second", 21));
    assert!(first.append(b"fir", 22) && first.append(b"st", 23));
    assert_eq!((first.room(), second.room()), (4096 - 64, 12288 - 64));
    let third = store.allocate_chunk(0, 4096, 30).expect("room");
    assert!(third.append(b"nobody", 31));
    let recording = read(&name);
    assert_eq!(recording.problems, []);
    assert_eq!(recording.processes[0].events[0].instrument, "events");
    let expected = [(0, 1, &b"first"[..]), (1, 2, b"second"), (u32::MAX, 3, b"nobody")];
    let found = |r: &Recording| -> Vec<_> {
        chunks(r).iter().map(|c| (c.thread, c.sequence, c.bytes.load().to_vec())).collect()
    };
    assert_eq!(found(&recording), expected.map(|(thread, sequence, bytes)| (thread, sequence, bytes.to_vec())));
    let file = folder.path().join("x.clrs");
    clrscope_recording::pack::pack(&name, &file, &mut |_| ()).expect("a file");
    assert_eq!(found(&clrscope_recording::open(&file).expect("a recording")), found(&recording));
}

#[test]
fn short_records_follow_another_and_stay_in_their_room() {
    let (_folder, name) = scratch();
    let store = writer(&name).create_events("events", 64 << 10, Keep::First).expect("a store");
    let chunk = store.allocate_chunk(1, 4096, 0).expect("room");
    let short = ShortRecord::new(Kind::EXCEPTION_CATCHER_LEAVE, ShortFields::NONE);
    assert!(!chunk.append_short(short), "a chunk's first record says when it was");
    assert!(chunk.append(&[3, Kind::EXCEPTION_THROWN.0, 0x81, 0x01], 1));
    while chunk.append_short(short) {}
    assert!((chunk.room() - 15..=chunk.room()).contains(&chunk.used()), "{} bytes", chunk.used());
    let recording = read(&name);
    let bytes = chunks(&recording)[0].bytes.load();
    let records: Vec<_> = Records::new(&bytes).collect();
    assert_eq!(records.len(), 1 + (chunk.used() - 4) / short.length);
    assert!(records.iter().all(|record| record.time_ns == 129));
    assert!(records[1..].iter().all(|record| record.kind == Kind::EXCEPTION_CATCHER_LEAVE));
}

#[test]
fn a_chunk_takes_no_more_than_its_room_and_a_store_no_more_than_its_limit() {
    let (_folder, name) = scratch();
    let store = writer(&name).create_events("events", 64 << 10, Keep::First).expect("a store");
    let chunk = store.allocate_chunk(1, 4096, 0).expect("room");
    assert!(chunk.append(&vec![1; chunk.room()], 1));
    assert!(!chunk.append(b"x", 2));
    let more = (0..100).map_while(|_| store.allocate_chunk(1, 4096, 0)).count();
    assert_eq!((more, store.is_full()), (15, true));
    store.finish(chunk);
    assert_eq!(store.allocate_chunk(1, 4096, 0), None, "the first events are to be kept");
}

#[test]
fn a_ring_uses_its_oldest_finished_chunk_again() {
    let (_folder, name) = scratch();
    let store = writer(&name).create_events("flow", 64 << 10, Keep::Last).expect("a store");
    let mut lost = Vec::new();
    for number in 0..40_u8 {
        let oldest =
            || store.take_oldest(0, 0, |chunk| lost.push((chunk.u64(chunk::SEQUENCE).load(Relaxed), chunk.used())));
        let chunk = store.allocate_chunk(0, 16 << 10, 0).or_else(oldest).expect("room");
        assert_eq!(chunk.used(), 0);
        assert!(chunk.append(&[number; 100], 1));
        store.finish(chunk);
    }
    assert_eq!(lost, (1..=36).map(|sequence| (sequence, 100)).collect::<Vec<_>>());
    let recording = read(&name);
    let found: Vec<_> =
        chunks(&recording).iter().map(|c| (c.sequence, c.bytes.load()[0], c.bytes.load().len())).collect();
    assert_eq!(found, [(37, 36, 100), (38, 37, 100), (39, 38, 100), (40, 39, 100)]);
}

#[test]
fn threads_that_outrun_the_disk_get_nothing_until_the_helper_has_been_there() {
    let (_folder, name) = scratch();
    let store = writer(&name).create_events("events", 1 << 30, Keep::First).expect("a store");
    let took = (0..100_000).map_while(|_| store.allocate_chunk(1, 1 << 20, 0)).count();
    // Backed at the start: two megabytes less the header.
    assert_eq!((took, store.is_full()), (1, false));
    store.keep_ahead().expect("space");
    assert!(store.allocate_chunk(1, 1 << 20, 0).is_some());
}

#[test]
fn a_chunk_that_was_handed_out_but_not_begun_hides_nothing() {
    let (_folder, name) = scratch();
    let store = writer(&name).create_events("events", 1 << 20, Keep::First).expect("a store");
    let lost = store.allocate_chunk(1, 8192, 0).expect("room");
    let kept = store.allocate_chunk(1, 4096, 0).expect("room");
    assert!(kept.append(b"kept", 1));
    // As a thread leaves it that was killed right after it took the chunk.
    for field in [chunk::FORMAT, chunk::BYTES, chunk::THREAD] {
        lost.u32(field).store(0, std::sync::atomic::Ordering::Relaxed);
    }
    lost.u64(chunk::SEQUENCE).store(0, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(chunks(&read(&name)).iter().map(|c| c.bytes.load().to_vec()).collect::<Vec<_>>(), [b"kept"]);
}

#[test]
fn damaged_heads_end_the_walk_and_are_told() {
    let (_folder, name) = scratch();
    let writer = writer(&name);
    let store = writer.create_events("events", 1 << 20, Keep::First).expect("a store");
    for number in 0..4_u8 {
        assert!(store.allocate_chunk(1, 4096, 0).expect("room").append(&[number; 9], 1));
    }
    let path = writer.folder().join("events-events.seg");
    let patch = |at: usize, value: u32| {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
        file.write_all_at(&value.to_le_bytes(), (HEADER_BYTES + at) as u64).expect("written");
    };
    // More bytes than the chunk has, and than the file has.
    patch(4096 + chunk::USED, u32::MAX);
    let recording = read(&name);
    assert_eq!(chunks(&recording).iter().map(|c| c.bytes.load().len()).collect::<Vec<_>>(), [9, 4096 - 64, 9, 9]);
    patch(8192 + chunk::BYTES, 77);
    let recording = read(&name);
    assert_eq!(chunks(&recording).len(), 2);
    assert!(recording.problems[0].what.contains("77 bytes"), "{:?}", recording.problems);
    patch(8192 + chunk::BYTES, 0xFFFF_F000);
    assert_eq!(chunks(&read(&name)).len(), 3);
    patch(chunk::FORMAT, 9);
    assert!(read(&name).problems[0].what.contains("1 chunks of a version"));
}

#[test]
fn threads_store_at_the_same_time_without_losing_anything() {
    let (_folder, name) = scratch();
    let writer = writer(&name);
    let store: EventStore = writer.create_events("events", 8 << 20, Keep::First).expect("a store");
    store.keep_ahead().expect("space");
    std::thread::scope(|scope| {
        for thread in 1..=4_u8 {
            let (store, serial) =
                (&store, writer.threads().allocate_record(monotonic_ns()).expect("a record").serial());
            scope.spawn(move || {
                let mut chunk = store.allocate_chunk(serial, 4096, 0).expect("room");
                for _ in 0..2_000 {
                    if !chunk.append(&[thread; 10], 0) {
                        chunk = store.allocate_chunk(serial, 4096, 0).expect("room");
                        assert!(chunk.append(&[thread; 10], 0));
                    }
                }
            });
        }
    });
    let recording = read(&name);
    for thread in 0..4 {
        let own = chunks(&recording).iter().filter(|c| c.thread == thread);
        assert_eq!(own.map(|c| c.bytes.load().len()).sum::<usize>(), 20_000);
    }
}
