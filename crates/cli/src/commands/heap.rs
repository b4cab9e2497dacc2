//! `clrscope heap`: a snapshot of the heap of a program that runs, into its recording or into one of its own.

use std::path::{Path, PathBuf};

use clrscope_contract::instruments::heap::{AT, COLLECT, SPEC};
use clrscope_contract::instruments::spec::BY_COMMAND;
use clrscope_contract::request::{InstrumentRequest, Request};
use clrscope_recording::writer::Command;

use super::record::{self, RecordOptions};
use crate::attach::{AttachPlan, Target, Until, record};
use crate::errors::Failure;
use crate::recorded_process::is_recorded;
use crate::summary;
use crate::terminal::messages_on_terminal;

/// Options of `heap`.
#[derive(Debug)]
pub(crate) struct HeapOptions {
    /// The process.
    pub(crate) pid: u32,
    /// Take what a full collection leaves; otherwise the heap as it was before that.
    pub(crate) collects: bool,
    /// Path of the recording; named after the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Overwrite what is there.
    pub(crate) force: bool,
    /// Print nothing but errors.
    pub(crate) quiet: bool,
}

/// Takes the snapshot, and says what it has.
///
/// # Errors
/// When the process can't be attached to, or the snapshot could not be taken.
pub(crate) fn perform(options: HeapOptions) -> Result<(), Failure> {
    let HeapOptions { pid, collects, output, force, quiet } = options;
    if is_recorded(pid) {
        return match output {
            None if !collects => Err(collects_elsewhere(pid)),
            None => record::perform(&RecordOptions { pid, command: Command::Snapshot(String::new()) }),
            Some(path) => Err(recorded_elsewhere(pid, &path)),
        };
    }
    let target = Target::find(pid)?;
    let mut options = vec![(AT.to_owned(), Some(BY_COMMAND.to_owned()))];
    options.extend((!collects).then(|| (COLLECT.to_owned(), Some("off".to_owned()))));
    let instrument = InstrumentRequest { options, ..InstrumentRequest::named(SPEC.name) };
    let attached = record(AttachPlan {
        target: &target,
        request: Request { instruments: vec![instrument], ..Request::default() },
        instruments_given: SPEC.name,
        output,
        force,
        progress: !quiet && messages_on_terminal(),
        until: Until::Snapshot,
        view: false,
    })?;
    summary::of(&attached.path, false, quiet);
    Ok(())
}

fn collects_elsewhere(pid: u32) -> Failure {
    let what = "cannot leave the collection out";
    let why = format!("process {pid} is recorded already, and its snapshots are as that recording was begun");
    Failure::new(what, why, format!("write clrscope heap {pid}, or begin the recording with -i heap:collect=off"))
}

fn recorded_elsewhere(pid: u32, path: &Path) -> Failure {
    let what = format!("cannot write {}", crate::errors::shown(path));
    let why = format!("process {pid} is recorded already, and a snapshot goes into that recording");
    Failure::new(what, why, format!("write clrscope heap {pid}, or end that recording first"))
}
