//! Counters of lines and branches, which `coverage` records.

use super::one_after_another::one_after_another;
use crate::layout::{coverage, u32_at, u64_at};

/// One method with its counters; see [`layout::coverage`](crate::layout::coverage) for its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MethodHits {
    /// Index into [`Process::modules`](super::Process::modules).
    pub module: u32,
    /// Metadata token.
    pub token: u32,
    /// Fingerprint of the plan that the counters belong to.
    pub fingerprint: u64,
    /// Number of points.
    pub points: u32,
    /// Number of branches.
    pub branches: u32,
    /// Whether hits were counted; otherwise it is only known whether there was a hit.
    pub counted: bool,
    /// Hits of the points, then of the branches; 0 or 1 if hits were not counted. A few hits may be
    /// lost if several threads reach the same point at the same time.
    pub hits: Vec<u64>,
}

/// How the hits of a method's points and branches follow from its counters: each is a sum of some
/// counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterSums {
    /// In the stored form; see [`layout::coverage`](crate::layout::coverage).
    words: Vec<u32>,
}

impl CounterSums {
    /// Creates sums of `counters` counters. `sums` has, for each point and then for each branch,
    /// the numbers of the counters to add.
    pub fn new<S: AsRef<[u32]>>(counters: usize, sums: impl IntoIterator<Item = S>) -> Self {
        let mut words = vec![counters as u32];
        for sum in sums {
            words.push(sum.as_ref().len() as u32);
            words.extend_from_slice(sum.as_ref());
        }
        Self { words }
    }

    /// Number of counters.
    #[must_use]
    pub fn counters(&self) -> usize {
        self.words.first().map_or(0, |counters| *counters as usize)
    }

    /// Maximum size in bytes of the method's record, at any position in a chunk, if a counter has
    /// `counter` bytes.
    #[must_use]
    pub fn record_bytes(&self, counter: usize) -> usize {
        coverage::bytes(self.words.len(), self.counters(), counter) + coverage::ALIGNMENT - 8
    }

    /// Number of words, including those that align the counters if the record begins at `at` in a
    /// chunk.
    fn words_at(&self, at: usize) -> usize {
        let end = at + coverage::HEAD + self.words.len() * 4;
        self.words.len() + (end.next_multiple_of(coverage::ALIGNMENT) - end) / 4
    }

    /// Hits of `wanted` points and branches; `counter` returns a counter's value by number. `None`
    /// if the words don't match.
    fn hits(words: &[u32], wanted: usize, counter: impl Fn(usize) -> Option<u64>) -> Option<Vec<u64>> {
        let mut rest = words.get(1..)?;
        // Each one has at least one word.
        let mut hits = Vec::with_capacity(wanted.min(rest.len()));
        for _ in 0..wanted {
            let (count, more) = rest.split_first()?;
            let (terms, more) = more.split_at_checked(*count as usize)?;
            hits.push(terms.iter().try_fold(0_u64, |sum, term| Some(sum.saturating_add(counter(*term as usize)?)))?);
            rest = more;
        }
        Some(hits)
    }
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

    /// Bytes of a counter.
    #[must_use]
    pub const fn counter_bytes(&self) -> usize {
        if self.counted { 8 } else { 1 }
    }

    /// The stored form, with a counter for each point and branch.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let counter = self.counter_bytes();
        let mut bytes = head(self, 0);
        for hits in &self.hits {
            bytes.extend_from_slice(&hits.to_le_bytes()[..counter]);
        }
        bytes.resize(coverage::bytes(0, self.hits.len(), counter), 0);
        bytes
    }

    /// The stored form before any hit, with these counters, for a record at offset `at` of a chunk.
    #[must_use]
    pub fn to_bytes_with(&self, sums: &CounterSums, at: usize) -> Vec<u8> {
        let words = sums.words_at(at);
        let mut bytes = head(self, words as u32);
        bytes.extend(sums.words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(coverage::bytes(words, sums.counters(), self.counter_bytes()), 0);
        bytes
    }

    /// The methods in a chunk's bytes. Truncated and withdrawn records are left out, and reading
    /// stops at an invalid one.
    pub fn all(chunk: &[u8]) -> impl Iterator<Item = Self> {
        one_after_another(chunk, Self::first).filter(|method| method.token != 0)
    }

    /// The first record, and its size in bytes.
    fn first(bytes: &[u8]) -> Option<(Self, usize)> {
        let [points, branches] = [coverage::POINTS, coverage::BRANCHES].map(|at| u32_at(bytes, at));
        let [counter, words] = [coverage::COUNTER, coverage::SUMS].map(|at| u32_at(bytes, at) as usize);
        let wanted = (points as usize).checked_add(branches as usize)?;
        if !matches!(counter, 1 | 8) || words > bytes.len() / 4 {
            return None;
        }
        let end = coverage::HEAD + words * 4;
        let sums: Vec<u32> = bytes.get(coverage::HEAD..end)?.chunks_exact(4).map(|word| u32_at(word, 0)).collect();
        let counters = sums.first().map_or(wanted, |counters| *counters as usize);
        if counters > bytes.len() / counter {
            return None;
        }
        let size = coverage::bytes(words, counters, counter);
        let record = bytes.get(..size)?;
        let first = end.next_multiple_of(8);
        let counted = counter == 8;
        let value = |number: usize| {
            if number >= counters {
                return None;
            }
            let at = first + number * counter;
            Some(if counted { u64_at(record, at) } else { u64::from(record[at] != 0) })
        };
        let hits =
            if sums.is_empty() { (0..wanted).map(value).collect() } else { CounterSums::hits(&sums, wanted, value) };
        let mut hits = hits?;
        if !counted {
            hits.iter_mut().for_each(|hits| *hits = (*hits).min(1));
        }
        let found = Self {
            module: u32_at(record, coverage::MODULE),
            token: u32_at(record, coverage::TOKEN),
            fingerprint: u64_at(record, coverage::FINGERPRINT),
            points,
            branches,
            counted,
            hits,
        };
        Some((found, size))
    }
}

/// The head of a method's record; independent of the hits.
fn head(method: &MethodHits, sums: u32) -> Vec<u8> {
    let mut bytes = vec![0; coverage::HEAD];
    let words = [
        (coverage::MODULE, method.module),
        (coverage::TOKEN, method.token),
        (coverage::POINTS, method.points),
        (coverage::BRANCHES, method.branches),
        (coverage::COUNTER, method.counter_bytes() as u32),
        (coverage::SUMS, sums),
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
    fn hits_are_sums_of_counters() {
        let sums = CounterSums::new(2, [&[0][..], &[0, 1], &[], &[1]]);
        for counted in [true, false] {
            let about = method(1, counted, 3, 1);
            let mut bytes = about.to_bytes_with(&sums, 0);
            let first = bytes.len() - (2 * about.counter_bytes()).next_multiple_of(8);
            bytes[first] = 3;
            bytes[first + about.counter_bytes()] = 4;
            let hits = if counted { [3, 7, 0, 4] } else { [1, 1, 0, 1] };
            let bytes = [bytes, about.to_bytes()].concat();
            let expected = [MethodHits { hits: hits.to_vec(), ..about.clone() }, about];
            assert_eq!(MethodHits::all(&bytes).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn numbers_that_lie_end_the_chunk() {
        let good = method(1, true, 2, 1).to_bytes();
        let fields = [
            (coverage::POINTS, u32::MAX),
            (coverage::BRANCHES, 1 << 30),
            (coverage::COUNTER, 4),
            (coverage::SUMS, 1 << 30),
        ];
        for (at, lie) in fields {
            let mut bytes = [good.clone(), good.clone()].concat();
            bytes[good.len() + at..][..4].copy_from_slice(&lie.to_le_bytes());
            assert_eq!(MethodHits::all(&bytes).count(), 1, "{at}");
        }
        let summed = method(1, true, 2, 1).to_bytes_with(&CounterSums::new(1, [[0]; 3]), 0);
        // Too many counters, too many terms, a nonexistent counter.
        for (word, lie) in [(0, 1 << 29), (1, 7), (2, 1), (6, 1)] {
            let mut bytes = [good.clone(), summed.clone()].concat();
            bytes[good.len() + coverage::HEAD + word * 4..][..4].copy_from_slice(&u32::to_le_bytes(lie));
            assert_eq!(MethodHits::all(&bytes).count(), 1, "{word}");
        }
    }
}
