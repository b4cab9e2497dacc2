//! Mapping of objects' addresses to their numbers.

use rustc_hash::FxHashMap;

/// Bits of an address within eight bytes: objects are aligned to eight bytes.
const ALIGNED_BITS: u32 = 3;
/// Bits of an address within a piece: one bit of a [`Piece`] represents each eight bytes.
const PIECE_BITS: u32 = ALIGNED_BITS + 6;
/// Bits of an address within a block, which consists of adjacent pieces.
const BLOCK_BITS: u32 = 16;
/// Pieces of a block.
const PIECES: usize = 1 << (BLOCK_BITS - PIECE_BITS);
/// Maximum number of bytes of pieces per object. [`FEW_BLOCKS`] blocks are allowed in any case.
const MOST_FOR_EACH: usize = 16;
const FEW_BLOCKS: usize = 64;

/// Addresses of objects, which may be numbered in any order.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// The addresses in ascending order.
    sorted: Vec<u64>,
    /// Number of each object; empty if numbers ascend with the addresses.
    numbers: Vec<u32>,
    /// Bitmap for fast look-ups of an address's index in the sorted list. `None` if the bitmap
    /// would be too large for the number of objects, or if no heap has such addresses.
    marks: Option<Marks>,
}

/// A bit for each eight bytes of the heap: whether an object begins there.
#[derive(Debug, Default)]
struct Marks {
    /// Index of the first piece of each block.
    blocks: FxHashMap<u64, u32>,
    pieces: Vec<Piece>,
}

/// 512 bytes of the heap: where objects begin, and the number of objects before the piece. Both are
/// read with one memory access.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    begins: u64,
    before: u32,
}

impl Piece {
    const BYTES: usize = size_of::<Self>();

    /// Returns the index of the piece in its block, and of the bit in the piece.
    fn piece_and_bit(address: u64) -> (usize, u32) {
        ((address >> PIECE_BITS) as usize % PIECES, (address >> ALIGNED_BITS) as u32 % u64::BITS)
    }
}

impl Marks {
    /// Bitmap of addresses. `None` if the addresses are not strictly ascending, one is not aligned,
    /// or they are too far apart.
    fn new(sorted: &[u64]) -> Option<Self> {
        let block = |address: u64| address >> BLOCK_BITS;
        let is_aligned = sorted.iter().all(|address| address.trailing_zeros() >= ALIGNED_BITS);
        if !is_aligned || !sorted.is_sorted_by(|one, next| one < next) {
            return None;
        }
        let count = sorted.chunk_by(|one, other| block(*one) == block(*other)).count();
        if count > FEW_BLOCKS && count * PIECES * Piece::BYTES > sorted.len() * MOST_FOR_EACH {
            return None;
        }
        let mut marks = Self { blocks: FxHashMap::default(), pieces: Vec::with_capacity(count * PIECES) };
        let mut before = 0;
        for of_block in sorted.chunk_by(|one, other| block(*one) == block(*other)) {
            let begin = marks.pieces.len();
            marks.blocks.insert(block(of_block[0]), begin as u32);
            marks.pieces.resize(begin + PIECES, Piece::default());
            for &address in of_block {
                let (piece, bit) = Piece::piece_and_bit(address);
                marks.pieces[begin + piece].begins |= 1 << bit;
            }
            for piece in &mut marks.pieces[begin..] {
                piece.before = before;
                before += piece.begins.count_ones();
            }
        }
        Some(marks)
    }

    /// Index of an address in the sorted list.
    fn find(&self, address: u64) -> Option<usize> {
        let (piece, bit) = Piece::piece_and_bit(address);
        let Piece { begins, before } = self.pieces[*self.blocks.get(&(address >> BLOCK_BITS))? as usize + piece];
        let is_there = begins >> bit & 1 == 1 && address.trailing_zeros() >= ALIGNED_BITS;
        is_there.then(|| before as usize + (begins & ((1 << bit) - 1)).count_ones() as usize)
    }
}

impl Addresses {
    /// Objects at these addresses, numbered in this order. If two have the same address, the first
    /// counts.
    pub(crate) fn new(addresses: Vec<u64>) -> Self {
        let numbers = if addresses.is_sorted() { Vec::new() } else { in_order(&addresses) };
        let sorted = match numbers.is_empty() {
            true => addresses,
            false => numbers.iter().map(|&number| addresses[number as usize]).collect(),
        };
        let marks = if numbers.is_empty() { Marks::new(&sorted) } else { None };
        Self { sorted, numbers, marks }
    }

    /// Number of the object at an address.
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        if let Some(marks) = &self.marks {
            return marks.find(address).map(|at| at as u32);
        }
        let at = self.sorted.partition_point(|&other| other < address);
        (self.sorted.get(at) == Some(&address)).then(|| self.number(at))
    }

    /// Number of the object with an index in the sorted list.
    fn number(&self, at: usize) -> u32 {
        if self.numbers.is_empty() { at as u32 } else { self.numbers[at] }
    }

    /// Number of the nearest object at or before an address, and the distance from the object's
    /// begin.
    pub(crate) fn around(&self, address: u64) -> Option<(u32, u64)> {
        let nearest = self.sorted[self.sorted.partition_point(|&other| other <= address).checked_sub(1)?];
        let at = self.sorted.partition_point(|&other| other < nearest);
        Some((self.number(at), address - nearest))
    }
}

/// Numbers, sorted by their addresses.
fn in_order(addresses: &[u64]) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..addresses.len() as u32).collect();
    numbers.sort_by_key(|&number| (addresses[number as usize], number));
    numbers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn objects_are_found_in_any_order_and_nothing_between_them() {
        let far_apart: Vec<u64> = [0x1000, 0x1018].into_iter().chain((1..1000).map(|at| at << 30)).collect();
        let between_words = vec![0x1000, 0x1018, 0x1024];
        for (addresses, has_marks) in [
            (vec![0x1000, 0x1018, 0x7f00_0000_0000], true),
            (vec![0x7f00_0000_0000, 0x1000, 0x1018, 0x1000], false),
            (far_apart, false),
            (between_words, false),
        ] {
            let found = Addresses::new(addresses.clone());
            assert_eq!(found.marks.is_some(), has_marks);
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
        assert!(found.marks.is_some());
        assert!((0..).zip(&addresses).all(|(number, address)| found.find(*address) == Some(number)));
        assert!(addresses.iter().all(|address| found.find(address + 8).is_none()));
        assert_eq!(found.find(addresses[499_999] + 24), None);
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_is_there(mut words in proptest::collection::btree_set(0..100_000_u64, 1..300)) {
            // A few far away.
            words.insert(1 << 40);
            let addresses: Vec<u64> = words.iter().map(|word| word << 3).collect();
            let found = Addresses::new(addresses.clone());
            prop_assert!(found.marks.is_some());
            for asked in addresses.iter().flat_map(|address| [address - 8 * u64::from(*address > 0), *address, address + 1, address + 8]) {
                let number = addresses.binary_search(&asked).ok().map(|at| at as u32);
                prop_assert_eq!(found.find(asked), number);
            }
        }
    }
}
