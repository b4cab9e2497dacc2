//! Per-thread data that also works for threads whose first event is a hook.
//!
//! `thread_local!` in a library that is loaded late may allocate inside the C library on first use,
//! and registers destructors that run at a time that the C library chooses. [`PerThread`] is a
//! POSIX key. Reading it is a load. The value of a thread is created on first use, and the key's
//! destructor frees it when the thread ends, even if the runtime never reported that thread.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value of `T` for each thread that uses it.
///
/// Values are shared (`T: Sync`): each thread reads and writes its own value through
/// [`with`](Self::with). A thread that sums up the values, at the end or while the program runs,
/// visits all of them through [`for_each`](Self::for_each). When a thread ends, its value is passed
/// to the `retire` function and dropped.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use clr_profiler::PerThread;
///
/// // A count per thread that is given to the sum when the thread ends.
/// static ENDED: AtomicU64 = AtomicU64::new(0);
/// let retire = |count: &AtomicU64| drop(ENDED.fetch_add(count.load(Ordering::Relaxed), Ordering::Relaxed));
/// let counts = PerThread::new(|| AtomicU64::new(0), retire)?;
/// counts.with(|count| count.fetch_add(1, Ordering::Relaxed));
/// let mut alive = 0;
/// counts.for_each(|count| alive += count.load(Ordering::Relaxed));
/// assert_eq!((alive, ENDED.load(Ordering::Relaxed)), (1, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The key is never deleted, because hooks still run after `Shutdown`. So keep a `PerThread` in the
/// profiler object, which the framework never frees.
pub struct PerThread<T: Send + Sync + 'static> {
    shared: Arc<Shared<T>>,
    key: libc::pthread_key_t,
    owner: PhantomData<T>,
}

struct Shared<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    retire: Box<dyn Fn(&T) + Send + Sync>,
    live: Mutex<Vec<Arc<T>>>,
}

/// Value of the key for one thread; owned by the key until the key's destructor frees it.
struct Slot<T> {
    value: Arc<T>,
    shared: Arc<Shared<T>>,
}

impl<T: Send + Sync + 'static> PerThread<T> {
    /// Creates a set of per-thread values. `make` creates the value on a thread's first use;
    /// `retire` gets it when the thread ends. `make` may run inside a hook, `retire` late in a
    /// thread's life: both must not call the runtime.
    ///
    /// # Errors
    /// When the process has no POSIX key left (it has 1,024).
    pub fn new(
        make: impl Fn() -> T + Send + Sync + 'static,
        retire: impl Fn(&T) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let mut key = 0;
        // SAFETY: `key` is a valid place to write to and `drop_slot::<T>` takes what `with` stores
        // under this key.
        let error = unsafe { libc::pthread_key_create(&mut key, Some(drop_slot::<T>)) };
        if error != 0 {
            return Err(std::io::Error::from_raw_os_error(error));
        }
        let shared = Shared { make: Box::new(make), retire: Box::new(retire), live: Mutex::new(Vec::new()) };
        Ok(Self { shared: Arc::new(shared), key, owner: PhantomData })
    }

    /// Runs `use_value` with this thread's value, and creates the value if the thread has none.
    /// After the first use this allocates nothing and takes no lock.
    #[inline]
    pub fn with<R>(&self, use_value: impl FnOnce(&T) -> R) -> R {
        // SAFETY: the key was created by `new` and is never deleted.
        let slot = unsafe { libc::pthread_getspecific(self.key) }.cast::<Slot<T>>();
        let slot = if slot.is_null() { self.first_use() } else { slot };
        // SAFETY: the slot lives until this thread's key destructor, which can't run during this
        // call on this thread.
        use_value(unsafe { &(*slot).value })
    }

    /// Runs `use_value` with the value of the calling thread, if any.
    pub fn get<R>(&self, use_value: impl FnOnce(&T) -> R) -> Option<R> {
        // SAFETY: as in `with`.
        let slot = unsafe { libc::pthread_getspecific(self.key) }.cast::<Slot<T>>();
        // SAFETY: as in `with`; a null pointer gives `None`.
        unsafe { slot.as_ref() }.map(|slot| use_value(&slot.value))
    }

    /// Visits the values of all threads that have not ended. Threads that create or retire a value
    /// in the meantime wait.
    pub fn for_each(&self, mut visit: impl FnMut(&T)) {
        for value in self.shared.live().iter() {
            visit(value);
        }
    }

    #[cold]
    fn first_use(&self) -> *mut Slot<T> {
        let value = Arc::new((self.shared.make)());
        self.shared.live().push(Arc::clone(&value));
        let slot = Box::into_raw(Box::new(Slot { value, shared: Arc::clone(&self.shared) }));
        // SAFETY: the key exists; its destructor frees the slot. If the C library has no memory for
        // the entry, the slot is not found again: the thread then gets a new value at each use, and
        // `for_each` still visits all of them.
        unsafe { libc::pthread_setspecific(self.key, slot.cast()) };
        slot
    }
}

impl<T> Shared<T> {
    fn live(&self) -> MutexGuard<'_, Vec<Arc<T>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key's destructor: the C library has already cleared the key, so a hook that runs later on
/// this thread starts with a new value.
unsafe extern "C" fn drop_slot<T: Send + Sync + 'static>(slot: *mut c_void) {
    crate::boundary::guard((), || {
        // SAFETY: the pointer is the one `first_use` stored, and the C library gives it to us once.
        let slot = unsafe { Box::from_raw(slot.cast::<Slot<T>>()) };
        (slot.shared.retire)(&slot.value);
        slot.shared.live().retain(|live| !ptr::eq(Arc::as_ptr(live), Arc::as_ptr(&slot.value)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn each_thread_has_its_own_value_and_gives_it_back_at_its_end() {
        let retired = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&retired);
        let counts = PerThread::new(
            || AtomicU64::new(0),
            move |n| {
                let _ = sum.fetch_add(n.load(Ordering::Relaxed), Ordering::Relaxed);
            },
        )
        .unwrap();
        let counts = Arc::new(counts);
        let threads: Vec<_> = (1..=8)
            .map(|n| {
                let counts = Arc::clone(&counts);
                std::thread::spawn(move || {
                    for _ in 0..n {
                        counts.with(|count| count.fetch_add(1, Ordering::Relaxed));
                    }
                    counts.get(|count| count.load(Ordering::Relaxed))
                })
            })
            .collect();
        let seen: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(seen, (1..=8).map(Some).collect::<Vec<_>>());
        assert_eq!(retired.load(Ordering::Relaxed), 36);
        let mut live = 0;
        counts.for_each(|_| live += 1);
        assert_eq!(live, 0);
        assert_eq!(counts.get(|_| ()), None);
    }
}
