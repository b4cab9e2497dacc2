//! Sizes of objects, read from the objects themselves: asking the runtime takes too long for a
//! callback about an allocation.

use std::sync::atomic::{AtomicBool, Ordering};

use clr_profiler::{ClassId, ObjectId, ProfilerInfo};

/// Bit of a class's first word: the size of its objects depends on a number of elements. The lower
/// half of the word is the size of an element in bytes.
const HAS_ELEMENTS: u32 = 1 << 31;
/// Offset of the number of elements in an object.
const ELEMENTS: usize = 8;
/// Alignment of objects.
const GRAIN: u64 = 8;
/// Mark of a class for whose objects only the runtime knows the size.
const ASK: u32 = u32::MAX;

/// Whether some class had an unexpected form. Then no class is read any more.
static IS_OTHERWISE: AtomicBool = AtomicBool::new(false);

/// How to compute the size of a class's objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeRule {
    /// Bytes of an object without its elements.
    base: u32,
    /// Bytes of an element; 0 if there are none.
    element: u32,
}

impl SizeRule {
    /// Returns the rule for the class of an object, and the object's size. The rule is checked
    /// against the size that the runtime gives. Call it in the callback that received the object
    /// and its class.
    pub fn for_object(info: &ProfilerInfo, object: ObjectId<'_>, class: ClassId) -> (Self, u64) {
        let asked = asked(info, object);
        let rule =
            if IS_OTHERWISE.load(Ordering::Relaxed) { Self { base: 0, element: ASK } } else { Self::read(class) };
        if rule.element != ASK && rule.bytes(info, object) != asked {
            IS_OTHERWISE.store(true, Ordering::Relaxed);
            return (Self { base: 0, element: ASK }, asked.next_multiple_of(GRAIN));
        }
        (rule, asked.next_multiple_of(GRAIN))
    }

    fn read(class: ClassId) -> Self {
        let address = class.as_raw();
        if address == 0 || !address.is_multiple_of(8) {
            return Self { base: 0, element: ASK };
        }
        // SAFETY: the runtime has just said that an object has this class, so the class exists. On
        // .NET 8, 9 and 10, classes of objects begin with two words of four bytes: flags with the
        // size of an element, and the size of an object without elements. A later runtime may have
        // other contents there, so the caller compares the result.
        let [flags, base] = unsafe { (address as *const [u32; 2]).read_volatile() };
        Self { base, element: if flags & HAS_ELEMENTS != 0 { flags & 0xFFFF } else { 0 } }
    }

    /// Bytes that an object takes on the heap. Call it in the callback that received the object.
    #[inline]
    pub fn size(self, info: &ProfilerInfo, object: ObjectId<'_>) -> u64 {
        self.bytes(info, object).next_multiple_of(GRAIN)
    }

    #[inline]
    fn bytes(self, info: &ProfilerInfo, object: ObjectId<'_>) -> u64 {
        match self.element {
            0 => self.base.into(),
            ASK => asked(info, object),
            element => u64::from(self.base) + u64::from(element) * u64::from(elements(object)),
        }
    }
}

/// Bytes of an object, as the runtime gives them.
#[cold]
#[inline(never)]
fn asked(info: &ProfilerInfo, object: ObjectId<'_>) -> u64 {
    info.object_size(object).unwrap_or(0) as u64
}

/// Number of elements of an array, or of characters of a string.
#[inline]
fn elements(object: ObjectId<'_>) -> u32 {
    // SAFETY: the lifetime of `object` guarantees that the object is alive, and its class that it
    // has elements, whose number is behind the reference to the class.
    unsafe { ((object.address() + ELEMENTS) as *const u32).read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_class_is_asked_about() {
        assert_eq!(SizeRule::read(ClassId::NULL), SizeRule { base: 0, element: ASK });
    }

    #[test]
    fn classes_say_what_their_objects_take() {
        let class = |words: &[u32; 2]| {
            // SAFETY: the runtime is not asked, and the words are valid.
            SizeRule::read(unsafe { ClassId::from_raw(words.as_ptr().expose_provenance()) })
        };
        let aligned = |words: [u32; 2]| {
            #[repr(align(8))]
            struct Aligned([u32; 2]);
            class(&std::hint::black_box(&Aligned(words)).0)
        };
        assert_eq!(aligned([0x0100_0000, 32]), SizeRule { base: 32, element: 0 });
        assert_eq!(aligned([HAS_ELEMENTS | 2, 22]), SizeRule { base: 22, element: 2 });
    }
}
