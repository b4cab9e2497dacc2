//! Stops a profiler's own threads: notifies each thread, wakes it up, and waits for its end for a
//! bounded time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// State shared by a thread and the threads that stop it.
#[derive(Default)]
pub(crate) struct Stop {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_wanted: bool,
    is_over: bool,
    /// The identifier of the thread, which must not wait for its own end.
    thread: Option<ThreadId>,
}

impl Stop {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the calling thread is the one to stop.
    pub(crate) fn begins(&self) {
        self.state().thread = Some(std::thread::current().id());
    }

    /// Notes that the thread has ended.
    pub(crate) fn is_over(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Asks the thread to end.
    pub(crate) fn ask_to_end(&self) {
        self.state().is_wanted = true;
        self.changed.notify_all();
    }

    /// Whether the thread was asked to end.
    pub(crate) fn is_wanted(&self) -> bool {
        self.state().is_wanted
    }

    /// Waits for `time`, or until the thread is asked to end. Returns whether the thread may
    /// continue.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        !self.wait_until(Instant::now() + time, |state| state.is_wanted)
    }

    /// Waits for the thread's end until `deadline`. Returns whether the thread has ended. The
    /// thread itself does not wait.
    pub(crate) fn wait_over(&self, deadline: Instant) -> bool {
        let is_self = self.state().thread == Some(std::thread::current().id());
        is_self || self.wait_until(deadline, |state| state.is_over)
    }

    fn wait_until(&self, deadline: Instant, done: impl Fn(&State) -> bool) -> bool {
        let mut state = self.state();
        while !done(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// All of a profiler's own threads.
#[derive(Default)]
pub(crate) struct Stops(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    running: Vec<Arc<Stop>>,
    /// Whether the profiler's setup is in force, so that threads may begin.
    is_open: bool,
    /// Whether all threads were stopped, so that no thread may start any more.
    is_closed: bool,
}

impl Stops {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the threads begin: the profiler's setup is in force.
    pub(crate) fn open(&self) {
        self.threads().is_open = true;
    }

    /// Whether the threads may begin.
    pub(crate) fn is_open(&self) -> bool {
        self.threads().is_open
    }

    /// Adds a thread. Returns whether it may start.
    pub(crate) fn add(&self, stop: &Arc<Stop>) -> bool {
        let mut threads = self.threads();
        threads.running.retain(|other| !other.state().is_over);
        if !threads.is_closed {
            threads.running.push(Arc::clone(stop));
        }
        !threads.is_closed
    }

    /// Asks all threads to end and waits for all of them, for at most `most` in total. Returns
    /// whether all have ended. No thread can start after that.
    pub(crate) fn stop_all(&self, most: Duration) -> bool {
        self.threads().is_closed = true;
        self.stop_running(most)
    }

    /// As [`stop_all`](Self::stop_all), but new threads may start after that.
    pub(crate) fn stop_running(&self, most: Duration) -> bool {
        let deadline = Instant::now() + most;
        let running = self.threads().running.clone();
        running.iter().for_each(|stop| stop.ask_to_end());
        // A thread that has not ended at the deadline leaves no time to wait for the others.
        running.iter().all(|stop| stop.wait_over(deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_is_woken_to_end_and_waited_for() {
        let (stops, stop) = (Stops::default(), Arc::new(Stop::default()));
        assert!(stops.add(&stop));
        let own = stop.clone();
        let thread = std::thread::spawn(move || {
            own.begins();
            while own.sleep(LONG) {}
            own.is_over();
        });
        assert!(stops.stop_all(LONG));
        thread.join().unwrap();
        assert!(stop.is_wanted() && !stops.add(&stop), "none starts after all were stopped");
    }

    #[test]
    fn a_thread_that_stays_is_waited_for_no_longer_than_said_and_none_waits_for_itself() {
        let (stops, stays, own) = (Stops::default(), Arc::new(Stop::default()), Arc::new(Stop::default()));
        assert!(stops.add(&stays));
        assert!(!stops.stop_all(Duration::from_millis(1)));
        own.begins();
        assert!(own.wait_over(Instant::now() + LONG));
    }
}
