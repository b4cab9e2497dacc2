//! Labels: positions in a method's code.

use std::fmt;

/// A position in a method's code, in front of one of its instructions.
///
/// The labels of a method's original instructions are their offsets in the code that was read.
/// Insertions don't change these labels, so [`Label::at`] also accepts an offset from a table of
/// source lines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub(crate) u32);

impl Label {
    /// The position after the last instruction, where the last block of a method may end.
    pub const END: Self = Self(u32::MAX);
    /// The first label number of inserted instructions.
    pub(crate) const FIRST_NEW: u32 = 1 << 31;

    /// Returns the label of the instruction at an offset in the code that was read, in bytes from
    /// the first instruction.
    #[must_use]
    pub const fn at(offset: u32) -> Self {
        Self(offset)
    }

    /// Offset in the code that was read; `None` for an inserted instruction and for
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
