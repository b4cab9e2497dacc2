//! Processes and threads that a query selects.

use std::collections::BTreeSet;
use std::fmt;

use clrscope_contract::request::{Glob, Pattern};
use clrscope_contract::words::nearest;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{ProbedLine, ProbedMethod, Process, Recording, Thread};

use crate::programs::Program;
use crate::query::{Query, QueryProblem};

/// A process with its selected threads.
pub(crate) struct SelectedProcess<'a> {
    pub(crate) process: &'a Process,
    pub(crate) threads: Vec<&'a Thread>,
}

/// Whether `--process PATTERN` matches this process. The pattern may match the whole command line,
/// the file name of the executable, or the file name of the managed assembly that it runs, with or
/// without `.dll`.
#[must_use]
pub fn process_matches(process: &Process, pattern: &Glob) -> bool {
    let host = process.command.first().and_then(|path| path.rsplit(['/', '\\']).next()).unwrap_or("");
    let program = Program::from_process(process);
    pattern.matches(&process.command.join(" "))
        || [host, program.file_name(), program.name()].iter().any(|name| pattern.matches(name))
}

/// The processes that a query selects, in the recording's order.
pub(crate) fn processes<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<&'a Process>, QueryProblem> {
    let meant = |p: &&Process| {
        query.pid.is_none_or(|pid| p.pid == pid) && query.process.as_ref().is_none_or(|glob| process_matches(p, glob))
    };
    let found: Vec<_> = recording.processes.iter().filter(meant).collect();
    if found.is_empty() && (query.pid.is_some() || query.process.is_some()) {
        let pid = query.pid.map(|pid| format!("pid {pid}"));
        let glob = query.process.as_ref().map(|glob| format!("'{glob}'"));
        let wanted = pid.into_iter().chain(glob).collect::<Vec<_>>().join(" and ");
        return Err(QueryProblem::NoProcess { wanted, known: recording.processes.iter().map(|p| p.pid).collect() });
    }
    Ok(found)
}

/// Returns the query after its filters of functions and assemblies were checked against the
/// recording. A pattern without a match is tried again without regard to letter case.
///
/// # Errors
/// When a pattern matches no function or assembly of the recording in any letter case. The error
/// has the nearest names. So a filter without a match is the same error in every view, and an empty
/// view of a checked query is a valid result.
pub fn resolve_names(recording: &Recording, query: &Query) -> Result<Query, QueryProblem> {
    let functions = if query.functions.is_empty() { Vec::new() } else { resolved_functions(recording, query)? };
    let modules = if query.modules.is_empty() { Vec::new() } else { resolved_modules(recording, query)? };
    Ok(Query { functions, modules, ..query.clone() })
}

/// Visits each function and each probed method with its module, name and signature, until `is_it`
/// returns true.
fn any_function(recording: &Recording, mut is_it: impl FnMut(&str, &str, &str) -> bool) -> bool {
    recording.processes.iter().any(|process| {
        let module = |index: u32| process.modules.get(index as usize).map_or("", |module| &*module.name);
        let mut functions = process.functions.iter().skip(1);
        functions.any(|of| is_it(module(of.module), &of.name, &of.signature))
            || any_record(process, instrument::PROBES, |bytes| {
                ProbedMethod::all(bytes).any(|of| is_it(module(of.module), &of.name, &of.signature))
            })
            || any_record(process, instrument::PROBE_LINES, |bytes| {
                ProbedLine::all(bytes).any(|of| is_it(module(of.module), &of.name, &of.signature))
            })
    })
}

/// Visits the bytes of an instrument's chunks until `has_it` returns true.
fn any_record(process: &Process, instrument: &str, mut has_it: impl FnMut(&[u8]) -> bool) -> bool {
    let mut chunks = process.arenas(instrument).flat_map(|arena| &arena.chunks);
    chunks.any(|chunk| has_it(&chunk.bytes.load()))
}

fn resolved_functions(recording: &Recording, query: &Query) -> Result<Vec<Pattern>, QueryProblem> {
    let matches = |pattern: &Pattern| any_function(recording, |module, name, sign| pattern.matches(module, name, sign));
    let mut found = false;
    let mut resolve = |pattern: &Pattern| {
        let exact = matches(pattern);
        let resolved = if exact { pattern.clone() } else { pattern.ignoring_case() };
        found |= exact || matches(&resolved);
        resolved
    };
    let resolved = query.functions.iter().map(&mut resolve).collect();
    if found {
        return Ok(resolved);
    }
    let mut nearest = Vec::new();
    for pattern in &query.functions {
        let mut near = pattern.near_names();
        any_function(recording, |_, name, _| {
            near.look_at(name);
            false
        });
        nearest.extend(near.names().map(str::to_owned));
    }
    Err(QueryProblem::NoFunction { wanted: quoted_list(&query.functions), nearest })
}

fn resolved_modules(recording: &Recording, query: &Query) -> Result<Vec<Glob>, QueryProblem> {
    let mut names = BTreeSet::new();
    any_function(recording, |module, _, _| {
        if !names.contains(module) {
            names.insert(module.to_owned());
        }
        false
    });
    // Covered lines belong to assemblies whose functions have no name in the recording.
    let mut covered = BTreeSet::new();
    for process in &recording.processes {
        covered.extend(process.coverage_plans.iter().map(|plan| process.covered_assembly(plan).to_owned()));
    }
    // Where no function of an assembly is known, the view of modules is empty.
    let lists = if names.iter().all(String::is_empty) && !covered.is_empty() { "coverage" } else { "modules" };
    // Types on the heap may belong to assemblies without a recorded method.
    let with_heap = recording.processes.iter().filter(|process| !process.snapshots.is_empty());
    names.extend(with_heap.flat_map(|process| &process.modules).map(|module| module.name.clone()));
    names.extend(covered);
    let mut resolved = Vec::new();
    for glob in &query.modules {
        if names.iter().any(|name| glob.matches(name)) {
            resolved.push(glob.clone());
            continue;
        }
        let lower = Glob::new(&glob.as_str().to_lowercase());
        resolved.extend(names.iter().filter(|name| lower.matches(&name.to_lowercase())).map(|name| Glob::new(name)));
    }
    if resolved.is_empty() {
        let near = |glob: &Glob| nearest(glob.as_str(), names.iter().map(String::as_str)).map(str::to_owned);
        let nearest = query.modules.iter().find_map(near);
        return Err(QueryProblem::NoModule { wanted: quoted_list(&query.modules), nearest, lists });
    }
    Ok(resolved)
}

/// `'a' or 'b'`.
pub(crate) fn quoted_list<T: fmt::Display>(all: &[T]) -> String {
    all.iter().map(|one| format!("'{one}'")).collect::<Vec<_>>().join(" or ")
}

/// Checks cheaply that a query selects some process and thread of the recording.
///
/// # Errors
/// When the query matches no process or thread.
pub fn check_selection(recording: &Recording, query: &Query) -> Result<(), QueryProblem> {
    threads(recording, query).map(|_| ())
}

/// The processes and threads that a query selects, in the recording's order.
pub(crate) fn threads<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<SelectedProcess<'a>>, QueryProblem> {
    let select = |process: &'a Process| SelectedProcess {
        process,
        threads: process.threads.iter().filter(|t| query.wants_thread(t)).collect(),
    };
    let found: Vec<_> = processes(recording, query)?.into_iter().map(select).collect();
    if !query.threads.is_empty() && found.iter().all(|s| s.threads.is_empty()) {
        return Err(QueryProblem::NoThread { wanted: quoted_list(&query.threads) });
    }
    Ok(found)
}
