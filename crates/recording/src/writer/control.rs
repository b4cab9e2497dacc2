//! Commands from outside to the agent of a process, sent through the process's state segment: start
//! and stop recording, mark the beginning of a part, end a period, take a snapshot, prepare for a
//! copy, and change which methods have probes.
//!
//! Only one command is in progress at a time: its sender holds a lock on the state's file. The
//! agent's helper thread polls for commands about a thousand times a second, and answers after it
//! has carried out a command.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::layout::{HEADER_BYTES, state, u32_at};

/// Time between two polls for the answer.
const PAUSE: Duration = Duration::from_millis(1);

/// A command to the agent in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start recording again. A part with this name begins; an unnamed part if the name is empty.
    Start(String),
    /// Stop recording for now: a part ends.
    Stop,
    /// Continue recording: the current part ends, and a part with this name begins.
    Mark(String),
    /// Take a snapshot of the heap with this name; an empty name gives an unnamed snapshot.
    Snapshot(String),
    /// Add probes to the methods that this pattern matches, also in modules that are loaded later.
    Probe(String),
    /// Remove the probes from the methods that this pattern matches.
    Unprobe(String),
    /// Count how often this source line is reached, also in modules that are loaded later.
    ProbeLine(String),
    /// Stop counting this line.
    UnprobeLine(String),
    /// Prepare for a copy of the recording so far: write out data that only the process knows.
    Copy,
    /// End the period of this number, and begin the next one.
    Cut(u32),
}

impl Command {
    /// Maximum length of a part's name in bytes.
    pub const LONGEST_NAME: usize = 128;
    /// Maximum length of a pattern or line in bytes.
    pub const LONGEST_PATTERN: usize = state::COMMAND_NAME_MOST;

    /// Reason why a part can't have this name: it would look like an unnamed part. `None` if the
    /// name is allowed.
    #[must_use]
    pub fn names_no_part(name: &str) -> Option<&'static str> {
        if name.trim().is_empty() {
            Some("it is empty")
        } else if name.chars().all(|c| c.is_ascii_digit()) {
            Some("numbers name the parts without a name")
        } else {
            None
        }
    }

    fn kind(&self) -> u32 {
        match self {
            Self::Start(_) => 1,
            Self::Stop => 2,
            Self::Mark(_) => 3,
            Self::Snapshot(_) => 4,
            Self::Probe(_) => 5,
            Self::Unprobe(_) => 6,
            Self::ProbeLine(_) => 7,
            Self::UnprobeLine(_) => 8,
            Self::Copy => 9,
            Self::Cut(_) => 10,
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Start(text)
            | Self::Mark(text)
            | Self::Snapshot(text)
            | Self::Probe(text)
            | Self::Unprobe(text)
            | Self::ProbeLine(text)
            | Self::UnprobeLine(text) => Cow::Borrowed(text),
            Self::Stop | Self::Copy => Cow::Borrowed(""),
            Self::Cut(number) => Cow::Owned(number.to_string()),
        }
    }

    /// The command of the kind with this number; `None` if there is no such kind, or `text` is not
    /// valid for it.
    pub(super) fn from_parts(kind: u32, text: String) -> Option<Self> {
        match kind {
            1 => Some(Self::Start(text)),
            2 => Some(Self::Stop),
            3 => Some(Self::Mark(text)),
            4 => Some(Self::Snapshot(text)),
            5 => Some(Self::Probe(text)),
            6 => Some(Self::Unprobe(text)),
            7 => Some(Self::ProbeLine(text)),
            8 => Some(Self::UnprobeLine(text)),
            9 => Some(Self::Copy),
            10 => text.parse().ok().map(Self::Cut),
            _ => None,
        }
    }
}

/// The agent's answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The command is carried out.
    Done,
    /// Recording is already on, so it can't start.
    Recording,
    /// Recording is stopped, so only a start makes sense.
    Stopped,
    /// The agent does not know such a command.
    Unknown,
    /// The command's instrument does not record in this process.
    NotRecorded,
    /// The command could not be carried out.
    Failed,
    /// The command was carried out; this is the number of methods that it changed.
    Changed(u32),
    /// No loaded method matches.
    NoMethod,
}

impl Answer {
    /// The answer by its numbers.
    fn from_numbers(kind: u32, number: u32) -> Self {
        match kind {
            1 => Self::Done,
            2 => Self::Recording,
            3 => Self::Stopped,
            5 => Self::NotRecorded,
            6 => Self::Failed,
            7 => Self::Changed(number),
            8 => Self::NoMethod,
            _ => Self::Unknown,
        }
    }

    /// Numbers of the answer: its kind, and the value that belongs to it.
    pub(super) fn numbers(self) -> (u32, u32) {
        match self {
            Self::Done => (1, 0),
            Self::Recording => (2, 0),
            Self::Stopped => (3, 0),
            Self::Unknown => (4, 0),
            Self::NotRecorded => (5, 0),
            Self::Failed => (6, 0),
            Self::Changed(methods) => (7, methods),
            Self::NoMethod => (8, 0),
        }
    }
}

/// Reason why a command got no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// The state of the process can't be opened, read or written.
    Io(io::Error),
    /// The agent takes no commands: it is an older version, or has not begun to record.
    Deaf,
    /// The recording of the process is over.
    Over,
    /// A command of another sender is in progress.
    Busy,
    /// There was no answer in time; the process may be suspended, or gone.
    Silent,
}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Sends a command to the agent that records into `folder`, the folder of a process. Waits for the
/// answer for at most `patience`, and only while `is_alive` returns true for the process.
///
/// # Errors
/// When there is no answer.
pub fn command(
    folder: &Path,
    command: &Command,
    patience: Duration,
    is_alive: impl Fn() -> bool,
) -> Result<Answer, ControlError> {
    let deadline = Instant::now() + patience;
    let file = OpenOptions::new().read(true).write(true).open(folder.join("state.seg"))?;
    lock(&file, deadline)?;
    let number = CommandState::read(&file)?.number()?.wrapping_add(1);
    let text = command.text();
    let text = text.as_bytes();
    let text = &text[..text.len().min(state::COMMAND_NAME_MOST)];
    write(&file, state::COMMAND_NAME, text)?;
    write(&file, state::COMMAND_NAME_BYTES, &(text.len() as u32).to_le_bytes())?;
    write(&file, state::COMMAND_KIND, &command.kind().to_le_bytes())?;
    // Last: from here on the agent may look at it.
    write(&file, state::COMMAND, &number.to_le_bytes())?;
    loop {
        let seen = CommandState::read(&file)?;
        if seen.u32(state::ANSWERED) == number {
            return Ok(Answer::from_numbers(seen.u32(state::ANSWER), seen.u32(state::ANSWER_NUMBER)));
        }
        seen.number()?;
        if !is_alive() {
            return Err(ControlError::Over);
        }
        pause(deadline, ControlError::Silent)?;
    }
}

/// The part of a process's state that commands are about.
struct CommandState(Vec<u8>);

impl CommandState {
    fn read(file: &File) -> io::Result<Self> {
        let mut bytes = vec![0; state::COMMAND_KIND];
        file.read_exact_at(&mut bytes, HEADER_BYTES as u64)?;
        Ok(Self(bytes))
    }

    fn u32(&self, at: usize) -> u32 {
        u32_at(&self.0, at)
    }

    /// The number of the last answered command; an error if the agent will not answer.
    fn number(&self) -> Result<u32, ControlError> {
        let is_over = self.u32(state::STOPPED) != 0 || self.u32(state::STOP) != 0;
        if is_over || self.u32(state::FLAGS) & state::FLAG_ENDED != 0 {
            Err(ControlError::Over)
        } else if self.u32(state::LISTENS) == 0 {
            Err(ControlError::Deaf)
        } else {
            Ok(self.u32(state::ANSWERED))
        }
    }
}

fn write(file: &File, at: usize, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, (HEADER_BYTES + at) as u64)
}

fn lock(file: &File, deadline: Instant) -> Result<(), ControlError> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(std::fs::TryLockError::WouldBlock) => pause(deadline, ControlError::Busy)?,
            Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

fn pause(deadline: Instant, too_late: ControlError) -> Result<(), ControlError> {
    if Instant::now() >= deadline {
        return Err(too_late);
    }
    #[expect(clippy::disallowed_methods, reason = "the other process has no way to notify this one")]
    std::thread::sleep(PAUSE);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::StateWriter;

    fn patience() -> Duration {
        Duration::from_millis(50)
    }

    #[test]
    fn commands_are_taken_once_and_answered() {
        let folder = tempfile::tempdir().expect("a folder");
        let agent = StateWriter::create(&folder.path().join("state.seg")).expect("a state");
        let long = |bytes| "x".repeat(bytes);
        let (mark, probe) =
            (Command::Mark(long(Command::LONGEST_NAME)), Command::Probe(long(Command::LONGEST_PATTERN)));
        let given = [
            Command::Stop,
            Command::Start(String::new()),
            mark,
            probe,
            Command::Unprobe("*".to_owned()),
            Command::ProbeLine("a.cs:1".to_owned()),
            Command::Copy,
        ];
        let answers = [
            Answer::Done,
            Answer::Recording,
            Answer::Stopped,
            Answer::Changed(70_000),
            Answer::NoMethod,
            Answer::Done,
            Answer::Done,
        ];
        assert!(matches!(command(folder.path(), &Command::Stop, patience(), || true), Err(ControlError::Deaf)));
        agent.listens();
        assert_eq!(agent.command(), None);
        std::thread::scope(|scope| {
            let launcher = scope.spawn(|| {
                given
                    .clone()
                    .map(|one| command(folder.path(), &one, Duration::from_secs(60), || true).expect("an answer"))
            });
            for (one, answer) in given.iter().zip(answers) {
                let (number, taken) = loop {
                    match agent.command() {
                        Some(found) => break found,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(taken.as_ref(), Some(one));
                agent.answer(number, answer);
                assert_eq!(agent.command().filter(|next| next.0 == number), None);
            }
            assert_eq!(launcher.join().expect("no panic"), answers);
        });
    }

    #[test]
    fn where_nobody_answers_it_is_said_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let give = || command(folder.path(), &Command::Stop, patience(), || true);
        assert!(matches!(give(), Err(ControlError::Io(error)) if error.kind() == io::ErrorKind::NotFound));
        let agent = StateWriter::create(&folder.path().join("state.seg")).expect("a state");
        agent.listens();
        assert!(matches!(give(), Err(ControlError::Silent)));
        let gone = command(folder.path(), &Command::Stop, Duration::from_secs(60), || false);
        assert!(matches!(gone, Err(ControlError::Over)), "its process has ended");
        let other = File::open(folder.path().join("state.seg")).expect("the state");
        other.lock().expect("the lock");
        assert!(matches!(give(), Err(ControlError::Busy)));
        drop(other);
        agent.stopped();
        assert!(matches!(give(), Err(ControlError::Over)));
    }
}
