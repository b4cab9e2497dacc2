//! Refusals: files `refused-PID.txt`, in which an agent that could not record leaves the reason in
//! the recording directory.
//!
//! The process runs on unprofiled. The reader makes each file a process of the recording with
//! nothing but the loss [`ProcessRefused`](crate::model::LossReason::ProcessRefused) and a remark
//! with the reason.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::model::{Loss, LossReason, Process, Remark, RemarkKind};

const START: &str = "refused-";
const END: &str = ".txt";
/// Maximum number of refusal files for one process id.
const MOST_OF_ONE_ID: u32 = 100;
/// Longer reasons are cut to this many bytes.
const LONGEST: u64 = 4096;

/// Writes a refusal into `folder`: process `pid` was not recorded because of `why`.
///
/// # Errors
/// If the file can't be created. It must not exist yet, because other users may be able to put
/// links there.
pub fn leave(folder: &Path, pid: u32, why: &str) -> io::Result<()> {
    let mut file = create(folder, pid)?;
    // The number of a system error adds nothing to its text.
    let why = why.split(" (os error").next().unwrap_or(why);
    file.write_all(format!("{why}\n").as_bytes())
}

/// Creates the file under a free name: in containers that share a folder, all processes may have
/// the same id.
fn create(folder: &Path, pid: u32) -> io::Result<File> {
    let mut names = (0..MOST_OF_ONE_ID).map(|number| match number {
        0 => format!("{START}{pid}{END}"),
        _ => format!("{START}{pid}-{number}{END}"),
    });
    let open = |name| OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(name));
    names
        .find_map(|name| match open(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            other => Some(other),
        })
        .unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
}

/// The processes that left a refusal in `folder`, lowest process id first.
pub(crate) fn read_all(folder: &Path) -> Vec<Process> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<Process> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(START)?.strip_suffix(END)?;
            let pid = number.split('-').next()?.parse().ok()?;
            Some(process(pid, &word(&entry.path())))
        })
        .collect();
    found.sort_by(|a, b| (a.pid, a.refusal()).cmp(&(b.pid, b.refusal())));
    found
}

/// Reads the reason. An agent that found no disk space even for the reason has left an empty file.
fn word(path: &Path) -> String {
    let mut bytes = Vec::new();
    // A file that can't be read counts as empty.
    let _ = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    match text.trim() {
        "" => "there is no space left on its disk".to_owned(),
        why => why.to_owned(),
    }
}

fn process(pid: u32, why: &str) -> Process {
    let loss = Loss::new(LossReason::ProcessRefused, 1, 0, 0);
    let remark = Remark {
        time_ns: 0,
        kind: RemarkKind::Refusal,
        text: format!("the agent in process {pid} disabled itself: {why}"),
    };
    Process { pid, losses: vec![loss], remarks: vec![remark], ..Process::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_becomes_a_process_with_a_loss() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("x.clrs.d");
        assert!(leave(&folder, 12, "the recording is over").is_err());
        std::fs::create_dir(&folder).expect("a folder");
        leave(&folder, 12, "the disk is full (os error 28)").expect("a word");
        leave(&folder, 12, "the disk is still full").expect("a word of another process with this id");
        std::fs::write(folder.join("refused-7.txt"), "").expect("an empty file");
        std::fs::write(folder.join("refused-me.txt"), "no number").expect("another file");
        let recording = crate::open(&folder).expect("a recording of nothing");
        let words: Vec<_> = recording.processes.iter().map(|p| (p.pid, p.remarks[0].text.as_str())).collect();
        assert_eq!(
            words,
            [
                (7, "the agent in process 7 disabled itself: there is no space left on its disk"),
                (12, "the agent in process 12 disabled itself: the disk is full"),
                (12, "the agent in process 12 disabled itself: the disk is still full"),
            ]
        );
        assert!(recording.processes.iter().all(|p| p.losses[0].reason == LossReason::ProcessRefused && !p.complete));
    }

    #[test]
    fn a_word_follows_no_link() {
        let temp = tempfile::tempdir().expect("a folder");
        let precious = temp.path().join("precious");
        std::fs::write(&precious, "mine").expect("a file");
        std::os::unix::fs::symlink(&precious, temp.path().join("refused-5.txt")).expect("a link");
        leave(temp.path(), 5, "why").expect("a word under another name");
        assert_eq!(std::fs::read_to_string(&precious).expect("the file"), "mine");
    }
}
