//! What heads of comparisons say of recordings.

use clrscope_analysis::Side;
use clrscope_recording::model::Recording;

/// A condition in words, and whether it is a warning.
pub(super) type Fact = (&'static str, String, bool);

/// Name of a side in JSON.
pub(super) const fn side(side: Side) -> &'static str {
    match side {
        Side::Before => "before",
        Side::After => "after",
    }
}

/// Number of items that a recording lost.
pub(super) fn lost(recording: &Recording) -> u64 {
    let losses = recording.processes.iter().flat_map(|process| &process.losses);
    losses.filter(|loss| !loss.reason.is_benign()).fold(0, |sum, loss| sum.saturating_add(loss.count))
}
