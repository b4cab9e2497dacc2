//! The threads that timers sample: which there are, and a timer for each.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

use clrscope_recording::writer::monotonic_ns;

use super::os::signal::{self, Shared};
use super::os::task::stack_around;
use super::os::timers::Timer;
use crate::os::{process, threads};

/// The threads with a timer.
pub(super) struct Targets {
    shared: &'static Shared,
    places: HashMap<u32, usize>,
    free: Vec<usize>,
    /// Threads that no timer could be had for since this was last asked.
    refused: u64,
    /// Threads that are not to be sampled: no timer is tried for them again.
    passed_over: Vec<u32>,
}

impl Targets {
    pub(super) fn new(shared: &'static Shared) -> Self {
        let free = (0..shared.targets.len()).rev().collect();
        Self { shared, places: HashMap::new(), free, refused: 0, passed_over: Vec::new() }
    }

    /// A thread with the bounds of its stack, where they are known.
    pub(super) fn meet(&mut self, os_id: u32, stack: Option<Range<usize>>) {
        if let Some(&place) = self.places.get(&os_id) {
            self.bounds(place, stack);
            return;
        }
        if self.passed_over.contains(&os_id) {
            return;
        }
        let Some(place) = self.free.pop() else {
            self.refused += 1;
            return;
        };
        match Timer::of_thread(os_id, signal::number(), signal::value_of(place)) {
            Ok(timer) => {
                let target = &self.shared.targets[place];
                target.cpu_ns.store(crate::os::clock::thread_cpu_ns(os_id).unwrap_or(0), Ordering::Relaxed);
                target.low.store(0, Ordering::Relaxed);
                target.end.store(0, Ordering::Relaxed);
                self.bounds(place, stack);
                let number = (timer.number() as u64 + 1) << 32;
                target.who.store(number | u64::from(os_id), Ordering::Release);
                self.places.insert(os_id, place);
                self.shared.arm(target, timer, monotonic_ns() ^ u64::from(os_id) << 32);
            }
            Err(error) => {
                self.free.push(place);
                // A thread that is gone meanwhile needs none.
                if error.raw_os_error() == Some(libc::EAGAIN) {
                    self.refused += 1;
                    self.passed_over.push(os_id);
                }
            }
        }
    }

    fn bounds(&self, place: usize, stack: Option<Range<usize>>) {
        if let Some(stack) = stack {
            self.shared.targets[place].low.store(stack.start, Ordering::Relaxed);
            self.shared.targets[place].end.store(stack.end & !7, Ordering::Release);
        }
    }

    /// A sample of the thread came without a stack, from where its stack pointer stood: finds out where that stack lies.
    pub(super) fn find_stack(&self, os_id: u32, sp: usize) {
        let Some(&place) = self.places.get(&os_id) else { return };
        self.bounds(place, stack_around(&process::mappings(), sp));
    }

    /// Meets new threads, and lets go of those that ended. `is_own`: threads of the profiler's own.
    pub(super) fn update(&mut self, alive: &[u32], is_own: impl Fn(u32) -> bool) {
        for &os_id in alive {
            if !self.places.contains_key(&os_id) && !self.passed_over.contains(&os_id) {
                if is_own(os_id) { self.passed_over.push(os_id) } else { self.meet(os_id, None) }
            }
        }
        let ended: Vec<u32> = self.places.keys().copied().filter(|os_id| !alive.contains(os_id)).collect();
        ended.into_iter().for_each(|os_id| self.forget(os_id));
        self.passed_over.retain(|os_id| alive.contains(os_id));
    }

    fn forget(&mut self, os_id: u32) {
        if let Some(place) = self.places.remove(&os_id) {
            let who = self.shared.targets[place].who.swap(0, Ordering::AcqRel);
            if let Some(number) = ((who >> 32) as i32).checked_sub(1) {
                Timer::with_number(number).delete();
            }
            self.free.push(place);
        }
    }

    /// Deletes all timers, and makes no more.
    pub(super) fn give_up(&mut self) {
        self.clear();
        self.free.clear();
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

/// Whether a thread is one of the profiler's own, by its name.
pub(super) fn is_own(os_id: u32) -> bool {
    threads::name_of(os_id).starts_with("clrscope")
}
