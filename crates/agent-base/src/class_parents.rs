//! The base class of a class, read from the runtime's own structure for the class.

use crate::os::memory::word_if_there;

/// Offset of the base class in the runtime's structure for a class, on .NET 8, 9 and 10. Code that
/// uses this offset first checks that it gives the right result for classes of the framework.
pub const PARENT: usize = 16;

/// The base class of a class, which is given by the first word of its objects. `class` may be any
/// number.
pub fn parent_of(class: usize) -> Option<usize> {
    word_if_there(class.checked_add(PARENT)?)
}
