//! Copies of a recording that keeps its last time only, written when something happens in the
//! program (`--on`), and by command.

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

/// Between two looks whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time in which agents get ready for a copy.
const FOR_AGENTS: Duration = Duration::from_secs(1);
/// Copies that one recording leaves: what happens again and again must not fill the disk.
const MOST_COPIES: u32 = 10;

/// Starts the thread that writes copies of the recording at `place` until it is dropped, where the
/// request has triggers.
pub(crate) fn watch_triggers(request: &Request, place: &RecordingPath) -> Option<Background> {
    if request.triggers.is_empty() {
        return None;
    }
    let place = place.clone();
    Background::start("triggers", move |end| watch(&place, end))
        .inspect_err(|error| {
            say(&format!("clrscope: nothing is written out before the end: no thread for it: {error}"))
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
                let most = "clrscope: it happened again, and no more than";
                say(&format!("{most} {MOST_COPIES} copies are written; the end of the recording is, as always"));
                copies += 1;
            }
            _ => {}
        }
    }
}

/// Writes a copy and says why; whether it is there.
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

/// What happened, as the recording has it.
fn reason_of(copy: &Path) -> Option<String> {
    let recording = clrscope_recording::open(copy).ok()?;
    let remarks = recording.processes.iter().flat_map(|process| &process.remarks);
    let last = remarks.filter(|remark| remark.kind == RemarkKind::Trigger).max_by_key(|remark| remark.time_ns);
    last.map(|remark| remark.text.clone())
}

/// Packs the recording in `folder`, which goes on, next to `file` under the next free name.
///
/// # Errors
/// When it can't be read or written.
pub(crate) fn copy(folder: &Path, file: &Path) -> Result<PathBuf, Failure> {
    let free = (1..MOST_NAMES).map(|number| numbered(file, number)).find(|name| name.symlink_metadata().is_err());
    let name = free.ok_or_else(|| {
        Failure::new(format!("cannot write a copy of {}", shown(file)), "all names are taken", "move some copies away")
    })?;
    get_ready(folder);
    pack::pack(folder, &name, false, false)?;
    Ok(name)
}

/// Has the agents in `folder` write down what they alone know, such as requests under way. One that
/// does not answer is copied as it is.
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
