//! Counters of lines of the source, which `probes` records.

use super::one_after_another::one_after_another;
use crate::layout::{probe_lines as layout, u32_at, u64_at};

/// One line in one method, and how often it was reached; see
/// [`layout::probe_lines`](crate::layout::probe_lines) for its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbedLine {
    /// Index into [`Process::modules`](super::Process::modules).
    pub module: u32,
    /// Metadata token of the method.
    pub token: u32,
    /// Number of the line, from 1.
    pub line: u32,
    /// Path of the source file, as passed to the compiler.
    pub file: String,
    /// Name of the method, in the form of function names.
    pub name: String,
    /// Signature of the method, in the form of function signatures.
    pub signature: String,
    /// Whether the probe was removed during the recording.
    pub is_removed: bool,
    /// Number of times that control reached the line.
    pub hits: u64,
}

impl ProbedLine {
    /// Length of the record in bytes.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        layout::bytes(self.texts().iter().map(|text| text.len()).sum())
    }

    /// The stored form of the record, with 0 hits.
    #[must_use]
    pub fn to_empty_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; layout::TEXTS];
        let [file, name, signature] = self.texts().map(|text| text.len() as u32);
        let words = [
            (layout::BYTES, self.record_bytes() as u32),
            (layout::MODULE, self.module),
            (layout::TOKEN, self.token),
            (layout::LINE, self.line),
            (layout::FILE, file),
            (layout::NAME, name),
            (layout::SIGNATURE, signature),
        ];
        for (at, word) in words {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        self.texts().into_iter().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
        bytes.resize(self.record_bytes(), 0);
        bytes
    }

    fn texts(&self) -> [&str; 3] {
        [&self.file, &self.name, &self.signature]
    }

    /// The lines in a chunk's bytes. Truncated and withdrawn records are left out, and reading
    /// stops at an invalid one.
    pub fn all(chunk: &[u8]) -> impl Iterator<Item = Self> {
        one_after_another(chunk, Self::first).filter(|line| line.token != 0)
    }

    /// The first record, and its size in bytes.
    fn first(bytes: &[u8]) -> Option<(Self, usize)> {
        let head = bytes.get(..layout::HEAD)?;
        let lengths = [layout::FILE, layout::NAME, layout::SIGNATURE].map(|at| u32_at(head, at) as usize);
        let texts = lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length))?;
        let size = u32_at(head, layout::BYTES) as usize;
        if texts > bytes.len() || size != layout::bytes(texts) {
            return None;
        }
        let record = bytes.get(..size)?;
        let mut rest = &record[layout::TEXTS..];
        let [file, name, signature] = lengths.map(|length| {
            let (text, behind) = rest.split_at(length);
            rest = behind;
            String::from_utf8_lossy(text).into_owned()
        });
        let lanes = record[layout::HEAD..layout::TEXTS].chunks_exact(layout::LANE);
        let found = Self {
            module: u32_at(record, layout::MODULE),
            token: u32_at(record, layout::TOKEN),
            line: u32_at(record, layout::LINE),
            is_removed: u32_at(record, layout::REMOVED) != 0,
            hits: lanes.fold(0, |sum, lane| sum.saturating_add(u64_at(lane, layout::HITS))),
            file,
            name,
            signature,
        };
        Some((found, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(token: u32, file: &str) -> ProbedLine {
        let (name, signature) = ("Shop.Cart::Add".to_owned(), "Shop.Cart.Add()".to_owned());
        ProbedLine { module: 2, token, line: 42, file: file.to_owned(), name, signature, ..ProbedLine::default() }
    }

    #[test]
    fn lines_come_back_with_their_lanes_added_up_and_a_cut_one_is_none() {
        let all = [line(1, "/src/Cart.cs"), line(0, "taken back"), line(3, "")];
        let mut bytes: Vec<u8> = all.iter().flat_map(ProbedLine::to_empty_bytes).collect();
        assert_eq!(bytes.len() % layout::LANE, 0);
        for lane in [0, 5, layout::LANES - 1] {
            bytes[layout::HEAD + lane * layout::LANE + layout::HITS] = 3;
        }
        let found: Vec<_> = ProbedLine::all(&bytes).collect();
        assert_eq!(found, [ProbedLine { hits: 9, ..all[0].clone() }, all[2].clone()]);
        bytes.pop();
        assert_eq!(ProbedLine::all(&bytes).count(), 1);
    }

    #[test]
    fn numbers_that_lie_end_the_chunk() {
        let good = line(1, "Cart.cs").to_empty_bytes();
        for (at, lie) in
            [(layout::FILE, u32::MAX), (layout::NAME, u32::MAX), (layout::BYTES, 8), (layout::SIGNATURE, 1 << 20)]
        {
            let mut bytes = [good.clone(), good.clone()].concat();
            bytes[good.len() + at..][..4].copy_from_slice(&lie.to_le_bytes());
            assert_eq!(ProbedLine::all(&bytes).count(), 1, "{at}");
        }
    }
}
