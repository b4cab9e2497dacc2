//! `clrscope watch`: records the programs of a host.

use crate::errors::Failure;
use crate::watch::{WatchPlan, watch};

/// Watches until the end.
///
/// # Errors
/// When another watch runs, or the folder can't be used.
pub(crate) fn perform(plan: WatchPlan) -> Result<(), Failure> {
    watch(plan)
}
