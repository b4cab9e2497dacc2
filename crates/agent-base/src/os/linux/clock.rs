//! Clocks of the system. All functions but [`is_runnable`] are async-signal-safe.

/// CPU time of the calling thread in nanoseconds.
pub fn own_cpu_ns() -> Option<u64> {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process in nanoseconds.
pub fn process_cpu_ns() -> Option<u64> {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of a thread of this process in nanoseconds; `None` once it is gone.
pub fn thread_cpu_ns(os_id: u32) -> Option<u64> {
    // The kernel's encoding of "scheduler clock of this thread" (linux/posix-timers_types.h:
    // CPUCLOCK_PERTHREAD_MASK 4, CPUCLOCK_SCHED 2).
    read((!(os_id as libc::clockid_t) << 3) | 6)
}

/// Whether a thread of this process is running or waits for a processor, and for nothing else.
/// Allocates.
pub fn is_runnable(os_id: u32) -> bool {
    let stat = std::fs::read(format!("/proc/self/task/{os_id}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold anything; the state follows it (proc_pid_stat(5)).
    let after_name = stat.iter().rposition(|&byte| byte == b')').and_then(|at| stat.get(at + 2));
    after_name == Some(&b'R')
}

/// Unix time in nanoseconds.
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME).unwrap_or(0)
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    let failed = unsafe { libc::clock_gettime(clock, &mut now) } != 0;
    (!failed).then(|| now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use clrscope_testkit::wait_until;

    use super::*;
    use crate::os::threads::thread_id;

    #[test]
    fn a_thread_that_works_is_runnable_and_one_that_sleeps_is_not() {
        let me = thread_id();
        assert!(is_runnable(me));
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            sender.send(thread_id()).expect("somebody listens");
            let _ = ended.recv();
        });
        let other_id = receiver.recv().expect("its number");
        wait_until("the sleep of the thread", || !is_runnable(other_id));
        drop(end);
        other.join().expect("a thread");
        assert!(!is_runnable(other_id));
    }

    #[test]
    fn a_thread_clock_is_the_threads_own() {
        let mut sum = 0_u64;
        let before = own_cpu_ns().expect("a clock");
        while own_cpu_ns().expect("a clock") < before + 2_000_000 {
            sum = sum.wrapping_add(crate::arch::ticks());
        }
        let me = thread_id();
        let seen = thread_cpu_ns(me).expect("alive");
        assert!(seen >= before + 2_000_000, "{seen} {before} {sum}");
        let gone = std::thread::spawn(thread_id);
        let gone = gone.join().expect("a thread");
        // Joining returns a moment before the kernel forgets the thread.
        wait_until("the end of the thread", || thread_cpu_ns(gone).is_none());
    }
}
