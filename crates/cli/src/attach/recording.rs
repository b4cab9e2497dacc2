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
use crate::progress::Progress;
use crate::recorded_process::StopWatch;
use crate::session::{finish, keep_agent_logs};
use crate::summary;
use crate::terminal::say;
use crate::triggered::watch_triggers;
use crate::viewer::{self, Viewer};

/// Time that attaching may take: the runtime loads the agent on a thread of its own, which a busy
/// machine must let run.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time that the runtime may wait for a collection in the background.
const FOR_COLLECTIONS: Duration = Duration::from_secs(20);
/// Time that an agent that is about to leave may be in the way.
const FOR_THE_LAST: Duration = Duration::from_secs(3);
/// Time that the runtime may take to let go of the agent.
const FOR_LEAVING: Duration = Duration::from_secs(30);
/// Time that a snapshot of a large heap may take.
const FOR_SNAPSHOTS: Duration = Duration::from_secs(600);
/// Between two looks at the recording.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Plan of a recording: what to record, in which process, and where to write it.
#[derive(Debug)]
pub(crate) struct AttachPlan<'a> {
    /// The process.
    pub(crate) target: &'a Target,
    /// Request, without a place.
    pub(crate) request: Request,
    /// The instruments as the user gave them.
    pub(crate) instruments_given: &'a str,
    /// Path of the recording; named after the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Overwrite what is there.
    pub(crate) force: bool,
    /// Show how it goes, on a terminal.
    pub(crate) progress: bool,
    /// Print nothing but errors.
    pub(crate) quiet: bool,
    /// End of the recording.
    pub(crate) until: Until,
    /// Serve the page of the recording while it grows.
    pub(crate) view: bool,
}

/// A finished recording of a process that was attached to.
pub(crate) struct AttachedRecording {
    /// The packed file, or the directory when packing failed.
    pub(crate) path: PathBuf,
    /// Reason why there is no whole snapshot, where one was wanted.
    pub(crate) no_snapshot: Option<&'static str>,
    /// Signals that end the page, where one is served.
    signals: Option<Signals>,
}

impl AttachedRecording {
    /// Keeps the page, where one is served, until it is interrupted.
    pub(crate) fn keep_page(&self) {
        if let Some(signals) = &self.signals {
            viewer::stay(signals);
        }
    }
}

/// End of an attached recording, unless it is interrupted or the program ends before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// End when the end is requested, or when the duration is over.
    End,
    /// End when a snapshot of the heap was taken.
    Snapshot,
    /// End when threads were looked at for so long, and a snapshot of the heap was taken if that is
    /// wanted.
    Moment {
        /// Time in which threads are looked at.
        look_for: Duration,
        /// Take a snapshot of the heap.
        reads_heap: bool,
    },
}

/// Says after which instruments the agent stays in the program.
fn say_stays(request: &Request) {
    let is_one = |name: &str| find(name).is_some_and(|spec| spec.changes_methods);
    let names: Vec<&str> =
        request.instruments.iter().map(|one| one.name.as_str()).filter(|name| is_one(name)).collect();
    if !names.is_empty() {
        say(&format!(
            "clrscope: after '{}' the runtime does not detach an agent: it stays in the program, and sleeps",
            names.join("' and '")
        ));
    }
}

/// Attaches, waits for the end of the recording, and packs it.
///
/// # Errors
/// When the runtime did not take the agent; nothing is left behind then.
pub(crate) fn record(plan: AttachPlan<'_>) -> Result<AttachedRecording, Failure> {
    let process = &plan.target.process;
    let Begun { session, is_interrupted, signals } = Begun::new(&plan)?;
    if plan.progress {
        say(&format!("clrscope: attached to process {}, recording to {}", process.pid(), shown(&session.place.file)));
    }
    if !plan.quiet {
        say_stays(&plan.request);
        session.say_unmatched_probes(&plan.request);
    }
    if plan.view {
        // Without a page the recording is as good.
        if let Err(failure) = Viewer::follow(&session.place) {
            say(failure.to_string().trim_end());
        }
    }
    let triggers = watch_triggers(&plan.request, &session.place);
    let no_snapshot = match plan.until {
        Until::End => {
            session.wait(process, &is_interrupted, plan.progress);
            None
        }
        Until::Snapshot => session.snapshot(process, &is_interrupted).err(),
        Until::Moment { look_for, reads_heap } => {
            session.look(process, &is_interrupted, look_for);
            reads_heap.then(|| session.snapshot(process, &is_interrupted).err()).flatten()
        }
    };
    drop(triggers);
    let kept = session.place.clone();
    signals.on_interruption(move || crate::pack::abandon(&kept.folder, &kept.file, crate::errors::EXIT_FAILED));
    session.leave(process);
    session.note_end(process);
    let path = session.pack(plan.force, plan.progress);
    Ok(AttachedRecording { path, no_snapshot, signals: plan.view.then_some(signals) })
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

/// A recording that is looked at while it grows and not kept: it ends, and is removed, with the
/// value.
pub(crate) struct LiveRecording<'a> {
    process: &'a Process,
    begun: Begun,
}

impl<'a> LiveRecording<'a> {
    /// Attaches.
    ///
    /// # Errors
    /// When the runtime did not take the agent; nothing is left behind then.
    pub(crate) fn begin(plan: &AttachPlan<'a>) -> Result<Self, Failure> {
        Ok(Self { process: &plan.target.process, begun: Begun::new(plan)? })
    }

    /// The directory of the recording.
    pub(crate) fn folder(&self) -> &Path {
        &self.begun.session.place.folder
    }

    /// Whether there is more to come: the process lives, and the user has not interrupted.
    pub(crate) fn goes_on(&self) -> bool {
        let is_interrupted = self.begun.is_interrupted.load(Ordering::Acquire);
        !is_interrupted && self.process.is_alive() && self.begun.session.standing() == Standing::Recording
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
    writer: RunWriter,
    /// The directory that we reach, and the file that it becomes.
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
        let start = Start { command: &command, instruments: plan.instruments_given, no_command_line };
        let foreign = match plan.target.shares_our_files() {
            true => None,
            false => Some(ForeignPlace::make(&plan.target.process)?),
        };
        let agent = match &foreign {
            Some(place) => place.agent.clone(),
            None => agent_file::install(plan.request.trust_writable)?.to_string_lossy().into_owned(),
        };
        let (place, writer) = match &plan.output {
            Some(path) => output::begin_at(path, plan.force, &start)?,
            None => output::begin_named(&plan.target.name(), &start)?,
        };
        let seen = place.folder_text();
        let mut session = Self { writer, place, seen, agent, foreign: None };
        if let Some(foreign) = foreign {
            session.move_to(foreign, &start).inspect_err(|_| session.discard())?;
        }
        // Where there are no locks the agent does not see our end, and is told of it.
        let _ = session.writer.hold();
        Ok(session)
    }

    /// Makes the recording directory again where the process sees it; the one here had the name.
    fn move_to(&mut self, foreign: ForeignPlace, start: &Start<'_>) -> Result<(), Failure> {
        let name = self.place.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = foreign.ours.join(&name);
        let moved = output::begin_in(&folder, start).and_then(|writer| {
            // It stays ours to read: only root gets here for another user.
            fs::read_dir(&folder)?.flatten().try_for_each(|entry| foreign.give(&entry.path()))?;
            foreign.give(&folder)?;
            fs::remove_dir_all(&self.place.folder)?;
            Ok(writer)
        });
        self.writer = moved.map_err(|error| {
            let what = "cannot make the recording where the process can write it";
            Failure::new(what, reason(&error), "see whether its folder for temporary files is full")
        })?;
        self.seen = format!("{}/{name}", foreign.seen);
        self.place.folder = folder;
        self.foreign = Some(foreign);
        Ok(())
    }

    /// Has the runtime load the agent, or an agent begin that sleeps there.
    fn attach(&self, plan: &AttachPlan<'_>, is_interrupted: &AtomicBool) -> Result<(), Failure> {
        let mut request = plan.request.clone();
        request.out = Some(self.seen.clone());
        request.join = true;
        // The process has an environment of its own.
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
            // The program was started with a profiler, which has the main slot for good.
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

    /// Says which patterns of probes match no method of what the program has loaded: who misspelt
    /// one learns it now, not at the end of a long recording.
    fn say_unmatched_probes(&self, request: &Request) {
        if !request.has_probes() {
            return;
        }
        // What can't be read now is said at the end.
        if let Ok(recording) = clrscope_recording::open(&self.place.folder) {
            summary::say_unmatched_probes(&recording);
        }
    }

    /// Waits until the recording is over, the process has ended, or the end is requested.
    fn wait(&self, process: &Process, is_interrupted: &AtomicBool, progress: bool) {
        let mut line = Progress::new(progress, "Ctrl-C ends the recording");
        while !is_interrupted.load(Ordering::Acquire) && process.is_alive() && self.standing() == Standing::Recording {
            line.update(&self.place.folder);
            thread::park_timeout(LOOK_EVERY);
        }
        line.end();
    }

    /// Waits while threads are looked at, from the moment on at which the agent has begun to
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

    /// Has the agent take a snapshot of the heap, and waits for it.
    ///
    /// # Errors
    /// The reason why it was not taken; what was recorded stays.
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
                // The agent has not begun to record.
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
            _ if is_stopped() => Err("the program is stopped, by a signal or a debugger"),
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

    /// Ends the recording, and waits until the runtime has let go of the agent, or that sleeps.
    fn leave(&self, process: &Process) {
        self.writer.request_stop();
        let began = Instant::now();
        while process.is_alive() && self.standing() != Standing::Detached {
            if began.elapsed() > FOR_LEAVING {
                let what = match process.is_stopped() {
                    true => "it is stopped; the agent leaves when it goes on",
                    false => "its runtime does not let go of the agent, which does nothing any more",
                };
                return say(&format!("clrscope: process {}: {what}", process.pid()));
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Notes how the process ended, where it has: by `kill -9` it could not say so itself.
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

    /// There is nothing to keep.
    fn discard(&self) {
        // What can't be removed reads as what it is.
        let _ = fs::remove_dir_all(&self.place.folder);
    }
}

/// Whether the runtime refused the agent because of a profiler that the program was started with.
fn has_other_profiler(process: &Process, error: &Error) -> bool {
    error.code() == Some(ResultCode::PROFILER_ALREADY_ACTIVE)
        && matches!(Present::in_process(process), Present::Other(_))
}

/// Whether what keeps the runtime from taking the agent may be an agent that is about to leave.
fn is_in_the_way(process: &Process, error: &Error) -> bool {
    error.code() == Some(ResultCode::PROFILER_ALREADY_ACTIVE) && Present::in_process(process) == Present::None
}
