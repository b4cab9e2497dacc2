//! Tiers tell in which compilation of a method samples were taken.
//!
//! The runtime may compile a method several times, and each frame of a sample records which
//! compilation it belongs to. A row has the samples of its method by tier, so a report shows
//! whether a slow method was not yet optimised.

use std::sync::Arc;

use clrscope_recording::model::{Function, FunctionKind, Process, Recording, StackFrame, Tier};
use clrscope_recording::parallel::fold;

use crate::catalog::Catalog;
use crate::metric::{Metric, SampleCount};
use crate::query::Query;
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL};
use crate::stack_trees::{Frame, StackSum, StackVisitor, SummedStacks};

/// Samples of a row by the tier of its code. A stack that has the method in two tiers counts for
/// both.
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

    /// The tier with the most samples of the row, and its share. Counts samples with the row's
    /// function innermost or, if there are none, all samples with it on the stack. `None` if no
    /// samples fell into compiled methods.
    #[must_use]
    pub fn most(&self) -> Option<(Tier, f64)> {
        let has_own = self.seen().any(|(_, samples)| samples.own > 0);
        let by = |samples: SampleCount| if has_own { samples.own } else { samples.total };
        let all = self.seen().fold(0_u64, |sum, (_, samples)| sum.saturating_add(by(samples)));
        // The earlier tier of two with equal counts.
        let most = self.seen().reduce(|a, b| if by(b.1) > by(a.1) { b } else { a })?;
        Some((most.0, by(most.1) as f64 / all.max(1) as f64))
    }

    pub(crate) fn add(&mut self, tier: Tier, samples: SampleCount) {
        if let Some(sum) = self.0.get_mut(tier as usize) {
            sum.own = sum.own.saturating_add(samples.own);
            sum.total = sum.total.saturating_add(samples.total);
        }
    }
}

/// The sample metric for rows of a metric: the metric itself, or the metric of the samples that
/// were taken alongside calls.
fn sampled(recording: &Recording, metric: &'static Metric) -> Option<&'static Metric> {
    let mut beside = [&SAMPLED_CPU, &SAMPLED_WALL].into_iter().filter(|sampled| sampled.is_in(recording));
    if metric.is_sampled() { Some(metric) } else { beside.next().filter(|_| metric.is_of_calls()) }
}

/// Samples of one method in one tier of its code.
pub(crate) type OfTier = (u32, Tier, SampleCount);

/// Samples by tier for each sampled method of a process, by function index. They come from the
/// metric itself, or for a metric of `calls` from the samples that were taken alongside.
pub(crate) fn tiers_of_functions(
    recording: &Recording,
    process: &Process,
    query: &Query,
    metric: &'static Metric,
    catalog: &Catalog<'_>,
) -> Vec<OfTier> {
    let stacks =
        sampled(recording, metric).and_then(|metric| SummedStacks::for_metric(recording, process, query, metric));
    let Some(stacks) = stacks else { return Vec::new() };
    let sums = TierSums::new(process);
    sums.of_functions(&stacks.visit_stacks(catalog, &sums))
}

/// Finds samples by tier along stacks. A method's frame counts only if no frame of the same method
/// and tier lies above it.
pub(crate) struct TierSums {
    /// By function index; the list ends at the last function with compiled code.
    functions: Arc<Vec<TiersMet>>,
    /// Number of pairs of method and tier.
    cells: usize,
}

/// Tiers in which the stack table has frames of a function.
#[derive(Debug, Clone, Copy, Default)]
struct TiersMet {
    /// Number of pairs of method and tier before this function.
    first: u32,
    /// Bits by number of the tier.
    tiers: u16,
}

const _: () = assert!(Tier::ALL.len() <= u16::BITS as usize);

impl TiersMet {
    /// Index of the function's cell for a tier; [`NONE`] if the tier is not counted.
    #[inline]
    fn cell(self, tier: Tier) -> u32 {
        let bit = 1_u16 << tier as u32;
        if self.tiers & bit == 0 { NONE } else { self.first + (self.tiers & (bit - 1)).count_ones() }
    }
}

/// Place of samples that are not counted.
const NONE: u32 = u32::MAX;

/// Samples of a method in a tier.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TierCell {
    own: u64,
    total: u64,
    /// Frames on the path.
    open: u32,
}

impl TierSums {
    /// Creates the visitor for the samples of a process.
    pub(crate) fn new(process: &Process) -> Self {
        let functions = process.derived.get("tiers of functions", || tiers_met(process));
        let cells = functions.last().map_or(0, |last| last.first as usize + last.tiers.count_ones() as usize);
        Self { functions, cells }
    }

    /// Creates an empty visitor, for metrics whose stacks have no tiers.
    pub(crate) fn none() -> Self {
        Self { functions: Arc::default(), cells: 0 }
    }

    /// Returns the samples, by function index.
    pub(crate) fn of_functions(&self, found: &[TierCell]) -> Vec<OfTier> {
        let methods = (0..).zip(&*self.functions).flat_map(|(function, met)| {
            let tiers = Tier::ALL.iter().map(|tier| (*tier, met.cell(*tier))).filter(|(_, cell)| *cell != NONE);
            tiers.map(move |(tier, cell)| (function, tier, cell as usize))
        });
        let samples = methods.map(|(function, tier, cell)| {
            let TierCell { own, total, .. } = found[cell];
            (function, tier, SampleCount { own, total })
        });
        samples.filter(|(.., samples)| samples.total > 0).collect()
    }
}

/// The tiers of the frames in the stack table, by function index.
fn tiers_met(process: &Process) -> Vec<TiersMet> {
    let (stacks, functions) = (&process.stacks, process.functions.len());
    let parts = fold(
        stacks.len().div_ceil(TOGETHER),
        || vec![0_u16; functions],
        |met, piece| {
            let from = piece * TOGETHER;
            for place in from..stacks.len().min(from + TOGETHER) {
                let Some(StackFrame::Method { function, tier, .. }) = stacks.frame_at(place) else { continue };
                if let Some(tiers) = met.get_mut(function as usize) {
                    *tiers |= 1 << tier as u32;
                }
            }
        },
    );
    let mut first = 0;
    let of_function = |(index, function): (usize, &Function)| {
        let is_compiled = function.kind == FunctionKind::Managed;
        let tiers = if is_compiled { parts.iter().fold(0, |all, part| all | part[index]) } else { 0 };
        first += tiers.count_ones();
        TiersMet { first: first - tiers.count_ones(), tiers }
    };
    process.functions.iter().enumerate().map(of_function).collect()
}

/// Frames that a worker processes at a time.
const TOGETHER: usize = 1 << 16;

impl StackVisitor for TierSums {
    type Acc = Vec<TierCell>;
    type Inherited = u32;

    fn begin(&self) -> Self::Acc {
        vec![TierCell::default(); self.cells]
    }

    fn outside(&self) -> u32 {
        NONE
    }

    #[inline]
    fn enter(&self, found: &mut Self::Acc, _: u32, frame: &Frame) -> u32 {
        let met = frame.tier.and_then(|tier| Some(self.functions.get(frame.function as usize)?.cell(tier)));
        let cell = met.unwrap_or(NONE);
        if cell != NONE {
            found[cell as usize].open += 1;
        }
        cell
    }

    #[inline]
    fn stack(&self, found: &mut Self::Acc, here: u32, _: &Frame, _: u32, sum: StackSum) {
        if here != NONE {
            let own = &mut found[here as usize].own;
            *own = own.saturating_add(sum.samples);
        }
    }

    #[inline]
    fn leave(&self, found: &mut Self::Acc, here: u32, _: &Frame, sum: StackSum) {
        if here != NONE {
            let cell = &mut found[here as usize];
            cell.open -= 1;
            if cell.open == 0 {
                cell.total = cell.total.saturating_add(sum.samples);
            }
        }
    }

    fn join(&self, all: &mut Self::Acc, part: Self::Acc) {
        for (cell, more) in all.iter_mut().zip(part) {
            cell.own = cell.own.saturating_add(more.own);
            cell.total = cell.total.saturating_add(more.total);
        }
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
        tiers.seen().for_each(|(tier, samples)| both.add(tier, samples));
        assert_eq!(both.samples(Tier::Osr), SampleCount { own: 6, total: 6 });
        assert_eq!(both.seen().map(|(tier, _)| tier).collect::<Vec<_>>(), [Tier::Tier0, Tier::Tier1, Tier::Osr]);
    }
}
