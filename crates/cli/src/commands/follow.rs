//! `--follow`: reads a recording again and again while its program runs.

use std::path::Path;
use std::time::{Duration, Instant};

use clrscope_analysis::QueryProblem;
use clrscope_recording::model::Recording;

use crate::errors::Failure;
use crate::growing::{Growing, are_over};
use crate::recording_file::query_failure;

/// Shortest pause between two polls; after a poll that takes longer, the pause is as long as the
/// poll.
const PAUSE: Duration = Duration::from_millis(200);
/// Most polls after all processes have recorded their end and before the launcher has: other
/// threads may still run for a moment, and there may be no launcher.
const LAST_POLLS: u32 = 5;

/// Outcome of a poll.
pub(crate) enum Poll {
    /// All new rows were shown.
    Shown,
    /// The instrument has recorded nothing yet; with the failure to report if it never does.
    NotYet(Failure),
    /// The reader of the output is gone.
    Unread,
}

impl Poll {
    /// Turns a problem that may be temporary into [`Poll::NotYet`].
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

/// Calls `poll` to show new records of `instruments`, until every process has ended.
///
/// # Errors
/// When the recording can't be opened or the instruments recorded nothing, and errors of `poll`.
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

/// Whether the recording has none of the instruments; `false` as long as no process has started,
/// because then it is unknown.
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
