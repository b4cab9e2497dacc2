//! The agent's own thread: keeps space ahead of need, stores heartbeats, and runs what the
//! instruments want done regularly.
//!
//! The thread blocks all signals, so the program's handlers never run on it and SIGXFSZ from a file size
//! limit stays pending instead of killing somebody's process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use clrscope_recording::model::{BoundaryKind, LossReason, PartBoundary};
use clrscope_recording::writer::{Answer, Bound, Command, ProcessWriter, first_refusal, monotonic_ns};

use crate::hooks;
use crate::os::signals;
use crate::services::clock;
use crate::services::departure::Departure;
use crate::services::developer_log::{self, Level, log};
use crate::services::faults::FaultReport;

/// Pause between two heartbeats.
const SLOW_NS: u64 = 20_000_000;
/// Pause between two checks whether any thread records again after the end of the recording.
const WATCH: Duration = Duration::from_millis(250);
/// Between two rounds of writing out what the file system could not promise space for.
const WRITE_OUT_NS: u64 = 200_000_000;

/// Between two rounds of stopping.
const STOP_PAUSE: Duration = Duration::from_millis(2);
/// Time that a request to stop recording or start it again waits for its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Work to be done regularly. Runs on the helper thread: may allocate and wait for the disk, must not call the runtime.
#[expect(unused_variables, reason = "the defaults ignore what they are given; the names are documentation")]
pub(crate) trait Task: Send {
    /// At each interval.
    fn tick(&mut self, now_ns: u64) {}
    /// About fifty times a second.
    fn slow_tick(&mut self, now_ns: u64) {}
    /// The program ends: what was put off is done now. After [`tick`](Self::tick), in each of the last rounds.
    fn end(&mut self) {}
    /// Write out what lies in private memory.
    fn write_out(&mut self) {}
    /// Recording stops while the process goes on; called until it answers true, and now and then after that.
    fn stop(&mut self) -> bool {
        true
    }
    /// A snapshot of the heap is asked for under this name, which may be empty; whether the task takes one. What becomes of it says
    /// [`snapshot_progress`](Self::snapshot_progress).
    fn snapshot(&mut self, name: &str) -> bool {
        false
    }
    /// Progress of the snapshot that was asked for last.
    fn snapshot_progress(&self) -> SnapshotProgress {
        SnapshotProgress::Failed
    }
    /// The recording is about to end while the process goes on; called until it answers true, and then tasks
    /// [stop](Self::stop).
    fn finish(&mut self) -> bool {
        true
    }
    /// A boundary between parts of the recording: notes what was gained since the last one, a step at each call, of less than a
    /// millisecond.
    fn gains(&mut self) -> Gains {
        Gains::Noted(0)
    }
    /// Recording is about to start again after [`stop`](Self::stop): what was known of threads is out of date.
    fn start_again(&mut self, now_ns: u64) {}
}

/// Progress of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotProgress {
    /// The snapshot is being taken.
    UnderWay,
    /// All of it is in the recording.
    Complete,
    /// The snapshot could not be taken.
    Failed,
}

/// A step of noting what was gained up to a boundary between parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gains {
    /// There is more to note.
    More,
    /// All is noted, under this number; 0 where there is nothing that events and their times don't tell, or no room for it.
    Noted(u32),
}

/// Handle by which other threads reach the helper thread.
#[derive(Clone)]
pub(crate) struct HelperHandle(Arc<Link>);

#[derive(Default)]
struct Link {
    thread: OnceLock<Thread>,
    /// The thread's end.
    end: Mutex<Option<JoinHandle<()>>>,
    /// Way in which an attached agent leaves.
    departure: OnceLock<Departure>,
    gone: AtomicBool,
    rounds: AtomicU64,
    /// Whether the program ends.
    is_ending: AtomicBool,
    /// Whether recording is to be stopped for now.
    is_stop_wanted: AtomicBool,
    /// Whether it is.
    is_stopped: AtomicBool,
}

impl HelperHandle {
    /// A handle for a thread that is started later with [`start`](Self::start).
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Wakes the thread before its interval is over. Safe in a hook.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.0.thread.get() {
            thread.unpark();
        }
    }

    /// Whether the thread does not run (any more).
    pub(crate) fn is_gone(&self) -> bool {
        self.0.gone.load(Ordering::Acquire)
    }

    /// The program ends: waits until the thread has made one more whole round, with all that was put off, but not longer than `most`.
    pub(crate) fn wait_for_last_round(&self, most: Duration) {
        self.0.is_ending.store(true, Ordering::Release);
        let target = self.0.rounds.load(Ordering::Acquire) + 2;
        self.wait(most, || self.0.rounds.load(Ordering::Acquire) >= target);
    }

    /// Waits until `is_done` says so, the thread is gone, or `most` is over.
    fn wait(&self, most: Duration, is_done: impl Fn() -> bool) {
        let deadline = monotonic_ns() + most.as_nanos() as u64;
        while !is_done() && monotonic_ns() < deadline && !self.is_gone() {
            self.wake();
            #[expect(clippy::disallowed_methods, reason = "the thread may be gone and would then notify nobody")]
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Stops recording until [`start_again`](Self::start_again); whether it stopped within [`PATIENCE`]. The thread's last sample
    /// comes first, so that nothing is missing.
    pub(crate) fn stop_recording(&self) -> bool {
        self.0.is_stop_wanted.store(true, Ordering::Release);
        self.wait_until(true)
    }

    /// Starts recording again; whether that came into effect within [`PATIENCE`].
    pub(crate) fn start_again(&self) -> bool {
        self.0.is_stop_wanted.store(false, Ordering::Release);
        self.wait_until(false)
    }

    fn wait_until(&self, is_stopped: bool) -> bool {
        let is_so = || self.0.is_stopped.load(Ordering::Acquire) == is_stopped;
        self.wait(PATIENCE, is_so);
        is_so() && !self.is_gone()
    }

    /// Starts the thread. With a delay nothing is recorded from when this returns until the delay is over.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub(crate) fn start(
        &self,
        writer: &'static ProcessWriter,
        interval: Duration,
        schedule: Schedule,
        tasks: Vec<Box<dyn Task>>,
    ) -> std::io::Result<()> {
        let link = Arc::clone(&self.0);
        let started = monotonic_ns();
        writer.state().listens();
        let delay_ends = schedule.delay.map(|delay| started + delay.as_nanos() as u64);
        if delay_ends.is_some() {
            hooks::stopped_flag().store(1, Ordering::SeqCst);
            link.is_stop_wanted.store(true, Ordering::Release);
            link.is_stopped.store(true, Ordering::Release);
        }
        let mut helper = Helper {
            writer,
            tasks,
            link,
            delay_ends,
            duration: schedule.duration,
            ends: None,
            next_part: String::new(),
            unanswered: None,
            takes_snapshot: None,
            next_slow: 0,
            next_write_out: 0,
            faults: FaultReport::default(),
            refusal_told: false,
            bounds_told: Vec::new(),
        };
        let builder = std::thread::Builder::new().name("clrscope".into()).stack_size(512 << 10);
        // Signals are blocked before the thread exists, so that not even its first instruction gets one.
        let mask = signals::block();
        let spawned = builder.spawn(move || helper.run(interval));
        signals::restore(&mask);
        let spawned = spawned?;
        let _ = self.0.thread.set(spawned.thread().clone());
        *self.end() = Some(spawned);
        Ok(())
    }

    /// Says how the agent leaves when the recording is over, instead of staying. Before [`start`](Self::start).
    pub(crate) fn departs(&self, departure: Departure) {
        let _ = self.0.departure.set(departure);
    }

    /// Way in which the agent leaves, where it was attached.
    pub(crate) fn departure(&self) -> Option<&Departure> {
        self.0.departure.get()
    }

    fn end(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the system has the thread no more, once it [departs](Self::departs); whether that came within [`PATIENCE`].
    pub(crate) fn wait_for_end(&self) -> bool {
        let Some(thread) = self.end().take() else { return true };
        let deadline = monotonic_ns() + PATIENCE.as_nanos() as u64;
        while !thread.is_finished() && monotonic_ns() < deadline {
            self.wake();
            #[expect(clippy::disallowed_methods, reason = "the standard library has no time limit for this wait")]
            std::thread::sleep(Duration::from_micros(200));
        }
        thread.is_finished() && thread.join().is_ok()
    }
}

/// Times at which recording begins and ends by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Schedule {
    /// Pause between the agent's start and the recording's.
    pub(crate) delay: Option<Duration>,
    /// Time from the recording's start to its end.
    pub(crate) duration: Option<Duration>,
}

struct Helper {
    writer: &'static ProcessWriter,
    tasks: Vec<Box<dyn Task>>,
    link: Arc<Link>,
    /// Time at which recording begins, where it has not yet.
    delay_ends: Option<u64>,
    /// Time that recording goes on, until it has begun.
    duration: Option<Duration>,
    /// Time at which recording ends, once it has begun.
    ends: Option<u64>,
    /// Name of the part that the next start begins.
    next_part: String,
    /// Number of the command that is being carried out.
    unanswered: Option<u32>,
    /// Place among the tasks of the one that takes the snapshot which a command asked for.
    takes_snapshot: Option<usize>,
    next_slow: u64,
    next_write_out: u64,
    faults: FaultReport,
    refusal_told: bool,
    bounds_told: Vec<Bound>,
}

impl Helper {
    fn run(&mut self, interval: Duration) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut pauses = Pauses::new(interval);
            if self.delay_ends.is_some() {
                self.boundary(BoundaryKind::Delay);
                self.stay_stopped();
            } else {
                self.begin_duration(monotonic_ns());
            }
            while !self.is_over(monotonic_ns()) {
                self.obey();
                if self.is_stop_wanted() {
                    self.stop_for_now();
                    continue;
                }
                self.round();
                std::thread::park_timeout(pauses.next());
            }
            self.stop();
        }));
        if outcome.is_err() {
            crate::boundary::count_caught();
            // The fault may lie in the recording of faults.
            crate::boundary::guard(|| self.faults.update(self.writer));
            crate::boundary::guard(developer_log::flush);
        }
        self.link.gone.store(true, Ordering::Release);
    }

    fn is_over(&self, now: u64) -> bool {
        // A recording that may not grow any more would only slow the program down.
        self.writer.state().stop_requested()
            || self.ends.is_some_and(|ends| now >= ends)
            || self.link.departure.get().is_some_and(|departure| departure.is_abandoned(now))
            || self.bounds_told.contains(&Bound::Size)
    }

    fn round(&mut self) {
        let now = monotonic_ns();
        self.writer.threads().keep_ahead();
        for task in &mut self.tasks {
            task.tick(now);
        }
        if self.link.is_ending.load(Ordering::Acquire) {
            self.tasks.iter_mut().for_each(|task| task.end());
        }
        // At once: a program that is refused space may be about to end.
        self.report_refusal(now);
        self.report_bounds(now);
        self.faults.update(self.writer);
        if now >= self.next_slow {
            self.next_slow = now + SLOW_NS;
            self.slow_round(now);
        }
        self.link.rounds.fetch_add(1, Ordering::Release);
    }

    fn slow_round(&mut self, now: u64) {
        for task in &mut self.tasks {
            task.slow_tick(now);
        }
        self.writer.state().alive(now, clock::ticks(), clock::process_cpu_ns().unwrap_or(0));
        developer_log::flush();
        if now >= self.next_write_out {
            self.next_write_out = now + WRITE_OUT_NS;
            self.write_out();
        }
    }

    /// Losses say that space was refused; the reason, too, where the log still has room for it.
    fn report_refusal(&mut self, now: u64) {
        if self.refusal_told {
            return;
        }
        if let Some(error) = first_refusal() {
            self.refusal_told = true;
            self.writer.note(now, &format!("the recording could not grow: {error}"));
            log(Level::Error, || format!("the recording could not grow: {error}"));
        }
    }

    /// Bounds of what the recording may take of the disk are losses, each once.
    fn report_bounds(&mut self, now: u64) {
        for (bound, reason) in [(Bound::Size, LossReason::SizeLimit), (Bound::Reserve, LossReason::DiskReserve)] {
            if bound.was_reached() && !self.bounds_told.contains(&bound) {
                self.bounds_told.push(bound);
                self.writer.state().lose(reason, 1, now);
            }
        }
    }

    fn write_out(&mut self) {
        for task in &mut self.tasks {
            task.write_out();
        }
        // A failed write is tried again at the next round; data that is never written shows as missing.
        let _ = self.writer.log().segment().write_out();
        let _ = self.writer.state().segment().write_out();
        let _ = self.writer.threads().segment().write_out();
    }

    fn is_stop_wanted(&self) -> bool {
        self.link.is_stop_wanted.load(Ordering::Acquire)
    }

    fn is_stopped(&self) -> bool {
        self.link.is_stopped.load(Ordering::Acquire)
    }

    /// Begins what a command from outside asks for, if there is one.
    fn obey(&mut self) {
        self.answer_snapshot();
        let Some((number, command)) = self.writer.state().command() else { return };
        if self.unanswered == Some(number) {
            return;
        }
        log(Level::Info, || format!("command {number}: {command:?}"));
        let refusal = match (command, self.is_stop_wanted()) {
            (Some(Command::Stop), false) => {
                self.link.is_stop_wanted.store(true, Ordering::Release);
                None
            }
            (Some(Command::Start(name)), true) => {
                self.next_part = name;
                self.delay_ends = None;
                self.link.is_stop_wanted.store(false, Ordering::Release);
                None
            }
            (Some(Command::Mark(name)), false) => {
                self.next_part = name;
                self.boundary(BoundaryKind::Mark);
                Some(Answer::Done)
            }
            (Some(Command::Snapshot(name)), false) => {
                self.takes_snapshot = self.tasks.iter_mut().position(|task| task.snapshot(&name));
                self.takes_snapshot.is_none().then_some(Answer::NoHeap)
            }
            (Some(Command::Start(_)), false) => Some(Answer::Recording),
            (Some(Command::Stop | Command::Mark(_) | Command::Snapshot(_)), true) => Some(Answer::Stopped),
            (None, _) => Some(Answer::Unknown),
        };
        self.unanswered = Some(number);
        refusal.into_iter().for_each(|answer| self.answer(answer));
    }

    /// Answers the command for a snapshot, once that is taken.
    fn answer_snapshot(&mut self) {
        let answer = match self.takes_snapshot.map(|at| self.tasks[at].snapshot_progress()) {
            None | Some(SnapshotProgress::UnderWay) => return,
            Some(SnapshotProgress::Complete) => Answer::Done,
            Some(SnapshotProgress::Failed) => Answer::Failed,
        };
        self.takes_snapshot = None;
        self.answer(answer);
    }

    /// Answers the command that was being carried out, if there was one.
    fn answer(&mut self, answer: Answer) {
        if let Some(number) = self.unanswered.take() {
            self.writer.state().answer(number, answer);
        }
    }

    /// Draws a boundary between parts of the recording.
    fn boundary(&mut self, kind: BoundaryKind) {
        let (mono_ns, name) = (monotonic_ns(), std::mem::take(&mut self.next_part));
        let number = if kind == BoundaryKind::Delay { 0 } else { self.note_gains(kind == BoundaryKind::Mark) };
        self.writer.part_boundary(&PartBoundary { mono_ns, kind, name, number });
    }

    /// Notes what all tasks gained since the last boundary; where recording goes on, in turn with the thread's other work.
    fn note_gains(&mut self, goes_on: bool) -> u32 {
        let mut number = 0;
        for at in 0..self.tasks.len() {
            loop {
                match self.tasks[at].gains() {
                    Gains::Noted(noted) => {
                        number = number.max(noted);
                        break;
                    }
                    Gains::More if goes_on => self.round(),
                    Gains::More => self.show_life(),
                }
            }
        }
        number
    }

    fn begin_duration(&mut self, now: u64) {
        if let Some(duration) = self.duration.take() {
            self.ends = Some(now.saturating_add(duration.as_nanos() as u64));
        }
    }

    /// Stops recording until it is wanted again, or the recording is over.
    fn stop_for_now(&mut self) {
        log(Level::Info, || "recording stops for now".to_owned());
        let began = monotonic_ns();
        let is_commanded = self.unanswered.is_some();
        self.round();
        self.slow_round(began);
        while !self.stop_tasks() && !self.is_over(monotonic_ns()) {
            self.show_life();
            std::thread::park_timeout(STOP_PAUSE);
        }
        self.boundary(BoundaryKind::Stop);
        self.link.is_stopped.store(true, Ordering::Release);
        self.answer(Answer::Done);
        self.stay_stopped();
        if !is_commanded && !self.is_stopped() {
            let (now, ms) = (monotonic_ns(), monotonic_ns().saturating_sub(began) as f64 / 1e6);
            self.writer.note(now, &format!("recording was stopped for {ms:.1} ms"));
        }
    }

    /// Goes on without recording until it is wanted again, or the recording is over.
    fn stay_stopped(&mut self) {
        while self.is_stop_wanted() {
            let now = monotonic_ns();
            if self.is_over(now) {
                return;
            }
            self.obey();
            if self.delay_ends.is_some_and(|ends| now >= ends) {
                self.link.is_stop_wanted.store(false, Ordering::Release);
            } else {
                self.stop_tasks();
                self.show_life();
                std::thread::park_timeout(STOP_PAUSE);
            }
        }
        self.begin_again();
    }

    fn begin_again(&mut self) {
        self.delay_ends = None;
        // Before threads count again.
        self.boundary(BoundaryKind::Start);
        let now = monotonic_ns();
        self.begin_duration(now);
        for task in &mut self.tasks {
            task.start_again(now);
        }
        log(Level::Info, || "recording starts again".to_owned());
        hooks::stopped_flag().store(0, Ordering::SeqCst);
        self.link.is_stopped.store(false, Ordering::Release);
        self.answer(Answer::Done);
    }

    /// The part of a round that goes on without recording.
    fn show_life(&mut self) {
        let now = monotonic_ns();
        self.writer.state().alive(now, clock::ticks(), clock::process_cpu_ns().unwrap_or(0));
        developer_log::flush();
        if now >= self.next_write_out {
            self.next_write_out = now + WRITE_OUT_NS;
            self.write_out();
        }
        self.link.rounds.fetch_add(1, Ordering::Release);
    }

    /// One round of stopping; whether all tasks have.
    fn stop_tasks(&mut self) -> bool {
        let mut done = true;
        for task in &mut self.tasks {
            done &= task.stop();
        }
        done
    }

    /// Whether no task has anything to record any more at the end.
    fn finish_tasks(&mut self) -> bool {
        let mut done = true;
        for task in &mut self.tasks {
            done &= task.finish();
        }
        self.answer_snapshot();
        done
    }

    /// Ends the recording while the process goes on: until every thread's hooks are off, and sees to it that they stay
    /// so.
    fn stop(&mut self) {
        log(Level::Info, || "recording ends: every thread's hooks are switched off".to_owned());
        if !self.is_stopped() {
            self.round();
            self.slow_round(monotonic_ns());
        }
        while !self.finish_tasks() {
            self.show_life();
            std::thread::park_timeout(STOP_PAUSE);
        }
        let mut pause = STOP_PAUSE;
        loop {
            let done = self.stop_tasks();
            if done && !self.link.gone.swap(true, Ordering::AcqRel) {
                // Only now: whoever finds this in the recording may count on nothing being added.
                self.writer.state().lose(LossReason::Stopped, 1, monotonic_ns());
                self.write_out();
                self.writer.state().stopped();
                log(Level::Info, || "nothing records any more".to_owned());
                developer_log::flush();
            }
            if done && self.link.departure.get().is_some_and(Departure::ask) {
                return;
            }
            // For ever: a thread that was preempted in the middle of a hook, for however long, stores where it
            // stood when it goes on, and would record again.
            std::thread::park_timeout(pause);
            if done {
                pause = (pause * 2).min(WATCH);
            }
        }
    }
}

/// Pauses between half and one and a half of an interval, in no order: samples at regular intervals would see a
/// program that repeats itself always at the same place.
struct Pauses {
    interval: Duration,
    state: u64,
}

impl Pauses {
    fn new(interval: Duration) -> Self {
        Self { interval, state: clock::ticks() | 1 }
    }

    /// The next one (a xorshift generator; Marsaglia 2003).
    fn next(&mut self) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.interval / 2 + self.interval.mul_f64((self.state >> 11) as f64 / (1_u64 << 53) as f64)
    }
}
