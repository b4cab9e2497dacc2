//! One attached recording from its start to its end.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clr_diagnostics::{AttachProfiler, Error, Process, ProcessEnd, ResultCode};
use clrscope_contract::developer_log::VARIABLE;
use clrscope_contract::instruments::find;
use clrscope_contract::request::{AGENT_CLSID, NOTIFICATION_CLSID, Request};
use clrscope_recording::model::Exit;
use clrscope_recording::writer::{Answer, Command, ControlError, RunWriter, Standing, command, standing};

use super::dormant;
use super::place::ForeignPlace;
use super::refusal::{Present, refused};
use super::target::{Target, unless_ended};
use crate::agent_file;
use crate::errors::{Failure, reason, shown};
use crate::launch::{Signals, needs_main_slot};
use crate::output::{self, RecordingPath, Start};
use crate::periods::{Event, PeriodOptions, Periods, Written, begin_recording};
use crate::progress::Progress;
use crate::recorded_process::StopWatch;
use crate::session::{finish, keep_agent_logs};
use crate::summary;
use crate::terminal::say;
use crate::triggered::watch_triggers;
use crate::viewer::{self, Viewer};

/// Longest time for attaching: the runtime loads the agent on a thread of its own, which may be
/// delayed on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time that the runtime may wait for a background collection.
const FOR_COLLECTIONS: Duration = Duration::from_secs(20);
/// Longest wait for the previous agent to detach.
const FOR_THE_LAST: Duration = Duration::from_secs(3);
/// Longest time that the runtime may take to detach the agent.
const FOR_LEAVING: Duration = Duration::from_secs(30);
/// Longest time for a snapshot of a large heap.
const FOR_SNAPSHOTS: Duration = Duration::from_secs(600);
/// Interval between two looks at the recording.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same for a recording in periods, whose recorder may run for days.
const LOOK_RARELY: Duration = Duration::from_secs(1);

/// Plan of a recording: what to record, in which process, and where to write it.
#[derive(Debug)]
pub(crate) struct AttachPlan<'a> {
    /// The process to record.
    pub(crate) target: &'a Target,
    /// The recording request, without a path.
    pub(crate) request: Request,
    /// Periods, if each becomes a separate recording; otherwise `None`.
    pub(crate) periods: Option<&'a PeriodOptions>,
    /// The instruments as the user gave them.
    pub(crate) instruments_given: &'a str,
    /// Path of the recording; named after the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
    /// Whether to show the progress, on a terminal.
    pub(crate) progress: bool,
    /// Whether to print nothing but errors.
    pub(crate) quiet: bool,
    /// When the recording ends.
    pub(crate) until: Until,
    /// Whether to serve the page of the recording while it grows.
    pub(crate) view: bool,
}

/// A finished recording of a process that was attached to.
pub(crate) struct AttachedRecording {
    /// Path of the packed file, or of the directory when packing failed.
    pub(crate) path: PathBuf,
    /// Number of recordings written, one per period, if there are periods; `path` is the last of
    /// them. `None` for a single recording.
    pub(crate) of_periods: Option<u64>,
    /// Reason why a requested snapshot is missing or incomplete; otherwise `None`.
    pub(crate) no_snapshot: Option<&'static str>,
    /// Signals that end the page, where one is served.
    signals: Option<Signals>,
}

impl AttachedRecording {
    /// Keeps serving the page, if there is one, until the user interrupts.
    pub(crate) fn keep_page(&self) {
        if let Some(signals) = &self.signals {
            viewer::stay(signals);
        }
    }
}

/// Condition for the end of an attached recording, unless the user interrupts it or the program
/// ends before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The end is requested, or the duration is over.
    End,
    /// A heap snapshot was taken.
    Snapshot,
    /// Threads were sampled for a time, and a heap snapshot was taken if requested.
    Moment {
        /// Time in which threads are sampled.
        look_for: Duration,
        /// Whether to take a heap snapshot.
        reads_heap: bool,
    },
}

/// Tells the user which of the requested instruments keep the agent in the program.
fn say_stays(request: &Request) {
    let is_one = |name: &str| find(name).is_some_and(|spec| spec.changes_methods);
    let names: Vec<&str> =
        request.instruments.iter().map(|one| one.name.as_str()).filter(|name| is_one(name)).collect();
    if !names.is_empty() {
        let change = if names.len() == 1 { "changes" } else { "change" };
        say(&format!(
            "clrscope: '{}' {change} methods, so the runtime will not detach the agent: after the recording it stays \
             in the program, inactive",
            names.join("' and '")
        ));
    }
}

/// Attaches, waits for the end of the recording, and packs it.
///
/// # Errors
/// When the runtime refused the agent; no files are left behind then.
pub(crate) fn record(plan: AttachPlan<'_>) -> Result<AttachedRecording, Failure> {
    let process = &plan.target.process;
    let Begun { session, is_interrupted, signals } = Begun::new(&plan)?;
    if plan.progress {
        let to = plan.periods.map_or(&session.place.file, |periods| &periods.folder);
        say(&format!("clrscope: attached to process {}, recording to {}", process.pid(), shown(to)));
    }
    if !plan.quiet {
        say_stays(&plan.request);
        session.say_unmatched_probes(&plan.request);
    }
    if plan.view {
        // The recording works without the page.
        if let Err(failure) = Viewer::follow(&session.place) {
            say(failure.to_string().trim_end());
        }
    }
    let watched = plan.periods.and_then(|periods| periods.watched);
    if watched.is_some() {
        Event::Attached.tell();
    }
    let triggers = watch_triggers(&plan.request, &session.place);
    let periods = plan.periods.map(|options| session.start_periods(options, plan.target)).transpose()?;
    let no_snapshot = match plan.until {
        Until::End => {
            let look_every = if periods.is_some() { LOOK_RARELY } else { LOOK_EVERY };
            session.wait(process, &is_interrupted, plan.progress, look_every);
            None
        }
        Until::Snapshot => session.snapshot(process, &is_interrupted).err(),
        Until::Moment { look_for, reads_heap } => {
            session.look(process, &is_interrupted, look_for);
            reads_heap.then(|| session.snapshot(process, &is_interrupted).err()).flatten()
        }
    };
    drop(triggers);
    // A service manager may send its signal to the watch and to this process, which then gets two.
    if watched.is_none() {
        let kept = session.place.clone();
        signals.on_interruption(move || crate::pack::abandon(&kept.folder, &kept.file, crate::errors::EXIT_FAILED));
    }
    session.leave(process);
    session.note_end(process);
    let (path, of_periods) = match periods {
        None => (session.pack(plan.force, plan.progress), None),
        Some(periods) => {
            keep_agent_logs(&session.place);
            let Written { recordings, last } = periods.finish();
            (last.unwrap_or(session.place.folder), Some(recordings))
        }
    };
    if watched.is_none() {
        signals.on_interruption(|| crate::pack::leave(crate::errors::EXIT_FAILED));
    }
    Ok(AttachedRecording { path, of_periods, no_snapshot, signals: plan.view.then_some(signals) })
}

/// A recording that has begun.
struct Begun {
    session: Session,
    /// Whether the end was requested.
    is_interrupted: Arc<AtomicBool>,
    signals: Signals,
}

impl Begun {
    fn new(plan: &AttachPlan<'_>) -> Result<Self, Failure> {
        let is_interrupted = Arc::new(AtomicBool::new(false));
        let (flag, waiting) = (Arc::clone(&is_interrupted), thread::current());
        let signals = Signals::without_program(move || {
            flag.store(true, Ordering::Release);
            waiting.unpark();
        })
        .map_err(|error| Failure::new("cannot handle signals", reason(&error), "run 'clrscope doctor'"))?;
        let session = Session::begin(plan).map_err(|failure| unless_ended(&plan.target.process, failure))?;
        session.attach(plan, &is_interrupted).inspect_err(|_| session.discard())?;
        Ok(Self { session, is_interrupted, signals })
    }
}

/// A temporary recording that is read while it grows. It ends and is removed when the value is
/// dropped.
pub(crate) struct LiveRecording<'a> {
    process: &'a Process,
    begun: Begun,
}

impl<'a> LiveRecording<'a> {
    /// Attaches.
    ///
    /// # Errors
    /// When the runtime refused the agent; no files are left behind then.
    pub(crate) fn begin(plan: &AttachPlan<'a>) -> Result<Self, Failure> {
        Ok(Self { process: &plan.target.process, begun: Begun::new(plan)? })
    }

    /// The directory of the recording.
    pub(crate) fn folder(&self) -> &Path {
        &self.begun.session.place.folder
    }

    /// Whether the user has interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.begun.is_interrupted.load(Ordering::Acquire)
    }

    /// Whether the recording goes on: the process lives, and the user has not interrupted.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_interrupted() && self.process.is_alive() && self.begun.session.standing() == Standing::Recording
    }
}

impl Drop for LiveRecording<'_> {
    fn drop(&mut self) {
        self.begun.session.leave(self.process);
        self.begun.session.discard();
    }
}

/// The recording and its place.
struct Session {
    writer: Arc<RunWriter>,
    /// The recording directory as we see it, and the file that it is packed into.
    place: RecordingPath,
    /// The directory as the process sees it.
    seen: String,
    agent: String,
    foreign: Option<ForeignPlace>,
}

impl Session {
    fn begin(plan: &AttachPlan<'_>) -> Result<Self, Failure> {
        let command: Vec<OsString> = plan.target.process.command_line().into_iter().map(OsString::from).collect();
        let no_command_line = plan.request.no_command_line;
        // Without file locks the agent can't notice our end; it is told instead.
        let is_held = true;
        let start = Start { command: &command, instruments: plan.instruments_given, no_command_line, is_held };
        let foreign = match plan.target.shares_our_files() {
            true => None,
            false => Some(ForeignPlace::make(&plan.target.process, plan.target.agent)?),
        };
        let agent = match &foreign {
            Some(place) => place.agent.clone(),
            None => {
                let file = agent_file::install(plan.target.agent, plan.request.trust_writable)?;
                file.to_string_lossy().into_owned()
            }
        };
        let output = (plan.output.as_deref(), plan.force);
        let (place, writer) = begin_recording(&plan.target.name(), plan.periods, output, &start)?;
        let seen = place.folder_text();
        let mut session = Self { writer: Arc::new(writer), place, seen, agent, foreign: None };
        if let Some(foreign) = foreign {
            session.move_to(foreign, &start).inspect_err(|_| session.discard())?;
        }
        Ok(session)
    }

    /// Creates the recording directory again in a place that the process can access. The directory
    /// here only reserved the name.
    fn move_to(&mut self, foreign: ForeignPlace, start: &Start<'_>) -> Result<(), Failure> {
        let name = self.place.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = foreign.ours.join(&name);
        let moved = output::begin_in(&folder, start).and_then(|writer| {
            // We can still read the files: only root gets here for another user.
            fs::read_dir(&folder)?.flatten().try_for_each(|entry| foreign.give(&entry.path()))?;
            foreign.give(&folder)?;
            fs::remove_dir_all(&self.place.folder)?;
            Ok(Arc::new(writer))
        });
        self.writer = moved.map_err(|error| {
            let what = "cannot make the recording where the process can write it";
            Failure::new(what, reason(&error), "check whether its folder for temporary files is full")
        })?;
        self.seen = format!("{}/{name}", foreign.seen);
        self.place.folder = folder;
        self.foreign = Some(foreign);
        Ok(())
    }

    /// Makes the runtime load the agent, or wakes a dormant agent.
    fn attach(&self, plan: &AttachPlan<'_>, is_interrupted: &AtomicBool) -> Result<(), Failure> {
        let mut request = plan.request.clone();
        request.out = Some(self.seen.clone());
        request.join = true;
        // The process has its own environment, so the log level is passed in the request.
        request.log = std::env::var(VARIABLE).ok().filter(|level| !level.is_empty());
        let request = request.to_string();
        let profiler = |class: &str| {
            let class = class.parse().expect("our own class id");
            AttachProfiler::new(class, &self.agent).with_client_data(request.as_bytes()).with_timeout(FOR_COLLECTIONS)
        };
        let port = plan.target.port.with_limit(PATIENCE);
        let began = Instant::now();
        let process = &plan.target.process;
        loop {
            if dormant::wake(process, &request, PATIENCE)? {
                return Ok(());
            }
            let Err(mut error) = port.attach_profiler(&profiler(AGENT_CLSID)) else { return Ok(()) };
            // The program was started with a profiler, which keeps the main slot.
            if has_other_profiler(process, &error) && needs_main_slot(&plan.request, true).is_none() {
                match port.attach_profiler(&profiler(NOTIFICATION_CLSID)) {
                    Ok(()) => return Ok(()),
                    Err(refusal) => error = refusal,
                }
            }
            let may_pass = is_in_the_way(process, &error) && began.elapsed() < FOR_THE_LAST;
            if !may_pass || is_interrupted.load(Ordering::Acquire) {
                return Err(refused(process, &error, &self.place.folder, &plan.request));
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Starts the thread that writes the periods of the recording.
    fn start_periods(&self, options: &PeriodOptions, target: &Target) -> Result<Periods, Failure> {
        let pid = target.process.pid();
        let has_ended = Box::new(move |_: &Path| !Process::open(pid).is_ok_and(|process| process.is_alive()));
        Periods::start(options, &self.place, target.name(), Arc::clone(&self.writer), has_ended)
    }

    /// Warns about probe patterns that match no loaded method, so that the user learns of a typo
    /// now, not at the end of a long recording.
    fn say_unmatched_probes(&self, request: &Request) {
        if !request.has_probes() {
            return;
        }
        // Read errors are reported at the end.
        if let Ok(recording) = clrscope_recording::open(&self.place.folder) {
            summary::say_unmatched_probes(&recording);
        }
    }

    /// Waits until the recording is over, the process has ended, or the end is requested.
    fn wait(&self, process: &Process, is_interrupted: &AtomicBool, progress: bool, look_every: Duration) {
        let mut line = Progress::new(progress, "Ctrl-C ends the recording");
        while !is_interrupted.load(Ordering::Acquire) && process.is_alive() && self.standing() == Standing::Recording {
            line.update(&self.place.folder);
            thread::park_timeout(look_every);
        }
        line.end();
    }

    /// Waits while threads are sampled, counted from the moment at which the agent has started to
    /// record.
    fn look(&self, process: &Process, is_interrupted: &AtomicBool, look_for: Duration) {
        let began = Instant::now();
        let mut since = None;
        let goes_on = || process.is_alive() && !is_interrupted.load(Ordering::Acquire) && began.elapsed() < PATIENCE;
        while goes_on() && since.is_none_or(|since: Instant| since.elapsed() < look_for) {
            since = since.or_else(|| self.process_folder().map(|_| Instant::now()));
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Makes the agent take a heap snapshot, and waits for it.
    ///
    /// # Errors
    /// The reason why it was not taken; recorded data stays.
    fn snapshot(&self, process: &Process, is_interrupted: &AtomicBool) -> Result<(), &'static str> {
        let wanted = Command::Snapshot(String::new());
        let watch = StopWatch::default();
        let is_stopped = || watch.is_stopped(process.pid());
        let is_awaited = || process.is_alive() && !is_interrupted.load(Ordering::Acquire) && !is_stopped();
        let began = Instant::now();
        let answer = loop {
            let folder = self.process_folder();
            let answer = folder.map(|folder| command(&folder, &wanted, FOR_SNAPSHOTS, is_awaited));
            match answer {
                // The agent has not started to record yet.
                None | Some(Err(ControlError::Deaf | ControlError::Io(_)))
                    if is_awaited() && began.elapsed() < PATIENCE =>
                {
                    thread::park_timeout(LOOK_EVERY);
                }
                Some(Ok(answer)) => break Some(answer),
                None | Some(Err(_)) => break None,
            }
        };
        match answer {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Failed) => Err("it could not be taken; the recording says why"),
            _ if !process.is_alive() => Err("the program ended before it was taken"),
            _ if is_interrupted.load(Ordering::Acquire) => Err("it was interrupted"),
            _ if is_stopped() => Err("the program is stopped by a signal or a debugger"),
            _ => Err("the agent did not answer"),
        }
    }

    /// The folder of the one process in the recording, once there is one.
    fn process_folder(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(&self.place.folder).ok()?.flatten();
        entries.map(|entry| entry.path()).find(|path| path.join("state.seg").is_file())
    }

    fn standing(&self) -> Standing {
        standing(&self.place.folder).unwrap_or(Standing::Recording)
    }

    /// Ends the recording, and waits until the runtime has detached the agent, or the agent is
    /// dormant.
    fn leave(&self, process: &Process) {
        self.writer.request_stop();
        let began = Instant::now();
        while process.is_alive() && self.standing() != Standing::Detached {
            if began.elapsed() > FOR_LEAVING {
                let what = match process.is_stopped() {
                    true => "it is stopped; the agent detaches when the process resumes",
                    false => "the runtime has not detached the agent yet; the agent is inactive",
                };
                return say(&format!("clrscope: process {}: {what}", process.pid()));
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Notes how the process ended, if it has: after `kill -9` the process could not record its
    /// end.
    fn note_end(&self, process: &Process) {
        let exit = match process.end() {
            Some(ProcessEnd::Code(code)) => Exit::Code(code),
            Some(ProcessEnd::Signal(signal)) => Exit::Signal(signal),
            _ => return,
        };
        self.writer.ended(process.inner_pid(), exit);
    }

    fn pack(self, overwrite: bool, progress: bool) -> PathBuf {
        keep_agent_logs(&self.place);
        drop(self.writer);
        finish(&self.place, overwrite, progress)
    }

    /// Removes the recording.
    fn discard(&self) {
        // A directory that can't be removed is still a readable recording.
        let _ = fs::remove_dir_all(&self.place.folder);
    }
}

/// Whether the runtime refused the agent because of a profiler that the program was started with.
fn has_other_profiler(process: &Process, error: &Error) -> bool {
    error.code() == Some(ResultCode::PROFILER_ALREADY_ACTIVE)
        && matches!(Present::in_process(process), Present::Other(_))
}

/// Whether the runtime may have refused the agent because a previous agent is still detaching.
fn is_in_the_way(process: &Process, error: &Error) -> bool {
    error.code() == Some(ResultCode::PROFILER_ALREADY_ACTIVE) && Present::in_process(process) == Present::None
}
