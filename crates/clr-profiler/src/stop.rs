//! Stopping threads of a profiler's own: each is notified, wakes up, and is waited for, for a
//! bounded time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Words that one thread and those who stop it share.
#[derive(Default)]
pub(crate) struct Stop {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_wanted: bool,
    is_over: bool,
    /// The thread itself, which must not wait for its own end.
    thread: Option<ThreadId>,
}

impl Stop {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread is the one that is stopped.
    pub(crate) fn begins(&self) {
        self.state().thread = Some(std::thread::current().id());
    }

    /// The thread has ended.
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

    /// Waits for so long, or until the thread is asked to end; whether it may go on.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        !self.wait_until(Instant::now() + time, |state| state.is_wanted)
    }

    /// Waits for the thread's end; whether it has ended. The thread itself does not wait.
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

/// All threads of a profiler's own.
#[derive(Default)]
pub(crate) struct Stops(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    running: Vec<Arc<Stop>>,
    /// Open: what the profiler asked for at its start is in force.
    is_open: bool,
    /// All were stopped: none starts any more.
    is_closed: bool,
}

impl Stops {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the threads begin: what the profiler asked for is in force.
    pub(crate) fn open(&self) {
        self.threads().is_open = true;
    }

    /// Whether the threads may begin.
    pub(crate) fn is_open(&self) -> bool {
        self.threads().is_open
    }

    /// Adds a thread; whether it may start.
    pub(crate) fn add(&self, stop: &Arc<Stop>) -> bool {
        let mut threads = self.threads();
        threads.running.retain(|other| !other.state().is_over);
        if !threads.is_closed {
            threads.running.push(Arc::clone(stop));
        }
        !threads.is_closed
    }

    /// Asks all threads to end and waits for them, together not longer than `most`; whether all
    /// have ended. None starts after that.
    pub(crate) fn stop_all(&self, most: Duration) -> bool {
        self.threads().is_closed = true;
        self.stop_running(most)
    }

    /// As [`stop_all`](Self::stop_all), but others may start after that.
    pub(crate) fn stop_running(&self, most: Duration) -> bool {
        let deadline = Instant::now() + most;
        let running = self.threads().running.clone();
        running.iter().for_each(|stop| stop.ask_to_end());
        // Who is not over at the deadline leaves no time for the others.
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
