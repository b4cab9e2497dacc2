//! Numbers that `coverage` and `probes` have counted, and those that sources say.

use std::collections::BTreeMap;
use std::path::Path;

use clrscope_coverage::Opener;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, MethodHits, ProbedLine, ProbedMethod, Process};
use clrscope_testkit::{Expectations, workspace_root};

/// Source of a fixture.
pub(crate) fn source(name: &str) -> String {
    let path = workspace_root().join(format!("dotnet/fixtures/{name}/{name}.cs"));
    std::fs::read_to_string(path).expect("the source")
}

/// Numbers of the lines that end with what a closure finds in them.
pub(crate) fn numbered<T>(source: &str, of: impl Fn(&str) -> Option<T>) -> Vec<(u32, T)> {
    (1..).zip(source.lines()).filter_map(|(number, line)| Some((number, of(line)?))).collect()
}

/// Hits by line, as a source says them.
pub(crate) fn said_hits(source: &str) -> BTreeMap<u32, u64> {
    let hits = |line: &str| Some(line.strip_suffix(" hits")?.rsplit_once("// ")?.1.parse().expect("a number of hits"));
    numbered(source, hits).into_iter().collect()
}

/// All methods of a process that have counters.
pub(crate) fn covered(process: &Process) -> Vec<MethodHits> {
    let chunks = process.arenas(instrument::COVERAGE).flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| MethodHits::all(&chunk.bytes.load()).collect::<Vec<_>>()).collect()
}

/// Hits by line, of the points that begin there.
pub(crate) fn hits_by_line(module: &Path, methods: &[MethodHits]) -> BTreeMap<u32, u64> {
    let plans = Opener::default().open(module, None).expect("a module with symbols");
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

/// All methods of a process that have probes.
pub(crate) fn probed(process: &Process) -> Vec<ProbedMethod> {
    let chunks = process.arenas(instrument::PROBES).flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| ProbedMethod::all(&chunk.bytes.load()).collect::<Vec<_>>()).collect()
}

/// Calls by name, overloads together.
pub(crate) fn calls(methods: &[ProbedMethod]) -> BTreeMap<&str, u64> {
    let mut calls = BTreeMap::new();
    methods.iter().for_each(|method| *calls.entry(method.name.as_str()).or_default() += method.calls);
    calls
}

/// Methods with probes that were called more or less often than their program says.
pub(crate) fn miscounted(expected: &Expectations, methods: &[ProbedMethod]) -> Vec<String> {
    let calls = calls(methods);
    let wrong = |(name, said): (&String, &u64)| {
        let counted = calls.get(name.as_str()).filter(|counted| *counted != said)?;
        Some(format!("{name}: {counted} of {said}"))
    };
    expected.calls.iter().filter_map(wrong).collect()
}

/// Lines of a process that have probes.
pub(crate) fn probed_lines(process: &Process) -> Vec<ProbedLine> {
    let chunks = process.arenas(instrument::PROBE_LINES).flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| ProbedLine::all(&chunk.bytes.load()).collect::<Vec<_>>()).collect()
}

/// Methods that something could not be done about, as the recording names them.
pub(crate) fn refused(process: &Process, why: LossReason) -> Vec<String> {
    let refused = process.losses.iter().filter(|loss| loss.reason == why);
    refused.flat_map(|loss| loss.details.clone()).collect()
}
