//! The places of a method.

use std::fmt;

/// A place in a method's code, in front of one of its instructions.
///
/// The places of a method that was read are the offsets of its instructions there, and stay so
/// whatever is inserted: [`Label::at`] of an offset that a table of lines names is a place, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub(crate) u32);

impl Label {
    /// Behind the last instruction: where the last block of a method may end.
    pub const END: Self = Self(u32::MAX);
    /// First of those that stand for inserted instructions.
    pub(crate) const FIRST_NEW: u32 = 1 << 31;

    /// The instruction at an offset of the code that was read, in bytes from the first one.
    #[must_use]
    pub const fn at(offset: u32) -> Self {
        Self(offset)
    }

    /// Offset in the code that was read, `None` of an inserted instruction and of
    /// [`END`](Self::END).
    #[must_use]
    pub const fn offset(self) -> Option<u32> {
        if self.0 < Self::FIRST_NEW { Some(self.0) } else { None }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.offset()) {
            (Self::END, _) => f.write_str("IL_end"),
            (_, Some(offset)) => write!(f, "IL_{offset:04x}"),
            _ => write!(f, "new_{}", self.0 - Self::FIRST_NEW),
        }
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
