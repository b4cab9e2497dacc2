//! Counters of lines and branches, which `coverage` records.

use crate::layout::{coverage, u32_at, u64_at};

/// One method with its counters; see [`layout::coverage`](crate::layout::coverage) for its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MethodHits {
    /// Index into [`Process::modules`](super::Process::modules).
    pub module: u32,
    /// Metadata token.
    pub token: u32,
    /// Fingerprint of the plan that the counters are of.
    pub fingerprint: u64,
    /// Number of points.
    pub points: u32,
    /// Number of branches.
    pub branches: u32,
    /// Whether hits were counted, and not only whether there was one.
    pub counted: bool,
    /// Hits of the points, then of the branches; 0 or 1 where hits were not counted. Threads that hit one at the same time may
    /// have lost a few.
    pub hits: Vec<u64>,
}

impl MethodHits {
    /// Hits of the points, in the order of the plan.
    #[must_use]
    pub fn of_points(&self) -> &[u64] {
        &self.hits[..self.hits.len().min(self.points as usize)]
    }

    /// Hits of the branches, in the order of the plan.
    #[must_use]
    pub fn of_branches(&self) -> &[u64] {
        &self.hits[self.hits.len().min(self.points as usize)..]
    }

    /// The bytes as they are stored.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let counter = if self.counted { 8 } else { 1 };
        let mut bytes = head(self);
        for hits in &self.hits {
            bytes.extend_from_slice(&hits.to_le_bytes()[..counter]);
        }
        bytes.resize(coverage::bytes(self.hits.len(), counter), 0);
        bytes
    }

    /// The methods in a chunk's bytes. One that is cut off is none, nor is one that was taken back, and nothing follows one that
    /// can't be.
    pub fn all(chunk: &[u8]) -> impl Iterator<Item = Self> {
        let mut rest = chunk;
        let records = std::iter::from_fn(move || {
            let (found, bytes) = Self::first(rest)?;
            rest = &rest[bytes..];
            Some(found)
        });
        records.filter(|method| method.token != 0)
    }

    /// The first of several, and its bytes.
    fn first(bytes: &[u8]) -> Option<(Self, usize)> {
        let [points, branches] = [coverage::POINTS, coverage::BRANCHES].map(|at| u32_at(bytes, at));
        let counters = (points as usize).checked_add(branches as usize)?;
        let counter = u32_at(bytes, coverage::COUNTER) as usize;
        if !matches!(counter, 1 | 8) || counters > bytes.len() / counter {
            return None;
        }
        let size = coverage::bytes(counters, counter);
        let record = bytes.get(..size)?;
        let counted = counter == 8;
        let hit = |at: usize| {
            let at = coverage::HEAD + at * counter;
            if counted { u64_at(record, at) } else { u64::from(record[at] != 0) }
        };
        let found = Self {
            module: u32_at(record, coverage::MODULE),
            token: u32_at(record, coverage::TOKEN),
            fingerprint: u64_at(record, coverage::FINGERPRINT),
            points,
            branches,
            counted,
            hits: (0..counters).map(hit).collect(),
        };
        Some((found, size))
    }
}

/// The head of a method's record; the hits are not looked at.
fn head(method: &MethodHits) -> Vec<u8> {
    let mut bytes = vec![0; coverage::HEAD];
    let counter = if method.counted { 8 } else { 1 };
    let words = [
        (coverage::MODULE, method.module),
        (coverage::TOKEN, method.token),
        (coverage::POINTS, method.points),
        (coverage::BRANCHES, method.branches),
        (coverage::COUNTER, counter),
    ];
    for (at, word) in words {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes[coverage::FINGERPRINT..][..8].copy_from_slice(&method.fingerprint.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(token: u32, counted: bool, points: u32, branches: u32) -> MethodHits {
        let hit = |at: u32| if counted { u64::MAX - u64::from(at) } else { u64::from(at % 2) };
        let hits = (0..points + branches).map(hit).collect();
        MethodHits { module: 3, token, fingerprint: 1 << 63 | 7, points, branches, counted, hits }
    }

    #[test]
    fn methods_come_back_and_a_cut_one_is_none() {
        let all = [method(1, true, 3, 2), method(2, false, 9, 0), method(3, false, 0, 0), method(4, true, 1, 1)];
        let mut bytes: Vec<u8> = all.iter().flat_map(MethodHits::to_bytes).collect();
        assert_eq!(MethodHits::all(&bytes).collect::<Vec<_>>(), all);
        assert_eq!((all[0].of_points().len(), all[0].of_branches().len()), (3, 2));
        bytes.pop();
        assert_eq!(MethodHits::all(&bytes).collect::<Vec<_>>(), all[..3]);
    }

    #[test]
    fn numbers_that_lie_end_the_chunk() {
        let good = method(1, true, 2, 1).to_bytes();
        for (at, lie) in [(coverage::POINTS, u32::MAX), (coverage::BRANCHES, 1 << 30), (coverage::COUNTER, 4)] {
            let mut bytes = [good.clone(), good.clone()].concat();
            bytes[good.len() + at..][..4].copy_from_slice(&lie.to_le_bytes());
            assert_eq!(MethodHits::all(&bytes).count(), 1, "{at}");
        }
    }
}
