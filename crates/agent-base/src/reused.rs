//! Per-thread data that outlives a recording. Without it, a process that is attached to repeatedly
//! would run out of thread keys.

use std::io;
use std::sync::{Mutex, PoisonError};

use clr_profiler::PerThread;

/// All per-thread data of one kind, in the order in which the instruments of a recording asked for
/// it. At first a thread's data may be left from an earlier recording; users must detect this.
pub struct PerThreadPool<T: Send + Sync + 'static> {
    lent: Mutex<Lent<T>>,
    retire: fn(&T),
}

struct Lent<T: Send + Sync + 'static> {
    made: Vec<&'static PerThread<T>>,
    in_use: usize,
}

impl<T: Default + Send + Sync + 'static> PerThreadPool<T> {
    /// Creates an empty pool. `retire` gets a thread's data when the thread ends, and must not call
    /// the runtime.
    pub const fn new(retire: fn(&T)) -> Self {
        Self { lent: Mutex::new(Lent { made: Vec::new(), in_use: 0 }), retire }
    }

    /// Returns data that is not in use, in a fixed order. Creates new data if all is in use.
    ///
    /// # Errors
    /// The process has no thread key left.
    pub fn borrow_next(&self) -> io::Result<&'static PerThread<T>> {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        if lent.in_use == lent.made.len() {
            // Callbacks come even after the end, so the data is never freed.
            lent.made.push(Box::leak(Box::new(PerThread::new(T::default, self.retire)?)));
        }
        lent.in_use += 1;
        Ok(lent.made[lent.in_use - 1])
    }

    /// Call it when the recording is over and none of the data is used any more.
    pub fn give_back_all(&self) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).in_use = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn another_recording_takes_what_the_one_before_gave_back() {
        static NUMBERS: PerThreadPool<AtomicU32> = PerThreadPool::new(|_| ());
        let first = [NUMBERS.borrow_next().expect("a key"), NUMBERS.borrow_next().expect("a key")];
        first[1].with(|number| number.store(7, Ordering::Relaxed));
        NUMBERS.give_back_all();
        let again = [NUMBERS.borrow_next().expect("a key"), NUMBERS.borrow_next().expect("a key")];
        assert_eq!([0, 1].map(|at| again[at].with(|number| number.load(Ordering::Relaxed))), [0, 7]);
        assert!(!std::ptr::eq(again[0], again[1]));
    }
}
