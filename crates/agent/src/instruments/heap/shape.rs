//! Shapes of objects: their size and the places of their references, from the description that the
//! runtime's collector uses.
//!
//! The description is stored in front of and at the beginning of a class (its method table). The
//! collector and every tool that walks heaps read it there, since this layout is the interface
//! between the runtime and its exchangeable collectors. Each shape is compared with the runtime's
//! own information about the first objects (`walk.rs`), and is not used where they differ.
//!
//! | offset | what |
//! |---|---|
//! | 0 | `u32` flags; where [`HAS_COMPONENTS`] is set the lower half is the size of an element |
//! | 4 | `u32` bytes of an object, the header in front of it included |
//! | 16 | the class it is derived from |
//! | -8 | `i64` number of series of references: descending from -8 `i64` bytes of the series less those of the object, and above it `u64` its offset |
//! | -8 | below zero for arrays of values: `u64` offset of the first reference at -16, then, descending, pairs of `u32`: references, bytes to pass over |

use clrscope_agent_base::os::memory::copy_if_there;

/// Flag: objects have elements.
const HAS_COMPONENTS: u32 = 0x8000_0000;
/// Flag: objects hold references.
const HAS_REFERENCES: u32 = 0x0100_0000;
/// Bits that give the category of a type, and their value for value types.
const CATEGORY: u32 = 0x000C_0000;
const VALUE_TYPE: u32 = 0x0004_0000;
/// Bytes of a class that are read.
const HEAD: usize = 64;
/// Bytes of the smallest object, and of the largest object without elements.
const LEAST: u32 = 24;
const MOST: u32 = 64 << 20;
/// Most series of references of a class.
const MOST_SERIES: u64 = 1 << 14;
/// Bytes of the largest box whose value is hashed.
const MOST_BOXED: u32 = 16 + 32;

/// What the first word at an address means, where an object is expected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Description {
    /// The beginning of an object of this shape.
    Object(Shape),
    /// The beginning of free space, which has the form of an array of bytes.
    Free,
    /// Nothing: the word can't be a class.
    Nothing,
}

/// Shape (memory layout) of the objects of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes of an object without its elements, up to the next object.
    pub(super) base: u32,
    /// Bytes of an element; 0 if the objects have no elements.
    pub(super) component: u32,
    /// Offsets of the references outside of elements, in words from the beginning of the object.
    pub(super) fixed: Vec<u32>,
    /// Offset in words of the first reference of the first element.
    pub(super) element_first: u32,
    /// Offsets in words of the references of each element, from its first reference.
    pub(super) element: Vec<u32>,
    /// The hash that represents an object's content.
    pub(super) content: Content,
}

/// What is recorded in place of the content of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing is recorded in its place.
    #[default]
    None,
    /// A hash of the string's characters.
    Characters,
    /// A hash of the boxed value.
    Box,
}

impl Shape {
    /// Bytes of an object with `length` elements, up to the next object.
    pub(super) fn bytes(&self, length: u64) -> u64 {
        (u64::from(self.base) + u64::from(self.component) * length).next_multiple_of(8)
    }

    /// Offset in bytes of the first element.
    pub(super) fn elements_at(&self) -> u32 {
        self.base - 8
    }
}

/// Tells what an object that begins with the word `class` is.
pub(super) fn describe(class: usize) -> Description {
    let mut head = [0; HEAD];
    if class == 0 || !class.is_multiple_of(8) || !copy_if_there(class, &mut head) {
        return Description::Nothing;
    }
    let flags = u32_at(&head, 0);
    let base = u32_at(&head, 4);
    if !(LEAST - 2..=MOST).contains(&base) {
        return Description::Nothing;
    }
    let component = if flags & HAS_COMPONENTS == 0 { 0 } else { flags & 0xFFFF };
    // The class of free space has no base class and no module, unlike any other class.
    if (base, component) == (LEAST, 1) && head[16..48].iter().all(|&byte| byte == 0) {
        return Description::Free;
    }
    let mut shape = Shape { base, component, ..Shape::default() };
    if flags & HAS_REFERENCES != 0 {
        if shape.find_references(class).is_none() {
            return Description::Nothing;
        }
    } else if (base, component) == (22, 2) {
        shape.content = Content::Characters;
    } else if flags & (CATEGORY | HAS_COMPONENTS) == VALUE_TYPE && base <= MOST_BOXED {
        shape.content = Content::Box;
    }
    if shape.content != Content::Characters && base < LEAST { Description::Nothing } else { Description::Object(shape) }
}

impl Shape {
    /// Finds the places of references; `None` if the description is impossible.
    fn find_references(&mut self, class: usize) -> Option<()> {
        match i64_before(class, 8)? {
            0 => None,
            count @ 1.. => self.series(class, count as u64),
            count => self.repeated(class, count.unsigned_abs()),
        }
    }

    fn series(&mut self, class: usize, count: u64) -> Option<()> {
        let end = u64::from(self.base) - 8;
        for number in 1..=count.min(MOST_SERIES) as usize {
            let start = i64_before(class, 8 + 16 * number - 8)? as u64;
            let bytes = i64_before(class, 8 + 16 * number)?.checked_add(i64::from(self.base))? as u64;
            if self.component > 0 {
                // An array of references, or of values that hold only references: all of it is one
                // series.
                let is_all = count == 1 && self.component.is_multiple_of(8) && start == end && start.is_multiple_of(8);
                self.element_first = (start / 8) as u32;
                self.element = (0..self.component / 8).collect();
                return is_all.then_some(());
            }
            let fits = start.is_multiple_of(8) && bytes.is_multiple_of(8) && start >= 8;
            if !fits || start.checked_add(bytes)? > end {
                return None;
            }
            self.fixed.extend((start / 8) as u32..((start + bytes) / 8) as u32);
        }
        self.fixed.sort_unstable();
        (count <= MOST_SERIES).then_some(())
    }

    fn repeated(&mut self, class: usize, count: u64) -> Option<()> {
        let start = i64_before(class, 16)? as u64;
        let room = u64::from(self.component);
        if count > MOST_SERIES
            || room == 0
            || !room.is_multiple_of(8)
            || !start.is_multiple_of(8)
            || start < u64::from(self.elements_at())
        {
            return None;
        }
        let mut word = 0_u32;
        for number in 0..count as usize {
            let item = i64_before(class, 24 + 8 * number)? as u64;
            let (references, skipped) = (item as u32, (item >> 32) as u32);
            if u64::from(references) * 8 > room || skipped % 8 != 0 {
                return None;
            }
            self.element.extend(word..word + references);
            word = word.checked_add(references)?.checked_add(skipped / 8)?;
        }
        self.element_first = u32::try_from(start / 8).ok()?;
        (u64::from(word) * 8 == room && start < u64::from(self.elements_at()) + room).then_some(())
    }
}

fn u32_at(bytes: &[u8; HEAD], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn i64_before(class: usize, distance: usize) -> Option<i64> {
    let mut word = [0; 8];
    copy_if_there(class.checked_sub(distance)?, &mut word).then(|| i64::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A class as in memory, with words in front of it.
    struct Class(Vec<u64>, usize);

    impl Class {
        /// `before` is placed in front of the class, the last word nearest to it.
        fn new(before: &[u64], flags: u32, base: u32) -> Self {
            let mut words = before.to_vec();
            words.push(u64::from(flags) | u64::from(base) << 32);
            // Virtual methods and the like, the class it is derived from, its module.
            words.extend([7, 0x1000, 0x2000, 0x3000, 0, 0, 0]);
            Self(words, before.len())
        }

        fn described(&self) -> Description {
            describe(self.0.as_ptr().addr() + self.1 * 8)
        }

        fn shape(&self) -> Shape {
            match self.described() {
                Description::Object(shape) => shape,
                other => panic!("{other:?}"),
            }
        }
    }

    fn less(bytes: i64, base: i64) -> u64 {
        (bytes - base) as u64
    }

    #[test]
    fn references_lie_where_the_series_say() {
        // Fields at 8 and 16, and at 40.
        let before = [less(8, 56), 40, less(16, 56), 8, 2];
        let shape = Class::new(&before, HAS_REFERENCES, 56).shape();
        assert_eq!((shape.fixed.as_slice(), shape.bytes(0)), (&[1, 2, 5][..], 56));
        let references = Class::new(&[less(-8, 24), 16, 1], HAS_REFERENCES | HAS_COMPONENTS | 8, 24).shape();
        assert_eq!((references.element_first, references.element.as_slice()), (2, &[0][..]));
        assert_eq!(references.bytes(3), 48);
        // Values of a number, a reference, another number and two references: 40 bytes.
        let items = [2_u64 | 8 << 32, 1 | 8 << 32];
        let values =
            Class::new(&[items[0], items[1], 24, -2_i64 as u64], HAS_REFERENCES | HAS_COMPONENTS | 40, 24).shape();
        assert_eq!((values.element_first, values.element.as_slice()), (3, &[0, 2, 3][..]));
    }

    #[test]
    fn arrays_of_values_that_are_nothing_but_references_have_one_series() {
        // Pairs of references: `KeyValuePair<string, object>[]`.
        let pairs = Class::new(&[less(-8, 24), 16, 1], HAS_REFERENCES | HAS_COMPONENTS | 16, 24).shape();
        assert_eq!((pairs.element_first, pairs.element.as_slice(), pairs.bytes(3)), (2, &[0, 1][..], 72));
    }

    #[test]
    fn strings_boxes_and_free_room_are_known() {
        assert_eq!(Class::new(&[], HAS_COMPONENTS | 2, 22).shape().content, Content::Characters);
        assert_eq!(Class::new(&[], VALUE_TYPE, 24).shape().content, Content::Box);
        assert_eq!(Class::new(&[], 0, 24).shape().content, Content::None);
        let bytes = Class::new(&[], HAS_COMPONENTS | 1, 24);
        assert_eq!((bytes.shape().content, bytes.shape().bytes(3)), (Content::None, 32));
        let mut free = bytes;
        free.0[1..].fill(0);
        assert_eq!(free.described(), Description::Free);
    }

    #[test]
    fn what_can_not_be_a_class_is_none() {
        assert_eq!(describe(0), Description::Nothing);
        assert_eq!(describe(0x1001), Description::Nothing);
        assert_eq!(describe(0x7000), Description::Nothing, "nothing is mapped there");
        for (before, flags, base) in [
            (vec![], 0, 8),
            (vec![], 0, MOST + 8),
            (vec![0], HAS_REFERENCES, 32),
            (vec![less(64, 32), 8, 1], HAS_REFERENCES, 32),
            (vec![less(8, 32), 0, 1], HAS_REFERENCES, 32),
            (vec![less(8, 32), 12, 1], HAS_REFERENCES, 32),
            (vec![u64::MAX, u64::MAX, u64::MAX >> 1], HAS_REFERENCES, 32),
            (vec![1, 24, -1_i64 as u64], HAS_REFERENCES | HAS_COMPONENTS | 24, 24),
        ] {
            let words = [vec![0; 8], before].concat();
            assert_eq!(Class::new(&words, flags, base).described(), Description::Nothing, "{words:x?}");
        }
    }
}
