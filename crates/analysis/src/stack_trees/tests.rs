//! The trees and sums against what each event says on its own.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    EventArena, EventChunk, Function, Module, Process, Recording, Sample, StackFrame, StacksBuilder, Thread,
    ThreadState, Tier,
};
use clrscope_recording::testing::synthetic::Numbers;

use super::*;
use crate::catalog::Catalog;
use crate::paths::StackPaths;
use crate::query::{Query, ThreadSelector};
use crate::samples::SAMPLED_CPU;

/// Functions of which every third is of the framework.
const FUNCTIONS: u32 = 9;

fn recording(seed: u64) -> Recording {
    let mut numbers = Numbers::new(seed);
    let mut below = |most: usize| numbers.below(most);
    let mut table = StacksBuilder::default();
    let mut stacks = vec![0, 12_345];
    for _ in 0..40 {
        let frame = |function: usize, offset: usize| StackFrame::Method {
            function: 1 + function as u32,
            il_offset: Some(offset as u32),
            tier: if offset == 0 { Tier::Tier0 } else { Tier::Tier1 },
        };
        let mut frames: Vec<_> = (0..1 + below(7)).map(|_| frame(below(FUNCTIONS as usize - 1), below(2))).collect();
        if below(6) == 0 {
            frames.push(StackFrame::Unknown);
        }
        stacks.push(table.stack(&frames, below(5) == 0));
    }
    let mut chunks = Vec::new();
    for sequence in 1..=4 {
        let samples = (0..30).map(|_| Sample {
            time_ns: below(1_000) as u64,
            weight_ns: below(4) as u64 * 10,
            thread: below(5) as u32,
            stack: stacks[below(stacks.len())],
            count: 1 + below(3) as u32,
            state: if below(7) == 0 { ThreadState::Idle } else { ThreadState::Running },
            ..Sample::default()
        });
        let bytes: Vec<u8> = samples.flat_map(|sample| sample.to_bytes()).collect();
        chunks.push(EventChunk { thread: u32::MAX, sequence, bytes: bytes.into() });
    }
    let module =
        |name: &str, framework| Module { name: name.into(), path: name.into(), framework, ..Module::default() };
    let function = |index: u32| Function {
        name: format!("N.T::F{index}"),
        module: 1 + u32::from(index.is_multiple_of(3)),
        ..Function::default()
    };
    let process = Process {
        pid: 7,
        functions: (0..FUNCTIONS).map(function).collect(),
        modules: vec![Module::default(), module("App", false), module("Lib", true)],
        threads: (1..=3).map(|id| Thread { id, os_id: id, ..Thread::default() }).collect(),
        stacks: std::sync::Arc::new(table.finish()),
        events: vec![EventArena { instrument: instrument::CPU.into(), chunks }],
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

/// Sums of paths, the outermost function first, by thread.
type ByPath = BTreeMap<(u32, Vec<u32>), StackSum>;

fn sums_of_events(recording: &Recording, query: &Query) -> ByPath {
    let process = &recording.processes[0];
    let paths = StackPaths::of(recording, process, query, &SAMPLED_CPU).expect("samples");
    let mut all = ByPath::new();
    let mut path = Vec::new();
    for event in paths.measured.blocks.iter().flat_map(|block| &block.events).map(Event::unpacked) {
        let thread = process.threads.get(event.thread as usize);
        let part = wanted_part(process, query, &event).filter(|_| query.wants_thread_if_known(thread));
        let Some(part) = part else { continue };
        paths.path(event.stack, &mut path);
        path.reverse();
        all.entry((event.thread, path.clone())).or_default().add(part);
    }
    all
}

/// Sums of the paths of a tree that end at a node with something of its own.
fn sums_of_tree(tree: &StackTree) -> BTreeMap<Vec<u32>, StackSum> {
    let calls = tree.to_call_tree();
    let mut path: Vec<(u32, u32)> = Vec::new();
    let mut all = BTreeMap::new();
    for node in 1..calls.len() as u32 {
        let parent = calls.parents()[node as usize];
        while path.pop_if(|last| last.0 != parent).is_some() {}
        path.push((node, calls.functions()[node as usize]));
        let values = calls.values_of(node);
        let sum = StackSum { amount: values.metric, samples: values.cpu_ns };
        let functions: Vec<u32> = path.iter().map(|(_, function)| *function).collect();
        if sum != StackSum::default() {
            assert!(all.insert(functions, sum).is_none(), "a path is one node");
        }
    }
    all
}

fn queries() -> Vec<Query> {
    let some = |since, until| Query { since_ns: Some(since), until_ns: Some(until), ..Query::default() };
    vec![
        Query::default(),
        Query { just_my_code: true, ..Query::default() },
        some(200, 600),
        some(2_000, 3_000),
        Query { threads: vec![ThreadSelector::Id(2)], ..some(100, 900) },
    ]
}

#[test]
fn trees_of_stacks_have_what_each_event_says_of_its_path() {
    for (seed, query) in (0..20).flat_map(|seed| queries().into_iter().map(move |query| (seed, query))) {
        let recording = recording(seed);
        let process = &recording.processes[0];
        let expected = sums_of_events(&recording, &query);
        let measured = Measured::of(process, &SAMPLED_CPU).expect("samples");
        let shape = Shape::of(&recording, process, &query, &SAMPLED_CPU, &measured);
        let wanted = Wanted::new(process, &query);
        let tree = StackTree { amounts: Amounts::new(&measured, &shape, &wanted), shape: Arc::clone(&shape) };
        let mut merged: BTreeMap<Vec<u32>, StackSum> = BTreeMap::new();
        expected.iter().for_each(|((_, path), sum)| merged.entry(path.clone()).or_default().add(*sum));
        assert_eq!(sums_of_tree(&tree), merged, "{seed} {query:?}");
        for (thread, amounts) in (0..).zip(Amounts::by_thread(&measured, &shape, &wanted)) {
            let tree = StackTree { amounts, shape: Arc::clone(&shape) };
            let mine = expected.iter().filter(|((of, _), _)| *of == thread);
            let mine: BTreeMap<_, _> = mine.map(|((_, path), sum)| (path.clone(), *sum)).collect();
            assert_eq!(sums_of_tree(&tree), mine, "{seed} {thread} {query:?}");
        }
        let mut whole = StackSum::default();
        merged.values().for_each(|sum| whole.add(*sum));
        assert_eq!((tree.subtree(0), tree.amounts.whole()), (whole, whole));
        compare_functions(&expected, &FunctionSums::new(&tree, &measured, &wanted, &Catalog::new(process)), process);
    }
}

/// Sums of functions, which have the numbers of their slots here, against those of paths.
fn compare_functions(expected: &ByPath, found: &FunctionSums, process: &Process) {
    for function in 0..FUNCTIONS {
        let (mut own, mut total, mut recursion) = (StackSum::default(), StackSum::default(), 0);
        let mut threads = BTreeSet::new();
        for ((thread, path), sum) in expected {
            let times = path.iter().filter(|on| **on == function).count();
            if path.last() == Some(&function) {
                own.add(*sum);
            }
            if times > 0 {
                total.add(*sum);
                recursion = recursion.max(times);
                threads.insert(thread);
            }
        }
        let sum = &found.functions[function as usize];
        assert_eq!((sum.own, sum.total, sum.max_recursion as usize), (own, total, recursion), "{function}");
        assert_eq!(sum.threads as usize, threads.len(), "{function}");
    }
    for (thread, sum) in (0..).zip(&found.threads) {
        let mine: Vec<_> = expected.iter().filter(|((of, _), _)| *of == thread).collect();
        let deepest = mine.iter().map(|((_, path), _)| path.len()).max().unwrap_or(0);
        let mut all = StackSum::default();
        mine.iter().for_each(|(_, sum)| all.add(**sum));
        assert_eq!((sum.sum, sum.max_depth as usize), (all, deepest), "thread {thread} of {}", process.pid);
    }
}
