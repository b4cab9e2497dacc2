//! States of threads that don't run, from the system's information on them.
//!
//! No thread is interrupted, as a signal would end some system calls early (`poll`, `epoll_wait`,
//! `nanosleep` and `futex` return EINTR whatever the handler's flags). The stack of a waiting
//! thread does not change, so it is read from outside, once. As long as the thread has not run
//! since then, one record counts all its samples, and the system is asked ever more rarely.
//!
//! Time on a processor comes from the engine's samples. Time waiting for a processor comes from the
//! system's sums, and is attributed to the place where the thread was last seen. If a thread ran at
//! two looks in a row, its waits in between were not seen: their time is added to the next wait
//! that is seen. So is the time from a thread's start to the first look at it, which comes late on
//! a busy machine.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clrscope_agent_base::os::threads::is_among;
use clrscope_recording::layout::thread;
use clrscope_recording::model::{Sample, ThreadState};
use clrscope_recording::writer::{ThreadRecord, monotonic_ns};

use super::frames::{FoundStack, Frames};
use super::known_threads::{KnownThread, KnownThreads};
use super::os::task::{MOST_COPIED, MOST_OF_WAIT, Schedule, StackRanges, Task, copy_stack};
use super::output::Output;
use super::raw::{RawSample, Registers, UNKNOWN_FRAME};
use super::runtime_work::Spans;

/// Longest pause between two looks at an idle thread.
const LONGEST_NS: u64 = 100_000_000;
/// The pause until the next look is at most this fraction of the time for which a thread has been
/// idle.
const PART_OF_WAIT: u64 = 16;
/// Number of attempts to find the stack of an idle thread.
const TRIES: u32 = 6;
/// Time on a processor in which a thread stays close to where it was last seen.
const SHORT_NS: u64 = 500_000;
/// Longest time that one record covers.
const RECORD_NS: u64 = 1_000_000_000;

/// All threads that are observed.
pub(super) struct Poll {
    interval_ns: u64,
    start_ns: u64,
    /// Start of the time for which threads are observed; `None` while recording is stopped.
    since_ns: Option<u64>,
    watched: HashMap<u32, WatchedThread>,
    next_ns: u64,
}

/// Sources of information about a waiting thread.
struct Sources<'a> {
    frames: &'a mut Frames,
    /// Bounds of stacks; empty until a thread needs them.
    stacks: Option<StackRanges>,
    work: &'a Spans,
}

struct WatchedThread {
    task: Task,
    thread: KnownThread,
    schedule: Schedule,
    /// Time until which the thread's time is accounted for.
    until_ns: u64,
    due_ns: u64,
    pause_ns: u64,
    /// Time since which the thread has been idle.
    still_ns: u64,
    state: ThreadState,
    stack: FoundStack,
    /// The last stack that was seen, whether the thread ran or waited.
    seen: FoundStack,
    seen_ns: u64,
    /// The thread's time on a processor when it was last seen waiting.
    ran_when_waiting_ns: Option<u64>,
    /// Whether time waiting for a processor is attributed to the place where the thread was last
    /// seen.
    is_ready_where_seen: bool,
    /// End of the stack, once that was looked up.
    stack_end: Option<usize>,
    /// Number of further attempts to find the stack if it was not found completely. The stack may
    /// contain code that was loaded a moment ago, and the list of libraries is not read at each
    /// look.
    tries: u32,
    /// Time in this state that no record covers yet.
    open_ns: u64,
    /// Time of unseen waits, and time waiting for a processor of a thread whose stack was never
    /// seen.
    unseen_ns: u64,
    ready_ns: u64,
    /// Time waiting for a processor that is not attributed to the place where the thread was last
    /// seen.
    elsewhere_ns: u64,
    /// Time on a processor of samples that no record covers yet.
    ran_ns: u64,
}

impl Poll {
    pub(super) fn new(interval_ns: u64, start_ns: u64) -> Self {
        Self { interval_ns, start_ns, since_ns: Some(start_ns), watched: HashMap::new(), next_ns: 0 }
    }

    /// Time between two looks at a thread that runs from time to time.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns)
    }

    /// Starts observing new threads, and drops those that are gone.
    pub(super) fn meet(
        &mut self,
        alive: &[u32],
        output: &mut Output,
        frames: &mut Frames,
        threads: &mut KnownThreads,
        work: &Spans,
    ) {
        let (now, mut sources) = (monotonic_ns(), Sources { frames, stacks: None, work });
        let since_ns = *self.since_ns.get_or_insert(now);
        for &os_id in alive {
            if self.watched.contains_key(&os_id) {
                continue;
            }
            let (thread, task) = (threads.with_id(os_id), Task::open(os_id));
            let Some((task, schedule)) = task.and_then(|task| task.schedule().map(|schedule| (task, schedule))) else {
                continue;
            };
            if !thread.is_own {
                let mut watched = WatchedThread::new(task, thread, schedule, now);
                watched.began(since_ns);
                watched.find_out(os_id, &mut sources);
                self.watched.insert(os_id, watched);
            }
        }
        let (start_ns, interval_ns) = (self.start_ns, self.interval_ns);
        self.watched.retain(|os_id, watched| {
            let stays = is_among(alive, *os_id);
            if !stays {
                watched.finish(start_ns, interval_ns, output);
            }
            stays
        });
    }

    /// Looks at every thread that is due.
    pub(super) fn round(&mut self, now: u64, output: &mut Output, frames: &mut Frames, work: &Spans) {
        if now < self.next_ns {
            return;
        }
        self.next_ns = now + self.interval_ns / 2;
        let mut sources = Sources { frames, stacks: None, work };
        for (&os_id, watched) in &mut self.watched {
            if watched.due_ns <= now {
                watched.look(os_id, self.interval_ns, self.start_ns, output, &mut sources);
            }
        }
    }

    /// Call it when a running thread was sampled. One record covers as many samples as fit into the
    /// interval.
    pub(super) fn ran(&mut self, os_id: u32, sample: &Sample, found: FoundStack, output: &mut Output) {
        let Some(watched) = self.watched.get_mut(&os_id) else { return };
        // Samples are taken from the engine later than threads are looked at.
        let time_ns = sample.time_ns + self.start_ns;
        if time_ns > watched.seen_ns {
            (watched.seen, watched.seen_ns, watched.ran_when_waiting_ns) = (found, time_ns, None);
        }
        watched.ran_ns += sample.weight_ns;
        let count = watched.ran_ns / self.interval_ns;
        if count > 0 {
            output.write(&Sample { weight_ns: watched.ran_ns, count: count as u32, ..*sample });
            watched.ran_ns = 0;
        }
    }

    /// Records the time that is not recorded yet, when recording stops.
    pub(super) fn finish(&mut self, output: &mut Output) {
        for watched in self.watched.values_mut() {
            if let Some(schedule) = watched.task.schedule() {
                watched.account(schedule, self.start_ns, self.interval_ns, output);
            }
            watched.finish(self.start_ns, self.interval_ns, output);
        }
        self.watched.clear();
        self.since_ns = None;
    }
}

impl WatchedThread {
    fn new(task: Task, thread: KnownThread, schedule: Schedule, now: u64) -> Self {
        Self {
            task,
            thread,
            schedule,
            until_ns: now,
            due_ns: now,
            pause_ns: 0,
            still_ns: now,
            state: ThreadState::Unknown,
            stack: FoundStack::default(),
            seen: FoundStack::default(),
            seen_ns: 0,
            ran_when_waiting_ns: None,
            is_ready_where_seen: true,
            stack_end: None,
            tries: TRIES,
            open_ns: 0,
            unseen_ns: 0,
            ready_ns: 0,
            elsewhere_ns: 0,
            ran_ns: 0,
        }
    }

    /// Adds the time since the thread's beginning, but no earlier than `since_ns`, to the next wait
    /// that is seen. The system's sums begin with the thread. If the thread is older than known
    /// here, they may exceed the time that has passed since.
    fn began(&mut self, since_ns: u64) {
        let created = |record: ThreadRecord| record.u64(thread::CREATED).load(Ordering::Relaxed);
        let Some(created_ns) = self.thread.record.map(created).filter(|&created| created != 0) else { return };
        let passed = self.until_ns.saturating_sub(created_ns.max(since_ns));
        if let Some(rest) = passed.checked_sub(self.schedule.ran_ns.saturating_add(self.schedule.waited_ns)) {
            (self.unseen_ns, self.ready_ns) = (rest, self.schedule.waited_ns);
        }
    }

    fn look(&mut self, os_id: u32, interval_ns: u64, start_ns: u64, output: &mut Output, sources: &mut Sources<'_>) {
        let Some(schedule) = self.task.schedule() else { return };
        let stood_still = schedule == self.schedule && self.state != ThreadState::Unknown;
        self.account(schedule, start_ns, interval_ns, output);
        if stood_still {
            // When the wait ends, the time up to the next look counts as part of it.
            let waited_ns = self.until_ns.saturating_sub(self.still_ns);
            self.pause_ns = (waited_ns / PART_OF_WAIT).clamp(interval_ns, LONGEST_NS.max(interval_ns));
        } else {
            (self.pause_ns, self.tries, self.still_ns) = (interval_ns, TRIES, self.until_ns);
        }
        if !stood_still || !self.stack.is_complete && self.tries > 0 {
            self.tries = self.tries.saturating_sub(1);
            self.close(start_ns, interval_ns, output);
            self.find_out(os_id, sources);
            if self.state != ThreadState::Running {
                self.close_elsewhere(self.stack, start_ns, interval_ns, output);
            }
        }
        if self.open_ns >= RECORD_NS {
            self.close(start_ns, interval_ns, output);
        }
        self.due_ns = self.until_ns + self.pause_ns;
    }

    /// Adds the time since the last look to the state at that look, except the time on a processor
    /// and waiting for one.
    fn account(&mut self, schedule: Schedule, start_ns: u64, interval_ns: u64, output: &mut Output) {
        let now = monotonic_ns();
        let passed = now.saturating_sub(self.until_ns);
        let ran = schedule.ran_ns.saturating_sub(self.schedule.ran_ns);
        let waited = schedule.waited_ns.saturating_sub(self.schedule.waited_ns).min(passed);
        let slices = schedule.slices.saturating_sub(self.schedule.slices);
        if let Some(slice_ns) = ran.checked_div(slices) {
            self.is_ready_where_seen = self.stays_where_seen(schedule, slice_ns);
        }
        self.until_ns = now;
        self.schedule = schedule;
        self.open_ns += passed.saturating_sub(ran).saturating_sub(waited);
        *if self.is_ready_where_seen { &mut self.ready_ns } else { &mut self.elsewhere_ns } += waited;
        if self.elsewhere_ns >= RECORD_NS {
            self.close_elsewhere(FoundStack::default(), start_ns, interval_ns, output);
        }
        if self.seen.number != 0 {
            self.close_ready(start_ns, interval_ns, output);
        }
    }

    /// Whether a thread waits for a processor where it was last seen, given its average time on a
    /// processor of `slice_ns`. Either it was preempted in its work and waits there, or it has just
    /// been woken. A thread that yields its processor all the time (`sched_yield`, as in a spin
    /// lock) is hardly ever seen on one, and its last sample may be from other work.
    fn stays_where_seen(&self, schedule: Schedule, slice_ns: u64) -> bool {
        let since_wait = self.ran_when_waiting_ns.map(|ran_ns| schedule.ran_ns.saturating_sub(ran_ns));
        slice_ns >= SHORT_NS || since_wait.is_some_and(|ran_ns| ran_ns < SHORT_NS)
    }

    /// Records time waiting for a processor, at the place where the thread was last seen.
    fn close_ready(&mut self, start_ns: u64, interval_ns: u64, output: &mut Output) {
        if self.ready_ns >= interval_ns / 2 {
            let ready_ns = std::mem::take(&mut self.ready_ns);
            self.write(ThreadState::Ready, self.seen, ready_ns, start_ns, interval_ns, output);
        }
    }

    /// Records time waiting for a processor that was spent elsewhere: as part of the next wait that
    /// is seen, or at an unknown place.
    fn close_elsewhere(&mut self, stack: FoundStack, start_ns: u64, interval_ns: u64, output: &mut Output) {
        if self.elsewhere_ns >= interval_ns / 2 {
            let elsewhere_ns = std::mem::take(&mut self.elsewhere_ns);
            self.write(ThreadState::Ready, stack, elsewhere_ns, start_ns, interval_ns, output);
        }
    }

    /// Finds out where the thread waits and for what.
    fn find_out(&mut self, os_id: u32, sources: &mut Sources<'_>) {
        self.stack = FoundStack::default();
        let Some(call) = self.task.system_call() else {
            self.state = ThreadState::Running;
            return;
        };
        let known = self.stack_end.filter(|&end| call.sp < end);
        self.stack_end = known
            .or_else(|| sources.stacks.get_or_insert_with(StackRanges::read).around(call.sp).map(|stack| stack.end));
        let registers = Registers { ip: call.ip, sp: call.sp, bp: UNKNOWN_FRAME };
        let mut sample = RawSample { registers, os_id, time_ns: monotonic_ns(), ..RawSample::default() };
        let Some(stack) = self.walk(&mut sample, sources) else {
            self.state = ThreadState::Running;
            return;
        };
        self.stack = stack;
        (self.seen, self.seen_ns) = (self.stack, sample.time_ns);
        self.ran_when_waiting_ns = Some(self.schedule.ran_ns);
        self.open_ns += std::mem::take(&mut self.unseen_ns);
        self.state = match call.state() {
            ThreadState::Lock => {
                let is_suspended = sources.work.is_suspended(os_id, sample.time_ns);
                sources.frames.state_of_last(self.stack, sample.time_ns, is_suspended)
            }
            state => state,
        };
    }

    /// The stack of the thread, given as a sample without words. Reads as much of the stack as
    /// leads to the thread's start. `None` for a thread that has run in the meantime, as its stack
    /// has changed.
    fn walk(&self, sample: &mut RawSample, sources: &mut Sources<'_>) -> Option<FoundStack> {
        let size = self.stack_end.map_or(0, |end| end.saturating_sub(sample.registers.sp));
        let mut most = MOST_COPIED;
        loop {
            sample.stack.clear();
            copy_stack(sample, sample.registers.sp + size.min(most));
            if self.task.schedule() != Some(self.schedule) {
                return None;
            }
            let found = sources.frames.stack_of_sample(sample);
            if found.is_complete || size <= most || most >= MOST_OF_WAIT {
                return Some(found);
            }
            most = MOST_OF_WAIT;
        }
    }

    /// Records the time that no record covers yet. If the thread ran at the last look, this time is
    /// part of the next observation. If nothing is seen for long, the thread is recorded as waiting
    /// where it was seen running.
    fn close(&mut self, start_ns: u64, interval_ns: u64, output: &mut Output) {
        let open_ns = std::mem::take(&mut self.open_ns);
        if self.state == ThreadState::Running {
            self.unseen_ns += open_ns;
            if self.unseen_ns >= RECORD_NS {
                self.give_up_unseen(start_ns, interval_ns, output);
            }
        } else if open_ns >= interval_ns / 2 {
            self.write(self.state_of_wait(), self.stack, open_ns, start_ns, interval_ns, output);
        }
    }

    /// State of a waiting thread: idle if none of the program's code waits. The purpose of the
    /// thread is looked up when the state is recorded, as the thread may be named after it was seen
    /// waiting. The runtime does not name all its own threads.
    fn state_of_wait(&self) -> ThreadState {
        let touched = self.stack.touched;
        let is_runtimes = self.stack.is_complete && touched.runtime_alone;
        let is_idle = is_runtimes || self.thread.waits_for_work() && !touched.own_code;
        if is_idle { ThreadState::Idle } else { self.state }
    }

    fn give_up_unseen(&mut self, start_ns: u64, interval_ns: u64, output: &mut Output) {
        let unseen_ns = std::mem::take(&mut self.unseen_ns);
        if unseen_ns >= interval_ns / 2 {
            self.write(ThreadState::Waiting, self.seen, unseen_ns, start_ns, interval_ns, output);
        }
    }

    /// Records the remaining time, when the thread has ended or recording stops.
    fn finish(&mut self, start_ns: u64, interval_ns: u64, output: &mut Output) {
        self.close(start_ns, interval_ns, output);
        self.close_ready(start_ns, interval_ns, output);
        self.close_elsewhere(FoundStack::default(), start_ns, interval_ns, output);
        self.give_up_unseen(start_ns, interval_ns, output);
    }

    fn write(
        &self,
        state: ThreadState,
        stack: FoundStack,
        weight_ns: u64,
        start_ns: u64,
        interval_ns: u64,
        output: &mut Output,
    ) {
        output.write(&Sample {
            time_ns: self.until_ns.saturating_sub(weight_ns).saturating_sub(start_ns),
            weight_ns,
            thread: self.thread.serial(),
            stack: stack.number,
            count: (weight_ns.saturating_add(interval_ns / 2) / interval_ns).max(1) as u32,
            state,
            complete: stack.is_complete,
            guessed: stack.touched.guessed,
            inlining: stack.touched.inlining,
            kernel: state != ThreadState::Ready,
            ..Sample::default()
        });
    }
}
