//! The view `modules`.

use clrscope_recording::model::{Module, Recording};
use rustc_hash::FxHashMap;

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use crate::metric::WALL;
use crate::paths;
use crate::query::{Query, QueryProblem, Sort};
use crate::times::add_known;

/// One row of `modules`.
#[derive(Debug, Clone, Copy)]
pub struct ModuleRow<'a> {
    /// The process.
    pub pid: u32,
    /// Name, path, version.
    pub module: &'a Module,
    /// Number of its functions that were called.
    pub functions: u64,
    /// Calls of them.
    pub calls: u64,
    /// Exclusive wall time of them.
    pub exclusive_ns: u64,
    /// Exclusive CPU time of them, where measured.
    pub exclusive_cpu_ns: Option<u64>,
}

/// The view `modules`.
#[derive(Debug, Clone, Default)]
pub struct Modules<'a> {
    /// The rows, ordered and limited.
    pub rows: Vec<ModuleRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// Conditions of the selected part, with its sums.
    pub conditions: Conditions<'a>,
}

/// Rows per module of each process: the sums of its functions. What belongs to no module, such as
/// compilation and suspensions, is one row without a name.
///
/// # Errors
/// When no process or thread is meant, or the query asks for a part of the time or for
/// threads apart.
pub fn modules<'a>(recording: &'a Recording, query: &Query) -> Result<Modules<'a>, QueryProblem> {
    query.whole_run("modules")?;
    query.without_metric("modules")?;
    query.merged_threads("modules")?;
    let mut rows = Vec::new();
    let mut totals = Vec::new();
    for paths in paths::select(recording, query, &WALL)? {
        let sums = ProcessSums::new(&paths, query);
        totals.push((paths.process, sums.totals));
        rows.extend(of_process(paths.process.pid, &sums, &sums.catalog.wanted(query)));
    }
    let sort = query.sort.unwrap_or(Sort::Exclusive);
    rows.sort_by(|a, b| key(b, sort).cmp(&key(a, sort)).then_with(|| identity(a).cmp(&identity(b))));
    let left_out = query.cut(&mut rows);
    Ok(Modules { rows, left_out, conditions: conditions_of(recording, query, &WALL, &totals) })
}

fn of_process<'a>(pid: u32, sums: &ProcessSums<'a>, wanted: &[bool]) -> Vec<ModuleRow<'a>> {
    let mut rows: Vec<ModuleRow<'a>> = Vec::new();
    let mut known = FxHashMap::default();
    for function in sums.rows(wanted) {
        let module = function.function.module;
        let at = *known.entry((&module.name, &module.path, &module.version)).or_insert_with(|| {
            rows.push(ModuleRow { pid, module, functions: 0, calls: 0, exclusive_ns: 0, exclusive_cpu_ns: None });
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

fn key(row: &ModuleRow<'_>, sort: Sort) -> u64 {
    match sort {
        Sort::Calls => row.calls,
        Sort::ExclusiveCpu | Sort::InclusiveCpu => row.exclusive_cpu_ns.unwrap_or(0),
        Sort::Name | Sort::Module => 0,
        _ => row.exclusive_ns,
    }
}

fn identity<'a>(row: &ModuleRow<'a>) -> (&'a str, &'a str, &'a str, u32) {
    let Module { name, path, version, .. } = row.module;
    (name, path, version, row.pid)
}
