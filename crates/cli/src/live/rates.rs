//! Allocations per second, by type. The recording has only sums since its start.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use clrscope_analysis::{AllocationRow, Query, allocations};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use super::source::NOW;

/// Objects and bytes.
type Sum = (u64, u64);

/// A type with its allocations per second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TypeRate {
    pub(crate) name: String,
    pub(crate) objects: f64,
    pub(crate) bytes: f64,
}

impl TypeRate {
    pub(crate) fn json(&self) -> Value {
        json!({ "type": self.name, "objects_per_s": self.objects, "bytes_per_s": self.bytes })
    }
}

/// Sums of the last looks.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    looks: VecDeque<(Instant, BTreeMap<String, Sum>)>,
}

impl Rates {
    /// Reads the sums of the recording.
    pub(crate) fn look(&mut self, recording: &Recording) {
        // Without samples there is nothing to sum up.
        let rows = allocations(recording, &Query::default()).map(|all| all.rows).unwrap_or_default();
        self.add(Instant::now(), sums(&rows));
    }

    fn add(&mut self, now: Instant, sums: BTreeMap<String, Sum>) {
        self.looks.push_back((now, sums));
        // The last look before the recent period is kept, as the base of the comparison.
        while self.looks.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= NOW) {
            self.looks.pop_front();
        }
    }

    /// Time between the two compared looks.
    pub(crate) fn time(&self) -> Duration {
        let times = self.looks.front().zip(self.looks.back());
        times.map(|((first, _), (last, _))| last.duration_since(*first)).unwrap_or_default()
    }

    /// Allocations per second by type, most bytes first.
    pub(crate) fn types(&self) -> Vec<TypeRate> {
        let seconds = self.time().as_secs_f64();
        let (Some((_, before)), Some((_, now)), true) = (self.looks.front(), self.looks.back(), seconds > 0.0) else {
            return Vec::new();
        };
        let grown = now.iter().filter_map(|(name, &(objects, bytes))| {
            let old = before.get(name).copied().unwrap_or_default();
            let (objects, bytes) = (objects.saturating_sub(old.0), bytes.saturating_sub(old.1));
            let per_second = |amount: u64| amount as f64 / seconds;
            (bytes > 0).then(|| TypeRate { name: name.clone(), objects: per_second(objects), bytes: per_second(bytes) })
        });
        let mut rates: Vec<TypeRate> = grown.collect();
        rates.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
        rates
    }
}

fn sums(rows: &[AllocationRow<'_>]) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(row.type_name.to_owned()).or_default();
        *sum = (sum.0.saturating_add(row.objects), sum.1.saturating_add(row.bytes));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let began = Instant::now();
        let mut rates = Rates::default();
        let sum = |objects, bytes| BTreeMap::from([("String".to_owned(), (objects, bytes))]);
        assert_eq!(rates.types(), []);
        rates.add(began, sum(10, 1_000));
        assert_eq!(rates.types(), [], "one look alone says nothing");
        rates.add(began + Duration::from_secs(2), sum(30, 2_000));
        let rate = |objects, bytes| vec![TypeRate { name: "String".to_owned(), objects, bytes }];
        assert_eq!(rates.types(), rate(10.0, 500.0));
        // Older looks no longer count.
        rates.add(began + Duration::from_secs(6), sum(30, 2_000));
        rates.add(began + Duration::from_secs(7), sum(80, 4_500));
        assert_eq!((rates.time(), rates.types()), (Duration::from_secs(5), rate(10.0, 500.0)));
    }
}
