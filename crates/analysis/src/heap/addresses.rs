//! From addresses of objects to their numbers.

use rustc_hash::FxHashMap;

/// Addresses whose upper bits are equal lie on one page; a page's objects are searched in halves.
const PAGE_BITS: u32 = 14;

/// Addresses of objects, which are numbered in any order.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// In ascending order.
    sorted: Vec<u64>,
    /// Number of each; empty where numbers rise with addresses.
    numbers: Vec<u32>,
    /// First place and the one behind the last, by page.
    pages: FxHashMap<u64, (u32, u32)>,
}

impl Addresses {
    /// Objects at these addresses, numbered in this order. Of two at one address the first counts.
    pub(crate) fn new(addresses: Vec<u64>) -> Self {
        let numbers = if addresses.is_sorted() { Vec::new() } else { in_order(&addresses) };
        let sorted = match numbers.is_empty() {
            true => addresses,
            false => numbers.iter().map(|&number| addresses[number as usize]).collect(),
        };
        let mut pages = FxHashMap::default();
        for (at, address) in (0..).zip(&sorted) {
            pages.entry(address >> PAGE_BITS).or_insert((at, at)).1 = at + 1;
        }
        Self { sorted, numbers, pages }
    }

    /// Number of the object at an address.
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let &(first, end) = self.pages.get(&(address >> PAGE_BITS))?;
        let page = &self.sorted[first as usize..end as usize];
        let at = page.partition_point(|&other| other < address);
        if page.get(at) != Some(&address) {
            return None;
        }
        let at = first as usize + at;
        Some(if self.numbers.is_empty() { at as u32 } else { self.numbers[at] })
    }

    /// Number of the object that an address lies in or behind, and the distance from the object's own.
    pub(crate) fn around(&self, address: u64) -> Option<(u32, u64)> {
        let nearest = self.sorted[self.sorted.partition_point(|&other| other <= address).checked_sub(1)?];
        let at = self.sorted.partition_point(|&other| other < nearest);
        let number = if self.numbers.is_empty() { at as u32 } else { self.numbers[at] };
        Some((number, address - nearest))
    }
}

/// Numbers in the order of their addresses.
fn in_order(addresses: &[u64]) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..addresses.len() as u32).collect();
    numbers.sort_by_key(|&number| (addresses[number as usize], number));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_in_any_order_and_nothing_between_them() {
        for addresses in [vec![0x1000, 0x1018, 0x7f00_0000_0000], vec![0x7f00_0000_0000, 0x1000, 0x1018, 0x1000]] {
            let found = Addresses::new(addresses.clone());
            for (number, address) in (0_u32..3).zip(&addresses) {
                assert_eq!(found.find(*address), Some(number));
            }
            assert_eq!(
                (found.around(0x1010), found.around(0xfff)),
                (found.find(0x1000).map(|number| (number, 0x10)), None)
            );
            assert!([0, 0xfff, 0x1001, 0x1020, u64::MAX].iter().all(|&address| found.find(address).is_none()));
        }
    }
}
