//! `coverage` against a program whose source says how often each line runs, and against those that do all they should not.

mod support;

use std::time::Duration;

use clrscope_recording::model::LossReason;
use clrscope_testkit::{Runtime, Service, each_runtime, fixture, pause, random_pause, run, scratch};
use support::counted::{covered, hits_by_line, said_hits, source};
use support::{Run, assert_unchanged, record, under_agent};

fn compare(runtime: &Runtime, counts_hits: bool) {
    let (program, place) = (fixture("Counted"), format!("{}, hits {counts_hits}", runtime.version));
    let bare = run(runtime.command(&program)).expect_success();
    let request = format!("coverage:hits={};include=[Counted]*", if counts_hits { "on" } else { "off" });
    let Run { finished, recording, .. } = record(runtime, "Counted", &request);
    assert_unchanged(&finished, &bare, &place);
    let process = &recording.processes[0];
    assert!(process.losses.is_empty() && recording.problems.is_empty(), "{place}: {:?}", process.losses);
    let methods = covered(process);
    assert!(methods.iter().all(|method| method.counted == counts_hits), "{place}");
    let modules: Vec<_> = methods.iter().map(|method| &*process.modules[method.module as usize].name).collect();
    assert!(modules.iter().all(|module| *module == "Counted"), "{place}: {modules:?}");
    let source = source("Counted");
    let (seen, said) = (hits_by_line(&program, &methods), said_hits(&source));
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
        let most = covered(&recording.processes[0]).into_iter().flat_map(|method| method.hits).max();
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
            let methods = covered(process);
            assert!(methods.iter().any(|method| method.hits.iter().any(|hits| *hits > 0)), "{place}: {methods:?}");
        }
    });
}
