//! One recording from start to end: the common part of `run` and `demo`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clrscope_contract::developer_log;
use clrscope_contract::request::Request;
use clrscope_recording::writer::RunWriter;
use rustix::fs::OFlags;

use crate::agent_file;
use crate::c_library;
use crate::errors::{Failure, reason, shown};
use crate::launch::{Debugger, Program, ProgramEnd, Signals, Slot, Stdout, start};
use crate::output::{self, RecordingPath, Start};
use crate::pack;
use crate::periods::{PeriodOptions, Periods, Written, begin_recording, has_ended};
use crate::progress::Shown;
use crate::terminal::say;
use crate::triggered::watch_triggers;
use crate::viewer::{self, Viewer};

/// Maximum bytes kept of an agent's log.
const MOST_LOGGED: u64 = 64 << 20;

/// Program, request and path of a recording.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The program.
    pub(crate) program: &'a Program,
    /// The command as the user gave it.
    pub(crate) command: &'a [OsString],
    /// The recording request, without a path.
    pub(crate) request: Request,
    /// Profiler slot of the runtime that the agent uses.
    pub(crate) slot: Slot,
    /// Periods, if each becomes a separate recording; otherwise `None`.
    pub(crate) periods: Option<&'a PeriodOptions>,
    /// The instruments as the user gave them.
    pub(crate) instruments_given: &'a str,
    /// Name of the recording; taken from the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite an existing recording.
    pub(crate) force: bool,
    /// Whether to show the progress of packing on a terminal.
    pub(crate) progress: bool,
    /// Whether to show a line about the recording on the terminal while the program runs.
    pub(crate) live: bool,
    /// Whether to print the recording's path and the effect of an interruption before the program
    /// starts.
    pub(crate) announce: bool,
    /// Destination of the program's output.
    pub(crate) stdout: Stdout,
    /// Debugger to start the program under.
    pub(crate) debugger: Option<Debugger>,
    /// Whether to serve the recording's page while the recording grows.
    pub(crate) view: bool,
}

/// A finished recording.
pub(crate) struct FinishedRecording {
    /// How the program ended.
    pub(crate) ended: ProgramEnd,
    /// The packed file, or the directory when packing failed; `None` if no .NET program was
    /// recorded.
    pub(crate) path: Option<PathBuf>,
    /// Number of recordings written, one per period, if there are periods; `path` is the last of
    /// them. `None` for a single recording.
    pub(crate) of_periods: Option<u64>,
    /// Whether `--only` restricted the recording to some programs.
    pub(crate) limited: bool,
    /// Signals that end the page, if one is served.
    signals: Option<Signals>,
}

impl FinishedRecording {
    /// Serves the page until an interruption, if there is a page.
    pub(crate) fn keep_page(&self) {
        if let (Some(signals), Some(_)) = (&self.signals, &self.path) {
            viewer::stay(signals);
        }
    }
}

/// Starts the program under the agent, waits for its end and packs the recording.
///
/// # Errors
/// The program could not be started, or waiting for its end failed. No files are left behind unless
/// the program ran.
pub(crate) fn record(plan: Plan<'_>) -> Result<FinishedRecording, Failure> {
    let signals = Signals::take_over().map_err(|e| our_failure("cannot handle signals", &e))?;
    let agent = agent_file::install(c_library::agent_of_program(plan.program)?, plan.request.trust_writable)?;
    let (place, writer) = begin(&plan)?;
    if plan.announce {
        let to = plan.periods.map_or(&place.file, |periods| &periods.folder);
        say(&format!("clrscope: recording to {} until the program ends; Ctrl-C goes to the program", shown(to)));
    }
    if plan.view {
        Viewer::follow(&place).inspect_err(|_| discard(&place))?;
    }
    let mut request = plan.request;
    let triggers = watch_triggers(&request, &place);
    let limited = request.programs.are_limited();
    request.out = Some(place.folder_text());
    // A program that outlives the recording may start other programs: they must not create the
    // recording's directory again.
    request.join = true;
    let running = plan
        .slot
        .variables(&agent, &request)
        .and_then(|variables| start(plan.program, &variables, plan.stdout, signals.clone(), plan.debugger))
        .inspect_err(|_| discard(&place))?;
    let pid = running.id();
    let periods = plan.periods.and_then(|options| {
        let name = plan.program.name.clone();
        let started = Periods::start(options, &place, name, Arc::clone(&writer), Box::new(has_ended));
        // The program runs: everything becomes one period.
        started.inspect_err(|failure| say(failure.to_string().trim_end())).ok()
    });
    let live = Shown::recording(plan.live, place.folder.clone());
    let ended = running.wait().map_err(|e| our_failure("cannot see the program's end", &e))?;
    drop(live);
    drop(triggers);
    writer.ended(pid, ended.exit());
    writer.request_stop();
    drop(writer);
    // From here on an interruption ends packing, not the recording.
    let kept = place.clone();
    signals.on_interruption(move || pack::abandon(&kept.folder, &kept.file, ended.code()));
    keep_agent_logs(&place);
    let (path, of_periods) = match periods {
        Some(periods) => {
            let Written { recordings, last } = periods.finish();
            (last, Some(recordings))
        }
        None if is_empty(&place.folder) => {
            discard(&place);
            (None, None)
        }
        None => (Some(finish(&place, plan.force, plan.progress)), None),
    };
    signals.on_interruption(move || pack::leave(ended.code()));
    Ok(FinishedRecording { ended, path, of_periods, limited, signals: plan.view.then_some(signals) })
}

/// Whether the folder has no process, not even one that only states why it is not recorded.
fn is_empty(folder: &Path) -> bool {
    clrscope_recording::open(folder).is_ok_and(|found| found.processes.is_empty() && found.problems.is_empty())
}

fn begin(plan: &Plan<'_>) -> Result<(RecordingPath, Arc<RunWriter>), Failure> {
    let no_command_line = plan.request.no_command_line;
    // Another launcher must not take a recording for left over whose program has not started yet.
    let is_held = plan.periods.is_some();
    let start = Start { command: plan.command, instruments: plan.instruments_given, no_command_line, is_held };
    let output = (plan.output.as_deref(), plan.force);
    let (place, writer) = begin_recording(&plan.program.name, plan.periods, output, &start)?;
    Ok((place, Arc::new(writer)))
}

/// Moves the agents' developer logs out of the folder to a place next to the recording: packing
/// deletes the folder.
pub(crate) fn keep_agent_logs(place: &RecordingPath) {
    let entries = fs::read_dir(&place.folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(developer_log::is_file_name)) {
        let mut kept = place.file.clone().into_os_string();
        kept.push(".");
        kept.push(entry.file_name());
        match move_log(&entry.path(), Path::new(&kept)) {
            Ok(()) => say(&format!("clrscope: log of an agent: {}", Path::new(&kept).display())),
            Err(error) => {
                say(&format!("clrscope: {} could not be kept: {}", shown(&entry.path()), reason(&error)));
            }
        }
    }
}

/// Moves a log, also out of the file system of an attached process. The owner of that process may
/// have put any kind of file there.
fn move_log(from: &Path, to: &Path) -> io::Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let log = fs::File::from(rustix::fs::open(from, flags, rustix::fs::Mode::empty())?);
    if !log.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    io::copy(&mut log.take(MOST_LOGGED), &mut fs::File::create_new(to)?)?;
    fs::remove_file(from)
}

/// Deletes the recording's files: the program did not start, or no program was recorded.
fn discard(place: &RecordingPath) {
    // If the folder can't be removed, readers find a valid empty recording.
    let _ = output::remove(&place.folder);
}

/// Packs the recording. A failure is not an error of the command: the directory holds the same
/// data, and the program's exit code matters more.
pub(crate) fn finish(place: &RecordingPath, overwrite: bool, progress: bool) -> PathBuf {
    match pack::pack(&place.folder, &place.file, overwrite, progress) {
        Ok(()) => {
            if let Err(error) = output::remove(&place.folder) {
                say(&format!("clrscope: {} could not be removed: {}", shown(&place.folder), reason(&error)));
            }
            place.file.clone()
        }
        Err(failure) => {
            say(failure.to_string().trim_end());
            place.folder.clone()
        }
    }
}

fn our_failure(what: &str, error: &io::Error) -> Failure {
    Failure::new(what, reason(error), "run 'clrscope doctor'")
}
