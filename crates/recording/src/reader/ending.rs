//! How each process ended: from its own record, from what the launcher saw, or from the lack of
//! signs of life.

use std::time::{SystemTime, UNIX_EPOCH};

use super::process::ReadProcess;
use crate::model::{Exit, Loss, LossReason};
use crate::writer::monotonic_ns;

/// A process without a sign of life for this long has ended: the helper thread gives a sign of life
/// ten times a second, unless the machine is badly overloaded.
const SILENCE_NS: u64 = 10_000_000_000;
/// A process has ended if it gave no sign of life for this long before the launcher saw the end of
/// the root program, by the same clock.
const SILENCE_AT_END_NS: u64 = 2_000_000_000;

/// The end of the root program as seen by the launcher. The launcher does not see the ends of the
/// program's child processes, because their parents wait for them.
pub(super) struct End {
    pub(super) mono_ns: u64,
    pub(super) pid: u32,
    pub(super) exit: Exit,
}

/// The clocks of the reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) mono_ns: u64,
    pub(super) unix_ns: u64,
}

impl Now {
    /// The time now.
    pub(super) fn read() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_nanos()).unwrap_or(0);
        Self { mono_ns: monotonic_ns(), unix_ns: u64::try_from(unix).unwrap_or(u64::MAX) }
    }
}

/// Enters the end that the launcher saw, and marks the processes that ended without a record of
/// their end.
pub(super) fn settle(processes: &mut [ReadProcess], root_end: Option<&End>, now: Now) {
    if let Some(end) = root_end {
        // A process that replaced itself (`exec`) kept its id: the last one ended.
        let same = processes.iter_mut().filter(|read| read.process.pid == end.pid && read.mono_start <= end.mono_ns);
        if let Some(ended) = same.last() {
            ended.process.exit = Some(end.exit);
        }
    }
    let root_end = root_end.map(|end| end.mono_ns);
    for read in processes {
        if ended_silently(read, root_end, now) {
            mark(read);
        }
    }
}

/// Whether the process ended without notifying its agent. A process that no longer records gives no
/// signs of life, so their absence means nothing.
fn ended_silently(read: &ReadProcess, root_end: Option<u64>, now: Now) -> bool {
    let Some(last) = read.mono_last else { return false };
    if read.process.complete || read.stopped {
        return false;
    }
    let seen_to_end = read.process.exit.is_some();
    let silent_before_end = root_end.is_some_and(|end| end.saturating_sub(last) > SILENCE_AT_END_NS);
    seen_to_end || silent_before_end || silent_until_now(read, last, now)
}

/// Both clocks must agree: the monotonic clock means nothing on another machine or after a restart,
/// and the wall clock may be set while the program runs.
fn silent_until_now(read: &ReadProcess, last: u64, now: Now) -> bool {
    let last_unix = read.unix_start.saturating_add(last.saturating_sub(read.mono_start));
    now.unix_ns.saturating_sub(last_unix) > SILENCE_NS && now.mono_ns.abs_diff(last) > SILENCE_NS
}

fn mark(read: &mut ReadProcess) {
    let at = read.process.duration_ns;
    if read.process.losses.iter().all(|loss| loss.reason != LossReason::AbruptEnd) {
        read.process.losses.push(Loss::new(LossReason::AbruptEnd, 1, at, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Process;

    const SECOND: u64 = 1_000_000_000;

    /// Process 7, from 100 s to a last sign of life at 160 s.
    fn process() -> ReadProcess {
        ReadProcess {
            process: Process { pid: 7, duration_ns: 60 * SECOND, ..Process::default() },
            mono_start: 100 * SECOND,
            mono_last: Some(160 * SECOND),
            unix_start: 5_000 * SECOND,
            stopped: false,
            given: String::new(),
            filled: String::new(),
        }
    }

    fn end(pid: u32, seconds: u64) -> End {
        End { mono_ns: seconds * SECOND, pid, exit: Exit::Signal(9) }
    }

    /// Whether `read` is marked, when read `seconds` after its last sign of life.
    fn marked(read: ReadProcess, root_end: Option<End>, seconds: u64) -> bool {
        let mut processes = [read];
        let now = Now { mono_ns: (160 + seconds) * SECOND, unix_ns: (5_060 + seconds) * SECOND };
        settle(&mut processes, root_end.as_ref(), now);
        processes[0].process.has_lost(LossReason::AbruptEnd)
    }

    #[test]
    fn a_killed_root_is_marked_though_the_launcher_saw_it() {
        assert!(marked(process(), Some(end(7, 160)), 0));
    }

    #[test]
    fn a_killed_program_whose_launcher_was_killed_too_is_marked_after_a_while() {
        assert!(!marked(process(), None, 9));
        assert!(marked(process(), None, 11));
    }

    #[test]
    fn a_child_that_was_silent_before_the_root_ended_is_marked() {
        assert!(marked(process(), Some(end(1, 163)), 3));
        assert!(!marked(process(), Some(end(1, 161)), 3));
    }

    #[test]
    fn silence_after_a_word_is_no_sign() {
        let mut ended = process();
        ended.process.complete = true;
        assert!(!marked(ended, None, 1_000));
        assert!(!marked(ReadProcess { stopped: true, ..process() }, None, 1_000));
        assert!(!marked(ReadProcess { mono_last: None, ..process() }, None, 1_000));
    }

    #[test]
    fn one_clock_that_was_set_is_no_sign() {
        let mut processes = [process()];
        settle(&mut processes, None, Now { mono_ns: 161 * SECOND, unix_ns: 9_000 * SECOND });
        assert_eq!(processes[0].process.losses, []);
    }

    #[test]
    fn of_two_processes_with_one_id_the_later_one_ended() {
        let mut processes = [process(), ReadProcess { mono_start: 120 * SECOND, ..process() }];
        settle(&mut processes, Some(&end(7, 160)), Now { mono_ns: 160 * SECOND, unix_ns: 5_060 * SECOND });
        assert_eq!(processes.map(|read| read.process.exit), [None, Some(Exit::Signal(9))]);
    }
}
