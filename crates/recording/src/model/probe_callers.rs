//! Callers of probed methods, which `probes` records.

use crate::layout::{probe_callers as layout, u32_at, u64_at};

/// Calls of one method by one thread on one path; see
/// [`layout::probe_callers`](crate::layout::probe_callers) for the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProbeCaller {
    /// Number of the method, the same as [`ProbedMethod::number`](super::ProbedMethod::number).
    pub method: u32,
    /// Serial number of the thread.
    pub thread: u32,
    /// Number of the [stack](super::Stacks) with the method and its callers, 0 if unknown.
    pub stack: u32,
    /// Nanoseconds from the start of the process's recording until the first of the calls began.
    pub time_ns: u64,
    /// Calls that began.
    pub calls: u64,
    /// Calls that an exception ended.
    pub failed: u64,
    /// Calls that ended.
    pub ended: u64,
    /// Ticks of all calls that ended.
    pub ticks: u64,
    /// Number of the path, the writer's key to the record.
    pub path: u64,
}

impl ProbeCaller {
    /// The stored form of the record.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; layout::BYTES] {
        let mut bytes = [0; layout::BYTES];
        let numbers = [
            (layout::CALLS, self.calls),
            (layout::FAILED, self.failed),
            (layout::ENDED, self.ended),
            (layout::TICKS, self.ticks),
            (layout::PATH, self.path),
            (layout::TIME, self.time_ns),
        ];
        for (at, value) in numbers {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, word) in [(layout::METHOD, self.method), (layout::THREAD, self.thread), (layout::STACK, self.stack)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The records in a chunk's bytes; a truncated record is left out.
    pub fn all(chunk: &[u8]) -> impl Iterator<Item = Self> {
        chunk.chunks_exact(layout::BYTES).map(|bytes| Self {
            method: u32_at(bytes, layout::METHOD),
            thread: u32_at(bytes, layout::THREAD),
            stack: u32_at(bytes, layout::STACK),
            time_ns: u64_at(bytes, layout::TIME),
            calls: u64_at(bytes, layout::CALLS),
            failed: u64_at(bytes, layout::FAILED),
            ended: u64_at(bytes, layout::ENDED),
            ticks: u64_at(bytes, layout::TICKS),
            path: u64_at(bytes, layout::PATH),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_a_cut_one_is_none() {
        let record = |number: u32| ProbeCaller {
            method: number,
            thread: u32::MAX,
            stack: 1 << 30 | number,
            time_ns: 1 << 50,
            calls: u64::MAX,
            failed: 1 << 40,
            ended: 1 << 41,
            ticks: 1 << 62,
            path: u64::MAX - u64::from(number),
        };
        let all: Vec<_> = (0..9).map(record).collect();
        let mut bytes: Vec<u8> = all.iter().flat_map(ProbeCaller::to_bytes).collect();
        bytes.pop();
        assert_eq!(ProbeCaller::all(&bytes).collect::<Vec<_>>(), all[..8]);
    }
}
