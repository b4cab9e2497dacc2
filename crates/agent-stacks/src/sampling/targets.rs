//! The threads that timers sample, and a timer for each of them.
//!
//! A thread that blocks the signal gets no signals until it unblocks the signal. A signal sent in
//! the meantime would stay pending, and the thread would receive it when it waits for signals
//! itself (`sigwait`). A thread that begins to block the signal is noticed by the lack of samples.
//! One signal may be pending by then; on Linux before 6.13 it can't be withdrawn.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::Ordering;

use clrscope_agent_base::os::threads::{self, is_among};
use clrscope_recording::writer::monotonic_ns;

use super::os::signal::{self, Shared};
use super::os::task::{self, BETWEEN_READINGS, StackRanges, Task};
use super::os::timers::Timer;

/// Most threads whose clocks are read in each round: reading takes a microsecond each.
const FEW: usize = 32;

/// The threads that have a timer.
pub(super) struct Targets {
    shared: &'static Shared,
    places: HashMap<u32, ThreadSlot>,
    /// Returned slots, and the first slot that was never used. The last slot is shared when the
    /// table is full.
    free: Vec<usize>,
    fresh: usize,
    /// Number of threads that got no timer since the last query.
    refused: u64,
    /// Threads that are not sampled: no timer is tried for them again.
    passed_over: HashSet<u32>,
    /// Bounds of stacks, from the last look-up.
    stacks: Option<StackRanges>,
}

/// A thread's entry in the table.
#[derive(Clone, Copy)]
struct ThreadSlot {
    index: usize,
    /// Monotonic nanoseconds when the thread was first seen.
    met_ns: u64,
    /// Whether the thread blocks the signal, so that its timer is stopped.
    is_blocked: bool,
    /// Whether the thread has used CPU time while it blocked the signal.
    was_missed: bool,
}

impl Targets {
    pub(super) fn new(shared: &'static Shared) -> Self {
        Self {
            shared,
            places: HashMap::new(),
            free: Vec::new(),
            fresh: 0,
            refused: 0,
            passed_over: HashSet::new(),
            stacks: None,
        }
    }

    /// Registers the calling thread. `stack` are the bounds of its stack.
    pub(super) fn meet_this(&mut self, stack: Option<Range<usize>>) {
        self.meet(threads::thread_id(), stack, signal::is_blocked_here);
    }

    /// Registers a thread with the bounds of its stack, where they are known. `is_blocked`: whether
    /// it blocks the signal.
    fn meet(&mut self, os_id: u32, stack: Option<Range<usize>>, is_blocked: impl FnOnce() -> bool) {
        if let Some(place) = self.places.get(&os_id) {
            self.bounds(place.index, stack);
            return;
        }
        if self.passed_over.contains(&os_id) {
            return;
        }
        let Some(index) = self.free_place() else {
            self.refused += 1;
            return;
        };
        match Timer::of_thread(os_id, signal::number(), signal::value_of(index)) {
            Ok(timer) => {
                let target = &self.shared.targets[index];
                target
                    .cpu_ns
                    .store(clrscope_agent_base::os::clock::thread_cpu_ns(os_id).unwrap_or(0), Ordering::Relaxed);
                target.low.store(0, Ordering::Relaxed);
                target.end.store(0, Ordering::Relaxed);
                self.bounds(index, stack);
                let number = (timer.number() as u64 + 1) << 32;
                target.who.store(number | u64::from(os_id), Ordering::Release);
                let met_ns = monotonic_ns();
                let is_blocked = is_blocked();
                self.places.insert(os_id, ThreadSlot { index, met_ns, is_blocked, was_missed: false });
                if !is_blocked {
                    self.shared.arm(target, timer, met_ns ^ u64::from(os_id) << 32);
                }
            }
            Err(error) => {
                self.free.push(index);
                // A thread that has ended in the meantime needs none.
                if error.raw_os_error() == Some(libc::EAGAIN) {
                    self.refused += 1;
                    self.passed_over.insert(os_id);
                }
            }
        }
    }

    fn free_place(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| {
            let fresh = (self.fresh < self.shared.targets.len()).then_some(self.fresh)?;
            self.fresh += 1;
            Some(fresh)
        })
    }

    fn bounds(&self, index: usize, stack: Option<Range<usize>>) {
        if let Some(stack) = stack {
            self.shared.targets[index].low.store(stack.start, Ordering::Relaxed);
            self.shared.targets[index].end.store(stack.end & !7, Ordering::Release);
        }
    }

    /// Finds out the bounds of a thread's stack. The thread's stack pointer was `sp`, perhaps
    /// outside of the known bounds.
    pub(super) fn find_stack(&mut self, os_id: u32, sp: usize) {
        let Some(&ThreadSlot { index, met_ns, .. }) = self.places.get(&os_id) else { return };
        let target = &self.shared.targets[index];
        let known = target.low.load(Ordering::Relaxed)..target.end.load(Ordering::Relaxed);
        if !known.contains(&sp) {
            let stack = self.stack_around(sp, met_ns);
            self.bounds(index, stack);
        }
    }

    /// Bounds of the stack around an address, for a thread that was there by `since_ns`. An earlier
    /// list may describe another stack, and reading a stack with wrong bounds reads unmapped
    /// memory.
    fn stack_around(&mut self, address: usize, since_ns: u64) -> Option<Range<usize>> {
        let known = self.stacks.as_ref().filter(|stacks| stacks.read_ns > since_ns);
        if let Some(found) = known.and_then(|stacks| stacks.around(address)) {
            return Some(found);
        }
        let now = monotonic_ns();
        let too_early = |stacks: &StackRanges| now < stacks.read_ns + BETWEEN_READINGS * stacks.took_ns;
        if self.stacks.as_ref().is_some_and(too_early) {
            return None;
        }
        self.stacks.insert(StackRanges::read()).around(address)
    }

    /// Registers new threads, and drops those that have ended. `is_own` tells threads of the
    /// profiler, which get no timer.
    pub(super) fn update(&mut self, alive: &[u32], is_own: impl Fn(u32) -> bool) {
        let is_new = |os_id: &u32| !self.places.contains_key(os_id) && !self.passed_over.contains(os_id);
        let (own, new): (Vec<u32>, Vec<u32>) = alive.iter().copied().filter(is_new).partition(|&os_id| is_own(os_id));
        self.passed_over.extend(own);
        // If the masks of all threads were read first, the last of many threads would wait long for
        // its timer.
        let are_few = new.len() <= FEW;
        new.iter().for_each(|&os_id| self.meet(os_id, None, || are_few && blocks(os_id)));
        if !are_few {
            new.iter().for_each(|&os_id| self.look_at_mask(os_id));
        }
        // All threads are registered before the list of mappings is read, once. For waiting threads
        // the system gives the stack pointer; for others their first sample does.
        for os_id in new {
            if let Some(call) = Task::open(os_id).and_then(|task| task.system_call()) {
                self.find_stack(os_id, call.sp);
            }
        }
        let ended: Vec<u32> = self.places.keys().copied().filter(|&os_id| !is_among(alive, os_id)).collect();
        ended.into_iter().for_each(|os_id| self.forget(os_id));
        self.passed_over.retain(|&os_id| is_among(alive, os_id));
        self.follow_masks();
    }

    /// Stops the timer of a thread that blocks the signal.
    fn look_at_mask(&mut self, os_id: u32) {
        let Some(place) = self.places.get_mut(&os_id).filter(|_| blocks(os_id)) else { return };
        place.is_blocked = true;
        if let Some(timer) = timer_of(self.shared.targets[place.index].who.load(Ordering::Acquire)) {
            timer.set(0);
        }
    }

    /// If there are few threads, handles those that block the signal. To be called more often than
    /// [`update`](Self::update).
    pub(super) fn look_at_few(&mut self) {
        if self.places.len() <= FEW {
            self.follow_masks();
        }
    }

    /// Stops the timers of threads that now block the signal, and restarts those of the others.
    fn follow_masks(&mut self) {
        let Self { shared, places, refused, .. } = self;
        let late_ns = shared.late_ns();
        for (&os_id, place) in places {
            let target = &shared.targets[place.index];
            let Some(timer) = timer_of(target.who.load(Ordering::Acquire)) else { continue };
            let cpu_ns = clrscope_agent_base::os::clock::thread_cpu_ns(os_id).unwrap_or(0);
            let is_late = cpu_ns.saturating_sub(target.cpu_ns.load(Ordering::Relaxed)) > late_ns;
            // Reading the status file of a thread costs a hundred times as much as reading its
            // clock.
            if (is_late || place.is_blocked) && blocks(os_id) != place.is_blocked {
                place.is_blocked = !place.is_blocked;
                match place.is_blocked {
                    true => timer.set(0),
                    false => shared.arm(target, timer, monotonic_ns() ^ u64::from(os_id) << 32),
                }
            }
            if is_late && place.is_blocked && !place.was_missed {
                place.was_missed = true;
                *refused += 1;
            }
        }
    }

    fn forget(&mut self, os_id: u32) {
        if let Some(ThreadSlot { index, .. }) = self.places.remove(&os_id) {
            if let Some(timer) = timer_of(self.shared.targets[index].who.swap(0, Ordering::AcqRel)) {
                timer.delete();
            }
            self.free.push(index);
        }
    }

    /// Deletes all timers, and creates no more.
    pub(super) fn give_up(&mut self) {
        self.clear();
        self.free.clear();
        self.fresh = self.shared.targets.len();
    }

    /// Deletes all timers.
    pub(super) fn clear(&mut self) {
        let all: Vec<u32> = self.places.keys().copied().collect();
        all.into_iter().for_each(|os_id| self.forget(os_id));
        self.passed_over.clear();
    }

    pub(super) fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }
}

/// The timer of a target, from its `who` word.
fn timer_of(who: u64) -> Option<Timer> {
    ((who >> 32) as i32).checked_sub(1).map(Timer::with_number)
}

/// Whether a thread blocks the signal; false for a thread that is gone.
fn blocks(os_id: u32) -> bool {
    task::blocks(os_id, signal::number()).unwrap_or(false)
}

/// Whether a thread belongs to the profiler, by its name.
pub(super) fn is_own(os_id: u32) -> bool {
    threads::name_of(os_id).starts_with("clrscope")
}
