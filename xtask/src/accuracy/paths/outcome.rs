//! The outcome of a run of `KnownPaths`.

use clrscope_testkit::Tally;

/// Judged samples of one run.
pub(super) struct Judged {
    pub(super) tally: Tally,
    /// CPU time that the threads used; 0 where samples stand for other time.
    pub(super) cpu_ns: u64,
    /// Time that their samples stand for.
    pub(super) weight_ns: u64,
}

/// Outcome of a run.
pub(super) enum Outcome {
    Judged(Judged),
    /// The program ended as it should not.
    Broken(String),
    /// The engine is not to be had here.
    NotHere,
}
