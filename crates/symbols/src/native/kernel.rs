//! Symbols of the running kernel.
//!
//! Its table has 12 MB of text, which the kernel generates for each reader. So the table is read
//! line by line, and functions that were found are remembered: a recorder that looks up kernel code
//! once a minute needs the same functions again and again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::{Mutex, PoisonError};

use super::{NativeRange, found, range_with};

/// File in which the kernel lists its symbols. Addresses read as 0 for users without permission to
/// see them.
const TABLE: &str = "/proc/kallsyms";

/// Functions of the kernel itself that were found, by their offsets. Functions of kernel modules
/// are not remembered, because modules come and go.
static FOUND: Mutex<BTreeMap<u32, NativeRange>> = Mutex::new(BTreeMap::new());

/// The kernel functions that contain the offsets (in bytes from `_text`), in ascending order; empty
/// if the system hides addresses.
#[must_use]
pub fn kernel_symbols(offsets: &[u32]) -> Vec<NativeRange> {
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let missing: Vec<u32> = offsets.iter().copied().filter(|&offset| range_with(&known, offset).is_none()).collect();
    let mut of_modules = BTreeMap::new();
    if !missing.is_empty()
        && let Ok(table) = File::open(TABLE)
    {
        let Symbols { ranges, end_of_text } = symbols_of(BufReader::with_capacity(1 << 16, table), missing);
        for range in ranges {
            let functions = if range.offset < end_of_text { &mut *known } else { &mut of_modules };
            functions.insert(range.offset, range);
        }
    }
    found(offsets, |offset| {
        let offset = u32::try_from(offset).ok()?;
        range_with(&known, offset).or_else(|| range_with(&of_modules, offset)).cloned()
    })
}

/// What a table says of offsets.
#[derive(Debug, Default)]
struct Symbols {
    /// The functions that contain the offsets.
    ranges: Vec<NativeRange>,
    /// Offset of `_etext`, the end of the kernel's own code; 0 if unknown.
    end_of_text: u32,
}

/// The functions around an offset, as far as the table has been read.
#[derive(Debug, Default, Clone)]
struct Around {
    /// Offset and name of the last function that begins at or before the offset.
    from: Option<(u64, String)>,
    /// Offset of the first function that begins after the offset.
    until: Option<u64>,
}

/// Looks the offsets up in a table. One pass is enough, because `_text` stands before all code.
/// Compares each line only with the nearest offsets; what a line says of other offsets is derived
/// at the end.
fn symbols_of(mut table: impl BufRead, mut offsets: Vec<u32>) -> Symbols {
    offsets.sort_unstable();
    offsets.dedup();
    let mut all = vec![Around::default(); offsets.len()];
    let (mut line, mut text, mut end_of_text) = (String::new(), None, 0);
    while table.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some((address, kind, name)) = symbol(&line) {
            match (text, name) {
                // The system hides addresses.
                (None, "_text") if address == 0 => return Symbols::default(),
                (None, "_text") => text = Some(address),
                (Some(text), "_etext") => end_of_text = address.checked_sub(text).map_or(0, saturated),
                _ => {}
            }
            let start = text.and_then(|text| address.checked_sub(text));
            if let Some(start) = start.filter(|_| matches!(kind, 't' | 'T' | 'w' | 'W')) {
                note(&mut all, &offsets, start, name);
            }
        }
        line.clear();
    }
    for at in 1..all.len() {
        if all[at].from.is_none() {
            all[at].from = all[at - 1].from.clone();
        }
    }
    for at in (1..all.len()).rev() {
        let until = all[at].until;
        let before = &mut all[at - 1].until;
        *before = before.iter().chain(&until).min().copied();
    }
    let ranges = all.into_iter().filter_map(|Around { from, until }| {
        let (start, name) = from?;
        let size = saturated(until.unwrap_or(u64::MAX) - start);
        Some(NativeRange { offset: u32::try_from(start).ok()?, size, name })
    });
    Symbols { ranges: ranges.collect(), end_of_text }
}

/// Notes that a function begins at `start`: for the first offset at or after `start`, and for the
/// last offset before it.
fn note(all: &mut [Around], offsets: &[u32], start: u64, name: &str) {
    let behind = offsets.partition_point(|&offset| u64::from(offset) < start);
    if let Some(Around { from, .. }) = all.get_mut(behind) {
        // Of several names of a function the shortest is kept, and of equally short ones the first
        // of the alphabet.
        let is_better = |known: &(u64, String)| (start, known.1.len(), known.1.as_str()) > (known.0, name.len(), name);
        if from.as_ref().is_none_or(is_better) {
            *from = Some((start, name.to_owned()));
        }
    }
    if let Some(Around { until, .. }) = behind.checked_sub(1).and_then(|before| all.get_mut(before)) {
        *until = Some(until.map_or(start, |known| known.min(start)));
    }
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Address, kind and name of a line.
fn symbol(line: &str) -> Option<(u64, char, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((address, words.next()?.chars().next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str, offset: u32) -> Option<(String, u32, u32)> {
        let range = symbols_of(table.as_bytes(), vec![offset]).ranges.pop()?;
        Some((range.name, range.offset, range.size))
    }

    #[test]
    fn offsets_are_counted_from_the_beginning_of_the_kernel() {
        let table = "ffffffff81000000 T _text\nffffffff81000010 t first\nffffffff81000020 D data\n\
                     ffffffff81000040 T __x64_sys_read\nffffffff81000040 T sys_read\nffffffff81000050 T _etext\n\
                     ffffffffc0001000 t of_a_module\t[module]\n";
        assert_eq!(name(table, 0x18), Some(("first".into(), 0x10, 0x30)));
        assert_eq!(name(table, 0x45), Some(("sys_read".into(), 0x40, 0x10)));
        assert_eq!(name(table, 0x3f00_1004), Some(("of_a_module".into(), 0x3f00_1000, u32::MAX)));
        let Symbols { ranges, end_of_text } = symbols_of(table.as_bytes(), vec![0x45, 0x18, 0x3f00_1004, 0x19, 0x11]);
        let starts: Vec<u32> = ranges.iter().map(|range| range.offset).collect();
        assert_eq!((starts, end_of_text), (vec![0x10, 0x10, 0x10, 0x40, 0x3f00_1000], 0x50));
        let hidden = "0000000000000000 T _text\n0000000000000000 t first\n";
        assert_eq!(name(hidden, 1), None);
        assert_eq!(name("nonsense", 1), None);
    }

    /// The order of the lines does not matter, as in the table of a kernel with modules.
    #[test]
    fn functions_are_found_whatever_the_order_of_the_table() {
        let mut lines: Vec<String> =
            (0..200_u64).map(|at| format!("{:016x} t f{at}\n", 0xffff_ffff_8100_0010 + 16 * (at * 37 % 200))).collect();
        lines.insert(0, "ffffffff81000000 T _text\n".into());
        let table = lines.concat();
        let offsets: Vec<u32> = (0..200).map(|at| 0x10 + 16 * at + at % 16).collect();
        let all = symbols_of(table.as_bytes(), offsets).ranges;
        assert_eq!(all.len(), 200);
        for (range, at) in all.iter().zip(0_u32..) {
            let number = (0..200_u32).find(|number| number * 37 % 200 == at).expect("one");
            assert_eq!((range.name.as_str(), range.offset), (format!("f{number}").as_str(), 0x10 + 16 * at));
            assert!(range.size == 16 || at == 199, "{range:?}");
        }
    }

    /// If this machine shows its table, a second lookup of the same functions gives the same
    /// result.
    #[test]
    fn functions_that_were_found_are_remembered() {
        let offsets: Vec<u32> = (1..50).map(|at| 0x1000 * at + 7).collect();
        let first = kernel_symbols(&offsets);
        assert_eq!(kernel_symbols(&offsets), first);
        let contains = |offset: u32| first.iter().any(|of| of.offset <= offset && offset - of.offset < of.size);
        assert!(first.is_empty() || offsets.iter().all(|&offset| contains(offset)), "{first:?}");
    }
}
