//! `probes` against programs that know how often their methods are called, and against those that do all they should not.

mod support;

use std::collections::BTreeMap;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, ProbedMethod, Process};
use clrscope_testkit::{Expectations, Runtime, each_runtime, fixture, run};
use support::{Run, assert_unchanged, record};

/// All methods of a process that have probes.
fn methods(process: &Process) -> Vec<ProbedMethod> {
    let chunks = process.arenas(instrument::PROBES).flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| ProbedMethod::all(&chunk.bytes.load()).collect::<Vec<_>>()).collect()
}

/// Calls by name, overloads together.
fn calls(methods: &[ProbedMethod]) -> BTreeMap<&str, u64> {
    let mut calls = BTreeMap::new();
    methods.iter().for_each(|method| *calls.entry(method.name.as_str()).or_default() += method.calls);
    calls
}

/// Methods that could not be given probes, as the recording names them.
fn refused(process: &Process) -> Vec<String> {
    let refused = process.losses.iter().filter(|loss| loss.reason == LossReason::NotProbed);
    refused.flat_map(|loss| loss.details.clone()).collect()
}

/// Each method of the fixture is called as often as the fixture says, and each call ends.
fn compare(runtime: &Runtime, name: &str) {
    let place = format!("{name} on {}", runtime.version);
    let bare = run(runtime.command(&fixture(name))).expect_success();
    let Run { finished, recording, .. } = record(runtime, name, &format!("probes;probe=[{name}]*"));
    assert_unchanged(&finished, &bare, &place);
    let process = &recording.processes[0];
    let methods = methods(process);
    let (calls, refused) = (calls(&methods), refused(process));
    let expected = Expectations::parse(&finished.stdout_text());
    let own = |name: &&String| methods.iter().any(|method| method.name == **name);
    let wrong: Vec<_> = expected
        .calls
        .keys()
        .filter(own)
        .filter(|name| calls.get(name.as_str()) != Some(&expected.calls[*name]))
        .map(|name| format!("{name}: {:?} of {}", calls.get(name.as_str()), expected.calls[name]))
        .collect();
    assert!(wrong.is_empty(), "{place}: {wrong:#?}, refused {refused:#?}");
    assert!(expected.calls.keys().filter(own).count() > 3, "{place}: {calls:?}");
    for method in &methods {
        let ended: u64 = method.buckets.iter().sum();
        assert!(ended <= method.calls && method.failed <= ended, "{place}: {method:?}");
    }
}

#[test]
fn every_call_is_counted_whatever_kind_of_method_it_is_of() {
    each_runtime(|runtime| {
        for name in ["Generics", "Exceptions", "Async", "Threads"] {
            compare(runtime, name);
        }
    });
}

/// Constructors, references of all kinds, a stack trace that has its lines; contexts that are unloaded; recursions that are endless
/// tail calls. What can't be changed is named.
#[test]
fn programs_with_probes_in_all_their_methods_do_what_they_did() {
    each_runtime(|runtime| {
        for (name, wanted, not_changed) in [
            ("Counted", ("Counted.Program::Small", 800_000), None),
            ("Loading", ("Loading.Program::Target", 1_800), Some("Plugin.Work.Run(int): its assembly can be unloaded")),
            ("TailCalls", ("TailCalls.Program::Target", 2_000), Some("Ping.Play(long): it is always optimised")),
        ] {
            let place = format!("{name} on {}", runtime.version);
            let bare = run(runtime.command(&fixture(name)));
            let Run { finished, recording, .. } =
                record(runtime, name, "probes;probe=*;probe=[System.Console]System.Console::WriteLine");
            assert_unchanged(&finished, &bare, &place);
            let process = &recording.processes[0];
            let (methods, refused) = (methods(process), refused(process));
            let calls = calls(&methods);
            let (method, wanted) = wanted;
            assert_eq!(calls.get(method), Some(&wanted), "{place}: {refused:#?}");
            assert!(
                calls.get("System.Console::WriteLine").is_some_and(|calls| *calls > 0),
                "{place}: precompiled code: {calls:?}"
            );
            let is_named = |why: &str| refused.iter().any(|refused| refused.contains(why));
            assert!(not_changed.is_none_or(is_named), "{place}: {refused:#?}");
            assert_eq!(not_changed.is_none(), refused.is_empty(), "{place}: {refused:#?}");
        }
    });
}
