//! What only the GNU C library does.

use std::ops::Range;

/// The range of a stack with that into which it may still grow: the library has included it
/// (pthread_getattr_np(3)).
pub(super) fn with_growth(stack: Range<usize>) -> Range<usize> {
    stack
}
