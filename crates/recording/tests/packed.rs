//! Everything in the model survives packing; a packed file appears whole or not at all.

mod common;

use std::path::Path;

use clrscope_recording::OpenError;
use clrscope_recording::model::{
    CallTreeBuilder, EventArena, EventChunk, NodeValues, Process, Recording, Thread, TreeSource,
};
use clrscope_recording::pack::{PackError, PackOptions, pack, pack_with};
use common::{assert_same, packed, unpacked};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_recording_comes_back(recording in common::arbitrary::recording()) {
        assert_same(&unpacked(&packed(&recording)).expect("it was just written"), &recording);
    }
}

#[test]
fn what_stands_behind_the_end_of_a_file_is_told() {
    let recording = Recording { processes: vec![Process::default()], ..Recording::default() };
    let one = packed(&recording);
    let both = unpacked(&[one.clone(), one.clone()].concat()).expect("the first of them");
    assert_eq!(both.processes.len(), 1);
    let expected = format!("{} bytes behind its end were not read", one.len());
    assert!(both.problems.iter().any(|problem| problem.what.starts_with(&expected)), "{:?}", both.problems);
}

/// A recording directory made from nothing, with one process.
fn directory(folder: &Path) -> std::path::PathBuf {
    use clrscope_recording::writer::{ProcessRecord, ProcessWriter, RunWriter};
    let name = folder.join("x.clrs.d");
    RunWriter::create(&name, &["app".into()], "calls", 42).expect("a run");
    let process = ProcessRecord { pid: 7, mono_ns: 1_000, ..ProcessRecord::default() };
    let writer = ProcessWriter::create(&name, &process).expect("a process");
    writer.note(1_001, "a remark");
    name
}

#[test]
fn a_directory_is_packed_while_it_is_written() {
    use clrscope_recording::model::Function;
    use clrscope_recording::writer::{Keep, ProcessRecord, ProcessWriter, monotonic_ns};
    use std::sync::atomic::{AtomicBool, Ordering};

    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let process = ProcessRecord { pid: 7, mono_ns: monotonic_ns(), ..ProcessRecord::default() };
    let writer = ProcessWriter::create(&name, &process).expect("a process");
    let store = writer.create_events("flow", 64 << 20, Keep::First).expect("a store");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for index in 32.. {
                let name = format!("Some.Name::Of{index}");
                writer.function(index, Function { signature: name.clone(), name, ..Function::default() });
                store.keep_ahead().expect("space");
                let chunk = store.allocate_chunk(0, 4096, monotonic_ns()).expect("room");
                assert!(chunk.append(&[7; 4000], monotonic_ns()));
                if over.load(Ordering::Relaxed) || index > 4_000 {
                    return;
                }
            }
        });
        let (mut functions, mut chunks) = (0, 0);
        for number in 0..12 {
            let to = folder.path().join(format!("{number}.clrs"));
            let report = pack(&name, &to, &mut |_| ()).expect("a packed file");
            assert_eq!(report.problems, []);
            let read = clrscope_recording::open(&to).expect("a recording");
            assert_eq!(read.problems, []);
            let process = &read.processes[0];
            assert!(process.functions[32.min(functions)..functions].iter().all(|f| !f.name.is_empty()));
            assert!(process.events[0].chunks.iter().all(|chunk| chunk.bytes.load().iter().all(|&byte| byte == 7)));
            assert!(process.functions.len() >= functions && process.events[0].chunks.len() >= chunks);
            (functions, chunks) = (process.functions.len(), process.events[0].chunks.len());
        }
        over.store(true, Ordering::Relaxed);
        assert!(functions > 32 && chunks > 0);
    });
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_is_packed_and_reads_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (directory(folder.path()), folder.path().join("x.clrs"));
    let mut calls = 0;
    let report = pack(&from, &to, &mut |_| calls += 1).expect("a packed file");
    assert_eq!(report.bytes, to.metadata().expect("a file").len());
    assert_eq!((report.processes, report.problems.len()), (1, 0));
    assert!(calls > 0);
    let read = |path: &Path| clrscope_recording::open(path).expect("a recording");
    assert_same(&read(&to), &read(&from));
    assert_eq!(read(&to).processes[0].remarks[0].text, "a remark");
    assert_eq!(names(folder.path()), ["x.clrs", "x.clrs.d"]);
}

#[test]
fn what_can_no_longer_be_read_is_a_problem_and_not_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, again) = (folder.path().join("x.clrs"), folder.path().join("y.clrs"));
    let tree = CallTreeBuilder::new(NodeValues::default()).finish();
    let thread = Thread { id: 1, tree: TreeSource::ready(tree), ..Thread::default() };
    let chunks = vec![EventChunk { thread: 0, sequence: 1, bytes: vec![7; 20_000].into() }];
    let events = vec![EventArena { instrument: "flow".into(), chunks }];
    let process = Process { pid: 7, threads: vec![thread], events, ..Process::default() };
    std::fs::write(&file, packed(&Recording { processes: vec![process], ..Recording::default() })).expect("a file");
    let recording = clrscope_recording::open(&file).expect("a recording");
    assert_eq!(recording.late_problems().count(), 0);

    std::fs::OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(100)).expect("a shorter file");
    let process = &recording.processes[0];
    assert!(process.threads[0].tree.load().is_empty() && process.events[0].chunks[0].bytes.load().is_empty());
    let found: Vec<String> = recording.late_problems().map(|p| format!("{}: {}", p.place, p.what)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("process 0, tree of thread 0, part 0: can't be read any more: "), "{found:?}");
    assert!(found[1].starts_with("process 0, events of instrument 0, chunk 0: can't be read any more: "), "{found:?}");
    // The packer of the rest reports the problems, and the new file names them to its reader.
    let report = clrscope_recording::pack::write(&recording, &mut std::fs::File::create(&again).expect("a file"));
    assert_eq!(report.expect("a packed file").problems.len(), 2);
    assert_eq!(clrscope_recording::open(&again).expect("a recording").problems.len(), 2);
}

#[test]
fn a_file_is_only_replaced_when_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (directory(folder.path()), folder.path().join("x.clrs"));
    std::fs::write(&to, "precious").expect("a file");
    let refused = pack(&from, &to, &mut |_| ()).expect_err("there is one");
    assert!(matches!(refused, PackError::Exists(_)), "{refused}");
    assert_eq!(std::fs::read(&to).expect("a file"), b"precious");
    let options = PackOptions { overwrite: true, ..PackOptions::default() };
    pack_with(&from, &to, options, &mut |_| ()).expect("a packed file");
    assert_same(&clrscope_recording::open(&to).expect("a recording"), &clrscope_recording::open(&from).expect("one"));
    assert_eq!(names(folder.path()), ["x.clrs", "x.clrs.d"]);
}

#[test]
fn a_file_that_appears_while_packing_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (directory(folder.path()), folder.path().join("x.clrs"));
    let refused = pack(&from, &to, &mut |_| std::fs::write(&to, "precious").expect("a file"));
    assert!(matches!(refused, Err(PackError::Exists(_))), "{refused:?}");
    assert_eq!(std::fs::read(&to).expect("a file"), b"precious");
    assert_eq!(names(folder.path()), ["x.clrs", "x.clrs.d"]);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_behind() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device");
    let error = clrscope_recording::pack::write(&Recording::default(), &mut full).expect_err("it is full");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);

    let folder = tempfile::tempdir().expect("a folder");
    let from = directory(folder.path());
    let error = pack(&from, &folder.path().join("none/x.clrs"), &mut |_| ()).expect_err("no such folder");
    assert!(matches!(error, PackError::Write(..)), "{error}");
    assert_eq!(names(folder.path()), ["x.clrs.d"]);
}

#[test]
fn a_directory_of_another_version_is_refused_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = directory(folder.path());
    for path in clrscope_recording::testing::synthetic::segments(&name).expect("files") {
        let mut bytes = std::fs::read(&path).expect("a segment");
        bytes[12] = 3;
        std::fs::write(&path, bytes).expect("a segment");
    }
    let refused = clrscope_recording::open(&name).expect_err("from the future").to_string();
    assert!(refused.contains("made by a newer clrscope: its format is 3, this one reads up to 2"), "{refused}");
}

#[test]
fn another_version_is_told_apart_from_rubbish() {
    let mut bytes = packed(&Recording::default());
    bytes[8] = 2;
    let newer = unpacked(&bytes).expect_err("from the future");
    assert!(matches!(newer, OpenError::Version { found: 2, newest: 1, .. }), "{newer}");
    assert!(newer.to_string().contains("made by a newer clrscope"), "{newer}");
    bytes[0] = b'X';
    let rubbish = unpacked(&bytes).expect_err("rubbish");
    assert!(rubbish.to_string().contains("is not a recording"), "{rubbish}");
}
