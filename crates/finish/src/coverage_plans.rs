//! Coverage plans: the meaning of the counters in a recording, and the assemblies that were to be
//! covered but were never loaded. The plans are made on the recording machine, because other
//! machines have other builds of the assemblies.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use clrscope_contract::instruments::{check, coverage};
use clrscope_contract::request::{Filter, Request};
use clrscope_coverage::{MethodPlan, Module, Opener, PlanOptions, Source};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{CoveragePlan, CoverageSource, MethodHits, PlannedMethod, Process, Recording};

/// Name of the runtime's core library.
const CORE: &str = "System.Private.CoreLib";

/// Opened assemblies, by path and core library. Test hosts of one run load the same ones.
struct Assemblies {
    opened: HashMap<(PathBuf, Option<PathBuf>), Option<Module>>,
    opener: Opener,
}

impl Assemblies {
    fn new(options: PlanOptions) -> Self {
        Self { opened: HashMap::new(), opener: Opener::new(options) }
    }

    fn open(&mut self, path: &Path, core: Option<&Path>) -> Option<&Module> {
        let (opener, key) = (&mut self.opener, (path.to_owned(), core.map(Path::to_owned)));
        self.opened.entry(key).or_insert_with(|| opener.open(path, core).ok()).as_ref()
    }

    /// Whether an assembly is a program: programs are built with a list of all their dependencies.
    fn is_program(&mut self, path: &Path) -> bool {
        self.opener.files().has(&path.with_extension("deps.json"))
    }

    /// Files in a folder that may be assemblies, in the order of their names.
    fn in_folder(&mut self, folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        let is_library = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "dll" || ending == "exe");
        self.opener.files().paths_in(folder).into_iter().filter(is_library)
    }
}

/// Adds coverage plans to every process that has none: those of its covered assemblies, and those
/// of assemblies next to them that no process loaded. Plans are made only if this machine has the
/// files.
pub(crate) fn add_coverage_plans(recording: &mut Recording) {
    // The given request holds only the instruments; the filters are in the agent's completed
    // request.
    let request = recording.run.filled.request();
    let (filter, mut assemblies) = (request.filter.clone(), Assemblies::new(options(request)));
    let paths =
        recording.processes.iter().flat_map(|process| &process.modules).map(|module| module.path.clone().into());
    let mut loaded: HashSet<PathBuf> = paths.collect();
    for process in recording.processes.iter_mut().filter(|process| process.coverage_plans.is_empty()) {
        let (recorded, core) = (recorded(process), core(process));
        let core = core.as_deref();
        for (module, methods) in &recorded {
            let Some(path) = process.modules.get(*module as usize).map(|module| module.path.clone()) else { continue };
            let found = assemblies.open(path.as_ref(), core);
            process.coverage_plans.extend(found.map(|found| plan(found, *module, methods)));
        }
        let folders = folders(process, &recorded, &mut assemblies, core);
        let files: Vec<PathBuf> = folders.iter().flat_map(|folder| assemblies.in_folder(folder)).collect();
        let files = files.iter().filter(|path| loaded.insert((*path).clone()));
        process
            .coverage_plans
            .extend(files.filter_map(|path| never_loaded(path, &mut assemblies.opener, core, &filter)));
    }
}

/// Options of the requested coverage.
fn options(request: &Request) -> PlanOptions {
    let of_coverage = request.instruments.iter().find(|one| one.name == coverage::SPEC.name);
    of_coverage.and_then(|one| check(one).ok()).map(|checked| PlanOptions::from_request(&checked)).unwrap_or_default()
}

/// File of a process's core library; the recording names it if plans need it.
fn core(process: &Process) -> Option<PathBuf> {
    process.modules.iter().find(|module| module.name == CORE).map(|module| module.path.clone().into())
}

/// Folders of the process's own assemblies: of the covered ones, and of the program itself or its
/// tests.
fn folders<T>(
    process: &Process,
    recorded: &BTreeMap<u32, T>,
    assemblies: &mut Assemblies,
    core: Option<&Path>,
) -> BTreeSet<PathBuf> {
    if process.arenas(instrument::COVERAGE).next().is_none() {
        return BTreeSet::new();
    }
    let is_own = |(number, path): &(u32, &Path)| {
        recorded.contains_key(number)
            || (assemblies.is_program(path) && assemblies.open(path, core).is_some_and(Module::has_sources))
    };
    let modules = (0..).zip(&process.modules).map(|(number, module)| (number, Path::new(&module.path)));
    modules.filter(is_own).filter_map(|(_, path)| path.parent().map(Path::to_owned)).collect()
}

/// Plan of an assembly that no process loaded; `None` if it is not to be covered: it has no
/// symbols, was built elsewhere, contains tests, or is excluded by the filters.
fn never_loaded(path: &Path, opener: &mut Opener, core: Option<&Path>, filter: &Filter) -> Option<CoveragePlan> {
    let module = opener.open(path, core).ok().filter(|module| module.has_sources() && !module.is_test_project())?;
    let assembly = module.name().to_owned();
    let passes = |source: &Source| {
        let Source { class, name, parameters, .. } = source;
        filter.passes(&assembly, &module.pattern_name(source), &format!("{class}.{name}{parameters}"))
    };
    let plans = module.methods().filter_map(|token| module.plan(token)).map(|plan| (module.source(plan.token), plan));
    let plans: Vec<_> = plans.filter(|(source, _)| passes(source)).collect();
    let planned = of_methods(&module, plans.into_iter().map(|(source, plan)| (plan, source)).collect());
    (!planned.methods.is_empty()).then_some(CoveragePlan { module: u32::MAX, assembly, ..planned })
}

/// Tokens of the recorded methods, by module, each with the fingerprint of its plan.
fn recorded(process: &Process) -> BTreeMap<u32, BTreeMap<u32, u64>> {
    let mut methods: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for chunk in process.arenas(instrument::COVERAGE).flat_map(|arena| &arena.chunks) {
        for method in MethodHits::all(&chunk.bytes.load()) {
            methods.entry(method.module).or_default().insert(method.token, method.fingerprint);
        }
    }
    methods
}

/// Plans of methods as they were recorded; methods whose plan differs in another build are left
/// out.
fn plan(of: &Module, module: u32, methods: &BTreeMap<u32, u64>) -> CoveragePlan {
    let planned = methods.iter().filter_map(|(token, fingerprint)| {
        let plan = of.plan(*token).filter(|plan| plan.fingerprint() == *fingerprint)?;
        Some((plan, of.source(*token)))
    });
    CoveragePlan { module, ..of_methods(of, planned.collect()) }
}

/// Plan of these methods, not yet assigned to a module.
fn of_methods(of: &Module, methods: Vec<(MethodPlan, Source)>) -> CoveragePlan {
    let planned = methods.into_iter().map(|(plan, source)| {
        (plan, CoverageSource { class: source.class, name: source.name, parameters: source.parameters })
    });
    let planned: Vec<(MethodPlan, CoverageSource)> = planned.collect();
    let sources: BTreeSet<&CoverageSource> = planned.iter().map(|(_, source)| source).collect();
    let sources: Vec<CoverageSource> = sources.into_iter().cloned().collect();
    let methods = planned.iter().map(|(plan, source)| method(plan, sources.binary_search(source).unwrap_or(0) as u32));
    CoveragePlan { files: of.documents(), methods: methods.collect(), sources, ..CoveragePlan::default() }
}

fn method(plan: &MethodPlan, source: u32) -> PlannedMethod {
    let MethodPlan { token, points, branches } = plan.clone();
    PlannedMethod { token, source, fingerprint: plan.fingerprint(), points, branches }
}
