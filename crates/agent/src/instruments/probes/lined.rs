//! Lines of a method that are counted, or were counted before.

use clr_profiler::il::Edits;

use super::line_code::{self, PlacedLine};

/// The counted places of one method.
#[derive(Default)]
pub(super) struct MethodLines {
    pub(super) places: Vec<PlacedLine>,
    /// Whether the method has its own code back (was reverted).
    pub(super) is_reverted: bool,
}

impl MethodLines {
    /// Whether any place is counted.
    pub(super) fn is_any_counted(&self) -> bool {
        self.places.iter().any(|place| place.is_counted)
    }

    /// Whether the method runs recompiled code because of these places.
    pub(super) fn is_changed(&self) -> bool {
        !self.is_reverted
    }

    /// Notes that the method has its own code back.
    pub(super) fn revert(&mut self) {
        self.is_reverted = true;
    }

    /// The edits for the places that are counted now.
    pub(super) fn edits(&self) -> Edits {
        line_code::edits(self.places.iter().filter(|place| place.is_counted))
    }

}
