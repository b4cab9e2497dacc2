//! Waiting for events instead of for time to pass.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for an event: longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The unit of times in `/proc/PID/stat`: `USER_HZ`, which is 100 on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// Waits until `look` finds something.
///
/// # Panics
/// When `look` has found nothing after three minutes.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what} did not happen within {PATIENCE:?}");
        pause(LOOK_EVERY);
    }
}

/// Waits until `done` returns true.
///
/// # Panics
/// As [`wait_for`].
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, || done().then_some(()));
}

/// Waits until a process has used `more` CPU time, independent of other load on the machine.
///
/// # Panics
/// When the process ends before, or has not used the time after three minutes.
pub fn wait_for_work(pid: u32, more: Duration) {
    let used = || cpu_time(pid).unwrap_or_else(|| panic!("process {pid} has ended"));
    let before = used();
    wait_until(&format!("{more:?} of work by process {pid}"), || used() >= before + more);
}

/// CPU time of all threads of a process, exact to 20 ms; `None` when it has ended.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the state follows it (proc_pid_stat(5)).
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    if fields.first() == Some(&"Z") {
        return None;
    }
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
    Some(TICK * (ticks(11)? + ticks(12)?))
}

/// Sleeps. Only for tests in which the pause itself matters, such as a signal at a random moment.
/// To wait for an event, use [`wait_for`].
#[expect(clippy::disallowed_methods, reason = "the place where tests sleep")]
pub fn pause(time: Duration) {
    thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn work_is_waited_for_and_not_time() {
        let enough = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&enough);
        let worker = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let before = cpu_time(std::process::id()).expect("this one");
        wait_for_work(std::process::id(), Duration::from_millis(50));
        assert!(cpu_time(std::process::id()).expect("this one") >= before + Duration::from_millis(50));
        enough.store(true, Ordering::Relaxed);
        worker.join().expect("it works");
        assert_eq!(cpu_time(u32::MAX), None);
    }

    #[test]
    fn what_comes_later_is_found() {
        let mut looks = 0..;
        assert_eq!(wait_for("the third look", || looks.next().filter(|look| *look == 2)), 2);
    }
}
