//! Which processes and threads a query means.

use clrscope_contract::request::Glob;
use clrscope_recording::model::{Process, Recording, Thread};

use crate::programs::Program;
use crate::query::{Query, QueryProblem};

/// A process with the threads of it that are meant.
pub(crate) struct Selected<'a> {
    pub(crate) process: &'a Process,
    pub(crate) threads: Vec<&'a Thread>,
}

/// Whether `--process PATTERN` means this process: the whole command line, its program's file name,
/// or the file name of the managed assembly it runs, with or without `.dll`.
#[must_use]
pub fn process_matches(process: &Process, pattern: &Glob) -> bool {
    let host = process.command.first().and_then(|path| path.rsplit(['/', '\\']).next()).unwrap_or("");
    let program = Program::of(process);
    pattern.matches(&process.command.join(" "))
        || [host, program.file_name(), program.name()].iter().any(|name| pattern.matches(name))
}

/// The processes a query means, in the recording's order.
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

/// The processes and threads a query means, in the recording's order.
pub(crate) fn threads<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<Selected<'a>>, QueryProblem> {
    let select = |process: &'a Process| Selected {
        process,
        threads: process.threads.iter().filter(|t| query.wants_thread(t)).collect(),
    };
    let found: Vec<_> = processes(recording, query)?.into_iter().map(select).collect();
    if !query.threads.is_empty() && found.iter().all(|s| s.threads.is_empty()) {
        let wanted: Vec<_> = query.threads.iter().map(|t| format!("'{t}'")).collect();
        return Err(QueryProblem::NoThread { wanted: wanted.join(" or ") });
    }
    Ok(found)
}
