//! Values that only their thread uses, kept per thread.

use std::cell::RefCell;
use std::io;

use clr_profiler::PerThread;

use super::reused::PerThreadPool;

/// Pool of all values of one kind, for all threads and recordings.
pub struct ThreadOwnPool<T: Default + 'static>(PerThreadPool<Own<T>>);

/// One value per thread, for one recording. At first it may be a leftover of an earlier recording.
pub struct ThreadOwn<T: Default + 'static>(&'static PerThread<Own<T>>);

#[derive(Default)]
struct Own<T>(RefCell<T>);

// SAFETY: `ThreadOwn::with` is the only access to a value, and uses the value of the calling
// thread. Nothing visits the values of all threads. A value is created by its thread and dropped at
// the thread's end.
unsafe impl<T> Sync for Own<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Own<T> {}

impl<T: Default + 'static> ThreadOwnPool<T> {
    /// Creates an empty pool.
    pub const fn nothing() -> Self {
        Self(PerThreadPool::new(|_| ()))
    }

    /// Takes a set of values, one per thread, for a recording.
    ///
    /// # Errors
    /// The process has no thread key left.
    pub fn borrow_values(&self) -> io::Result<ThreadOwn<T>> {
        self.0.borrow_next().map(ThreadOwn)
    }

    /// Call it when the recording is over and its values are no longer used.
    pub fn give_back_all(&self) {
        self.0.give_back_all();
    }
}

impl<T: Default + 'static> ThreadOwn<T> {
    /// Runs `act` with the calling thread's value. `None` if the thread is already inside such a
    /// call.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.with(|own| own.0.try_borrow_mut().ok().map(|mut value| act(&mut value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_and_none_twice_at_a_time() {
        static NUMBERS: ThreadOwnPool<u32> = ThreadOwnPool::nothing();
        let numbers = NUMBERS.borrow_values().expect("a key");
        assert_eq!(numbers.with(|number| *number += 7), Some(()));
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| numbers.with(|number| *number)).join());
        assert_eq!(elsewhere.expect("the thread ends"), Some(0));
        assert_eq!(numbers.with(|number| (*number, numbers.with(|again| *again))), Some((7, None)));
    }
}
