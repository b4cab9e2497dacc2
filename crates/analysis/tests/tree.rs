//! `tree` on trees whose answers were computed by hand.

use clrscope_analysis::{Forest, Query, QueryProblem, Sort, Tree, TreeNode, TreeOptions, tree};
use clrscope_contract::request::{Glob, Pattern};
use clrscope_recording::model::{
    CallTreeBuilder, HookCost, Node, NodeFlags, NodeValues, ROOT, Recording, Thread, TreeSource,
};
use clrscope_recording::testing::ascii_trees::{recording, recording_with};

/// `name calls inclusive exclusive callee suspended`, two spaces a level.
fn show(tree: &Tree<'_>) -> String {
    let mut text = String::new();
    for node in &tree.nodes {
        let t = node.times;
        let indent = "  ".repeat(node.depth as usize);
        text += &format!(
            "{indent}{} {} {} {} {} {}\n",
            node.function.name(),
            t.calls,
            t.inclusive_ns,
            t.exclusive_ns,
            t.callee_ns,
            t.suspended_ns
        );
    }
    text
}

fn shown(recording: &Recording, query: &Query, options: &TreeOptions) -> String {
    show(&tree(recording, query, options).expect("a tree"))
}

fn all(recording: &Recording, query: &Query) -> String {
    shown(recording, query, &TreeOptions::default())
}

const TWO_THREADS: &str = "
thread 1 main
  Main 1 5
    A 2 10
      B 1 3
    [suspended: GC] 1 4
thread 2
  Main 1 1
    B 2 30
    A 1 1
      C 7 2
";

#[test]
fn threads_are_merged_path_by_path() {
    let r = recording(TWO_THREADS);
    let expected = "\
Main 2 56 6 46 4
  B 2 30 30 0 0
  A 3 16 11 5 0
    B 1 3 3 0 0
    C 7 2 2 0 0
  [suspended: GC] 1 4 4 0 0
";
    assert_eq!(all(&r, &Query::default()), expected);
    let whole = tree(&r, &Query::default(), &TreeOptions::default()).expect("a tree");
    let children: Vec<u32> = whole.nodes.iter().map(|n| n.children).collect();
    assert_eq!(children, [3, 0, 2, 0, 0, 0]);
    assert_eq!(whole.conditions.totals.functions_ns, 56);
}

#[test]
fn per_thread_trees_name_their_thread() {
    let r = recording(TWO_THREADS);
    let apart = tree(&r, &Query { per_thread: true, ..Query::default() }, &TreeOptions::default()).expect("a tree");
    let found: Vec<_> =
        apart.nodes.iter().filter(|n| n.depth == 0).map(|n| (n.thread.map(|t| t.id), n.times.inclusive_ns)).collect();
    assert_eq!(found, [(Some(1), 22), (Some(2), 34)]);
}

#[test]
fn recursion_stays_apart_level_by_level() {
    let r = recording("thread 1\n  A 1 1\n    A 1 2\n      B 1 4\n        A 1 8\n");
    assert_eq!(all(&r, &Query::default()), "A 1 15 1 14 0\n  A 1 14 2 12 0\n    B 1 12 4 8 0\n      A 1 8 8 0 0\n");
}

#[test]
fn pruning_is_counted() {
    let r = recording(TWO_THREADS);
    let query = Query::default();
    let pruned = |options: &TreeOptions| tree(&r, &query, options).expect("a tree").pruned;
    let few = TreeOptions { min_share: 0.1, max_depth: None };
    assert_eq!(shown(&r, &query, &few), "Main 2 56 6 46 4\n  B 2 30 30 0 0\n  A 3 16 11 5 0\n");
    assert_eq!((pruned(&few).subtrees, pruned(&few).total), (3, 9));
    let flat = TreeOptions { min_share: 0.0, max_depth: Some(1) };
    assert_eq!(shown(&r, &query, &flat), "Main 2 56 6 46 4\n");
    assert_eq!((pruned(&flat).subtrees, pruned(&flat).total), (3, 50));
    let limited = Query { limit: Some(1), ..Query::default() };
    assert_eq!(all(&r, &limited), "Main 2 56 6 46 4\n  B 2 30 30 0 0\n");
}

#[test]
fn orders_of_children() {
    let r = recording("thread 1\n  M 1 0\n    B 1 9\n    A 5 2\n      D 1 5\n    C 9 3\n");
    let order = |sort| -> String {
        let query = Query { sort: Some(sort), ..Query::default() };
        let whole = tree(&r, &query, &TreeOptions::default()).expect("a tree");
        whole.nodes.iter().filter(|n| n.depth == 1).map(|n| n.function.name()).collect()
    };
    assert_eq!(order(Sort::Inclusive), "BAC");
    assert_eq!(order(Sort::Exclusive), "BCA");
    assert_eq!(order(Sort::Calls), "CAB");
    assert_eq!(order(Sort::Name), "ABC");
    assert_eq!(order(Sort::InclusiveCpu), "ABC");
    let refused = Forest::open(&r, &Query { sort: Some(Sort::Callee), ..Query::default() }).err();
    assert!(matches!(refused, Some(QueryProblem::NotAvailable { view: "tree", .. })));
}

#[test]
fn filters_make_the_outermost_matches_roots() {
    let r = recording(TWO_THREADS);
    let query = Query { functions: vec![Pattern::parse("::A").expect("a pattern")], ..Query::default() };
    assert_eq!(all(&r, &query), "A 3 16 11 5 0\n  B 1 3 3 0 0\n  C 7 2 2 0 0\n");
    let module = Query { modules: vec![Glob::new("Shop")], ..Query::default() };
    assert_eq!(all(&r, &module), all(&r, &Query::default()));
}

#[test]
fn tail_calls_are_marked_only_where_every_path_is_one() {
    let r =
        recording("thread 1\n  M 1 0\n    tail A 1 9\n    tail B 1 8\nthread 2\n  M 1 0\n    tail A 1 9\n    B 1 8\n");
    let whole = tree(&r, &Query::default(), &TreeOptions::default()).expect("a tree");
    let marked: Vec<_> = whole.nodes.iter().map(|n| (n.function.name(), n.by_tail_call)).collect();
    assert_eq!(marked, [("M", false), ("A", true), ("B", false)]);
}

#[test]
fn hooks_are_taken_out_along_the_path() {
    // `W` is long and rarely called on one path, short and often called on the other.
    let cost = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.0, pair_high_ns: 4.0 };
    let r = recording_with(
        "thread 1\n  outside 2\n  M 1 5\n    A 1 3\n      W 1 1001\n    B 1 201\n      W 100 150\n",
        cost,
    );
    let expected = "\
M 1 1050 0 1050 0
  A 1 1000 0 1000 0
    W 1 1000 1000 0 0
  B 1 50 0 50 0
    W 100 50 50 0 0
";
    assert_eq!(all(&r, &Query::default()), expected);
    let raw = tree(&r, &Query { raw: true, ..Query::default() }, &TreeOptions::default()).expect("a tree");
    for node in &raw.nodes {
        let t = node.times;
        assert_eq!(t.inclusive_ns, t.exclusive_ns + t.callee_ns + t.suspended_ns + t.profiler_ns);
    }
    assert_eq!(raw.nodes[0].times.inclusive_ns, 1360);
}

#[test]
fn a_walk_ends_when_its_visitor_does() {
    let r = recording(TWO_THREADS);
    let forest = Forest::open(&r, &Query::default()).expect("a forest");
    let mut left = 3;
    let walked = forest.walk(&TreeOptions::default(), |node: &TreeNode<'_>| {
        left -= 1;
        if left == 0 { Err(node.function.name().to_owned()) } else { Ok(()) }
    });
    assert_eq!(walked, Err("A".to_owned()));
}

/// A recording of one thread with the given parents; every node has 1 ns and one of three
/// functions.
fn large(parents: impl Iterator<Item = u32>) -> Recording {
    let mut r = recording("thread 1\n  A 1\n  B 1\n  C 1\n");
    let mut builder = CallTreeBuilder::new(NodeValues::default());
    for (at, parent) in parents.enumerate() {
        let time = NodeValues { metric: 1, cpu_ns: 1 };
        builder.push(Node { parent, function: at as u32 % 3 + 1, calls: 1, values: time, flags: NodeFlags::default() });
    }
    let tree = TreeSource::ready(builder.finish());
    r.processes[0].threads = vec![Thread { id: 1, tree, ..Thread::default() }];
    r
}

#[test]
fn a_path_of_a_hundred_thousand_calls() {
    let r = large(0..100_000);
    let deep = tree(&r, &Query::default(), &TreeOptions::default()).expect("a tree");
    assert_eq!(deep.nodes.len(), 100_000);
    assert_eq!(deep.nodes.last().map(|n| (n.depth, n.times.inclusive_ns)), Some((99_999, 1)));
    assert!(deep.nodes.iter().all(|n| n.times.inclusive_ns == 100_000 - u64::from(n.depth)));
    let rows = clrscope_analysis::functions(&r, &Query::default()).expect("rows").rows;
    let found: Vec<_> = rows.iter().map(|r| (r.times.inclusive_ns, r.times.exclusive_ns, r.max_recursion)).collect();
    assert_eq!(found, [(100_000, 33_334, 33_334), (99_999, 33_333, 33_333), (99_998, 33_333, 33_333)]);
    assert_eq!(clrscope_analysis::threads(&r, &Query::default()).expect("rows").rows[0].max_depth, 100_000);
}

#[test]
fn a_node_with_three_hundred_thousand_children() {
    let wide = large(std::iter::repeat_n(ROOT, 300_000));
    assert_eq!(
        all(&wide, &Query::default()),
        "A 100000 100000 100000 0 0\nB 100000 100000 100000 0 0\nC 100000 100000 100000 0 0\n"
    );
}

#[test]
fn breadth_first_numbers_give_the_same_tree() {
    // A root with 500 children, each with 500 children, level by level.
    let parents = std::iter::repeat_n(ROOT, 500).chain((1..=500).flat_map(|p| std::iter::repeat_n(p, 500)));
    let breadth = large(parents);
    let whole = tree(&breadth, &Query::default(), &TreeOptions::default()).expect("a tree");
    assert_eq!(whole.nodes.len(), 12);
    assert_eq!(whole.nodes.iter().map(|n| n.times.exclusive_ns).sum::<u64>(), 250_500);
}
