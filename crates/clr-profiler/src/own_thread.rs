//! Threads of the profiler itself: they begin when the runtime has started, and end before the
//! profiler is removed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::boundary::guard;
use crate::os::without_signals;
use crate::stop::Stop;
use crate::{Error, ProfilerInfo, Result};

/// Pause between two checks whether the runtime has started.
const UP_PAUSE: Duration = Duration::from_millis(1);

/// A thread of the profiler itself, for work that callbacks may not or should not do: collections,
/// suspensions, sampling, EventPipe sessions, files.
///
/// [`start`](Self::start) may be called in [`initialize`](crate::Profiler::initialize) and
/// everywhere else but in hooks. The framework runs the code of the thread under these rules:
///
/// - the thread blocks all signals before its first instruction, so signal handlers of the program
///   never run on it;
/// - the framework tells the runtime that the thread will call it
///   ([`initialize_current_thread`](ProfilerInfo::initialize_current_thread)). This does not make
///   it a managed thread: queries that may load types are refused on it, unless the code makes the
///   runtime [adopt](ProfilerInfo::adopt_current_thread) it first;
/// - the code begins when the runtime has started and the profiler's [`Setup`](crate::Setup) is in
///   force: queries do not return `CORPROF_E_RUNTIME_UNINITIALIZED` any more, and the requested
///   events are enabled;
/// - a panic is caught and counted like a panic in a callback;
/// - the framework asks the thread to stop and waits for its end, for at most a second: before
///   [`shutdown`](crate::Callbacks::shutdown), after a
///   [`request_detach`](ProfilerInfo::request_detach) that the runtime has accepted, and if the
///   profiler's setup was refused. After that the thread must make no query to the runtime, so long
///   work must check [`is_wanted`](Self::is_wanted) from time to time.
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
    /// Starts a thread called `name` (the system shows the first 15 bytes). The thread runs `code`
    /// once the runtime has started and has accepted the setup from `initialize`. If the program
    /// ends before, `code` never runs. Don't wait for `code` in `initialize`.
    ///
    /// # Errors
    /// A refusal with a reason if the system can't start a thread, or if the profiler is about to
    /// be removed.
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
                // If this fails, the runtime sets up the thread at its first query instead.
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

    /// Waits until the code may begin; false if the thread must end before.
    fn wait_for_runtime(&self, info: &ProfilerInfo) -> bool {
        while !self.stop.is_wanted() {
            if info.own_threads().is_open() && info.is_runtime_up() {
                return true;
            }
            self.stop.sleep(UP_PAUSE);
        }
        false
    }

    /// Sleeps for `time`, or until the thread should end. Returns whether the thread may continue.
    /// Call it on the thread itself.
    #[must_use = "the thread must end when this says so"]
    pub fn sleep(&self, time: Duration) -> bool {
        self.stop.sleep(time)
    }

    /// Whether the thread may continue: neither the framework nor the profiler wants it to end.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.stop.is_wanted()
    }

    /// Asks the thread to end and waits for its end, for at most `most`. Returns whether the thread
    /// has ended. Not in hooks, and not if the thread may wait for the caller: while
    /// [`Suspended`](crate::Suspended) exists, or with a lock that the thread takes. A call on the
    /// thread itself does not wait.
    #[expect(clippy::must_use_candidate, reason = "who only wants the thread to end need not look")]
    pub fn stop(&self, most: Duration) -> bool {
        self.stop.ask_to_end();
        self.stop.wait_over(Instant::now() + most)
    }
}
