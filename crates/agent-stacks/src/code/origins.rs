//! Origins of bodies by start address. Each takes only one word, as programs compile half a million
//! methods.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use clrscope_recording::model::Tier;

/// How a body was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Compiled on a thread that was about to run the method: the first body, or one for a running
    /// loop.
    Foreground,
    /// Compiled on the runtime's thread for hot methods. `first`: it is the method's first body.
    Background { first: bool },
    /// A dynamic method: compiled once, with optimisation.
    Dynamic,
    /// Compiled at build time.
    Image,
    /// Compiled once, with optimisation, because the method requests it.
    Aggressive,
}

impl Origin {
    /// The tier of the body, as far as the origin alone determines it.
    pub(super) fn tier(self) -> Tier {
        match self {
            Self::Foreground => Tier::Tier0,
            Self::Background { .. } => Tier::Tier1,
            Self::Dynamic | Self::Aggressive => Tier::Optimized,
            Self::Image => Tier::Precompiled,
        }
    }
}

/// Lowest bits of an address, which do not distinguish bodies: no body is shorter than a cell of
/// eight bytes.
const CELL: u32 = 3;

/// Origins that callbacks report: on threads that run the program, and on the runtime's own thread.
const TOLD: [Origin; 3] = [Origin::Foreground, Origin::Background { first: true }, Origin::Background { first: false }];

/// Address of a body, with its origin in the lowest bits. Bodies at one address are equal.
#[derive(Debug, Clone, Copy)]
struct Entry(usize);

impl Entry {
    fn new(start: usize, origin: usize) -> Self {
        Self(start >> CELL << CELL | origin)
    }

    fn cell(self) -> usize {
        self.0 >> CELL
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cell() == other.cell()
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.cell());
    }
}

/// The table of origins.
#[derive(Debug, Default)]
pub(super) struct Origins(HashSet<Entry>);

impl Origins {
    pub(super) fn get(&self, start: usize) -> Option<Origin> {
        let entry = self.0.get(&Entry::new(start, 0))?;
        TOLD.get(entry.0 & ((1 << CELL) - 1)).copied()
    }

    /// Adds a body that was not reported before. Returns whether it was added.
    pub(super) fn add(&mut self, start: usize, origin: Origin) -> bool {
        let Some(number) = TOLD.iter().position(|told| *told == origin) else { return false };
        self.0.insert(Entry::new(start, number))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[cfg(test)]
    fn bytes_of_a_slot() -> usize {
        size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_keeps_its_first_origin_in_one_word() {
        let mut origins = Origins::default();
        for (number, origin) in TOLD.into_iter().enumerate() {
            let start = 0x7F00_0000 + number * 16;
            assert!(origins.add(start, origin) && !origins.add(start, Origin::Foreground));
            assert_eq!(origins.get(start), Some(origin));
        }
        assert!(!origins.add(0x10, Origin::Image), "no callback has it");
        assert_eq!((origins.get(0x10), origins.get(0x7F00_0000 + 8)), (None, None));
        origins.clear();
        assert_eq!(origins.get(0x7F00_0000), None);
        assert_eq!(Origins::bytes_of_a_slot(), 8);
    }
}
