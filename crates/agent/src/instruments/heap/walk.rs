//! The walk of the heap, range by range and object by object, while the program stands still after
//! a full collection.
//!
//! Everything is read from memory that the runtime says is in use. The runtime is queried only
//! about the first objects of each class (`prove`), and never in a way that could wait for another
//! thread.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use clr_profiler::callback_args::Generation;
use clr_profiler::{HeapRange, ObjectId, ProfilerInfo};
use clrscope_recording::model::{HeapGeneration, HeapType};
use clrscope_recording::writer::{HeapWriter, ObjectHead};

use super::memory::StopProof;
use super::shape::Content;
use super::task_words::KeptWords;
use super::types::{Classes, Meaning};
use crate::services::object_types::ObjectTypes;

/// Bits of an object's first word that the collector uses for itself.
const MARKS: u64 = 7;

/// Totals of a walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) objects: u64,
    pub(super) bytes: u64,
    pub(super) references: u64,
    /// Number of ranges that were not walked to their end, because something that is no object was
    /// found there.
    pub(super) unread_pieces: usize,
    /// Bytes of these ranges from that place to the end.
    pub(super) unread_bytes: u64,
}

impl Sums {
    /// A sentence about the bytes that were not understood; `None` if there are none.
    pub(super) fn gap(&self) -> Option<String> {
        let part = self.unread_bytes as f64 / (self.bytes + self.unread_bytes).max(1) as f64 * 100.0;
        let text = || format!("{} bytes ({part:.1} % of the heap), behind what is no object", self.unread_bytes);
        (self.unread_pieces > 0).then(text)
    }
}

/// A walk in progress.
pub(super) struct Walk<'w, 's> {
    pub(super) info: &'w ProfilerInfo,
    pub(super) classes: &'w mut Classes,
    pub(super) writer: &'w mut HeapWriter<'s>,
    pub(super) object_types: &'w ObjectTypes,
    /// The words that are kept of the boxes of async methods.
    pub(super) kept: &'w mut KeptWords,
    pub(super) sums: Sums,
    /// Number of the last class that was written to the recording.
    pub(super) met: u32,
}

impl Walk<'_, '_> {
    /// Walks ranges of the heap in the order of their addresses. Stops when there is no room for
    /// more records.
    pub(super) fn pieces(&mut self, stopped: &StopProof, mut ranges: Vec<HeapRange>) {
        ranges.sort_unstable_by_key(|range| range.start);
        for range in ranges.iter().filter(|range| range.bytes >= 24) {
            let words = stopped.words(range);
            let read = self.piece(range.start, words, generation(range.generation));
            let unread = words.len() - read;
            self.sums.unread_pieces += usize::from(unread > 0);
            self.sums.unread_bytes += unread as u64 * 8;
            if !self.writer.has_room() {
                return;
            }
        }
    }

    /// Walks a range; returns how many words of it were understood.
    fn piece(&mut self, start: usize, words: &[AtomicU64], generation: HeapGeneration) -> usize {
        self.writer.row(generation, start as u64);
        let mut at = 0;
        while let Some(first) = words.get(at).map(|word| word.load(Ordering::Relaxed)) {
            if first == 0 {
                // An allocation buffer, or the rest of the range.
                let empty = words[at..].iter().take_while(|word| word.load(Ordering::Relaxed) == 0).count();
                self.writer.gap(empty as u64 * 8);
                at += empty;
                continue;
            }
            let length = words.get(at + 1).map_or(0, |word| word.load(Ordering::Relaxed) & 0xFFFF_FFFF);
            let found = self.classes.meaning((first & !MARKS) as usize);
            let taken = match found {
                Meaning::Class(number) => self.object(number, start + at * 8, &words[at..], length),
                Meaning::Free => {
                    let bytes = (24 + length).next_multiple_of(8);
                    let fits = bytes / 8 <= (words.len() - at) as u64;
                    if fits {
                        self.writer.gap(bytes);
                    }
                    fits.then_some((bytes / 8) as usize)
                }
                Meaning::Nothing => None,
            };
            match taken {
                Some(taken) if self.writer.has_room() => at += taken,
                _ => break,
            }
        }
        at
    }

    /// Writes an object, which begins at the start of `words`. Returns how many words it takes;
    /// `None` if it does not fit.
    #[inline]
    fn object(&mut self, number: u32, address: usize, words: &[AtomicU64], length: u64) -> Option<usize> {
        if self.classes.class(number).proofs_left > 0 {
            self.prove(number, address, words, length);
            self.note(number);
        }
        let class = self.classes.class(number);
        let shape = &class.shape;
        let length = if shape.component > 0 { length } else { 0 };
        let bytes = shape.bytes(length);
        let words = words.get(..(bytes / 8) as usize)?;
        let content = match shape.content {
            Content::None => None,
            Content::Characters => Some(hash_characters(words, length)),
            Content::Box => Some(hash(&words[1..words.len() - 1])),
        };
        let has_elements = shape.component > 0;
        self.writer.object(ObjectHead { type_number: number, bytes, length: has_elements.then_some(length), content });
        if !class.is_unlike {
            let mut references = 0;
            let mut slot = |at: usize| {
                let target = words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
                references += u64::from(target != 0);
                self.writer.slot(target);
            };
            shape.fixed.iter().for_each(|&at| slot(at as usize));
            if !shape.element.is_empty() {
                let (first, step) = (shape.element_first as usize, shape.component as usize / 8);
                for element in 0..length as usize {
                    shape.element.iter().for_each(|&at| slot(first + element * step + at as usize));
                }
            }
            self.sums.references += references;
        }
        self.writer.end();
        if let Some(kept) = &class.kept {
            self.kept.keep(address as u64, number, kept, words);
        }
        self.sums.objects += 1;
        self.sums.bytes += bytes;
        Some(words.len())
    }

    /// Writes a class when it is met first, without names, which may not be asked for now, but with
    /// its number in the dictionary if it is known already. So the written part of the heap is
    /// readable even if the program is killed before it resumes.
    fn note(&mut self, number: u32) {
        if number > self.met {
            self.met = number;
            let class = self.classes.class(number);
            let object_type = self.object_types.known(class.id).unwrap_or(0);
            self.writer.met_type(&HeapType { object_type, ..class.without_names(number) });
        }
    }

    /// Compares the shape of an object with the runtime's information about it.
    #[cold]
    fn prove(&mut self, number: u32, address: usize, words: &[AtomicU64], length: u64) {
        let class = self.classes.class_mut(number);
        let shape = &class.shape;
        let length = if shape.component > 0 { length } else { 0 };
        // SAFETY: the runtime has said that the heap is in use here, its objects lie one behind the
        // other, and the ones before were understood; the program stands still, so that the object
        // stays.
        let object = unsafe { ObjectId::from_address(address) };
        let bytes = shape.bytes(length);
        let mut expected = Vec::new();
        let mut expect = |at: usize| {
            let target = words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
            if target != 0 {
                expected.push((at * 8, target as usize));
            }
        };
        shape.fixed.iter().for_each(|&at| expect(at as usize));
        // For long arrays the beginning is enough.
        let elements = if shape.element.is_empty() { 0 } else { length.min(1 << 10) as usize };
        for element in 0..elements {
            let from = shape.element_first as usize + element * (shape.component as usize / 8);
            shape.element.iter().for_each(|&at| expect(from + at as usize));
        }
        let compared = if elements as u64 == length { bytes } else { shape.bytes(elements as u64) - 8 } as usize;
        let (mut found, mut loader) = (Vec::new(), 0);
        let asked = self.info.references_of(object, |reference| {
            if reference.offset >= bytes as usize {
                // This reference is not in the object: it keeps the object's type loaded.
                loader = reference.object.address();
            } else if !reference.object.is_null() && reference.offset < compared {
                found.push((reference.offset, reference.object.address()));
            }
            // Arrays are walked from their beginning.
            match reference.offset >= compared && reference.offset < bytes as usize {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        // The runtime may visit the fields in any order.
        found.sort_unstable();
        let is_size_alike = self.info.object_size(object).is_ok_and(|said| (said as u64).next_multiple_of(8) == bytes);
        class.proofs_left -= 1;
        if loader != 0 {
            class.loader = loader;
        }
        class.is_unlike |= asked.is_err() || found != expected || !is_size_alike;
    }
}

fn generation(generation: Generation) -> HeapGeneration {
    match generation {
        Generation::Gen0 => HeapGeneration::Gen0,
        Generation::Gen1 => HeapGeneration::Gen1,
        Generation::LargeObjects => HeapGeneration::Large,
        Generation::PinnedObjects => HeapGeneration::Pinned,
        Generation::NonGc => HeapGeneration::Frozen,
        // Generations that only a later runtime has count as old.
        _ => HeapGeneration::Gen2,
    }
}

/// A hash of the characters of a string and of their number.
fn hash_characters(words: &[AtomicU64], length: u64) -> u64 {
    // The number and the first two characters share a word; a zero and padding up to the word's end
    // follow the last character.
    let end = 12 + 2 * length as usize;
    let whole = &words[1..(end / 8).clamp(1, words.len())];
    let rest = words.get(end / 8).filter(|_| end / 8 >= 1).map_or(0, |word| word.load(Ordering::Relaxed));
    let kept = rest & !(u64::MAX << (8 * (end % 8)));
    mix(hash(whole), kept)
}

/// A hash of words.
fn hash(words: &[AtomicU64]) -> u64 {
    words.iter().fold(0x243F_6A88_85A3_08D3, |hash, word| mix(hash, word.load(Ordering::Relaxed)))
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * 0x9E37_79B9_7F4A_7C15;
    product as u64 ^ (product >> 64) as u64 ^ hash.rotate_left(23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, filling: u8) -> Vec<AtomicU64> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut bytes = vec![0; 8];
        bytes.extend((units.len() as u32).to_le_bytes());
        bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend([0, 0]);
        let whole = (22 + 2 * units.len()).next_multiple_of(8);
        bytes.resize(whole, filling);
        bytes.chunks_exact(8).map(|word| AtomicU64::new(u64::from_le_bytes(word.try_into().expect("a word")))).collect()
    }

    /// Only a footnote used to say it, which no report showed on its first screen.
    #[test]
    fn what_a_snapshot_lacks_is_said_as_a_part_of_the_heap() {
        let sums = Sums { bytes: 9_960, unread_pieces: 1, unread_bytes: 40, ..Sums::default() };
        assert_eq!(sums.gap().as_deref(), Some("40 bytes (0.4 % of the heap), behind what is no object"));
        assert_eq!(Sums { bytes: 9_960, ..Sums::default() }.gap(), None);
    }

    #[test]
    fn equal_strings_have_equal_hashes_whatever_stands_behind_them() {
        let hash_of = |word: &str, filling| hash_characters(&text(word, filling), word.encode_utf16().count() as u64);
        let words =
            ["", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "b", "ba", "\u{e9}t\u{e9}", "a\0", "a\0\0"];
        for word in words {
            assert_eq!(hash_of(word, 0), hash_of(word, 0xAA), "{word:?}");
        }
        let mut all: Vec<u64> = words.iter().map(|word| hash_of(word, 0)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), words.len());
    }
}
