//! Copies of a recording that keeps its last time only, written when something happens in the
//! program (`--on`), and by command.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use clrscope_contract::request::Request;
use clrscope_recording::model::RemarkKind;
use clrscope_recording::writer::triggered;

use crate::errors::{Failure, shown};
use crate::output::RecordingPath;
use crate::pack;
use crate::terminal::say;

/// Between two looks whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Copies that one recording leaves: what happens again and again must not fill the disk.
const MOST_COPIES: u32 = 10;
/// Names tried for a copy.
const MOST_NAMES: u32 = 10_000;

/// The thread that writes copies until this goes.
#[derive(Debug)]
pub(crate) struct TriggerWatch(Option<(Sender<()>, JoinHandle<()>)>);

impl TriggerWatch {
    /// Watches the recording at `place`, where the request has triggers.
    pub(crate) fn start(request: &Request, place: &RecordingPath) -> Self {
        if request.triggers.is_empty() {
            return Self(None);
        }
        let (sender, end) = channel();
        let place = place.clone();
        let started = std::thread::Builder::new().name("triggers".to_owned()).spawn(move || watch(&place, &end));
        match started {
            Ok(thread) => Self(Some((sender, thread))),
            Err(error) => {
                say(&format!("clrscope: nothing is written out before the end: no thread for it: {error}"));
                Self(None)
            }
        }
    }
}

impl Drop for TriggerWatch {
    /// Waits for a copy that is being written.
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            // A thread that panicked writes no more copies.
            let _ = thread.join();
        }
    }
}

fn watch(place: &RecordingPath, end: &Receiver<()>) {
    let (mut seen, mut copies) = (0, 0);
    while end.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
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

/// Packs the recording in `folder`, which goes on, under the next free name beside `file`.
///
/// # Errors
/// When it can't be read or written.
pub(crate) fn copy(folder: &Path, file: &Path) -> Result<PathBuf, Failure> {
    let free = (1..MOST_NAMES).map(|number| numbered(file, number)).find(|name| name.symlink_metadata().is_err());
    let name = free.ok_or_else(|| {
        Failure::new(format!("cannot write a copy of {}", shown(file)), "all names are taken", "move some copies away")
    })?;
    pack::pack(folder, &name, false, false)?;
    Ok(name)
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
