//! Threads of a profiler's own: begun when the runtime is up, ended before the profiler goes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::boundary::guard;
use crate::os::without_signals;
use crate::stop::Stop;
use crate::{Error, ProfilerInfo, Result};

/// Pause between two looks whether the runtime is up.
const UP_PAUSE: Duration = Duration::from_millis(1);

/// A thread of a profiler's own, for what callbacks may not or should not do: collections,
/// suspensions, sampling, sessions of EventPipe, files.
///
/// [`start`](Self::start) is for [`initialize`](crate::Profiler::initialize) and everywhere else
/// but hooks. Around the code that is given to it:
///
/// - the thread blocks all signals before its first instruction: handlers of the program never run
///   on it;
/// - the runtime is told that the thread will call it
///   ([`initialize_current_thread`](ProfilerInfo::initialize_current_thread)), which makes it no
///   managed thread: what may load types is refused on it, unless the code has it
///   [adopted](ProfilerInfo::adopt_current_thread) first;
/// - the code begins when the runtime is up and the profiler's [`Setup`](crate::Setup) is in force:
///   what answers `CORPROF_E_RUNTIME_UNINITIALIZED` before can be asked, and events that were asked
///   for are on;
/// - a panic is caught and counted like that of a callback;
/// - the framework asks the thread to stop and waits for its end, for a second at most: before
///   [`shutdown`](crate::Callbacks::shutdown), after a
///   [`request_detach`](ProfilerInfo::request_detach) that the runtime has accepted, and where the
///   profiler's setup was refused. After these nothing may be asked of the runtime any more, so
///   long work looks at [`is_wanted`](Self::is_wanted) now and then.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// use clr_profiler::{Callbacks, Events, OwnThread, Profiler, ProfilerInfo, Result, Setup};
///
/// /// Looks every 10 ms how many managed threads there are.
/// struct MostThreads(Arc<AtomicU64>);
///
/// impl Profiler for MostThreads {
///     fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         let (most, asked) = (Arc::new(AtomicU64::new(0)), info.clone());
///         let seen = Arc::clone(&most);
///         OwnThread::start(info, "most-threads", move |thread| {
///             while thread.sleep(Duration::from_millis(10)) {
///                 seen.fetch_max(asked.threads().map_or(0, |threads| threads.len() as u64), Ordering::Relaxed);
///             }
///         })?;
///         Ok((Self(most), Setup::new(Events::NONE)))
///     }
/// }
///
/// impl Callbacks for MostThreads {
///     fn shutdown(&self) {
///         // The thread has ended.
///         let _ = std::fs::write("threads.txt", self.0.load(Ordering::Relaxed).to_string());
///     }
/// }
/// ```
#[derive(Clone)]
pub struct OwnThread {
    stop: Arc<Stop>,
}

impl OwnThread {
    /// Starts a thread called `name` (the system shows the first 15 bytes), which runs `code` once
    /// the runtime is up and has accepted what the profiler asks for in `initialize`. Until then,
    /// and where the program ends before, `code` does not run: don't wait for it in `initialize`.
    ///
    /// # Errors
    /// A sentence where the system has no thread to give, or the profiler is about to go.
    pub fn start(info: &ProfilerInfo, name: &str, code: impl FnOnce(&Self) + Send + 'static) -> Result<Self> {
        let refused = |why: String| Error::refused("OwnThread::start", why);
        let own = Self { stop: Arc::default() };
        if !info.own_threads().add(&own.stop) {
            return Err(refused("the profiler is about to go, and threads of its own with it".into()));
        }
        let (thread, asked) = (own.clone(), info.clone());
        let run = move || {
            thread.stop.begins();
            guard((), || {
                // Without a word of the runtime's it would set the thread up at its first question.
                let _ = asked.initialize_current_thread();
                if thread.wait_for_runtime(&asked) {
                    code(&thread);
                }
            });
            drop(asked);
            thread.stop.is_over();
        };
        let builder = std::thread::Builder::new().name(name.to_owned());
        if let Err(error) = without_signals(|| builder.spawn(run)) {
            own.stop.is_over();
            return Err(refused(error.to_string()));
        }
        Ok(own)
    }

    /// Waits until the code may begin; false where the thread must end before.
    fn wait_for_runtime(&self, info: &ProfilerInfo) -> bool {
        while !self.stop.is_wanted() {
            if info.own_threads().is_open() && info.is_runtime_up() {
                return true;
            }
            self.stop.sleep(UP_PAUSE);
        }
        false
    }

    /// Sleeps for so long; whether the thread is to go on. Returns at once when the thread is to
    /// end. For the thread itself.
    #[must_use = "the thread must end when this says so"]
    pub fn sleep(&self, time: Duration) -> bool {
        self.stop.sleep(time)
    }

    /// Whether the thread is to go on: neither the framework nor the profiler has asked for its
    /// end.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.stop.is_wanted()
    }

    /// Asks the thread to end and waits for it, `most` at the longest; whether it has ended. Not in
    /// hooks, nor where the thread may wait for the caller: while [`Suspended`](crate::Suspended)
    /// lives, or with a lock that the thread takes. The thread itself does not wait.
    #[expect(clippy::must_use_candidate, reason = "who only wants the thread to end need not look")]
    pub fn stop(&self, most: Duration) -> bool {
        self.stop.ask_to_end();
        self.stop.wait_over(Instant::now() + most)
    }
}
