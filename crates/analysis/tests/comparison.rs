//! Two sides of recordings whose answers were computed by hand.

use clrscope_analysis::{
    CALLS, CPU, EXCEPTIONS, Gate, NamedRecording, NativeCode, Outcome, PathChange, Query, QueryProblem, SAMPLES, Side,
    Sides, Sort, Verdict, WALL, function_changes, judge, name_native_code,
};
use clrscope_contract::request::Pattern;
use clrscope_recording::model::{Clock, Recording, SourceKind, ThreadRole};
use clrscope_recording::testing::ascii_trees::recording;
use clrscope_recording::testing::samples::HandSampled;

fn named(all: &[Recording]) -> Vec<NamedRecording<'_>> {
    let one = |(at, recording)| NamedRecording { name: format!("run {at}"), recording };
    all.iter().enumerate().map(one).collect()
}

fn sides<'a>(before: &'a [Recording], after: &'a [Recording]) -> Sides<'a> {
    Sides { before: named(before), after: named(after), chosen: None }
}

fn by_calls() -> Query {
    Query { metric: Some(&CALLS), ..Query::default() }
}

/// Name, median before and after, verdict.
fn line(row: &PathChange<'_>) -> String {
    let [before, after] = [row.own.before.median, row.own.after.median];
    format!("{} {before} {after} {}", row.function.name(), row.own.verdict.name())
}

fn lines(sides: &Sides<'_>, query: &Query) -> Vec<String> {
    function_changes(sides, query).expect("rows").rows.iter().map(line).collect()
}

fn outcome(sides: &Sides<'_>, gate: &str) -> Outcome {
    judge(sides, &Query::default(), &Gate::parse(gate).expect("a gate")).expect("a judgement").outcome
}

#[test]
fn counts_of_single_recordings_are_exact_and_the_largest_change_comes_first() {
    let before = [recording("thread 1\n  Main 1 1\n    A 10 1\n    B 5 1\n    Old 1 1\nthread 2\n  A 3 1\n")];
    let after = [recording("thread 1\n  Main 1 1\n    A 20 1\n    B 5 1\n    New 2 1\n")];
    let sides = sides(&before, &after);
    let expected = ["A 13 20 more", "New 0 2 new", "Old 1 0 gone", "B 5 5 same", "Main 1 1 same"];
    assert_eq!(lines(&sides, &by_calls()), expected);
    let found =
        function_changes(&sides, &Query { limit: Some(2), sort: Some(Sort::Name), ..by_calls() }).expect("rows");
    assert_eq!(found.rows.iter().map(line).collect::<Vec<_>>(), ["A 13 20 more", "B 5 5 same"]);
    assert_eq!((found.left_out, found.verdicts.changed, found.verdicts.same), (3, 3, 2));
    assert_eq!((found.total.before.median, found.total.after.median), (20.0, 28.0));
    let one = Query { functions: vec![Pattern::parse("New").expect("a pattern")], ..by_calls() };
    assert_eq!(lines(&sides, &one), ["New 0 2 new"], "it is on one side alone");
}

#[test]
fn sets_have_medians_and_a_change_within_what_runs_differ_by_is_none() {
    let run = |a: u32, b: u32| recording(&format!("thread 1\n  A {a} 1\n  B {b} 1\n  C 7 1\n"));
    let before = [run(100, 10), run(102, 30), run(101, 20)];
    let after = [run(200, 20), run(202, 40), run(201, 30)];
    let sides = sides(&before, &after);
    assert_eq!(lines(&sides, &by_calls()), ["A 101 201 more", "B 20 30 unclear", "C 7 7 same"]);
    assert_eq!(outcome(&sides, "A:calls>+50%"), Outcome::Failed);
    assert_eq!(outcome(&sides, "B:calls>+10%"), Outcome::Unclear);
    assert_eq!(outcome(&sides, "C:calls>+0"), Outcome::Passed);
    assert_eq!(outcome(&sides, "*:calls>+200%"), Outcome::Passed);
}

#[test]
fn a_gate_on_a_total_counts_each_path_once() {
    let before = [recording("thread 1\n  Main 1 1000000\n    A 1 2000000\n      A 1 3000000\n        B 1 5000000\n")];
    let sides = sides(&before, &before);
    let judged = |gate: &str| {
        let gate = Gate::parse(gate).expect("a gate");
        judge(&sides, &Query::default(), &gate).expect("a judgement").change.after.median
    };
    assert_eq!([judged("A:wall>1s"), judged("A:wall-self>1s"), judged("*:wall>1s")], [10e6, 5e6, 11e6]);
    assert_eq!(judged("B:wall-share>50%"), 5.0 / 11.0);
}

/// Gate that would pass whatever happens.
#[test]
fn a_gate_on_calls_that_were_not_all_counted_is_an_error() {
    let inlined = |calls: u32| {
        let mut all = recording(&format!("thread 1\n  Main 1 1\n    A {calls} 1\n"));
        let a = all.processes[0].functions.iter().position(|function| function.name == "A").expect("a function");
        all.processes[0].functions[a].flags.inlined = true;
        [all]
    };
    let (before, after) = (inlined(10), inlined(1_000));
    let sides = sides(&before, &after);
    let judged = |gate: &str| judge(&sides, &Query::default(), &Gate::parse(gate).expect("a gate"));
    let problem = judged("A:calls>+5%").expect_err("no judgement").problem;
    assert_eq!(problem, QueryProblem::CallsNotCounted { wanted: "A".to_owned() });
    assert_eq!(judged("A:calls>500").map(|judged| judged.outcome), Ok(Outcome::Failed), "so many at least");
    assert_eq!(judged("Main:calls>+0").map(|judged| judged.outcome), Ok(Outcome::Passed));
    assert_eq!(lines(&sides, &by_calls())[0], "A 10 1000 unclear");
}

/// So many samples in `Hot` and in `Cold`.
fn sampled(hot: u64, cold: u64) -> Recording {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    (0..hot).for_each(|step| _ = taken.cpu(main, step, "App.P::Main > App.P::Hot"));
    (0..cold).for_each(|step| _ = taken.cpu(main, hot + step, "App.P::Main > App.P::Cold"));
    taken.recording()
}

/// Places in a library move with each of its builds, and were gone and new in each comparison.
#[test]
fn native_code_without_names_is_compared_by_library() {
    let taken = |base: u64| {
        let mut taken = HandSampled::default();
        let main = taken.thread("", ThreadRole::Main);
        let place = |at: u64| format!("libcoreclr.so!libcoreclr.so+{:#x}", base + at);
        (0..30)
            .for_each(|step| _ = taken.cpu(main, step, &format!("{} > App.P::Main > {}", place(1), place(step % 3))));
        let mut recording = taken.recording();
        name_native_code(&mut recording);
        recording
    };
    let (before, after) = ([taken(0x100)], [taken(0x900)]);
    let sides = sides(&before, &after);
    let query = Query { metric: Some(&SAMPLES), ..Query::default() };
    assert_eq!(lines(&sides, &query), ["App.P::Main 0 0 unclear", "[libcoreclr.so] 30 30 unclear"]);
    let places = Query { native_code: Some(NativeCode::Places), ..query };
    assert_eq!(lines(&sides, &places).len(), 3 + 3 + 1);
}

#[test]
fn samples_of_single_recordings_have_the_intervals_of_their_numbers() {
    let (before, after) = ([sampled(300, 40)], [sampled(420, 50)]);
    let sides = sides(&before, &after);
    let query = Query { metric: Some(&SAMPLES), ..Query::default() };
    assert_eq!(
        lines(&sides, &query),
        ["App.P::Hot 300 420 more", "App.P::Cold 40 50 unclear", "App.P::Main 0 0 unclear"]
    );
    let found = function_changes(&sides, &query).expect("rows");
    assert_eq!(found.verdicts.unclear, 1, "what has nothing of its own is not counted");
    let own = &found.rows[0].own;
    assert!(own.low > 60.0 && own.low < 70.0 && own.high > 170.0 && own.high < 180.0, "{own:?}");
    // Of shares next to nothing changed.
    assert_eq!(found.rows[0].own_share.verdict, Verdict::Unclear);
    assert_eq!(outcome(&sides, "Hot:samples>+5%"), Outcome::Failed);
    assert_eq!(outcome(&sides, "Hot:cpu-share>+10pt"), Outcome::Passed);
    assert_eq!(outcome(&sides, "Hot:cpu-share>90%"), Outcome::Unclear);
}

#[test]
fn times_of_calls_are_as_doubtful_as_their_clock() {
    let run = |a: u64| {
        let mut all = recording(&format!("thread 1\n  Main 1 1000000\n    A 5 {a} {a}\n"));
        all.processes[0].calls.as_mut().expect("calls").clock = Clock::Tsc;
        [all]
    };
    let (before, after, slow) = (run(100_000_000), run(110_000_000), run(300_000_000));
    let verdict = |before: &[Recording], after: &[Recording], metric| {
        let query = Query { metric: Some(metric), ..Query::default() };
        function_changes(&sides(before, after), &query).expect("rows").rows[0].own.verdict
    };
    // Measured at each call, and in steps of a millisecond.
    assert_eq!(verdict(&before, &after, &WALL), Verdict::More);
    assert_eq!(verdict(&before, &after, &CPU), Verdict::Unclear);
    assert_eq!(verdict(&before, &slow, &CPU), Verdict::More);
    let total = sides(&before, &slow).total(&Query { metric: Some(&CPU), ..Query::default() }).expect("a total");
    let change = total.change;
    assert_eq!(change.verdict, Verdict::More);
    assert!(change.before.high < 150e6 && change.before.low > 70e6, "{change:?}");
}

#[test]
fn lambdas_of_the_next_build_are_those_of_the_build_before() {
    let build = |number: u32, line: u32, calls: u32| {
        let mut built = recording(&format!("thread 1\n  Main 1 1\n    First {calls} 1\n    Second 5 1\n"));
        for (at, function) in built.processes[0].functions.iter_mut().enumerate().skip(2) {
            function.name = "App.Program::Main".into();
            function.signature = format!("App.Program.Main() (lambda, Program.cs:{})", line + at as u32);
            function.raw_name = format!("App.Program+<>c::<Main>b__{number}_{}", at - 2);
            function.source = SourceKind::Lambda;
        }
        [built]
    };
    let (before, after) = (build(0, 10, 3), build(4, 70, 4));
    let found = lines(&sides(&before, &after), &by_calls());
    assert_eq!(found, ["App.Program::Main 3 4 more", "App.Program::Main 5 5 same", "Main 1 1 same"]);
}

#[test]
fn what_can_not_be_compared_is_said_with_the_recording_that_lacks_it() {
    let (counted, taken) = ([recording("thread 1\n  A 1 1\n")], [sampled(1, 1)]);
    let problem = |query: &Query| function_changes(&sides(&counted, &taken), query).expect_err("no comparison");
    let nothing = problem(&Query::default());
    assert_eq!(nothing.recording, None);
    // CPU time is recorded on both sides, by instruments whose numbers differ.
    let expected = QueryProblem::NoCommonMetric { before: vec!["wall", "cpu", "calls"], after: vec!["cpu", "samples"] };
    assert_eq!(nothing.problem, expected);
    let others = problem(&Query { metric: Some(&CPU), ..Query::default() });
    assert_eq!(others.problem, QueryProblem::MetricOfOthers { metric: &CPU, instruments: vec!["calls", "cpu"] });
    let missing = problem(&Query { metric: Some(&SAMPLES), ..Query::default() });
    assert_eq!(missing.recording.as_deref(), Some("run 0"));
    assert_eq!(missing.problem, QueryProblem::MetricNotRecorded { metric: &SAMPLES });
    let gate = Gate::parse("Nowhere.*:calls>+0").expect("a gate");
    let judged = judge(&sides(&counted, &counted), &Query::default(), &gate).expect_err("a gate that can't fail");
    assert!(matches!(judged.problem, QueryProblem::NoFunction { .. }), "{judged}");
    assert!(sides(&counted, &counted).metric(&Query { metric: Some(&EXCEPTIONS), ..Query::default() }).is_err());
    let each: Vec<Side> = sides(&counted, &taken).each().map(|(side, _)| side).collect();
    assert_eq!(each, [Side::Before, Side::After]);
}
