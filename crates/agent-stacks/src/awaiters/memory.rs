//! The memory from which a chain is read: objects as they are now, or copies that were made when a
//! sample was taken.

use clrscope_agent_base::os::memory::word_if_there;

/// Number of words that are copied of an object. For a box, they include the words of the task and
/// the first part of the state machine.
pub(crate) const COPIED_WORDS: usize = 24;

/// Copies of objects, made when a sample was taken.
#[derive(Debug, Default, Clone)]
pub(crate) struct CopiedObjects {
    /// `this` of the method at which the copied chain begins; 0 for none.
    pub(crate) this: usize,
    /// Addresses of the objects, and their first words.
    pub(crate) objects: Vec<(usize, [usize; COPIED_WORDS])>,
}

impl CopiedObjects {
    /// Forgets all copies, but keeps the allocated memory for later copies.
    pub(crate) fn clear(&mut self) {
        self.this = 0;
        self.objects.clear();
    }

    fn word(&self, address: usize) -> Option<usize> {
        let word_of = |(start, words): &(usize, [usize; COPIED_WORDS])| {
            let above = address.checked_sub(*start).filter(|_| address.is_multiple_of(8))?;
            words.get(above / 8).copied()
        };
        self.objects.iter().find_map(word_of)
    }
}

/// The memory from which objects are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ObjectMemory<'o> {
    /// The objects as they are now, on the thread that uses them.
    Live,
    /// The objects as they are some time later: one that is used again may belong to something
    /// else by now.
    Later,
    /// Copies of objects.
    Copied(&'o CopiedObjects),
}

impl ObjectMemory<'_> {
    /// The word at an address; `None` if it is not mapped, or not copied.
    pub(super) fn word(self, address: usize) -> Option<usize> {
        match self {
            Self::Live | Self::Later => word_if_there(address),
            Self::Copied(objects) => objects.word(address),
        }
    }

    /// The four-byte number at an address; `None` if it is not mapped, or not copied.
    pub(super) fn number(self, address: usize) -> Option<u32> {
        let word = self.word(address & !7)?;
        Some((word >> (8 * (address & 4))) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_those_of_the_copies() {
        let mut words = [0; COPIED_WORDS];
        (words[1], words[COPIED_WORDS - 1]) = (0x0000_0007_0000_0003, 9);
        let copies = CopiedObjects { this: 0, objects: vec![(0x1000, [1; COPIED_WORDS]), (0x2000, words)] };
        let memory = ObjectMemory::Copied(&copies);
        let end = 0x2000 + 8 * COPIED_WORDS;
        assert_eq!(
            [0x1000, 0x2008, end - 8, end, 0x2004, 0xFF8].map(|at| memory.word(at)),
            [Some(1), Some(0x0000_0007_0000_0003), Some(9), None, None, None]
        );
        assert_eq!([0x2008, 0x200C].map(|at| memory.number(at)), [Some(3), Some(7)]);
        let live = std::hint::black_box([5_usize, 6]);
        assert_eq!(ObjectMemory::Live.word(live.as_ptr().expose_provenance() + 8), Some(6));
    }
}
