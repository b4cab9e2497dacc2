//! Threads with their names and lifetimes, and the suspensions of the program with their durations
//! and reasons.
//!
//! The file's name comes from `THREADS_PROFILER_OUTPUT`: a profiler must not write to the program's
//! own output.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clr_profiler::callback_args::SuspendReason;
use clr_profiler::{Callbacks, Events, Profiler, ProfilerInfo, Result, Setup, ThreadId};

// The class identifier is how the runtime finds a profiler: each has its own.
clr_profiler::export_profiler!(
    Threads,
    "{1256BFA0-BB2F-40C6-BA1D-B74528EB6024}",
    notification_only = "{1256BFA0-BB2F-40C6-BA1D-B74528EB6025}"
);

/// The profiler the runtime makes when it loads this library.
struct Threads {
    start: Instant,
    seen: Mutex<ThreadLog>,
}

#[derive(Default)]
struct ThreadLog {
    /// Threads in the order of their creation.
    threads: Vec<Thread>,
    /// Index of each live thread; removed at the thread's end, because the runtime reuses
    /// identifiers.
    alive: HashMap<ThreadId, usize>,
    suspensions: Vec<Suspension>,
}

#[derive(Default)]
struct Thread {
    name: String,
    born: Duration,
    died: Option<Duration>,
    /// Time since which the thread waits for the end of a suspension.
    stopped: Option<Duration>,
    stood: Duration,
}

struct Suspension {
    reason: SuspendReason,
    asked: Duration,
    /// Time at which the last thread was suspended; `None` after the first one resumed.
    stopped: Option<Duration>,
    resumed: Option<Duration>,
}

impl Threads {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn seen(&self) -> MutexGuard<'_, ThreadLog> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the data of a thread. The thread may have begun before the runtime reported it.
    fn thread(&self, thread: ThreadId, change: impl FnOnce(&mut Thread, Duration)) {
        let now = self.now();
        let ThreadLog { threads, alive, .. } = &mut *self.seen();
        let index = *alive.entry(thread).or_insert_with(|| {
            threads.push(Thread { born: now, ..Thread::default() });
            threads.len() - 1
        });
        change(&mut threads[index], now);
    }

    fn suspension(&self, change: impl FnOnce(&mut Suspension, Duration)) {
        let now = self.now();
        if let Some(last) = self.seen().suspensions.last_mut() {
            change(last, now);
        }
    }
}

impl Profiler for Threads {
    fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let profiler = Self { start: Instant::now(), seen: Mutex::default() };
        Ok((profiler, Setup::new(Events::THREADS | Events::SUSPENSIONS)))
    }
}

impl Callbacks for Threads {
    fn thread_created(&self, thread: ThreadId) {
        self.thread(thread, |_, _| {});
    }

    fn thread_name_changed(&self, thread: ThreadId, name: &str) {
        self.thread(thread, |thread, _| name.clone_into(&mut thread.name));
    }

    fn thread_destroyed(&self, thread: ThreadId) {
        self.thread(thread, |thread, now| thread.died = Some(now));
        self.seen().alive.remove(&thread);
    }

    fn runtime_suspend_started(&self, reason: SuspendReason) {
        let asked = self.now();
        self.seen().suspensions.push(Suspension { reason, asked, stopped: None, resumed: None });
    }

    fn runtime_suspend_finished(&self) {
        self.suspension(|last, now| last.stopped = Some(now));
    }

    fn runtime_resume_started(&self) {
        self.suspension(|last, now| last.resumed = Some(now));
    }

    fn runtime_thread_suspended(&self, thread: ThreadId) {
        self.thread(thread, |thread, now| thread.stopped = Some(now));
    }

    fn runtime_thread_resumed(&self, thread: ThreadId) {
        self.thread(thread, |thread, now| thread.stood += thread.stopped.take().map_or(Duration::ZERO, |at| now - at));
    }

    fn shutdown(&self) {
        if let Some(path) = std::env::var_os("THREADS_PROFILER_OUTPUT") {
            // A failure is ignored: the program's output is not ours.
            drop(std::fs::write(path, self.report()));
        }
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

impl Threads {
    /// For threads: name, start, lifetime (`-` for a live thread) and suspended time. For
    /// suspensions: reason, start, time until all threads were suspended, and time that they stayed
    /// suspended. All times in milliseconds, separated by tabs.
    fn report(&self) -> String {
        let seen = self.seen();
        let or_dash = |time: Option<Duration>| time.map_or_else(|| "-".to_owned(), milliseconds);
        let mut text = String::new();
        for Thread { name, born, died, stood, .. } in &seen.threads {
            let (born, lived, stood) =
                (milliseconds(*born), or_dash(died.map(|died| died - *born)), milliseconds(*stood));
            let _ = writeln!(text, "thread\t{name}\t{born}\t{lived}\t{stood}");
        }
        for Suspension { reason, asked, stopped, resumed } in &seen.suspensions {
            let stop = or_dash(stopped.map(|at| at - *asked));
            let stood = or_dash(stopped.zip(*resumed).map(|(at, end)| end - at));
            let _ = writeln!(text, "suspension\t{reason}\t{}\t{stop}\t{stood}", milliseconds(*asked));
        }
        text
    }
}

#[cfg(test)]
mod tests;
