//! Counters and times of probed methods, which `probes` records.

use super::one_after_another::one_after_another;
use crate::layout::{probe_calls, probes, u32_at, u64_at};

/// One method with the values counted by its probes; see [`layout::probes`](crate::layout::probes)
/// for its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbedMethod {
    /// Index into [`Process::modules`](super::Process::modules).
    pub module: u32,
    /// Metadata token.
    pub token: u32,
    /// Name of the method, in the form of function names.
    pub name: String,
    /// Signature of the method, in the form of function signatures.
    pub signature: String,
    /// Whether the method's probes were removed during the recording.
    pub is_removed: bool,
    /// Number of the method in [`ProbeCallRecord`]; 0 if its calls are not recorded.
    pub number: u32,
    /// Calls that began.
    pub calls: u64,
    /// Calls that an exception ended.
    pub failed: u64,
    /// Ticks of all calls that ended.
    pub ticks: u64,
    /// Ticks of calls that ended within another call of the method on the same thread.
    pub nested: u64,
    /// Ticks of the longest call that ended.
    pub longest: u64,
    /// Number of ended calls by [duration](crate::layout::probes::bucket).
    pub buckets: Vec<u64>,
}

impl ProbedMethod {
    /// The record of a method with `lanes` lanes and all counts 0.
    #[must_use]
    pub fn to_empty_bytes(&self, lanes: u32) -> Vec<u8> {
        let names = [&self.name, &self.signature];
        let size = probes::bytes(lanes as usize, names.iter().map(|name| name.len()).sum());
        let mut bytes = vec![0; probes::HEAD + lanes as usize * probes::LANE];
        let words = [
            (probes::BYTES, size as u32),
            (probes::MODULE, self.module),
            (probes::TOKEN, self.token),
            (probes::LANES, lanes),
            (probes::NAME, self.name.len() as u32),
            (probes::SIGNATURE, self.signature.len() as u32),
            (probes::NUMBER, self.number),
        ];
        for (at, word) in words {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        names.into_iter().for_each(|name| bytes.extend_from_slice(name.as_bytes()));
        bytes.resize(size, 0);
        bytes
    }

    /// The methods in a chunk's bytes. Truncated and withdrawn records are left out, and reading
    /// stops at an invalid one.
    pub fn all(chunk: &[u8]) -> impl Iterator<Item = Self> {
        one_after_another(chunk, Self::first).filter(|method| method.token != 0)
    }

    /// The first record, and its size in bytes.
    fn first(bytes: &[u8]) -> Option<(Self, usize)> {
        let head = bytes.get(..probes::HEAD)?;
        let [size, lanes, name, signature] =
            [probes::BYTES, probes::LANES, probes::NAME, probes::SIGNATURE].map(|at| u32_at(head, at) as usize);
        let names = name.checked_add(signature)?;
        if lanes > probes::MOST_LANES || names > bytes.len() || size != probes::bytes(lanes, names) {
            return None;
        }
        let record = bytes.get(..size)?;
        let text = |from: usize, bytes: usize| String::from_utf8_lossy(&record[from..from + bytes]).into_owned();
        let names_at = probes::HEAD + lanes * probes::LANE;
        let mut found = Self {
            module: u32_at(record, probes::MODULE),
            token: u32_at(record, probes::TOKEN),
            is_removed: u32_at(record, probes::REMOVED) != 0,
            number: u32_at(record, probes::NUMBER),
            name: text(names_at, name),
            signature: text(names_at + name, signature),
            buckets: vec![0; probes::BUCKET_COUNT],
            ..Self::default()
        };
        record[probes::HEAD..names_at].chunks_exact(probes::LANE).for_each(|lane| found.add_lane(lane));
        Some((found, size))
    }

    fn add_lane(&mut self, lane: &[u8]) {
        let sums = [
            (&mut self.calls, probes::CALLS),
            (&mut self.failed, probes::FAILED),
            (&mut self.ticks, probes::TICKS),
            (&mut self.nested, probes::NESTED),
        ];
        for (sum, at) in sums {
            *sum = sum.saturating_add(u64_at(lane, at));
        }
        self.longest = self.longest.max(u64_at(lane, probes::LONGEST));
        for (sum, bytes) in self.buckets.iter_mut().zip(lane[probes::BUCKETS..].chunks_exact(8)) {
            *sum = sum.saturating_add(u64_at(bytes, 0));
        }
    }
}

/// Start or end of a call of a probed method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeCallRecord<'b> {
    /// Number of the method, the same as [`ProbedMethod::number`].
    pub method: u32,
    /// Ticks of the process's clock at the event.
    pub ticks: u64,
    /// Details of the end; `None` for the start of a call.
    pub end: Option<ProbeCallEnd>,
    /// The values of the arguments at the start of a call, or of the results at its end.
    pub values: &'b [u8],
}

/// End of a call of a probed method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeCallEnd {
    /// Ticks when the call began.
    pub began: u64,
    /// Whether an exception ended the call.
    pub has_failed: bool,
}

impl<'b> ProbeCallRecord<'b> {
    /// The records in a chunk's bytes; reading stops at a truncated one.
    pub fn all(chunk: &'b [u8]) -> impl Iterator<Item = Self> {
        Self::all_with_places(chunk).map(|(_, record)| record)
    }

    /// Like [`all`](Self::all), with the offset of each record.
    pub fn all_with_places(chunk: &'b [u8]) -> impl Iterator<Item = (usize, Self)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (found, bytes) = Self::first(chunk.get(at..)?)?;
            let place = at;
            at += bytes;
            Some((place, found))
        })
    }

    /// The first record, and its size in bytes.
    fn first(bytes: &'b [u8]) -> Option<(Self, usize)> {
        let head = bytes.get(..probe_calls::HEAD)?;
        let what = u32_at(head, probe_calls::WHAT);
        let before = probe_calls::before_values(what);
        let end = before.checked_add(u32_at(head, probe_calls::VALUES) as usize)?;
        let values = bytes.get(before..end)?;
        let is_end = what & probe_calls::KIND != probe_calls::BEGIN;
        let has_failed = what & probe_calls::KIND == probe_calls::FAIL;
        let found = Self {
            method: what & probe_calls::METHOD,
            ticks: u64_at(head, probe_calls::TICKS),
            end: is_end.then(|| ProbeCallEnd { began: u64_at(bytes, probe_calls::BEGAN), has_failed }),
            values,
        };
        Some((found, end.next_multiple_of(probe_calls::HEAD)))
    }

    /// The bytes of the record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let kind = match self.end {
            None => probe_calls::BEGIN,
            Some(ProbeCallEnd { has_failed: false, .. }) => probe_calls::RETURN,
            Some(ProbeCallEnd { has_failed: true, .. }) => probe_calls::FAIL,
        };
        let mut bytes = self.ticks.to_le_bytes().to_vec();
        bytes.extend((kind | self.method & probe_calls::METHOD).to_le_bytes());
        bytes.extend((self.values.len() as u32).to_le_bytes());
        if let Some(end) = self.end {
            bytes.extend(end.began.to_le_bytes());
            bytes.extend([0; 8]);
        }
        bytes.extend(self.values);
        bytes.resize(bytes.len().next_multiple_of(probe_calls::HEAD), 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(token: u32, name: &str) -> ProbedMethod {
        let (name, signature) = (name.to_owned(), format!("{name}()"));
        ProbedMethod {
            module: 2,
            token,
            name,
            signature,
            buckets: vec![0; probes::BUCKET_COUNT],
            ..ProbedMethod::default()
        }
    }

    #[test]
    fn methods_come_back_with_their_lanes_added_up_and_a_cut_one_is_none() {
        let all = [method(1, "Shop.Cart::Add"), method(0, "taken back"), method(3, "")];
        let mut bytes: Vec<u8> = all.iter().flat_map(|method| method.to_empty_bytes(4)).collect();
        for lane in 0..4 {
            let at = probes::HEAD + lane * probes::LANE;
            for (counter, value) in
                [(probes::CALLS, 3), (probes::TICKS, 5), (probes::LONGEST, lane as u8), (probes::BUCKETS + 16, 2)]
            {
                bytes[at + counter] = value;
            }
        }
        let found: Vec<_> = ProbedMethod::all(&bytes).collect();
        let mut first = ProbedMethod { calls: 12, ticks: 20, longest: 3, ..all[0].clone() };
        first.buckets[2] = 8;
        assert_eq!(found, [first, all[2].clone()]);
        bytes.pop();
        assert_eq!(ProbedMethod::all(&bytes).count(), 1);
    }

    #[test]
    fn calls_come_back_and_a_cut_one_is_none() {
        let end = |has_failed| Some(ProbeCallEnd { began: 7, has_failed });
        let record = |end, values| ProbeCallRecord { method: 3, ticks: u64::MAX, end, values };
        let all: [ProbeCallRecord<'_>; 4] =
            [record(None, &[1; 17]), record(end(false), &[]), record(end(true), &[]), record(end(false), &[9; 16])];
        let bytes: Vec<u8> = all.iter().flat_map(ProbeCallRecord::to_bytes).collect();
        assert_eq!(bytes.len(), 48 + 32 + 32 + 48);
        assert_eq!(ProbeCallRecord::all(&bytes).collect::<Vec<_>>(), all);
        assert_eq!(ProbeCallRecord::all(&bytes[..bytes.len() - 1]).count(), 3);
        assert_eq!(ProbeCallRecord::all(&[0xff; 64]).count(), 0, "values that would not fit");
    }

    #[test]
    fn numbers_that_lie_end_the_chunk() {
        let good = method(1, "A::B").to_empty_bytes(1);
        for (at, lie) in
            [(probes::LANES, u32::MAX), (probes::NAME, u32::MAX), (probes::BYTES, 8), (probes::SIGNATURE, 1 << 20)]
        {
            let mut bytes = [good.clone(), good.clone()].concat();
            bytes[good.len() + at..][..4].copy_from_slice(&lie.to_le_bytes());
            assert_eq!(ProbedMethod::all(&bytes).count(), 1, "{at}");
        }
    }
}
