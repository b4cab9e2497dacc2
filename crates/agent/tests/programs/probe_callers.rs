//! Callers of probed methods, against programs that know who calls what how often.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use crate::support::{Run, assert_unchanged, record, record_with, under_agent};
use clrscope_analysis::{CallerNode, CallerSums, ProbeCallers, ProbeLog, Query, probes};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, ProbeCaller, Recording};
use clrscope_testkit::{
    Expectations, Finished, Runtime, Service, attempted, each_runtime, fixture, last_count, pause, random_pause, run,
    scratch, wait_for,
};

/// Name of unknown callers.
const UNKNOWN: &str = "(unknown caller)";

/// A fixture with arguments, without the agent.
fn run_with(runtime: &Runtime, name: &str, arguments: &[&str]) -> Finished {
    let mut command = runtime.command(&fixture(name));
    command.args(arguments);
    run(command)
}

/// Visits the methods and their callers.
fn visit(recording: &Recording, mut visit: impl FnMut(&CallerNode<'_>)) {
    let callers = ProbeCallers::open(recording, &Query::default()).expect("callers were recorded");
    let Ok(left_out) = callers.walk(0.0, |node| -> Result<(), Infallible> {
        visit(node);
        Ok(())
    });
    assert_eq!(left_out, 0);
}

/// Calls by method and direct caller, overloads and instantiations together.
fn edges(recording: &Recording) -> BTreeMap<(String, String), CallerSums> {
    let (mut method, mut edges) = (String::new(), BTreeMap::new());
    visit(recording, |node| match node.depth {
        0 => node.function.name().clone_into(&mut method),
        1 => add(edges.entry((node.function.name().to_owned(), method.clone())).or_default(), &node.sums),
        _ => {}
    });
    edges
}

fn add(sums: &mut CallerSums, more: &CallerSums) {
    sums.calls += more.calls;
    sums.failed += more.failed;
    sums.ended += more.ended;
    sums.total_ns += more.total_ns;
}

/// The callers of each method add up to the method, and those of each caller to no more than that
/// one.
fn assert_adds_up(recording: &Recording, place: &str) {
    let mut above: Vec<(CallerSums, CallerSums)> = Vec::new();
    let check = |above: &mut Vec<(CallerSums, CallerSums)>, depth: usize| {
        while above.len() > depth {
            let (own, callers) = above.pop().expect("it is there");
            let is_method = above.is_empty();
            assert!(
                callers.calls == own.calls || (!is_method && callers.calls < own.calls),
                "{place}: {own:?} {callers:?}"
            );
            if is_method {
                assert_eq!((callers.failed, callers.ended), (own.failed, own.ended), "{place}");
                assert!(
                    callers.total_ns.abs_diff(own.total_ns) <= own.total_ns / 1_000 + 1_000,
                    "{place}: {own:?} {callers:?}"
                );
            }
        }
    };
    visit(recording, |node| {
        check(&mut above, node.depth as usize);
        if let Some((_, callers)) = above.last_mut() {
            add(callers, &node.sums);
        }
        above.push((node.sums, CallerSums::default()));
    });
    check(&mut above, 0);
}

/// Each method of the fixture has the callers that the fixture says.
fn compare(name: &str, options: &str) {
    each_runtime(|runtime| {
        let place = format!("{name} with {options} on {}", runtime.version);
        let bare = run(runtime.command(&fixture(name))).expect_success();
        let Run { finished, recording, .. } = record(runtime, name, &format!("probes:{options};probe=[{name}]*"));
        assert_unchanged(&finished, &bare, &place);
        assert_eq!(recording.problems, [], "{place}");
        let lost = recording.processes[0].losses.iter().find(|loss| loss.reason == LossReason::CallerUnknown);
        assert_eq!(lost, None, "{place}");
        let edges = edges(&recording);
        let (rows, _) = probes(&recording, &Query::default()).expect("rows");
        let is_probed = |callee: &str| rows.iter().any(|row| row.name == callee && row.calls > 0);
        let expected = Expectations::parse(&finished.stdout_text());
        let known: BTreeMap<_, _> = expected.edges.iter().filter(|((_, callee), _)| is_probed(callee)).collect();
        let calls = |edge: &(String, String)| edges.get(edge).map(|sums| sums.calls);
        let wrong: Vec<_> = known.iter().filter(|(edge, said)| calls(edge) != Some(***said)).collect();
        assert!(wrong.is_empty() && !known.is_empty(), "{place}: {wrong:#?} {edges:#?}");
        let unknown: Vec<_> = edges.keys().filter(|(caller, _)| caller == UNKNOWN).collect();
        assert!(unknown.is_empty(), "{place}: {unknown:?}");
        assert_adds_up(&recording, &place);
    });
}

#[test]
fn direct_callers_are_counted_exactly_whatever_calls() {
    for name in ["Threads", "Exceptions", "Generics", "Recursion", "Dispatch", "Delegates", "Async", "Iterators"] {
        compare(name, "callers");
    }
}

/// Callbacks have the native library as their caller: the sort of the C library keeps no frame
/// pointers, so its caller is unknown.
#[test]
fn methods_that_native_code_calls_have_its_library_as_their_caller() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let Run { finished, recording, .. } = record(runtime, "Native", "probes:callers;probe=[Native]*::Compare*");
        let expected = Expectations::parse(&finished.stdout_text());
        let edges = edges(&recording);
        for method in
            ["Compare", "ComparePointers", "CompareTwo", "CompareAndSort"].map(|name| format!("Native.Program::{name}"))
        {
            let by_library: u64 = edges
                .iter()
                .filter(|((caller, callee), _)| *callee == method && caller.starts_with("[libc"))
                .map(|(_, sums)| sums.calls)
                .sum();
            assert_eq!(Some(by_library), expected.calls(&method), "{place}: {method} {edges:#?}");
        }
        assert_adds_up(&recording, &place);
        let ways = ways(&recording);
        assert!(ways < 2_000, "{place}: {ways} ways");
    });
}

/// Sums of the direct callers of a method of a fixture whose names are among these.
fn by(edges: &BTreeMap<(String, String), CallerSums>, method: &str, callers: &[&str]) -> CallerSums {
    let mut sums = CallerSums::default();
    for ((caller, callee), more) in edges {
        let is_meant = callers.iter().any(|name| caller.ends_with(&format!("::{name}")));
        if is_meant && callee.ends_with(&format!("::{method}")) {
            add(&mut sums, more);
        }
    }
    sums
}

/// Counts as the source of the fixture has them. What the compiler puts into others, and what
/// leaves by a tail call, is one of two callers, as long as a program runs.
#[test]
fn callers_are_those_of_the_source_alone_and_beside_each_call() {
    each_runtime(|runtime| {
        for options in ["callers", "callers,frames=1", "callers,each", "callers,args,frames=3", "callers,frames=32"] {
            let place = format!("{options} on {}", runtime.version);
            let bare = run(runtime.command(&fixture("Callers"))).expect_success();
            let request = format!("probes:{options};probe=Callers.Program::Target;probe=Callers.Program::Fails");
            let Run { finished, recording, .. } = record(runtime, "Callers", &request);
            assert_unchanged(&finished, &bare, &place);
            assert_adds_up(&recording, &place);
            let edges = edges(&recording);
            let calls = |callers: &[&str]| by(&edges, "Target", callers).calls;
            let found = [
                calls(&["Thin"]),
                calls(&["Small", "Host"]),
                calls(&["Tail", "TailHost"]),
                calls(&["Generic"]),
                calls(&["Blocks"]),
                calls(&["Short"]),
                calls(&[".cctor"]),
                calls(&["Host"]).min(1),
            ];
            assert_eq!(found, [3_000_000, 500_000, 400_000, 3_000, 1_000, 300, 2, 1], "{place}: {edges:#?}");
            let failed = |caller| {
                let sums = by(&edges, "Fails", &[caller]);
                (sums.calls, sums.failed, sums.ended)
            };
            assert_eq!(
                [failed("Careful"), failed("Careless")],
                [(300, 100, 300), (150, 60, 150)],
                "{place}: {edges:#?}"
            );
            let each = ProbeLog::open(&recording, &Query::default()).ok().map(|log| {
                let mut fails = 0;
                let Ok(_) = log.walk(|call| -> Result<(), Infallible> {
                    fails += u64::from(call.method.name.ends_with("::Fails"));
                    Ok(())
                });
                fails
            });
            assert_eq!(each, (options.contains("each") || options.contains("args")).then_some(450), "{place}");
        }
    });
}

/// Loops are recompiled while they run, and the frame that each had stays below its new one; a
/// method with nothing but one call has no frame. Until that is known of an address, a few
/// milliseconds, no callers further out are shown, and never wrong ones.
#[test]
fn callers_of_callers_are_those_of_the_source_without_frames_and_in_loops_too() {
    const WAYS: [&str; 10] = [
        "Thin < First < Main",
        "Thin < Second < Main",
        "Small < Host < Main",
        "Host < Main",
        "Tail < TailHost < Main",
        "TailHost < Main",
        "Generic < Main",
        "Blocks < Main",
        ".cctor",
        "Short",
    ];
    let look = |runtime: &Runtime| {
        let place = runtime.version.to_string();
        let Run { recording, .. } = record(runtime, "Callers", "probes:callers;probe=Callers.Program::Target");
        let (mut path, mut found) = (Vec::<String>::new(), BTreeMap::<String, u64>::new());
        visit(&recording, |node| {
            path.truncate(node.depth as usize);
            path.push(node.function.name().rsplit("::").next().unwrap_or_default().to_owned());
            if node.depth > 0 {
                *found.entry(path[1..].join(" < ")).or_default() += node.sums.calls;
            }
        });
        // The framework's own code starts threads, and on .NET 10 static constructors.
        let is_of_framework = |way: &str| way.starts_with("Short < ") || way.starts_with(".cctor < ");
        let is_in_source =
            |way: &&String| is_of_framework(way) || WAYS.iter().any(|known| known.starts_with(way.as_str()));
        let wrong: Vec<_> = found.keys().filter(|way| !is_in_source(way)).collect();
        assert!(wrong.is_empty(), "{place}: {wrong:?} {found:#?}");
        let mut are_most = true;
        let of = |way: &str| found.get(way).copied().unwrap_or(0);
        for (way, all) in [(WAYS[0], 2_000_000), (WAYS[1], 1_000_000), (WAYS[4], 400_000)] {
            let tail = if way.starts_with("Tail") { of("TailHost < Main") } else { 0 };
            let calls = of(way) + tail;
            assert!(calls <= all, "{place}: {way} {found:#?}");
            are_most &= calls > all / 2;
        }
        are_most &= of("Small < Host < Main") + of("Host < Main") > 250_000;
        assert_eq!((of("Generic < Main"), of("Blocks < Main")), (3_000, 1_000), "{place}: {found:#?}");
        are_most.then_some(()).ok_or(found)
    };
    each_runtime(|runtime| {
        // How many calls come before their caller is looked up depends on when the helper thread
        // gets a processor.
        assert_eq!(attempted(|| look(runtime)), Ok(()), "{}", runtime.version);
    });
}

/// Dynamic methods that are made and dropped by the hundred, and contexts that are unloaded: the
/// runtime uses addresses of code that is gone again.
#[test]
fn callers_that_come_and_go_are_counted_and_named() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let bare = run(runtime.command(&fixture("Loading")));
        let Run { finished, recording, .. } =
            record(runtime, "Loading", "probes:callers;probe=Loading.Program::Target");
        assert_unchanged(&finished, &bare, &place);
        assert_adds_up(&recording, &place);
        let edges = edges(&recording);
        let calls: u64 = edges.values().map(|sums| sums.calls).sum();
        let named: u64 =
            edges.iter().filter(|((caller, _), _)| caller.contains("::")).map(|(_, sums)| sums.calls).sum();
        assert_eq!((calls, named), (1_800, 1_800), "{place}: {edges:#?}");
    });
}

#[test]
fn threads_with_little_stack_have_callers_too() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let run = record_with(runtime, "Stacks", "probes:callers,frames=32;probe=[Stacks]*", &["small"]);
        let bare = run_with(runtime, "Stacks", &["small"]);
        assert_unchanged(&run.finished, &bare, &place);
        assert_adds_up(&run.recording, &place);
        let edges = edges(&run.recording);
        assert!(edges.len() > 3 && edges.keys().all(|(caller, _)| caller != UNKNOWN), "{place}: {edges:#?}");
    });
}

/// No two calls have the same way, and they come faster than addresses are looked up.
#[test]
fn calls_whose_way_finds_no_room_are_counted_and_an_unknown_callers() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let request = "probes:callers,frames=32;probe=[Paths]*::Left;probe=[Paths]*::Right";
        let Run { recording, .. } = record_with(runtime, "Paths", request, &["15"]);
        assert_adds_up(&recording, &place);
        let unknown: u64 =
            edges(&recording).iter().filter(|((caller, _), _)| caller == UNKNOWN).map(|(_, sums)| sums.calls).sum();
        let lost = recording.processes[0].losses.iter().find(|loss| loss.reason == LossReason::CallerUnknown);
        assert!(unknown > 0, "{place}");
        assert_eq!(lost.map(|loss| loss.count), Some(unknown), "{place}");
    });
}

/// The ways of a program that is killed are there, and so are all calls up to then.
#[test]
fn a_program_that_is_killed_has_its_callers() {
    const BATCH: u64 = 20_000;
    each_runtime(|runtime| {
        let (folder, place) = (scratch(), runtime.version.to_string());
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Counter"));
        command.args(["1000000000", &BATCH.to_string()]);
        under_agent(&mut command, "probes:callers;probe=Counter.Program::Step", &out);
        let service = Service::start(command);
        let of_main = || {
            let recording = clrscope_recording::open(&out).ok()?;
            ProbeCallers::open(&recording, &Query::default()).ok()?;
            Some(by(&edges(&recording), "Step", &["Main"]).calls).filter(|calls| *calls > 0)
        };
        let before = wait_for("calls with a caller", of_main);
        pause(random_pause(Duration::from_millis(300)));
        let finished = service.stop("KILL");
        let said = last_count(&finished, BATCH);
        let recording = clrscope_recording::open(&out).expect("a recording");
        assert_eq!(recording.problems, [], "{place}");
        let edges = edges(&recording);
        let calls: u64 = edges.values().map(|sums| sums.calls).sum();
        assert!((said..=said + BATCH).contains(&calls), "{place}: {said} said, {edges:#?}");
        assert!(by(&edges, "Step", &["Main"]).calls >= before, "{place}: {before} {edges:#?}");
    });
}

/// Records of callers.
fn ways(recording: &Recording) -> usize {
    let chunks = recording.processes[0].arenas(instrument::PROBE_CALLERS).flat_map(|arena| &arena.chunks);
    chunks.map(|chunk| ProbeCaller::all(&chunk.bytes.load()).count()).sum()
}
