//! Symbols of the running kernel.

use super::{NativeRange, Ranges, found};

/// File in which the kernel lists its symbols. Addresses read as 0 for users without permission to
/// see them.
const TABLE: &str = "/proc/kallsyms";

/// The functions of the kernel that contain the offsets from `_text`, in ascending order; none
/// where the system hides addresses.
#[must_use]
pub fn kernel_symbols(offsets: &[u32]) -> Vec<NativeRange> {
    if offsets.is_empty() {
        return Vec::new();
    }
    std::fs::read_to_string(TABLE).map_or_else(|_| Vec::new(), |table| symbols_of(&table, offsets))
}

fn symbols_of(table: &str, offsets: &[u32]) -> Vec<NativeRange> {
    let symbols = || table.lines().filter_map(symbol);
    let Some((text, ..)) = symbols().find(|(_, _, name)| *name == "_text").filter(|(address, ..)| *address > 0) else {
        return Vec::new();
    };
    let code = symbols().filter(|(_, kind, _)| matches!(kind, 't' | 'T' | 'w' | 'W'));
    let ranges = code.filter_map(|(address, _, name)| Some((address.checked_sub(text)?, 0, name.to_owned())));
    let ranges = Ranges::new(ranges.collect());
    found(offsets, |offset| ranges.find(offset))
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

    #[test]
    fn offsets_are_counted_from_the_beginning_of_the_kernel() {
        let table = "ffffffff81000000 T _text\nffffffff81000010 t first\nffffffff81000020 D data\n\
                     ffffffff81000040 T __x64_sys_read\nffffffffc0001000 t of_a_module\t[module]\n";
        let name = |offset| symbols_of(table, &[offset]).pop().map(|range| (range.name, range.offset));
        assert_eq!(name(0x18), Some(("first".into(), 0x10)));
        assert_eq!(name(0x45), Some(("__x64_sys_read".into(), 0x40)));
        let hidden = "0000000000000000 T _text\n0000000000000000 t first\n";
        assert_eq!(symbols_of(hidden, &[1]), []);
        assert_eq!(symbols_of("nonsense", &[1]), []);
    }
}
