//! Suspensions of the fake runtime by the profiler; some of them fail.

use clr_profiler::HResult;

#[derive(Default)]
pub(super) struct Suspension {
    pub(super) is_suspended: bool,
    /// Number of attempts that will fail because of another suspension in progress.
    pub(super) refusals: u32,
}

impl Suspension {
    pub(super) fn begin(&mut self) -> Result<(), HResult> {
        if self.refusals > 0 || self.is_suspended {
            self.refusals = self.refusals.saturating_sub(1);
            return Err(HResult::SUSPENSION_IN_PROGRESS);
        }
        self.is_suspended = true;
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), HResult> {
        let was = std::mem::take(&mut self.is_suspended);
        if was { Ok(()) } else { Err(HResult::UNSUPPORTED_CALL_SEQUENCE) }
    }
}
