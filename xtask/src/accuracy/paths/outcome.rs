//! The outcome of a run of `KnownPaths`.

use clrscope_testkit::Tally;

/// Samples of one run, compared with the known paths.
pub(super) struct Judged {
    pub(super) tally: Tally,
    /// CPU time that the threads used; 0 if samples stand for another kind of time.
    pub(super) cpu_ns: u64,
    /// Time that the samples of these threads stand for.
    pub(super) weight_ns: u64,
}

/// Outcome of a run.
pub(super) enum Outcome {
    Judged(Judged),
    /// The program ended in an unexpected way; holds a description.
    Broken(String),
    /// The engine is not available here.
    NotHere,
}
