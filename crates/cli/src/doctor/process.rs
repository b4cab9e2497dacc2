//! Checks of one process: whether it can be attached to, and whether it has loaded the agent that
//! its variables name.

use std::ffi::OsString;
use std::path::PathBuf;

use clr_diagnostics::Process;
use clrscope_contract::request::AGENT_VARIABLE;
use clrscope_symbols::{CLibrary, GlibcVersion};

use super::variables::PATH_VARIABLES;
use super::{Check, Status};
use crate::agent_file::LIBRARY;
use crate::attach::Target;
use crate::c_library;
use crate::errors::{one_line, shown};
use crate::launch::{OtherProfiler, left_by, listed_agent};

const PROCESS: &str = "process";
const C_LIBRARY: &str = "C library";
const AGENT: &str = "agent";

/// The checks of the process with this id, which need not be a .NET process.
pub(crate) fn checks_of(pid: u32) -> Vec<Check> {
    let mut checks = vec![reached(pid)];
    if let Ok(process) = Process::open(pid) {
        checks.push(library(&process));
        checks.extend(agent(&process));
        checks.extend(other_profiler(&process));
        checks.push(super::machine::perf_events());
    }
    checks
}

/// Checks whether the process can be attached to.
fn reached(pid: u32) -> Check {
    match Target::find(pid) {
        Ok(target) => {
            let version = target.info.short_version();
            Check::ok(
                PROCESS,
                one_line(format!("{pid} is {} on .NET {version}, and its runtime answers", target.name())),
            )
        }
        Err(failure) => {
            Check::bad(Status::Failed, PROCESS, format!("{}: {}", failure.what(), failure.why()), failure.hint())
        }
    }
}

/// The check of the C library of this machine's own programs.
pub(super) fn own_library() -> Option<Check> {
    Some(judged(c_library::of_machine(), c_library::provided_by_machine))
}

/// Checks whether there is an agent for the process's C library.
fn library(process: &Process) -> Check {
    match c_library::of_process(process) {
        Some(library) => judged(library, || c_library::provided(process)),
        None => {
            let found = format!("was not found in it; this clrscope has agents for {}", c_library::served());
            Check::bad(Status::Warning, C_LIBRARY, found, "ask as the user of the process, or as root")
        }
    }
}

/// Judges a C library: whether there is an agent for it and, if the version matters, whether it is
/// new enough.
fn judged(library: CLibrary, version: impl FnOnce() -> Option<GlibcVersion>) -> Check {
    let agents = format!("agents exist for {}", c_library::served());
    if let Some((why, hint)) = c_library::without_agent(library) {
        return Check::bad(Status::Failed, C_LIBRARY, why, hint);
    }
    match (library, version().zip(c_library::needed())) {
        (CLibrary::Gnu, Some((provided, needed))) => match c_library::obstacle(provided, needed) {
            Some((why, hint)) => Check::bad(Status::Failed, C_LIBRARY, why, hint),
            None => Check::ok(C_LIBRARY, format!("is glibc {provided}; the agent needs glibc {needed} or later")),
        },
        (CLibrary::Gnu, None) => {
            let cure = "ask as the user of the process, or as root";
            Check::bad(Status::Warning, C_LIBRARY, format!("is glibc of an unknown version; {agents}"), cure)
        }
        (CLibrary::Musl, _) => Check::ok(C_LIBRARY, format!("is musl; {agents}")),
    }
}

/// Checks whether the agent is in the process, and, if the variables name an agent that is not
/// loaded, why.
fn agent(process: &Process) -> Option<Check> {
    let mapped = process.mapped_files().ok()?;
    if let Some(file) = mapped.iter().find(|file| file.ends_with(LIBRARY)) {
        return Some(Check::ok(AGENT, one_line(format!("is loaded: {}", shown(file)))));
    }
    let variable = |name: &str| process.variable(name).ok().flatten().filter(|value| !value.is_empty());
    if variable(AGENT_VARIABLE).is_none() {
        return Some(Check::ok(
            AGENT,
            "is not in the process, whose variables don't ask for it; 'clrscope attach' loads it",
        ));
    }
    let (found, cure) = missing(process, variable);
    Some(Check::bad(
        Status::Failed,
        AGENT,
        one_line(format!("its variables ask for the agent, which is not loaded: {found}")),
        cure,
    ))
}

/// Checks for another profiler in the variables of a process, and which instruments remain usable.
fn other_profiler(process: &Process) -> Option<Check> {
    let other = OtherProfiler::find(|name| process.variable(name).ok().flatten().map(OsString::from))?;
    let found = format!("its variables name {}", left_by(&other));
    let cure = format!("for other instruments, and some options of these, start it without {}", other.switch());
    Some(Check::bad(Status::Note, "profilers", one_line(found), cure))
}

/// Reason and fix if the runtime has not loaded an agent that the variables name.
fn missing(process: &Process, variable: impl Fn(&str) -> Option<String>) -> (String, String) {
    let again = "start it again with what 'clrscope env' prints".to_owned();
    let listed = listed_agent(|name| variable(name).map(OsString::from)).map(|(_, path)| path);
    if listed.is_none() && variable("CORECLR_ENABLE_PROFILING").as_deref() != Some("1") {
        return ("CORECLR_ENABLE_PROFILING is not 1".to_owned(), again);
    }
    let of_main = || PATH_VARIABLES.into_iter().find_map(&variable).map(PathBuf::from);
    let Some(path) = listed.or_else(of_main) else {
        return (format!("{} names no library", PATH_VARIABLES[1]), again);
    };
    let there = path.strip_prefix("/").map(|inner| process.root().join(inner)).ok().filter(|file| file.is_file());
    let Some(there) = there else {
        let cure = "put it there with 'clrscope env --install', or into the image: 'clrscope env --dockerfile'";
        return (format!("{} is not a file where the program runs", shown(&path)), cure.to_owned());
    };
    // The file may be the agent for another C library.
    let libraries = CLibrary::needed_by_file(&there).zip(c_library::of_process(process));
    if let Some((linked, loaded)) = libraries.filter(|(linked, loaded)| linked != loaded) {
        let found = format!("{} is the agent for {linked}, and the program runs on {loaded}", shown(&path));
        return (found, format!("put the other one there: 'clrscope env --c-library {loaded}'"));
    }
    let versions = c_library::provided(process).zip(c_library::needed());
    versions.and_then(|(provided, needed)| c_library::obstacle(provided, needed)).unwrap_or_else(|| {
        let found = "its runtime refused it, the agent skipped this program, or it was detached";
        (found.to_owned(), "see the system's log for what the runtime says: journalctl, or syslog".to_owned())
    })
}
