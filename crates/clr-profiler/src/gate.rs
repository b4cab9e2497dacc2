//! A gate that calls pass: many at once while it is open, and once it is closed none, with a wait
//! for those inside.
//!
//! What calls use may go away behind it: the runtime after a detach, the metadata of a module that
//! is unloaded.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Yields of a closing thread before it sleeps between its looks.
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
    /// Goes in; `None` once the gate is closed.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let counter = self.counter();
        // In one order with `close`: either it sees this call and waits for it, or this call sees
        // that the gate is closed.
        counter.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(counter);
        (!self.is_closed.load(Ordering::SeqCst)).then_some(inside)
    }

    /// Number of those inside, as it is a moment later or was a moment before.
    pub(crate) fn inside(&self) -> usize {
        self.inside.iter().map(|counter| counter.0.load(Ordering::SeqCst)).sum()
    }

    /// Lets no caller in any more. Those inside may still be there.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Whether the gate is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Waits until all callers that entered before the gate was closed have left. Not from inside.
    pub(crate) fn wait_until_empty(&self) {
        self.wait_for_those_inside(Duration::MAX);
    }

    /// Waits until all are out again who are inside now, `most` at the longest; whether they are.
    /// Others may come in meanwhile. Not from inside.
    pub(crate) fn wait_for_those_inside(&self, most: Duration) -> bool {
        let began = Instant::now();
        for counter in &self.inside {
            let mut looks = 0;
            // A look that finds 0 means that no earlier one is left at this counter; where the gate
            // is closed, who came too late is out again at once.
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

    /// A counter that other threads rarely use: their stacks lie elsewhere.
    #[inline]
    fn counter(&self) -> &AtomicUsize {
        let here = 0_u8;
        let spread = ((&raw const here).addr() >> 17).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.inside[spread % COUNTERS].0
    }
}

impl Gate<1> {
    /// Goes in without a borrow; whether that was possible. [`leave`](Self::leave) must follow.
    pub(crate) fn enter_owned(&self) -> bool {
        self.enter().map(std::mem::forget).is_some()
    }

    /// Goes out after [`enter_owned`](Self::enter_owned).
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
