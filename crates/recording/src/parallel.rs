//! Work that several threads share. The threads read and sum parts of a recording a few at a time;
//! each worker holds the data of one part.

use std::cell::Cell;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use memmap2::MmapMut;

/// Maximum number of workers, however many processors there are: each may hold a decoded tree.
const MAX_WORKERS: usize = 4;

thread_local! {
    /// The processors that [`with_processors`] lets its closure use; `None` for all processors.
    static PROCESSORS: Cell<Option<NonZero<usize>>> = const { Cell::new(None) };
}

/// Calls `work`. Reading and analysis that `work` does on the calling thread use at most `count`
/// processors. The results are the same for every `count`: invariant 9 of ARCHITECTURE.md.
pub fn with_processors<T>(count: NonZero<usize>, work: impl FnOnce() -> T) -> T {
    /// Restores the caller's count, also when `work` panics.
    struct Restore(Option<NonZero<usize>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            PROCESSORS.set(self.0);
        }
    }
    let _restore = Restore(PROCESSORS.replace(Some(count)));
    work()
}

/// The most address space that a thread needs to start.
const ROOM: usize = 4 << 20;

/// Whether there is memory for a thread. A thread that runs out of memory while it starts ends the
/// process, so the caller allocates nothing until the thread has started.
fn has_room() -> bool {
    MmapMut::map_anon(ROOM).is_ok()
}

fn processors() -> usize {
    let known = PROCESSORS.get().or_else(|| thread::available_parallelism().ok());
    known.map_or(1, NonZero::get)
}

/// Calls `step` for every number below `count`, each time with the state of one of the workers, and
/// returns the states of all workers in no particular order. The final result must not depend on
/// that order.
///
/// # Panics
/// Passes on a panic of `step` on any worker.
pub fn fold<S: Send>(count: usize, new: impl Fn() -> S + Sync, step: impl Fn(&mut S, usize) + Sync) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut state = new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return state;
            }
            step(&mut state, at);
        }
    };
    let workers = if count < 2 { 1 } else { processors().min(MAX_WORKERS).min(count) };
    let (gate, (tell, started)) = (Mutex::new(()), channel());
    let work_of_another = || {
        let _ = tell.send(());
        drop(gate.lock());
        work()
    };
    thread::scope(|scope| {
        let closed = gate.lock();
        // Where there is no memory for another thread, the existing threads do all the work.
        let spawn = |_| {
            let other =
                has_room().then(|| thread::Builder::new().spawn_scoped(scope, work_of_another).ok()).flatten()?;
            let _ = started.recv();
            Some(other)
        };
        let others: Vec<ScopedJoinHandle<'_, S>> = (1..workers).filter_map(spawn).collect();
        drop(closed);
        let mut states = vec![work()];
        states.extend(others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))));
        states
    })
}

/// Runs two closures and returns both results. The first one runs on another thread at the same
/// time if two processors are free.
///
/// # Panics
/// Passes on the panic of either closure.
pub fn both<A: Send, B>(beside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    if processors() < 2 || !has_room() {
        return (beside(), here());
    }
    let (count, beside, (tell, started)) = (PROCESSORS.get(), Mutex::new(Some(beside)), channel());
    // The thread that takes the work does it. Where there is no memory for another thread, this
    // thread takes it.
    let take = || beside.lock().unwrap_or_else(PoisonError::into_inner).take();
    thread::scope(|scope| {
        let work = || {
            let _ = tell.send(());
            PROCESSORS.set(count);
            take().map(|beside| beside())
        };
        let other = thread::Builder::new().spawn_scoped(scope, work).ok();
        if other.is_some() {
            let _ = started.recv();
        }
        let there = here();
        let beside = match other {
            Some(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => take().map(|beside| beside()),
        };
        (beside.expect("the work was taken once"), there)
    })
}

/// Number of items of a vector that a worker writes at a time.
const TOGETHER: usize = 1 << 18;

/// A vector of `count` zeros whose memory pages are all present. Otherwise page faults would take
/// half the time spent on a large vector: one fault per page, or two if the page is read before it
/// is written.
#[must_use]
pub fn zeros<T: Copy + Default + Send>(count: usize) -> Vec<T> {
    let mut all = vec![T::default(); count];
    each_mut(&mut all.chunks_mut(TOGETHER).collect::<Vec<_>>(), |part| part.fill(T::default()));
    all
}

/// Calls `step` for every item.
///
/// # Panics
/// As [`fold`].
pub fn each_mut<T: Send>(items: &mut [T], step: impl Fn(&mut T) + Sync) {
    let items: Vec<Mutex<&mut T>> = items.iter_mut().map(Mutex::new).collect();
    fold(items.len(), || (), |(), at| step(&mut items[at].lock().unwrap_or_else(PoisonError::into_inner)));
}

/// The results of `make` for every number below `count`, in the order of the numbers.
///
/// # Panics
/// As [`fold`].
pub fn each<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let parts = fold(count, Vec::new, |made, at| made.push((at, make(at))));
    let mut all: Vec<(usize, T)> = parts.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Barrier;

    use super::*;

    fn on<T>(processors: usize, work: impl FnOnce() -> T) -> T {
        with_processors(NonZero::new(processors).expect("at least one"), work)
    }

    #[test]
    fn every_number_is_handed_out_once_whatever_the_number_of_processors() {
        for processors in 1..6 {
            for count in [0, 1, 2, 3, 100] {
                let states = on(processors, || fold(count, Vec::new, |state: &mut Vec<usize>, at| state.push(at)));
                assert!(states.len() <= processors.min(MAX_WORKERS).min(count.max(1)), "{processors} {count}");
                let mut all = states.concat();
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<_>>(), "{processors} {count}");
            }
        }
    }

    #[test]
    fn two_pieces_of_work_are_done_at_once_where_there_are_processors() {
        let meet = Barrier::new(2);
        let met = on(2, || both(|| meet.wait().is_leader(), || meet.wait().is_leader()));
        assert!(met.0 != met.1);
        assert_eq!(on(2, || both(processors, || 7)), (2, 7), "the other thread may use as many");
        assert_eq!(on(1, || both(|| thread::current().id(), || thread::current().id())), {
            let here = thread::current().id();
            (here, here)
        });
        let panics = || both(|| panic!("beside"), || ());
        assert_eq!(catch_unwind(panics).expect_err("a panic").downcast_ref(), Some(&"beside"));
    }

    #[test]
    fn a_vector_of_zeros_is_whole() {
        for count in [0, 1, TOGETHER, 2 * TOGETHER + 1] {
            assert_eq!(zeros::<[u32; 3]>(count), vec![[0; 3]; count]);
        }
    }

    #[test]
    fn workers_work_at_once() {
        // Each number waits for the other: one worker alone would wait for ever.
        let both = Barrier::new(2);
        let states = on(2, || {
            fold(
                2,
                || 0,
                |state, _| {
                    both.wait();
                    *state += 1;
                },
            )
        });
        assert_eq!(states, [1, 1]);
    }

    #[test]
    fn a_panic_of_a_step_is_handed_on_with_its_text() {
        let panics = || on(3, || fold(3, || (), |_, at| assert_ne!(at, 1, "not this one")));
        let panic = catch_unwind(panics).expect_err("number 1 panics");
        assert!(panic.downcast_ref::<String>().expect("a text").contains("not this one"));
        assert_eq!(PROCESSORS.get(), None, "the count holds no longer than its closure");
    }
}
