//! Tells whether this process is the program itself or a child process, for recordings without
//! children.
//!
//! The first process of a recording leaves its mark in the directory. Under a launcher the mark is
//! valid for the whole run. Without a launcher the directory may be reused when a service is
//! restarted, so a mark is valid only as long as its process lives.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use clrscope_agent_base::os::process;

const MARK: &str = "only-one";

/// Whether the recording in `folder` has a valid mark of another process, so that this process is a
/// child. If there is no mark, leaves the mark of this process. `launched`: a launcher watches the
/// run.
pub(crate) fn is_child(folder: &Path, launched: bool) -> bool {
    if !launched {
        // The first process may have to make the folder; if it can't, the writer says why.
        let _ = DirBuilder::new().mode(0o700).create(folder);
    }
    let mark = folder.join(MARK);
    let me = std::process::id();
    match leave(&mark, me) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        _ => return false,
    }
    let Some((first, started)) = fs::read_to_string(&mark).ok().and_then(|text| parse(&text)) else { return true };
    if first == me {
        // This process became another program by `exec`.
        return false;
    }
    if launched || process::start_of(first) == Some(started) {
        return true;
    }
    // If two processes find a dead process's mark at the same time, the later one's mark remains;
    // both are recorded.
    let _ = fs::remove_file(&mark).and_then(|()| leave(&mark, me));
    false
}

fn leave(mark: &Path, pid: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(mark)?;
    file.write_all(format!("{pid} {}\n", process::start_of(pid).unwrap_or(0)).as_bytes())
}

fn parse(text: &str) -> Option<(u32, u64)> {
    let (pid, started) = text.trim().split_once(' ')?;
    Some((pid.parse().ok()?, started.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_while_the_process_that_left_it_lives() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("x.clrs.d");
        assert!(!is_child(&folder, false), "the first");
        assert!(!is_child(&folder, true), "the same, become another program");
        let mark = |text: String| fs::write(folder.join(MARK), text).expect("a mark");
        let parent = std::os::unix::process::parent_id();
        mark(format!("{parent} {}\n", process::start_of(parent).expect("it lives")));
        assert!(is_child(&folder, false), "of one that lives");
        mark(format!("{parent} 1\n"));
        assert!(is_child(&folder, true), "under a launcher");
        assert!(!is_child(&folder, false), "its id is another process's now");
        assert_eq!(
            parse(&fs::read_to_string(folder.join(MARK)).expect("a mark")).map(|m| m.0),
            Some(std::process::id())
        );
    }
}
