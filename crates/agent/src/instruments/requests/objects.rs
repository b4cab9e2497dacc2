//! Objects that inserted code passes by address. None of them moves during the call.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use clrscope_agent_base::class_parents::PARENT;

/// Offsets of a text's length and characters.
const LENGTH: usize = 8;
const CHARACTERS: usize = 12;
/// Most base classes of a class.
const MOST_BASES: usize = 16;

/// The characters of a text; empty for null.
///
/// # Safety
/// The address must be null, or that of a live object of `System.String`, which does not move for
/// `'t`.
pub(super) unsafe fn text<'t>(address: usize) -> &'t [u16] {
    if address == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; a text has a length, and as many characters behind it.
    unsafe {
        let length = std::ptr::with_exposed_provenance::<u32>(address + LENGTH).read();
        std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address + CHARACTERS), length as usize)
    }
}

/// A field of a class and of its derived classes.
#[derive(Debug, Default)]
pub(super) struct KnownField {
    class: AtomicUsize,
    /// Offset from the object's beginning; 0 until it is known.
    offset: AtomicU32,
}

impl KnownField {
    /// A field whose offset is not known yet.
    pub(super) const fn unknown() -> Self {
        Self { class: AtomicUsize::new(0), offset: AtomicU32::new(0) }
    }

    /// Sets the class and the field's offset in its objects.
    pub(super) fn know(&self, class: usize, offset: u32) {
        self.class.store(class, Ordering::Relaxed);
        self.offset.store(offset, Ordering::Release);
    }

    pub(super) fn is_known(&self) -> bool {
        self.offset.load(Ordering::Relaxed) != 0
    }

    /// Address of the field in an object; `None` if the object is null or has no such field.
    ///
    /// # Safety
    /// The address must be null or that of a live object, which does not move meanwhile.
    unsafe fn place(&self, object: usize) -> Option<usize> {
        let offset = self.offset.load(Ordering::Acquire) as usize;
        if object == 0 || offset == 0 {
            return None;
        }
        let wanted = self.class.load(Ordering::Relaxed);
        // SAFETY: the first word of an object is its class, and each class has its base class, or
        // null.
        let word = |address: usize| unsafe { std::ptr::with_exposed_provenance::<usize>(address).read() };
        // The last class has no base class, and nothing may be read at address 0.
        let parent = |class: &usize| Some(word(class + PARENT)).filter(|parent| *parent != 0);
        let has_it = std::iter::successors(Some(word(object)), parent).take(MOST_BASES).any(|class| class == wanted);
        has_it.then_some(object + offset)
    }

    /// Whether a one-byte field is not zero; `false` if the object has no such field.
    ///
    /// # Safety
    /// As for [`place`](Self::place).
    pub(super) unsafe fn is_set(&self, object: usize) -> bool {
        // SAFETY: the caller's promise; an object of that class has the field there.
        unsafe { self.place(object).is_some_and(|at| std::ptr::with_exposed_provenance::<u8>(at).read() != 0) }
    }

    /// The characters of a field that holds a text; empty if the object has no such field, or the
    /// field holds null.
    ///
    /// # Safety
    /// As for [`place`](Self::place), for `'t`.
    pub(super) unsafe fn text<'t>(&self, object: usize) -> &'t [u16] {
        // SAFETY: the caller's promise; an object of that class has the address of a text there.
        unsafe {
            let reference = self.place(object).map(|at| std::ptr::with_exposed_provenance::<usize>(at).read());
            text(reference.unwrap_or(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_fields_are_read_where_they_lie() {
        let base = [0_usize, 0, 0];
        let derived = [0_usize, 0, base.as_ptr().expose_provenance()];
        let other = [0_usize, 0, 0];
        let object = |class: &[usize; 3]| [class.as_ptr().expose_provenance(), 0x0062_0061_0000_0002, 0, 1];
        let address = |object: &[usize; 4]| object.as_ptr().expose_provenance();
        let field = KnownField::default();
        let (of_base, of_derived, of_other) = (object(&base), object(&derived), object(&other));
        // SAFETY: objects as in the runtime, with two more words.
        unsafe {
            assert_eq!(text(address(&of_base)), [0x61, 0x62]);
            assert!(text(0).is_empty());
            assert!(!field.is_set(address(&of_base)), "nothing is known yet");
            field.know(base.as_ptr().expose_provenance(), 24);
            let set = [0, address(&of_base), address(&of_derived), address(&of_other)].map(|at| field.is_set(at));
            assert_eq!(set, [false, true, true, false]);
            let holder = [base.as_ptr().expose_provenance(), 0, 0, address(&of_base)];
            assert_eq!(field.text(address(&holder)), [0x61, 0x62]);
            assert!(field.text(address(&of_other)).is_empty());
        }
    }
}
