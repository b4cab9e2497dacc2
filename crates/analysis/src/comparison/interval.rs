//! Amounts with their bounds: of one recording, of several recordings, and of the difference
//! between two sides.

use crate::sampling::count_bounds;

/// Quantiles of Student's distribution for 95 %, for two to five recordings. From six recordings
/// on, the interval of the median needs no assumption about how runs differ.
const STUDENT: [f64; 4] = [12.706, 4.303, 3.182, 2.776];

/// An amount of one recording, with bounds that hold the true amount in 95 of 100 cases.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IntervalEstimate {
    /// The measured amount.
    pub amount: f64,
    /// Lower bound of the true amount.
    pub low: f64,
    /// Upper bound of the true amount; infinite if it is unknown.
    pub high: f64,
}

impl IntervalEstimate {
    /// An amount whose events were all recorded.
    #[must_use]
    pub fn exact(amount: f64) -> Self {
        Self { amount, low: amount, high: amount }
    }

    /// An amount estimated from `samples` samples. `step` is the amount per sample, used only if
    /// there are no samples.
    #[must_use]
    pub fn sampled(amount: f64, samples: f64, step: f64) -> Self {
        let each = if samples > 0.0 { amount / samples } else { step };
        let (low, high) = count_bounds(samples);
        Self { amount, low: (low * each).min(amount), high: (high * each).max(amount) }
    }

    /// The amount and its bounds, times a factor.
    pub(super) fn times(self, factor: f64) -> Self {
        let Self { amount, low, high } = self;
        Self { amount: amount * factor, low: low * factor, high: high * factor }
    }

    /// An amount between bounds, which are widened if the amount lies outside.
    #[must_use]
    pub fn between(amount: f64, (low, high): (f64, f64)) -> Self {
        Self { amount, low: low.clamp(0.0, amount), high: high.max(amount) }
    }
}

/// The amount of one side with its 95 % interval. It is the median of the side's recordings, or
/// their mean if the recordings are merged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Level {
    /// Median of the recordings; for merged recordings the mean.
    pub median: f64,
    /// Lower bound of the median of all possible runs.
    pub low: f64,
    /// Upper bound of the median of all possible runs; infinite if unknown.
    pub high: f64,
}

impl Level {
    /// Returns the level of several recordings. For one recording it is the measured amount,
    /// because the difference between runs is not known. For two to five recordings it has
    /// Student's interval about the mean; for more, the interval of the median by order statistics.
    /// Each interval is widened by the uncertainty of sampling, so that runs that happen to agree
    /// do not look exact.
    #[must_use]
    pub fn from_runs(runs: &[IntervalEstimate]) -> Self {
        let mut amounts: Vec<f64> = runs.iter().map(|run| run.amount).collect();
        amounts.sort_by(f64::total_cmp);
        let median = match runs {
            [] => return Self::default(),
            [only] => return Self { median: only.amount, low: only.low, high: only.high },
            _ => median(&amounts),
        };
        let number = amounts.len() as f64;
        let mean = amounts.iter().sum::<f64>() / number;
        let (low, high) = spread(&amounts, mean);
        let chance =
            |of: fn(&IntervalEstimate) -> f64| runs.iter().map(|run| of(run).powi(2)).sum::<f64>().sqrt() / number;
        let (less, more) = (chance(|run| run.amount - run.low), chance(|run| run.high - run.amount));
        Self { median, low: low.min(mean - less).min(median).max(0.0), high: high.max(mean + more).max(median) }
    }

    /// Returns the mean of recordings. Each counts with a share; the shares add up to one.
    /// The interval is that of a ratio of sums: the mean of amounts per hour, weighted by hours, is
    /// the sum of the amounts over the sum of the hours. As in [`from_runs`](Self::from_runs),
    /// the interval is never narrower than the uncertainty of sampling.
    pub(super) fn merged(runs: &[(IntervalEstimate, f64)]) -> Self {
        let mean: f64 = runs.iter().map(|(run, share)| run.amount * share).sum();
        let squares = |of: &dyn Fn(&IntervalEstimate) -> f64| -> f64 {
            runs.iter().map(|(run, share)| (share * of(run)).powi(2)).sum::<f64>().sqrt()
        };
        let (less, more) = (squares(&|run| run.amount - run.low), squares(&|run| run.high - run.amount));
        let number = runs.len() as f64;
        let half = match runs.len() {
            0 | 1 => 0.0,
            several => {
                let root = squares(&|run| run.amount - mean) * (number / (number - 1.0)).sqrt();
                // Amounts that are equal differ by rounding.
                if root > mean * 1e-12 { root * student(several) } else { 0.0 }
            }
        };
        Self { median: mean, low: (mean - half.max(less)).max(0.0), high: mean + half.max(more) }
    }

    /// Whether the bounds equal the median.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], sorted[middle]) } else { sorted[middle] }
}

/// The 95 % interval from the differences between runs.
fn spread(sorted: &[f64], mean: f64) -> (f64, f64) {
    let number = sorted.len();
    match STUDENT.get(number - 2) {
        Some(quantile) => {
            let squares: f64 = sorted.iter().map(|amount| (amount - mean).powi(2)).sum();
            let half = quantile * (squares / (number - 1) as f64 / number as f64).sqrt();
            (mean - half, mean + half)
        }
        None => {
            let rank = rank(number);
            (sorted[rank], sorted[number - 1 - rank])
        }
    }
}

/// Quantile of Student's distribution for 95 %, for this number of recordings. It comes from the
/// table, or for six or more recordings from the expansion of Cornish and Fisher, with an error of
/// less than a hundredth.
fn student(number: usize) -> f64 {
    let normal = 1.959_964_f64;
    let free = (number - 1) as f64;
    STUDENT.get(number.saturating_sub(2)).copied().unwrap_or_else(|| {
        let power = |exponent| normal.powi(exponent);
        let first = (power(3) + normal) / 4.0;
        let second = (5.0 * power(5) + 16.0 * power(3) + 3.0 * normal) / 96.0;
        let third = (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * normal) / 384.0;
        normal + first / free + second / free.powi(2) + third / free.powi(3)
    })
}

/// Rank for an interval of the median: in at least 95 of 100 cases, the median lies between the
/// values with this rank from either end of the sorted values.
fn rank(number: usize) -> usize {
    // Exact while powers of two have room, by the normal distribution beyond.
    if number > 1_000 {
        let number = number as f64;
        return ((number / 2.0 - 0.98 * number.sqrt()).floor() as usize).saturating_sub(1);
    }
    let mut chance = 0.5_f64.powi(number as i32);
    let (mut below, mut rank) = (chance, 0);
    loop {
        chance *= (number - rank) as f64 / (rank + 1) as f64;
        below += chance;
        if 2.0 * below > 0.05 {
            return rank;
        }
        rank += 1;
    }
}

/// Verdict on the difference between two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The amount was zero before, and is now greater than chance explains.
    New,
    /// Significantly more than before.
    More,
    /// Significantly less than before.
    Less,
    /// The amount is zero now, and was greater before than chance explains.
    Gone,
    /// A difference that may be due to chance.
    Unclear,
    /// The amounts on both sides are exactly equal.
    Same,
}

impl Verdict {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::More => "more",
            Self::Less => "less",
            Self::Gone => "gone",
            Self::Unclear => "unclear",
            Self::Same => "same",
        }
    }

    /// Whether the change is statistically significant.
    #[must_use]
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::Unclear | Self::Same)
    }
}

/// Change of one amount between the two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The amount before.
    pub before: Level,
    /// The amount after.
    pub after: Level,
    /// Difference of the medians.
    pub difference: f64,
    /// Lower bound of the difference. The true difference lies between the bounds in 95 of 100
    /// cases.
    pub low: f64,
    /// Upper bound of the difference. The true difference lies between the bounds in 95 of 100
    /// cases.
    pub high: f64,
    /// Verdict on the difference.
    pub verdict: Verdict,
}

impl Change {
    /// Returns the change from the recordings before to the recordings after.
    #[must_use]
    pub fn between(before: &[IntervalEstimate], after: &[IntervalEstimate]) -> Self {
        Self::of_levels([before, after].map(Level::from_runs), before, after)
    }

    /// Returns the change from one level to another. `before` and `after` are the amounts of the
    /// recordings of each side.
    pub(super) fn of_levels([old, new]: [Level; 2], before: &[IntervalEstimate], after: &[IntervalEstimate]) -> Self {
        let (low, high) = excess(&old, &new, 1.0);
        let is_in = |runs: &[IntervalEstimate]| runs.iter().any(|run| run.amount > 0.0);
        let verdict = match (low > 0.0, high < 0.0) {
            (true, _) if !is_in(before) => Verdict::New,
            (true, _) => Verdict::More,
            (_, true) if !is_in(after) => Verdict::Gone,
            (_, true) => Verdict::Less,
            _ if old.is_exact() && old == new => Verdict::Same,
            _ => Verdict::Unclear,
        };
        Self { before: old, after: new, difference: new.median - old.median, low, high, verdict }
    }

    /// Growth as a part of the amount before: 0.05 for a twentieth more; `None` if the amount
    /// before was zero.
    #[must_use]
    pub fn growth(&self) -> Option<f64> {
        (self.before.median > 0.0).then(|| self.difference / self.before.median)
    }

    /// Whether the amounts of both sides are exact.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.before.is_exact() && self.after.is_exact()
    }
}

/// The 95 % interval of `after - times * before`, computed from the intervals of both sides. The
/// errors of the two sides are independent, so their squares are added, separately for each bound
/// (Newcombe's hybrid, also known as MOVER).
pub(super) fn excess(before: &Level, after: &Level, times: f64) -> (f64, f64) {
    let middle = after.median - times * before.median;
    let root = |one: f64, other: f64| one.hypot(times * other);
    let low = middle - root(after.median - after.low, finite_first(before.high, before.median));
    let high = middle + root(finite_first(after.high, after.median), before.median - before.low);
    (low, high)
}

/// A bound's distance from the median; infinity stays infinite.
fn finite_first(high: f64, median: f64) -> f64 {
    if high.is_finite() { high - median } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(amounts: &[f64]) -> Vec<IntervalEstimate> {
        amounts.iter().map(|amount| IntervalEstimate::exact(*amount)).collect()
    }

    fn sampled(samples: f64) -> IntervalEstimate {
        IntervalEstimate::sampled(samples * 10.0, samples, 10.0)
    }

    #[test]
    fn exact_amounts_need_no_repetition() {
        let change = |before, after| Change::between(&exact(&[before]), &exact(&[after]));
        assert_eq!(change(100.0, 101.0).verdict, Verdict::More);
        assert_eq!((change(100.0, 99.0).verdict, change(100.0, 99.0).low), (Verdict::Less, -1.0));
        assert_eq!(change(0.0, 1.0).verdict, Verdict::New);
        assert_eq!(change(1.0, 0.0).verdict, Verdict::Gone);
        assert_eq!(change(7.0, 7.0).verdict, Verdict::Same);
        assert_eq!((change(0.0, 7.0).growth(), change(100.0, 105.0).growth()), (None, Some(0.05)));
    }

    #[test]
    fn a_few_samples_more_are_no_change() {
        let verdict = |before, after| Change::between(&[sampled(before)], &[sampled(after)]).verdict;
        assert_eq!(verdict(100.0, 110.0), Verdict::Unclear);
        assert_eq!(verdict(100.0, 150.0), Verdict::More);
        assert_eq!(verdict(0.0, 3.0), Verdict::Unclear, "three samples where there were none");
        assert_eq!(verdict(0.0, 12.0), Verdict::New);
        assert_eq!(verdict(12.0, 0.0), Verdict::Gone);
        assert_eq!(verdict(50.0, 50.0), Verdict::Unclear, "equal numbers of samples are no proof");
    }

    #[test]
    fn sampled_amounts_have_the_score_interval_of_their_number() {
        let of_hundred = sampled(100.0);
        assert_eq!((of_hundred.low.round(), of_hundred.high.round()), (822.0, 1216.0));
        let none = sampled(0.0);
        assert_eq!((none.amount, none.low), (0.0, 0.0));
        assert!((none.high - 38.4).abs() < 0.1, "{none:?}");
    }

    #[test]
    fn a_set_has_the_median_and_students_interval() {
        let level = Level::from_runs(&exact(&[12.0, 10.0, 11.0]));
        // Mean 11, deviation 1: 4.303 / sqrt(3).
        assert_eq!(level.median, 11.0);
        assert!((level.low - 8.516).abs() < 0.001 && (level.high - 13.484).abs() < 0.001, "{level:?}");
        let outlier = Level::from_runs(&exact(&[1.0, 1.0, 100.0]));
        assert!(outlier.low <= 1.0 && outlier.median == 1.0 && outlier.high > 100.0, "{outlier:?}");
        assert_eq!(Level::from_runs(&exact(&[5.0, 5.0, 5.0])), Level { median: 5.0, low: 5.0, high: 5.0 });
        assert_eq!(Level::from_runs(&exact(&[4.0, 6.0])).median, 5.0);
        assert_eq!(Level::from_runs(&[]), Level::default());
    }

    #[test]
    fn six_runs_have_the_interval_of_the_median_by_order() {
        let runs = |number: u32| exact(&(1..=number).map(f64::from).collect::<Vec<_>>());
        let bounds = |number| (Level::from_runs(&runs(number)).low, Level::from_runs(&runs(number)).high);
        // From the table of the sign test: the outermost of 6, the second of 9, the sixth of 20 and
        // the 40th of 100.
        assert_eq!(bounds(6), (1.0, 6.0));
        assert_eq!(bounds(9), (2.0, 8.0));
        assert_eq!(bounds(20), (6.0, 15.0));
        assert_eq!(bounds(100), (40.0, 61.0));
        let (low, high) = bounds(2_000);
        assert!((950.0..=960.0).contains(&low) && (1_040.0..=1_051.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn a_merged_side_is_the_sum_of_amounts_over_the_sum_of_times() {
        // 30 in one hour, 10 in three: 40 in four.
        let level =
            Level::merged(&[(IntervalEstimate::exact(30.0), 0.25), (IntervalEstimate::exact(10.0 / 3.0), 0.75)]);
        assert!((level.median - 10.0).abs() < 1e-9, "{level:?}");
        // Of the weighted deviations, 5 and 5: their root of squares, times the root of 2, times
        // Student's quantile.
        assert!((level.high - (10.0 + 12.706 * 10.0)).abs() < 1e-6 && level.low == 0.0, "{level:?}");
        let level = Level::merged(&[1.0 / 3.0; 3].map(|share| (IntervalEstimate::exact(7.1), share)));
        assert!(level.is_exact(), "{level:?}");
        let level = Level::merged(&[(sampled(100.0), 0.5), (sampled(100.0), 0.5)]);
        assert!(level.low < 900.0 && level.high > 1_100.0, "{level:?}");
        assert_eq!(Level::merged(&[]), Level::default());
        // From the table of the distribution.
        for (number, quantile) in [(3, 4.303), (6, 2.571), (10, 2.262), (31, 2.042), (1_000, 1.962)] {
            assert!((student(number) - quantile).abs() < 0.01, "{number}: {}", student(number));
        }
    }

    #[test]
    fn samples_that_agree_are_not_exact() {
        let level = Level::from_runs(&[sampled(0.0), sampled(0.0), sampled(0.0)]);
        assert!(level.high > 20.0, "{level:?}");
        let level = Level::from_runs(&[sampled(100.0), sampled(100.0)]);
        assert!(level.low < 900.0 && level.high > 1_100.0, "{level:?}");
    }

    #[test]
    fn runs_that_differ_hide_a_change_that_single_ones_show() {
        let (before, after) = (exact(&[100.0, 140.0, 90.0]), exact(&[120.0, 160.0, 100.0]));
        assert_eq!(Change::between(&before[..1], &after[..1]).verdict, Verdict::More);
        assert_eq!(Change::between(&before, &after).verdict, Verdict::Unclear);
        let after = exact(&[500.0, 520.0, 510.0]);
        assert_eq!(Change::between(&before, &after).verdict, Verdict::More);
    }

    #[test]
    fn what_may_be_more_without_bound_is_never_less() {
        let open = IntervalEstimate { amount: 10.0, low: 10.0, high: f64::INFINITY };
        let change = Change::between(&[open], &[IntervalEstimate::exact(20.0)]);
        assert_eq!((change.verdict, change.low), (Verdict::Unclear, f64::NEG_INFINITY));
        assert_eq!(Change::between(&[IntervalEstimate::exact(5.0)], &[open]).verdict, Verdict::More);
        let both = Change::between(&[open], &[open]);
        assert!(both.low == f64::NEG_INFINITY && both.high == f64::INFINITY, "{both:?}");
    }

    #[test]
    fn intervals_of_differences_are_those_of_the_sides_by_squares() {
        let level = |median, low, high| Level { median, low, high };
        let (low, high) = excess(&level(10.0, 7.0, 14.0), &level(20.0, 17.0, 26.0), 1.0);
        assert_eq!((low, high), (10.0 - 5.0, 10.0 + 45.0_f64.sqrt()));
        let (low, high) = excess(&level(10.0, 10.0, 10.0), &level(20.0, 20.0, 20.0), 1.5);
        assert_eq!((low, high), (5.0, 5.0));
    }
}
