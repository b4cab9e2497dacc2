//! `callers`, `callees` and the call graph on trees whose answers were computed by hand.

use clrscope_analysis::{Neighbours, Query, QueryProblem, Sort, call_graph, callees, callers};
use clrscope_contract::request::Pattern;
use clrscope_recording::model::{HookCost, Recording};
use clrscope_recording::testing::ascii_trees::{recording, recording_with};

fn about(name: &str) -> Query {
    Query { functions: vec![Pattern::parse(&format!("::{name}")).expect("a pattern")], ..Query::default() }
}

/// Name, calls, inclusive, exclusive, callee.
type Line = (String, u64, u64, u64, u64);

fn table(item: &Neighbours<'_>) -> Vec<Line> {
    let name = |r: &clrscope_analysis::EdgeRow<'_>| r.function.map_or("thread".to_owned(), |f| f.name().to_owned());
    let row = |r| (name(r), r.times.calls, r.times.inclusive_ns, r.times.exclusive_ns, r.times.callee_ns);
    item.rows.iter().map(row).collect()
}

fn named(rows: &[(&str, u64, u64, u64, u64)]) -> Vec<Line> {
    rows.iter().map(|r| (r.0.to_owned(), r.1, r.2, r.3, r.4)).collect()
}

fn both(recording: &Recording, name: &str) -> (Vec<Line>, Vec<Line>) {
    let callers = callers(recording, &about(name)).expect("callers");
    let callees = callees(recording, &about(name)).expect("callees");
    assert_eq!((callers.items.len(), callees.items.len()), (1, 1));
    (table(&callers.items[0]), table(&callees.items[0]))
}

#[test]
fn an_edge_has_its_own_calls_and_times() {
    let r = recording(
        "thread 1\n  M 1 1\n    A 1 2\n      W 5 10\n        X 1 3\n    B 1 4\n      W 7 20\n        X 2 5\nthread 2\n  W 1 100\n",
    );
    let (up, down) = both(&r, "W");
    assert_eq!(up, named(&[("thread", 1, 100, 100, 0), ("B", 7, 25, 20, 5), ("A", 5, 13, 10, 3)]));
    assert_eq!(down, named(&[("X", 3, 8, 8, 0)]));
}

#[test]
fn an_edge_within_itself_is_counted_once() {
    let r = recording("thread 1\n  A 1 1\n    B 1 2\n      A 1 4\n        B 1 8\n");
    let (up, down) = both(&r, "B");
    assert_eq!(up, named(&[("A", 2, 14, 10, 4)]));
    assert_eq!(down, named(&[("A", 1, 12, 4, 8)]));
    let (up, down) = both(&recording("thread 1\n  A 1 1\n    A 1 2\n      A 1 4\n"), "A");
    assert_eq!(up, named(&[("thread", 1, 7, 1, 6), ("A", 2, 6, 6, 0)]));
    assert_eq!(down, named(&[("A", 2, 6, 6, 0)]));
}

#[test]
fn suspensions_and_compilation_stand_among_the_callees() {
    let r = recording("thread 1\n  A 1 1\n    [JIT] 1 9\n    [suspended: GC] 2 5\n");
    let (up, down) = both(&r, "A");
    assert_eq!(up, named(&[("thread", 1, 15, 1, 9)]));
    assert_eq!(down, named(&[("[JIT]", 1, 9, 9, 0), ("[suspended: GC]", 2, 5, 5, 0)]));
}

#[test]
fn hooks_are_taken_out_of_edges() {
    let cost = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.0, pair_high_ns: 4.0 };
    let r = recording_with("thread 1\n  M 1 500\n    A 10 100\n      W 20 90\n", cost);
    let view = callers(&r, &about("A")).expect("callers");
    let times = view.items[0].rows[0].times;
    // A: ten leaves and twenty enters; W: twenty leaves.
    assert_eq!((times.exclusive_ns, times.profiler_ns, times.callee_ns, times.inclusive_ns), (50, 50, 70, 120));
    assert_eq!(times, view.items[0].function.times);
}

#[test]
fn order_limit_and_problems() {
    let r = recording("thread 1\n  M 1 1\n    A 1 2\n      W 5 10\n    B 1 4\n      W 7 1\n");
    let by_calls = Query { sort: Some(Sort::Calls), limit: Some(1), ..about("W") };
    let view = callers(&r, &by_calls).expect("callers");
    assert_eq!((table(&view.items[0]), view.items[0].left_out), (named(&[("B", 7, 1, 1, 0)]), 1));
    let items = callees(&r, &about("*")).expect("callees").items;
    let order: Vec<_> = items.iter().map(|i| i.function.function.name()).collect();
    assert_eq!(order, ["W", "B", "A", "M"]);
    assert_eq!(callers(&r, &Query::default()).err(), Some(QueryProblem::FunctionNeeded { view: "callers" }));
    assert_eq!(
        callees(&r, &about("Q")).err(),
        Some(QueryProblem::NoFunction { wanted: "'::Q'".into(), nearest: Vec::new() })
    );
    let apart = callers(&r, &Query { per_thread: true, ..about("W") });
    assert!(matches!(apart, Err(QueryProblem::NotAvailable { option: "--per-thread", .. })));
}

#[test]
fn the_graph_has_every_function_and_edge_once() {
    let r =
        recording("thread 1\n  M 1 1\n    A 1 2\n      W 5 10\n    B 1 4\n      W 7 1\nthread 2\n  M 1 1\n    A 3 1\n");
    let graph = call_graph(&r, &Query::default()).expect("a graph");
    let name = |at: usize| graph.functions[at].function.name();
    let edges: Vec<_> = graph.edges.iter().map(|e| (name(e.caller), name(e.callee), e.times.calls)).collect();
    assert_eq!(edges, [("B", "W", 7), ("A", "W", 5), ("M", "B", 1), ("M", "A", 4)]);
    let few = call_graph(&r, &Query { limit: Some(2), ..Query::default() }).expect("a graph");
    assert_eq!((few.functions.len(), few.edges.len(), few.left_out), (2, 1, 2));
    let ends = Query { functions: [about("A").functions, about("W").functions].concat(), ..Query::default() };
    let some = call_graph(&r, &ends).expect("a graph");
    assert_eq!((some.functions.len(), some.edges.len(), some.edges[0].times.calls), (2, 1, 5));
}
