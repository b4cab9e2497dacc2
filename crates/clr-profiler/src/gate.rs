//! A gate that calls enter and leave. While it is open, many calls can be inside at once. After it
//! is closed, no call can enter, and a thread can wait until the calls inside have left.
//!
//! A gate protects things that calls use and that may go away: the runtime's interface after a
//! detach, the metadata of a module that is unloaded.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Number of times that a waiting thread yields before it sleeps between its checks.
const PATIENCE: u32 = 100;
const NAP: Duration = Duration::from_micros(50);

/// Calls that are inside, counted on `COUNTERS` cache lines so that threads don't fight for one.
pub(crate) struct Gate<const COUNTERS: usize> {
    is_closed: AtomicBool,
    inside: [Counter; COUNTERS],
}

#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicUsize);

/// A call that is inside the gate, until it is dropped.
pub(crate) struct Inside<'g>(&'g AtomicUsize);

impl<const COUNTERS: usize> Default for Gate<COUNTERS> {
    fn default() -> Self {
        Self { is_closed: AtomicBool::new(false), inside: std::array::from_fn(|_| Counter::default()) }
    }
}

impl<const COUNTERS: usize> Gate<COUNTERS> {
    /// Enters the gate; `None` once the gate is closed.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let counter = self.counter();
        // `SeqCst` orders this with `close`: either the closing thread sees this call and waits for
        // it, or this call sees that the gate is closed.
        counter.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(counter);
        (!self.is_closed.load(Ordering::SeqCst)).then_some(inside)
    }

    /// Number of calls inside. The number may be out of date by the time it is read.
    pub(crate) fn inside(&self) -> usize {
        self.inside.iter().map(|counter| counter.0.load(Ordering::SeqCst)).sum()
    }

    /// Closes the gate: no call can enter any more. Calls that are inside stay inside.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Whether the gate is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Waits until all calls that entered before the gate was closed have left. Must not be called
    /// from inside the gate.
    pub(crate) fn wait_until_empty(&self) {
        self.wait_for_those_inside(Duration::MAX);
    }

    /// Waits until all calls that are inside now have left, for at most `most`. Returns whether
    /// they have left. Other calls may enter in the meantime. Must not be called from inside the
    /// gate.
    pub(crate) fn wait_for_those_inside(&self, most: Duration) -> bool {
        let began = Instant::now();
        for counter in &self.inside {
            let mut looks = 0;
            // A count of 0 means that no earlier call is inside at this counter. If the gate is
            // closed, a call that enters late leaves at once.
            while counter.0.load(Ordering::SeqCst) != 0 {
                if looks < PATIENCE {
                    looks += 1;
                    std::thread::yield_now();
                } else if began.elapsed() >= most {
                    return false;
                } else {
                    #[expect(clippy::disallowed_methods, reason = "who goes out pays nothing to wake those who wait")]
                    std::thread::sleep(NAP);
                }
            }
        }
        true
    }

    /// A counter that other threads rarely use: it is chosen by the address of the thread's stack.
    #[inline]
    fn counter(&self) -> &AtomicUsize {
        let here = 0_u8;
        let spread = ((&raw const here).addr() >> 17).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.inside[spread % COUNTERS].0
    }
}

impl Gate<1> {
    /// Enters the gate without a borrow, and returns whether that was possible. If so, the caller
    /// must call [`leave`](Self::leave).
    pub(crate) fn enter_owned(&self) -> bool {
        self.enter().map(std::mem::forget).is_some()
    }

    /// Leaves the gate after [`enter_owned`](Self::enter_owned).
    pub(crate) fn leave(&self) {
        let [counter] = &self.inside;
        drop(Inside(&counter.0));
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn those_inside_an_open_gate_are_waited_for_as_long_as_said() {
        let gate = Arc::new(Gate::<1>::default());
        assert!(gate.wait_for_those_inside(Duration::ZERO));
        let inside = gate.enter().expect("it is open");
        assert!(!gate.wait_for_those_inside(Duration::from_millis(1)));
        let waiting = std::thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.wait_for_those_inside(Duration::from_secs(60))
        });
        drop(inside);
        assert!(waiting.join().unwrap() && gate.enter().is_some(), "the gate stays open");
    }

    #[test]
    fn nobody_is_inside_a_closed_gate() {
        let gate = Arc::new(Gate::<4>::default());
        let alive = Arc::new(AtomicBool::new(true));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(_inside) = gate.enter() {
                        assert!(alive.load(Ordering::Relaxed), "what the gate guards is gone");
                        std::thread::yield_now();
                        assert!(alive.load(Ordering::Relaxed), "what the gate guards is gone");
                    }
                });
            }
            while gate.inside.iter().all(|counter| counter.0.load(Ordering::Relaxed) == 0) {
                std::thread::yield_now();
            }
            gate.close();
            gate.wait_until_empty();
            alive.store(false, Ordering::Relaxed);
        });
        assert!(gate.is_closed() && gate.enter().is_none());
    }
}
