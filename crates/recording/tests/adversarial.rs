//! Recordings built to do harm, one trick per test.

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clrscope_recording::layout::{HEADER_BYTES, block, thread};
use clrscope_recording::model::{
    CallTreeBuilder, Clock, Function, HookCost, Node, NodeFlags, NodeValues, PairCost, Process, ROOT, Recording,
    StackFrame, StacksBuilder, Thread, TreeSource,
};
use clrscope_recording::testing::allocator::{self, Counting};
use clrscope_recording::testing::fuzzing::load_all;
use clrscope_recording::testing::mutate::rewrite;
use clrscope_recording::testing::synthetic::{Shape, trim, write_directory};
use clrscope_recording::writer::{ProcessRecord, ProcessWriter};
use common::{packed, unpacked};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Kinds of sections, as in the specification.
const FUNCTIONS: u16 = 3;
const THREADS: u16 = 5;
const TREE: u16 = 7;

fn tree_of(nodes: u32, deep: bool, time: NodeValues) -> TreeSource {
    let mut builder = CallTreeBuilder::new(NodeValues::default());
    for number in 1..nodes {
        let parent = if deep { number - 1 } else { ROOT };
        builder.push(Node { parent, function: 1, calls: 1, values: time, flags: NodeFlags::default() });
    }
    TreeSource::ready(builder.finish())
}

fn recording(functions: usize, threads: Vec<TreeSource>) -> Recording {
    let threads = (1..).zip(threads).map(|(id, tree)| Thread { id, tree, ..Thread::default() }).collect();
    let functions = vec![Function::default(); functions];
    Recording { processes: vec![Process { functions, threads, ..Process::default() }], ..Recording::default() }
}

/// Chains of callers without end, each node like the one before.
fn stacks_of(nodes: u32) -> Recording {
    let mut builder = StacksBuilder::default();
    for number in 0..nodes / 100 {
        let frames = vec![StackFrame::Native { module: number, offset: 0 }; 100];
        builder.stack(&frames, false);
    }
    let process = Process { stacks: Arc::new(builder.finish()), ..Process::default() };
    Recording { processes: vec![process], ..Recording::default() }
}

/// The memory it takes to read all of a packed file, in multiples of its size.
fn multiple(bytes: &[u8]) -> (Recording, f64) {
    let started = Instant::now();
    let (recording, memory) = allocator::of_thread(|| {
        let recording = unpacked(bytes).expect("its start is right");
        load_all(&recording);
        recording
    });
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    (recording, memory as f64 / bytes.len() as f64)
}

#[test]
fn content_that_compresses_without_end_takes_a_bounded_multiple() {
    let none = NodeValues::default();
    let some = NodeValues { metric: 1, cpu_ns: 1 };
    // Measured: 26, 10, 36, 50 and 69 times.
    for (what, most, recording) in [
        ("functions without names", 32.0, recording(200_000, Vec::new())),
        ("a table of deep stacks", 16.0, stacks_of(200_000)),
        ("a flat tree", 45.0, recording(1, vec![tree_of(400_000, false, none)])),
        ("a deep tree", 60.0, recording(1, vec![tree_of(400_000, true, none)])),
        ("a tree full of time", 80.0, recording(1, vec![tree_of(400_000, true, some)])),
    ] {
        let (_, multiple) = multiple(&packed(&recording));
        assert!(multiple < most, "{what}: {multiple:.0} times its size");
    }
}

#[test]
fn a_section_that_claims_a_giant_content_is_refused_before_room_is_made() {
    let small = packed(&recording(3, vec![tree_of(10, true, NodeValues::default())]));
    for plain in [1 << 20, 1 << 32, u64::MAX] {
        let bytes = rewrite(&small, &mut |claims, _| claims.plain = plain);
        let (read, memory) = allocator::of_thread(|| unpacked(&bytes).expect("its start is right"));
        assert!(memory < 1 << 20, "{memory}");
        assert!(read.problems.iter().all(|p| p.what.contains("than its size allows")), "{:?}", read.problems);
    }
}

#[test]
fn a_tree_that_claims_more_nodes_than_it_has_bytes_is_refused() {
    let small = packed(&recording(1, vec![tree_of(10, true, NodeValues::default())]));
    let bytes = rewrite(&small, &mut |claims, _| {
        if claims.kind == TREE {
            claims.count = u32::MAX;
        }
    });
    let (read, memory) = allocator::of_thread(|| {
        let read = unpacked(&bytes).expect("its start is right");
        load_all(&read);
        read
    });
    assert!(memory < 1 << 20, "{memory}");
    assert!(read.problems[0].what.contains("more nodes"), "{:?}", read.problems);
}

#[test]
fn a_tree_that_claims_a_few_more_nodes_gives_those_it_has() {
    let small = packed(&recording(1, vec![tree_of(40, true, NodeValues::default())]));
    let bytes = rewrite(&small, &mut |claims, _| {
        if claims.kind == TREE {
            claims.count += 1;
        }
    });
    assert_eq!(load_all(&unpacked(&bytes).expect("its start is right")), 40);
}

#[test]
fn an_index_far_away_makes_no_room_for_what_is_between() {
    let small = packed(&recording(3, vec![tree_of(10, true, NodeValues::default())]));
    for far in [1_000, 1 << 20, u32::MAX] {
        for kind in [FUNCTIONS, THREADS, TREE] {
            let bytes = rewrite(&small, &mut |claims, _| {
                if claims.kind == kind {
                    claims.item = far;
                }
            });
            let (read, memory) = allocator::of_thread(|| unpacked(&bytes).expect("its start is right"));
            assert!(memory < 1 << 20, "{memory}");
            assert!(!read.problems.is_empty(), "kind {kind} at {far} went unnoticed");
        }
        let bytes = rewrite(&small, &mut |claims, _| claims.process = far);
        assert_eq!(unpacked(&bytes).expect("its start is right").processes.len(), 1);
    }
}

#[test]
fn a_file_behind_a_file_adds_nothing() {
    let small = packed(&recording(3, vec![tree_of(1_000, true, NodeValues::default())]));
    let mut twice = small.clone();
    twice.extend_from_slice(&small[16..]);
    let read = unpacked(&twice).expect("its start is right");
    // The second copy's index speaks of places in the first; walking finds both up to the first
    // index.
    assert_eq!((read.processes.len(), load_all(&read)), (1, 1_000));
}

/// A directory whose tree blocks and thread claims are changed by `change`, read to the end.
fn read_changed(clock: Clock, change: impl FnOnce(&mut [u8], &mut [u8])) -> (usize, usize, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let shape = Shape { tree_bytes: 64 << 10, threads: 3, functions: 30, clock, steps_per_look: 9 };
    write_directory(&name, &shape).expect("a directory");
    trim(&name).expect("files to cut");
    let process = fs::read_dir(&name).expect("a folder").flatten().map(|e| e.path()).find(|path| path.is_dir());
    let process = process.expect("a process");
    let read = |file: &str| fs::read(process.join(file)).expect("a segment");
    let (mut tree, mut threads) = (read("tree.seg"), read("threads.seg"));
    change(&mut tree[HEADER_BYTES..], &mut threads[HEADER_BYTES..]);
    let put = |file: &str, bytes: &[u8]| fs::write(process.join(file), bytes).expect("a segment");
    put("tree.seg", &tree);
    put("threads.seg", &threads);
    let started = Instant::now();
    let (nodes, memory) =
        allocator::of_thread(|| load_all(&clrscope_recording::open(Path::new(&name)).expect("a recording")));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    (nodes, memory, tree.len() - HEADER_BYTES)
}

fn claim_everything(threads: &mut [u8]) {
    for record in threads.chunks_exact_mut(thread::BYTES) {
        record[thread::BLOCKS..thread::BLOCKS + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    }
}

/// Link of a block, by its offset.
type Link = fn(u32) -> u32;

/// Fills every block with five edges whose children are all at `child(offset)`, and chains it to
/// `next(offset)`.
fn fill(tree: &mut [u8], child: Link, next: Link) {
    for (number, bytes) in (0_u32..).zip(tree.chunks_exact_mut(block::STRIDE_SAMPLED)) {
        let offset = number * 64;
        for slot in 0..block::EDGES {
            bytes[block::KEYS + slot * 4..][..4].copy_from_slice(&40_u32.to_le_bytes());
            bytes[block::CHILDREN + slot * 4..][..4].copy_from_slice(&child(offset).to_le_bytes());
        }
        bytes[block::NEXT..block::NEXT + 4].copy_from_slice(&next(offset).to_le_bytes());
    }
}

#[test]
fn blocks_that_point_at_themselves_and_each_other_end() {
    let tricks: [(&str, Link, Link); 5] = [
        ("its own child", |at| at, |_| 0),
        ("its own successor", |_| 0, |at| at),
        ("five paths to every next block", |at| at + 64, |_| 0),
        ("back and forth", |at| at ^ 64, |at| at ^ 128),
        ("outside", |at| at.wrapping_mul(64), |at| !at & !31),
    ];
    for clock in [Clock::Sampled, Clock::Tsc] {
        for (what, child, next) in tricks {
            let (nodes, memory, arena) = read_changed(clock, |tree, threads| {
                fill(tree, child, next);
                claim_everything(threads);
            });
            // All threads together get no more blocks than there are.
            assert!(nodes <= arena / 64 * 5 + 3, "{what}: {nodes} nodes in {arena} bytes");
            assert!(memory < arena * 16 + (1 << 20), "{what}: {memory} bytes for {arena}");
        }
    }
}

#[test]
fn a_thread_that_claims_its_neighbours_blocks_leaves_them_none() {
    let (honest, ..) = read_changed(Clock::Sampled, |_, _| ());
    let (greedy, _, arena) = read_changed(Clock::Sampled, |_, threads| claim_everything(threads));
    assert!(greedy <= honest && honest <= arena / 64 * 5 + 3, "{greedy} {honest}");
}

#[test]
fn a_pipe_or_a_device_in_place_of_a_file_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = clrscope_recording::open(Path::new("/dev/zero")).expect_err("a device");
    assert!(refused.to_string().contains("neither a file nor a directory"), "{refused}");
    let pipe = folder.path().join("pipe.clrs");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    assert!(clrscope_recording::open(&pipe).is_err());

    let name = folder.path().join("x.clrs.d");
    write_directory(&name, &Shape { tree_bytes: 8 << 10, functions: 3, ..Shape::default() }).expect("a directory");
    fs::remove_file(name.join("run.log")).expect("a file less");
    let made = std::process::Command::new("mkfifo").arg(name.join("run.log")).status().expect("mkfifo");
    assert!(made.success());
    let read = clrscope_recording::open(&name).expect("the rest");
    assert_eq!(read.problems[0].place, "run.log");
}

#[test]
fn a_million_measured_callers_in_any_order_are_sorted_in_no_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let process = ProcessRecord { pid: 7, mono_ns: 1, ..ProcessRecord::default() };
    let writer = ProcessWriter::create(&name, &process).expect("a process");
    for caller in (0..1_000_000).rev() {
        writer.pair_cost(&PairCost { caller, callee: 1, cost: HookCost::default() });
    }
    writer.pair_cost(&PairCost { caller: 5, callee: 2, cost: HookCost::default() });
    let started = Instant::now();
    let read = clrscope_recording::open(&name).expect("a recording");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let costs = &read.processes[0].calls.as_ref().expect("calls").pair_costs;
    assert!(costs.iter().map(|pair| pair.caller).eq(0..1_000_000));
    assert_eq!((costs[5].callee, costs[6].callee), (2, 1), "the last word about a caller counts");
}

#[test]
fn deep_recursion_in_a_tree_takes_no_stack() {
    let bytes = packed(&recording(1, vec![tree_of(1_000_000, true, NodeValues::default())]));
    let small_stack = std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
        let read = unpacked(&bytes).expect("its start is right");
        load_all(&read)
    });
    assert_eq!(small_stack.expect("a thread").join().expect("no overflow"), 1_000_000);
}
