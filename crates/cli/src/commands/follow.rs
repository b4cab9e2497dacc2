//! `--follow`: looking at a recording again and again while its program goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use clrscope_analysis::QueryProblem;
use clrscope_recording::model::Recording;

use crate::errors::Failure;
use crate::growing::{Growing, are_over};
use crate::recording_file::query_failure;

/// Between two polls at least; a poll that takes longer is followed by a pause as long as itself.
const PAUSE: Duration = Duration::from_millis(200);
/// Looks at processes that have said that they end, until the launcher says so too: other threads
/// may still run for a moment, and there may be no launcher.
const LAST_POLLS: u32 = 5;

/// Outcome of a poll.
pub(crate) enum Poll {
    /// All new rows were shown.
    Shown,
    /// The instrument has recorded nothing yet; what to say when it never comes.
    NotYet(Failure),
    /// What is shown is no longer read.
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
    let place = Growing::new(path);
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

/// Whether the recording is made without all of the instruments; not known before a process has
/// begun.
fn never_comes(recording: &Recording, instruments: &[&str]) -> bool {
    let recorded = recording.run.filled.instruments();
    !recorded.is_empty() && recorded.iter().all(|one| !instruments.contains(&one.name.as_str()))
}

#[cfg(test)]
mod tests {
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
}
