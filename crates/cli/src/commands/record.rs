//! `clrscope record`: sends a command to the agent in a running process.

use std::path::Path;
use std::time::Duration;

use clrscope_analysis::{methods_like, missed_line};
use clrscope_contract::request::MissedLine;
use clrscope_recording::writer::{Answer, Command, ControlError, command};

use crate::errors::{Failure, quoted, reason, shown};
use crate::output::file_of;
use crate::recorded_process::{StopWatch, process_folder, stopped};
use crate::terminal::say;
use crate::triggered;

/// Longest wait for the agent's answer, with a busy machine and a tree of a gigabyte.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time for a snapshot of a large heap.
const FOR_SNAPSHOTS: Duration = Duration::from_secs(600);

/// Options of `record`.
#[derive(Debug)]
pub(crate) struct RecordOptions {
    /// The process that is recorded.
    pub(crate) pid: u32,
    /// The action.
    pub(crate) task: RecordTask,
}

/// Action on a recording.
#[derive(Debug)]
pub(crate) enum RecordTask {
    /// A command to the agent.
    Command(Command),
    /// Writes a copy of what was recorded so far.
    Write,
}

/// Sends the command and prints its result.
///
/// # Errors
/// When the process is not recorded, or the command is invalid in the current state.
pub(crate) fn perform(options: &RecordOptions) -> Result<(), Failure> {
    match &options.task {
        RecordTask::Write => write(options.pid),
        RecordTask::Command(command) => give_command(options.pid, command),
    }
}

/// Sends the command and prints its result.
///
/// # Errors
/// As for [`perform`].
pub(super) fn give_command(pid: u32, command: &Command) -> Result<(), Failure> {
    if is_carried_out(pid, command)? {
        return Ok(());
    }
    let what = format!("{} of process {pid}", cannot(command));
    Err(Failure::new(what, "its recording is over", "record the program again with 'clrscope run'"))
}

/// Writes a copy into the current folder, because the recording's own folder may lie in another
/// file system.
fn write(pid: u32) -> Result<(), Failure> {
    let folder = process_folder(pid, "cannot write the recording")?;
    let recording = folder.parent().unwrap_or(&folder);
    let file = file_of(recording).unwrap_or_else(|| recording.to_owned());
    let copy = triggered::copy(recording, Path::new(file.file_name().unwrap_or_default()))?;
    say(&format!("clrscope: process {pid}: written to {}", shown(&copy)));
    Ok(())
}

fn cannot(wanted: &Command) -> &'static str {
    match wanted {
        Command::Start(_) => "cannot start the recording",
        Command::Stop => "cannot stop the recording",
        Command::Mark(_) => "cannot mark the recording",
        Command::Snapshot(_) => "cannot take a snapshot",
        Command::Copy => "cannot copy the recording",
        Command::Cut(_) => "cannot end the period",
        Command::Probe(_) => "cannot probe methods",
        Command::ProbeLine(_) => "cannot probe a line",
        Command::Unprobe(_) | Command::UnprobeLine(_) => "cannot remove probes",
    }
}

/// Sends the command and prints its result; `false` if the recording ended before.
///
/// # Errors
/// As for [`perform`].
pub(super) fn is_carried_out(pid: u32, wanted: &Command) -> Result<bool, Failure> {
    let what = cannot(wanted);
    let folder = process_folder(pid, what)?;
    let failed = |why: &str, hint: &str| Failure::new(format!("{what} of process {pid}"), why, hint);
    let patience = if matches!(wanted, Command::Snapshot(_)) { FOR_SNAPSHOTS } else { PATIENCE };
    let watch = StopWatch::default();
    match give((pid, &watch), &folder, wanted, patience) {
        Ok(answer @ (Answer::Done | Answer::Changed(_))) => {
            say(&format!("clrscope: process {pid}: {}", done(wanted, answer, &folder)));
            Ok(true)
        }
        Ok(Answer::Recording) => {
            Err(failed("it is being recorded already", "begin a part with 'clrscope record PID mark NAME'"))
        }
        Ok(Answer::Stopped) => Err(failed("nothing is recorded right now", "first 'clrscope record PID start'")),
        Ok(Answer::NotRecorded) if is_of_probes(wanted) => Err(failed(
            "it is recorded without probes",
            "end that recording, and attach with at least one method: clrscope attach PID --probe 'Shop.Cart::*'",
        )),
        Ok(Answer::NotRecorded) => Err(failed(
            "it is recorded without heap",
            "end that recording, or start the program with 'clrscope run -i heap' and its other instruments",
        )),
        Ok(Answer::Failed) => Err(failed(not_done(wanted), "'clrscope report' of its recording says why")),
        Ok(Answer::NoMethod) => {
            let (why, hint) = no_method(wanted, &folder);
            Err(failed(&why, &hint))
        }
        Ok(Answer::Unknown) => {
            Err(failed("the agent in it does not know that command", "use the clrscope that made its recording"))
        }
        Err(ControlError::Over) if watch.is_stopped(pid) => Err(stopped(format!("{what} of process {pid}"), pid)),
        Err(ControlError::Over) => Ok(false),
        Err(ControlError::Deaf) => Err(failed(
            "the agent in it takes no commands: it has not begun to record, or is older",
            "try again in a moment",
        )),
        Err(ControlError::Busy) => Err(failed("another command to it is running", "try again in a moment")),
        Err(ControlError::Io(error)) => {
            Err(failed(&reason(&error), "give the command as the user who runs the program"))
        }
        Err(_) => Err(failed(
            &format!("the agent in it has not answered for {} s", patience.as_secs()),
            "the program may be stopped, or the machine busy; 'clrscope report' of its recording may say more",
        )),
    }
}

fn is_of_probes(command: &Command) -> bool {
    matches!(command, Command::Probe(_) | Command::Unprobe(_) | Command::ProbeLine(_) | Command::UnprobeLine(_))
}

/// Failure of a command, in words.
fn not_done(command: &Command) -> &'static str {
    match command {
        Command::Probe(_) => "no probe could be set in any method that matches",
        Command::ProbeLine(_) => "no probe could be set in any method with code at that line",
        Command::Unprobe(_) | Command::UnprobeLine(_) => "the runtime did not restore the methods' own code",
        _ => "the snapshot could not be taken",
    }
}

/// Reason and hint if a command matches no method.
fn no_method(command: &Command, folder: &Path) -> (String, String) {
    let recording = || folder.parent().and_then(|recording| clrscope_recording::open(recording).ok());
    let list = || "'clrscope probe PID list' shows what has probes".to_owned();
    match command {
        Command::Unprobe(pattern) => (format!("no method that has a probe matches {}", quoted(pattern)), list()),
        Command::UnprobeLine(line) => (format!("no probe is at {}", quoted(line)), list()),
        Command::Probe(pattern) => {
            let near = recording().map(|recording| methods_like(&recording, pattern)).unwrap_or_default();
            let names: Vec<String> = near.iter().map(|name| quoted(name)).collect();
            let hint = match names.as_slice() {
                [] => "'clrscope report --view functions' of a recording with calls shows names; assemblies of the framework must be named".to_owned(),
                names => format!("did you mean {}?", names.join(" or ")),
            };
            (format!("no method of the loaded assemblies matches {}", quoted(pattern)), hint)
        }
        Command::ProbeLine(line) => {
            let missed = recording().map(|recording| missed_line(&recording, line));
            let missed = missed.unwrap_or_else(|| MissedLine::new(line.as_str(), []));
            let hint = || "name a source file, by the end of its path, of a loaded assembly with symbols".to_owned();
            (missed.why(), missed.hint().unwrap_or_else(hint))
        }
        _ => Default::default(),
    }
}

/// Sends the command. A process that has ended meanwhile, or is stopped, does not answer.
fn give(
    (pid, watch): (u32, &StopWatch),
    folder: &Path,
    wanted: &Command,
    patience: Duration,
) -> Result<Answer, ControlError> {
    command(folder, wanted, patience, || Path::new(&format!("/proc/{pid}")).exists() && !watch.is_stopped(pid))
}

/// Number of methods that a command changed, in words.
fn in_methods(answer: Answer) -> String {
    match answer {
        Answer::Changed(1) => "1 method".to_owned(),
        Answer::Changed(methods) => format!("{methods} methods"),
        _ => "its methods".to_owned(),
    }
}

/// Outcome of a command to the agent, in words; `folder` is the process's folder in the recording.
fn done(command: &Command, answer: Answer, folder: &Path) -> String {
    let methods = match answer {
        Answer::Changed(1) => "1 method that matches".to_owned(),
        Answer::Changed(methods) => format!("{methods} methods that match"),
        _ => String::new(),
    };
    match command {
        Command::Start(name) if name.is_empty() => "it is recorded again".to_owned(),
        Command::Start(name) => format!("it is recorded again, as part {}", quoted(name)),
        Command::Stop => "nothing is recorded until 'start'".to_owned(),
        Command::Mark(name) => format!("part {} begins", quoted(name)),
        Command::Snapshot(_) => {
            let recording = folder.parent().map(|recording| format!(", {}", shown(recording)));
            format!("the snapshot is in its recording{}", recording.unwrap_or_default())
        }
        Command::Probe(pattern) => format!("probes in {methods} {}", quoted(pattern)),
        Command::Unprobe(pattern) => format!("no more probes in {methods} {}", quoted(pattern)),
        Command::ProbeLine(line) => format!("probes at {line} in {}", in_methods(answer)),
        Command::UnprobeLine(line) => format!("no more probes at {line} in {}", in_methods(answer)),
        Command::Copy => "it can be copied".to_owned(),
        Command::Cut(number) => format!("period {number} has ended"),
    }
}
