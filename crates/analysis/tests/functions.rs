//! `functions`, `threads`, `modules`, `losses` on trees whose answers were computed by hand.

use clrscope_analysis::{
    CALLS, CPU, FunctionRow, Query, QueryProblem, Sort, ThreadSelector, TreeOptions, WALL, functions, losses, modules,
    summary, threads, tree,
};
use clrscope_contract::request::{Glob, Pattern};
use clrscope_recording::model::{HookCost, Loss, LossReason, Recording};
use clrscope_recording::testing::ascii_trees::{recording, recording_with};

fn rows<'a>(recording: &'a Recording, query: &Query) -> Vec<FunctionRow<'a>> {
    functions(recording, query).expect("rows").rows
}

fn row<'a>(recording: &'a Recording, query: &Query, name: &str) -> FunctionRow<'a> {
    rows(recording, query).into_iter().find(|r| r.function.name() == name).expect("a row of this name")
}

/// inclusive, exclusive, callee, suspended
fn times(row: &FunctionRow<'_>) -> [u64; 4] {
    [row.times.inclusive_ns, row.times.exclusive_ns, row.times.callee_ns, row.times.suspended_ns]
}

fn names(rows: &[FunctionRow<'_>]) -> Vec<String> {
    rows.iter().map(|r| r.function.name().to_owned()).collect()
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).expect("a pattern")
}

#[test]
fn direct_recursion_counts_outermost_activations_once() {
    let r = recording("thread 1\n  Main 1 1\n    A 1 2\n      A 1 3\n        A 1 4\n          B 2 5\n");
    let a = row(&r, &Query::default(), "A");
    assert_eq!(times(&a), [14, 9, 5, 0]);
    assert_eq!((a.times.calls, a.max_recursion, a.threads), (3, 3, 1));
    assert_eq!(times(&row(&r, &Query::default(), "Main")), [15, 1, 14, 0]);
}

#[test]
fn mutual_recursion_keeps_the_inner_time_in_its_own_function() {
    let r = recording("thread 1\n  A 1 1\n    B 1 2\n      A 1 4\n");
    assert_eq!(times(&row(&r, &Query::default(), "A")), [7, 5, 2, 0]);
    assert_eq!(times(&row(&r, &Query::default(), "B")), [6, 2, 4, 0]);
    assert_eq!(row(&r, &Query::default(), "A").max_recursion, 2);
}

#[test]
fn side_by_side_activations_are_both_outermost() {
    let r = recording("thread 1\n  Main 1 0\n    A 1 5\n    B 1 1\n      A 1 7\n");
    assert_eq!(times(&row(&r, &Query::default(), "A")), [12, 12, 0, 0]);
    assert_eq!(row(&r, &Query::default(), "A").max_recursion, 1);
}

#[test]
fn suspensions_count_while_the_function_is_on_top() {
    let r = recording(
        "thread 1\n  Main 1 1\n    A 1 2\n      [suspended: GC] 3 10\n      [JIT] 1 5\n        [suspended: GC] 1 7\n  [suspended: GC] 1 50\n",
    );
    assert_eq!(times(&row(&r, &Query::default(), "A")), [24, 2, 12, 10]);
    assert_eq!(times(&row(&r, &Query::default(), "[JIT]")), [12, 5, 0, 7]);
    assert_eq!(times(&row(&r, &Query::default(), "Main")), [25, 1, 24, 0]);
    let gc = row(&r, &Query::default(), "[suspended: GC]");
    assert_eq!((times(&gc), gc.times.calls), ([67, 67, 0, 0], 5));
    assert_eq!(gc.function.kind().name(), "runtime");
    let totals = functions(&r, &Query::default()).expect("rows").conditions.totals;
    assert_eq!((totals.functions_ns, totals.suspended_ns, totals.jit_ns, totals.calls), (75, 67, 5, 2));
}

#[test]
fn cpu_time_is_apart() {
    let r = recording("thread 1\n  Main 1 1000 1\n    A 2 100 40\n");
    let main = row(&r, &Query::default(), "Main");
    assert_eq!((main.times.inclusive_cpu_ns, main.times.exclusive_cpu_ns), (Some(41), Some(1)));
    let mut without = r.clone();
    without.processes[0].calls.as_mut().expect("calls").cpu_measured = false;
    let main = row(&without, &Query::default(), "Main");
    assert_eq!((main.times.inclusive_cpu_ns, main.times.exclusive_cpu_ns), (None, None));
}

const COST: HookCost = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.5, pair_high_ns: 6.0 };

#[test]
fn hooks_cost_the_caller_and_the_callee() {
    // A: 10 leaves of its own. Main: 1 leave and 10 enters. The thread: 1 enter.
    let r = recording_with("thread 1\n  outside 50\n  Main 1 100\n    A 10 40\n      [JIT] 1 8\n", COST);
    let compensated = Query::default();
    let raw = Query { raw: true, ..Query::default() };
    let a = row(&r, &compensated, "A");
    assert_eq!((times(&a), a.times.profiler_ns), ([38, 30, 8, 0], 10));
    assert_eq!((a.times.profiler_low_ns, a.times.profiler_high_ns), (5, 20));
    let a = row(&r, &raw, "A");
    assert_eq!((times(&a), a.times.profiler_ns), ([48, 30, 8, 0], 10));
    let main = row(&r, &compensated, "Main");
    assert_eq!((times(&main), main.times.profiler_ns), ([117, 79, 38, 0], 21));
    let main = row(&r, &raw, "Main");
    assert_eq!((times(&main), main.times.profiler_ns), ([148, 79, 48, 0], 21));
    let totals = functions(&r, &compensated).expect("rows").conditions.totals;
    assert_eq!((totals.functions_ns, totals.outside_ns, totals.profiler_ns), (117, 48, 33));
    let totals = functions(&r, &raw).expect("rows").conditions.totals;
    assert_eq!((totals.functions_ns, totals.outside_ns, totals.profiler_ns), (148, 50, 33));
}

#[test]
fn the_share_never_exceeds_what_was_measured_of_the_function() {
    // Time was seen on one of A's two paths only; its hooks are more than fits.
    let r = recording_with("thread 1\n  Main 1 1000\n    A 100 60\n    B 1 10\n      A 100 0\n", COST);
    let a = row(&r, &Query::default(), "A");
    assert_eq!((times(&a), a.times.profiler_ns, a.times.profiler_high_ns), ([0, 0, 0, 0], 60, 60));
    // B pays ten of 2 * 100 enters and 1 leave; of A's cost below it, half of what fits.
    let b = row(&r, &Query::default(), "B");
    assert_eq!((times(&b), b.times.profiler_ns), ([0, 0, 0, 0], 10));
    let main = row(&r, &Query::default(), "Main");
    assert_eq!(times(&main), [797, 797, 0, 0]);
}

#[test]
fn threads_are_merged_or_apart() {
    let r = recording("thread 1 main\n  Main 1 5\n    A 1 1\nthread 2 worker\n  A 4 3\n    A 1 1\n");
    let merged = row(&r, &Query::default(), "A");
    assert_eq!((times(&merged), merged.times.calls, merged.threads, merged.max_recursion), ([5, 5, 0, 0], 6, 2, 2));
    let apart = rows(&r, &Query { per_thread: true, ..Query::default() });
    let found: Vec<_> = apart.iter().map(|r| (r.function.name(), r.thread.map(|t| t.id), r.times.calls)).collect();
    assert_eq!(found, [("Main", Some(1), 1), ("A", Some(2), 5), ("A", Some(1), 1)]);
}

#[test]
fn equal_functions_with_two_indices_are_one_row() {
    let mut r = recording("thread 1\n  A 1 1\n    B 1 2\n      C 1 3\n");
    let functions = &mut r.processes[0].functions;
    functions[3] = functions[1].clone();
    let a = row(&r, &Query::default(), "A");
    assert_eq!((times(&a), a.times.calls, a.max_recursion), ([6, 4, 2, 0], 2, 2));
    assert_eq!(rows(&r, &Query::default()).len(), 2);
}

#[test]
fn indices_that_lead_nowhere_are_unknown() {
    let mut r = recording("thread 1\n  A 1 1\n    B 2 2\n");
    r.processes[0].functions.truncate(2);
    r.processes[0].functions[1].module = 99;
    assert_eq!(times(&row(&r, &Query::default(), "(unknown)")), [2, 2, 0, 0]);
    assert_eq!(row(&r, &Query::default(), "A").function.module(), "");
}

#[test]
fn an_empty_recording_has_no_rows() {
    assert!(rows(&Recording::default(), &Query::default()).is_empty());
    let mut r = recording("thread 1\n");
    r.processes[0].threads[0].tree = Default::default();
    assert!(rows(&r, &Query::default()).is_empty());
}

#[test]
fn filters_choose_rows_and_leave_times_alone() {
    let r = recording(
        "thread 1 main\n  Main 1 5\n    Shop.Cart::Add 1 1\n      libc!malloc 1 2\nthread 2 pump\n  Shop.Cart::Add 4 3\n",
    );
    let query =
        |functions: &[&str]| Query { functions: functions.iter().map(|t| pattern(t)).collect(), ..Query::default() };
    assert_eq!(names(&rows(&r, &query(&["Shop.*"]))), ["Shop.Cart::Add"]);
    assert_eq!(times(&row(&r, &query(&["*::Add"]), "Shop.Cart::Add")), [6, 4, 2, 0]);
    assert_eq!(names(&rows(&r, &query(&["::Main", "[libc*]*"]))), ["Main", "libc!malloc"]);
    let module = Query { modules: vec![Glob::new("libc*")], ..Query::default() };
    assert_eq!(names(&rows(&r, &module)), ["libc!malloc"]);
    for selector in ["2", "1002", "pump", "user"] {
        let query = Query { threads: vec![ThreadSelector::parse(selector)], ..Query::default() };
        assert_eq!(row(&r, &query, "Shop.Cart::Add").times.calls, 4, "{selector}");
    }
    assert_eq!(functions(&r, &query(&["::Main"])).expect("rows").conditions.totals.functions_ns, 11);
}

#[test]
fn selections_that_mean_nothing_are_told() {
    let r = recording("thread 1\n  Main 1 5\n");
    let fails = |query: Query| functions(&r, &query).expect_err("a problem").to_string();
    assert_eq!(fails(Query { pid: Some(8), ..Query::default() }), "no process matches pid 8; the recording has 7");
    assert_eq!(fails(Query { threads: vec![ThreadSelector::parse("x")], ..Query::default() }), "no thread matches 'x'");
    let process = |glob: &str| Query { process: Some(Glob::new(glob)), ..Query::default() };
    assert!(fails(process("Bank*")).starts_with("no process matches 'Bank*'"));
    for glob in ["Shop", "Shop.dll", "dotnet", "*/app/*"] {
        assert!(functions(&r, &process(glob)).is_ok(), "{glob}");
    }
    let since = functions(&r, &Query { since_ns: Some(1), ..Query::default() });
    assert!(matches!(since, Err(QueryProblem::NotAvailable { option: "--since", view: "functions", .. })));
}

#[test]
fn sorts_limits_and_ties() {
    let r = recording("thread 1\n  C 1 5\n    B 7 5\n    A 1 5\n      A 1 0 3\n");
    let sorted = |sort| names(&rows(&r, &Query { sort: Some(sort), ..Query::default() }));
    assert_eq!(sorted(Sort::Exclusive), ["A", "B", "C"]);
    assert_eq!(sorted(Sort::Inclusive), ["C", "A", "B"]);
    assert_eq!(sorted(Sort::Calls), ["B", "A", "C"]);
    assert_eq!(sorted(Sort::Callee), ["C", "A", "B"]);
    assert_eq!(sorted(Sort::Recursion), ["A", "B", "C"]);
    assert_eq!(sorted(Sort::InclusiveCpu), ["A", "C", "B"]);
    assert_eq!(sorted(Sort::Name), ["A", "B", "C"]);
    let limited = functions(&r, &Query { limit: Some(2), ..Query::default() }).expect("rows");
    assert_eq!((names(&limited.rows), limited.left_out), (vec!["A".to_owned(), "B".to_owned()], 1));
}

#[test]
fn every_sort_has_a_name() {
    for (name, sort) in Sort::ALL {
        assert_eq!(Sort::parse(name), Some(sort));
    }
    assert_eq!(Sort::parse("exclusive_cpu_ns"), Some(Sort::ExclusiveCpu));
    assert_eq!(Sort::parse("max_recursion"), Some(Sort::Recursion));
    assert_eq!(Sort::parse("colour"), None);
}

#[test]
fn threads_have_totals() {
    let r = recording_with(
        "thread 1 main\n  outside 9\n  Main 1 50\n    A 3 20\n      [suspended: GC] 1 4\n      [JIT] 1 2\nthread 2\n  B 1 1\n",
        HookCost::default(),
    );
    let view = threads(&r, &Query::default()).expect("rows");
    let first = &view.rows[0];
    assert_eq!((first.running_ns, first.outside_ns, first.suspended_ns), (72, 9, 4));
    assert_eq!((first.calls, first.max_depth, first.cpu_ns, first.thread.name.as_str()), (4, 2, Some(5), "main"));
    assert_eq!(view.rows.len(), 2);
    let sorted = threads(&r, &Query { sort: Some(Sort::Name), limit: Some(1), ..Query::default() }).expect("rows");
    assert_eq!((sorted.rows[0].thread.id, sorted.left_out), (2, 1));
}

#[test]
fn a_threads_raw_times_are_what_was_measured() {
    let r = recording_with("thread 1\n  outside 9\n  Main 1 50\n    A 3 20\n      [suspended: GC] 1 4\n", COST);
    for raw in [false, true] {
        let row = threads(&r, &Query { raw, ..Query::default() }).expect("rows").rows[0];
        assert_eq!(row.running_ns + row.outside_ns + row.suspended_ns + row.profiler_ns, 83);
        assert_eq!(row.profiler_ns, 2 + (1 + 6) + 3);
    }
}

#[test]
fn modules_add_up_their_functions() {
    let r = recording("thread 1\n  Main 1 5 1\n    A 2 1 1\n      libc!x 3 7\n      [JIT] 1 9\n");
    let view = modules(&r, &Query::default()).expect("rows");
    let found: Vec<_> =
        view.rows.iter().map(|m| (m.module.name.as_str(), m.functions, m.calls, m.exclusive_ns)).collect();
    assert_eq!(found, [("", 1, 1, 9), ("libc.so.6", 1, 3, 7), ("Shop", 2, 3, 6)]);
    assert_eq!(view.rows[2].exclusive_cpu_ns, Some(2));
}

#[test]
fn losses_come_in_order_and_can_be_cut_by_time() {
    let mut r = recording("thread 1\n  Main 1 5\n");
    let loss = |reason, first_ns, last_ns| Loss::new(reason, 2, first_ns, last_ns);
    r.processes[0].losses = vec![loss(LossReason::StackFull, 5, 9), loss(LossReason::TreeFull, 20, 30)];
    let reasons =
        |query: &Query| -> Vec<_> { losses(&r, query).expect("rows").rows.iter().map(|l| l.loss.reason).collect() };
    assert_eq!(reasons(&Query::default()), [LossReason::TreeFull, LossReason::StackFull]);
    assert_eq!(reasons(&Query { since_ns: Some(10), ..Query::default() }), [LossReason::TreeFull]);
    assert_eq!(reasons(&Query { until_ns: Some(19), ..Query::default() }), [LossReason::StackFull]);
}

#[test]
fn a_metric_orders_rows_and_says_what_they_have_of_it() {
    let r = recording("thread 1\n  A 9 10 3\n    B 2 8 8\n");
    let by = |metric| functions(&r, &Query { metric: Some(metric), ..Query::default() }).expect("rows");
    let shown = |metric| {
        let view = by(metric);
        let row = |row: &FunctionRow<'_>| format!("{} {} {}", row.function.name(), row.amount.own, row.amount.total);
        (view.rows.iter().map(row).collect::<Vec<_>>().join(", "), view.conditions.total)
    };
    assert_eq!(shown(&WALL), ("A 10 18, B 8 8".to_owned(), 18));
    assert_eq!(shown(&CPU), ("B 8 8, A 3 11".to_owned(), 11));
    assert_eq!(shown(&CALLS), ("A 9 9, B 2 2".to_owned(), 11));
    let times = |metric| by(metric).rows.iter().map(|row| row.times).collect::<Vec<_>>();
    assert_eq!(times(&WALL), times(&CALLS), "the columns stay");
}

#[test]
fn metrics_that_were_not_recorded_and_views_without_any_are_refused() {
    let mut r = recording("thread 1\n  A 9 10 3\n");
    r.processes[0].calls.iter_mut().for_each(|calls| calls.cpu_measured = false);
    let query = Query { metric: Some(&CPU), ..Query::default() };
    let refused = functions(&r, &query).expect_err("there is no CPU time");
    assert_eq!(refused, QueryProblem::MetricNotRecorded { metric: &CPU });
    assert_eq!(refused.to_string(), "the metric cpu needs the instrument 'calls' or 'cpu', which did not record it");
    assert_eq!(tree(&r, &query, &TreeOptions::default()).expect_err("nor here"), refused);
    let query = Query { metric: Some(&WALL), ..Query::default() };
    let option = |problem| match problem {
        QueryProblem::NotAvailable { option, .. } => option,
        other => panic!("{other}"),
    };
    assert_eq!(option(summary(&r, &query).expect_err("no metric")), "--metric");
    assert_eq!(option(threads(&r, &query).expect_err("no metric")), "--metric");
    assert_eq!(option(modules(&r, &query).expect_err("no metric")), "--metric");
    assert_eq!(option(losses(&r, &query).expect_err("no metric")), "--metric");
}
