//! Checks whether the bounds that reports state hold the truth as often as the reports say.

use clrscope_analysis::{HOOK_MARGIN, sampled_bounds};

use super::page::Page;

/// Share of the rows whose bounds should hold the truth.
const STATED: f64 = 0.95;
/// The chance below which so few rows within their bounds are a miss: bounds do not hold as often
/// as they say then.
const UNLIKELY: f64 = 0.01;
/// Part of a time that hooks must have taken for their cost to say anything about its bounds.
const HOOKS_THAT_MATTER: f64 = 0.1;

/// A CPU time of one run with its bounds and the truth, in nanoseconds.
pub(super) struct Bounded {
    /// The sampled time, including hooks.
    pub(super) measured: f64,
    /// Mean time that one sample stands for.
    pub(super) step: f64,
    /// The time that the program measured in the same run, including hooks.
    pub(super) taken: f64,
    /// Bounds of the time without the profiler.
    pub(super) within: (f64, f64),
    /// Time of the hooks according to the recording: minimum and maximum.
    pub(super) hooks: (f64, f64),
    /// Minimum and maximum of the true time without the profiler.
    pub(super) truth: (f64, f64),
}

impl Bounded {
    fn is_sampled_well(&self) -> bool {
        let (low, high) = sampled_bounds(self.measured, self.step);
        low <= self.taken && self.taken <= high
    }

    fn holds_the_truth(&self) -> bool {
        self.within.0 <= self.truth.1 && self.truth.0 <= self.within.1
    }

    fn has_hooks(&self) -> bool {
        self.hooks.1 > self.measured * HOOKS_THAT_MATTER
    }

    /// Part by which hooks must be taken for cheaper or dearer than the recording says, so that the
    /// bounds of a time just reach the truth; 0 where they do anyway, nothing where they would not
    /// if hooks were free.
    fn margin(&self) -> Option<f64> {
        let (least, most) = self.within;
        let below = self.measured - self.hooks.1 * (1.0 + HOOK_MARGIN) - least;
        let above = most - (self.measured - self.hooks.0 * (1.0 - HOOK_MARGIN));
        let dearer = (self.measured - below - self.truth.1) / self.hooks.1 - 1.0;
        let cheaper = 1.0 - (self.measured + above - self.truth.0) / self.hooks.0;
        // Where hooks took nothing these are no numbers.
        let needed = [dearer, cheaper].into_iter().filter(|part| part.is_finite()).fold(0.0, f64::max);
        (cheaper.is_nan() || cheaper <= 1.0).then_some(needed)
    }
}

/// Prints how many rows hold the truth; with `are_all` also whether that is often enough. Returns
/// the number of missed goals.
pub(super) fn print(rows: &[Bounded], are_all: bool, page: &mut Page) -> usize {
    let count = |holds: fn(&Bounded) -> bool| rows.iter().filter(|row| holds(row)).count();
    let all = rows.len();
    let steps = rows.iter().map(|row| row.step).fold(0.0, f64::max) / 1e6;
    let mut missed = 0;
    let mut line = |what: &str, inside: usize| {
        let verdict = match (are_all, hold_often_enough(inside, all)) {
            (false, _) => "",
            (true, true) => "   met",
            (true, false) => "   MISSED",
        };
        missed += usize::from(verdict == "   MISSED");
        page.line(format_args!("  {what}: {inside} of {all} rows{verdict}"));
    };
    line("what samples say, hooks included, within chance of what the same run took", count(Bounded::is_sampled_well));
    line("CPU times of single runs within their bounds", count(Bounded::holds_the_truth));
    let mut margins: Vec<f64> = rows.iter().filter(|row| row.has_hooks()).filter_map(Bounded::margin).collect();
    margins.sort_by(f64::total_cmp);
    let counted = margins.len();
    let needed = margins.get((counted * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0);
    page.line(format_args!(
        "  margin of the hooks' cost that 95 of 100 of the {counted} rows with hooks need: {:.0} %; bounds have {:.0} %",
        100.0 * needed,
        100.0 * HOOK_MARGIN
    ));
    page.line(format_args!("  a sample weighs {steps:.1} ms in the run with the rarest ones"));
    missed
}

/// Whether `inside` of `all` rows agree with bounds that hold the truth in 95 of 100 rows. Chance
/// alone leaves a smaller share inside in half of all series.
pub(super) fn hold_often_enough(inside: usize, all: usize) -> bool {
    at_most(inside, all, STATED) >= UNLIKELY
}

/// Chance of at most `hits` in so many tries, where each try hits with this chance.
fn at_most(hits: usize, tries: usize, chance: f64) -> f64 {
    let mut exactly = (1.0 - chance).powi(i32::try_from(tries).unwrap_or(i32::MAX));
    let mut sum = exactly;
    for hit in 1..=hits.min(tries) {
        exactly *= (tries - hit + 1) as f64 / hit as f64 * chance / (1.0 - chance);
        sum += exactly;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(within: (f64, f64), truth: f64) -> Bounded {
        Bounded { measured: 100.0, step: 1.0, taken: 100.0, within, hooks: (40.0, 60.0), truth: (truth, truth) }
    }

    #[test]
    fn the_margin_that_is_needed_is_the_one_that_bounds_have_where_they_just_reach_the_truth() {
        // Of 100, 40 to 60 are hooks', and chance does 5.
        let (least, most) = (100.0 - 60.0 * (1.0 + HOOK_MARGIN) - 5.0, 100.0 - 40.0 * (1.0 - HOOK_MARGIN) + 5.0);
        let needed = |truth: f64| row((least, most), truth).margin().expect("hooks explain it");
        assert!((needed(least) - HOOK_MARGIN).abs() < 1e-9 && (needed(most) - HOOK_MARGIN).abs() < 1e-9);
        assert!(needed(least - 6.0) > HOOK_MARGIN + 0.09 && needed(50.0) == 0.0);
        assert_eq!(row((least, most), 106.0).margin(), None, "more than was measured and chance does");
    }

    #[test]
    fn a_verdict_allows_for_chance_and_for_no_more() {
        assert!((at_most(1, 2, 0.5) - 0.75).abs() < 1e-12 && (at_most(9, 9, 0.95) - 1.0).abs() < 1e-12);
        assert!((at_most(33, 35, 0.95) - 0.5280).abs() < 1e-3, "{}", at_most(33, 35, 0.95));
        assert!(hold_often_enough(33, 35) && hold_often_enough(64, 72) && hold_often_enough(0, 0));
        assert!(!hold_often_enough(29, 35) && !hold_often_enough(50, 72) && !hold_often_enough(62, 72));
    }

    #[test]
    fn a_row_is_judged_by_what_its_own_run_took() {
        let good = row((20.0, 60.0), 50.0);
        assert!(good.is_sampled_well() && good.holds_the_truth() && good.has_hooks());
        let bad = Bounded { taken: 130.0, truth: (61.0, 70.0), ..row((20.0, 60.0), 50.0) };
        assert!(!bad.is_sampled_well() && !bad.holds_the_truth());
    }
}
