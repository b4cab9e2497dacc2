//! Round trip: the reader finds everything that the writer stores in mapped segments, also while
//! the writer still has them open.

use std::path::Path;
use std::sync::atomic::Ordering;

use clrscope_contract::labels::Label;
use clrscope_recording::OpenError;
use clrscope_recording::layout::{VERSION, block, function, header, thread};
use clrscope_recording::model::{
    CallsInfo, Clock, EntryAssembly, Exit, Function, FunctionKind, Identity, LossReason, Module, Recording, ThreadRole,
};
use clrscope_recording::writer::{Arena, ProcessRecord, ProcessWriter, RunWriter, ThreadRecord, is_over, monotonic_ns};

fn process(pid: u32) -> ProcessRecord {
    ProcessRecord {
        pid,
        parent_pid: 1,
        command: vec!["dotnet".into(), "app.dll".into()],
        runtime: ".NET 8.0.33".into(),
        processors: 2,
        // A process that gave its last sign of life long ago would count as killed.
        mono_ns: monotonic_ns(),
        unix_ns: std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64),
        ticks: 100,
        identity: Identity {
            id: format!("id of {pid}"),
            host: "web-3".into(),
            container: String::new(),
            labels: vec![Label { key: "service.name".into(), value: "shop".into() }],
        },
    }
}

/// Stores one edge as a hook would.
fn store_edge(arena: &Arena, at: u32, slot: usize, key: u32, child: u32, count: u32) {
    let edge = |field: usize| arena.base().wrapping_add(at as usize + field + slot * 4).cast::<u32>();
    // SAFETY: the test takes `at` from the arena.
    unsafe {
        edge(block::KEYS).write(key);
        edge(block::CHILDREN).write(child);
        edge(block::COUNTS).write(count);
    }
}

/// root -> 40 (3 calls) -> 41 (2^32 + 7 calls, 500 ns)
fn store_tree(writer: &ProcessWriter, arena: &Arena, record: ThreadRecord) {
    let piece = arena.allocate_piece(0).expect("room");
    let at = |n: u32| piece.next + n * 64;
    store_edge(arena, at(0), 0, block::ROOT_KEY, at(1), 0);
    store_edge(arena, at(1), 0, 40, at(2), 3);
    store_edge(arena, at(2), 0, 41, 0, 7);
    assert!(writer.carry_in_hook(block::edge_id(at(2), 0)));
    record.u32(thread::ROOT).store(at(0), Ordering::Relaxed);
    record.u32(thread::BLOCKS).store(3, Ordering::Relaxed);
    record.set_role(ThreadRole::Main);
    let mut times = writer.create_times().expect("times");
    assert!(times.charge(block::edge_id(at(2), 0), 500, 400));
}

fn write(folder: &Path) -> (ProcessWriter, Arena) {
    let writer = ProcessWriter::create(folder, &process(77)).expect("a process");
    writer.instruments("calls", "calls:clock=sampled");
    writer.entry_assembly(&EntryAssembly { name: "App".into(), version: "1.0+abc".into() });
    writer.calls(&CallsInfo { interval_ns: 1_000_000, ..CallsInfo::default() });
    let [name, path, version] = ["App", "/x/App.dll", "1.0.0.0"].map(str::to_owned);
    writer.module(1, Module { name, path, version, ..Module::default() });
    for (index, name) in [(40, "A.B::Main"), (41, "A.B::Work")] {
        let [name, signature, raw_name] = [name; 3].map(str::to_owned);
        writer.function(index, Function { name, signature, raw_name, module: 1, ..Function::default() });
    }
    let arena = writer.create_arena(1 << 20).expect("an arena");
    let record = writer.threads().allocate_record(monotonic_ns()).expect("a record");
    store_tree(&writer, &arena, record);
    writer.state().lose(LossReason::NameUnknown, 2, monotonic_ns());
    writer.state().alive(monotonic_ns(), 900, 123);
    (writer, arena)
}

fn check(recording: &Recording) {
    assert_eq!(recording.problems, []);
    let process = &recording.processes[0];
    assert_eq!((process.pid, process.runtime.as_str(), process.processors), (77, ".NET 8.0.33", 2));
    assert_eq!(process.calls.as_ref().map(|c| c.clock), Some(Clock::Sampled));
    assert_eq!(process.functions[41].name, "A.B::Work");
    assert_eq!(process.functions[function::JIT as usize].kind, FunctionKind::Runtime);
    assert_eq!(process.modules[1].name, "App");
    assert_eq!(process.losses.iter().map(|l| (l.reason, l.count)).collect::<Vec<_>>(), [(LossReason::NameUnknown, 2)]);
    let thread = &process.threads[0];
    assert_eq!((thread.id, thread.role), (1, ThreadRole::Main));
    let tree = thread.tree.load();
    assert_eq!(tree.functions(), [0, 40, 41]);
    assert_eq!(tree.parents(), [0, 0, 1]);
    assert_eq!((tree.calls(1), tree.calls(2)), (3, (1 << 32) + 7));
    assert_eq!((tree.values_of(2).metric, tree.values_of(2).cpu_ns), (500, 400));
}

/// The launcher's identifier is that of the recording, else that of the first process; both forms
/// have the same.
#[test]
fn identity_and_entry_assembly_come_back_from_either_form() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, has_launcher) in [("launched", true), ("alone", false)] {
        let name = folder.path().join(format!("{name}.clrs.d"));
        let run = has_launcher.then(|| RunWriter::create(&name, &["app".into()], "calls", 42).expect("a run"));
        let (writer, _arena) = write(&name);
        let growing = clrscope_recording::open(&name).expect("a recording");
        writer.state().ended();
        drop(run);
        let file = name.with_extension("");
        clrscope_recording::pack::pack(&name, &file, &mut |_| ()).expect("packed");
        let packed = clrscope_recording::open(&file).expect("a recording");
        for recording in [&growing, &packed] {
            let only = &recording.processes[0];
            assert_eq!(only.identity, process(77).identity);
            assert_eq!((only.entry_assembly.name.as_str(), only.entry_assembly.version.as_str()), ("App", "1.0+abc"));
        }
        assert_eq!(growing.run.id, packed.run.id);
        match has_launcher {
            true => assert_eq!(packed.run.id.len(), 36, "a UUID"),
            false => assert_eq!(packed.run.id, "id of 77"),
        }
    }
}

#[test]
fn a_growing_directory_reads_at_any_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let run = RunWriter::create(&name, &["dotnet".into(), "app.dll".into()], "calls", 42).expect("a run");
    let (writer, _arena) = write(&name);
    let recording = clrscope_recording::open(&name).expect("a recording");
    check(&recording);
    assert_eq!(recording.run.exit, None);
    assert!(!recording.processes[0].complete);

    writer.state().ended();
    run.ended(77, Exit::Code(3));
    // The name of the file that does not exist yet finds its directory.
    let recording = clrscope_recording::open(&folder.path().join("x.clrs")).expect("a recording");
    check(&recording);
    assert_eq!(recording.run.exit, Some(Exit::Code(3)));
    assert!(recording.processes[0].complete);
    assert_eq!(recording.run.command, ["dotnet", "app.dll"]);
}

#[test]
fn blocks_that_stand_there_to_measure_something_are_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let _run = RunWriter::create(&name, &["dotnet".into(), "app.dll".into()], "calls", 42).expect("a run");
    let (writer, arena) = write(&name);
    // As the agent leaves them when the program is killed while it measures the calls of
    // `A.B::Main`.
    let record = writer.threads().record(0).expect("a thread");
    let main = record.u32(thread::ROOT).load(Ordering::Relaxed) + 64;
    let piece = arena.allocate_piece(0).expect("room");
    for slot in 0..block::EDGES {
        store_edge(&arena, piece.next, slot, function::PADDING, 0, 0);
    }
    // SAFETY: both blocks are the test's.
    unsafe {
        arena.base().add(piece.next as usize + block::NEXT).cast::<u32>().write(main + 64);
        arena.base().add(main as usize + block::CHILDREN).cast::<u32>().write(piece.next);
    }
    check(&clrscope_recording::open(&name).expect("a recording"));
}

#[test]
fn a_directory_of_another_version_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let _run = RunWriter::create(&name, &["dotnet".into(), "app.dll".into()], "calls", 42).expect("a run");
    drop(write(&name));
    for other in [VERSION - 1, VERSION + 1] {
        for path in clrscope_recording::testing::synthetic::segments(&name).expect("files") {
            let mut bytes = std::fs::read(&path).expect("a segment");
            bytes[header::VERSION] = other as u8;
            std::fs::write(&path, bytes).expect("a segment");
        }
        let refused = clrscope_recording::open(&name).expect_err("it is of another version");
        assert!(matches!(refused, OpenError::Version { found, newest: VERSION, .. } if found == other), "{refused}");
    }
}

/// As the agent chains the blocks of a caller with many callees: the newest, which may have free
/// edges, stands behind the block at which hooks stop.
#[test]
fn blocks_behind_the_mark_for_hooks_are_read_and_free_edges_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let (writer, arena) = write(&name);
    let record = writer.threads().record(0).expect("a thread");
    let main = record.u32(thread::ROOT).load(Ordering::Relaxed) + 64;
    let piece = arena.allocate_piece(0).expect("room");
    let (stop, newest, oldest) = (piece.next, piece.next + 64, piece.next + 128);
    for (at, edges) in [(stop, block::EDGES), (newest, 2), (oldest, block::EDGES)] {
        (0..edges).for_each(|slot| store_edge(&arena, at, slot, function::FIRST, 1, 0));
    }
    record.u32(thread::BLOCKS).fetch_add(3, Ordering::Relaxed);
    let before = clrscope_recording::open(&name).expect("a recording").processes[0].threads[0].tree.load().len();
    // SAFETY: all blocks are the test's.
    unsafe {
        let next = |at: u32, to: u32| arena.base().add(at as usize + block::NEXT).cast::<u32>().write(to);
        next(stop, newest | block::MAPPED);
        next(newest, oldest);
        let child = arena.base().add(main as usize + block::CHILDREN).cast::<u32>();
        next(oldest, child.read());
        child.write(stop);
    }
    let after = clrscope_recording::open(&name).expect("a recording").processes[0].threads[0].tree.load().len();
    assert_eq!(after, before + 2 * block::EDGES + 2, "with all that was there");
}

#[test]
fn what_is_known_of_a_loss_stands_beside_its_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let (writer, _arena) = write(&name);
    writer.state().lose(LossReason::PanicCaught, 3, monotonic_ns());
    writer.loss_detail(LossReason::PanicCaught, "panicked at a.rs:1:2: no");
    // The page with the count may be lost where the log is not.
    writer.loss_detail(LossReason::OddCallback, "JITCompilationFinished twice");
    let losses = &clrscope_recording::open(&name).expect("a recording").processes[0].losses;
    let of = |reason| losses.iter().find(|loss| loss.reason == reason).map(|loss| (loss.count, &loss.details[..]));
    assert_eq!(of(LossReason::PanicCaught), Some((3, &["panicked at a.rs:1:2: no".to_owned()][..])));
    assert_eq!(of(LossReason::OddCallback), Some((1, &["JITCompilationFinished twice".to_owned()][..])));
}

#[test]
fn a_table_of_threads_that_is_behind_says_so_and_catches_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = ProcessWriter::create(&folder.path().join("x.clrs.d"), &process(77)).expect("a process");
    let table = writer.threads();
    let taken = std::iter::from_fn(|| table.allocate_record(monotonic_ns())).count();
    assert_eq!(taken, table.backed());
    assert!(table.allocate_record(monotonic_ns()).is_none() && table.may_grow(), "behind, not full");
    table.keep_ahead();
    assert!(table.backed() > taken && table.allocate_record(monotonic_ns()).is_some());
}

/// The table was full after 65,536 threads, and a program recorded for days had no more of them.
#[test]
fn a_thread_gets_the_record_of_one_that_ended_before_the_time_that_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = ProcessWriter::create(&folder.path().join("x.clrs.d"), &process(77)).expect("a process");
    let table = writer.threads();
    let begin = |at_ns, os_id| {
        let record = table.allocate_record(at_ns).expect("a record");
        record.u32(thread::OS_ID).store(os_id, Ordering::Relaxed);
        record
    };
    let [first, second] = [begin(1, 101), begin(2, 102)];
    for record in [first, second] {
        record.u32(thread::ROOT).store(64 * record.serial(), Ordering::Relaxed);
    }
    first.u64(thread::ENDED).store(10, Ordering::Relaxed);
    table.find_outdated(1_000);
    assert_eq!(begin(1_000, 103).serial(), 3, "nothing is reused where all is kept");
    assert!(!table.reuses_records());
    table.keep_for(500);
    table.find_outdated(510);
    assert_eq!(begin(510, 104).serial(), 4, "it has ended within the time that is kept");
    (0..3).for_each(|_| table.find_outdated(511));
    let again = begin(511, 105);
    assert_eq!((again, again.serial()), (first, thread::MOST as u32 + 1));
    let u32s = [thread::ROOT, thread::ROOT_BEFORE].map(|field| again.u32(field).load(Ordering::Relaxed));
    let u64s = [thread::CREATED, thread::ENDED].map(|field| again.u64(field).load(Ordering::Relaxed));
    assert_eq!((u32s, u64s), ([0, 64], [511, 0]));
    assert_eq!(begin(512, 106).serial(), 5, "each record is given away once");
    assert_eq!(table.find(105), Some(again));
    assert_eq!(second.u32(thread::ROOT).load(Ordering::Relaxed), 128, "it has not ended");

    let mut place = 0;
    let in_order: Vec<u32> = std::iter::from_fn(|| {
        let record = table.begun_at(&mut place)?;
        place += 1;
        Some(record.u32(thread::OS_ID).load(Ordering::Relaxed))
    })
    .collect();
    assert_eq!(in_order, [105, 102, 103, 104, 105, 106]);
}

#[test]
fn a_stop_reaches_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let run = RunWriter::create(&name, &[], "calls", 42).expect("a run");
    let (writer, _arena) = write(&name);
    assert!(!writer.state().stop_requested());
    assert!(!is_over(&name));
    assert_eq!(run.request_stop(), 1);
    assert!(writer.state().stop_requested());
    // Processes that start from now on find that the run is over, also once it is packed and the
    // directory gone.
    assert!(is_over(&name) && is_over(&folder.path().join("gone.clrs.d")));
}

#[test]
fn a_thread_that_claims_its_neighbours_tree_gets_no_more_than_the_arena_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let (writer, arena) = write(&name);
    let piece = arena.allocate_piece(0).expect("room");
    // An edge that is its own child would be walked for ever.
    store_edge(&arena, piece.next, 0, 40, piece.next, 1);
    let record = writer.threads().allocate_record(monotonic_ns()).expect("a record");
    record.u32(thread::ROOT).store(piece.next, Ordering::Relaxed);
    record.u32(thread::BLOCKS).store(u32::MAX, Ordering::Relaxed);
    let recording = clrscope_recording::open(&name).expect("a recording");
    let tree = recording.processes[0].threads[1].tree.load();
    assert!(tree.len() <= (1 << 20) / 64 * 5 + 1, "{}", tree.len());
}

#[test]
fn what_is_no_recording_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = clrscope_recording::open(&folder.path().join("none.clrs")).expect_err("nothing there");
    assert!(missing.to_string().contains("does not exist"), "{missing}");
    let empty = clrscope_recording::open(folder.path()).expect_err("nothing in it");
    assert!(empty.to_string().contains("is not a recording"), "{empty}");
}

/// Killed between the two, a program left a recording that was said to have lost its trees: nothing
/// had been called yet.
#[test]
fn trees_that_nothing_was_written_into_are_not_begun_where_the_log_is_silent() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let _run = RunWriter::create(&name, &["app".into()], "calls", 42).expect("a run");
    let writer = ProcessWriter::create(&name, &process(78)).expect("a process");
    let arena = writer.create_arena(1 << 20).expect("an arena");
    let said = || {
        let recording = clrscope_recording::open(&name).expect("a recording");
        let [problem] = recording.problems.as_slice() else { panic!("{:?}", recording.problems) };
        problem.what.clone()
    };
    assert!(said().starts_with("was not begun"), "{}", said());
    store_tree(&writer, &arena, writer.threads().allocate_record(monotonic_ns()).expect("a place"));
    assert!(said().starts_with("does not say how calls were recorded"), "{}", said());
}

/// A recording that became a file while it was read seemed to lack instruments, or all of its
/// processes.
#[test]
fn a_directory_that_goes_while_it_is_read_is_whole_or_not_there() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("run.clrs.d");
    for round in 0..200 {
        let run = RunWriter::create(&folder, &["dotnet".to_owned()], "calls", 5).expect("a run");
        let writers: Vec<_> =
            (1..8).map(|pid| ProcessWriter::create(&folder, &process(pid)).expect("a process")).collect();
        let reader = std::thread::spawn({
            let folder = folder.clone();
            move || {
                while let Ok(recording) = clrscope_recording::open(&folder) {
                    assert_eq!(
                        (recording.processes.len(), &*recording.run.command),
                        (7, &["dotnet".to_owned()][..]),
                        "{round}"
                    );
                }
            }
        });
        let gone = place.path().join("gone");
        std::fs::rename(&folder, &gone).expect("a new name");
        std::fs::remove_dir_all(&gone).expect("removed");
        reader.join().expect("whole, or nothing");
        drop((run, writers));
    }
}
