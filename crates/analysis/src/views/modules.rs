//! The view `modules`.

use clrscope_recording::model::{Module, Recording};
use rustc_hash::FxHashMap;

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use crate::catalog::Catalog;
use crate::metric::{Amount, Metric, SampleCount};
use crate::module_sums::{ModuleSums, module_sums};
use crate::paths::{self, Paths};
use crate::query::{Query, QueryProblem, Sort};
use crate::times::add_known;

/// One row of `modules`.
#[derive(Debug, Clone, Copy)]
pub struct ModuleRow<'a> {
    /// Id of the process.
    pub pid: u32,
    /// The module, with its name, path and version.
    pub module: &'a Module,
    /// Number of the module's functions that were called.
    pub functions: u64,
    /// Calls of these functions.
    pub calls: u64,
    /// Exclusive wall time of these functions.
    pub exclusive_ns: u64,
    /// Exclusive CPU time of these functions; `None` if not measured.
    pub exclusive_cpu_ns: Option<u64>,
    /// Amount of a sampled metric. Own: with a function of the module on top of the stack; total:
    /// with one anywhere on the stack.
    pub amount: Amount,
}

impl<'a> ModuleRow<'a> {
    const fn new(pid: u32, module: &'a Module) -> Self {
        let amount = Amount { own: 0, total: 0, samples: SampleCount { own: 0, total: 0 } };
        Self { pid, module, functions: 0, calls: 0, exclusive_ns: 0, exclusive_cpu_ns: None, amount }
    }
}

/// The view `modules`.
#[derive(Debug, Clone, Default)]
pub struct Modules<'a> {
    /// The rows, sorted and limited.
    pub rows: Vec<ModuleRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// One row per module and process, with the totals of the module's functions. Time outside of
/// modules, such as compilation and suspensions, is in one row without a name.
///
/// # Errors
/// When the query matches no process or thread, or the query asks for a part of the time or for
/// rows per thread.
pub fn modules<'a>(recording: &'a Recording, query: &Query) -> Result<Modules<'a>, QueryProblem> {
    query.without_metric("modules")?;
    let metric = Metric::of_samples_or_calls(recording, query, "modules")?;
    query.merged_threads("modules")?;
    let mut rows = Vec::new();
    let mut totals = Vec::new();
    for paths in paths::select(recording, query, metric)? {
        let sums = ProcessSums::new(&paths, query);
        totals.push((paths.process, sums.totals));
        let wanted = sums.catalog.wanted(query);
        rows.extend(match metric.is_of_calls() {
            true => of_process(paths.process.pid, &sums, &wanted),
            false => by_samples(&paths, &sums.catalog, &wanted),
        });
    }
    let sort = query.sort.unwrap_or(Sort::Exclusive);
    rows.sort_by(|a, b| key(b, sort).cmp(&key(a, sort)).then_with(|| identity(a).cmp(&identity(b))));
    let left_out = query.cut(&mut rows);
    Ok(Modules { rows, left_out, conditions: conditions_of(recording, query, metric, &totals) })
}

fn of_process<'a>(pid: u32, sums: &ProcessSums<'a>, wanted: &[bool]) -> Vec<ModuleRow<'a>> {
    let mut rows: Vec<ModuleRow<'a>> = Vec::new();
    let mut known = FxHashMap::default();
    for function in sums.rows(wanted) {
        let module = function.function.module;
        let at = *known.entry((&module.name, &module.path, &module.version)).or_insert_with(|| {
            rows.push(ModuleRow::new(pid, module));
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.functions += 1;
        row.calls = row.calls.saturating_add(function.times.calls);
        row.exclusive_ns = row.exclusive_ns.saturating_add(function.times.exclusive_ns);
        row.exclusive_cpu_ns = add_known(row.exclusive_cpu_ns, function.times.exclusive_cpu_ns);
    }
    rows
}

/// Rows of a process by samples.
fn by_samples<'a>(paths: &Paths<'a>, catalog: &Catalog<'a>, wanted: &[bool]) -> Vec<ModuleRow<'a>> {
    let found = module_sums(paths, catalog, wanted);
    let row = |sums: ModuleSums<'a>| ModuleRow {
        functions: sums.functions,
        amount: sums.amount,
        ..ModuleRow::new(paths.process.pid, sums.module)
    };
    found.into_iter().map(row).collect()
}

fn key(row: &ModuleRow<'_>, sort: Sort) -> u64 {
    match sort {
        Sort::Calls => row.calls,
        Sort::ExclusiveCpu | Sort::InclusiveCpu => row.exclusive_cpu_ns.unwrap_or(row.amount.own),
        Sort::Name | Sort::Module => 0,
        _ => row.exclusive_ns.max(row.amount.own),
    }
}

fn identity<'a>(row: &ModuleRow<'a>) -> (&'a str, &'a str, &'a str, u32) {
    let Module { name, path, version, .. } = row.module;
    (name, path, version, row.pid)
}
