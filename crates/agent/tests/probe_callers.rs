//! Callers of probed methods, against programs that know who calls what how often.

mod support;

use std::collections::BTreeMap;
use std::convert::Infallible;

use clrscope_analysis::{CallerNode, CallerSums, ProbeCallers, Query, probes};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, ProbeCaller, Recording};
use clrscope_testkit::{Expectations, each_runtime, fixture, run};
use support::{Run, assert_unchanged, record};

/// Name of callers that nobody knows.
const UNKNOWN: &str = "(unknown caller)";

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

/// The callers of each method add up to the method, and those of each caller to no more than that one.
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

/// What native code calls back is called by that: the C library's sort keeps no frame pointers, so nobody knows who called it.
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

/// Records of callers.
fn ways(recording: &Recording) -> usize {
    let chunks = recording.processes[0].arenas(instrument::PROBE_CALLERS).flat_map(|arena| &arena.chunks);
    chunks.map(|chunk| ProbeCaller::all(&chunk.bytes.load()).count()).sum()
}
