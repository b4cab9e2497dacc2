//! Two recordings, or two sets of recordings, side by side: what changed, and what chance may have
//! done.
//!
//! Every amount is a [`IntervalEstimate`]: exact where each event was recorded, between the bounds
//! of sampling elsewhere. A set of recordings gives a [`Level`]: the median with its interval of 95
//! %, in which the differences between runs are. A [`Change`] is called one where the interval of
//! the difference leaves zero out.
//!
//! Functions are one function on both sides by module, name and signature; see `identity` for those
//! that compilers number.

mod allocations;
mod exceptions;
mod functions;
mod gate;
mod identity;
mod interval;
mod judgement;
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
pub use probes::{ProbeChange, ProbeChanges, probe_changes};
pub use sides::{ComparisonProblem, NamedRecording, Side, SideTotal, Sides};
pub use tree::{Shown, SmallerPaths, TreeChanges, tree_changes};
