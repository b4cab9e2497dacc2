//! `coverage` against a program whose source says how often each line runs, and against those that do all they should not.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clrscope_coverage::{Files, open};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, MethodHits, Process};
use clrscope_testkit::{Runtime, Service, each_runtime, fixture, pause, random_pause, run, scratch, workspace_root};
use support::{Run, assert_unchanged, record, under_agent};

/// All methods of a process that have counters.
fn methods(process: &Process) -> Vec<MethodHits> {
    let chunks = process.arenas(instrument::COVERAGE).flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| MethodHits::all(&chunk.bytes.load()).collect::<Vec<_>>()).collect()
}

/// Hits by line, of the points that begin there.
fn by_line(module: &Path, methods: &[MethodHits]) -> BTreeMap<u32, u64> {
    let plans = open(module, &mut Files::default()).expect("a module with symbols");
    let mut lines = BTreeMap::new();
    for method in methods {
        let plan = plans.plan(method.token).expect("a plan");
        assert_eq!((plan.fingerprint(), plan.points.len()), (method.fingerprint, method.of_points().len()));
        for (point, hits) in plan.points.iter().zip(method.of_points()) {
            *lines.entry(point.start_line).or_default() += hits;
        }
    }
    lines
}

/// Hits by line, as the source says.
fn said(source: &str) -> BTreeMap<u32, u64> {
    let lines = (1..).zip(source.lines()).filter_map(|(number, line)| {
        let hits = line.strip_suffix(" hits")?.rsplit_once("// ")?.1;
        Some((number, hits.parse().expect("a number of hits")))
    });
    lines.collect()
}

fn compare(runtime: &Runtime, counts_hits: bool) {
    let (program, place) = (fixture("Counted"), format!("{}, hits {counts_hits}", runtime.version));
    let bare = run(runtime.command(&program)).expect_success();
    let request = format!("coverage:hits={};include=[Counted]*", if counts_hits { "on" } else { "off" });
    let Run { finished, recording, .. } = record(runtime, "Counted", &request);
    assert_unchanged(&finished, &bare, &place);
    let process = &recording.processes[0];
    assert!(process.losses.is_empty() && recording.problems.is_empty(), "{place}: {:?}", process.losses);
    let methods = methods(process);
    assert!(methods.iter().all(|method| method.counted == counts_hits), "{place}");
    let modules: Vec<_> = methods.iter().map(|method| &*process.modules[method.module as usize].name).collect();
    assert!(modules.iter().all(|module| *module == "Counted"), "{place}: {modules:?}");
    let source =
        std::fs::read_to_string(workspace_root().join("dotnet/fixtures/Counted/Counted.cs")).expect("the source");
    let (seen, said) = (by_line(&program, &methods), said(&source));
    assert!(said.len() > 40, "{}", said.len());
    for (line, hits) in said {
        let expected = if counts_hits { hits } else { hits.min(1) };
        let seen = seen.get(&line).map(|hits| if counts_hits { *hits } else { (*hits).min(1) });
        assert_eq!(
            seen,
            Some(expected),
            "{place}: line {line}: {}",
            source.lines().nth(line as usize - 1).unwrap_or("")
        );
    }
}

#[test]
fn every_line_has_as_many_hits_as_it_runs_in_every_tier_and_the_program_does_what_it_did() {
    each_runtime(|runtime| [true, false].into_iter().for_each(|counts_hits| compare(runtime, counts_hits)));
}

/// Whenever a program is killed, what it did until then is counted.
#[test]
fn killed_at_any_moment_a_program_has_all_its_hits() {
    const BATCH: u64 = 20_000;
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Counter"));
        command.args(["1000000000000", &BATCH.to_string()]);
        under_agent(&mut command, "coverage;include=[Counter]*", &out);
        let service = Service::start(command);
        pause(random_pause(Duration::from_millis(300)));
        let finished = service.stop("KILL");
        let said = finished.stdout_text().lines().filter_map(|line| line.strip_prefix("count ")?.parse().ok()).max();
        let said: u64 = said.expect("a number");
        let recording = clrscope_recording::open(&out).expect("a recording");
        assert_eq!(recording.problems, [], "{}", runtime.version);
        let most = methods(&recording.processes[0]).into_iter().flat_map(|method| method.hits).max();
        // The condition of the loop is looked at once more than its body runs.
        let most = most.expect("a counter");
        assert!((said..=said + said / BATCH + 2 * BATCH).contains(&most), "{most} of {said} on {}", runtime.version);
    });
}

/// Collectible contexts, dynamic methods, threads, exceptions of all kinds, children, little stack.
#[test]
fn programs_with_counters_in_all_their_methods_do_what_they_did() {
    each_runtime(|runtime| {
        for name in
            ["Exceptions", "Filters", "Async", "Iterators", "Generics", "Dynamic", "Loading", "TailCalls", "Threads"]
        {
            let place = format!("{name} on {}", runtime.version);
            let bare = run(runtime.command(&fixture(name)));
            let Run { finished, recording, .. } = record(runtime, name, "coverage;include=*");
            assert_unchanged(&finished, &bare, &place);
            let process = &recording.processes[0];
            let refused = process.losses.iter().find(|loss| loss.reason == LossReason::NotCovered);
            assert_eq!(refused.map(|loss| &loss.details), None, "{place}");
            let methods = methods(process);
            assert!(methods.iter().any(|method| method.hits.iter().any(|hits| *hits > 0)), "{place}: {methods:?}");
        }
    });
}
