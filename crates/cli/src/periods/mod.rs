//! Recordings in periods (`--every`): each period becomes a recording, which is written while the
//! program runs.
//!
//! At the end of a period every process of the recording draws a boundary. A moment later, when the
//! last events of the period are recorded, the period is packed into a recording of its own. Then
//! recordings beyond the limits of `--keep` are deleted.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | the beginning of a recording, the thread that ends periods, the writing of one |
//! | `keep` | which recordings are kept |
//! | `left_over` | recordings that a killed launcher has left |
//! | `names` | names of the recordings |
//! | `pushing` | pushes the recordings |
//! | `unpushed` | marks on recordings that are still to be pushed |
//! | `watched` | the part of `clrscope watch` that records one program |

mod keep;
mod left_over;
mod names;
mod pushing;
mod unpushed;
mod watched;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clrscope_finish::MachineFacts;
use clrscope_recording::pack::PackError;
use clrscope_recording::writer::{Command, RunWriter, command, last_sign_ns, living_processes, monotonic_ns};
use clrscope_recording::{EndOfPeriod, Period};
use jiff::Timestamp;

use crate::background::{Background, End};
use crate::errors::{Failure, reason, shown};
use crate::output::{self, RecordingPath, Start};
use crate::push::PushPlan;
use crate::recorded_process::records_into;
use crate::terminal::say;

pub(crate) use keep::Keep;
pub(crate) use left_over::write_left_over;
pub(crate) use names::Scope;
pub(crate) use pushing::Pushing;
use unpushed::Unpushed;
pub(crate) use watched::{Event, Watched};

/// Longest wait for a process to end a period. A process that does not answer has the time in its
/// next period.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that the agents get to record the last events of a period, such as samples that are not yet
/// stacks.
const FOR_EVENTS: Duration = Duration::from_secs(1);
/// A process without a sign of life for this long may have ended.
const SILENCE: Duration = Duration::from_secs(2);

/// The options `--every`, `--keep` and `-o`.
#[derive(Debug, Clone)]
pub(crate) struct PeriodOptions {
    /// Length of a period.
    pub(crate) every: Duration,
    /// Limits on the recordings that are kept.
    pub(crate) keep: Keep,
    /// Folder for the recordings.
    pub(crate) folder: PathBuf,
    /// Where to push each recording to; `None` to push nothing.
    pub(crate) push: Option<PushPlan>,
    /// The `clrscope watch` that this process works for, if any. That watch decides which
    /// recordings are kept.
    pub(crate) watched: Option<Watched>,
}

impl PeriodOptions {
    /// The clock that names and ages are by: the one of `clrscope watch`, or a new one.
    fn clock(&self) -> Clock {
        self.watched.map_or_else(Clock::start, |watched| watched.clock)
    }
}

/// Begins a recording of `program`: in periods, or at the path that the user gave, or under a
/// generated name.
///
/// # Errors
/// When the place can't be used.
pub(crate) fn begin_recording(
    program: &str,
    periods: Option<&PeriodOptions>,
    (output, force): (Option<&Path>, bool),
    start: &Start<'_>,
) -> Result<(RecordingPath, RunWriter), Failure> {
    match (periods, output) {
        (Some(periods), _) => begin_in_periods(periods, program, start),
        (None, Some(path)) => output::begin_at(path, force, start),
        (None, None) => output::begin_named(program, start),
    }
}

/// Begins a recording in periods. What killed launchers have left in its folder is written first.
fn begin_in_periods(
    options: &PeriodOptions,
    program: &str,
    start: &Start<'_>,
) -> Result<(RecordingPath, RunWriter), Failure> {
    options.push.as_ref().map_or(Ok(()), PushPlan::check)?;
    make_folder(&options.folder)?;
    left_over::write_left_over(&options.folder, options.push.is_some());
    output::begin_named_in(&options.folder, program, start)
}

/// Makes the folder of the recordings, unless it is there.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    let failed = |why: String| {
        let what = format!("cannot write recordings into {}", shown(folder));
        Failure::new(what, why, "name a folder with -o: it gets a recording for each period")
    };
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(failed("it is a file".to_owned())),
        other => other.map_err(|error| failed(reason(&error))),
    }
}

/// Function that returns whether the process with this folder in the recording has ended.
pub(crate) type HasEnded = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// Whether the process with this folder has ended: it gives no signs of life, and no process with
/// its id has the folder's files mapped. A suspended process still has them mapped.
pub(crate) fn has_ended(process: &Path) -> bool {
    let silent_ns = last_sign_ns(process).map_or(u64::MAX, |last| monotonic_ns().saturating_sub(last));
    silent_ns > SILENCE.as_nanos() as u64 && !records_into(process)
}

/// The thread that ends the periods of a recording and writes them one after another.
pub(crate) struct Periods {
    writing: Arc<Mutex<Writing>>,
    thread: Option<Background>,
}

impl Periods {
    /// Starts the thread for the recording at `place`.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(
        options: &PeriodOptions,
        place: &RecordingPath,
        program: String,
        run: Arc<RunWriter>,
        has_ended: HasEnded,
    ) -> Result<Self, Failure> {
        let no_thread =
            |error: io::Error| Failure::new("cannot record in periods", reason(&error), "run 'clrscope doctor'");
        let pushing = options.push.clone().map(Pushing::start).transpose().map_err(no_thread)?;
        pushing.iter().for_each(|pushing| pushing.add_left_in(&options.folder));
        let writing = Writing {
            pushing,
            place: PeriodPlace {
                recording: place.folder.clone(),
                folder: options.folder.clone(),
                program,
                is_one_of_many: options.watched.is_some(),
                is_pushed: options.push.is_some(),
            },
            keep: options.keep,
            watched: options.watched,
            clock: options.clock(),
            began_ns: monotonic_ns(),
            ended: Vec::new(),
            run,
            has_ended,
            written: Written::default(),
            cuts: CutState::default(),
        };
        let writing = Arc::new(Mutex::new(writing));
        let (in_thread, every) = (Arc::clone(&writing), options.every);
        let thread = Background::start("periods", move |end| end_periods(&in_thread, every, end)).map_err(no_thread)?;
        Ok(Self { writing, thread: Some(thread) })
    }

    /// Writes the last period and removes the directory of the recording. Call it when every
    /// process has ended or has stopped recording.
    pub(crate) fn finish(mut self) -> Written {
        // Waits for a period that is being written.
        drop(self.thread.take());
        let mut writing = lock(&self.writing);
        // A process that outlives the recording has recorded its end.
        writing.has_ended = Box::new(|_| true);
        let end = EndOfPeriod { number: writing.next_number(), mono_ns: u64::MAX };
        if writing.write(end) {
            let recording = &writing.place.recording;
            if let Err(error) = output::remove(recording) {
                say(&format!("clrscope: {} could not be removed: {}", shown(recording), reason(&error)));
            }
        }
        // Waits until everything is pushed, or waits in the spool.
        drop(writing.pushing.take());
        writing.written.clone()
    }
}

/// The recordings written so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    /// Number of recordings written.
    pub(crate) recordings: u64,
    /// Path of the last recording; `None` if there is none.
    pub(crate) last: Option<PathBuf>,
}

/// Places of a recording in periods.
#[derive(Debug)]
struct PeriodPlace {
    /// The directory of the recording.
    recording: PathBuf,
    /// Folder of the recordings of periods.
    folder: PathBuf,
    /// Name of the program, with which their names begin.
    program: String,
    /// Whether the folders of other programs are in the same one, and all recordings count
    /// together.
    is_one_of_many: bool,
    /// Whether the recordings are to be pushed.
    is_pushed: bool,
}

impl PeriodPlace {
    /// The recordings that count together.
    fn scope(&self) -> Scope<'_> {
        match self.folder.parent().filter(|_| self.is_one_of_many) {
            Some(all) => Scope::Below(all),
            None => Scope::Program(&self.folder, &self.program),
        }
    }
}

/// Time of day by a clock that is never set back or forward: names and ages of recordings stay in
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    began: Timestamp,
    /// Monotonic nanoseconds at that time.
    began_ns: u64,
}

impl Clock {
    /// A clock that takes the current time of day from the system once.
    pub(crate) fn start() -> Self {
        Self { began: Timestamp::now(), began_ns: monotonic_ns() }
    }

    /// The time of the day now.
    pub(crate) fn now(self) -> Timestamp {
        self.at(monotonic_ns())
    }

    /// The time of the day at this monotonic time.
    fn at(self, mono_ns: u64) -> Timestamp {
        let since = Duration::from_nanos(mono_ns.saturating_sub(self.began_ns));
        self.began.checked_add(since).unwrap_or(self.began)
    }
}

/// Writes periods.
struct Writing {
    place: PeriodPlace,
    keep: Keep,
    watched: Option<Watched>,
    clock: Clock,
    /// Monotonic nanoseconds at the beginning of the first period.
    began_ns: u64,
    /// The periods so far, in order.
    ended: Vec<EndOfPeriod>,
    pushing: Option<Pushing>,
    run: Arc<RunWriter>,
    has_ended: HasEnded,
    written: Written,
    cuts: CutState,
}

fn lock(writing: &Mutex<Writing>) -> MutexGuard<'_, Writing> {
    writing.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end_periods(writing: &Mutex<Writing>, every: Duration, end: &End) {
    let mut next = Instant::now() + every;
    while end.is_not_within(next.saturating_duration_since(Instant::now())) {
        // Periods that a suspended launcher has missed are one long period.
        while next <= Instant::now() {
            next += every;
        }
        let mut writing = lock(writing);
        let end_of_period = writing.end_period(writing.next_number());
        // The end of the recording does not wait: its last period begins here.
        let goes_on = end.is_not_within(FOR_EVENTS.min(every / 4));
        writing.write(end_of_period);
        if !goes_on {
            return;
        }
    }
}

impl Writing {
    /// Number of the period under way.
    fn next_number(&self) -> u32 {
        self.ended.last().map_or(0, |before| before.number) + 1
    }

    /// Has all processes end a period. A process that ends it later does so in vain.
    fn end_period(&self, number: u32) -> EndOfPeriod {
        for process in living_processes(&self.place.recording) {
            let tell = |wanted: Command| command(&process, &wanted, PATIENCE, || !(self.has_ended)(&process));
            // What only the process knows, such as requests under way, is recorded in the period.
            // Without an answer the process has the time in its next period.
            let _ = tell(Command::Copy).and_then(|_| tell(Command::Cut(number)));
        }
        EndOfPeriod { number, mono_ns: monotonic_ns() }
    }

    /// Writes a period that has ended. Returns whether nothing of it is left to be written.
    fn write(&mut self, end: EndOfPeriod) -> bool {
        let period = Period::new(end, &self.ended, &self.has_ended);
        let begin = self.clock.at(period.since_ns().max(self.began_ns));
        let file = match write_period(&self.place, &period, begin, &mut self.cuts) {
            Ok(file) => file,
            // The boundary is drawn, so the time is lost unless the directory is kept.
            Err(failure) => {
                say(failure.to_string().trim_end());
                self.ended.push(end);
                return false;
            }
        };
        self.run.period_written(end.number, end.mono_ns);
        remove_over(&period);
        self.ended.push(end);
        if let Some((file, unpushed)) = file {
            self.written.recordings += 1;
            if let (Some(pushing), Some(unpushed)) = (&self.pushing, unpushed) {
                pushing.add(unpushed);
            }
            if self.watched.is_some() {
                Event::Recorded(fs::metadata(&file).map_or(0, |about| about.len())).tell();
            }
            self.written.last = Some(file);
        }
        // A watch decides for all programs together.
        if self.watched.is_none() {
            self.keep.apply(self.place.scope(), self.clock.now());
        }
        true
    }
}

/// Removes the folders of processes whose last share is in this period, which is written.
fn remove_over(period: &Period<'_>) {
    for process in period.over() {
        if let Err(error) = fs::remove_dir_all(&process) {
            say(&format!("clrscope: {} could not be removed: {}", shown(&process), reason(&error)));
        }
    }
}

/// What one cut remembers for the next.
#[derive(Debug, Default)]
struct CutState {
    facts: MachineFacts,
    /// Whether the user knows that the disk is full.
    is_full_told: bool,
}

/// Writes a period. On a full disk the oldest recordings are deleted to make room. Returns the file
/// and, if recordings are pushed, its mark. `None` if the period is empty.
///
/// # Errors
/// When there is no room for it, or the recording can't be read.
fn write_period(
    place: &PeriodPlace,
    period: &Period<'_>,
    begin: Timestamp,
    cuts: &mut CutState,
) -> Result<Option<(PathBuf, Option<Unpushed>)>, Failure> {
    let mut begin = begin;
    loop {
        let file = place.folder.join(names::file_name(&place.program, begin));
        // Before the file is there: clrscope may be killed at any moment. No mark on a file that
        // another process has written.
        let unpushed = (place.is_pushed && !file.exists()).then(|| Unpushed::new(&file));
        let packed = cuts.facts.pack_period(&place.recording, period, &file);
        if matches!(packed, Ok(true)) {
            return Ok(Some((file, unpushed)));
        }
        unpushed.into_iter().for_each(Unpushed::done);
        match packed {
            Ok(_) => return Ok(None),
            // Another program of this name has a period that began in the same second.
            Err(PackError::Exists(_)) => begin = begin.checked_add(Duration::from_secs(1)).unwrap_or(begin),
            Err(PackError::Write(_, error)) if is_full(&error) => {
                let Some(deleted) = keep::delete_oldest(place.scope()) else {
                    return Err(cannot_write(place, reason(&error)));
                };
                if !std::mem::replace(&mut cuts.is_full_told, true) {
                    let why = reason(&error);
                    say(&format!("clrscope: {why}: the oldest recordings make room, first {}", shown(&deleted)));
                }
            }
            Err(error) => return Err(cannot_write(place, error.to_string())),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn cannot_write(place: &PeriodPlace, why: String) -> Failure {
    let what = format!("cannot write a period into {}", shown(&place.folder));
    Failure::new(what, why, "free some space there")
}
