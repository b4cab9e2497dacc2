//! Formats of coverage: executed lines and branches.

mod cobertura;
mod lcov;
mod opencover;
mod xml;

use std::collections::BTreeMap;

use clrscope_analysis::{BranchCoverage, Coverage, CoverageSums, LineCoverage, MethodCoverage};

pub(crate) use cobertura::Cobertura;
pub(crate) use lcov::Lcov;
pub(crate) use opencover::OpenCover;

/// Lines by number.
type Lines = BTreeMap<u32, LineCoverage>;

/// A type in one file, with its methods.
struct Class<'c> {
    name: &'c str,
    file: &'c str,
    methods: Vec<&'c MethodCoverage>,
}

/// An assembly with its types.
struct Package<'c> {
    name: &'c str,
    classes: Vec<Class<'c>>,
}

/// The assemblies, by name; their types by name and file.
fn packages(coverage: &Coverage) -> Vec<Package<'_>> {
    let mut methods: Vec<&MethodCoverage> = coverage.methods.iter().collect();
    methods.sort_by_key(|method| (&method.module, &method.class, &method.file, method.first_line()));
    let mut packages: Vec<Package<'_>> = Vec::new();
    for method in methods {
        if packages.last().is_none_or(|last| last.name != method.module) {
            packages.push(Package { name: &method.module, classes: Vec::new() });
        }
        let Some(package) = packages.last_mut() else { continue };
        match package.classes.last_mut().filter(|last| (last.name, last.file) == (&method.class, &method.file)) {
            Some(class) => class.methods.push(method),
            None => package.classes.push(Class { name: &method.class, file: &method.file, methods: vec![method] }),
        }
    }
    packages
}

impl Class<'_> {
    /// Lines of all methods; a line of several methods has the hits and branches of all of them.
    fn lines(&self) -> Lines {
        let mut all = Lines::new();
        for (number, line) in self.methods.iter().flat_map(|method| &method.lines) {
            let shared = all.entry(*number).or_default();
            shared.hits = shared.hits.saturating_add(line.hits);
            shared.branches.extend_from_slice(&line.branches);
        }
        all
    }
}

impl Package<'_> {
    fn sums(&self) -> CoverageSums {
        let mut sums = CoverageSums::default();
        self.classes.iter().for_each(|class| sums.add(CoverageSums::from_lines(&class.lines())));
        sums
    }
}

/// Branches of lines, grouped by condition, in order.
fn conditions(line: &LineCoverage) -> Vec<Vec<&BranchCoverage>> {
    let mut found: Vec<Vec<&BranchCoverage>> = Vec::new();
    for branch in &line.branches {
        // Path 0 begins another condition.
        match found.last_mut().filter(|_| branch.path > 0) {
            Some(condition) => condition.push(branch),
            None => found.push(vec![branch]),
        }
    }
    found
}

/// Complexity of a method as these formats count it: its number of branches, at least one.
fn complexity(sums: &CoverageSums) -> u64 {
    sums.branches.max(1)
}
