//! Lines of methods that are counted, or were.

use clr_profiler::il::Edits;

use super::line_code::{self, PlacedLine};

/// The counted places of one method.
#[derive(Default)]
pub(super) struct MethodLines {
    pub(super) places: Vec<PlacedLine>,
    /// Whether the method's own code is back (reverted).
    pub(super) is_reverted: bool,
}

impl MethodLines {
    /// Whether any place is counted.
    pub(super) fn is_any_counted(&self) -> bool {
        self.places.iter().any(|place| place.is_counted)
    }

    /// Whether the method runs recompiled code because of its places.
    pub(super) fn is_changed(&self) -> bool {
        !self.is_reverted
    }

    /// Notes that the method's own code is back.
    pub(super) fn revert(&mut self) {
        self.is_reverted = true;
    }

    /// The code that counts the places that are to be counted now.
    pub(super) fn edits(&self) -> Edits {
        line_code::edits(self.places.iter().filter(|place| place.is_counted))
    }

}
