//! Identities that hold on every row of every recording.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use clrscope_analysis::{
    Forest, METRICS, Query, Times, Totals, TreeNode, TreeOptions, call_graph, callers, functions, modules, summary,
    threads, tree, with_processors,
};
use clrscope_contract::request::Pattern;
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::model::{
    Allocation, CallTreeBuilder, EventArena, EventChunk, HookCost, Node, NodeFlags, NodeValues, Process, Recording,
    Sample, StackFrame, StacksBuilder, Thread, TreeSource,
};
use clrscope_recording::testing::ascii_trees::recording_with;
use clrscope_recording::testing::chunk::HandmadeChunk;
use proptest::prelude::*;

/// Function indices 1 to 5 are managed, 6 is `[JIT]`, 7 a suspension, 8 unmanaged, 9 leads nowhere.
const FUNCTIONS: &str = "thread 1\n  A 1\n  B 1\n  C 1\n  D 1\n  E 1\n  [JIT] 1\n  [suspended: GC] 1\n  libc!read 1\n";

#[derive(Debug, Clone)]
struct Step {
    /// Number of levels up from the node before: any order of numbers occurs.
    up: usize,
    function: u32,
    calls: u64,
    wall_ns: u64,
    cpu_ns: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let wall = prop_oneof![3 => Just(0u64), 1 => 0..2000u64];
    (0..6usize, 0..10u32, 0..50u64, wall, 0..300u64).prop_map(|(up, function, calls, wall_ns, cpu_ns)| Step {
        up,
        function,
        calls,
        wall_ns,
        cpu_ns,
    })
}

fn hook_cost() -> impl Strategy<Value = HookCost> {
    let ns = prop_oneof![Just(0.0), 0.0..8.0f64];
    (ns.clone(), ns.clone(), ns.clone(), ns).prop_map(|(enter_ns, leave_ns, pair_low_ns, pair_high_ns)| HookCost {
        enter_ns,
        leave_ns,
        pair_low_ns,
        pair_high_ns,
    })
}

fn thread(id: u32, steps: &[Step]) -> Thread {
    let mut builder = CallTreeBuilder::new(NodeValues { metric: 100, cpu_ns: 10 });
    for (at, step) in steps.iter().enumerate() {
        builder.push(Node {
            parent: at.saturating_sub(step.up) as u32,
            function: step.function,
            calls: step.calls,
            values: NodeValues { metric: step.wall_ns, cpu_ns: step.cpu_ns },
            flags: NodeFlags::default(),
        });
    }
    Thread { id, tree: TreeSource::ready(builder.finish()), ..Thread::default() }
}

/// Throws by thread, which may be one that is not known: the functions of each stack, innermost
/// first, and whether it was cut.
type Throws = Vec<(u32, Vec<u32>, bool)>;

fn throws() -> impl Strategy<Value = Throws> {
    prop::collection::vec((0..4u32, prop::collection::vec(0..10u32, 0..8), any::<bool>()), 0..40)
}

fn add_throws(process: &mut Process, throws: &Throws) {
    let mut stacks = StacksBuilder::default();
    let mut chunks: BTreeMap<u32, HandmadeChunk> = BTreeMap::new();
    let mut awaits: BTreeMap<u32, HandmadeChunk> = BTreeMap::new();
    let mut samples = Vec::new();
    let mut allocations: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (thread, functions, cut) in throws {
        let frames: Vec<_> = functions.iter().map(|&function| StackFrame::method(function, None)).collect();
        let stack = stacks.stack(&frames, *cut);
        // Each throw is met by a sample as well, so that there are samples of all threads.
        let (weight_ns, count) = (1_000 + u64::from(stack), 1 + stack % 3);
        samples.extend(Sample { thread: thread + 1, stack, weight_ns, count, ..Sample::default() }.to_bytes());
        let (objects, bytes) = (u64::from(count), weight_ns);
        let allocated = Allocation {
            objects,
            bytes,
            weight: 2 * bytes,
            objects_weight: objects << 11,
            stack,
            ..Allocation::default()
        };
        allocations.entry(*thread).or_default().extend(allocated.to_bytes());
        let number = stack.into();
        let chunk = chunks.remove(thread).unwrap_or_else(|| HandmadeChunk::new(*thread, u64::from(*thread), 0));
        let chunk = chunk.put(Kind::EXCEPTION_THROWN, &[(Tag::STACK_NODE, Value::Number(number))]);
        chunks.insert(*thread, chunk);
        let lasted = (Tag::DURATION, Value::Number(weight_ns));
        let chunk = awaits.remove(thread).unwrap_or_else(|| HandmadeChunk::new(*thread, u64::from(*thread), 0));
        awaits.insert(*thread, chunk.put(Kind::AWAIT_ENDED, &[(Tag::STACK_NODE, Value::Number(number)), lasted]));
    }
    process.stacks = Arc::new(stacks.finish());
    let chunks = chunks.into_values().map(HandmadeChunk::finish).collect();
    process.events.push(EventArena { instrument: "exceptions".into(), chunks });
    let chunks = awaits.into_values().map(HandmadeChunk::finish).collect();
    process.events.push(EventArena { instrument: "awaits".into(), chunks });
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: samples.into() };
    process.events.push(EventArena { instrument: "cpu".into(), chunks: vec![chunk] });
    let chunk =
        |(thread, bytes): (u32, Vec<u8>)| EventChunk { thread, sequence: u64::from(thread) + 1, bytes: bytes.into() };
    let chunks = allocations.into_iter().map(chunk).collect();
    process.events.push(EventArena { instrument: "alloc".into(), chunks });
}

fn any_recording() -> impl Strategy<Value = Recording> {
    let trees = prop::collection::vec(prop::collection::vec(step(), 0..60), 1..4);
    (trees, hook_cost(), throws()).prop_map(|(trees, cost, throws)| {
        let mut r = recording_with(FUNCTIONS, cost);
        r.processes[0].threads = trees.iter().zip(1..).map(|(steps, id)| thread(id, steps)).collect();
        add_throws(&mut r.processes[0], &throws);
        r
    })
}

/// All measured wall time, and that outside functions.
fn measured(r: &Recording) -> (u64, u64) {
    let trees = r.processes[0].threads.iter().map(|t| t.tree.load());
    trees.fold((0, 0), |(all, outside), tree| {
        (all + tree.values().iter().map(|t| t.1.metric).sum::<u64>(), outside + tree.values_of(0).metric)
    })
}

fn identity(t: &Times, raw: bool) -> Result<(), TestCaseError> {
    let profiler = if raw { t.profiler_ns } else { 0 };
    prop_assert_eq!(t.inclusive_ns, t.exclusive_ns + t.callee_ns + t.suspended_ns + profiler);
    prop_assert!(t.profiler_low_ns <= t.profiler_ns && t.profiler_ns <= t.profiler_high_ns);
    Ok(())
}

fn per_thread(raw: bool) -> Query {
    Query { per_thread: true, raw, ..Query::default() }
}

/// Children of each node together with its own columns, and roots with the total.
fn tree_adds_up(nodes: &[TreeNode<'_>], raw: bool) -> Result<(), TestCaseError> {
    for (at, node) in nodes.iter().enumerate() {
        identity(&node.times, raw)?;
        let below = nodes[at + 1..].iter().take_while(|n| n.depth > node.depth);
        let children: Vec<_> = below.filter(|n| n.depth == node.depth + 1).collect();
        prop_assert_eq!(children.len(), node.children as usize);
        let sum: u64 = children.iter().map(|n| n.times.inclusive_ns).sum();
        prop_assert_eq!(sum, node.times.callee_ns + node.times.suspended_ns);
    }
    Ok(())
}

fn whole(r: &Recording, query: &Query) -> (u64, Totals, Vec<u64>) {
    let view = functions(r, query).expect("rows");
    let exclusive = view.rows.iter().map(|row| row.times.exclusive_ns).sum();
    (exclusive, view.conditions.totals, view.rows.iter().map(|row| row.times.inclusive_ns).collect())
}

/// Numbers near every edge of 64 bits.
fn absurd() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX / 2), Just(1 << 53), any::<u64>()]
}

fn absurd_step() -> impl Strategy<Value = Step> {
    let function = prop_oneof![0..12u32, Just(u32::MAX)];
    (0..6usize, function, absurd(), absurd(), absurd()).prop_map(|(up, function, calls, wall_ns, cpu_ns)| Step {
        up,
        function,
        calls,
        wall_ns,
        cpu_ns,
    })
}

proptest! {
    #[test]
    fn absurd_numbers_do_no_harm(
        trees in prop::collection::vec(prop::collection::vec(absurd_step(), 0..30), 1..3),
        enter_ns in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX), any::<f64>(), Just(2.0)],
        raw: bool,
    ) {
        let cost = HookCost { enter_ns, leave_ns: 1e5, pair_low_ns: -enter_ns, pair_high_ns: enter_ns };
        let mut r = recording_with(FUNCTIONS, cost);
        r.processes[0].threads = trees.iter().zip(1..).map(|(steps, id)| thread(id, steps)).collect();
        for query in [Query { raw, ..Query::default() }, per_thread(raw)] {
            functions(&r, &query).expect("rows");
            tree(&r, &query, &TreeOptions::default()).expect("a tree");
        }
        let query = Query { raw, ..Query::default() };
        threads(&r, &query).expect("rows");
        modules(&r, &query).expect("rows");
        summary(&r, &query).expect("a summary");
        call_graph(&r, &query).expect("a graph");
    }

    #[test]
    fn rows_add_up(r in any_recording(), raw: bool) {
        let (all, outside) = measured(&r);
        for query in [Query { raw, ..Query::default() }, per_thread(raw)] {
            let view = functions(&r, &query).expect("rows");
            for row in &view.rows {
                identity(&row.times, raw)?;
            }
            let totals = view.conditions.totals;
            let exclusive: u64 = view.rows.iter().map(|row| row.times.exclusive_ns).sum();
            let profiler: u64 = view.rows.iter().map(|row| row.times.profiler_ns).sum();
            prop_assert_eq!(totals.functions_ns, exclusive + if raw { profiler } else { 0 });
            prop_assert_eq!(exclusive + profiler, all - outside);
            let taken_out = if raw { 0 } else { totals.profiler_ns };
            prop_assert_eq!(totals.functions_ns + totals.outside_ns + taken_out, all);
        }
    }

    /// Without hooks' cost nothing is shared out, and every metric adds up exactly, in whatever
    /// view.
    #[test]
    fn every_metric_adds_up(r in any_recording()) {
        let mut r = r;
        r.processes[0].calls.iter_mut().for_each(|calls| calls.hook_cost = HookCost::default());
        for metric in METRICS {
            let query = Query { metric: Some(metric), ..Query::default() };
            let rows = functions(&r, &query).expect("rows");
            let all = rows.conditions.total;
            prop_assert_eq!(*rows.conditions.metric, *metric);
            prop_assert_eq!(rows.rows.iter().map(|row| row.amount.own).sum::<u64>(), all, "functions by {}", metric);
            let tree = tree(&r, &query, &TreeOptions::default()).expect("a tree");
            prop_assert_eq!(tree.conditions.total, all);
            prop_assert_eq!(tree.nodes.iter().map(|node| node.amount.own).sum::<u64>(), all, "tree by {}", metric);
            let roots = tree.nodes.iter().filter(|node| node.depth == 0 && !metric.exclusive);
            let whole = if metric.exclusive { 0 } else { all };
            prop_assert_eq!(roots.map(|node| node.amount.total).sum::<u64>(), whole, "roots by {}", metric);
            let anything = Query { functions: vec![Pattern::parse("*").expect("a pattern")], ..query };
            if let Ok(callers) = callers(&r, &anything) {
                for item in &callers.items {
                    let own: u64 = item.rows.iter().map(|row| row.amount.own).sum();
                    prop_assert_eq!(own, item.function.amount.own, "callers by {}", metric);
                }
                prop_assert_eq!(callers.items.iter().map(|item| item.function.amount.own).sum::<u64>(), all);
            }
        }
    }

    #[test]
    fn rows_per_thread_add_up_to_the_merged(r in any_recording(), raw: bool) {
        let merged = functions(&r, &Query { raw, ..Query::default() }).expect("rows");
        let apart = functions(&r, &per_thread(raw)).expect("rows");
        for row in &merged.rows {
            let mine: Vec<_> = apart.rows.iter().filter(|p| p.function.name() == row.function.name()).collect();
            prop_assert_eq!(mine.len(), row.threads as usize);
            prop_assert_eq!(mine.iter().map(|p| p.times.inclusive_ns).sum::<u64>(), row.times.inclusive_ns);
            prop_assert_eq!(mine.iter().map(|p| p.times.calls).sum::<u64>(), row.times.calls);
            // What samples met without any call has no row of a thread.
            prop_assert_eq!(mine.iter().map(|p| p.max_recursion).max().unwrap_or(0), row.max_recursion);
        }
    }

    #[test]
    fn threads_add_up_to_the_measured_time(r in any_recording(), raw: bool) {
        let view = threads(&r, &Query { raw, ..Query::default() }).expect("rows");
        let sum: u64 = view.rows.iter().map(|t| t.running_ns + t.outside_ns + t.suspended_ns + t.profiler_ns).sum();
        prop_assert_eq!(sum, measured(&r).0);
    }

    #[test]
    fn trees_add_up(r in any_recording(), raw: bool) {
        for query in [Query { raw, ..Query::default() }, per_thread(raw)] {
            let view = tree(&r, &query, &TreeOptions::default()).expect("a tree");
            tree_adds_up(&view.nodes, raw)?;
            let roots: u64 = view.nodes.iter().filter(|n| n.depth == 0).map(|n| n.times.inclusive_ns).sum();
            let totals = view.conditions.totals;
            if raw {
                prop_assert_eq!(roots, totals.functions_ns);
            } else {
                prop_assert!(roots <= totals.functions_ns + totals.outside_ns + 100);
            }
        }
    }

    #[test]
    fn tree_and_functions_agree_on_what_was_measured(mut r in any_recording()) {
        r.processes[0].calls.as_mut().expect("calls").hook_cost = HookCost::default();
        let rows = functions(&r, &Query::default()).expect("rows").rows;
        let nodes = tree(&r, &Query::default(), &TreeOptions::default()).expect("a tree").nodes;
        for row in &rows {
            let mut inclusive = 0;
            let mut inside = None;
            let (mut exclusive, mut calls) = (0, 0);
            for node in &nodes {
                if inside.is_some_and(|depth| node.depth <= depth) {
                    inside = None;
                }
                if node.function.name() != row.function.name() {
                    continue;
                }
                exclusive += node.times.exclusive_ns;
                calls += node.times.calls;
                if inside.is_none() {
                    inclusive += node.times.inclusive_ns;
                    inside = Some(node.depth);
                }
            }
            prop_assert_eq!((inclusive, exclusive, calls), (row.times.inclusive_ns, row.times.exclusive_ns, row.times.calls));
        }
    }

    #[test]
    fn without_cost_raw_and_compensated_are_equal(mut r in any_recording()) {
        r.processes[0].calls.as_mut().expect("calls").hook_cost = HookCost::default();
        prop_assert_eq!(whole(&r, &Query::default()), whole(&r, &Query { raw: true, ..Query::default() }));
    }

    #[test]
    fn the_number_of_processors_changes_nothing(r in any_recording()) {
        let text = |n| with_processors(NonZero::new(n).expect("not zero"), || {
            let rows = functions(&r, &per_thread(false)).expect("rows");
            let mut text = format!("{rows:?}");
            let forest = Forest::open(&r, &Query::default()).expect("a forest");
            let walked: Result<_, ()> = forest.walk(&TreeOptions::default(), |n| { text += &format!("{n:?}"); Ok(()) });
            walked.expect("a walk");
            text
        });
        prop_assert_eq!(text(1), text(3));
    }
}
