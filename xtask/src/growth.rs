//! Judges whether memory that was measured once per round keeps growing.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

/// A single step that is allowed, in kilobytes: the runtime takes memory for itself in such pieces.
const ALLOWED_STEP: f64 = 1024.0;
/// So many parts of the rounds are looked at, at the end, for what is given back later. A saw-tooth
/// of collections that is longer than a part looks like growth.
const PARTS: usize = 10;
/// A step is over within this part of the rounds.
const STEP_PARTS: usize = 50;

/// Growth of a process's memory over many rounds. Memory that was given back later does not count:
/// the memory of a round is the minimum of that round and all later ones.
///
/// A single step does not count either, if memory is flat before and after it. The step must be
/// most of the growth and not large, and at least half of the rounds must come after it, so that a
/// second step would have been seen. The step is always reported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Growth {
    /// From the first round to the last that is judged.
    total: f64,
    /// Those rounds.
    rounds: usize,
    /// Where it is most of the growth, and worth a word.
    step: Option<Step>,
}

/// A quick growth within few rounds.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    kilobytes: f64,
    rounds: Range<usize>,
    /// Growth after it.
    later: f64,
    rounds_later: usize,
}

impl Growth {
    /// Returns the growth of memory, given in kilobytes per round; `None` for fewer than 20 rounds.
    pub(crate) fn from_rounds(kilobytes: &[u64]) -> Option<Self> {
        if kilobytes.len() < 2 * PARTS {
            return None;
        }
        let kept = kept(kilobytes);
        let last = kept.len() - 1;
        let grown = |range: Range<usize>| kept[range.end] - kept[range.start];
        let total = grown(0..last);
        let width = (kilobytes.len() / STEP_PARTS).max(1);
        // Of equal ones the first.
        let largest = (0..=last - width).rev().map(|first| first..first + width);
        let step = largest.max_by(|one, other| grown(one.clone()).total_cmp(&grown(other.clone())));
        let step = step.filter(|range| grown(range.clone()) > total / 2.0).map(|rounds| Step {
            kilobytes: grown(rounds.clone()),
            later: grown(rounds.end..last),
            rounds_later: last - rounds.end,
            rounds,
        });
        Some(Self { total, rounds: last, step })
    }

    /// Whether memory grows by at most `allowed` kilobytes per round, apart from one permitted
    /// step.
    pub(crate) fn is_within(&self, allowed: f64) -> bool {
        let is_flat = |kilobytes: f64, rounds: usize| kilobytes <= allowed * rounds as f64;
        is_flat(self.total, self.rounds)
            || self.step.as_ref().is_some_and(|step| {
                step.kilobytes <= ALLOWED_STEP
                    && step.rounds_later * 2 >= self.rounds
                    && is_flat(step.later, step.rounds_later)
                    && is_flat(self.total - step.kilobytes, self.rounds)
            })
    }
}

impl Display for Growth {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let a_round = |kilobytes: f64, rounds: usize| kilobytes / rounds.max(1) as f64;
        write!(out, "{:.2} kB a round over {} rounds", a_round(self.total, self.rounds), self.rounds)?;
        let Some(Step { kilobytes, rounds, later, rounds_later }) = &self.step else { return Ok(()) };
        write!(out, ", of it a step of {kilobytes} kB in rounds {} to {}", rounds.start + 1, rounds.end + 1)?;
        write!(out, " and {:.2} kB a round in the {rounds_later} after it", a_round(*later, *rounds_later))
    }
}

/// The memory of each round without what was given back later. The last part of the rounds has
/// nothing after it, and only says what those before it kept.
fn kept(kilobytes: &[u64]) -> Vec<f64> {
    let mut least = f64::INFINITY;
    let mut kept: Vec<f64> = Vec::with_capacity(kilobytes.len());
    for &now in kilobytes.iter().rev() {
        least = least.min(now as f64);
        kept.push(least);
    }
    kept.reverse();
    kept.truncate(kilobytes.len() - kilobytes.len() / PARTS);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: f64 = 0.5;

    fn growth(kilobytes: impl Fn(u64) -> u64) -> Growth {
        Growth::from_rounds(&(0..1000).map(kilobytes).collect::<Vec<_>>()).expect("enough rounds")
    }

    /// So went `cpu` on .NET 10, and was called growth.
    #[test]
    fn a_step_and_flatness_after_it_are_flat_and_the_step_is_said() {
        let stepped = growth(|round| if round < 130 { 20_000 } else { 20_552 } + round % 3);
        assert!(stepped.is_within(ALLOWED), "{stepped}");
        assert!(stepped.to_string().contains("a step of 552 kB in rounds 111 to 131"), "{stepped}");
        assert!(stepped.to_string().ends_with("0.00 kB a round in the 769 after it"), "{stepped}");
    }

    #[test]
    fn a_line_is_growth_from_the_limit_on() {
        assert!(!growth(|round| 20_000 + round * 6 / 10).is_within(ALLOWED));
        assert!(growth(|round| 20_000 + round * 4 / 10).is_within(ALLOWED));
        assert_eq!(growth(|round| 20_000 + round).to_string(), "1.00 kB a round over 899 rounds");
    }

    #[test]
    fn a_saw_tooth_is_flat_and_one_on_a_line_is_growth() {
        for period in [7, 40, 90] {
            let tooth = |round: u64| round % period * 512 / period;
            assert!(growth(|round| 20_000 + tooth(round)).is_within(ALLOWED), "{period}");
            assert!(growth(|round| 20_512 - tooth(round)).is_within(ALLOWED), "{period}, downwards");
            assert!(!growth(|round| 20_000 + tooth(round) + round * 6 / 10).is_within(ALLOWED), "{period}");
        }
    }

    #[test]
    fn steps_that_come_again_are_growth() {
        for period in [100, 200, 400] {
            let stairs = growth(|round| 20_000 + (round + period - 50) / period * period * 6 / 10);
            assert!(!stairs.is_within(ALLOWED), "{period}: {stairs}");
        }
    }

    #[test]
    fn a_step_excuses_nothing_where_it_is_late_large_or_followed_by_growth() {
        let stepped = |at: u64, kilobytes: u64| move |round| 20_000 + if round < at { 0 } else { kilobytes };
        assert!(!growth(stepped(600, 552)).is_within(ALLOWED), "late");
        assert!(!growth(stepped(130, 2048)).is_within(ALLOWED), "large");
        assert!(!growth(|round| stepped(130, 1000)(round) + round * 6 / 10).is_within(ALLOWED), "before growth");
    }

    #[test]
    fn memory_that_shrinks_is_flat_and_few_rounds_say_nothing() {
        let shrinking = growth(|round| 20_000 - round);
        assert!(shrinking.is_within(ALLOWED));
        assert_eq!(shrinking.to_string(), "0.00 kB a round over 899 rounds");
        assert_eq!(Growth::from_rounds(&[1; 19]), None);
    }
}
