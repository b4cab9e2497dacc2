//! The base class of a class, read from the runtime's own structure for the class.

use crate::os::memory::word_if_there;

/// Offset of the base class in the runtime's structure for a class, on .NET 8, 9 and 10. Code that
/// uses this offset first checks that it gives the right result for classes of the framework.
pub const PARENT: usize = 16;

/// The base class of a class. `class` is the first word of an object of the class, and may be any
/// number: memory at a wrong address is not an error.
pub fn parent_of(class: usize) -> Option<usize> {
    word_if_there(class.checked_add(PARENT)?)
}
