//! Hostile recordings: every view and every format comes to an end, with no panic, no hang, and
//! memory within a multiple of the file.

#[path = "common/everything.rs"]
mod everything;

use std::path::Path;
use std::time::{Duration, Instant};

use clrscope_recording::model::{
    CallTreeBuilder, Function, Node, NodeFlags, NodeValues, Process, Recording, Thread, TreeSource,
};
use clrscope_recording::testing::allocator::{self, Counting};
use clrscope_recording::testing::fuzzing::{Target, heap_seed, seeds};
use clrscope_recording::testing::mutate::{lie, mutate};
use clrscope_recording::testing::synthetic::Numbers;
use everything::everything;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory in addition to what the file's size allows: for the pool of threads, and for any
/// question, however short the file.
const CONSTANT: usize = (256 << 10) + COMPRESSOR;
/// Tables of the compressor of `pprof`, which are as large for any file.
const COMPRESSOR: usize = 384 << 10;
/// Nothing of this size may take longer, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(30);

/// Asks everything of the recording in `bytes`, within a multiple of its size; whether there is
/// one.
fn within_bounds(bytes: &[u8], multiple: usize, what: &str) -> bool {
    let started = Instant::now();
    let (is_there, took) = allocator::of_process(|| {
        let read = clrscope_recording::packed::from_bytes(Path::new("hostile.clrs"), bytes);
        read.inspect(everything).is_ok()
    });
    assert!(took <= bytes.len() * multiple + CONSTANT, "{what}: {took} bytes of memory for {}", bytes.len());
    assert!(started.elapsed() < LONGEST, "{what}: {:?} for {} bytes", started.elapsed(), bytes.len());
    is_there
}

/// One test for all, since memory is counted for the whole process.
#[test]
fn every_view_and_format_of_any_recording_ends_in_bounded_memory() {
    // Measured, without the constant: 402, 75 and 262 times, on two cores.
    for (what, multiple, recording) in
        [("a deep tree", 500, tree(1)), ("a flat tree", 120, tree(0)), ("a tree of forks", 300, tree(2))]
    {
        let mut bytes = Vec::new();
        clrscope_recording::pack::write(&recording, &mut bytes).expect("memory takes all");
        drop(recording);
        assert!(within_bounds(&bytes, multiple, what));
    }
    let mut seeds = seeds(Target::OpenPacked).expect("seeds");
    seeds.push(heap_seed().expect("a seed"));
    let mut numbers = Numbers::new(7);
    let mut read = 0;
    for number in 0..300 {
        let mut bytes = lie(&seeds[numbers.below(seeds.len())], &mut numbers);
        if numbers.below(4) == 0 {
            mutate(&mut bytes, &mut numbers);
        }
        // Measured, without the constant: at most 26 times.
        read += usize::from(within_bounds(&bytes, 60, &format!("input {number}")));
    }
    // Most of them get as far as to be asked, or this would test nothing.
    assert!(read > 200, "{read}");
}

/// A tree of 100,000 nodes: with `forks` 0 all below the root, with 1 each below the one before,
/// with 2 two below each.
fn tree(forks: u32) -> Recording {
    let mut builder = CallTreeBuilder::new(NodeValues::default());
    let time = NodeValues { metric: 1_000, cpu_ns: 900 };
    let mut path = Vec::new();
    for number in 1..100_000_u32 {
        let parent = match forks {
            0 => 0,
            1 => number - 1,
            // In preorder: as deep as the number of zeros it ends in says.
            _ => {
                path.truncate(17 - (number.trailing_zeros() as usize).min(17));
                path.last().copied().unwrap_or(0)
            }
        };
        path.push(number);
        let function = number % 50;
        builder.push(Node { parent, function, calls: 3, values: time, flags: NodeFlags::default() });
    }
    let named = |number: u32| Function { name: format!("App.Type{number}::Method"), ..Function::default() };
    let thread = Thread { id: 1, tree: TreeSource::ready(builder.finish()), ..Thread::default() };
    let functions = (0..50).map(named).collect();
    let process = Process { functions, threads: vec![thread], calls: Some(Default::default()), ..Process::default() };
    Recording { processes: vec![process], ..Recording::default() }
}
