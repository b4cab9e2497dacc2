//! `clrscope heap`: takes a heap snapshot of a running program, into its current recording or a new
//! one.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clrscope_contract::instruments::heap::{AT, COLLECT, SPEC};
use clrscope_contract::instruments::spec::BY_COMMAND;
use clrscope_contract::request::{InstrumentRequest, Request};
use clrscope_recording::writer::Command;

use super::record;
use crate::attach::{AttachPlan, Target, Until, record};
use crate::errors::{Failure, shown};
use crate::recorded_process::is_recorded;
use crate::summary;
use crate::terminal::messages_on_terminal;

/// Options of `heap`.
#[derive(Debug, Clone)]
pub(crate) struct HeapOptions {
    /// The process to take a snapshot of.
    pub(crate) pid: u32,
    /// Whether to run a full collection first; otherwise the snapshot includes garbage.
    pub(crate) collects: bool,
    /// Path of the recording; named after the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
    /// Whether to print nothing but errors.
    pub(crate) quiet: bool,
}

/// Longest time for another recording of the process to start or to end.
const FOR_ANOTHER: Duration = Duration::from_secs(60);
/// Interval between two tries.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Takes the snapshot and prints a summary. If another recording of the process starts or ends
/// meanwhile, the snapshot is tried once more, because several users may request snapshots of one
/// process at the same time.
///
/// # Errors
/// When the process can't be attached to, or the snapshot could not be taken.
pub(crate) fn perform(options: HeapOptions) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let was_recorded = is_recorded(options.pid);
        let taken = if was_recorded { into_recording(&options) } else { into_own(&options).map(|()| true) };
        let is_another = is_recorded(options.pid) != was_recorded;
        match taken {
            Ok(true) => return Ok(()),
            _ if began.elapsed() > FOR_ANOTHER => {
                let what = format!("cannot take a snapshot of process {}", options.pid);
                let hint = "end the other recording first";
                return taken.and(Err(Failure::new(what, "another recording of it was in the way", hint)));
            }
            Err(failure) if !is_another => return Err(failure),
            _ => thread::park_timeout(TRY_EVERY),
        }
    }
}

/// Makes the agent that records the process take the snapshot; `false` if that recording ended
/// before.
fn into_recording(options: &HeapOptions) -> Result<bool, Failure> {
    let pid = options.pid;
    match &options.output {
        None if !options.collects => Err(collects_elsewhere(pid)),
        None => record::is_carried_out(pid, &Command::Snapshot(String::new())),
        Some(path) => Err(recorded_elsewhere(pid, path)),
    }
}

/// Takes the snapshot into a recording of its own.
fn into_own(options: &HeapOptions) -> Result<(), Failure> {
    let HeapOptions { pid, collects, output, force, quiet } = options.clone();
    let target = Target::find(pid)?;
    let attached = record(AttachPlan {
        target: &target,
        request: Request { instruments: vec![by_command(collects)], ..Request::default() },
        periods: None,
        instruments_given: SPEC.name,
        output,
        force,
        progress: !quiet && messages_on_terminal(),
        quiet,
        until: Until::Snapshot,
        view: false,
    })?;
    summary::print_summary(&attached.path, false, quiet);
    match attached.no_snapshot {
        None => Ok(()),
        Some(why) => Err(no_snapshot(pid, why, &attached.path)),
    }
}

/// Returns a request for heap snapshots that are taken only on command.
pub(super) fn by_command(collects: bool) -> InstrumentRequest {
    let mut options = vec![(AT.to_owned(), Some(BY_COMMAND.to_owned()))];
    options.extend((!collects).then(|| (COLLECT.to_owned(), Some("off".to_owned()))));
    InstrumentRequest { options, ..InstrumentRequest::named(SPEC.name) }
}

fn no_snapshot(pid: u32, why: &str, recording: &Path) -> Failure {
    let hint = match recording.exists() {
        true => format!("what was recorded is in {}", shown(recording)),
        false => "try again while the program runs".to_owned(),
    };
    Failure::new(format!("no complete snapshot of process {pid}"), why, hint)
}

fn collects_elsewhere(pid: u32) -> Failure {
    let what = "cannot leave the collection out";
    let why = format!("process {pid} is already recorded, and that recording decides how snapshots are taken");
    Failure::new(what, why, format!("write clrscope heap {pid}, or begin the recording with -i heap:collect=off"))
}

fn recorded_elsewhere(pid: u32, path: &Path) -> Failure {
    let what = format!("cannot write {}", shown(path));
    let why = format!("process {pid} is already recorded, and a snapshot goes into that recording");
    Failure::new(what, why, format!("write clrscope heap {pid}, or end that recording first"))
}
