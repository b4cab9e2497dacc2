//! Values that only their thread uses, kept per thread.

use std::cell::RefCell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use clr_profiler::PerThread;

use super::arch::{own_value, set_own_value};
use super::reused::PerThreadPool;

/// Pool of all values of one kind, for all threads and recordings.
pub struct ThreadOwnPool<T: Default + 'static>(PerThreadPool<Own<T>>);

/// One value per thread, for one recording. At first it may be a leftover of an earlier recording.
pub struct ThreadOwn<T: Default + 'static>(&'static PerThread<Own<T>>);

/// A pool like [`ThreadOwnPool`], whose values a thread-local word leads to. That takes a third of
/// the time of a thread key. A process has one such pool, for what is used at every allocation.
pub struct WordOwnPool<T: Default + 'static>(ThreadOwnPool<T>);

/// One value per thread, for one recording, like [`ThreadOwn`].
pub struct WordOwn<T: Default + 'static>(ThreadOwn<T>);

/// Address of the pool that the thread-local word belongs to; 0 for none yet.
static POOL_OF_WORD: AtomicUsize = AtomicUsize::new(0);

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
        self.0.with(|own| own.with(act))
    }
}

impl<T> Own<T> {
    #[inline]
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_borrow_mut().ok().map(|mut value| act(&mut value))
    }
}

impl<T: Default + 'static> WordOwnPool<T> {
    /// Creates an empty pool.
    pub const fn nothing() -> Self {
        // A thread's value is dropped after this.
        Self(ThreadOwnPool(PerThreadPool::new(|_| set_own_value(ptr::null_mut()))))
    }

    /// Takes a set of values, one per thread, for a recording.
    ///
    /// # Errors
    /// The process has no thread key left.
    ///
    /// # Panics
    /// If another pool has the word.
    pub fn borrow_values(&'static self) -> io::Result<WordOwn<T>> {
        let pool = ptr::from_ref(self).addr();
        let before = POOL_OF_WORD.compare_exchange(0, pool, Ordering::AcqRel, Ordering::Acquire);
        assert!(before.is_ok() || before == Err(pool), "the word belongs to another pool");
        self.0.borrow_values().map(WordOwn)
    }

    /// Call it when the recording is over and its values are no longer used.
    pub fn give_back_all(&self) {
        self.0.give_back_all();
    }
}

impl<T: Default + 'static> WordOwn<T> {
    /// Runs `act` with the calling thread's value. `None` if the thread is already inside such a
    /// call.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let word: *mut Own<T> = own_value().cast();
        let own = if word.is_null() { self.first_use() } else { word };
        // SAFETY: the word is the calling thread's, only this pool sets it, and it is cleared
        // before the value is dropped.
        unsafe { (*own).with(act) }
    }

    #[cold]
    fn first_use(&self) -> *mut Own<T> {
        let own = self.0.0.with(|own| ptr::from_ref(own).cast_mut());
        set_own_value(own.cast());
        own
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
    #[test]
    fn the_word_leads_each_thread_to_its_value_until_the_value_is_dropped() {
        #[derive(Default)]
        struct Number(u32);
        static DROPPED: AtomicUsize = AtomicUsize::new(0);
        impl Drop for Number {
            fn drop(&mut self) {
                assert!(own_value().is_null(), "the word leads to a value that is being dropped");
                DROPPED.fetch_add(1, Ordering::Relaxed);
            }
        }
        static NUMBERS: WordOwnPool<Number> = WordOwnPool::nothing();
        let numbers = NUMBERS.borrow_values().expect("a key");
        let next = || numbers.with(|number| (std::mem::replace(&mut number.0, 7), numbers.with(|_| ())));
        assert_eq!([next(), next()], [Some((0, None)), Some((7, None))]);
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| [next(), next()]).join());
        assert_eq!(elsewhere.expect("the thread ends"), [Some((0, None)), Some((7, None))]);
        assert_eq!((next(), DROPPED.load(Ordering::Relaxed)), (Some((7, None)), 1));
        NUMBERS.give_back_all();
        let again = NUMBERS.borrow_values().expect("a key");
        assert_eq!(again.with(|number| number.0), Some(7));
    }
}
