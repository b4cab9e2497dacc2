//! A lock for data that one thread, the owner, uses at every call and other threads read from time
//! to time.
//!
//! A mutex takes two locked instructions each time, and an event in a hook needs the data more than
//! once. Here the owner needs one locked instruction for the whole event, and releases the lock by
//! a plain store. This works because no thread sleeps on the lock: a thread that finds it taken
//! tries again.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const FREE: u8 = 0;
/// The owner holds the lock.
const OWNED: u8 = 1;
/// Another thread holds the lock, or the owner as a visitor.
const VISITED: u8 = 2;

/// Spins of a waiting thread before it sleeps.
const PATIENCE: u32 = 100;
const NAP: Duration = Duration::from_micros(50);

/// The lock. It protects data that is stored next to it.
#[derive(Default)]
pub(crate) struct OwnerLock {
    state: AtomicU8,
}

/// The held lock.
pub(crate) struct Held<'a> {
    lock: &'a OwnerLock,
    /// Whether the owner already holds the lock, further down on its stack.
    nested: bool,
}

impl OwnerLock {
    /// Takes the lock for the owner, which may already hold it. Waits while another thread holds
    /// it.
    ///
    /// Must be called only on the thread that owns the data: it treats [`OWNED`] as its own earlier
    /// call.
    #[inline]
    pub(crate) fn own(&self) -> Held<'_> {
        match self.state.compare_exchange(FREE, OWNED, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Held { lock: self, nested: false },
            Err(OWNED) => Held { lock: self, nested: true },
            Err(_) => self.wait_for(OWNED),
        }
    }

    /// Takes the lock for other threads, and for an owner that does not hold it. Waits while the
    /// lock is taken.
    pub(crate) fn visit(&self) -> Held<'_> {
        self.wait_for(VISITED)
    }

    #[cold]
    fn wait_for(&self, state: u8) -> Held<'_> {
        let mut asked = 0;
        while self.state.compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed).is_err() {
            if asked < PATIENCE {
                asked += 1;
                std::thread::yield_now();
            } else {
                #[expect(clippy::disallowed_methods, reason = "an owner pays nothing to wake those who wait")]
                std::thread::sleep(NAP);
            }
        }
        Held { lock: self, nested: false }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.nested {
            self.lock.state.store(FREE, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[derive(Default)]
    struct Guarded {
        lock: OwnerLock,
        count: Cell<(u64, u64)>,
    }

    // SAFETY: `count` is used under the lock only.
    unsafe impl Sync for Guarded {}

    impl Guarded {
        /// Adds in two steps, so that the test sees a lock that does not work.
        fn add(&self) {
            let (first, second) = self.count.get();
            self.count.set((first + 1, second));
            std::hint::black_box(&self.count);
            self.count.set((first + 1, second + 1));
        }
    }

    #[test]
    fn owner_and_visitors_keep_out_of_each_others_way() {
        const TIMES: u64 = 200_000;
        let guarded = Guarded::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    let _held = guarded.lock.own();
                    guarded.add();
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..TIMES / 100 {
                        let _held = guarded.lock.visit();
                        let (first, second) = guarded.count.get();
                        assert_eq!(first, second);
                        guarded.add();
                    }
                });
            }
        });
        let all = TIMES + TIMES / 100 * 2;
        assert_eq!(guarded.count.get(), (all, all));
    }

    #[test]
    fn an_owner_may_hold_it_twice_and_gives_it_back_once() {
        let lock = OwnerLock::default();
        let outer = lock.own();
        drop(lock.own());
        assert_eq!(lock.state.load(Ordering::Relaxed), OWNED);
        drop(outer);
        drop(lock.visit());
        assert_eq!(lock.state.load(Ordering::Relaxed), FREE);
    }
}
