//! Distribution of durations: their number and percentiles.

use std::collections::BTreeMap;

use clrscope_recording::layout::probes::{bucket, least};

/// Number of durations by their length in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Durations(BTreeMap<u64, u64>);

impl Durations {
    /// Adds one duration, rounded with an error of 3 %.
    pub(crate) fn add(&mut self, ns: u64) {
        let bucket = bucket(ns);
        self.add_all(u64::midpoint(least(bucket), least(bucket + 1)), 1);
    }

    /// Adds several equal durations.
    pub(crate) fn add_all(&mut self, ns: u64, count: u64) {
        let known = self.0.entry(ns).or_default();
        *known = known.saturating_add(count);
    }

    /// Adds the counts of another distribution.
    pub(crate) fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|(ns, count)| self.add_all(*ns, *count));
    }

    /// Number of all durations.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Time within which `percent` percent of the durations ended. `max_ns` is the longest
    /// duration; it is the result for 100 percent. `None` if there are no durations.
    pub(crate) fn percentile_ns(&self, percent: u8, max_ns: u64) -> Option<u64> {
        let count = self.count();
        if count > 0 && percent >= 100 {
            return Some(max_ns);
        }
        let rank = (u128::from(count) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.0.iter().find(|(_, count)| {
            seen += u128::from(**count);
            seen >= rank
        });
        found.map(|(ns, _)| (*ns).min(max_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_times_within_three_percent() {
        let mut durations = Durations::default();
        (1..=1_000).for_each(|number| durations.add(number * 1_000));
        for percent in [1, 50, 90, 99] {
            let found = durations.percentile_ns(percent, 1_000_000).expect("a time");
            assert!(found.abs_diff(u64::from(percent) * 10_000) * 100 <= u64::from(percent) * 10_000 * 4, "{found}");
        }
        assert_eq!((durations.percentile_ns(100, 1_000_000), durations.count()), (Some(1_000_000), 1_000));
        assert_eq!(Durations::default().percentile_ns(50, 7), None);
    }
}
