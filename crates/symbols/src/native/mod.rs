//! Names of native code: functions of libraries from their symbols, functions of the kernel from
//! its symbol table. Versions of the C library.

mod c_library;
mod demangled;
mod elf;
mod glibc;
mod kernel;
mod names;
mod unwind_table;

use std::collections::BTreeMap;

pub use c_library::{CLibrary, program_loader};
pub use elf::library_symbols;
pub use glibc::{GlibcSymbol, GlibcVersion};
pub use kernel::kernel_symbols;
pub use names::{NativeNames, SymbolFolder};

/// A range of native code, with the name of its function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeRange {
    /// Offset of the first byte. It counts from the lowest loaded address of a library, and from
    /// `_text` in the kernel.
    pub offset: u32,
    /// Length of the range in bytes.
    pub size: u32,
    /// Name of the function; empty if only the range is known.
    pub name: String,
}

impl NativeRange {
    /// The range, cut off at `end` if it extends beyond.
    fn cut_at(self, end: u32) -> Self {
        let size = self.size.min(end.saturating_sub(self.offset));
        Self { size, ..self }
    }
}

/// Ranges in ascending order of their offsets, each with its size, or 0 if it extends to the next
/// range.
#[derive(Debug, Default)]
struct Ranges {
    all: Vec<(u64, u64, String)>,
}

impl Ranges {
    /// Sorts the ranges. Of several ranges with the same offset, keeps the one with the shortest
    /// nonempty name.
    fn new(mut all: Vec<(u64, u64, String)>) -> Self {
        all.sort_by(|a, b| (a.0, a.2.is_empty(), a.2.len(), &a.2).cmp(&(b.0, b.2.is_empty(), b.2.len(), &b.2)));
        all.dedup_by_key(|range| range.0);
        Self { all }
    }

    /// The range that contains the offset.
    fn find(&self, offset: u64) -> Option<NativeRange> {
        let after = self.all.partition_point(|(start, ..)| *start <= offset);
        let (start, size, name) = self.all.get(after.checked_sub(1)?)?;
        let next = self.all.get(after).map_or(u64::MAX, |(start, ..)| *start);
        let end = if *size == 0 { next } else { start.saturating_add(*size) };
        let size = end.saturating_sub(*start).min(u64::from(u32::MAX)) as u32;
        let range = NativeRange { offset: u32::try_from(*start).ok()?, size, name: name.clone() };
        (offset < end).then_some(range)
    }
}

/// The range that contains the offset, among remembered ranges by their offsets.
fn range_with(ranges: &BTreeMap<u32, NativeRange>, offset: u32) -> Option<&NativeRange> {
    let (_, range) = ranges.range(..=offset).next_back()?;
    (offset - range.offset < range.size).then_some(range)
}

/// The ranges that contain the offsets, without duplicates and in order; `find` looks up one
/// offset.
fn found(offsets: &[u32], find: impl Fn(u64) -> Option<NativeRange>) -> Vec<NativeRange> {
    let mut found: Vec<NativeRange> = offsets.iter().filter_map(|&offset| find(offset.into())).collect();
    found.sort_by_key(|range| range.offset);
    found.dedup_by_key(|range| range.offset);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_where_its_size_says_or_the_next_begins() {
        let range = |start, size, name: &str| (start, size, name.to_owned());
        let all = Ranges::new(vec![
            range(16, 0, "open"),
            range(8, 4, "__short"),
            range(8, 4, "short"),
            range(8, 4, ""),
            range(32, 0, "last"),
        ]);
        let name = |offset| all.find(offset).map(|range| (range.name, range.size));
        assert_eq!(name(7), None);
        assert_eq!(name(11), Some(("short".into(), 4)));
        assert_eq!(name(12), None);
        assert_eq!(name(31), Some(("open".into(), 16)));
        assert_eq!(name(1 << 20), Some(("last".into(), u32::MAX)));
    }
}
