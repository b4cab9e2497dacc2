//! Amounts that are estimated from sampled objects, with bounds that hold the true amount in 95 of
//! 100 cases.

use clrscope_recording::model::Allocation;

use crate::sampling::count_bounds;

/// An amount as the sum of an exact part and a part that is estimated from samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Estimate {
    /// The exact part.
    known: f64,
    /// The part that is estimated from samples.
    sampled: f64,
    /// Variance of the estimated part.
    variance: f64,
}

/// An amount with its bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BoundedAmount {
    pub(crate) amount: u64,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Estimate {
    /// Bytes of a record.
    pub(crate) fn of_bytes(record: &Allocation) -> Self {
        let weight = record.weight as f64;
        // Samples of one record weigh nearly the same.
        Self::new(record, weight, weight * weight / record.objects.max(1) as f64)
    }

    /// Objects of a record.
    pub(crate) fn of_objects(record: &Allocation) -> Self {
        Self::new(record, record.estimated_objects(), record.squares as f64)
    }

    /// Creates an estimate. `squares` is the sum of the squares of the amounts that the samples
    /// represent.
    fn new(record: &Allocation, amount: f64, squares: f64) -> Self {
        if record.weight <= record.bytes {
            return Self { known: amount, ..Self::default() };
        }
        // An object that was certain to be sampled stands for itself only and adds no variance.
        let chance = record.bytes as f64 / record.weight as f64;
        Self { known: 0.0, sampled: amount, variance: squares * (1.0 - chance) }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.known += other.known;
        self.sampled += other.sampled;
        self.variance += other.variance;
    }

    /// The amount and its bounds. The bounds are the score interval of a Poisson number. This
    /// assumes that events occur at random, and that each event represents the amount that yields
    /// the variance.
    pub(crate) fn bounded(&self) -> BoundedAmount {
        let amount = self.known + self.sampled;
        let (mut low, mut high) = (amount, amount);
        if self.variance > 0.0 && self.sampled > 0.0 {
            let step = self.variance / self.sampled;
            let (least, most) = count_bounds(self.sampled / step);
            (low, high) = (self.known + least * step, self.known + most * step);
        }
        BoundedAmount { amount: amount.round() as u64, low: low.floor() as u64, high: high.ceil() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(objects: u64, bytes: u64, weight: u64) -> Allocation {
        let each = weight as f64 / bytes as f64;
        Allocation {
            objects,
            bytes,
            weight,
            objects_weight: (objects as f64 * each * 1024.0) as u64,
            squares: (objects as f64 * each * each) as u64,
            ..Allocation::default()
        }
    }

    fn bounded_sum(records: &[Allocation], estimate: fn(&Allocation) -> Estimate) -> BoundedAmount {
        let mut sum = Estimate::default();
        records.iter().for_each(|record| sum.add(estimate(record)));
        sum.bounded()
    }

    #[test]
    fn what_was_seen_whole_has_no_doubt() {
        let exact =
            Allocation { objects: 7, bytes: 700, weight: 700, objects_weight: 7 << 10, ..Allocation::default() };
        assert_eq!(bounded_sum(&[exact], Estimate::of_bytes), BoundedAmount { amount: 700, low: 700, high: 700 });
        assert_eq!(bounded_sum(&[exact, exact], Estimate::of_objects), BoundedAmount { amount: 14, low: 14, high: 14 });
        assert_eq!(bounded_sum(&[], Estimate::of_bytes), BoundedAmount::default());
    }

    #[test]
    fn bounds_are_those_of_events_that_come_by_chance() {
        // A hundred samples: a fifth to either side.
        let bounded = bounded_sum(&[sampled(100, 2_400, 10_240_000)], Estimate::of_bytes);
        let parts = |at: u64| at as f64 / 10_240_000.0;
        assert_eq!(bounded.amount, 10_240_000);
        assert!((parts(bounded.low) - 0.822).abs() < 0.01 && (parts(bounded.high) - 1.216).abs() < 0.01, "{bounded:?}");
        // One sample: of next to nothing to nearly six times as much.
        let bounded = bounded_sum(&[sampled(1, 24, 102_400)], Estimate::of_bytes);
        assert!(bounded.low < 20_000 && bounded.high > 500_000, "{bounded:?}");
        // An object that is nearly always sampled leaves little doubt.
        let bounded = bounded_sum(&[sampled(1, 1_000_000, 1_000_100)], Estimate::of_bytes);
        assert!(bounded.high - bounded.low < 100_000, "{bounded:?}");
        let objects = bounded_sum(&[sampled(100, 2_400, 10_240_000)], Estimate::of_objects);
        assert!(objects.amount.abs_diff(426_666) < 2 && objects.low < 360_000 && objects.high > 510_000, "{objects:?}");
    }

    /// Known amounts that are sampled byte by byte lie inside their bounds in about 95 of 100
    /// tries.
    #[test]
    fn bounds_hold_the_truth_as_often_as_they_say() {
        let (mut state, mut inside) = (1_u64, 0);
        let mut chance = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (objects, size, mean) = (60_000_u64, 56_u64, 102_400.0_f64);
        let is_sampled = 1.0 - (1.0 - 1.0 / mean).powi(size as i32);
        for _ in 0..400 {
            let seen = (0..objects).filter(|_| chance() < is_sampled).count() as u64;
            let weight = (seen as f64 * size as f64 / is_sampled) as u64;
            let bounded = bounded_sum(&[sampled(seen, seen * size, weight.max(1))], Estimate::of_bytes);
            inside += u32::from((bounded.low..=bounded.high).contains(&(objects * size)));
        }
        assert!((370..=396).contains(&inside), "{inside} of 400");
    }
}
