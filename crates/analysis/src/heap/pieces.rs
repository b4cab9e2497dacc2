//! The objects of a snapshot's chunks, read and resolved a few chunks at a time.
//!
//! Each chunk is read once. References are addresses until the addresses of all objects are known,
//! and numbers from then on.

use std::mem::take;
use std::sync::{Mutex, PoisonError};

use clrscope_recording::model::HeapGeneration;
use clrscope_recording::parallel::fold;

use super::addresses::Addresses;
use super::graph::{LOADER, MOST_OBJECTS};
use super::source::Source;

/// The objects of a chunk.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Whether the first object continues from the previous piece, so that it is not counted again.
    pub(super) goes_on: bool,
    pub(super) class: Vec<u32>,
    pub(super) sizes: Vec<u64>,
    pub(super) generation: Vec<HeapGeneration>,
    pub(super) addresses: Vec<u64>,
    /// For each object, the number of references up to its end.
    ends: Vec<u32>,
    /// Addresses of the target objects, until they are resolved.
    wanted: Vec<u64>,
    /// Numbers of the target objects.
    targets: Vec<u32>,
    /// Slot of each reference.
    slots: Vec<u32>,
}

impl Piece {
    /// Reads the chunk with an index in a source.
    fn read(source: &Source<'_>, at: usize) -> Self {
        let mut piece = Self::default();
        source.objects_of(at, |object| {
            piece.goes_on |= object.goes_on && piece.ends.is_empty();
            piece.class.push(object.type_number);
            piece.sizes.push(object.bytes);
            piece.generation.push(object.generation);
            piece.addresses.push(object.address);
            for reference in object.references {
                piece.wanted.push(reference.target);
                piece.slots.push(u32::try_from(reference.slot).unwrap_or(LOADER).min(LOADER - 1));
            }
            piece.ends.push(u32::try_from(piece.wanted.len()).unwrap_or(u32::MAX));
        });
        piece.wanted.shrink_to_fit();
        piece.slots.shrink_to_fit();
        piece
    }

    /// Number of objects, including one that continues from the previous piece.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Resolves the references. Leaves out references to missing objects, and returns their number.
    fn resolve(&mut self, addresses: &Addresses) -> u64 {
        let (wanted, slots) = (take(&mut self.wanted), take(&mut self.slots));
        let (mut targets, mut kept) = (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()));
        let mut begin = 0;
        for end in &mut self.ends {
            for at in begin..*end as usize {
                if let Some(target) = addresses.find(wanted[at]) {
                    targets.push(target);
                    kept.push(slots[at]);
                }
            }
            begin = *end as usize;
            *end = targets.len() as u32;
        }
        let missing = wanted.len() - targets.len();
        (self.targets, self.slots) = (targets, kept);
        missing as u64
    }

    /// Targets and slots of the object with an index.
    pub(super) fn references(&self, at: usize) -> (&[u32], &[u32]) {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let range = begin as usize..self.ends[at] as usize;
        (&self.targets[range.clone()], &self.slots[range])
    }
}

/// All pieces of a snapshot, in the order of addresses.
#[derive(Debug)]
pub(super) struct Pieces {
    all: Vec<Piece>,
    /// Objects beyond the maximum number.
    pub(super) beyond: u64,
}

impl Pieces {
    /// Reads all objects of a snapshot.
    pub(super) fn read(source: &Source<'_>) -> Self {
        let states = fold(source.rows(), Vec::new, |read, at| read.push((at, Piece::read(source, at))));
        let mut read: Vec<(usize, Piece)> = states.into_iter().flatten().collect();
        read.sort_unstable_by_key(|(at, _)| *at);
        let (mut all, mut room, mut beyond) = (Vec::with_capacity(read.len()), MOST_OBJECTS, 0);
        let mut last = None;
        for (_, mut piece) in read.into_iter().filter(|(_, piece)| piece.len() > 0) {
            if piece.len() > room {
                beyond += piece.len() as u64;
                continue;
            }
            room -= piece.len();
            piece.goes_on &= last == piece.addresses.first().copied();
            last = piece.addresses.last().copied();
            all.push(piece);
        }
        Self { all, beyond }
    }

    /// The pieces.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.all.iter()
    }

    /// The pieces, mutable.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Piece> {
        self.all.iter_mut()
    }

    /// The pieces one by one, by value.
    pub(super) fn into_iter(self) -> impl Iterator<Item = Piece> {
        self.all.into_iter()
    }

    /// Resolves all references. Returns the number of references to missing objects.
    pub(super) fn resolve(&mut self, addresses: &Addresses) -> u64 {
        let pieces: Vec<Mutex<&mut Piece>> = self.all.iter_mut().map(Mutex::new).collect();
        // Each is locked once, by the worker that has its number.
        let missing = fold(
            pieces.len(),
            || 0,
            |missing, at| *missing += pieces[at].lock().unwrap_or_else(PoisonError::into_inner).resolve(addresses),
        );
        missing.into_iter().sum()
    }

    /// Number of references.
    pub(super) fn references(&self) -> usize {
        self.all.iter().map(|piece| piece.slots.len()).sum()
    }
}
