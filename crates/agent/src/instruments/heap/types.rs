//! The types of the objects that a walk has seen, found by the first words of objects.

use clrscope_recording::model::HeapType;

use super::shape::{Content, Description, Shape, describe};
use super::task_words::TaskWords;

/// Objects of a type that are compared with the runtime's information about them.
const PROOFS: u8 = 3;
/// Slots of the index at the beginning. A power of two.
const FIRST_SLOTS: usize = 1 << 12;

/// A type of objects on the heap.
#[derive(Debug)]
pub(super) struct HeapClass {
    /// The runtime's identifier of the type, which is the first word of its objects.
    pub(super) id: usize,
    pub(super) shape: Shape,
    /// Number of objects that are still to be compared with the runtime's information.
    pub(super) proofs_left: u8,
    /// Whether the runtime's information differs from the shape. References are then left out.
    pub(super) is_unlike: bool,
    /// Address of the object that keeps the type loaded; 0 for types that are never unloaded.
    pub(super) loader: usize,
    /// The words to keep of the type's objects, if they may be boxes of async methods.
    pub(super) kept: Option<TaskWords>,
}

impl HeapClass {
    /// The type as it is stored, except that all names are empty.
    pub(super) fn without_names(&self, number: u32) -> HeapType {
        let shape = &self.shape;
        let slots = |count: usize| vec![String::new(); if self.is_unlike { 0 } else { count }];
        HeapType {
            number,
            base_bytes: shape.base,
            element_bytes: shape.component,
            fields: slots(shape.fixed.len()),
            element_fields: slots(shape.element.len()),
            content: match shape.content {
                Content::None => HeapType::NO_CONTENT,
                Content::Characters => HeapType::STRING,
                Content::Box => HeapType::BOX,
            },
            loader: self.loader as u64,
            ..HeapType::default()
        }
    }
}

/// What the first word of an object means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The beginning of an object of the class with this number. Numbers begin at 1.
    Class(u32),
    /// Free space.
    Free,
    /// Not a class.
    Nothing,
}

/// The types by number, with a hash table to find them by their identifiers.
#[derive(Debug)]
pub(super) struct Classes {
    all: Vec<HeapClass>,
    /// First word and number; number 0 is a free slot. A power of two in size.
    slots: Vec<(usize, u32)>,
    free: usize,
    last: (usize, u32),
    /// The type of tasks by the first word of its objects, where it is known.
    task: Option<usize>,
}

impl Classes {
    pub(super) fn new(task: Option<usize>) -> Self {
        Self { all: Vec::with_capacity(4096), slots: vec![(0, 0); FIRST_SLOTS], free: 0, last: (0, 0), task }
    }

    /// The classes that were seen, in the order of their numbers.
    pub(super) fn all(&self) -> &[HeapClass] {
        &self.all
    }

    /// The class with this number.
    #[inline]
    pub(super) fn class(&self, number: u32) -> &HeapClass {
        &self.all[number as usize - 1]
    }

    pub(super) fn class_mut(&mut self, number: u32) -> &mut HeapClass {
        &mut self.all[number as usize - 1]
    }

    /// Meaning of the first word of an object.
    #[inline]
    pub(super) fn meaning(&mut self, word: usize) -> Meaning {
        if word == self.last.0 {
            return Meaning::Class(self.last.1);
        }
        let mut at = self.start_of(word);
        while self.slots[at].1 != 0 {
            if self.slots[at].0 == word {
                self.last = self.slots[at];
                return Meaning::Class(self.last.1);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.meet(word)
    }

    fn start_of(&self, word: usize) -> usize {
        (word >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.slots.len().trailing_zeros())
    }

    #[cold]
    fn meet(&mut self, word: usize) -> Meaning {
        if word == self.free && word != 0 {
            return Meaning::Free;
        }
        match describe(word) {
            Description::Free => {
                self.free = word;
                Meaning::Free
            }
            Description::Nothing => Meaning::Nothing,
            Description::Object(shape) => {
                let kept = self.task.and_then(|task| TaskWords::find(word, &shape, task));
                self.all.push(HeapClass { id: word, shape, proofs_left: PROOFS, is_unlike: false, loader: 0, kept });
                let number = self.all.len() as u32;
                self.insert(word, number);
                self.last = (word, number);
                Meaning::Class(number)
            }
        }
    }

    fn insert(&mut self, word: usize, number: u32) {
        if self.all.len() * 2 > self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![(0, 0); old.len() * 2];
            old.into_iter().filter(|slot| slot.1 != 0).for_each(|(word, number)| self.put(word, number));
        }
        self.put(word, number);
    }

    fn put(&mut self, word: usize, number: u32) {
        let mut at = self.start_of(word);
        while self.slots[at].1 != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (word, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_one_number_however_many_there_are() {
        // Classes without references, with objects of 24 bytes and a base class.
        let memory: Vec<[u64; 8]> = (0..5_000).map(|number| [24 << 32, 7, 0x1000 + number, 0, 0, 0, 0, 0]).collect();
        let word = |number: usize| memory[number].as_ptr().addr();
        let mut classes = Classes::new(None);
        for round in 0..2 {
            for number in 0..memory.len() {
                assert_eq!(classes.meaning(word(number)), Meaning::Class(number as u32 + 1), "{round}");
            }
        }
        assert_eq!(classes.all().len(), 5_000);
        assert_eq!(classes.class(4_321).id, word(4_320));
        assert_eq!(classes.meaning(8), Meaning::Nothing);
    }
}
