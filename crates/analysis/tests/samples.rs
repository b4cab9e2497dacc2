//! Views of samples that the tests take themselves.

use clrscope_analysis::{
    CodePlace, Finding, FindingKind, Forest, FoundPlace, FunctionRow, InliningKnowledge, LinesView, NativeCode, Pieces,
    Query, QueryProblem, SAMPLES, SampleKind, Sort, ThreadSelector, Tiers, TreeOptions, TreePlace, callees, callers,
    functions, leave_inlined_out, lines, modules, name_native_code, share_bounds, summary, threads, tree,
};
use clrscope_contract::request::Pattern;
use clrscope_recording::model::{
    Activity, CallsInfo, Inlining, Part, Recording, SourceKind, ThreadRole, ThreadState, Tier,
};
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

/// A program that sorts and hashes, compiles, collects and reads, on a main thread, one of the pool
/// and an idle one.
fn program() -> HandSampled {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    let pool = taken.thread(".NET TP Worker", ThreadRole::Pool);
    taken.thread("idle", ThreadRole::Pool);
    let mut step = 0;
    let mut take = |count: u64, thread, path: &str, activity| {
        for _ in 0..count {
            step += 1;
            taken.cpu(thread, step, path).activity = activity;
        }
    };
    take(40, main, "App.P::Main@1 > App.P::Sort@5 > System.Array::Sort > App.P::Compare@2", Activity::None);
    take(20, main, "App.P::Main@1 > App.P::Sort@5 > System.Array::Sort", Activity::None);
    take(10, main, "App.P::Main@1 > App.P::Sort@5 > System.Array::Sort > libc.so.6!memmove", Activity::None);
    take(10, main, "App.P::Main@9 > libcoreclr.so!prestub > libclrjit.so!compile > libc.so.6!memmove", Activity::None);
    take(5, main, "App.P::Main@9 > libcoreclr.so!alloc", Activity::Gc);
    take(15, pool, "System.Pool::Run > App.P::Hash@3 > App.P::Hash@3 > kernel!read", Activity::None);
    taken
}

fn rows(recording: &Recording, query: &Query) -> Vec<String> {
    let view = functions(recording, query).expect("rows");
    let row = |row: &FunctionRow<'_>| {
        let amount = row.amount;
        assert_eq!(amount.own, amount.samples.own * STEP_NS, "each sample stands for a step");
        format!("{} {} {}", row.function.name(), amount.samples.own, amount.samples.total)
    };
    view.rows.iter().map(row).collect()
}

fn named(text: &str) -> Query {
    Query { functions: vec![Pattern::parse(text).expect("a pattern")], ..Query::default() }
}

#[test]
fn samples_count_along_their_stacks() {
    let recording = program().recording();
    let expected = [
        "App.P::Compare 40 40",
        "System.Array::Sort 20 70",
        "memmove 20 20",
        "read 15 15",
        "alloc 5 5",
        "App.P::Hash 0 15",
        "App.P::Main 0 85",
        "App.P::Sort 0 70",
        "System.Pool::Run 0 15",
        "compile 0 10",
        "prestub 0 10",
    ];
    assert_eq!(rows(&recording, &Query::default()), expected);
    let view = functions(&recording, &Query::default()).expect("rows");
    let conditions = &view.conditions;
    assert_eq!((conditions.metric.name, conditions.samples, conditions.total), ("cpu", 100, 100 * STEP_NS));
    assert_eq!(view.rows[5].max_recursion, 2);
    let counted = functions(&recording, &Query { metric: Some(&SAMPLES), ..Query::default() }).expect("rows");
    assert_eq!((counted.rows[0].amount.own, counted.conditions.total), (40, 100));
    let (low, high) = share_bounds(0.4, conditions.samples);
    assert!(low > 0.30 && low < 0.32 && high > 0.49 && high < 0.51, "{low} {high}");
}

#[test]
fn filters_choose_threads_and_times() {
    let recording = program().recording();
    let pool = Query { threads: vec![ThreadSelector::Number(2)], ..Query::default() };
    assert_eq!(rows(&recording, &pool), ["read 15 15", "App.P::Hash 0 15", "System.Pool::Run 0 15"]);
    let times = Query { since_ns: Some(36 * STEP_NS), until_ns: Some(45 * STEP_NS), ..Query::default() };
    let expected = ["App.P::Compare 5 5", "System.Array::Sort 5 10", "App.P::Main 0 10", "App.P::Sort 0 10"];
    assert_eq!(rows(&recording, &times), expected);
    assert_eq!(threads(&recording, &times).expect("rows").rows[0].amount.samples.own, 10);
    let refused = functions(&recording, &Query { raw: true, ..Query::default() });
    assert!(matches!(refused, Err(QueryProblem::NotAvailable { option: "--raw", .. })));
}

#[test]
fn a_sleep_of_many_samples_counts_by_the_part_that_is_wanted() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    let sleep = taken.wall(main, 10, "App.P::Main > System.Threading.Thread::Sleep");
    (sleep.count, sleep.weight_ns, sleep.state) = (100, 100 * STEP_NS, ThreadState::Sleeping);
    let recording = taken.recording();
    let own = |since: u64, until: u64| {
        let query = Query { since_ns: Some(since * STEP_NS), until_ns: Some(until * STEP_NS), ..Query::default() };
        let view = functions(&recording, &query).expect("rows");
        (view.conditions.metric.name, view.conditions.total / STEP_NS, view.conditions.samples)
    };
    assert_eq!(own(0, 1_000), ("wall", 100, 100));
    assert_eq!(own(20, 45), ("wall", 25, 25));
    assert_eq!(own(100, 1_000), ("wall", 10, 10));
    assert_eq!((own(200, 300), own(0, 5)), (("wall", 0, 0), ("wall", 0, 0)));
}

#[test]
fn trees_callers_and_callees_are_made_of_stacks() {
    let recording = program().recording();
    let view = tree(&recording, &Query::default(), &TreeOptions { min_share: 0.1, max_depth: None }).expect("a tree");
    let node = |node: &clrscope_analysis::TreeNode<'_>| {
        format!("{} {} {}", "-".repeat(node.depth as usize), node.function.name(), node.amount.samples.total)
    };
    let expected = [
        " App.P::Main 85",
        "- App.P::Sort 70",
        "-- System.Array::Sort 70",
        "--- App.P::Compare 40",
        "--- memmove 10",
        "- prestub 10",
        "-- compile 10",
        "--- memmove 10",
        " System.Pool::Run 15",
        "- App.P::Hash 15",
        "-- App.P::Hash 15",
        "--- read 15",
    ];
    assert_eq!(view.nodes.iter().map(node).collect::<Vec<_>>(), expected);
    let edges = |view: clrscope_analysis::NeighboursView<'_>| {
        let row = |row: &clrscope_analysis::EdgeRow<'_>| {
            format!("{} {}", row.function.map_or("(thread)", |function| function.name()), row.amount.samples.total)
        };
        view.items[0].rows.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(
        edges(callers(&recording, &named("memmove")).expect("callers")),
        ["System.Array::Sort 10", "compile 10"]
    );
    assert_eq!(
        edges(callees(&recording, &named("*::Main")).expect("callees")),
        ["App.P::Sort 70", "prestub 10", "alloc 5"]
    );
}

#[test]
fn modules_have_what_their_functions_took_and_what_led_through_them() {
    let recording = program().recording();
    let view = modules(&recording, &Query::default()).expect("rows");
    let row = |row: &clrscope_analysis::ModuleRow<'_>| {
        let samples = row.amount.samples;
        format!("{} {} {} {}", row.module.name, row.functions, samples.own, samples.total)
    };
    let expected = [
        "App 4 40 100",
        "System.Private.CoreLib 2 20 85",
        "libc.so.6 1 20 20",
        "[kernel] 1 15 15",
        "libcoreclr.so 2 5 15",
        "libclrjit.so 1 0 10",
    ];
    assert_eq!(view.rows.iter().map(row).collect::<Vec<_>>(), expected);
}

#[test]
fn just_my_code_folds_what_own_code_calls_into_it() {
    let recording = program().recording();
    let mine = Query { just_my_code: true, ..Query::default() };
    let expected = ["App.P::Compare 40 40", "App.P::Sort 30 70", "App.P::Hash 15 15", "App.P::Main 15 85"];
    assert_eq!(rows(&recording, &mine), expected, "nothing is lost");
    let mut taken = program();
    taken.cpu(1, 200, "System.Threading.TimerQueue::Fire > System.String::Concat");
    taken.filters(";just-my-code");
    let mut expected = expected.to_vec();
    expected.push("System.Threading.TimerQueue::Fire 1 1");
    assert_eq!(rows(&taken.recording(), &Query::default()), expected, "asked for when the program ran");
    // Below a thread's start in the C library there is a method, which says more.
    let mut taken = program();
    taken.cpu(1, 200, "libc.so.6!start_thread > System.Threading.Timer::Fire > System.String::Concat");
    taken.cpu(1, 201, "libc.so.6!start_thread > libcoreclr.so!sweep");
    let last = rows(&taken.recording(), &mine);
    assert_eq!(last[4..], ["System.Threading.Timer::Fire 1 1", "start_thread 1 1"]);
    let mut taken = program();
    taken.filters(";exclude=App.P::Sort");
    assert_eq!(rows(&taken.recording(), &Query::default())[6..8], ["App.P::Main 0 85", "System.Pool::Run 0 15"]);
}

/// Only pages folded them: tables of text had a row for each place.
#[test]
fn native_code_without_names_is_one_frame_of_its_library() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    let place = |place: &str| format!("libcoreclr.so!libcoreclr.so+{place}");
    let [a, b, c, jit] = [place("0x10"), place("0x20"), place("0x30"), "libclrjit.so!libclrjit.so+0x8".to_owned()];
    let paths = [
        (1, a.clone()),
        (2, format!("{a} > {b} > App.P::Main > {c}")),
        (4, format!("{a} > {c} > App.P::Main > {a} > {b} > {jit}")),
        // A function with a name ends the frame.
        (8, format!("{b} > libcoreclr.so!prestub > {b} > {c}")),
    ];
    let mut step = 0;
    for (count, path) in &paths {
        for _ in 0..*count {
            step += 1;
            taken.cpu(main, step, path);
        }
    }
    let mut recording = taken.recording();
    name_native_code(&mut recording);
    let expected = ["[libcoreclr.so] 11 15", "[libclrjit.so] 4 4", "App.P::Main 0 6", "prestub 0 8"];
    assert_eq!(rows(&recording, &Query::default()), expected);
    let nodes = |query: &Query| {
        let view = tree(&recording, query, &TreeOptions::default()).expect("a tree");
        let node = |node: &clrscope_analysis::TreeNode<'_>| {
            let amount = node.amount.samples;
            format!("{} {} {} {}", "-".repeat(node.depth as usize), node.function.name(), amount.own, amount.total)
        };
        view.nodes.iter().map(node).collect::<Vec<_>>()
    };
    let expected = [
        " [libcoreclr.so] 1 15",
        "- prestub 0 8",
        "-- [libcoreclr.so] 8 8",
        "- App.P::Main 0 6",
        "-- [libcoreclr.so] 2 6",
        "--- [libclrjit.so] 4 4",
    ];
    assert_eq!(nodes(&Query::default()), expected);
    assert_eq!(nodes(&Query { per_thread: true, ..Query::default() }), expected, "tree by tree");
    let of = |query: Query| Query { functions: named("*prestub").functions, ..query };
    let edges = |found: clrscope_analysis::NeighboursView<'_>| {
        let row = |row: &clrscope_analysis::EdgeRow<'_>| {
            format!("{} {}", row.function.map_or("", |function| function.name()), row.amount.samples.total)
        };
        found.items[0].rows.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(edges(callers(&recording, &of(Query::default())).expect("callers")), ["[libcoreclr.so] 8"]);
    assert_eq!(edges(callees(&recording, &of(Query::default())).expect("callees")), ["[libcoreclr.so] 8"]);
    // As they are, place by place.
    let places = Query { native_code: Some(NativeCode::Places), ..Query::default() };
    let expected = [
        "libcoreclr.so+0x30 10 14",
        "libclrjit.so+0x8 4 4",
        "libcoreclr.so+0x10 1 7",
        "App.P::Main 0 6",
        "libcoreclr.so+0x20 0 14",
        "prestub 0 8",
    ];
    assert_eq!(rows(&recording, &places), expected);
    assert_eq!(nodes(&places).len(), 1 + 3 + 5 + 4);
    assert_eq!(edges(callers(&recording, &of(places)).expect("callers")), ["libcoreclr.so+0x20 8"]);
}

/// The recording of a program that ran for only so many steps and worked in most of them: in a
/// program that hardly works, nothing stands out.
fn lasting(taken: HandSampled, steps: u64) -> Recording {
    let mut recording = taken.recording();
    recording.run.duration_ns = steps * STEP_NS;
    recording
}

#[test]
fn the_summary_says_whose_code_the_time_went_to() {
    let mut taken = program();
    taken.cpu(1, 300, "App.P::Main > libx.so!hook").profiler = true;
    taken.cpu(1, 301, "");
    let recording = lasting(taken, 150);
    let view = summary(&recording, &Query::default()).expect("a summary");
    let kinds: Vec<_> = view.kinds.iter().map(|row| (row.kind, row.samples)).collect();
    let expected = [
        (SampleKind::Own, 40),
        (SampleKind::Framework, 20),
        (SampleKind::Jit, 10),
        (SampleKind::Gc, 5),
        (SampleKind::Native, 10),
        (SampleKind::Kernel, 15),
        (SampleKind::Profiler, 1),
        (SampleKind::Unknown, 1),
    ];
    assert_eq!(kinds, expected);
    let own: Vec<_> = view.own.iter().map(|own| (own.row.function.name(), own.work_ns / STEP_NS)).collect();
    assert_eq!(own, [("App.P::Compare", 40), ("App.P::Sort", 30), ("App.P::Main", 16), ("App.P::Hash", 15)]);
    let calls: Vec<_> = view.own[2].calls.iter().flatten().map(|(of, ns)| (of.name(), ns / STEP_NS)).collect();
    assert_eq!(calls, [("App.P::Sort", 70), ("prestub", 10), ("alloc", 5)]);
    let seen: Vec<_> = view.threads.rows.iter().map(|row| (row.thread.id, row.amount.samples.own)).collect();
    assert_eq!((seen, view.threads.others), (vec![(1, 87), (2, 15)], 1), "who did nothing is counted, not listed");
    let said: Vec<&str> = view.findings.iter().map(|finding| finding.text.as_str()).collect();
    let expected = [
        "App.P::Compare and the framework code that it calls used 39.2 % of the CPU time",
        "14.7 % of the CPU time was spent in the kernel, most of it in calls from App.P::Hash",
        "9.8 % of the CPU time went to the compilation of methods",
    ];
    assert_eq!(said, expected);
    let sampling = &view.conditions.sampling[0];
    assert_eq!(
        (sampling.samples, sampling.complete, sampling.profiler, sampling.reached_ns),
        (102, 102, 1, 4 * STEP_NS)
    );
}

#[test]
fn samples_are_counted_by_what_is_known_of_inlined_methods() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    ["App.P::Old", "App.P::Older", "System.Old::Run"].iter().for_each(|old| taken.tier(old, Tier::Unknown));
    let all = [Inlining::None, Inlining::Named, Inlining::Unknown, Inlining::Named, Inlining::Unsaid];
    for (step, inlining) in (1..).zip(all) {
        taken.cpu(main, step, "System.Old::Run > App.P::Main > App.P::Old").inlining = inlining;
    }
    taken.wall(main, 9, "App.P::Older");
    let recording = taken.recording();
    let view = summary(&recording, &Query::default()).expect("a summary");
    let known: Vec<_> = view.conditions.sampling.iter().map(|of| of.inlining).collect();
    let of_cpu = InliningKnowledge { none: 1, named: 2, unknown: 1, older_methods: 1 };
    let of_wall = InliningKnowledge { older_methods: 1, ..InliningKnowledge::default() };
    assert_eq!(known, [of_cpu, of_wall], "methods of the framework are not counted");
}

#[test]
fn without_inlined_methods_their_time_is_that_of_the_methods_around_them() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    ["App.P::Get", "App.P::Within"].iter().for_each(|inlined| taken.tier(inlined, Tier::Inlined));
    let paths = ["App.P::Main > App.P::Get", "App.P::Main > App.P::Get > App.P::Within > System.X::Y", "App.P::Main"];
    for (step, path) in (1..).zip(paths) {
        taken.cpu(main, step, path);
    }
    let mut recording = taken.recording();
    let mut all = rows(&recording, &Query::default());
    all.sort();
    assert_eq!(all, ["App.P::Get 1 2", "App.P::Main 1 3", "App.P::Within 0 1", "System.X::Y 1 1"]);
    leave_inlined_out(&mut recording);
    let query = Query { no_inlined: true, ..Query::default() };
    let mut all = rows(&recording, &query);
    all.sort();
    assert_eq!(all, ["App.P::Main 2 3", "System.X::Y 1 1"]);
}

/// Under probes most of the time was the profiler's, and the probed method stood out with it: 98.1
/// %, where it had 4.5 %.
#[test]
fn time_in_the_profiler_is_not_the_work_of_who_calls_it() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    let probed = "App.P::Main > App.P::IsOdd > libclrscope_agent.so!enter";
    let copies = format!("{probed} > libc.so.6!memcpy");
    for step in 0..100 {
        let path = ["App.P::Main > App.P::Sum", probed, probed, &copies][step % 4];
        taken.cpu(main, step as u64 + 1, path).profiler = step % 4 > 0;
    }
    let recording = lasting(taken, 200);
    let view = summary(&recording, &Query::default()).expect("a summary");
    let own: Vec<_> = view.own.iter().map(|own| (own.row.function.name(), own.work_ns / STEP_NS)).collect();
    assert_eq!(own, [("App.P::Sum", 25)], "what did nothing else is no row");
    assert!(view.own.iter().all(|own| own.calls.iter().all(Option::is_none)));
    let framework: Vec<&str> = view.framework.iter().map(|row| row.function.name()).collect();
    assert_eq!(framework, ["memcpy"]);
    let said: Vec<&str> = view.findings.iter().map(|finding| finding.text.as_str()).collect();
    let expected = [
        "App.P::Sum and the framework code that it calls used 25.0 % of the CPU time",
        "75.0 % of the CPU time was the profiler's own",
    ];
    assert_eq!(said, expected);
}

/// Two instantiations of one generic method used 47 % of the CPU time each, and only the first was
/// said.
#[test]
fn instantiations_of_a_method_stand_out_together() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    for step in 0..100 {
        let path = ["App.Repo::Spin", "App.Other::Spin", "App.Repo::Find"][[0, 1, 0, 1, 2][step % 5]];
        taken.cpu(main, step as u64 + 1, &format!("App.P::Main > {path}"));
    }
    let mut recording = taken.recording();
    for (function, arguments) in [("App.Repo::Spin", "int"), ("App.Other::Spin", "string")] {
        let known =
            recording.processes[0].functions.iter_mut().find(|known| known.name == function).expect("a function");
        (known.name, known.signature) = ("App.Repo::Spin".into(), format!("App.Repo<{arguments}>.Spin()"));
    }
    let view = summary(&recording, &Query::default()).expect("a summary");
    assert_eq!(view.own.len(), 3, "rows stay apart");
    assert_eq!(
        view.findings[0].text,
        "App.Repo::Spin and the framework code that it calls used 80.0 % of the CPU time"
    );
}

/// The compiler runs on threads that begin in a library: what stood out was that its own `Main`
/// used 5.8 % of the CPU time.
#[test]
fn most_of_the_time_below_a_library_stands_out_where_own_code_has_less() {
    let mut taken = HandSampled::default();
    let (main, pool) = (taken.thread("", ThreadRole::Main), taken.thread(".NET TP Worker", ThreadRole::Pool));
    let compile = "System.Pool::Run > Lib.Compiler::Types > Lib.Compiler::Methods";
    let mut step = 0;
    let mut take = |count: u64, thread, path: &str| {
        for _ in 0..count {
            step += 1;
            taken.cpu(thread, step, path);
        }
    };
    take(40, pool, &format!("{compile} > Lib.Binder::Bind"));
    take(30, pool, &format!("{compile} > Lib.Emitter::Emit"));
    take(5, pool, "System.Pool::Run > Lib.Compiler::Types");
    take(25, main, "App.P::Main > Lib.Files::Write");
    let recording = lasting(taken, 200);
    let said = |query: &Query| -> Vec<String> {
        summary(&recording, query).expect("a summary").findings.into_iter().map(|finding| finding.text).collect()
    };
    let all = said(&Query::default());
    assert_eq!(all[0], "Lib.Compiler::Methods and what it calls used 70.0 % of the CPU time");
    assert_eq!(all[1], "App.P::Main and the framework code that it calls used 25.0 % of the CPU time");
    let of_main = said(&Query { threads: vec![ThreadSelector::Number(1)], ..Query::default() });
    assert_eq!(of_main[0], "App.P::Main and the framework code that it calls used 100.0 % of the CPU time");
}

#[test]
fn time_in_the_collector_proposes_the_instrument_that_knows_why() {
    let said = |more: u64| {
        let mut taken = program();
        for step in 0..more {
            taken.cpu(1, 200 + step, "App.P::Main@9 > libcoreclr.so!alloc").activity = Activity::Gc;
        }
        let findings = summary(&lasting(taken, 300), &Query::default()).expect("a summary").findings;
        findings.into_iter().find(|finding| finding.text.contains("garbage collection"))
    };
    let found = said(20).expect("a finding");
    let expected = "20.8 % of the CPU time went to garbage collection (clrscope run -i alloc shows which code \
                    allocates what), \
                    most of it in calls from App.P::Main";
    assert_eq!(found.text, expected);
    // 25 samples of 120: Wilson's interval.
    let rounded = |bound: f64| (bound * 1e3).round();
    assert_eq!((rounded(found.bounds.0), rounded(found.bounds.1)), (145.0, 289.0));
    // Five samples of a hundred may as well be of a hundredth of the time.
    assert_eq!(said(0), None);
}

/// A service that waited in a lock and for its tasks looked idle: nothing led from `cpu` to what it
/// waited for.
#[test]
fn unused_processors_propose_the_instrument_that_shows_waits() {
    // A hundred samples in a run of a thousand steps.
    let said = |processors: u32, change: fn(&mut Recording), query: &Query| -> Vec<(String, f64)> {
        let mut taken = program();
        taken.processors(processors);
        let mut recording = taken.recording();
        change(&mut recording);
        let findings = summary(&recording, query).expect("a summary").findings;
        let about_waits = |text: &str| text.contains("what its threads waited for") || text.contains("await");
        findings.into_iter().filter(|one| about_waits(&one.text)).map(|one| (one.text, one.share)).collect()
    };
    let all = Query::default();
    let waits = "clrscope run -i wall shows what its threads waited for";
    assert_eq!(said(2, |_| (), &all), [(format!("the program used 0.10 of 2 processors: {waits}"), 0.95)]);
    assert_eq!(said(1, |_| (), &all), [(format!("the program used 0.10 of one processor: {waits}"), 0.9)]);
    let nothing: [(String, f64); 0] = [];
    assert_eq!(said(0, |_| (), &all), nothing, "recordings of earlier versions don't say how many there were");
    assert_eq!(said(2, |_| (), &Query { until_ns: Some(150 * STEP_NS), ..Query::default() }), nothing, "too short");
    assert_eq!(said(2, |_| (), &Query { threads: vec![ThreadSelector::Number(2)], ..Query::default() }), nothing);
    let switched = |recording: &mut Recording| {
        let part =
            |since: u64, until: u64| Part { since_ns: since * STEP_NS, until_ns: until * STEP_NS, ..Part::default() };
        recording.processes[0].parts = vec![part(0, 100), part(500, 900)];
    };
    let said_of_parts = said(2, switched, &all);
    assert!(said_of_parts[0].0.starts_with("the program used 0.20 of 2"), "time without recording counts as none");
    let async_code = |recording: &mut Recording| {
        let hash = recording.processes[0].functions.iter_mut().find(|function| function.name == "App.P::Hash");
        let hash = hash.expect("the function");
        (hash.source, hash.signature) = (SourceKind::Async, "App.P::Hash() (async)".to_owned());
    };
    let awaits = "App.P::Hash (async) spends time in awaits, which hold no thread, so cpu and wall miss it: clrscope \
                  run -i awaits \
                  shows how long each of its awaits took";
    assert_eq!(said(2, async_code, &all)[1].0, awaits);
}

/// A program whose one thread always worked was to look for waits, on a machine with many
/// processors.
#[test]
fn a_thread_that_always_works_waits_for_nothing() {
    let mut taken = HandSampled::default();
    taken.processors(64);
    let main = taken.thread("", ThreadRole::Main);
    (0..900).for_each(|step| _ = taken.cpu(main, step, "App.P::Main"));
    let findings = summary(&taken.recording(), &Query::default()).expect("a summary").findings;
    assert!(findings.iter().all(|finding| !finding.text.contains("processors")), "{findings:?}");
}

#[test]
fn the_summary_says_what_threads_were_about_by_the_clock() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    let pool = taken.thread("", ThreadRole::Pool);
    let mut wait = |thread, path: &str, state, count| {
        let sample = taken.wall(thread, 1, path);
        (sample.state, sample.count, sample.weight_ns) = (state, count, u64::from(count) * STEP_NS);
    };
    wait(main, "App.P::Main > System.Threading.Monitor::Enter", ThreadState::Lock, 30);
    wait(main, "App.P::Other > System.Threading.Monitor::Enter", ThreadState::Lock, 20);
    wait(main, "App.P::Main", ThreadState::Running, 10);
    wait(pool, "System.Pool::Wait", ThreadState::Idle, 60);
    let recording = taken.recording();
    let view = summary(&recording, &Query::default()).expect("a summary");
    let row = |row: &clrscope_analysis::StateRow<'_>| {
        let most = row.most.map_or_else(String::new, |(of, ns)| format!(" {} {}", of.name(), ns / STEP_NS));
        format!("{} {} {}{most}", row.state.name(), row.samples, row.threads)
    };
    let states: Vec<String> = view.states.iter().map(row).collect();
    assert_eq!(states, ["running 10 1 App.P::Main 10", "lock 50 1 App.P::Main 30", "idle 60 1"]);
    assert_eq!(view.kinds, []);
}

/// Pool and finalizer that had nothing to do were the first rows of each report by the clock.
#[test]
fn idle_threads_are_left_out_and_said_unless_they_are_asked_for() {
    let mut taken = HandSampled::default();
    let (main, pool) = (taken.thread("", ThreadRole::Main), taken.thread("", ThreadRole::Pool));
    let mut wait = |thread, path: &str, state, count| {
        let sample = taken.wall(thread, 1, path);
        (sample.state, sample.count, sample.weight_ns) = (state, count, u64::from(count) * STEP_NS);
    };
    wait(main, "App.P::Main > System.Threading.Thread::Sleep", ThreadState::Sleeping, 10);
    wait(pool, "System.Pool::Run > libc.so.6!wait", ThreadState::Idle, 90);
    let recording = taken.recording();
    let mut all = rows(&recording, &Query::default());
    all.sort();
    assert_eq!(all, ["App.P::Main 0 10", "System.Threading.Thread::Sleep 10 10"]);
    let view = summary(&recording, &Query::default()).expect("a summary");
    assert_eq!(view.threads.roles, [(ThreadRole::Pool, 1)]);
    let sampling = &view.conditions.sampling[0];
    assert_eq!((sampling.total_ns, sampling.idle_ns), (100 * STEP_NS, 90 * STEP_NS));
    let pool = Query { threads: vec![ThreadSelector::Number(2)], ..Query::default() };
    assert_eq!(rows(&recording, &pool), ["wait 90 90", "System.Pool::Run 0 90"]);
}

/// A wait in native code was the first finding: `libc.so.6+0x85e50 used 75.0 % of the time itself`.
#[test]
fn waiting_in_native_code_is_no_finding_by_the_clock() {
    let mut taken = HandSampled::default();
    let idle = taken.thread("", ThreadRole::Pool);
    let sample = taken.wall(idle, 1, "System.Pool::Run > libc.so.6!wait");
    (sample.state, sample.count, sample.weight_ns) = (ThreadState::Waiting, 90, 90 * STEP_NS);
    let recording = taken.recording();
    let view = summary(&recording, &Query::default()).expect("a summary");
    let said: Vec<&str> = view.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(said, [""; 0]);
}

#[test]
fn samples_stand_beside_calls_of_the_same_run() {
    let mut recording = program().recording();
    recording.processes[0].calls = Some(CallsInfo::default());
    let view = functions(&recording, &Query::default()).expect("rows");
    assert_eq!((view.conditions.metric.instrument, view.conditions.samples), ("calls", 100));
    let compare = view.rows.iter().find(|row| row.function.name() == "App.P::Compare").expect("a row");
    assert_eq!((compare.times.calls, compare.amount.own, compare.amount.samples.own), (0, 0, 40));
    let view = summary(&recording, &Query::default()).expect("a summary");
    assert_eq!((view.kinds.len(), view.threads.rows.len()), (6, 0));
    let refused = functions(&recording, &Query { just_my_code: true, ..Query::default() });
    assert!(matches!(refused, Err(QueryProblem::NotAvailable { option: "--just-my-code", .. })));
}

fn found(recording: &Recording, query: &Query) -> Result<Vec<String>, QueryProblem> {
    // Each function is a file, and its line ten more than the offset in the IL.
    let view: LinesView<'_> = lines(recording, query, &mut |path, token, place| match place.il_offset {
        Some(offset) if path == "/app/App.dll" => {
            FoundPlace::Line { file: format!("{token:x}.cs"), line: offset + 10, by_call: false }
        }
        _ => FoundPlace::NoSource,
    })?;
    let row = |row: &clrscope_analysis::LineRow<'_>| {
        format!(
            "{}:{} {} {} {} {}",
            row.function.name(),
            row.line.expect("a line"),
            row.samples,
            row.self_samples,
            row.total_samples,
            row.amount / STEP_NS
        )
    };
    Ok(view.rows.iter().map(row).chain((view.without_line > 0).then(|| view.without_line.to_string())).collect())
}

#[test]
fn lines_have_what_they_took_with_the_code_below_them_that_has_no_source() {
    let mut taken = program();
    taken.cpu(1, 300, "System.Threading.TimerQueue::Fire@3");
    let recording = taken.recording();
    let expected = [
        "App.P::Compare:12 40 40 40 40",
        "App.P::Sort:15 30 0 70 30",
        "App.P::Main:19 15 0 15 15",
        "App.P::Hash:13 15 0 15 15",
        "App.P::Main:11 0 0 70 0",
        "1",
    ];
    assert_eq!(found(&recording, &Query::default()).expect("lines"), expected);
    let by_total = Query { sort: Some(Sort::Total), limit: Some(2), ..Query::default() };
    let most = ["App.P::Sort:15 30 0 70 30", "App.P::Main:11 0 0 70 0"];
    assert_eq!(found(&recording, &by_total).expect("lines")[..2], most);
    let of_calls = clrscope_recording::testing::ascii_trees::recording("thread 1\n  Main 1 10\n");
    assert!(matches!(found(&of_calls, &Query::default()), Err(QueryProblem::NotRecorded { view: "lines", .. })));
}

/// Samples in code whose line the map leaves open had the line of the caller.
#[test]
fn code_of_unknown_lines_is_not_charged_to_its_callers_line() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    let called = |callee: &str| format!("App.P::Main@1 > App.P::Build@19+64 > {callee}");
    let paths = [
        (40, called("System.String::Concat")),
        (7, called("System.Number::ToText")),
        (2, "App.P::Main@1 > App.P::Build".to_owned()),
    ];
    let mut step = 0;
    for (count, path) in &paths {
        for _ in 0..*count {
            step += 1;
            taken.cpu(main, step, path);
        }
    }
    let recording = taken.recording();
    let mut seen = Vec::new();
    let view = lines(&recording, &Query::default(), &mut |path, _, place: CodePlace<'_>| {
        if path != "/app/App.dll" {
            return FoundPlace::NoSource;
        }
        seen.push((place.il_offset, place.il_span, place.callee.map(str::to_owned)));
        let line = |line, by_call| FoundPlace::Line { file: "P.cs".to_owned(), line, by_call };
        match (place.il_offset, place.callee) {
            (Some(1), _) => line(11, false),
            (_, Some("System.String::Concat")) => line(8, true),
            _ => FoundPlace::Unknown { file: "P.cs".to_owned() },
        }
    });
    let view = view.expect("lines");
    let row = |row: &clrscope_analysis::LineRow<'_>| {
        (row.function.name().to_owned(), row.line, row.samples, row.self_samples, row.total_samples)
    };
    let expected = [
        ("App.P::Build".to_owned(), Some(8), 40, 0, 40),
        ("App.P::Build".to_owned(), None, 9, 2, 9),
        ("App.P::Main".to_owned(), Some(11), 0, 0, 49),
    ];
    assert_eq!(view.rows.iter().map(row).collect::<Vec<_>>(), expected);
    assert_eq!((view.without_line, view.of_unknown_lines, view.by_call), (0, 9, 40));
    seen.sort();
    let text = |text: &str| Some(text.to_owned());
    let asked = [
        (None, 0, None),
        (Some(1), 0, text("App.P::Build")),
        (Some(19), 64, text("System.Number::ToText")),
        (Some(19), 64, text("System.String::Concat")),
    ];
    assert_eq!(seen, asked, "what is called there is told");
}

/// Tiers were stored with each frame and shown nowhere.
#[test]
fn rows_say_in_which_compilation_of_their_method_samples_fell() {
    let mut taken = program();
    let main = "App.P::Main > App.P::Sort";
    taken.tier("App.P::Sort", Tier::Osr);
    taken.cpu(1, 200, main);
    taken.tier("App.P::Sort", Tier::Tier0);
    (201..230).for_each(|step| _ = taken.cpu(1, step, main));
    let recording = taken.recording();
    let seen = |tiers: &Tiers| tiers.seen().map(|(tier, of)| (tier.name(), of.own, of.total)).collect::<Vec<_>>();
    let view = functions(&recording, &Query::default()).expect("rows");
    let row = |name: &str| view.rows.iter().find(|row| row.function.name() == name).expect("a row").tiers;
    assert_eq!(seen(&row("App.P::Sort")), [("tier0", 29, 29), ("tier1", 0, 70), ("osr", 1, 1)]);
    assert_eq!(row("App.P::Sort").most().map(|(tier, _)| tier), Some(Tier::Tier0));
    assert_eq!(seen(&row("App.P::Hash")), [("tier1", 0, 15)], "recursion counts once");
    assert_eq!(seen(&row("memmove")), [], "native code is compiled once and for all");
    let mine = functions(&recording, &Query { just_my_code: true, ..Query::default() }).expect("rows");
    let sort = mine.rows.iter().find(|row| row.function.name() == "App.P::Sort").expect("a row");
    assert_eq!(seen(&sort.tiers), [("tier0", 29, 29), ("tier1", 30, 70), ("osr", 1, 1)]);
    let said = summary(&recording, &Query::default()).expect("a summary").findings;
    let expected = "22.3 % of the CPU time ran code that was not optimised yet (tier 0), the most in App.P::Sort";
    assert!(said.iter().any(|finding| finding.text == expected), "{said:?}");
}

#[test]
fn odd_samples_harm_nobody() {
    let mut taken = program();
    let odd = taken.cpu(99, u64::from(u32::MAX), "App.P::Main");
    (odd.stack, odd.count, odd.weight_ns, odd.time_ns) = (u32::MAX, u32::MAX, u64::MAX, u64::MAX);
    taken.cpu(1, 5, "App.P::Main").count = 0;
    let recording = taken.recording();
    let query = Query { since_ns: Some(1), until_ns: Some(u64::MAX), ..Query::default() };
    for query in [Query::default(), query] {
        assert!(functions(&recording, &query).is_ok() && modules(&recording, &query).is_ok());
        assert!(summary(&recording, &query).is_ok() && threads(&recording, &query).is_ok());
        assert!(found(&recording, &query).is_ok());
    }
}

/// Depth, name and samples of the nodes that a walk shows.
fn walked(forest: &Forest<'_>, below: Option<&TreePlace>, options: &TreeOptions) -> Vec<String> {
    let mut nodes = Vec::new();
    let walked = forest.walk_again(below, options, |node| -> Result<(), std::convert::Infallible> {
        nodes.push(format!("{} {} {}", node.depth, node.function.name(), node.amount.samples.total));
        Ok(())
    });
    let Ok(_) = walked;
    nodes
}

#[test]
fn a_node_is_walked_again_with_what_lies_below_it() {
    let recording = program().recording();
    let forest = Forest::open(&recording, &Query::default()).expect("a forest");
    let all = TreeOptions::default();
    let whole = walked(&forest, None, &all);
    assert_eq!(whole, walked(&forest, None, &all), "as often as anybody likes");
    let plain = tree(&recording, &Query::default(), &all).expect("a tree");
    assert_eq!(whole.len(), plain.nodes.len());
    let place = |places: &[u32]| TreePlace { pid: 7, places: places.to_vec() };
    // The first root's first child's first child: App.P::Main, Sort, System.Array::Sort.
    let sort = walked(&forest, Some(&place(&[0, 0, 0])), &all);
    assert_eq!(sort[..3], ["0 System.Array::Sort 70", "1 App.P::Compare 40", "1 memmove 10"].map(str::to_owned));
    let large = TreeOptions { min_share: 0.5, max_depth: None };
    // A share is of the node: 40 of 70, which are 40 of 100 of the whole.
    assert_eq!(walked(&forest, Some(&place(&[0, 0, 0])), &large).len(), 2);
    for nowhere in [place(&[]), place(&[9]), place(&[0, 0, 9]), TreePlace { pid: 8, places: vec![0] }] {
        assert_eq!(walked(&forest, Some(&nowhere), &all), [""; 0], "{nowhere:?}");
    }
}

#[test]
fn nodes_know_when_they_had_their_amounts() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    for step in 0..100 {
        taken.cpu(main, step, if step < 50 { "App.P::Main > App.P::Early" } else { "App.P::Main > App.P::Late" });
    }
    let recording = taken.recording();
    let query = Query { per_thread: true, ..Query::default() };
    let forest = Forest::open(&recording, &query).expect("a forest");
    let options = TreeOptions::default();
    // A piece of the run is 100 of its 1,000 steps long.
    let of = |pieces: u64, options: &TreeOptions| {
        let found = forest.over_time(&recording, options, Pieces::of_recording(&recording, pieces));
        found.iter().map(|one| (one.node, one.piece, one.amount / STEP_NS)).collect::<Vec<_>>()
    };
    assert_eq!(of(10, &options), [(1, 0, 50), (2, 0, 50)]);
    assert_eq!(of(20, &options), [(1, 0, 50), (2, 1, 50)]);
    // What is left out is that of the node above.
    assert_eq!(of(20, &TreeOptions { max_depth: Some(1), ..options }), [(0, 0, 50), (0, 1, 50)]);
}

/// One walk answers for the whole run; what asks for less, or for other code, must not get its
/// answer.
#[test]
fn sums_of_the_whole_run_are_kept_apart_from_those_of_threads_times_and_own_code() {
    let recording = program().recording();
    let questions = [
        Query { threads: vec![ThreadSelector::Number(2)], ..Query::default() },
        Query { since_ns: Some(36 * STEP_NS), until_ns: Some(45 * STEP_NS), ..Query::default() },
        Query { just_my_code: true, ..Query::default() },
        Query { metric: Some(&SAMPLES), ..Query::default() },
        Query::default(),
    ];
    let answered = |recording: &Recording, query: &Query| {
        let view = functions(recording, query).expect("rows");
        let row = |row: &FunctionRow<'_>| format!("{} {:?} {:?}", row.function.name(), row.amount, row.tiers);
        let unmeasured = Query { metric: None, ..query.clone() };
        let of_threads = threads(recording, &unmeasured).expect("rows");
        let own = of_threads.rows.iter().map(|row| row.amount.own).collect::<Vec<_>>();
        let of_modules = modules(recording, &unmeasured).expect("rows").rows.len();
        (view.rows.iter().map(row).collect::<Vec<_>>(), own, of_modules)
    };
    // A copy knows nothing of what was asked before.
    let alone: Vec<_> = questions.iter().map(|query| answered(&recording.clone(), query)).collect();
    for (first, before) in questions.iter().enumerate() {
        let asked = recording.clone();
        summary(&asked, &Query { metric: None, ..before.clone() }).expect("a summary");
        for (query, expected) in questions.iter().zip(&alone) {
            assert_eq!(&answered(&asked, query), expected, "after question {first}");
        }
    }
    let distinct: std::collections::HashSet<_> = alone.iter().map(|found| format!("{:?}", found.0)).collect();
    assert_eq!(distinct.len(), questions.len(), "the questions have different answers");
}

/// A stack of a thread of the pool that waits below own code.
fn blocked(own: &str, wait: &str) -> String {
    format!("System.Threading.ThreadPoolWorkQueue::Dispatch > {own} > {wait} > libc.so!futex")
}

const TASK_WAIT: &str = "System.Threading.Tasks.Task::InternalWait > System.Threading.ManualResetEventSlim::Wait";

/// Threads of the pool that stand on these stacks for so many of a thousand steps, and the
/// findings.
fn findings_of_pool(processors: u32, stacks: &[(String, u64)]) -> Vec<Finding> {
    let mut taken = HandSampled::default();
    taken.processors(processors);
    for (path, steps) in stacks {
        let thread = taken.thread(".NET TP Worker", ThreadRole::Pool);
        for step in 0..*steps {
            taken.wall(thread, step, path).state = ThreadState::Waiting;
        }
    }
    summary(&taken.recording(), &Query::default()).expect("a summary").findings
}

/// 292 s in which threads of the pool were blocked led to sentences about the compiler and about
/// main.
#[test]
fn a_pool_whose_threads_are_blocked_comes_first_with_what_blocks_them() {
    let block = |steps| (blocked("App.Svc::Block", TASK_WAIT), steps);
    let found = findings_of_pool(2, &[block(900), block(900), block(900), block(300)]);
    let text = "the thread pool is starved: on average 3.0 of its threads were blocked (4 at most, 3.00 s in all; -i \
                counters shows the length of its queue) on 2 processors, most in calls from App.Svc::Block, which \
                waits for a task (sync over async)";
    assert_eq!((found[0].text.as_str(), found[0].kind), (text, FindingKind::PoolStarved));
    assert_eq!(found[0].function.as_ref().map(|function| function.name.as_str()), Some("App.Svc::Block"));
    assert_eq!(found[0].metric, Some("wall"));
    // As many processors as that keep the pool going.
    let found = findings_of_pool(8, &[block(900), block(900), block(900), block(300)]);
    let text = "threads of the pool were blocked for 3.00 s in all (4 at most at once), most in calls from \
                App.Svc::Block, which waits for a task (sync over async)";
    assert_eq!((found[0].text.as_str(), found[0].kind), (text, FindingKind::Wait));
}

#[test]
fn consumers_of_queues_and_idle_threads_starve_no_pool() {
    let consumer = "System.Collections.Concurrent.BlockingCollection::Take > System.Threading.SemaphoreSlim::Wait";
    let idle = "System.Threading.LowLevelLifoSemaphore::Wait";
    let all: Vec<(String, u64)> = (0..4)
        .map(|_| (blocked("App.Queue::Consume", consumer), 900))
        .chain((0..4).map(|_| (format!("System.Threading.PortableThreadPool+WorkerThread::Start > {idle}"), 900)))
        // Little is not worth a word.
        .chain([(blocked("App.Svc::Block", TASK_WAIT), 20)])
        .collect();
    let found = findings_of_pool(2, &all);
    let about_pool = |finding: &&Finding| finding.text.contains("pool");
    assert!(found.iter().find(about_pool).is_none(), "{found:?}");
}

/// Locks of the framework's own, below no code of the program, counted as if that had blocked the
/// pool.
#[test]
fn locks_below_no_own_code_are_not_said_to_block_the_pool() {
    let mut taken = HandSampled::default();
    taken.processors(1);
    for place in 0..3 {
        let thread = taken.thread(".NET TP Worker", ThreadRole::Pool);
        for step in 0..300 {
            let path = format!("System.Threading.ThreadPoolWorkQueue::Dispatch > System.Pipes::Read{place}");
            taken.wall(thread, step, &path).state = ThreadState::Lock;
        }
    }
    let thread = taken.thread(".NET TP Worker", ThreadRole::Pool);
    for step in 0..400 {
        taken.wall(thread, step, &blocked("App.Svc::Block", TASK_WAIT)).state = ThreadState::Waiting;
    }
    let found = summary(&taken.recording(), &Query::default()).expect("a summary").findings;
    let text = "threads of the pool were blocked for 400 ms in all (1 at most at once), most in calls from \
                App.Svc::Block, which waits for a task (sync over async)";
    assert_eq!((found[0].text.as_str(), found[0].kind), (text, FindingKind::Wait));
}

/// Threads that wait for a lock, each on its own thread with a role for so many of a thousand
/// steps.
fn add_lock_waits(taken: &mut HandSampled, role: ThreadRole, own: &str, steps: &[u64]) {
    for &count in steps {
        let thread = taken.thread("", role);
        let path = format!("{own} > System.Threading.Monitor::Enter > libc.so!futex");
        (0..count).for_each(|step| taken.wall(thread, step, &path).state = ThreadState::Lock);
    }
}

#[test]
fn threads_in_line_for_a_lock_are_a_convoy_and_more_threads_of_the_pool_no_cure() {
    for (role, text) in [
        (
            ThreadRole::User,
            "in calls from App.Stock::Book, threads waited 2.30 s in all for a lock (3 at once at most)",
        ),
        (
            ThreadRole::Pool,
            "threads waited 2.30 s in all for a lock in calls from App.Stock::Book (3 at once at most): on average \
             2.3 threads of the pool were blocked on 2 processors",
        ),
    ] {
        let mut taken = HandSampled::default();
        taken.processors(2);
        add_lock_waits(&mut taken, role, "App.Stock::Book", &[900, 900, 500]);
        let found = summary(&taken.recording(), &Query::default()).expect("a summary").findings;
        assert_eq!((found[0].text.as_str(), found[0].kind), (text, FindingKind::LockConvoy));
        assert_eq!((found[0].share, found.len()), (1.0, 1), "{found:?}");
    }
    // One that waits for what another holds is no line.
    let mut taken = HandSampled::default();
    add_lock_waits(&mut taken, ThreadRole::User, "App.Stock::Book", &[300]);
    let found = summary(&taken.recording(), &Query::default()).expect("a summary").findings;
    let text = "in calls from App.Stock::Book, threads waited 300 ms in all for a lock";
    assert_eq!((found[0].text.as_str(), found[0].kind), (text, FindingKind::Wait));
}

/// "in calls from Program::<Main>$, threads waited" was said of each service.
#[test]
fn threads_that_stand_in_one_wait_while_others_work_are_idle() {
    let said = |others: &str, steps: u64| -> Vec<String> {
        let mut taken = HandSampled::default();
        let (main, timer) = (taken.thread("", ThreadRole::Main), taken.thread("timer", ThreadRole::User));
        let worker = taken.thread("", ThreadRole::User);
        for step in 0..990 {
            let main_path = "App.P::Main > System.Threading.Thread::Sleep > libc.so!poll";
            taken.wall(main, step, main_path).state = ThreadState::Sleeping;
            let timer_path = "App.Timer::Loop > System.Threading.Thread::Sleep > libc.so!poll";
            taken.wall(timer, step, timer_path).state = ThreadState::Sleeping;
        }
        let state = if others.contains("Sleep") { ThreadState::Sleeping } else { ThreadState::Running };
        (0..steps).for_each(|step| taken.wall(worker, step, others).state = state);
        let found = summary(&taken.recording(), &Query::default()).expect("a summary").findings;
        found.into_iter().filter(|found| found.kind == FindingKind::Wait).map(|found| found.text).collect()
    };
    assert_eq!(said("App.Shop::Price", 400), [""; 0]);
    let pay = "in calls from App.Shop::Pay, threads slept 400 ms in all";
    assert_eq!(said("App.Shop::Pay > System.Threading.Thread::Sleep > libc.so!poll", 400), [pay]);
    // Where no thread does anything else, their waits are all there is to say.
    let slept = |own: &str| format!("in calls from {own}, threads slept 990 ms in all");
    let both = ["App.P::Main", "App.Timer::Loop"].map(slept);
    assert_eq!(said("App.Shop::Price", 20), both);
}

/// The compiler of an idle program was the first thing said of a service whose threads waited for
/// 292 s.
#[test]
fn what_keeps_most_threads_is_said_first_and_little_work_is_not_said() {
    let kinds = |compiled: u64, burnt: u64, waited: u64| -> Vec<FindingKind> {
        let mut taken = HandSampled::default();
        let (main, worker) = (taken.thread("", ThreadRole::Main), taken.thread("", ThreadRole::User));
        (0..compiled).for_each(|step| _ = taken.cpu(main, step, "App.P::Main > libclrjit.so!compile"));
        (0..burnt).for_each(|step| _ = taken.cpu(main, 500 + step, "App.P::Burn"));
        let path = "App.P::Read > System.IO.RandomAccess::ReadAtOffset > libc.so!pread";
        (0..waited).for_each(|step| taken.wall(worker, step, path).state = ThreadState::Io);
        summary(&taken.recording(), &Query::default()).expect("a summary").findings.iter().map(|one| one.kind).collect()
    };
    assert_eq!(kinds(30, 0, 300), [FindingKind::Wait], "three hundredths of a processor");
    assert_eq!(kinds(0, 200, 300), [FindingKind::Wait, FindingKind::Cpu]);
    assert_eq!(kinds(0, 400, 300), [FindingKind::Cpu, FindingKind::Wait]);
    assert_eq!(kinds(0, 30, 30), []);
}

#[test]
fn collections_come_before_the_work_of_the_code_that_makes_them_need() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    (0..600).for_each(|step| taken.cpu(main, step, "App.P::Fill > libcoreclr.so!alloc").activity = Activity::Gc);
    (600..900).for_each(|step| _ = taken.cpu(main, step, "App.P::Fill"));
    let found = summary(&taken.recording(), &Query::default()).expect("a summary").findings;
    let kinds: Vec<FindingKind> = found.iter().map(|found| found.kind).collect();
    assert_eq!(kinds, [FindingKind::Gc, FindingKind::Cpu], "{found:?}");
    assert_eq!(found[0].function.as_ref().map(|function| function.name.as_str()), Some("App.P::Fill"));
}
