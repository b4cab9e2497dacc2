//! Tiers: which of its compilations of a method the samples fell into.
//!
//! The runtime compiles a method several times, and each frame of a sample says which of these it is of. A row has the
//! samples of its method by tier, so that a report answers whether a slow method was still waiting for its optimisation.

use clrscope_recording::model::{FunctionKind, Process, Recording, StackFrame, Tier};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::metric::{Metric, SampleCount};
use crate::paths::sums_of_stacks;
use crate::query::Query;
use crate::samples::{Folded, SAMPLED_CPU, SAMPLED_WALL};

/// Samples of a row by the tier of its code. A stack that a method is on twice, in two tiers, counts for both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tiers([SampleCount; Tier::ALL.len()]);

impl Tiers {
    /// Samples in code of this tier.
    #[must_use]
    pub fn samples(&self, tier: Tier) -> SampleCount {
        self.0.get(tier as usize).copied().unwrap_or_default()
    }

    /// The tiers that samples fell into, in the order of [`Tier::ALL`].
    pub fn seen(&self) -> impl Iterator<Item = (Tier, SampleCount)> + '_ {
        Tier::ALL.iter().map(|&tier| (tier, self.samples(tier))).filter(|(_, samples)| samples.total > 0)
    }

    /// The tier that the row ran in most, and the part of its samples there: of those of its own code, or, where it has
    /// none, of those with the row anywhere on the stack. `None` without samples in compiled methods.
    #[must_use]
    pub fn most(&self) -> Option<(Tier, f64)> {
        let has_own = self.seen().any(|(_, samples)| samples.own > 0);
        let by = |samples: SampleCount| if has_own { samples.own } else { samples.total };
        let all = self.seen().fold(0_u64, |sum, (_, samples)| sum.saturating_add(by(samples)));
        // The earlier tier where two are equal.
        let most = self.seen().reduce(|a, b| if by(b.1) > by(a.1) { b } else { a })?;
        Some((most.0, by(most.1) as f64 / all.max(1) as f64))
    }

    pub(crate) fn add(&mut self, tier: Tier, samples: SampleCount) {
        if let Some(sum) = self.0.get_mut(tier as usize) {
            sum.own = sum.own.saturating_add(samples.own);
            sum.total = sum.total.saturating_add(samples.total);
        }
    }

    pub(crate) fn join(&mut self, other: &Self) {
        other.seen().for_each(|(tier, samples)| self.add(tier, samples));
    }
}

/// The metric of samples that rows of a metric have: that one itself, or that of samples taken beside calls.
fn sampled(recording: &Recording, metric: &'static Metric) -> Option<&'static Metric> {
    let mut beside = [&SAMPLED_CPU, &SAMPLED_WALL].into_iter().filter(|sampled| sampled.is_in(recording));
    if metric.is_sampled() { Some(metric) } else { beside.next().filter(|_| metric.is_of_calls()) }
}

/// Samples by tier of each method that the samples of a metric, or those beside its calls, met in a process, by function
/// index.
pub(crate) fn tiers_of_functions(
    recording: &Recording,
    process: &Process,
    query: &Query,
    metric: &'static Metric,
) -> FxHashMap<u32, Tiers> {
    let mut found: FxHashMap<u32, Tiers> = FxHashMap::default();
    let Some(metric) = sampled(recording, metric) else { return found };
    let folded = Folded::of(recording, process, query);
    let is_folded = |function| folded.as_ref().is_some_and(|folded| folded.leaves_out(function));
    let is_compiled = |function: u32| {
        process.functions.get(function as usize).is_some_and(|known| known.kind == FunctionKind::Managed)
    };
    let mut met = FxHashSet::default();
    for (stack, sum) in sums_of_stacks(process, query, metric) {
        met.clear();
        let mut own = sum.samples;
        for frame in process.stacks.frames(stack) {
            let StackFrame::Method { function, tier, .. } = frame else {
                own = if folded.is_some() { own } else { 0 };
                continue;
            };
            if is_folded(function) {
                continue;
            }
            let on_top = std::mem::take(&mut own);
            if is_compiled(function) {
                let total = if met.insert((function, tier)) { sum.samples } else { 0 };
                found.entry(function).or_default().add(tier, SampleCount { own: on_top, total });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tier_that_most_samples_fell_into_is_that_of_the_code_itself() {
        let mut tiers = Tiers::default();
        assert_eq!(tiers.most(), None);
        tiers.add(Tier::Tier0, SampleCount { own: 0, total: 9 });
        assert_eq!(tiers.most(), Some((Tier::Tier0, 1.0)));
        tiers.add(Tier::Osr, SampleCount { own: 3, total: 3 });
        tiers.add(Tier::Tier1, SampleCount { own: 1, total: 1 });
        assert_eq!(tiers.most(), Some((Tier::Osr, 0.75)));
        let mut both = tiers;
        both.join(&tiers);
        assert_eq!(both.samples(Tier::Osr), SampleCount { own: 6, total: 6 });
        assert_eq!(both.seen().map(|(tier, _)| tier).collect::<Vec<_>>(), [Tier::Tier0, Tier::Tier1, Tier::Osr]);
    }
}
