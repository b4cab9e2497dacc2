//! Counts context switches of the program's threads, to find out whether perf events are too
//! expensive.
//!
//! A perf event on the CPU clock is a timer of the kernel. The timer is set whenever a thread is
//! put on a processor, and cleared when the thread is taken off again. On virtual machines both
//! take microseconds if the timer would expire before the next tick, and server threads are
//! switched tens of thousands of times a second. Timers on threads, which the kernel checks at its
//! ticks, cost nothing then.

/// Context switches per second of CPU time that are too many.
const MOST: u64 = 5_000;
/// Least CPU time between two checks, in nanoseconds: less would say little.
const LEAST_NS: u64 = 200_000_000;
/// Number of consecutive checks that must find too many.
const LOOKS: u32 = 2;

/// Counts the switches of the process.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// Switches and CPU time at the last check.
    last: Option<(u64, u64)>,
    /// Number of consecutive checks that found too many.
    often: u32,
}

impl Switches {
    /// Compares the number of switches so far with the CPU time of the process. Returns the
    /// switches per second of CPU time if they have been too many for a while.
    pub(super) fn look(&mut self, switches: u64, cpu_ns: u64) -> Option<u64> {
        let Some((switches_then, cpu_then)) = self.last else {
            self.last = Some((switches, cpu_ns));
            return None;
        };
        let passed = cpu_ns.saturating_sub(cpu_then);
        if passed < LEAST_NS {
            return None;
        }
        self.last = Some((switches, cpu_ns));
        let a_second = switches.saturating_sub(switches_then).saturating_mul(1_000_000_000) / passed;
        self.often = if a_second > MOST { self.often + 1 } else { 0 };
        (self.often >= LOOKS).then_some(a_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_switches_for_a_while_are_too_many_and_a_moment_of_them_is_not() {
        let mut switches = Switches::default();
        let second = 1_000_000_000;
        assert_eq!(switches.look(1_000_000, 7 * second), None, "how many there were before says nothing");
        assert_eq!(switches.look(1_009_000, 8 * second), None, "once");
        assert_eq!(switches.look(1_010_000, 9 * second), None, "few");
        assert_eq!(switches.look(1_020_000, 10 * second), None, "once again");
        assert_eq!(switches.look(1_021_000, 10 * second + 1), None, "too little time for a look");
        assert_eq!(switches.look(1_032_000, 11 * second), Some(12_000));
    }
}
