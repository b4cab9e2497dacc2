//! The agent's own thread: keeps space ahead of need, stores heartbeats, and runs what the
//! instruments want done regularly.
//!
//! The thread blocks all signals, so the program's handlers never run on it and SIGXFSZ from a file
//! size limit stays pending instead of killing the process.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | the work that others want done, and the handle by which they reach the thread |
//! | `rounds` | the thread's rounds |
//! | `commands` | what is asked for from outside while the program runs |
//! | `switching` | recording stops, starts again, and ends; boundaries between parts |
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

/// Time that a request to stop recording or start it again waits for its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Work to be done regularly. Runs on the helper thread: may allocate and wait for the disk, must
/// not call the runtime.
#[expect(unused_variables, reason = "the defaults ignore what they are given; the names are documentation")]
pub trait Task: Send {
    /// At each interval.
    fn tick(&mut self, now_ns: u64) {}
    /// About fifty times a second.
    fn slow_tick(&mut self, now_ns: u64) {}
    /// The program ends: what was put off is done now. After [`tick`](Self::tick), in each of the
    /// last rounds.
    fn end(&mut self) {}
    /// Write out what lies in private memory.
    fn write_out(&mut self) {}
    /// The recording so far is about to be copied: what is known in the process alone is written
    /// down.
    fn get_ready_for_copy(&mut self) {}
    /// Recording stops while the process goes on; called until it answers true, and now and then
    /// after that.
    fn stop(&mut self) -> bool {
        true
    }
    /// A command from outside that is for an instrument; whether it is for this one, which begins
    /// to carry it out. What becomes of it says [`answer`](Self::answer).
    fn begins(&mut self, command: &Command) -> bool {
        false
    }
    /// Answer to the command that [began](Self::begins) last; `None` while it is under way.
    fn answer(&self) -> Option<Answer> {
        Some(Answer::Failed)
    }
    /// The recording is about to end while the process goes on; called until it answers true, and
    /// then tasks [stop](Self::stop).
    fn finish(&mut self) -> bool {
        true
    }
    /// The recording is over, every task has [stopped](Self::stop) and none starts again, while the
    /// process goes on: what was changed of the program's code is changed back. Called until it
    /// answers true. Who asks the runtime for that does so on a thread that the runtime knows.
    fn undo(&mut self) -> bool {
        true
    }
    /// A boundary between parts of the recording: notes what was gained since the last one, a step
    /// at each call, of less than a millisecond.
    fn gains(&mut self) -> Gains {
        Gains::Noted(0)
    }
    /// Whether [`gains`](Self::gains) notes anything.
    fn has_gains(&self) -> bool {
        false
    }
    /// Recording is about to start again after [`stop`](Self::stop): what was known of threads is
    /// out of date.
    fn start_again(&mut self, now_ns: u64) {}
}

/// Way in which an attached agent leaves when the recording is over.
pub trait Detach: Send + Sync {
    /// Whether nothing waits for the recording any more. Looks into the file system now and then,
    /// so for the helper thread.
    fn is_abandoned(&self, now_ns: u64) -> bool;
    /// The runtime has refused the setup.
    fn was_refused(&self);
    /// Asks the runtime to detach the agent. Returns whether it will, or has, or the agent is
    /// dormant instead.
    fn request(&self) -> bool;
}

/// A step of noting what was gained up to a boundary between parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gains {
    /// There is more to note.
    More,
    /// All is noted, under this number; 0 where there is nothing that events and their times don't
    /// tell, or no room for it.
    Noted(u32),
}

/// Handle by which other threads reach the helper thread.
#[derive(Clone, Default)]
pub struct HelperHandle(Arc<Link>);

#[derive(Default)]
struct Link {
    thread: OnceLock<Thread>,
    /// The thread's end.
    end: Mutex<Option<JoinHandle<()>>>,
    /// Way in which an attached agent leaves.
    detachment: OnceLock<Box<dyn Detach>>,
    /// Whether an attached agent has done what comes first.
    is_attached: AtomicBool,
    gone: AtomicBool,
    rounds: AtomicU64,
    /// Whether the program ends.
    is_ending: AtomicBool,
    /// Whether recording is to be stopped for now.
    is_stop_wanted: AtomicBool,
    /// Whether it is.
    is_stopped: AtomicBool,
    /// Boundaries that the program's own code draws.
    marks: Marks,
}

impl HelperHandle {
    /// A handle for a thread that is started later with [`start`](Self::start).
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Wakes the thread before its interval is over. Safe in a hook.
    pub fn wake(&self) {
        if let Some(thread) = self.0.thread.get() {
            thread.unpark();
        }
    }

    /// Whether the thread does not run (any more).
    pub fn is_gone(&self) -> bool {
        self.0.gone.load(Ordering::Acquire)
    }

    /// The program ends: waits until the thread has made one more whole round, with all that was
    /// put off, but not longer than `most`.
    pub fn wait_for_last_round(&self, most: Duration) {
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

    /// Stops recording until [`start_again`](Self::start_again); whether it stopped within
    /// `PATIENCE`. The thread's last sample comes first, so that nothing is missing.
    pub fn stop_recording(&self) -> bool {
        self.0.is_stop_wanted.store(true, Ordering::Release);
        self.wait_until(true)
    }

    /// Starts recording again; whether that came into effect within `PATIENCE`.
    pub fn start_again(&self) -> bool {
        self.0.is_stop_wanted.store(false, Ordering::Release);
        self.wait_until(false)
    }

    fn wait_until(&self, is_stopped: bool) -> bool {
        let is_so = || self.0.is_stopped.load(Ordering::Acquire) == is_stopped;
        self.wait(PATIENCE, is_so);
        is_so() && !self.is_gone()
    }

    /// Starts the thread. With a delay nothing is recorded from when this returns until the delay
    /// is over.
    ///
    /// # Errors
    /// When the system has no thread to give.
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
        let mut helper = Helper::new(writer, tasks, link, (delay_ends, schedule.duration));
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

    /// Says how the agent leaves when the recording is over, instead of staying. Before
    /// [`start`](Self::start).
    pub fn set_detachment(&self, detachment: Box<dyn Detach>) {
        let _ = self.0.detachment.set(detachment);
    }

    /// An attached agent has done what comes first, such as to give methods probes: from now on the
    /// recording lasts as long as was asked for.
    pub fn has_attached(&self) {
        self.0.is_attached.store(true, Ordering::Release);
    }

    /// Way in which the agent leaves, where it was attached.
    pub fn detachment(&self) -> Option<&dyn Detach> {
        self.0.detachment.get().map(Box::as_ref)
    }

    fn end(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the system has the thread no more, once it [departs](Self::set_detachment);
    /// whether that came within `PATIENCE`.
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

/// Times at which recording begins and ends by itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Schedule {
    /// Pause between the agent's start and the recording's.
    pub delay: Option<Duration>,
    /// Time from the recording's start to its end.
    pub duration: Option<Duration>,
}
