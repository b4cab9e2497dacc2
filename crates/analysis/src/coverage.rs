//! Coverage: the lines and branches that were executed or not, over the processes of a recording.
//!
//! A piece of source ([`PlannedPoint`]) counts for each line that it touches, except for lines that
//! belong to a piece nested in it, such as the body of a lambda that is an argument of the call. A
//! line's hits are the sum of its pieces' hits. A line belongs to the source method that contains
//! it, whatever code the compiler generated.
//!
//! Coverage that was recorded several times is added up. Methods are identified by assembly, file,
//! class, name and parameters, lines by number, and branches of a line by their order. So two
//! builds of the same source count as one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clrscope_contract::request::Glob;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    CoveragePlan, MethodHits, PlannedBranch, PlannedMethod, PlannedPoint, Process, Recording,
};

use crate::query::{Query, QueryProblem};
use crate::select;

/// Maximum number of lines in one piece of source. Also the average number of lines beyond the
/// first that the pieces of an assembly may have.
const MOST_LINES: u32 = 10_000;
const MOST_LINES_EACH: usize = 64;

/// Numbers of lines and branches, and of those that were executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoverageSums {
    /// Number of lines with code.
    pub lines: u64,
    /// Number of lines that were executed.
    pub lines_covered: u64,
    /// Number of branches of conditions.
    pub branches: u64,
    /// Number of branches that were taken.
    pub branches_covered: u64,
}

/// A branch of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchCoverage {
    /// Offset of the condition in its method's code.
    pub il_offset: u32,
    /// Offset of the branch's target.
    pub target_offset: u32,
    /// Number of the branch. Branch 0 continues with the next instruction.
    pub path: u32,
    /// Number of times that the branch was taken.
    pub hits: u64,
}

/// A line with code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineCoverage {
    /// Number of times that a piece of source on the line was executed.
    pub hits: u64,
    /// Branches of the line's conditions.
    pub branches: Vec<BranchCoverage>,
}

/// Lines of a file, by number.
type Lines = BTreeMap<u32, LineCoverage>;

/// Identity of a method across processes and recordings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    module: String,
    file: String,
    class: String,
    name: String,
    parameters: String,
}

/// The part of a source method that lies in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCoverage {
    /// Name of the assembly.
    pub module: String,
    /// Path of the file, as passed to the compiler.
    pub file: String,
    /// Type that declares the method, in C# syntax.
    pub class: String,
    /// Name of the method, in C# syntax.
    pub name: String,
    /// Types of the method's parameters, in parentheses.
    pub parameters: String,
    /// The lines of the method in the file.
    pub lines: BTreeMap<u32, LineCoverage>,
}

/// A file of an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCoverage {
    /// Name of the assembly.
    pub module: String,
    /// Path of the file, as passed to the compiler.
    pub file: String,
    /// Lines of the file with code.
    pub lines: BTreeMap<u32, LineCoverage>,
}

/// Coverage of all selected code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Methods, by assembly, file, first line, class and name.
    pub methods: Vec<MethodCoverage>,
    /// Number of recorded methods that have no plan, because their assembly was rebuilt or removed
    /// after the recording.
    pub unknown_methods: u64,
    /// Whether all hits were counted; otherwise some were only noted as hit or not hit.
    pub counted: bool,
}

impl CoverageSums {
    /// Counts lines and branches, and those that were executed.
    #[must_use]
    pub fn from_lines(lines: &BTreeMap<u32, LineCoverage>) -> Self {
        let mut sums = Self::default();
        for line in lines.values() {
            sums.lines += 1;
            sums.lines_covered += u64::from(line.hits > 0);
            sums.branches += line.branches.len() as u64;
            sums.branches_covered += line.branches_covered();
        }
        sums
    }

    /// Adds the numbers of `other`.
    pub fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.lines_covered += other.lines_covered;
        self.branches += other.branches;
        self.branches_covered += other.branches_covered;
    }

    /// Share of the lines that were executed, 0 to 1; 1 if there are no lines.
    #[must_use]
    pub fn line_share(&self) -> f64 {
        share(self.lines_covered, self.lines)
    }

    /// Share of the branches that were taken, 0 to 1; 1 if there are no branches.
    #[must_use]
    pub fn branch_share(&self) -> f64 {
        share(self.branches_covered, self.branches)
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

impl LineCoverage {
    /// Number of the line's branches that were taken.
    #[must_use]
    pub fn branches_covered(&self) -> u64 {
        self.branches.iter().filter(|branch| branch.hits > 0).count() as u64
    }

    /// Adds the coverage of the same line from elsewhere.
    fn merge(&mut self, other: Self) {
        self.hits = self.hits.saturating_add(other.hits);
        for (own, other) in self.branches.iter_mut().zip(&other.branches) {
            own.hits = own.hits.saturating_add(other.hits);
        }
        let known = self.branches.len().min(other.branches.len());
        self.branches.extend_from_slice(&other.branches[known..]);
    }
}

impl MethodCoverage {
    /// Number of the method's first line in the file; 0 if it has no lines.
    #[must_use]
    pub fn first_line(&self) -> u32 {
        self.lines.keys().next().copied().unwrap_or(0)
    }
}

impl Coverage {
    /// Totals of all methods; a line that several methods share counts once.
    #[must_use]
    pub fn sums(&self) -> CoverageSums {
        let mut sums = CoverageSums::default();
        self.files().iter().for_each(|file| sums.add(CoverageSums::from_lines(&file.lines)));
        sums
    }

    /// The files, by assembly and path. A line that several methods share has the hits and branches
    /// of all of these.
    #[must_use]
    pub fn files(&self) -> Vec<FileCoverage> {
        let mut files: Vec<FileCoverage> = Vec::new();
        for method in &self.methods {
            if files.last().is_none_or(|last| (&last.module, &last.file) != (&method.module, &method.file)) {
                let (module, file) = (method.module.clone(), method.file.clone());
                files.push(FileCoverage { module, file, lines: Lines::new() });
            }
            let Some(file) = files.last_mut() else { continue };
            for (number, line) in &method.lines {
                let shared = file.lines.entry(*number).or_default();
                shared.hits = shared.hits.saturating_add(line.hits);
                shared.branches.extend_from_slice(&line.branches);
            }
        }
        files
    }
}

/// Coverage over the processes of a recording.
///
/// # Errors
/// When the query selects no process, or no selected process recorded coverage.
pub fn coverage(recording: &Recording, query: &Query) -> Result<Coverage, QueryProblem> {
    let mut all: BTreeMap<Identity, Lines> = BTreeMap::new();
    let mut found = Coverage { counted: true, ..Coverage::default() };
    let mut is_recorded = false;
    for process in select::processes(recording, query)? {
        is_recorded |= process.arenas(instrument::COVERAGE).next().is_some();
        let is_meant = |name: &str| Glob::any_matches(&query.modules, name);
        let mut hits = hits_of(process);
        hits.retain(|(module, _), _| is_meant(process.module_name(*module)));
        found.counted &= hits.values().all(|method| method.counted);
        for plan in &process.coverage_plans {
            let name = process.covered_assembly(plan);
            if is_meant(name) {
                merge(&mut all, of_plan(plan, name, &mut hits));
            }
        }
        found.unknown_methods += hits.len() as u64;
    }
    if !is_recorded {
        return Err(QueryProblem::NotRecorded { view: "coverage", instrument: instrument::COVERAGE });
    }
    found.methods = all.into_iter().filter(|(_, lines)| !lines.is_empty()).map(method).collect();
    found.methods.sort_by(|a, b| {
        let place = |of: &MethodCoverage| (of.module.clone(), of.file.clone(), of.first_line());
        place(a).cmp(&place(b))
    });
    Ok(found)
}

fn method((of, lines): (Identity, Lines)) -> MethodCoverage {
    let Identity { module, file, class, name, parameters } = of;
    MethodCoverage { module, file, class, name, parameters, lines }
}

/// Counters of a process, by module and token.
fn hits_of(process: &Process) -> HashMap<(u32, u32), MethodHits> {
    let chunks = process.arenas(instrument::COVERAGE).flat_map(|arena| &arena.chunks);
    let mut hits = HashMap::new();
    for chunk in chunks {
        for method in MethodHits::all(&chunk.bytes.load()) {
            hits.insert((method.module, method.token), method);
        }
    }
    hits
}

fn merge(all: &mut BTreeMap<Identity, Lines>, more: BTreeMap<Identity, Lines>) {
    for (method, lines) in more {
        let known = all.entry(method).or_default();
        for (number, line) in lines {
            match known.get_mut(&number) {
                Some(known) => known.merge(line),
                None => _ = known.insert(number, line),
            }
        }
    }
}

/// The hits of a method in an assembly that was never loaded: none.
fn never_run(method: &PlannedMethod) -> MethodHits {
    let (points, branches) = (method.points.len() as u32, method.branches.len() as u32);
    let hits = vec![0; method.points.len() + method.branches.len()];
    MethodHits { token: method.token, points, branches, hits, ..MethodHits::default() }
}

/// Lines of an assembly's recorded methods, whose hits are taken out of `hits`. For an assembly
/// that was never loaded, the lines of all its methods.
fn of_plan(plan: &CoveragePlan, module: &str, hits: &mut HashMap<(u32, u32), MethodHits>) -> BTreeMap<Identity, Lines> {
    let mut methods = Vec::new();
    for method in &plan.methods {
        if !plan.was_loaded() {
            methods.push((method, never_run(method)));
            continue;
        }
        let key = (plan.module, method.token);
        let fits = |hits: &MethodHits| {
            hits.fingerprint == method.fingerprint
                && hits.of_points().len() == method.points.len()
                && hits.of_branches().len() == method.branches.len()
        };
        if hits.get(&key).is_some_and(fits)
            && let Some(hits) = hits.remove(&key)
        {
            methods.push((method, hits));
        }
    }
    let spans = Spans::from_points(methods.iter().flat_map(|(method, _)| &method.points));
    let mut budget = methods.iter().map(|(method, _)| method.points.len()).sum::<usize>() * MOST_LINES_EACH;
    let mut found: BTreeMap<Identity, Lines> = BTreeMap::new();
    for (method, hits) in methods {
        let lines = |file: u32| {
            let source = plan.sources.get(method.source as usize).cloned().unwrap_or_default();
            let file = plan.files.get(file as usize).cloned().unwrap_or_default();
            let (class, name, parameters) = (source.class, source.name, source.parameters);
            Identity { module: module.to_owned(), file, class, name, parameters }
        };
        for (point, hits) in method.points.iter().zip(hits.of_points()) {
            let lines = found.entry(lines(point.file)).or_default();
            for number in spans.own_lines(point, &mut budget) {
                let line = lines.entry(number).or_default();
                line.hits = line.hits.saturating_add(*hits);
            }
        }
        for (branch, hits) in method.branches.iter().zip(hits.of_branches()) {
            let PlannedBranch { il_offset, path, target_offset, file, line } = *branch;
            let line = found.entry(lines(file)).or_default().entry(line).or_default();
            line.branches.push(BranchCoverage { il_offset, target_offset, path, hits: *hits });
        }
    }
    found
}

/// First and last lines of the pieces of each file, in order.
struct Spans(HashMap<u32, Vec<(u32, u32)>>);

impl Spans {
    fn from_points<'a>(points: impl Iterator<Item = &'a PlannedPoint>) -> Self {
        let mut spans: HashMap<u32, BTreeSet<(u32, u32)>> = HashMap::new();
        for point in points {
            spans.entry(point.file).or_default().insert((point.start_line, point.end_line));
        }
        Self(spans.into_iter().map(|(file, spans)| (file, spans.into_iter().collect())).collect())
    }

    /// The lines that a piece touches, without the lines of pieces within it. `budget` is the
    /// number of lines that pieces may still have beyond their first. A piece that exceeds it has
    /// only its first line.
    fn own_lines(&self, point: &PlannedPoint, budget: &mut usize) -> Vec<u32> {
        let PlannedPoint { file, start_line: first, end_line: last, .. } = *point;
        let more = last.saturating_sub(first).min(MOST_LINES) as usize;
        if more == 0 || more > *budget {
            return vec![first];
        }
        *budget -= more;
        let last = first + more as u32;
        let all = self.0.get(&file).map(Vec::as_slice).unwrap_or_default();
        let behind = all.partition_point(|(start, _)| *start <= first);
        let within = all[behind..].iter().take_while(|(start, _)| *start < last).filter(|(_, end)| *end < last);
        let mut lines: Vec<bool> = vec![true; more + 1];
        for (start, end) in within {
            let end = (*end).max(*start);
            lines[(start - first) as usize..=(end - first) as usize].fill(false);
        }
        (first..).zip(lines).filter(|(_, is_own)| *is_own).map(|(number, _)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{CoverageSource, EventArena, EventChunk, Module};

    use super::*;

    fn point(start_line: u32, end_line: u32) -> PlannedPoint {
        PlannedPoint { start_line, end_line, ..PlannedPoint::default() }
    }

    fn branch(line: u32, path: u32) -> PlannedBranch {
        PlannedBranch { line, path, ..PlannedBranch::default() }
    }

    fn planned(token: u32, points: Vec<PlannedPoint>, branches: Vec<PlannedBranch>) -> PlannedMethod {
        PlannedMethod { token, source: 0, fingerprint: 7, points, branches }
    }

    fn process(module: &str, methods: Vec<(PlannedMethod, Vec<u64>)>) -> Process {
        let hits = methods.iter().flat_map(|(method, hits)| {
            let (points, branches) = (method.points.len() as u32, method.branches.len() as u32);
            let (token, hits) = (method.token, hits.clone());
            MethodHits { module: 1, token, fingerprint: 7, points, branches, counted: true, hits }.to_bytes()
        });
        let chunk = EventChunk { thread: u32::MAX, sequence: 0, bytes: hits.collect::<Vec<u8>>().into() };
        let source = CoverageSource { class: "C".into(), name: "M".into(), parameters: "()".into() };
        let methods = methods.into_iter().map(|(method, _)| method).collect();
        Process {
            modules: vec![Module::default(), Module { name: module.into(), ..Module::default() }],
            coverage_plans: vec![CoveragePlan {
                module: 1,
                files: vec!["a.cs".into()],
                sources: vec![source],
                methods,
                assembly: String::new(),
            }],
            events: vec![EventArena { instrument: instrument::COVERAGE.into(), chunks: vec![chunk] }],
            ..Process::default()
        }
    }

    fn recording(processes: Vec<Process>) -> Recording {
        Recording { processes, ..Recording::default() }
    }

    fn hits(coverage: &Coverage) -> Vec<(u32, u64)> {
        coverage.files().iter().flat_map(|file| file.lines.iter().map(|(n, line)| (*n, line.hits))).collect()
    }

    #[test]
    fn a_line_has_the_hits_of_its_pieces_but_for_those_within_others() {
        let call = planned(1, vec![point(1, 5), point(6, 6), point(6, 6)], vec![]);
        let lambda = planned(2, vec![point(2, 3)], vec![]);
        let of = recording(vec![process("Shop", vec![(call, vec![1, 2, 3]), (lambda, vec![9])])]);
        let found = coverage(&of, &Query::default()).expect("recorded");
        assert_eq!(hits(&found), [(1, 1), (2, 9), (3, 9), (4, 1), (5, 1), (6, 5)]);
    }

    #[test]
    fn processes_add_up() {
        let method = || planned(1, vec![point(1, 1), point(2, 2)], vec![branch(1, 0), branch(1, 1)]);
        let [first, second, third] = [[1, 0, 1, 0], [0, 0, 0, 0], [2, 1, 0, 2]].map(|hits| (method(), hits.to_vec()));
        let [first, second, third] = [first, second, third].map(|method| process("Shop", vec![method]));
        let mut of = recording(vec![first, second]);
        let alone = coverage(&of, &Query::default()).expect("recorded").sums();
        assert_eq!(alone, CoverageSums { lines: 2, lines_covered: 1, branches: 2, branches_covered: 1 });
        of.processes.push(third);
        let both = coverage(&of, &Query::default()).expect("recorded");
        assert_eq!(both.sums(), CoverageSums { lines: 2, lines_covered: 2, branches: 2, branches_covered: 2 });
        assert_eq!(hits(&both), [(1, 3), (2, 1)]);
        assert_eq!(both.methods.len(), 1);
    }

    #[test]
    fn an_assembly_that_was_never_loaded_has_lines_without_hits() {
        let method = || planned(1, vec![point(1, 1), point(2, 2)], vec![branch(1, 0), branch(1, 1)]);
        let mut of = process("Shop", vec![(method(), vec![1, 1, 1, 0])]);
        let never = CoveragePlan { module: u32::MAX, assembly: "Bank".into(), ..of.coverage_plans[0].clone() };
        of.coverage_plans.push(never);
        let mut recording = recording(vec![of]);
        let found = coverage(&recording, &Query::default()).expect("recorded");
        assert_eq!(found.sums(), CoverageSums { lines: 4, lines_covered: 2, branches: 4, branches_covered: 1 });
        assert_eq!((found.counted, found.unknown_methods), (true, 0));
        let query = Query { modules: vec![Glob::new("Bank")], ..Query::default() };
        assert_eq!(coverage(&recording, &query).expect("recorded").sums().lines_covered, 0);
        // Another process loaded it.
        recording.processes.push(process("Bank", vec![(method(), vec![0, 3, 0, 0])]));
        let found = coverage(&recording, &Query::default()).expect("recorded").sums();
        assert_eq!(found, CoverageSums { lines: 4, lines_covered: 3, branches: 4, branches_covered: 1 });
    }

    #[test]
    fn a_method_of_another_build_is_counted_and_not_shown() {
        let mut of = process("Shop", vec![(planned(1, vec![point(1, 1)], vec![]), vec![1])]);
        of.coverage_plans[0].methods[0].fingerprint = 8;
        let found = coverage(&recording(vec![of]), &Query::default()).expect("recorded");
        assert_eq!((found.unknown_methods, found.methods.len()), (1, 0));
    }

    #[test]
    fn assemblies_are_chosen_by_name_and_without_the_instrument_there_is_an_error() {
        let of = |name| process(name, vec![(planned(1, vec![point(1, 1)], vec![]), vec![1])]);
        let both = recording(vec![of("Shop"), of("Bank")]);
        let query = Query { modules: vec![Glob::new("Ba*")], ..Query::default() };
        let found = coverage(&both, &query).expect("recorded");
        assert_eq!(found.methods.iter().map(|method| method.module.as_str()).collect::<Vec<_>>(), ["Bank"]);
        assert!(coverage(&recording(vec![Process::default()]), &Query::default()).is_err());
    }

    #[test]
    fn lines_without_end_are_cut() {
        let all: Vec<PlannedPoint> = (0..100).map(|start| point(start, u32::MAX)).collect();
        let of = recording(vec![process("Shop", vec![(planned(1, all, vec![]), vec![1; 100])])]);
        let found = coverage(&of, &Query::default()).expect("recorded");
        assert!(found.sums().lines <= 100 * MOST_LINES_EACH as u64 + 100);
    }
}
