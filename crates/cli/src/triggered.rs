//! Copies of a recording that keeps only its most recent part. A copy is written when a trigger
//! (`--on`) fires in the program, or by command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clrscope_contract::request::Request;
use clrscope_recording::model::RemarkKind;
use clrscope_recording::writer::{Command, command, living_processes, triggered};

use crate::background::{Background, End};
use crate::errors::{Failure, shown};
use crate::output::{MOST_NAMES, RecordingPath};
use crate::pack;
use crate::terminal::say;

/// Interval between two checks of the triggers.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time that agents get to prepare for a copy.
const FOR_AGENTS: Duration = Duration::from_secs(1);
/// Maximum number of copies per recording: a trigger that fires again and again must not fill the
/// disk.
const MOST_COPIES: u32 = 10;

/// If the request has triggers, starts the thread that writes copies of the recording at `place`.
/// The thread ends when the returned value is dropped.
pub(crate) fn watch_triggers(request: &Request, place: &RecordingPath) -> Option<Background> {
    if request.triggers.is_empty() {
        return None;
    }
    let place = place.clone();
    Background::start("triggers", move |end| watch(&place, end))
        .inspect_err(|error| {
            say(&format!("clrscope: nothing is written before the end, as no thread for it could start: {error}"))
        })
        .ok()
}

fn watch(place: &RecordingPath, end: &End) {
    let (mut seen, mut copies) = (0, 0);
    while end.is_not_within(LOOK_EVERY) {
        let now = triggered(&place.folder);
        if now == seen {
            continue;
        }
        seen = now;
        match copies {
            ..MOST_COPIES => copies += u32::from(write(place)),
            MOST_COPIES => {
                let most = "clrscope: it happened again, but at most";
                say(&format!(
                    "{most} {MOST_COPIES} copies are written; the recording itself is written at its end, as always"
                ));
                copies += 1;
            }
            _ => {}
        }
    }
}

/// Writes a copy and prints the reason. Returns whether the copy was written.
fn write(place: &RecordingPath) -> bool {
    match copy(&place.folder, &place.file) {
        Ok(copy) => {
            let what = reason_of(&copy).unwrap_or_else(|| "something happened".to_owned());
            say(&format!("clrscope: {what}: written to {}", shown(&copy)));
            true
        }
        Err(failure) => {
            say(failure.to_string().trim_end());
            false
        }
    }
}

/// The reason for the copy, as the recording states it.
fn reason_of(copy: &Path) -> Option<String> {
    let recording = clrscope_recording::open(copy).ok()?;
    let remarks = recording.processes.iter().flat_map(|process| &process.remarks);
    let last = remarks.filter(|remark| remark.kind == RemarkKind::Trigger).max_by_key(|remark| remark.time_ns);
    last.map(|remark| remark.text.clone())
}

/// Packs the recording in `folder`, which continues, next to `file` under the next free name.
///
/// # Errors
/// The recording can't be read, or the copy can't be written.
pub(crate) fn copy(folder: &Path, file: &Path) -> Result<PathBuf, Failure> {
    let free = (1..MOST_NAMES).map(|number| numbered(file, number)).find(|name| name.symlink_metadata().is_err());
    let name = free.ok_or_else(|| {
        Failure::new(format!("cannot write a copy of {}", shown(file)), "all names are taken", "move some copies away")
    })?;
    get_ready(folder);
    pack::pack(folder, &name, false, false)?;
    Ok(name)
}

/// Has the agents in `folder` write the state that is not in the recording yet, such as active
/// requests. If an agent does not answer, its recording is copied without that state.
fn get_ready(folder: &Path) {
    for process in living_processes(folder) {
        let _ = command(&process, &Command::Copy, FOR_AGENTS, || true);
    }
}

/// `NAME-2.clrs` of `NAME.clrs`.
fn numbered(file: &Path, number: u32) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let extension = file.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    file.with_file_name(format!("{stem}-{number}{}", extension.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered_beside_the_recording() {
        assert_eq!(numbered(Path::new("/a/shop.clrs"), 2), Path::new("/a/shop-2.clrs"));
        assert_eq!(numbered(Path::new("shop"), 1), Path::new("shop-1"));
    }
}
