//! `probes` together with `coverage`: a method has one body with both, and each counts what it
//! counts alone.

use std::collections::BTreeMap;

use crate::support::counted::{
    calls, covered, hits_by_line, miscounted, probed, probed_lines, refused, said_hits, source,
};
use crate::support::{Run, assert_unchanged, record};
use clrscope_recording::model::{LossReason, MethodHits, ProbedMethod};
use clrscope_testkit::{Expectations, Runtime, each_runtime, fixture, run};

/// Every line of the fixture that says how often it runs: by coverage and by a probe of its own, in
/// methods whose calls are counted, with exceptions, iterators, async methods, constructors, loops
/// that are recompiled while they run; and a stack trace has its lines.
#[test]
fn lines_that_are_covered_and_probed_have_as_many_hits_as_they_run() {
    let said = said_hits(&source("Counted"));
    let lines: String = said.keys().map(|line| format!(";probe-at=Counted/Counted.cs:{line}")).collect();
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Counted"))).expect_success();
        for (hits, counts_hits) in [("on", true), ("off", false)] {
            let place = format!("{}, hits={hits}", runtime.version);
            let request = format!("coverage:hits={hits};include=[Counted]*;probes;probe=[Counted]*{lines}");
            let Run { finished, recording, .. } = record(runtime, "Counted", &request);
            assert_unchanged(&finished, &bare, &place);
            let process = &recording.processes[0];
            assert!(process.losses.is_empty() && recording.problems.is_empty(), "{place}: {:?}", process.losses);
            let mut seen = hits_by_line(&fixture("Counted"), &covered(process));
            let mut wanted = said.clone();
            if !counts_hits {
                seen.values_mut().chain(wanted.values_mut()).for_each(|hits| *hits = (*hits).min(1));
            }
            seen.retain(|line, _| wanted.contains_key(line));
            assert_eq!(seen, wanted, "{place}: coverage");
            let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
            probed_lines(process).iter().for_each(|line| *seen.entry(line.line).or_default() += line.hits);
            assert_eq!(seen, said, "{place}: probes of lines");
            let methods = probed(process);
            let calls = calls(&methods);
            for (name, wanted) in [("Small", 800_000), ("Loop", 2), ("Risky", 6), ("Half", 4), ("Inner", 3)] {
                assert_eq!(calls.get(format!("Counted.Program::{name}").as_str()), Some(&wanted), "{place}: {name}");
            }
            let failed = |name: &str| methods.iter().find(|method| method.name.ends_with(name)).map(|one| one.failed);
            assert_eq!(
                (failed("::Risky"), failed("::Inner"), failed("::Small")),
                (Some(2), Some(1), Some(0)),
                "{place}"
            );
        }
    });
}

/// Counts of a fixture's own methods, by token: hits, and calls with failures.
fn counted(runtime: &Runtime, name: &str, request: &str) -> (Run, BTreeMap<u32, MethodHits>, BTreeMap<u32, [u64; 2]>) {
    let run = record(runtime, name, request);
    let process = &run.recording.processes[0];
    let own = |module: u32| process.modules[module as usize].name == name;
    let hits = covered(process).into_iter().filter(|method| own(method.module)).map(|method| (method.token, method));
    let (hits, probed) = (hits.collect(), probed(process));
    let own = |method: &&ProbedMethod| own(method.module);
    let calls = probed.iter().filter(own).map(|method| (method.token, [method.calls, method.failed])).collect();
    (run, hits, calls)
}

/// Programs with all that is hard, each recorded with either and with both: what one instrument
/// says does not depend on the other.
#[test]
fn coverage_and_probes_together_count_what_each_counts_alone() {
    each_runtime(|runtime| {
        for name in
            ["Exceptions", "Filters", "Async", "Iterators", "Generics", "Dynamic", "Loading", "TailCalls", "Recursion"]
        {
            let place = format!("{name} on {}", runtime.version);
            let bare = run(runtime.command(&fixture(name)));
            let coverage = format!("coverage;include=[{name}]*");
            let probes = format!("probes;probe=[{name}]*");
            let (_, mut hits, _) = counted(runtime, name, &coverage);
            let (alone, _, mut calls) = counted(runtime, name, &probes);
            let (both, mut hits_of_both, mut calls_of_both) = counted(runtime, name, &format!("{coverage};{probes}"));
            let process = &both.recording.processes[0];
            if name != "Filters" {
                let expected = Expectations::parse(&both.finished.stdout_text());
                assert_eq!(miscounted(&expected, &probed(process)), [] as [String; 0], "{place}");
            }
            if ["Async", "Iterators"].contains(&name) {
                // Threads that add at the same time lose hits, and how often code goes on is a
                // matter of time; alone, too.
                let all_hits = hits.values_mut().chain(hits_of_both.values_mut()).flat_map(|method| &mut method.hits);
                let all_calls = calls.values_mut().chain(calls_of_both.values_mut()).map(|[calls, _]| calls);
                all_hits.chain(all_calls).for_each(|count| *count = (*count).min(1));
            }
            assert_unchanged(&both.finished, &bare, &place);
            assert!(hits.values().any(|method| method.hits.iter().any(|hits| *hits > 0)), "{place}");
            assert!(calls.values().any(|[calls, _]| *calls > 0), "{place}");
            assert_eq!(hits_of_both, hits, "{place}: coverage");
            assert_eq!(calls_of_both, calls, "{place}: probes");
            assert_eq!(refused(process, LossReason::NotCovered), [] as [String; 0], "{place}");
            let refused = |run: &Run| refused(&run.recording.processes[0], LossReason::NotProbed);
            assert_eq!(refused(&both), refused(&alone), "{place}");
        }
    });
}
