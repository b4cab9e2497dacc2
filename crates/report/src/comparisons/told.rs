//! What the heads of comparisons say about recordings.

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
    recording.processes.iter().fold(0, |sum, process| sum.saturating_add(process.lost()))
}
