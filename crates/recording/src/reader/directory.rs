//! A recording directory: the launcher's log and a folder per process.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ending::{End, Now, settle};
use super::period::Period;
use super::process::{ReadProcess, read as read_process};
use super::segment::{self, SegmentBytes};
use crate::codec::decode;
use crate::layout::{VERSION, kind};
use crate::log_records::LogRecords;
use crate::model::{Exit, Problem, Recording, Run};
use crate::open_error::OpenError;
use crate::records::{InLog, RunEnd, RunStart};
use crate::refusal;

/// Contents of `run.log`.
#[derive(Default)]
struct RunLog {
    run: Run,
    mono_start: Option<u64>,
    root_end: Option<End>,
}

/// Reads as much of the directory as can be read. If the directory was renamed or replaced
/// meanwhile, the result is "not found", because some of its files may already have been missing.
pub(super) fn read(folder: &Path, period: Option<&Period<'_>>, now: Now) -> Result<Recording, OpenError> {
    let read = identity(folder)?;
    let recording = read_files(folder, period, now)?;
    if identity(folder).is_ok_and(|still| still == read) {
        Ok(recording)
    } else {
        Err(OpenError::NotFound(folder.to_owned()))
    }
}

/// Returns the version of a directory of segments, if this clrscope does not read that version.
pub(super) fn other_version(folder: &Path) -> Option<u32> {
    let processes = process_folders(folder).unwrap_or_default();
    let logs = [folder.join("run.log")].into_iter().chain(processes.iter().map(|process| process.join("process.log")));
    logs.filter_map(|log| segment::version(&log)).find(|version| *version != VERSION)
}

/// Device and inode.
fn identity(folder: &Path) -> Result<(u64, u64), OpenError> {
    let about = folder.metadata().map_err(|error| OpenError::Io(folder.to_owned(), error))?;
    Ok((about.dev(), about.ino()))
}

fn read_files(folder: &Path, period: Option<&Period<'_>>, now: Now) -> Result<Recording, OpenError> {
    let mut problems = Vec::new();
    let log = read_run_log(folder, &mut problems);
    let folders = process_folders(folder).map_err(|error| OpenError::Io(folder.to_owned(), error))?;
    let refused = refusal::read_all(folder);
    if log.is_none() && folders.is_empty() && refused.is_empty() {
        return Err(OpenError::NotARecording(folder.to_owned(), "it has neither a run.log nor a process in it"));
    }
    let mut processes: Vec<ReadProcess> =
        folders.iter().filter_map(|folder| read_process(folder, period, &mut problems)).collect();
    processes.sort_by_key(|p| (p.mono_start, p.process.pid));
    let mut recording = assemble(log.unwrap_or_default(), processes, problems, now);
    recording.processes.extend(refused);
    Ok(recording)
}

fn process_folders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let named = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"p"));
        if named && path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read_run_log(folder: &Path, problems: &mut Vec<Problem>) -> Option<RunLog> {
    // Without the launcher there is none, and that is no problem.
    if !folder.join("run.log").exists() {
        return None;
    }
    let bytes = SegmentBytes::open(folder, "run.log", kind::LOG, "", problems)?;
    let mut log = RunLog::default();
    for (kind, payload) in LogRecords::new(&bytes) {
        match kind {
            RunStart::LOG => {
                let Some(start) = decode::<RunStart>(payload) else { continue };
                log.mono_start = Some(start.mono_ns);
                log.run.command = start.command;
                log.run.started_unix_ns = start.unix_ns;
                log.run.given = start.given.into();
                log.run.clrscope_version = start.clrscope_version;
                log.run.id = start.id;
            }
            RunEnd::LOG => log.root_end = decode::<RunEnd>(payload).map(End::from),
            _ => {}
        }
    }
    Some(log)
}

impl From<RunEnd> for End {
    fn from(end: RunEnd) -> Self {
        let exit = if end.by_signal { Exit::Signal(end.number) } else { Exit::Code(end.number) };
        Self { mono_ns: end.mono_ns, pid: end.pid, exit }
    }
}

fn assemble(log: RunLog, mut processes: Vec<ReadProcess>, problems: Vec<Problem>, now: Now) -> Recording {
    let mut run = log.run;
    let first = processes.first();
    let start = log.mono_start.or(first.map(|p| p.mono_start)).unwrap_or(0);
    if let Some(first) = first {
        if log.mono_start.is_none() {
            run.started_unix_ns = first.unix_start;
            run.command.clone_from(&first.process.command);
            run.given = first.given.as_str().into();
            run.id.clone_from(&first.process.identity.id);
        }
        run.filled = first.filled.as_str().into();
    }
    settle(&mut processes, log.root_end.as_ref(), now);
    run.exit = log.root_end.as_ref().map(|end| end.exit);
    let processes: Vec<_> = processes.into_iter().map(|read| shift_times(read, start)).collect();
    let last_sign = processes.iter().map(|p| p.started_ns.saturating_add(p.duration_ns)).max().unwrap_or(0);
    run.duration_ns = log.root_end.map_or(last_sign, |end| end.mono_ns.saturating_sub(start));
    Recording { run, processes, problems, physical: None }
}

/// Moves the times of a process from "since its own start" to "since the start of the run".
fn shift_times(read: ReadProcess, start: u64) -> crate::model::Process {
    let mut process = read.process;
    let offset = read.mono_start.saturating_sub(start);
    process.started_ns = offset;
    for thread in &mut process.threads {
        thread.created_ns = thread.created_ns.saturating_add(offset);
        thread.ended_ns = thread.ended_ns.map(|ns| ns.saturating_add(offset));
    }
    for part in &mut process.parts {
        part.since_ns = part.since_ns.saturating_add(offset);
        part.until_ns = part.until_ns.saturating_add(offset);
    }
    for loss in &mut process.losses {
        loss.first_ns = loss.first_ns.saturating_add(offset);
        loss.last_ns = loss.last_ns.saturating_add(offset);
    }
    for remark in &mut process.remarks {
        remark.time_ns = remark.time_ns.saturating_add(offset);
    }
    process
}
