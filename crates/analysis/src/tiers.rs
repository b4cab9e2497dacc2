//! Tiers: which of its compilations of a method the samples fell into.
//!
//! The runtime compiles a method several times, and each frame of a sample says which of these it is of. A row has the
//! samples of its method by tier, so that a report answers whether a slow method was still waiting for its optimisation.

use clrscope_recording::model::{FunctionKind, Process, Recording, StackFrame, Tier};
use rustc_hash::FxHashMap;

use crate::metric::{Metric, SampleCount};
use crate::parallel::fold;
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
    let Some(metric) = sampled(recording, metric) else { return FxHashMap::default() };
    let folded = Folded::of(recording, process, query);
    let functions: Vec<Told> = (0..)
        .zip(&process.functions)
        .map(|(index, function)| Told {
            is_folded: folded.as_ref().is_some_and(|folded| folded.leaves_out(index)),
            is_compiled: function.kind == FunctionKind::Managed,
        })
        .collect();
    let unknown = Told { is_folded: folded.is_some(), is_compiled: false };
    let sums = sums_of_stacks(process, query, metric);
    let new =
        || Met { tiers: vec![Tiers::default(); functions.len()], last: vec![[0; Tier::ALL.len()]; functions.len()] };
    let parts = fold(sums.len().div_ceil(TOGETHER), new, |met, piece| {
        let from = piece * TOGETHER;
        for (number, &(stack, sum)) in (from as u32 + 1..).zip(sums[from..].iter().take(TOGETHER)) {
            let mut own = sum.samples;
            for frame in process.stacks.frames(stack) {
                let StackFrame::Method { function, tier, .. } = frame else {
                    own = if folded.is_some() { own } else { 0 };
                    continue;
                };
                let told = functions.get(function as usize).copied().unwrap_or(unknown);
                if told.is_folded {
                    continue;
                }
                let on_top = std::mem::take(&mut own);
                if told.is_compiled {
                    met.add(function, tier, number, SampleCount { own: on_top, total: sum.samples });
                }
            }
        }
    });
    let mut found: FxHashMap<u32, Tiers> = FxHashMap::default();
    for part in parts {
        let met = (0..).zip(&part.tiers).filter(|(_, tiers)| tiers.seen().next().is_some());
        met.for_each(|(function, tiers)| found.entry(function).or_default().join(tiers));
    }
    found
}

/// Stacks that are looked at together.
const TOGETHER: usize = 1 << 12;

/// Facts about a function.
#[derive(Clone, Copy)]
struct Told {
    is_folded: bool,
    is_compiled: bool,
}

/// Methods that were met, by function index.
struct Met {
    tiers: Vec<Tiers>,
    /// The last stack that each was met on, by tier.
    last: Vec<[u32; Tier::ALL.len()]>,
}

impl Met {
    /// Adds the samples of a stack, whose total counts once.
    fn add(&mut self, function: u32, tier: Tier, stack: u32, samples: SampleCount) {
        let last = &mut self.last[function as usize][tier as usize];
        let total = if std::mem::replace(last, stack) == stack { 0 } else { samples.total };
        self.tiers[function as usize].add(tier, SampleCount { own: samples.own, total });
    }
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
