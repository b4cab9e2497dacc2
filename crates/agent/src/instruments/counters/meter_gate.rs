//! Decides when a session may ask for meters.
//!
//! A session that asks for them calls `MetricsEventSource.OnEventCommand` under the lock of all
//! event listeners, and that builds texts, for which it rents arrays. The first rent in a process
//! creates `ArrayPoolEventSource` in a class constructor, which takes the same lock. If a thread of
//! the program is in that constructor, waiting for the lock, and the session waits for the
//! constructor, both wait for ever (.NET 10: `SharedArrayPool.Rent`,
//! `EventListener.AddEventSource`; one of sixty small programs hung under load).
//!
//! So in a program that starts, the first session begins on the thread that creates the first event
//! source, before the program's own code runs: what it asks of meters happens on that thread, and
//! as it names a meter, that rents an array. Further sessions ask for meters once that event source
//! is there. In a program that rents no arrays, event counters do so with their first values, after
//! a second.

use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_recording::writer::monotonic_ns;

use crate::services::context::Beginning;

/// Name of the event source that the class constructor creates.
const ARRAY_POOL: &str = "System.Buffers.ArrayPoolEventSource";
/// Time from the creation of its provider to the end of the class constructor, at most; the lock is
/// taken before that.
const CONSTRUCTOR_NS: u64 = 20_000_000;
/// Time after which meters are asked for in any case.
const LONGEST_NS: u64 = 3_000_000_000;

/// A gate for requests of meters. It opens once no thread can be in the class constructor of
/// `ArrayPoolEventSource`.
pub(super) struct MeterGate {
    opens_ns: AtomicU64,
}

impl MeterGate {
    /// Closed in a program that starts. A program that is attached to has been running, and nothing
    /// tells which event sources it has.
    pub(super) fn new(beginning: Beginning) -> Self {
        let opens_ns = match beginning {
            Beginning::Launch => monotonic_ns().saturating_add(LONGEST_NS),
            Beginning::Attach => 0,
        };
        Self { opens_ns: AtomicU64::new(opens_ns) }
    }

    /// Call it when the runtime has created a provider.
    pub(super) fn provider_created(&self, name: &str) {
        if name == ARRAY_POOL {
            self.opens_ns.fetch_min(monotonic_ns().saturating_add(CONSTRUCTOR_NS), Ordering::Relaxed);
        }
    }

    /// Whether meters may be requested.
    pub(super) fn is_open(&self, now_ns: u64) -> bool {
        now_ns >= self.opens_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_starts_is_asked_for_meters_once_arrays_were_rented() {
        let gate = MeterGate::new(Beginning::Launch);
        let later = |ns: u64| monotonic_ns() + ns;
        assert!(!gate.is_open(later(LONGEST_NS / 2)) && gate.is_open(later(LONGEST_NS)));
        gate.provider_created("Shop");
        assert!(!gate.is_open(later(2 * CONSTRUCTOR_NS)));
        gate.provider_created(ARRAY_POOL);
        assert!(!gate.is_open(monotonic_ns()) && gate.is_open(later(CONSTRUCTOR_NS)));
        assert!(MeterGate::new(Beginning::Attach).is_open(monotonic_ns()));
    }
}
