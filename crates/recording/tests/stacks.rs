//! The stack table: each stack is stored once, whichever caller asks. The table is read while it
//! grows, after a kill and from a packed file. Recordings made before there was a table read as
//! before.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clrscope_recording::layout::{HEADER_BYTES, stack};
use clrscope_recording::model::{Recording, StackFrame, Stacks};
use clrscope_recording::writer::{ProcessRecord, ProcessWriter, StackTable, monotonic_ns};

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let name = folder.path().join("x.clrs.d");
    (folder, name)
}

fn writer(name: &Path) -> ProcessWriter {
    let process = ProcessRecord { pid: 7, mono_ns: monotonic_ns(), ..ProcessRecord::default() };
    ProcessWriter::create(name, &process).expect("a process")
}

fn read(name: &Path) -> Recording {
    clrscope_recording::open(name).expect("a recording")
}

fn stacks(name: &Path) -> Arc<Stacks> {
    let recording = read(name);
    assert_eq!(recording.problems, []);
    Arc::clone(&recording.processes[0].stacks)
}

fn method(function: u32) -> StackFrame {
    StackFrame::method(function, function.checked_sub(3))
}

fn frames(stacks: &Stacks, number: u32) -> Vec<StackFrame> {
    stacks.frames(number).collect()
}

#[test]
fn a_stack_is_stored_once_and_named_by_its_number_from_then_on() {
    let (folder, name) = scratch();
    let table = writer(&name).create_stacks().expect("a table");
    let native = StackFrame::Native { module: 2, offset: u32::MAX };
    let deep = [native, method(2), method(1), method(9)];
    let number = table.intern(&deep, false).expect("room");
    assert_eq!(table.intern(&deep, false), Some(number));
    let caller = table.intern(&deep[1..], false).expect("room");
    let cut = table.intern(&deep[1..], true).expect("room");
    assert_eq!((table.intern(&[], false), caller == cut), (Some(0), false));
    let found = stacks(&name);
    assert_eq!(found.len(), 4 + 4, "the cut stack shares nothing, the caller's everything");
    let expected = |stacks: &Stacks| {
        assert_eq!((frames(stacks, number), stacks.is_cut(number)), (deep.to_vec(), false));
        assert_eq!((stacks.caller(number), frames(stacks, caller)), (Some(caller), deep[1..].to_vec()));
        assert_eq!((frames(stacks, cut), stacks.is_cut(cut)), (deep[1..].to_vec(), true));
    };
    expected(&found);
    let file = folder.path().join("x.clrs");
    clrscope_recording::pack::pack(&name, &file, &mut |_| ()).expect("a file");
    expected(&stacks(&file));
}

#[test]
fn more_stacks_than_a_section_holds_are_packed_and_found_again() {
    let (folder, name) = scratch();
    let table = writer(&name).create_stacks().expect("a table");
    let number = |at: u32| {
        let frames = [method(at), method(at % 7)];
        table.intern(&frames, false).or_else(|| {
            table.keep_ahead().expect("space");
            table.intern(&frames, false)
        })
    };
    let numbers: Vec<_> = (10..40_000).map(|at| number(at).expect("room")).collect();
    assert!((10..40_000).step_by(997).all(|at| number(at) == Some(numbers[at as usize - 10])), "found again");
    let file = folder.path().join("x.clrs");
    clrscope_recording::pack::pack(&name, &file, &mut |_| ()).expect("a file");
    for stacks in [stacks(&name), stacks(&file)] {
        assert_eq!(stacks.len(), 39_990 + 7);
        assert!((10..).zip(&numbers).all(|(at, &number)| frames(&stacks, number) == [method(at), method(at % 7)]));
    }
}

#[test]
fn threads_that_outrun_the_helper_get_no_number_until_it_has_been_there() {
    let (_folder, name) = scratch();
    let table = writer(&name).create_stacks().expect("a table");
    let in_time = (0..).map_while(|at| table.intern(&[method(at)], false)).count();
    assert!((1..1_000_000).contains(&in_time), "{in_time}");
    assert!(!table.is_full() && !table.is_refused());
    assert_eq!(table.intern(&[method(0)], false), Some(1), "what is there is found all the same");
    table.keep_ahead().expect("space");
    assert!(table.intern(&[method(u32::MAX)], false).is_some());
}

#[test]
fn frames_above_a_stack_make_the_stack_that_all_of_them_make() {
    let (_folder, name) = scratch();
    let table: StackTable = writer(&name).create_stacks().expect("a table");
    let callers = table.intern(&[method(2), method(1)], false).expect("room");
    let mut numbers = vec![77];
    let number = table.intern_above(callers, &[method(4), method(3)], &mut numbers).expect("room");
    let between = table.intern(&[method(3), method(2), method(1)], false).expect("room");
    assert_eq!(Some(number), table.intern(&[method(4), method(3), method(2), method(1)], false));
    assert_eq!(
        (numbers, table.intern_above(callers, &[], &mut Vec::new())),
        (vec![77, between, number], Some(callers))
    );
}

#[test]
fn stacks_of_many_threads_are_whole_whenever_somebody_looks() {
    let (_folder, name) = scratch();
    let table: StackTable = writer(&name).create_stacks().expect("a table");
    let over = AtomicBool::new(false);
    let chain = |seed: u32| -> Vec<StackFrame> { (0..20).map(|depth| method((seed >> depth) & 7)).collect() };
    let snapshots = std::thread::scope(|scope| {
        for thread in 0..3_u32 {
            let (table, over) = (&table, &over);
            scope.spawn(move || {
                // Enough rounds for snapshots while stacks are stored, few enough to keep each
                // snapshot short.
                for round in 0..1_500_u32 {
                    let seed = (round * 3 + thread).wrapping_mul(0x9E37_79B9) >> 12;
                    assert!(table.intern(&chain(seed), false).is_some());
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let mut snapshots = 0;
        let mut before = 0;
        while snapshots < 20 || before == 0 {
            let stacks = stacks(&name);
            assert!(stacks.len() >= before);
            let whole = (1..=stacks.len() as u32).all(|number| {
                let depth = stacks.frames(number).count();
                (1..=20).contains(&depth) && !stacks.frames(number).any(|frame| frame == StackFrame::Unknown)
            });
            assert!(whole, "a node without its callers");
            (snapshots, before) = (snapshots + 1, stacks.len());
        }
        over.store(true, Ordering::Relaxed);
        snapshots
    });
    assert!(snapshots >= 20);
}

#[test]
fn damaged_nodes_are_told_and_cost_no_other_stack() {
    let (_folder, name) = scratch();
    let writer = writer(&name);
    let table = writer.create_stacks().expect("a table");
    let first = table.intern(&[method(2), method(1)], false).expect("room");
    let second = table.intern(&[method(4), method(3)], false).expect("room");
    let path = writer.folder().join("stacks.seg");
    let patch = |number: u32, field: usize, value: u32| {
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
        let at = HEADER_BYTES + number as usize * stack::BYTES + field;
        file.write_all_at(&value.to_le_bytes(), at as u64).expect("written");
    };
    patch(first, stack::PARENT, first);
    let recording = read(&name);
    assert!(recording.problems[0].what.contains("1 frames with callers that can't be"), "{:?}", recording.problems);
    let found = &recording.processes[0].stacks;
    assert_eq!((frames(found, first), frames(found, second)), (vec![method(2)], vec![method(4), method(3)]));
    patch(first, stack::PARENT, 1);
    patch(1, stack::KIND, 0);
    assert_eq!(frames(&stacks(&name), first), [method(2), StackFrame::Unknown], "a node that is lost");
    patch(1, stack::KIND, 99);
    assert_eq!(frames(&stacks(&name), first), [method(2), StackFrame::Unknown], "a kind of a later version");
}
