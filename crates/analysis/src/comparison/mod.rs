//! Comparison of two recordings, or of two sets of recordings: what changed, and which differences
//! may be due to chance.
//!
//! Every amount is a [`IntervalEstimate`]: exact where each event was recorded, with the bounds of
//! sampling elsewhere. A set of recordings yields a [`Level`]: the median with its 95 % interval,
//! which includes the differences between runs. Recordings that were chosen by labels are merged
//! instead: their level is the mean per hour or per recording. A [`Change`] is significant if the
//! interval of the difference does not contain zero.
//!
//! Functions of both sides are matched by module, name and signature; see `identity` for functions
//! with compiler-generated numbers.

mod allocations;
mod exceptions;
mod functions;
mod gate;
mod identity;
mod interval;
mod judgement;
mod merging;
mod probes;
mod reading;
mod sides;
mod tree;

pub use allocations::{AllocationChanges, TypeChange, allocation_changes};
pub use exceptions::{ExceptionChange, ExceptionChanges, Thrower, exception_changes};
pub use functions::{FunctionChanges, PathChange, Verdicts, function_changes};
pub use gate::{Gate, GateError, Limit};
pub use interval::{Change, IntervalEstimate, Level, Verdict};
pub use judgement::{Judgement, Outcome, judge};
pub use merging::Per;
pub use probes::{ProbeChange, ProbeChanges, probe_changes};
pub use sides::{Chosen, ComparisonProblem, NamedRecording, Side, SideTotal, Sides};
pub use tree::{Shown, SmallerPaths, TreeChanges, tree_changes};
