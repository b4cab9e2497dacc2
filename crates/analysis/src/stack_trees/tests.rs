//! The trees and sums against what each event says on its own.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    EventArena, EventChunk, Function, FunctionKind, Module, Process, Recording, Sample, StackFrame, StacksBuilder,
    Thread, ThreadState, Tier,
};
use clrscope_recording::testing::many::Many;
use clrscope_recording::testing::synthetic::Numbers;

use super::*;
use crate::catalog::Catalog;
use crate::columns::Columns;
use crate::edges::edges;
use crate::forest::{Forest, PrunedPaths, TreeNode, TreeOptions};
use crate::metric::Amount;
use crate::metric_events::{Block, Event};
use crate::owners::{OwnerSums, Owners};
use crate::paths::{self, PathTree, Paths, StackPaths, ThreadPaths};
use crate::query::{NativeCode, Query, ThreadSelector};
use crate::samples::{FoldedFunctions, NO_CALLER, SAMPLED_CPU};
use crate::tiers::TierSums;

/// Functions; every third belongs to the framework. The last but one and the one before are native
/// code without names, and the last stands for their library.
const FUNCTIONS: u32 = 12;
const NAMELESS: std::ops::Range<u32> = 9..11;

fn recording(seed: u64) -> Recording {
    let mut numbers = Numbers::new(seed);
    let mut below = |most: usize| numbers.below(most);
    let mut table = StacksBuilder::default();
    let mut stacks = vec![0, 12_345];
    for _ in 0..40 {
        let frame = |function: usize, offset: usize| StackFrame::Method {
            function: 1 + function as u32,
            il_offset: Some(offset as u32),
            il_span: 0,
            tier: match offset {
                _ if NAMELESS.contains(&(1 + function as u32)) => Tier::Unknown,
                0 => Tier::Tier0,
                _ => Tier::Tier1,
            },
        };
        let mut frames: Vec<_> = (0..1 + below(7)).map(|_| frame(below(NAMELESS.end as usize - 1), below(2))).collect();
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
    let native = |name: String| Function { name, module: 3, kind: FunctionKind::Native, ..Function::default() };
    let function = |index: u32| match index {
        index if NAMELESS.contains(&index) => native(format!("libx.so+{index:#x}")),
        11 => native("[libx.so]".to_owned()),
        _ => Function {
            name: format!("N.T::F{index}"),
            module: 1 + u32::from(index.is_multiple_of(3)),
            ..Function::default()
        },
    };
    let process = Process {
        pid: 7,
        functions: (0..FUNCTIONS).map(function).collect(),
        modules: vec![Module::default(), module("App", false), module("Lib", true), module("libx.so", false)],
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
    let paths = StackPaths::for_metric(recording, process, query, &SAMPLED_CPU).expect("samples");
    let mut all = ByPath::new();
    let mut path = Vec::new();
    for event in paths.measured.blocks.iter().flat_map(Block::events).map(Event::unpacked) {
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
        Query { native_code: Some(NativeCode::Places), ..Query::default() },
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
        let stacks = SummedStacks::for_metric(&recording, process, &query, &SAMPLED_CPU).expect("samples");
        let SummedStacks { measured, folded, .. } = &stacks;
        let shape = Shape::build(process, &SAMPLED_CPU, measured, folded.as_ref(), FoldedFunctions::name(&query));
        let wanted = EventFilter::new(process, &query);
        let tree = StackTree { amounts: Amounts::new(&stacks, &shape), shape: Arc::clone(&shape), lumps: Vec::new() };
        let mut merged: BTreeMap<Vec<u32>, StackSum> = BTreeMap::new();
        expected.iter().for_each(|((_, path), sum)| merged.entry(path.clone()).or_default().add(*sum));
        assert_eq!(sums_of_tree(&tree), merged, "{seed} {query:?}");
        for (thread, amounts) in (0..).zip(Amounts::by_thread(measured, &shape, &wanted)) {
            let tree = StackTree { amounts, shape: Arc::clone(&shape), lumps: Vec::new() };
            let mine = expected.iter().filter(|((of, _), _)| *of == thread);
            let mine: BTreeMap<_, _> = mine.map(|((_, path), sum)| (path.clone(), *sum)).collect();
            assert_eq!(sums_of_tree(&tree), mine, "{seed} {thread} {query:?}");
        }
        let mut whole = StackSum::default();
        merged.values().for_each(|sum| whole.add(*sum));
        assert_eq!((tree.subtree(0), tree.amounts.whole()), (whole, whole));
        let (sums, ()) = FunctionSums::new(&stacks, &wanted, &Catalog::new(process), ());
        compare_functions(&expected, &sums, process);
    }
}

/// Nodes of a walk that leaves out what is small, each with what it shows, and what was left out.
fn shown(forest: &Forest<'_>, min_share: f64) -> (Vec<(u32, u32, u32, Amount)>, PrunedPaths) {
    let mut nodes = Vec::new();
    let options = TreeOptions { min_share, ..TreeOptions::default() };
    let visit = |node: &TreeNode<'_>| -> Result<(), std::convert::Infallible> {
        nodes.push((node.depth, node.children, node.slot, node.amount));
        Ok(())
    };
    let Ok(pruned) = forest.walk_again(None, &options, visit);
    (nodes, pruned)
}

#[test]
fn large_paths_alone_are_shown_as_in_the_whole_tree() {
    let mut smaller = 0;
    for (seed, query) in (0..20).flat_map(|seed| queries().into_iter().map(move |query| (seed, query))) {
        let mut recording = recording(seed);
        if seed % 2 == 0 {
            // Two functions that are shown as one.
            recording.processes[0].functions[2] = recording.processes[0].functions[4].clone();
        }
        for min_share in [0.3, 0.1, 0.03] {
            // What is derived of a recording is not copied: each has the tree still to be made.
            let recording = recording.clone();
            let forest = Forest::open(&recording, &query).expect("samples");
            let peaks = forest.peaks(min_share).expect("the tree is not made yet");
            let (mut peak_nodes, mut all) = (0, 0);
            let of_peaks = shown(&peaks, min_share);
            assert_eq!(of_peaks, shown(&forest, min_share), "{seed} {min_share} {query:?}");
            assert!(
                forest.peaks(min_share).is_none() && Forest::open(&recording, &query).unwrap().peaks(0.1).is_none()
            );
            for (forest, nodes) in [(&peaks, &mut peak_nodes), (&forest, &mut all)] {
                *nodes = shown(forest, 0.0).0.len();
            }
            smaller += usize::from(peak_nodes < all);
        }
    }
    assert!(smaller > 100, "small paths were followed: {smaller}");
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

/// Counts the frames that are entered, and the sums of stacks.
struct Counted;

impl StackVisitor for Counted {
    type Acc = (usize, StackSum);
    type Inherited = ();

    fn begin(&self) -> Self::Acc {
        (0, StackSum::default())
    }
    fn outside(&self) {}
    fn enter(&self, found: &mut Self::Acc, (): (), _: &Frame) {
        found.0 += 1;
    }
    fn stack(&self, found: &mut Self::Acc, (): (), _: &Frame, _: u32, sum: StackSum) {
        found.1.add(sum);
    }
    fn leave(&self, _: &mut Self::Acc, (): (), _: &Frame, _: StackSum) {}
    fn join(&self, all: &mut Self::Acc, part: Self::Acc) {
        all.0 += part.0;
        all.1.add(part.1);
    }
}

/// A recording with one sample of each of these stacks.
fn of_stacks(process: Process, table: StacksBuilder, stacks: &[u32]) -> Recording {
    let sample = |&stack| Sample { weight_ns: 1, thread: 1, stack, count: 1, ..Sample::default() };
    let bytes: Vec<u8> = stacks.iter().map(sample).flat_map(|sample| sample.to_bytes()).collect();
    let chunks = vec![EventChunk { thread: u32::MAX, sequence: 1, bytes: bytes.into() }];
    let events = vec![EventArena { instrument: instrument::CPU.into(), chunks }];
    let threads = vec![Thread { id: 1, ..Thread::default() }];
    let stacks = Arc::new(table.finish());
    Recording { processes: vec![Process { stacks, events, threads, ..process }], ..Recording::default() }
}

#[test]
fn deep_stacks_in_turns_are_walked_along_in_a_time_that_grows_with_their_frames() {
    const DEEP: usize = 400;
    let (mut table, mut stacks, mut paths) = (StacksBuilder::default(), Vec::new(), [Vec::new(), Vec::new()]);
    for depth in 0..DEEP {
        for (path, frames) in paths.iter_mut().enumerate() {
            frames.insert(0, StackFrame::method(1 + (depth % 5) as u32, Some(path as u32)));
            stacks.push(table.stack(frames, false));
        }
    }
    let process = Process { functions: vec![Function::default(); 6], ..Process::default() };
    let recording = of_stacks(process, table, &stacks);
    let (process, query) = (&recording.processes[0], Query::default());
    let summed = SummedStacks::for_metric(&recording, process, &query, &SAMPLED_CPU).expect("samples");
    let (entered, sum) = summed.visit_stacks(&Catalog::new(process), &Counted);
    assert_eq!(sum, StackSum { amount: 2 * DEEP as u64, samples: 2 * DEEP as u64 });
    assert_eq!(entered, 2 * DEEP, "each frame once, in the better order");
}

#[test]
fn a_frame_with_many_callees_and_a_path_of_as_many_frames_are_entered_once() {
    const MANY: u32 = 3_000;
    let (mut table, mut stacks) = (StacksBuilder::default(), Vec::new());
    let frame = |number| StackFrame::method(number, None);
    for number in 1..=MANY {
        stacks.push(table.stack(&[frame(number), frame(0)], false));
    }
    let deep: Vec<StackFrame> = (0..=MANY).map(frame).collect();
    stacks.push(table.stack(&deep, false));
    let process = Process { functions: vec![Function::default(); MANY as usize + 1], ..Process::default() };
    let recording = of_stacks(process, table, &stacks);
    let (process, query) = (&recording.processes[0], Query::default());
    let summed = SummedStacks::for_metric(&recording, process, &query, &SAMPLED_CPU).expect("samples");
    let (entered, _) = summed.visit_stacks(&Catalog::new(process), &Counted);
    assert!(entered <= process.stacks.len() + 2, "{entered} of {}", process.stacks.len());
    let shape = Shape::build(process, &SAMPLED_CPU, &summed.measured, None, "");
    assert!(shape.len() as usize <= process.stacks.len() + 1, "{}", shape.len());
}

/// Knowledge of each node of deep stacks took 1.7 GB of ten million samples.
#[test]
fn nodes_that_do_not_branch_are_one_run_whichever_worker_makes_them() {
    for query in queries() {
        let recording = Many { samples: 20_000, stacks: 3_000, threads: 3 }.recording();
        let process = &recording.processes[0];
        let stacks = SummedStacks::for_metric(&recording, process, &query, &SAMPLED_CPU).expect("samples");
        let shape = Shape::build(
            process,
            &SAMPLED_CPU,
            &stacks.measured,
            stacks.folded.as_ref(),
            FoldedFunctions::name(&query),
        );
        let runs = shape.runs();
        let calls = |node: u32| std::iter::successors(Some(node + 1), |child| Some(shape.end(*child)));
        for run in 1..runs.len() {
            let nodes = runs.starts[run as usize]..runs.starts[run as usize + 1];
            for node in nodes.clone() {
                let children = calls(node).take_while(|child| *child < shape.end(node)).count();
                let is_last = node + 1 == nodes.end;
                assert_eq!(is_last, children != 1 || !shape.at(node).is_empty(), "{node} {query:?}");
                assert_eq!(shape.below(node), shape.below_run(run));
            }
        }
        assert!(runs.len() * 5 < shape.len(), "{} runs of {} nodes", runs.len(), shape.len());
    }
}

/// Samples of methods by tier, as each event says on its own.
fn tiers_of_events(recording: &Recording, query: &Query) -> BTreeMap<(u32, Tier), (u64, u64)> {
    let process = &recording.processes[0];
    let stacks = SummedStacks::for_metric(recording, process, query, &SAMPLED_CPU).expect("samples");
    let mut all: BTreeMap<(u32, Tier), (u64, u64)> = BTreeMap::new();
    for (number, sum) in stacks.by_number() {
        let frames = process.stacks.frames(number).map(|frame| match frame {
            StackFrame::Method { function, tier, .. } => (function, Some(tier)),
            _ => (0, None),
        });
        let frames: Vec<_> = frames.collect();
        let mut caller = NO_CALLER;
        let kept = frames.into_iter().rev().filter_map(|(function, tier)| {
            caller = stacks.folded.as_ref().map_or(Some(function), |folded| folded.frame(caller, function))?;
            Some((caller, tier))
        });
        let mut frames: Vec<_> = kept.collect();
        frames.reverse();
        frames.iter_mut().for_each(|(_, tier)| *tier = tier.filter(|tier| *tier != Tier::Unknown));
        if let Some(&(function, Some(tier))) = frames.first() {
            all.entry((function, tier)).or_default().0 += sum.samples;
        }
        for (function, tier) in frames.iter().collect::<BTreeSet<_>>() {
            if let Some(tier) = tier {
                all.entry((*function, *tier)).or_default().1 += sum.samples;
            }
        }
    }
    all
}

#[test]
fn tiers_that_are_found_along_stacks_are_those_that_each_stack_has() {
    for (seed, query) in (0..20).flat_map(|seed| queries().into_iter().map(move |query| (seed, query))) {
        let recording = recording(seed);
        let process = &recording.processes[0];
        let stacks = SummedStacks::for_metric(&recording, process, &query, &SAMPLED_CPU).expect("samples");
        let sums = TierSums::new(process);
        let found = sums.of_functions(&stacks.visit_stacks(&Catalog::new(process), &sums));
        let found: BTreeMap<_, _> =
            found.iter().map(|(function, tier, samples)| ((*function, *tier), (samples.own, samples.total))).collect();
        assert_eq!(found, tiers_of_events(&recording, &query), "{seed} {query:?}");
    }
}

#[test]
fn owners_and_edges_that_are_found_along_stacks_are_those_of_trees() {
    for (seed, query) in (0..20).flat_map(|seed| queries().into_iter().map(move |query| (seed, query))) {
        let recording = recording(seed);
        // A tree of all stacks together, as those of one thread are: sums over it go node by node.
        let merged = paths::select(&recording, &query, &SAMPLED_CPU).expect("paths").remove(0);
        let tree = merged.merged().expect("stacks").tree();
        let one = ThreadPaths { thread: None, tree: PathTree::Stacks(Arc::clone(tree)) };
        let apart = Paths { process: merged.process, threads: vec![one], metric: merged.metric };
        let catalog = Catalog::new(merged.process);
        let along = merged.merged().expect("stacks").stacks.visit_stacks(&catalog, &OwnerSums::new(&merged, &catalog));
        let of_tree = Owners::from_paths(&apart, &catalog);
        let work = |owners: &Owners| owners.work_by_owner(|_, _| 1.0).into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(work(&along), work(&of_tree), "{seed} {query:?}");
        let columns = Columns::new(&merged, &catalog, &query);
        let found = |paths: &Paths<'_>| edges(paths, &catalog, &columns, |(caller, _)| caller != 3);
        assert_eq!(found(&merged), found(&apart), "{seed} {query:?}");
    }
}

#[test]
fn trees_that_many_make_are_the_one_that_a_single_worker_makes() {
    for seed in 0..40 {
        let recording = recording(seed);
        let process = &recording.processes[0];
        let query = Query { just_my_code: seed % 2 == 1, ..Query::default() };
        let stacks = SummedStacks::for_metric(&recording, process, &query, &SAMPLED_CPU).expect("samples");
        let made = |branchings| Shape::made(&stacks.measured, stacks.folded.as_ref(), branchings);
        let whole = made(usize::MAX);
        for branchings in 0..5 {
            assert!(made(branchings) == whole, "{seed}, cut behind {branchings}");
        }
    }
}
