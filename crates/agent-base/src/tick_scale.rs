//! The scale between the processor's time stamp counter and the system's clock, for hooks. Reading
//! the counter takes less than half the time of reading the clock.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use clrscope_recording::writer::monotonic_ns;

use crate::clock::ticks;

/// Duration of the first measurement, which is done at once, in nanoseconds.
const FIRST_NS: u64 = 1_000_000;
/// Shortest and longest pause between two measurements, in nanoseconds. The first scale comes from
/// a measurement of a millisecond; each pause is twice as long as the one before.
const FIRST_PAUSE_NS: u64 = 16_000_000;
const PAUSE_NS: u64 = 250_000_000;
/// Pairs of readings that are tried for one simultaneous reading of both clocks: a thread may be
/// preempted between the two.
const READINGS: u32 = 8;
/// Bits of the scale after the binary point.
const FRACTION: u32 = 32;

/// Both clocks at one moment, and the scale measured up to then.
#[derive(Debug, Clone, Copy)]
struct Measured {
    ticks: u64,
    ns: u64,
    /// Nanoseconds of a tick, times 2 to the power of [`FRACTION`].
    scale: u64,
}

impl Measured {
    fn duration_ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> FRACTION) as u64
    }

    /// The time of a tick count, which may be a little earlier than the measurement.
    fn ns(&self, ticks: u64) -> u64 {
        match ticks.checked_sub(self.ticks) {
            Some(after) => self.ns.saturating_add(self.duration_ns(after)),
            None => self.ns.saturating_sub(self.duration_ns(self.ticks - ticks)),
        }
    }
}

/// The scale between counter and clock. One thread [measures](Self::measure) it repeatedly; every
/// thread may read it.
#[derive(Debug)]
pub struct TickScale {
    /// Odd while the other words change.
    sequence: AtomicU64,
    ticks: AtomicU64,
    ns: AtomicU64,
    scale: AtomicU64,
    /// Least pause until the next measurement, in nanoseconds.
    pause_ns: AtomicU64,
}

impl TickScale {
    /// Creates the scale. Measures for a millisecond.
    pub fn new() -> Self {
        let (ticks, ns) = both_clocks();
        let first = Measured { ticks, ns, scale: 1 << FRACTION };
        while monotonic_ns() < ns + FIRST_NS {
            std::hint::spin_loop();
        }
        let measured = measured_since(first);
        Self {
            sequence: AtomicU64::new(0),
            ticks: AtomicU64::new(measured.ticks),
            ns: AtomicU64::new(measured.ns),
            scale: AtomicU64::new(measured.scale),
            pause_ns: AtomicU64::new(FIRST_PAUSE_NS),
        }
    }

    /// Measures again if the last measurement is long enough ago: the system's clock is sped up and
    /// slowed down while it is adjusted. To be called by one thread only.
    pub fn measure(&self) {
        let Some(last) = self.read() else { return };
        let pause = self.pause_ns.load(Ordering::Relaxed);
        if monotonic_ns() < last.ns + pause {
            return;
        }
        self.pause_ns.store((2 * pause).min(PAUSE_NS), Ordering::Relaxed);
        let now = measured_since(last);
        self.sequence.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.ticks.store(now.ticks, Ordering::Relaxed);
        self.ns.store(now.ns, Ordering::Relaxed);
        self.scale.store(now.scale, Ordering::Relaxed);
        self.sequence.fetch_add(1, Ordering::Release);
    }

    /// The time of the counter value `now` in monotonic nanoseconds, and the nanoseconds from
    /// `began` to `now`, which are 0 if `began` is later. For hooks.
    #[inline]
    pub fn moment(&self, now: u64, began: u64) -> (u64, u64) {
        match self.read() {
            Some(measured) => (measured.ns(now), measured.duration_ns(now.saturating_sub(began))),
            // Another thread changes it: the old scale is as good as the new one.
            None => {
                let scale = Measured { ticks: 0, ns: 0, scale: self.scale.load(Ordering::Relaxed) };
                (monotonic_ns(), scale.duration_ns(now.saturating_sub(began)))
            }
        }
    }

    #[inline]
    fn read(&self) -> Option<Measured> {
        let before = self.sequence.load(Ordering::Acquire);
        let measured = Measured {
            ticks: self.ticks.load(Ordering::Relaxed),
            ns: self.ns.load(Ordering::Relaxed),
            scale: self.scale.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        (before & 1 == 0 && self.sequence.load(Ordering::Relaxed) == before).then_some(measured)
    }
}

impl Default for TickScale {
    fn default() -> Self {
        Self::new()
    }
}

/// Both clocks at nearly the same moment: of several readings, the pair with the least time between
/// them.
fn both_clocks() -> (u64, u64) {
    let reading = |_| {
        let before = ticks();
        let ns = monotonic_ns();
        let after = ticks();
        (after.saturating_sub(before), (u64::midpoint(before, after), ns))
    };
    let (_, closest) =
        (1..READINGS).map(reading).fold(reading(0), |best, next| if next.0 < best.0 { next } else { best });
    closest
}

fn measured_since(last: Measured) -> Measured {
    let (ticks, ns) = both_clocks();
    let (more_ticks, more_ns) = (ticks.saturating_sub(last.ticks), ns.saturating_sub(last.ns));
    let scale = (u128::from(more_ns) << FRACTION).checked_div(more_ticks.into());
    Measured { ticks, ns, scale: scale.and_then(|scale| u64::try_from(scale).ok()).unwrap_or(last.scale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_systems_clock() {
        let scale = TickScale::new();
        let (began, began_ns) = both_clocks();
        // A busy machine may preempt the thread between the two clocks.
        let is_near = |scale: &TickScale| {
            (0..1_000).any(|_| {
                scale.measure();
                let before = monotonic_ns();
                let (now_ns, lasted_ns) = scale.moment(ticks(), began);
                let after = monotonic_ns();
                let lasted = after - began_ns;
                (before.saturating_sub(2_000)..after + 2_000).contains(&now_ns)
                    && lasted_ns.abs_diff(lasted) <= 2_000 + lasted / 1_000
            })
        };
        assert!(is_near(&scale));
        let until = monotonic_ns() + PAUSE_NS + PAUSE_NS / 4;
        while monotonic_ns() < until {
            std::hint::spin_loop();
        }
        assert!(is_near(&scale), "after a second measurement");
    }

    #[test]
    fn what_begins_later_lasted_no_time() {
        let scale = TickScale::new();
        assert_eq!(scale.moment(1_000, 2_000).1, 0);
    }
}
