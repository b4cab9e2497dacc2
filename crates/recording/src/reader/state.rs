//! The state of a process: its clocks, whether it is still running, and its losses.

use crate::layout::{state, u32_at, u64_at};
use crate::model::{Loss, LossReason};

/// The clocks and the status of a process.
pub(super) struct Clocks {
    pub(super) mono_start: u64,
    pub(super) mono_last: u64,
    pub(super) unix_start: u64,
    pub(super) ticks_start: u64,
    pub(super) ns_per_tick: f64,
    pub(super) cpu_ns: u64,
    pub(super) pid: u32,
    pub(super) ended: bool,
    pub(super) stopped: bool,
    /// Length of the period before `mono_last` whose events are kept, in nanoseconds; `None` if all
    /// events are kept.
    pub(super) kept_ns: Option<u64>,
}

impl Clocks {
    pub(super) fn read(state: &[u8]) -> Self {
        let (mono_start, mono_last) = (u64_at(state, state::MONO_START), u64_at(state, state::MONO_LAST));
        let ticks_start = u64_at(state, state::TICKS_START);
        let ticks = u64_at(state, state::TICKS_LAST).saturating_sub(ticks_start);
        let elapsed = mono_last.saturating_sub(mono_start);
        Self {
            mono_start,
            mono_last: mono_last.max(mono_start),
            unix_start: u64_at(state, state::UNIX_START),
            ticks_start,
            ns_per_tick: if ticks == 0 { 0.0 } else { elapsed as f64 / ticks as f64 },
            cpu_ns: u64_at(state, state::CPU),
            pid: u32_at(state, state::PID),
            ended: u32_at(state, state::FLAGS) & state::FLAG_ENDED != 0,
            stopped: u32_at(state, state::STOPPED) != 0,
            kept_ns: Some(u64_at(state, state::KEPT)).filter(|&ns| ns > 0),
        }
    }
}

/// Losses, sorted by reason. `mono_start` is the time when the process began.
pub(super) fn losses(state: &[u8], mono_start: u64) -> Vec<Loss> {
    let of = |reason: LossReason| {
        let at = state::LOSSES + reason as usize * state::LOSS_BYTES;
        let since_start = |at| u64_at(state, at).saturating_sub(mono_start);
        Loss::new(reason, u64_at(state, at), since_start(at + 8), since_start(at + 16))
    };
    LossReason::ALL.into_iter().map(of).filter(|loss| loss.count > 0).collect()
}
