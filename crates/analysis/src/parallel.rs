//! Threads of a recording in parallel, a few at a time: each worker holds one decoded tree.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No more trees than this are decoded at once, however many processors there are.
const MAX_WORKERS: usize = 4;

/// Calls `step` for every number below `count`, each on some worker's state, and returns the states
/// in no particular order: what is made of them must not depend on it.
pub(crate) fn fold<S: Send>(count: usize, new: impl Fn() -> S + Sync, step: impl Fn(&mut S, usize) + Sync) -> Vec<S> {
    let workers = rayon::current_num_threads().min(MAX_WORKERS).min(count).max(1);
    let next = AtomicUsize::new(0);
    let states = Mutex::new(Vec::with_capacity(workers));
    rayon::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|_| {
                let mut state = new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    step(&mut state, at);
                }
                states.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(state);
            });
        }
    });
    states.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
