//! Paths measured by exceptions, from throws made by hand.

use std::sync::Arc;

use clrscope_analysis::{
    Amount, EXCEPTIONS, ExceptionLog, ExceptionQuery, FunctionRow, Query, QueryProblem, Sort, ThreadSelector,
    TreeOptions, WALL, callees, callers, functions, tree,
};
use clrscope_contract::request::Pattern;
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::model::{EventArena, Function, Process, Recording, StackFrame, StacksBuilder, Thread};
use clrscope_recording::testing::ascii_trees;
use clrscope_recording::testing::chunk::HandmadeChunk;

/// Index 0 is no function.
const FUNCTIONS: [&str; 5] = ["", "Main", "Pay", "Check", "System.Runtime.EH::RhThrowEx"];

/// Throws of one thread after another, a microsecond apart: each the functions of its stack,
/// outermost first, the first of them missing where it is 0.
fn recording(throws: &[&[&[u32]]]) -> Recording {
    let mut stacks = StacksBuilder::default();
    let mut chunks = Vec::new();
    for (thread, throws) in (0..).zip(throws) {
        let mut chunk = HandmadeChunk::new(thread, u64::from(thread), 1_000);
        for path in *throws {
            let (is_cut, known) = match path {
                [0, known @ ..] => (true, known),
                known => (false, *known),
            };
            let method = |&function: &u32| StackFrame::method(function, Some(function));
            let frames: Vec<_> = known.iter().rev().map(method).collect();
            let number = stacks.stack(&frames, is_cut).into();
            chunk = chunk.put(Kind::EXCEPTION_THROWN, &[(Tag::STACK_NODE, Value::Number(number))]);
        }
        chunks.push(chunk.finish());
    }
    let function = |name: &&str| Function { name: (*name).to_owned(), ..Function::default() };
    let process = Process {
        pid: 7,
        functions: FUNCTIONS.iter().map(function).collect(),
        // The last thread of the throws is not known.
        threads: (1..throws.len() as u32).map(|id| Thread { id, os_id: 100 + id, ..Thread::default() }).collect(),
        stacks: Arc::new(stacks.finish()),
        events: vec![EventArena { instrument: "exceptions".into(), chunks }],
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

/// Two throws of objects that had been thrown before, and two of others, a throw per thread.
fn rethrown() -> Recording {
    let mut r = sample();
    let stacks = Arc::clone(&r.processes[0].stacks);
    let mut chunk = HandmadeChunk::new(0, 0, 1_000);
    for (again, stack) in [(0, 3), (1, 3), (1, 2), (0, 3)] {
        let stack = stacks.number(stack - 1).into();
        let fields = [(Tag::STACK_NODE, Value::Number(stack)), (Tag::ANSWER, Value::Number(again))];
        chunk = chunk.put(Kind::EXCEPTION_THROWN, &fields);
    }
    r.processes[0].events = vec![EventArena { instrument: "exceptions".into(), chunks: vec![chunk.finish()] }];
    r
}

#[test]
fn throws_of_an_object_after_its_first_count_apart() {
    let r = rethrown();
    let view = functions(&r, &Query::default()).expect("rows");
    let rows = view.rows.iter().map(|row| {
        let Amount { own, total, samples } = row.amount;
        format!("{} {own} {total}, again {} {}", row.function.name(), samples.own, samples.total)
    });
    let expected = ["Check 2 2, again 1 1", "Main 0 2, again 0 2", "Pay 0 2, again 1 2"];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    assert_eq!(view.conditions.total, 2);
    let nodes = tree(&r, &Query::default(), &TreeOptions::default()).expect("a tree").nodes;
    let again = nodes.iter().map(|node| (node.function.name(), node.amount.samples.own, node.amount.samples.total));
    assert_eq!(again.collect::<Vec<_>>(), [("Main", 0, 2), ("Pay", 1, 2), ("Check", 1, 1)]);
    let log = ExceptionLog::open(&r, &ExceptionQuery::default()).expect("exceptions");
    let groups = log.groups().0;
    let sums = groups.iter().map(|group| (group.count, group.exceptions(), group.rethrown));
    assert_eq!(sums.collect::<Vec<_>>(), [(3, 2, 1), (1, 0, 1)]);
}

fn sample() -> Recording {
    recording(&[&[&[1, 2, 3], &[1, 2, 3], &[1, 2, 2, 3, 4], &[1, 2], &[0, 3]], &[&[1, 3], &[]], &[&[1]]])
}

fn named(text: &str) -> Query {
    Query { functions: vec![Pattern::parse(text).expect("a pattern")], ..Query::default() }
}

fn rows(r: &Recording, query: &Query) -> String {
    let view = functions(r, query).expect("rows");
    let row = |row: &FunctionRow<'_>| format!("{} {} {}", row.function.name(), row.amount.own, row.amount.total);
    view.rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

fn nodes(r: &Recording, query: &Query) -> String {
    let tree = tree(r, query, &TreeOptions::default()).expect("a tree");
    let indented = |depth: u32| "  ".repeat(depth as usize);
    tree.nodes
        .iter()
        .map(|n| format!("{}{} {} {}\n", indented(n.depth), n.function.name(), n.amount.own, n.amount.total))
        .collect()
}

#[test]
fn throws_count_along_their_stacks() {
    let r = sample();
    let all = Query::default();
    assert_eq!(rows(&r, &all), "Check 5 5, (unknown) 1 2, Main 1 6, Pay 1 4");
    let view = functions(&r, &all).expect("rows");
    assert_eq!((view.conditions.total, view.conditions.metric.name), (8, "exceptions"), "the only one recorded");
    assert_eq!(view.rows[0].times, Default::default());
    assert_eq!(view.rows[3].max_recursion, 2);
    let expected = "\
Main 1 6
  Pay 1 4
    Check 2 2
    Pay 0 1
      Check 1 1
  Check 1 1
(unknown) 1 2
  Check 1 1
";
    assert_eq!(nodes(&r, &all), expected);
    let seen = ExceptionLog::open(&r, &ExceptionQuery::default()).expect("exceptions");
    assert_eq!(seen.rows().0.len() as u64, view.conditions.total);
    assert_eq!(seen.groups().0.iter().map(|group| group.count).sum::<u64>(), view.conditions.total);
}

#[test]
fn callers_and_callees_share_what_was_thrown() {
    let r = sample();
    let edges = |view: clrscope_analysis::NeighboursView<'_>| {
        let row = |row: &clrscope_analysis::EdgeRow<'_>| {
            let name = row.function.map_or("(thread)", |function| function.name());
            format!("{name} {} {}", row.amount.own, row.amount.total)
        };
        view.items.iter().map(|item| item.rows.iter().map(row).collect::<Vec<_>>().join(", ")).collect::<Vec<_>>()
    };
    assert_eq!(edges(callers(&r, &named("Check")).expect("callers")), ["Pay 3 3, (unknown) 1 1, Main 1 1"]);
    assert_eq!(edges(callees(&r, &named("Pay")).expect("callees")), ["Check 3 3, Pay 0 1"]);
}

#[test]
fn filters_choose_threads_times_and_functions() {
    let r = sample();
    let first = Query { threads: vec![ThreadSelector::Number(1)], ..Query::default() };
    assert_eq!(rows(&r, &first), "Check 4 4, Pay 1 4, (unknown) 0 1, Main 0 4");
    let late = Query { since_ns: Some(5_000), ..Query::default() };
    assert_eq!(rows(&r, &late), "Check 1 1, (unknown) 0 1", "of each thread the fifth throw and later ones");
    assert_eq!(nodes(&r, &named("Check")), "Check 5 5\n");
    let apart = functions(&r, &Query { per_thread: true, ..Query::default() }).expect("rows");
    let of =
        |id: u32| apart.rows.iter().filter(move |row| row.thread.is_some_and(|t| t.id == id)).map(|row| row.amount.own);
    assert_eq!([of(1).sum::<u64>(), of(2).sum(), of(0).sum()], [5, 2, 1], "0 is the thread that is not known");
}

#[test]
fn orders_and_options_that_counts_do_not_have_are_refused() {
    let r = sample();
    let refused = |query: Query| match functions(&r, &query) {
        Err(QueryProblem::NotAvailable { option, .. }) => option,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Query { sort: Some(Sort::Calls), ..Query::default() }), "this --sort");
    assert_eq!(refused(Query { raw: true, ..Query::default() }), "--raw");
    let by_total = Query { sort: Some(Sort::Inclusive), ..Query::default() };
    assert_eq!(rows(&r, &by_total), "Main 1 6, Check 5 5, Pay 1 4, (unknown) 1 2");
    let wall = Query { metric: Some(&WALL), ..Query::default() };
    assert_eq!(functions(&r, &wall).expect_err("no calls"), QueryProblem::MetricNotRecorded { metric: &WALL });
}

#[test]
fn with_calls_in_the_recording_exceptions_are_there_when_asked_for() {
    let (mut r, thrown) = (ascii_trees::recording("thread 1\n  Main 1 10\n"), sample());
    let other = thrown.processes.into_iter().next().expect("a process");
    r.processes[0] = Process { calls: r.processes[0].calls.clone(), ..other };
    assert_eq!(functions(&r, &Query::default()).expect("rows").conditions.metric.name, "wall");
    let asked = Query { metric: Some(&EXCEPTIONS), ..Query::default() };
    assert_eq!(rows(&r, &asked), "Check 5 5, (unknown) 1 2, Main 1 6, Pay 1 4");
    let conditions = functions(&r, &asked).expect("rows").conditions;
    assert_eq!((conditions.totals, conditions.total), (Default::default(), 8), "no number is taken for a time");
}
