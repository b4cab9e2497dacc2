//! `clrscope triage`: the first diagnosis of a program or a recording.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clrscope_analysis::{Query, triage};
use clrscope_report::{TriageSubject, triage_json, write_triage};

use super::print;
use crate::attach::{AttachPlan, Target, Until, moment_folder, record};
use crate::errors::Failure;
use crate::live::source::cheap_request;
use crate::recording_file::{open_for, query_failure};
use crate::terminal;

/// Options of `triage`.
#[derive(Debug)]
pub(crate) struct TriageOptions {
    /// Subject of the diagnosis.
    pub(crate) target: TriageTarget,
    /// Whether to print one JSON document instead of text.
    pub(crate) json: bool,
}

/// A running program, or a recording.
#[derive(Debug)]
pub(crate) enum TriageTarget {
    /// Id of a process, and how long to record it.
    Process(u32, Duration),
    /// Path of a recording.
    Recording(PathBuf),
}

/// Instruments that together cost little, with their options: none of them walks the heap or stops
/// threads for long. Ten seconds with 199 samples each show everything that costs a percent. The
/// named meters have the durations of requests; all meters together would cost more than all other
/// counters.
pub(crate) const INSTRUMENTS: [&str; 6] = [
    "cpu:rate=199",
    "wall:rate=49",
    "gc",
    "alloc",
    "exceptions",
    "counters:meters=Microsoft.AspNetCore.Hosting+System.Net.Http",
];

/// Makes the diagnosis and prints it.
///
/// # Errors
/// When the process can't be attached to, or the recording can't be read.
pub(crate) fn perform(options: &TriageOptions) -> Result<(), Failure> {
    match &options.target {
        TriageTarget::Recording(path) => look_at(path, &TriageSubject::Recording(path.display().to_string()), options),
        TriageTarget::Process(pid, time) => {
            let target = Target::find(*pid)?;
            let folder = moment_folder("triage")?;
            let recorded = record_moment(&target, *time, &folder.path().join("triage.clrs"))?;
            look_at(&recorded, &TriageSubject::Process(*pid), options)
        }
    }
}

fn record_moment(target: &Target, time: Duration, output: &Path) -> Result<PathBuf, Failure> {
    let request = cheap_request(&INSTRUMENTS);
    let until = Until::Moment { look_for: time, reads_heap: false };
    let attached = record(AttachPlan::for_moment(target, request, output.to_owned(), until))?;
    Ok(attached.path)
}

fn look_at(path: &Path, subject: &TriageSubject, options: &TriageOptions) -> Result<(), Failure> {
    let query = Query::default();
    let recording = open_for(path, &query)?;
    let found = triage(&recording, &query).map_err(|problem| query_failure(&problem))?;
    if options.json {
        return print(&format!("{:#}\n", triage_json(&found, subject)));
    }
    terminal::styled(|out| write_triage(&found, subject, terminal::width().min(100), out))
        .map(|_| ())
        .map_err(|error| super::cannot_print(&error))
}
