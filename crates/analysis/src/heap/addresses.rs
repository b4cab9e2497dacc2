//! From addresses of objects to their numbers.

use rustc_hash::FxHashMap;

/// Bits of an address within a page: few objects lie on one.
const PAGE_BITS: u32 = 9;
/// Bits of an address within a block of pages, whose places stand one behind the other.
const BLOCK_BITS: u32 = 22;
/// Pages of a block.
const PAGES: usize = 1 << (BLOCK_BITS - PAGE_BITS);
/// Bytes of places for each object, at most; so many blocks there are in any case.
const MOST_FOR_EACH: usize = 16;
const FEW_BLOCKS: usize = 64;

/// Addresses of objects, which are numbered in any order.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// In ascending order.
    sorted: Vec<u64>,
    /// Number of each; empty where numbers rise with addresses.
    numbers: Vec<u32>,
    /// Begin of the places of each block; empty where objects lie so far apart that places would take more room than they.
    blocks: FxHashMap<u64, u32>,
    /// Place of the first object on or behind each page, and behind the pages of each block that behind its last object.
    places: Vec<u32>,
}

impl Addresses {
    /// Objects at these addresses, numbered in this order. Of two at one address the first counts.
    pub(crate) fn new(addresses: Vec<u64>) -> Self {
        let numbers = if addresses.is_sorted() { Vec::new() } else { in_order(&addresses) };
        let sorted = match numbers.is_empty() {
            true => addresses,
            false => numbers.iter().map(|&number| addresses[number as usize]).collect(),
        };
        let (blocks, places) = places(&sorted).unwrap_or_default();
        Self { sorted, numbers, blocks, places }
    }

    /// Number of the object at an address.
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let (first, end) = if self.blocks.is_empty() {
            (0, self.sorted.len())
        } else {
            let page = (address >> PAGE_BITS) as usize % PAGES;
            let at = *self.blocks.get(&(address >> BLOCK_BITS))? as usize + page;
            (self.places[at] as usize, self.places[at + 1] as usize)
        };
        let among = &self.sorted[first..end];
        let at = among.partition_point(|&other| other < address);
        if among.get(at) != Some(&address) {
            return None;
        }
        let at = first + at;
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

/// Begin of the places of each block, and all places; `None` where they would take too much room.
fn places(sorted: &[u64]) -> Option<(FxHashMap<u64, u32>, Vec<u32>)> {
    let block = |address: u64| address >> BLOCK_BITS;
    let count = sorted.chunk_by(|one, other| block(*one) == block(*other)).count();
    if count > FEW_BLOCKS && count * PAGES * 4 > sorted.len() * MOST_FOR_EACH {
        return None;
    }
    let (mut blocks, mut places) = (FxHashMap::default(), Vec::with_capacity(count * (PAGES + 1)));
    let mut at = 0;
    for block in sorted.chunk_by(|one, other| block(*one) == block(*other)) {
        let begin = places.len();
        blocks.insert(block[0] >> BLOCK_BITS, begin as u32);
        for (number, address) in (at..).zip(block) {
            let page = (address >> PAGE_BITS) as usize % PAGES;
            // It is the first on its page, and the next behind all pages that are empty before it.
            while places.len() <= begin + page {
                places.push(number as u32);
            }
        }
        at += block.len();
        places.resize(begin + PAGES + 1, at as u32);
    }
    Some((blocks, places))
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
        let far_apart: Vec<u64> = [0x1000, 0x1018].into_iter().chain((1..1000).map(|at| at << 30)).collect();
        for addresses in
            [vec![0x1000, 0x1018, 0x7f00_0000_0000], vec![0x7f00_0000_0000, 0x1000, 0x1018, 0x1000], far_apart]
        {
            let found = Addresses::new(addresses.clone());
            assert_eq!(found.blocks.is_empty(), addresses.len() > 4);
            for (number, address) in (0_u32..).zip(&addresses).filter(|(number, _)| *number < 3 || addresses.len() > 4)
            {
                assert_eq!(found.find(*address), Some(number));
            }
            assert_eq!(
                (found.around(0x1010), found.around(0xfff)),
                (found.find(0x1000).map(|number| (number, 0x10)), None)
            );
            assert!([0, 0xfff, 0x1001, 0x1020, u64::MAX].iter().all(|&address| found.find(address).is_none()));
        }
    }

    #[test]
    fn every_object_of_full_pages_is_found() {
        let addresses: Vec<u64> = (0..500_000).map(|at| 0x7f00_003f_f000 + at * 24).collect();
        let found = Addresses::new(addresses.clone());
        assert!((0..).zip(&addresses).all(|(number, address)| found.find(*address) == Some(number)));
        assert!(addresses.iter().all(|address| found.find(address + 8).is_none()));
        assert_eq!(found.find(addresses[499_999] + 24), None);
    }
}
