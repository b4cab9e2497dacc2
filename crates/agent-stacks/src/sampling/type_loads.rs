//! Functions of the runtime that load types, found from the stacks of its callbacks about types.
//!
//! The runtime's library has no symbols. A pair of callbacks says when a type is loaded, not what
//! was done for it before. But a loaded type is reported from within the function that loads it. So
//! the functions that the stacks of all such callbacks have in common, whatever code they come
//! from, are the runtime's loader. Samples whose stacks contain these functions show the load of a
//! type.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::os::task::sample_part_here;
use super::raw::RawSample;

/// Most bytes of a stack that are read, more than the runtime's frames between a callback and the
/// code that needed the type.
const BYTES: usize = 6 << 10;
/// Stacks that are taken between two rounds of the draining thread. They may be all that are
/// wanted, because on a busy machine a short program may be over before the third round.
const IN_A_ROUND: usize = MOST;
/// Least number of stacks before any conclusion, and number of stacks after which no more are
/// taken.
const LEAST: usize = 24;
const MOST: usize = 64;
/// Least number of functions that have called the runtime's loader, directly or not, each from
/// another kind or place of code.
const LEAST_ENTRIES: usize = 3;
/// One in this many stacks may have come another way.
const EXCEPTION: usize = 32;

/// Collects stacks of callbacks about types.
pub(super) struct TypeLoads {
    /// Number of stacks to be taken.
    wanted: AtomicUsize,
    taken: Mutex<Vec<RawSample>>,
}

impl Default for TypeLoads {
    /// Requests stacks from the program's start on, as they are needed for the first samples.
    fn default() -> Self {
        Self { wanted: AtomicUsize::new(IN_A_ROUND), taken: Mutex::default() }
    }
}

impl TypeLoads {
    /// Call it when a type is being loaded on the calling thread.
    pub(super) fn told(&self) {
        let take = |wanted: usize| wanted.checked_sub(1);
        if self.wanted.load(Ordering::Relaxed) == 0
            || self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err()
        {
            return;
        }
        if let Some(sample) = sample_part_here(BYTES) {
            self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        }
    }

    /// Returns the stacks that were taken since the last call. Requests a few more unless
    /// `is_enough`.
    pub(super) fn take_samples(&self, is_enough: bool) -> Vec<RawSample> {
        self.wanted.store(if is_enough { 0 } else { IN_A_ROUND }, Ordering::Relaxed);
        std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The functions of the runtime that are known to load types.
#[derive(Debug, Default)]
pub(super) struct TypeLoaders {
    /// Functions on the stacks seen so far, each with its number of stacks.
    seen: Vec<(Range<usize>, usize)>,
    stacks: usize,
    /// Outermost functions of the runtime on these stacks, by start address.
    entries: HashSet<usize>,
    functions: Vec<Range<usize>>,
}

impl TypeLoaders {
    /// Whether an address lies in one of the functions.
    pub(super) fn hold(&self, address: usize) -> bool {
        self.functions.iter().any(|function| function.contains(&address))
    }

    /// Whether more stacks would teach nothing new.
    pub(super) fn is_enough(&self) -> bool {
        self.stacks >= MOST
    }

    /// Learns from a callback's stack. `run` holds the runtime's functions on it, from the one that
    /// made the callback outwards, up to code outside the runtime.
    pub(super) fn learn(&mut self, run: &[Range<usize>]) {
        let Some(entry) = run.last() else { return };
        self.stacks += 1;
        self.entries.insert(entry.start);
        for (at, function) in run.iter().enumerate() {
            if run[..at].contains(function) {
                continue;
            }
            match self.seen.iter_mut().find(|(known, _)| known == function) {
                Some((_, count)) => *count += 1,
                None => self.seen.push((function.clone(), 1)),
            }
        }
        if self.stacks >= LEAST && self.entries.len() >= LEAST_ENTRIES {
            let least = self.stacks - self.stacks / EXCEPTION;
            let common =
                self.seen.iter().filter(|(function, count)| *count >= least && !self.entries.contains(&function.start));
            self.functions = common.map(|(function, _)| function.clone()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(starts: &[usize]) -> Vec<Range<usize>> {
        starts.iter().map(|&start| start..start + 0x10).collect()
    }

    #[test]
    fn what_all_callbacks_about_types_come_through_is_the_loader() {
        let mut loaders = TypeLoaders::default();
        let reports = [0x100, 0x200];
        for round in 0..LEAST {
            assert!(!loaders.hold(0x205), "{round}: too early");
            let from: &[usize] = match round % 4 {
                0 => &[0x300, 0x400],
                1 => &[0x300, 0x500],
                2 => &[0x200, 0x300, 0x600],
                _ => &[0x500],
            };
            loaders.learn(&run(&[&reports, from].concat()));
        }
        let held = [0x105, 0x205, 0x305, 0x405, 0x505, 0x605, 0x210].map(|address| loaders.hold(address));
        assert_eq!(held, [true, true, false, false, false, false, false]);
        // One of many stacks may come another way.
        (LEAST..EXCEPTION).for_each(|_| loaders.learn(&run(&[0x100, 0x200, 0x500])));
        loaders.learn(&run(&[0x100, 0x700]));
        assert!(loaders.hold(0x205) && !loaders.is_enough());
    }

    #[test]
    fn where_all_types_come_from_one_place_nothing_is_said() {
        let mut loaders = TypeLoaders::default();
        (0..MOST).for_each(|_| loaders.learn(&run(&[0x100, 0x200, 0x300])));
        assert!(!loaders.hold(0x205) && loaders.is_enough());
        loaders.learn(&[]);
        assert_eq!(loaders.stacks, MOST);
    }

    #[test]
    fn stacks_are_taken_as_long_as_somebody_wants_them() {
        let loads = TypeLoads::default();
        loads.told();
        assert_eq!(loads.take_samples(false).len(), 1, "from the start on");
        (0..2 * IN_A_ROUND).for_each(|_| loads.told());
        let taken = loads.take_samples(true);
        assert!(taken.len() == IN_A_ROUND && taken.iter().all(|sample| sample.stack.len() <= BYTES / 8));
        loads.told();
        assert!(loads.take_samples(true).is_empty());
    }
}
