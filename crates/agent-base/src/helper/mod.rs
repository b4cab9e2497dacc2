//! The agent's own thread. It provides memory ahead of need, stores heartbeats, and runs the
//! regular work of instruments.
//!
//! The thread blocks all signals, so the program's handlers never run on it and SIGXFSZ from a file
//! size limit stays pending instead of killing the process.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | the work that other modules register, and the handle by which they reach the thread |
//! | `rounds` | the thread's rounds |
//! | `commands` | commands from outside while the program runs |
//! | `switching` | pause, restart and end of the recording; boundaries between its parts |
//! | `marks` | boundaries that the program's own code draws |

mod commands;
mod marks;
mod rounds;
mod switching;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use clrscope_recording::writer::{Answer, Command, ProcessWriter, monotonic_ns};

use crate::hooks;
use crate::os::signals;

use marks::Marks;
use rounds::Helper;

/// Longest wait for the answer to a request to stop or restart recording.
const PATIENCE: Duration = Duration::from_secs(10);

/// Regular work of an instrument. Runs on the helper thread: it may allocate and wait for the disk,
/// and must not call the runtime.
#[expect(unused_variables, reason = "the defaults ignore what they are given; the names are documentation")]
pub trait Task: Send {
    /// Called at each interval.
    fn tick(&mut self, now_ns: u64) {}
    /// Called about fifty times a second.
    fn slow_tick(&mut self, now_ns: u64) {}
    /// Called when the program ends, in each of the last rounds, after [`tick`](Self::tick). The
    /// task does now what it has put off.
    fn end(&mut self) {}
    /// Writes data from private memory to the recording.
    fn write_out(&mut self) {}
    /// Called when the recording is about to be copied. The task records what only the process
    /// knows so far.
    fn get_ready_for_copy(&mut self) {}
    /// Called when recording stops while the process keeps running: until it returns true, and now
    /// and then after that.
    fn stop(&mut self) -> bool {
        true
    }
    /// Offers the task a command from outside. Returns whether the command is for this instrument,
    /// which then begins to carry it out. [`answer`](Self::answer) gives the outcome.
    fn begins(&mut self, command: &Command) -> bool {
        false
    }
    /// Answer to the last command that [began](Self::begins); `None` while it is being carried out.
    fn answer(&self) -> Option<Answer> {
        Some(Answer::Failed)
    }
    /// Called when the recording is about to end while the process keeps running, until it returns
    /// true. After that, tasks [stop](Self::stop).
    fn finish(&mut self) -> bool {
        true
    }
    /// Called when the recording is over and the process keeps running, until it returns true.
    /// Every task has [stopped](Self::stop) and none starts again. The task reverts its changes to
    /// the program's code. A task that needs the runtime for this asks on a thread that the runtime
    /// knows.
    fn undo(&mut self) -> bool {
        true
    }
    /// Called at a boundary between parts of the recording. Notes the gains since the last
    /// boundary. Each call does one step of less than a millisecond.
    fn gains(&mut self) -> Gains {
        Gains::Noted(0)
    }
    /// Called when a period of a recording in periods has ended and its [`gains`](Self::gains) are
    /// noted.
    fn begin_period(&mut self) {}
    /// Whether [`gains`](Self::gains) notes anything.
    fn has_gains(&self) -> bool {
        false
    }
    /// Called when recording is about to start again after [`stop`](Self::stop). The state of
    /// threads that the task remembers is out of date.
    fn start_again(&mut self, now_ns: u64) {}
}

/// How an attached agent leaves when the recording is over.
pub trait Detach: Send + Sync {
    /// Whether the recording is not wanted any more. To be called on the helper thread, as this
    /// sometimes reads the file system.
    fn is_abandoned(&self, now_ns: u64) -> bool;
    /// Call it when the runtime has refused the setup.
    fn was_refused(&self);
    /// Asks the runtime to detach the agent. Returns true if the runtime will detach it or has done
    /// so, or if the agent is dormant instead.
    fn request(&self) -> bool;
}

/// Result of one step of noting the gains (what the tasks counted since the last boundary).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gains {
    /// There is more to note.
    More,
    /// All gains are noted under this number. 0 if events and their times suffice, or if there is
    /// no room for gains.
    Noted(u32),
}

/// Handle by which other threads reach the helper thread.
#[derive(Clone, Default)]
pub struct HelperHandle(Arc<Link>);

#[derive(Default)]
struct Link {
    thread: OnceLock<Thread>,
    /// The handle to join the thread.
    end: Mutex<Option<JoinHandle<()>>>,
    /// How an attached agent leaves.
    detachment: OnceLock<Box<dyn Detach>>,
    /// Whether an attached agent has finished its first work.
    is_attached: AtomicBool,
    gone: AtomicBool,
    rounds: AtomicU64,
    /// Whether the program ends.
    is_ending: AtomicBool,
    /// Whether recording should be paused.
    is_stop_wanted: AtomicBool,
    /// Whether recording is paused.
    is_stopped: AtomicBool,
    /// Boundaries that the program's own code draws.
    marks: Marks,
}

impl HelperHandle {
    /// A handle for a thread that [`start`](Self::start) starts later.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Wakes the thread before its interval is over. Safe in a hook.
    pub fn wake(&self) {
        if let Some(thread) = self.0.thread.get() {
            thread.unpark();
        }
    }

    /// Whether the thread has ended; `false` before it starts.
    pub fn is_gone(&self) -> bool {
        self.0.gone.load(Ordering::Acquire)
    }

    /// Call it when the program ends. Waits at most `most` until the thread has completed one more
    /// round, including postponed work.
    pub fn wait_for_last_round(&self, most: Duration) {
        self.0.is_ending.store(true, Ordering::Release);
        let target = self.0.rounds.load(Ordering::Acquire) + 2;
        self.wait(most, || self.0.rounds.load(Ordering::Acquire) >= target);
    }

    /// Waits until `is_done` returns true, the thread is gone, or `most` is over.
    fn wait(&self, most: Duration, is_done: impl Fn() -> bool) {
        let deadline = monotonic_ns() + most.as_nanos() as u64;
        while !is_done() && monotonic_ns() < deadline && !self.is_gone() {
            self.wake();
            #[expect(clippy::disallowed_methods, reason = "the thread may be gone and would then notify nobody")]
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Pauses recording until [`start_again`](Self::start_again). Returns whether it stopped within
    /// `PATIENCE`. The thread takes a last sample first, so that nothing is missing.
    pub fn stop_recording(&self) -> bool {
        self.0.is_stop_wanted.store(true, Ordering::Release);
        self.wait_until(true)
    }

    /// Starts recording again. Returns whether that took effect within `PATIENCE`.
    pub fn start_again(&self) -> bool {
        self.0.is_stop_wanted.store(false, Ordering::Release);
        self.wait_until(false)
    }

    fn wait_until(&self, is_stopped: bool) -> bool {
        let is_so = || self.0.is_stopped.load(Ordering::Acquire) == is_stopped;
        self.wait(PATIENCE, is_so);
        is_so() && !self.is_gone()
    }

    /// Starts the thread. With a delay, nothing is recorded until the delay is over.
    ///
    /// # Errors
    /// The system can't create a thread.
    pub fn start(
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
        self.0.marks.begin(delay_ends.is_none(), tasks.iter().any(|task| task.has_gains()));
        let mut helper = Helper::new(writer, tasks, link, (delay_ends, schedule));
        let builder = std::thread::Builder::new().name("clrscope".into()).stack_size(512 << 10);
        // Signals are blocked before the thread exists, so that not even its first instruction gets
        // one.
        let mask = signals::block();
        let spawned = builder.spawn(move || helper.run(interval));
        signals::restore(&mask);
        let spawned = spawned?;
        let _ = self.0.thread.set(spawned.thread().clone());
        *self.end() = Some(spawned);
        Ok(())
    }

    /// Sets how the agent leaves the process when the recording is over; without this call it
    /// stays. Call it before [`start`](Self::start).
    pub fn set_detachment(&self, detachment: Box<dyn Detach>) {
        let _ = self.0.detachment.set(detachment);
    }

    /// Call it when an attached agent has finished its first work, such as adding probes to
    /// methods. The requested duration of the recording begins now.
    pub fn has_attached(&self) {
        self.0.is_attached.store(true, Ordering::Release);
    }

    /// How the agent leaves; `None` if it stays, because it was not attached.
    pub fn detachment(&self) -> Option<&dyn Detach> {
        self.0.detachment.get().map(Box::as_ref)
    }

    fn end(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the system no longer has the thread, once it [departs](Self::set_detachment).
    /// Returns whether that happened within `PATIENCE`.
    pub fn wait_for_end(&self) -> bool {
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

/// Automatic begin and end of the recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct Schedule {
    /// Pause between the start of the agent and the start of the recording.
    pub delay: Option<Duration>,
    /// Time from the start of the recording to its end.
    pub duration: Option<Duration>,
    /// Whether the launcher writes the recording in periods.
    pub is_in_periods: bool,
}
