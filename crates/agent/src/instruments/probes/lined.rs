//! Lines of methods that are counted, or were.

use clr_profiler::il::Edits;

use super::line_code::{self, PlacedLine};

/// The counted places of one method.
#[derive(Default)]
pub(super) struct MethodLines {
    pub(super) places: Vec<PlacedLine>,
    /// The method's own code is back, as it was.
    pub(super) is_reverted: bool,
}

impl MethodLines {
    /// Whether any place is counted.
    pub(super) fn is_any_counted(&self) -> bool {
        self.places.iter().any(|place| place.is_counted)
    }

    /// Whether the method was recompiled because of its places, and still is so.
    pub(super) fn is_changed(&self) -> bool {
        !self.is_reverted
    }

    /// The method's own code is back.
    pub(super) fn revert(&mut self) {
        self.is_reverted = true;
    }

    /// The code that counts what is to be counted now.
    pub(super) fn edits(&self) -> Edits {
        line_code::edits(self.places.iter().filter(|place| place.is_counted))
    }

}
