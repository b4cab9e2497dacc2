//! The class that a class is derived from, as the runtime's own structure of it says.

use crate::os::memory::word_if_there;

/// Offset in a class of the one that it is derived from, on .NET 8, 9 and 10. Code that relies on
/// it first checks that it gives the right result for classes of the framework.
pub const PARENT: usize = 16;

/// The parent of a class, by the first word of its objects. `class` may be any number.
pub fn parent_of(class: usize) -> Option<usize> {
    word_if_there(class.checked_add(PARENT)?)
}
