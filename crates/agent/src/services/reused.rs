//! Data per thread that outlives a recording: a process that is attached to again and again would run out of thread keys.

use std::io;
use std::sync::{Mutex, PoisonError};

use clr_profiler::PerThread;

/// All data per thread of one kind, in the order in which the instruments of a recording asked for some. What threads keep is from an
/// earlier recording at first, and who uses it must tell.
pub(crate) struct Reused<T: Send + Sync + 'static>(Mutex<Lent<T>>);

struct Lent<T: Send + Sync + 'static> {
    made: Vec<&'static PerThread<T>>,
    in_use: usize,
}

impl<T: Default + Send + Sync + 'static> Reused<T> {
    pub(crate) const fn nothing() -> Self {
        Self(Mutex::new(Lent { made: Vec::new(), in_use: 0 }))
    }

    /// The next that is not in use, made where there is none.
    ///
    /// # Errors
    /// When the process has no thread key left.
    pub(crate) fn take(&self) -> io::Result<&'static PerThread<T>> {
        let mut lent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lent.in_use == lent.made.len() {
            // Callbacks come even after the end, so it is never freed.
            lent.made.push(Box::leak(Box::new(PerThread::new(T::default, |_| ())?)));
        }
        lent.in_use += 1;
        Ok(lent.made[lent.in_use - 1])
    }

    /// The recording is over, and nobody uses any of it any more.
    pub(crate) fn give_back_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).in_use = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn another_recording_takes_what_the_one_before_gave_back() {
        static NUMBERS: Reused<AtomicU32> = Reused::nothing();
        let first = [NUMBERS.take().expect("a key"), NUMBERS.take().expect("a key")];
        first[1].with(|number| number.store(7, Ordering::Relaxed));
        NUMBERS.give_back_all();
        let again = [NUMBERS.take().expect("a key"), NUMBERS.take().expect("a key")];
        assert_eq!([0, 1].map(|at| again[at].with(|number| number.load(Ordering::Relaxed))), [0, 7]);
        assert!(!std::ptr::eq(again[0], again[1]));
    }
}
