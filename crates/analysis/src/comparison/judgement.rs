//! Evaluation of gates.

use std::convert::Infallible;

use clrscope_recording::model::Recording;

use super::gate::{Gate, Limit};
use super::interval::{Change, IntervalEstimate, Level, excess};
use super::reading::{Amounts, Reading, Sum, plain, rows};
use super::sides::{ComparisonProblem, Sides};
use crate::forest::{Forest, TreeNode, TreeOptions};
use crate::metric::Metric;
use crate::query::{Query, QueryProblem};

/// Outcome of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The limit was not exceeded.
    Passed,
    /// The difference from the limit may be due to chance. The gate does not fail.
    Unclear,
    /// The limit was exceeded, and chance does not explain the excess.
    Failed,
}

impl Outcome {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unclear => "unclear",
            Self::Failed => "failed",
        }
    }
}

/// A gate with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The gate.
    pub gate: Gate,
    /// The amounts that the gate measured on both sides.
    pub change: Change,
    /// Outcome of the gate.
    pub outcome: Outcome,
}

/// Evaluates a gate.
///
/// # Errors
/// When the gate's pattern matches no function of any recording, a recording does not have its
/// metric, or calls were not all counted.
pub fn judge(sides: &Sides<'_>, query: &Query, gate: &Gate) -> Result<Judgement, ComparisonProblem> {
    let query = Query { metric: Some(gate.metric), functions: vec![gate.pattern.clone()], ..query.clone() };
    let query = sides.resolved(&query)?;
    let metric = sides.metric(&query)?;
    let is_own = gate.is_own || metric.exclusive;
    let found = sides.read(|recording| {
        let reading = Reading::read(recording, &query, metric)?;
        let sum = if is_own { own(recording, &query, metric)? } else { outermost(recording, &query, metric)? };
        Ok((reading, reading.amounts(&sum)))
    })?;
    let merging = match gate.is_share {
        true => sides
            .merging_of_shares(&[0, 1].map(|side: usize| found[side].iter().map(|(reading, _)| *reading).collect())),
        false => sides.merging(),
    };
    let part = |(_, amounts): &(Reading, Amounts)| -> IntervalEstimate {
        match (is_own, gate.is_share) {
            (true, false) => amounts.own,
            (true, true) => amounts.own_share,
            (false, false) => amounts.total,
            (false, true) => amounts.total_share,
        }
    };
    let [before, after] = found.map(|side| side.iter().map(part).collect::<Vec<_>>());
    let change = merging.change(&before, &after);
    let outcome = outcome(&change, gate.limit);
    let is_open = [change.before, change.after].iter().any(|level| level.high.is_infinite());
    if is_open && outcome == Outcome::Unclear {
        // A gate that can't fail is worse than no gate.
        let problem = QueryProblem::CallsNotCounted { wanted: gate.pattern.as_str().to_owned() };
        return Err(ComparisonProblem { recording: None, problem });
    }
    Ok(Judgement { outcome, change, gate: gate.clone() })
}

/// The outcome, determined by the interval of the excess over the limit.
fn outcome(change: &Change, limit: Limit) -> Outcome {
    let (times, most) = match limit {
        Limit::Growth(part) => (1.0 + part, 0.0),
        Limit::More(amount) => (1.0, amount),
        Limit::Above(amount) => (0.0, amount),
    };
    // The amount before does not count, so its uncertainty must not either.
    let before = if times == 0.0 { Level::default() } else { change.before };
    let (low, high) = excess(&before, &change.after, times);
    match (low > most + slack(most, change), high > most + slack(most, change)) {
        (true, _) => Outcome::Failed,
        (false, true) => Outcome::Unclear,
        (false, false) => Outcome::Passed,
    }
}

/// Tolerance for rounding, so that rounding does not make a gate fail: 105 calls are not more than
/// 5 % above 100.
fn slack(most: f64, change: &Change) -> f64 {
    (most.abs() + change.after.median + change.before.median) * 1e-12
}

/// Sum of the own amounts of all functions that the query selects.
fn own(recording: &Recording, query: &Query, metric: &'static Metric) -> Result<Sum, QueryProblem> {
    let mut all = Sum::default();
    rows(recording, query, metric)?.iter().for_each(|(_, sum)| all.add(sum));
    Ok(all)
}

/// Sum of the totals of the outermost functions that the query selects: each event counts once,
/// however many of these functions are on its stack.
fn outermost(recording: &Recording, query: &Query, metric: &'static Metric) -> Result<Sum, QueryProblem> {
    let forest = Forest::open(recording, &plain(query, metric))?;
    let mut all = Sum::default();
    let add = |node: &TreeNode<'_>| -> Result<(), Infallible> {
        all.add(&Sum::new(&node.times, node.amount, metric, false));
        Ok(())
    };
    match forest.walk(&TreeOptions { min_share: 0.0, max_depth: Some(1) }, add) {
        Ok(_) => Ok(all),
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(before: &[f64], after: &[f64], limit: Limit) -> Outcome {
        let exact = |all: &[f64]| all.iter().map(|amount| IntervalEstimate::exact(*amount)).collect::<Vec<_>>();
        outcome(&Change::between(&exact(before), &exact(after)), limit)
    }

    #[test]
    fn exact_numbers_are_judged_to_the_last_one() {
        assert_eq!(judged(&[100.0], &[105.0], Limit::Growth(0.05)), Outcome::Passed);
        assert_eq!(judged(&[100.0], &[106.0], Limit::Growth(0.05)), Outcome::Failed);
        assert_eq!(judged(&[100.0], &[100.0], Limit::More(0.0)), Outcome::Passed);
        assert_eq!(judged(&[100.0], &[101.0], Limit::More(0.0)), Outcome::Failed);
        assert_eq!(judged(&[100.0], &[50.0], Limit::Growth(0.0)), Outcome::Passed);
        assert_eq!(judged(&[0.0], &[1.0], Limit::Growth(9.0)), Outcome::Failed, "more than nothing is any growth");
        assert_eq!(judged(&[0.0], &[0.0], Limit::Growth(0.0)), Outcome::Passed);
        assert_eq!(judged(&[9.0], &[5.0], Limit::Above(5.0)), Outcome::Passed);
        assert_eq!(judged(&[9.0], &[6.0], Limit::Above(5.0)), Outcome::Failed);
    }

    #[test]
    fn a_gate_fails_only_beyond_chance() {
        let sampled = |samples: f64| [IntervalEstimate::sampled(samples, samples, 1.0)];
        let of = |before, after, limit| outcome(&Change::between(&sampled(before), &sampled(after)), limit);
        assert_eq!(of(100.0, 110.0, Limit::Growth(0.05)), Outcome::Unclear);
        assert_eq!(of(100.0, 200.0, Limit::Growth(0.05)), Outcome::Failed);
        assert_eq!(of(10_000.0, 9_000.0, Limit::Growth(0.05)), Outcome::Passed);
        assert_eq!(of(100.0, 100.0, Limit::Growth(2.0)), Outcome::Passed);
        assert_eq!(of(100.0, 100.0, Limit::Above(100.0)), Outcome::Unclear);
    }

    #[test]
    fn sets_are_judged_by_how_much_their_runs_differ() {
        let (before, after) = ([100.0, 101.0, 99.0], [104.0, 105.0, 103.0]);
        assert_eq!(judged(&before, &after, Limit::Growth(0.0)), Outcome::Failed);
        assert_eq!(judged(&before, &after, Limit::Growth(0.05)), Outcome::Unclear);
        assert_eq!(judged(&before, &[90.0, 91.0, 89.0], Limit::Growth(0.05)), Outcome::Passed);
    }
}
