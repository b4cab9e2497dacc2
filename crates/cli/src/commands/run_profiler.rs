//! `clrscope run --profiler`: runs a program with any profiler library; nothing is recorded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::run::warn_of_obstacles;
use crate::errors::{Failure, reason, shown};
use crate::launch::{
    Debugger, LOAD_LOG_VARIABLE, LoadLogEntry, Outcome, Signals, Stdout, Watch, check_library, disabled_by,
    profiler_variables, read_load_log, resolve, start,
};
use crate::runtime;
use crate::terminal::say;

/// Options of `run --profiler`.
#[derive(Debug)]
pub(crate) struct RunProfilerOptions {
    /// The profiler's library.
    pub(crate) library: PathBuf,
    /// Class id of the profiler, in braces.
    pub(crate) class_id: String,
    /// Debugger to start the program under.
    pub(crate) debugger: Option<Debugger>,
    /// Whether to print nothing but errors.
    pub(crate) quiet: bool,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// Runs the program under the profiler. Returns the program's exit code.
///
/// # Errors
/// When the library can't be a profiler, or the program did not start or its end was not seen.
pub(crate) fn perform(options: &RunProfilerOptions) -> Result<u8, Failure> {
    let library = check_library(&options.library)?;
    let program = resolve(&options.command, runtime::host)?;
    if !options.quiet {
        warn_of_obstacles("the one of --profiler");
    }
    let failed = |what: &str, error: std::io::Error| Failure::new(what, reason(&error), "run 'clrscope doctor'");
    let signals = Signals::take_over().map_err(|error| failed("cannot handle signals", error))?;
    let mut variables = profiler_variables(&library, &options.class_id);
    // If the library can't be watched, the report says less about it.
    let watched = !options.quiet && options.debugger.is_none();
    let load_log_file = watched.then(NamedTempFile::new).and_then(Result::ok);
    let watch = watched.then(|| Watch::on(&library)).and_then(Result::ok);
    if let Some(file) = &load_log_file {
        variables.push((LOAD_LOG_VARIABLE.to_owned(), file.path().into()));
    }
    let running = start(&program, &variables, Stdout::Ours, signals, options.debugger)?;
    let ended = running.wait().map_err(|error| failed("cannot see the program's end", error))?;
    if let Some(file) = &load_log_file {
        for line in report(&library, &read_load_log(file.path()), watch.as_ref().map(Watch::outcome)) {
            say(line.trim_end());
        }
    }
    Ok(ended.code())
}

/// Reports what happened to the library, in words for the user.
fn report(library: &Path, entries: &[LoadLogEntry], seen: Option<Outcome>) -> Vec<String> {
    let of = |kind: &'static str| entries.iter().filter(move |entry| entry.kind == kind);
    let mut lines: Vec<String> = of("class").take(1).map(|entry| other_class(library, &entry.words)).collect();
    lines.extend(of("refused").take(1).map(|entry| {
        let hint = "its 'initialize' returned an error, or a setup that the runtime refuses";
        Failure::new(format!("{} refused to profile process {}", shown(library), entry.pid), &entry.words, hint)
            .to_string()
    }));
    lines.extend(
        of("ended")
            .filter(|entry| !entry.words.is_empty())
            .take(1)
            .map(|entry| format!("clrscope: in process {} {} caught {}", entry.pid, shown(library), entry.words)),
    );
    match (of("loaded").count(), seen) {
        (0, _) if !lines.is_empty() => {}
        (0, Some(Outcome::NeverOpened)) => lines.push(never_opened(library)),
        (0, Some(Outcome::LetGo(pid))) => lines.push(let_go(library, pid)),
        (0, Some(Outcome::Kept)) => lines.push(format!("clrscope: {} was loaded until the end", shown(library))),
        (0, Some(Outcome::Unknown)) => lines.push(format!(
            "clrscope: {} was opened by a runtime; whether it stayed loaded can't be seen on this file system",
            shown(library)
        )),
        (0, None) => {}
        (1, _) => lines.push(format!("clrscope: {} was loaded into one process", shown(library))),
        (number, _) => lines.push(format!("clrscope: {} was loaded into {number} processes", shown(library))),
    }
    lines
}

/// The line about a wrong class id; `words` has the requested class and the library's class.
fn other_class(library: &Path, words: &str) -> String {
    let (asked, own) = words.split_once(' ').unwrap_or((words, ""));
    let what = format!("the runtime could not make a profiler from {}", shown(library));
    Failure::new(what, format!("it has the class {own}, not {asked}"), format!("--clsid '{own}'")).to_string()
}

fn never_opened(library: &Path) -> String {
    let what = format!("no runtime loaded {}", shown(library));
    let failure = match disabled_by() {
        Some(name) => Failure::new(what, format!("{name}=0 disables every profiler"), format!("unset {name}")),
        None => Failure::new(
            what,
            "the program started no .NET runtime that loads profilers",
            "native programs, NativeAOT and Mono load none, nor does .NET if runtimeconfig.json disables diagnostics",
        ),
    };
    failure.to_string()
}

fn let_go(library: &Path, pid: u32) -> String {
    let what = format!("the runtime in process {pid} opened {} and released it", shown(library));
    let why = "its class id is not the one of --clsid, a library it needs is missing, or its Initialize failed";
    Failure::new(what, why, format!("ldd {}; compare --clsid with the profiler's documentation", shown(library)))
        .to_string()
}
