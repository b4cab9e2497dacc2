//! `clrscope record`: a command to the agent in a running process.

use std::path::Path;
use std::time::Duration;

use clrscope_recording::writer::{Answer, Command, ControlError, command};

use crate::errors::{Failure, quoted, reason, shown};
use crate::recorded_process::process_folder;
use crate::terminal::say;

/// Time that a busy machine, and a tree of a gigabyte, may keep the agent from answering.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time that a snapshot of a large heap may take.
const FOR_SNAPSHOTS: Duration = Duration::from_secs(600);

/// Options of `record`.
#[derive(Debug)]
pub(crate) struct RecordOptions {
    /// The process.
    pub(crate) pid: u32,
    /// Command to the agent.
    pub(crate) command: Command,
}

/// Gives the command and says what came of it.
///
/// # Errors
/// When the process is not recorded, or the command makes no sense now.
pub(crate) fn perform(options: &RecordOptions) -> Result<(), Failure> {
    if is_carried_out(options)? {
        return Ok(());
    }
    let what = format!("{} of process {}", cannot(&options.command), options.pid);
    Err(Failure::new(what, "its recording is over", "record the program anew with 'clrscope run'"))
}

fn cannot(wanted: &Command) -> &'static str {
    match wanted {
        Command::Start(_) => "cannot start the recording",
        Command::Stop => "cannot stop the recording",
        Command::Mark(_) => "cannot mark the recording",
        Command::Snapshot(_) => "cannot take a snapshot",
    }
}

/// Gives the command and says what came of it; `false` where the recording came to its end before.
///
/// # Errors
/// As for [`perform`].
pub(super) fn is_carried_out(options: &RecordOptions) -> Result<bool, Failure> {
    let RecordOptions { pid, command: wanted } = options;
    let what = cannot(wanted);
    let folder = process_folder(*pid, what)?;
    let failed = |why: &str, hint: &str| Failure::new(format!("{what} of process {pid}"), why, hint);
    let patience = if matches!(wanted, Command::Snapshot(_)) { FOR_SNAPSHOTS } else { PATIENCE };
    match give(*pid, &folder, wanted, patience) {
        Ok(Answer::Done) => {
            say(&format!("clrscope: process {pid}: {}", done(wanted, &folder)));
            Ok(true)
        }
        Ok(Answer::Recording) => {
            Err(failed("it is being recorded already", "begin a part with 'clrscope record PID mark NAME'"))
        }
        Ok(Answer::Stopped) => Err(failed("nothing is recorded right now", "first 'clrscope record PID start'")),
        Ok(Answer::NoHeap) => Err(failed(
            "it is recorded without heap",
            "end that recording, or start the program with 'clrscope run -i heap' beside its other instruments",
        )),
        Ok(Answer::Failed) => {
            Err(failed("the snapshot could not be taken", "'clrscope report' of its recording says why"))
        }
        Ok(Answer::Unknown) => {
            Err(failed("the agent in it does not know that command", "use the clrscope that made its recording"))
        }
        Err(ControlError::Over) => Ok(false),
        Err(ControlError::Deaf) => Err(failed(
            "the agent in it takes no commands: it has not begun to record, or is older",
            "try again in a moment",
        )),
        Err(ControlError::Busy) => Err(failed("another command to it is under way", "try again in a moment")),
        Err(ControlError::Io(error)) => {
            Err(failed(&reason(&error), "give the command as the user who runs the program"))
        }
        Err(_) => Err(failed(
            &format!("the agent in it has not answered for {} s", patience.as_secs()),
            "the program may be stopped, or the machine busy; 'clrscope report' of its recording may tell more",
        )),
    }
}

/// Gives the command; a process that ended meanwhile gives no answer.
fn give(pid: u32, folder: &Path, wanted: &Command, patience: Duration) -> Result<Answer, ControlError> {
    command(folder, wanted, patience, || Path::new(&format!("/proc/{pid}")).exists())
}

/// Outcome of a command to the agent that records into the folder of a process, in words.
fn done(command: &Command, folder: &Path) -> String {
    match command {
        Command::Start(name) if name.is_empty() => "it is recorded again".to_owned(),
        Command::Start(name) => format!("it is recorded again, as part {}", quoted(name)),
        Command::Stop => "nothing is recorded until 'start'".to_owned(),
        Command::Mark(name) => format!("part {} begins", quoted(name)),
        Command::Snapshot(_) => {
            let recording = folder.parent().map(|recording| format!(", {}", shown(recording)));
            format!("the snapshot is in its recording{}", recording.unwrap_or_default())
        }
    }
}
