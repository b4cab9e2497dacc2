//! Single threads of this process, as the system's files describe them.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

use clr_profiler::internals::CurrentStack;
use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_agent_base::os::process;
use clrscope_recording::model::ThreadState;
use clrscope_recording::writer::monotonic_ns;

use crate::sampling::arch::current;
use crate::sampling::raw::RawSample;

/// Most bytes of a stack that are copied.
pub(crate) const MOST_COPIED: usize = 64 << 10;
/// Most bytes of an idle thread's stack that are copied.
pub(crate) const MOST_OF_WAIT: usize = 1 << 20;

/// How long a thread has run, and how long it has waited for a processor, since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Schedule {
    pub(crate) ran_ns: u64,
    pub(crate) waited_ns: u64,
    /// How often the thread was put on a processor.
    pub(crate) slices: u64,
}

/// The system call in which a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemCall {
    number: i64,
    pub sp: usize,
    pub(crate) ip: usize,
}

/// The files of a thread, kept open, because opening costs several times as much as reading.
pub(crate) struct Task {
    os_id: u32,
    schedule: File,
}

impl Task {
    /// Opens the files of a thread; `None` if the thread is gone.
    pub(crate) fn open(os_id: u32) -> Option<Self> {
        Some(Self { os_id, schedule: File::open(format!("/proc/self/task/{os_id}/schedstat")).ok()? })
    }

    /// The file descriptor that is kept open.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.schedule.as_raw_fd()
    }

    /// Times of the thread; `None` if the thread is gone.
    pub(crate) fn schedule(&self) -> Option<Schedule> {
        let mut text = [0; 96];
        let bytes = self.schedule.read_at(&mut text, 0).ok().filter(|&bytes| bytes > 0)?;
        let mut words = std::str::from_utf8(&text[..bytes]).ok()?.split_ascii_whitespace().map(str::parse);
        let mut next = || words.next()?.ok();
        Some(Schedule { ran_ns: next()?, waited_ns: next()?, slices: next()? })
    }

    /// The system call in which the thread waits; `None` if the thread runs, or the system does not
    /// say.
    pub(crate) fn system_call(&self) -> Option<SystemCall> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{}/syscall", self.os_id)).ok()?;
        SystemCall::parse(&text)
    }
}

/// Whether a thread blocks a signal; `None` if the thread is gone.
pub(crate) fn blocks(os_id: u32, signal: libc::c_int) -> Option<bool> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{os_id}/status")).ok()?;
    is_blocked_in(&text, signal)
}

/// Whether the status file of a thread says that it blocks a signal.
fn is_blocked_in(status: &str, signal: libc::c_int) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    Some(u64::from_str_radix(mask.trim(), 16).ok()? >> (signal - 1) & 1 == 1)
}

impl SystemCall {
    /// `number six-arguments stack-pointer instruction`; outside of a system call `-1 stack-pointer
    /// instruction`.
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let [number, .., sp, ip] = words.as_slice() else { return None };
        let address = |word: &str| usize::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        Some(Self { number: number.parse().ok()?, sp: address(sp)?, ip: address(ip)? })
    }

    /// State of a thread that waits in this system call.
    pub(crate) fn state(self) -> ThreadState {
        match self.number {
            libc::SYS_futex => ThreadState::Lock,
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => ThreadState::Sleeping,
            libc::SYS_read
            | libc::SYS_write
            | libc::SYS_readv
            | libc::SYS_writev
            | libc::SYS_pread64
            | libc::SYS_pwrite64
            | libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_connect
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_openat
            | libc::SYS_flock => ThreadState::Io,
            _ => ThreadState::Waiting,
        }
    }
}

/// A sample of the calling thread with its whole stack; `None` if the system does not give the end
/// of the stack.
pub(crate) fn sample_here() -> Option<RawSample> {
    let end = CurrentStack::bounds()?.end;
    Some(sample_below(|_| end))
}

/// A sample of the calling thread with this many bytes of its stack; `None` if the stack has fewer.
/// Does not ask for the end of the stack, because on a program's first thread the C library would
/// read the list of mappings.
pub(crate) fn sample_part_here(bytes: usize) -> Option<RawSample> {
    Some(sample_below(|sp| sp.saturating_add(bytes))).filter(|sample| !sample.stack.is_empty())
}

/// The calling thread as a sample with its stack up to an address, which is computed from the stack
/// pointer.
#[inline(never)]
fn sample_below(end: impl FnOnce(usize) -> usize) -> RawSample {
    let registers = current();
    let mut sample = RawSample { registers, time_ns: monotonic_ns(), ..RawSample::default() };
    copy_stack(&mut sample, end(registers.sp));
    sample
}

/// Adds the words of a thread's stack from the stack pointer up to `end` to its sample, at most
/// [`MOST_OF_WAIT`] bytes.
pub(crate) fn copy_stack(sample: &mut RawSample, end: usize) {
    let start = sample.registers.sp & !7;
    let mut bytes = vec![0; end.saturating_sub(start).min(MOST_OF_WAIT) & !7];
    if copy_if_there(start, &mut bytes) {
        sample.stack.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
    }
}

/// Pause between two readings of the list of mappings, as a multiple of the duration of a reading.
pub(crate) const BETWEEN_READINGS: u64 = 20;

/// Bounds of stacks, found in the system's list of mappings.
pub(crate) struct StackRanges {
    /// In ascending order.
    mapped: Vec<Range<usize>>,
    /// When the reading began, in monotonic nanoseconds, and how long it took.
    pub read_ns: u64,
    pub(crate) took_ns: u64,
}

impl StackRanges {
    /// Reads the list, which takes milliseconds in a program with thousands of threads.
    pub(crate) fn read() -> Self {
        let read_ns = monotonic_ns();
        let mapped =
            process::mappings().lines().filter_map(|line| Some(process::Mapping::parse(line)?.addresses)).collect();
        Self { mapped, read_ns, took_ns: monotonic_ns().saturating_sub(read_ns) }
    }

    /// Bounds of the stack that contains an address.
    pub(crate) fn around(&self, address: usize) -> Option<Range<usize>> {
        let after = self.mapped.partition_point(|range| range.start <= address);
        self.mapped.get(after.checked_sub(1)?).filter(|range| range.contains(&address)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use clrscope_testkit::wait_until;

    use super::*;

    #[test]
    fn calls_of_the_kernel_are_told_with_their_state() {
        let call = SystemCall::parse("202 0x7f 0x80 0x0 0x0 0x0 0xffffffff 0x7ffe10 0x7f33\n").expect("a call");
        assert_eq!((call.state(), call.sp, call.ip), (ThreadState::Lock, 0x7ffe10, 0x7f33));
        assert_eq!(SystemCall::parse("-1 0x10 0x20\n").expect("no call").state(), ThreadState::Waiting);
        assert_eq!((SystemCall::parse("running\n"), SystemCall::parse("")), (None, None));
    }

    #[test]
    fn blocked_signals_are_those_of_the_mask() {
        let status = "Name:\tx\nSigPnd:\tffffffffffffffff\nSigBlk:\t0000000200000001\nSigIgn:\t0\n";
        let blocked = [1, 2, 33, 34, 35].map(|signal| is_blocked_in(status, signal));
        assert_eq!(blocked, [Some(true), Some(false), Some(false), Some(true), Some(false)]);
        assert_eq!(is_blocked_in("Name:\tx\n", 1), None);
    }

    #[test]
    fn a_stack_lies_around_what_is_on_it() {
        let here = 0_u64;
        let stacks = StackRanges::read();
        let found = stacks.around((&raw const here).addr()).expect("a mapping");
        let own = CurrentStack::bounds().expect("a stack");
        assert!(found.contains(&(own.end - 1)) && found.start <= (&raw const here).addr(), "{found:?} {own:?}");
        assert_eq!((stacks.around(0), stacks.around(usize::MAX)), (None, None));
        assert!(process::Mapping::parse("nonsense").is_none());
    }

    #[test]
    fn a_thread_that_works_has_run_and_runs() {
        let (is_over, os_id) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                os_id.store(clrscope_agent_base::os::threads::thread_id(), Ordering::Release);
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            wait_until("the thread", || os_id.load(Ordering::Acquire) != 0);
            let task = Task::open(os_id.load(Ordering::Acquire)).expect("its files");
            let before = task.schedule().expect("alive");
            wait_until("its work", || task.schedule().expect("alive").ran_ns > before.ran_ns + 5_000_000);
            let runs = task.system_call().is_none_or(|call| call.number == -1);
            is_over.store(true, Ordering::Relaxed);
            assert!(runs, "a thread that waits for a processor is in no call");
        });
    }
}
