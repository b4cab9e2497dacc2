//! Plans of coverage: what the counters of a recording are of. Made where the recording was made, because other machines have
//! other builds of its assemblies.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use clrscope_coverage::{MethodPlan, Module, open};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    CoveragePlan, CoverageSource, MethodHits, PlannedBranch, PlannedMethod, PlannedPoint, Process, Recording,
};

/// Gives every process that has none the plans of the assemblies whose coverage was recorded, as far as this machine has their
/// files.
pub(crate) fn add_coverage_plans(recording: &mut Recording) {
    // Test hosts of one run load the same assemblies.
    let mut opened: HashMap<String, Option<Module>> = HashMap::new();
    for process in recording.processes.iter_mut().filter(|process| process.coverage_plans.is_empty()) {
        for (module, methods) in recorded(process) {
            let Some(path) = process.modules.get(module as usize).map(|module| module.path.clone()) else { continue };
            let found = opened.entry(path).or_insert_with_key(|path| open(Path::new(path)).ok());
            process.coverage_plans.extend(found.as_ref().map(|found| plan(found, module, &methods)));
        }
    }
}

/// Tokens of the methods that were recorded, by module, each with the fingerprint of its plan.
fn recorded(process: &Process) -> BTreeMap<u32, BTreeMap<u32, u64>> {
    let mut methods: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for chunk in process.arenas(instrument::COVERAGE).flat_map(|arena| &arena.chunks) {
        for method in MethodHits::all(&chunk.bytes.load()) {
            methods.entry(method.module).or_default().insert(method.token, method.fingerprint);
        }
    }
    methods
}

/// Plans of methods as they were recorded: one of another build is none.
fn plan(of: &Module, module: u32, methods: &BTreeMap<u32, u64>) -> CoveragePlan {
    let planned = methods.iter().filter_map(|(token, fingerprint)| {
        let plan = of.plan(*token).filter(|plan| plan.fingerprint() == *fingerprint)?;
        let source = of.source(*token);
        let source = CoverageSource { class: source.class, name: source.name, parameters: source.parameters };
        Some((plan, source))
    });
    let planned: Vec<(MethodPlan, CoverageSource)> = planned.collect();
    let sources: BTreeSet<&CoverageSource> = planned.iter().map(|(_, source)| source).collect();
    let sources: Vec<CoverageSource> = sources.into_iter().cloned().collect();
    let methods = planned.iter().map(|(plan, source)| method(plan, sources.binary_search(source).unwrap_or(0) as u32));
    CoveragePlan { module, files: of.documents(), methods: methods.collect(), sources }
}

fn method(plan: &MethodPlan, source: u32) -> PlannedMethod {
    let points = plan.points.iter().map(|point| PlannedPoint {
        il_offset: point.il_offset,
        file: point.file,
        start_line: point.start_line,
        start_column: point.start_column,
        end_line: point.end_line,
        end_column: point.end_column,
    });
    let branches = plan.branches.iter().map(|branch| PlannedBranch {
        il_offset: branch.il_offset,
        path: branch.path,
        target_offset: branch.target_offset,
        file: branch.file,
        line: branch.line,
    });
    PlannedMethod {
        token: plan.token,
        source,
        fingerprint: plan.fingerprint(),
        points: points.collect(),
        branches: branches.collect(),
    }
}
