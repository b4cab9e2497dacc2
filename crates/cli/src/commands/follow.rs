//! `--follow`: looking at a recording again and again while its program goes on.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clrscope_analysis::QueryProblem;
use clrscope_recording::model::{LossReason, Process, Recording};

use crate::errors::Failure;
use crate::output::file_of;
use crate::recording_file::{Opened, open, query_failure};

/// Between two polls at least; a poll that takes longer is followed by a pause as long as itself.
const PAUSE: Duration = Duration::from_millis(200);
/// Looks at processes that have said that they end, until the launcher says so too: other threads may still
/// run for a moment, and there may be no launcher.
const LAST_POLLS: u32 = 5;

/// Outcome of a poll.
pub(crate) enum Poll {
    /// All new rows were shown.
    Shown,
    /// The instrument has recorded nothing yet; what to say when it never comes.
    NotYet(Failure),
    /// Nobody reads what is shown any more.
    Unread,
}

impl Poll {
    /// A query that can't be answered, as far as it may be later.
    pub(crate) fn unanswered(problem: &QueryProblem) -> Result<Self, Failure> {
        let failure = query_failure(problem);
        match problem {
            QueryProblem::NotRecorded { .. } | QueryProblem::NoThread { .. } | QueryProblem::NoProcess { .. } => {
                Ok(Self::NotYet(failure))
            }
            _ => Err(failure),
        }
    }
}

/// Lets `poll` show what one of `instruments` has recorded, until every process has ended.
///
/// # Errors
/// When the recording can't be opened, those of `poll`, and when what is asked for never came.
pub(crate) fn follow(
    path: &Path,
    instruments: &[&str],
    mut poll: impl FnMut(&Recording) -> Result<Poll, Failure>,
) -> Result<(), Failure> {
    let place = Followed::new(path);
    let mut over = 0;
    loop {
        let began = Instant::now();
        let recording = place.open()?;
        over = if are_over(&recording.processes) { over + 1 } else { 0 };
        let has_ended = recording.run.exit.is_some() || over > LAST_POLLS;
        match poll(&recording)? {
            Poll::Unread => return Ok(()),
            Poll::NotYet(failure) if has_ended || never_comes(&recording, instruments) => return Err(failure),
            Poll::Shown | Poll::NotYet(_) if has_ended => return Ok(()),
            Poll::Shown | Poll::NotYet(_) => {}
        }
        #[expect(clippy::disallowed_methods, reason = "a growing recording is looked at now and then")]
        std::thread::sleep(PAUSE.max(began.elapsed()));
    }
}

/// Whether the recording is made without all of the instruments; not known before a process has begun.
fn never_comes(recording: &Recording, instruments: &[&str]) -> bool {
    let recorded = recording.run.filled.instruments();
    !recorded.is_empty() && recorded.iter().all(|one| !instruments.contains(&one.name.as_str()))
}

/// Whether no process records any more.
fn are_over(processes: &[Process]) -> bool {
    let is_over = |process: &Process| {
        let mut losses = process.losses.iter();
        process.complete
            || process.exit.is_some()
            || losses.any(|loss| matches!(loss.reason, LossReason::Stopped | LossReason::AbruptEnd))
    };
    !processes.is_empty() && processes.iter().all(is_over)
}

/// A recording that becomes a file when its program has ended.
struct Followed {
    path: PathBuf,
    file: PathBuf,
    /// Identity of an earlier recording that lies at `file`.
    older: Option<Identity>,
}

/// A file as what it is, not as what it is called.
type Identity = (u64, u64, i64, i64);

impl Followed {
    fn new(path: &Path) -> Self {
        let file = file_of(path).unwrap_or_else(|| path.to_owned());
        let older = if file == path { None } else { identity(&file) };
        Self { path: path.to_owned(), file, older }
    }

    fn open(&self) -> Result<Opened, Failure> {
        let opened = open(&self.path);
        // The directory may have been removed while it was read, since the file is complete.
        let packed = identity(&self.file).filter(|now| Some(*now) != self.older);
        if packed.is_some() { open(&self.file) } else { opened }
    }
}

fn identity(file: &Path) -> Option<Identity> {
    let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((about.dev(), about.ino(), about.mtime(), about.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::Loss;

    use super::*;

    fn made_with(instruments: &str) -> Recording {
        let mut recording = Recording::default();
        recording.run.filled = instruments.into();
        recording
    }

    #[test]
    fn what_was_never_asked_for_is_not_waited_for() {
        assert!(!never_comes(&made_with(""), &["flow"]), "nothing has begun yet");
        assert!(!never_comes(&made_with("calls:max=1;flow:all"), &["flow"]));
        assert!(never_comes(&made_with("calls:max=1;events:flow"), &["flow"]));
    }

    #[test]
    fn a_process_is_over_when_it_says_so_or_has_gone_or_was_told_to_stop() {
        let stopped = Loss::new(LossReason::Stopped, 1, 0, 0);
        let runs = Process::default();
        let complete = Process { complete: true, ..Process::default() };
        let stopped_one = Process { losses: vec![stopped], ..Process::default() };
        assert!(!are_over(&[]), "none has begun");
        assert!(are_over(&[complete.clone(), stopped_one]));
        assert!(!are_over(&[complete, runs]));
    }

    #[test]
    fn a_file_that_was_there_before_is_not_the_packed_recording() {
        let folder = tempfile::tempdir().expect("a folder");
        let (directory, file) = (folder.path().join("a.clrs.d"), folder.path().join("a.clrs"));
        std::fs::write(&file, b"older").expect("a file");
        let place = Followed::new(&directory);
        assert!(place.open().expect_err("neither is there").to_string().contains("a.clrs.d"));
        std::fs::remove_file(&file).expect("removed");
        std::fs::write(&file, b"newer").expect("a file");
        assert!(!place.open().expect_err("no recording").to_string().contains("a.clrs.d"));
    }
}
