//! Merging of a side's recordings: their amounts are converted to one unit, whatever the number and
//! duration of the recordings, and each recording counts with a share.

use super::interval::{Change, IntervalEstimate, Level};

/// The unit that amounts of merged recordings refer to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Per {
    /// An hour of recorded time. For programs that keep running, such as services.
    #[default]
    Hour,
    /// One recording. For programs that do the same work in each recording.
    Recording,
}

impl Per {
    /// All units, each with its name and a short description.
    pub const ALL: [(&'static str, &'static str, Self); 2] = [
        ("hour", "amounts per hour of recorded time, for programs that run on", Self::Hour),
        ("recording", "amounts per recording, for programs that do the same work in each", Self::Recording),
    ];

    /// The unit with this name; `None` for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, ..)| *name == text).map(|(.., choice)| *choice)
    }

    /// Name of the unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Recording => "recording",
        }
    }
}

/// How a recording counts on its side.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Factor from amounts of the recording to amounts of the unit.
    factor: f64,
    /// Its share in the mean of its side, 0 to 1.
    share: f64,
}

/// How recordings become the level of their side: as a mean with shares, or as the median.
#[derive(Debug, Clone, Default)]
pub(super) struct Merging(Option<[Vec<Part>; 2]>);

impl Merging {
    /// Merges recordings. `sides` has for each side the factor and weight of each recording.
    pub(super) fn weighed(sides: [Vec<(f64, f64)>; 2]) -> Self {
        Self(Some(sides.map(|side| parts(&side))))
    }

    /// The change between the sides.
    pub(super) fn change(&self, before: &[IntervalEstimate], after: &[IntervalEstimate]) -> Change {
        let Some([of_before, of_after]) = &self.0 else { return Change::between(before, after) };
        let level = |runs: &[IntervalEstimate], parts: &[Part]| {
            let of = runs.iter().zip(parts).map(|(run, part)| (run.times(part.factor), part.share));
            Level::merged(&of.collect::<Vec<_>>())
        };
        Change::of_levels([level(before, of_before), level(after, of_after)], before, after)
    }
}

/// Parts from factors and weights. If the sum of the weights is zero, all recordings count equally.
fn parts(all: &[(f64, f64)]) -> Vec<Part> {
    let number = all.len() as f64;
    let sum: f64 = all.iter().map(|(_, weight)| weight).sum();
    let share = |weight: f64| if sum > 0.0 { weight / sum } else { 1.0 / number };
    all.iter().map(|&(factor, weight)| Part { factor, share: share(weight) }).collect()
}
