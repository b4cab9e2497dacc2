//! Detaches the agent from a program at the end of an attached recording.
//!
//! 1. The helper thread sees that the recording is [over](Detach::is_abandoned), ends its tasks,
//!    [asks](Detach::request) the runtime to detach, and ends.
//! 2. The runtime waits until no callback runs any more, and then notifies the agent. Then
//!    [`detach_cleanup`](super::detach_cleanup) removes what is left: thread keys and the mappings
//!    of the recording.
//!
//! The library stays mapped: it is linked so that it can't be unloaded, and threads may still be in
//! its code. The next attach finds it again.
//!
//! The runtime never detaches a profiler that may have changed the code of methods. Then the agent
//! [goes dormant](GoDormant) instead.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

use clr_profiler::{Events, HResult, ProfilerInfo};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::helper::Detach;
use clrscope_agent_base::os::process::{niceness, runnable_per_processor};
use clrscope_recording::writer::{is_abandoned, monotonic_ns};

/// Nanoseconds between two checks whether the launcher lives.
const LOOK_NS: u64 = 500_000_000;
/// Milliseconds that the runtime first allows for callbacks to return, at least and at most. Where
/// one takes longer, the runtime checks again after twice that time, and then only after ten
/// minutes.
const EVACUATION_MS: RangeInclusive<u32> = 500..=8_000;
/// Longest wait for callbacks that were running when the recording ended. On a busy machine the
/// first callback, about all loaded modules, takes seconds in a program that gets a hundredth of a
/// processor.
const LONGEST_CALLBACK_NS: u64 = 60_000_000_000;
/// Additional milliseconds for each thread that waits for the same processor: a thread may have to
/// wait for its time slice in the middle of a callback.
const TURN_MS: u32 = 20;
/// Factor by which a program's share of a processor shrinks for each step of its niceness.
const FOR_NICENESS: f64 = 1.25;

/// Makes the agent dormant, if the runtime does not detach it. Returns whether the agent is
/// dormant.
pub(crate) type GoDormant = Box<dyn Fn() -> bool + Send + Sync>;

/// Releases the agent's handles of the runtime. It is called when no callback is running and the
/// runtime can still be asked.
pub(crate) type ReleaseHandles = Box<dyn Fn() + Send + Sync>;

/// Detaches the agent from a program that it was attached to.
pub(crate) struct Detachment {
    folder: Option<PathBuf>,
    info: ProfilerInfo,
    next_look: AtomicU64,
    /// Time at which the agent first wanted to detach.
    requested_ns: OnceLock<u64>,
    /// The runtime refused the agent, so there is nothing to detach.
    was_refused: AtomicBool,
    release_handles: ReleaseHandles,
    go_dormant: GoDormant,
    /// Reports once why the runtime does not detach the agent.
    reported: Once,
}

impl Detachment {
    /// `folder` is the folder of a recording that a launcher holds.
    pub(crate) fn new(
        folder: Option<PathBuf>,
        info: &ProfilerInfo,
        release_handles: ReleaseHandles,
        go_dormant: GoDormant,
    ) -> Self {
        Self {
            folder,
            info: info.clone(),
            next_look: AtomicU64::new(0),
            requested_ns: OnceLock::new(),
            was_refused: AtomicBool::new(false),
            release_handles,
            go_dormant,
            reported: Once::new(),
        }
    }
}

impl Detach for Detachment {
    fn is_abandoned(&self, now_ns: u64) -> bool {
        if now_ns < self.next_look.load(Ordering::Relaxed) {
            return false;
        }
        self.next_look.store(now_ns + LOOK_NS, Ordering::Relaxed);
        self.folder.as_deref().is_some_and(is_abandoned)
    }

    fn was_refused(&self) {
        self.was_refused.store(true, Ordering::Release);
    }

    fn request(&self) -> bool {
        if self.was_refused.load(Ordering::Acquire) {
            return true;
        }
        // Few callbacks should be running when the runtime checks. If the runtime refuses this, it
        // waits for the callbacks anyway.
        let _ = self.info.set_events(Events::NONE);
        // The runtime checks for callbacks twice, and then only after ten minutes.
        let now_ns = monotonic_ns();
        let wanted_ns = *self.requested_ns.get_or_init(|| now_ns);
        if !may_request(self.info.callbacks_under_way(), wanted_ns, now_ns) {
            return false;
        }
        (self.release_handles)();
        match self.info.request_detach(evacuation_ms(runnable_per_processor(), niceness())) {
            Ok(()) => true,
            Err(error) if error.hresult() == HResult::PROFILER_DETACHING => true,
            Err(error) if error.hresult() == HResult::IRREVERSIBLE_INSTRUMENTATION => (self.go_dormant)(),
            Err(error) => {
                self.reported.call_once(|| log(Level::Warn, || format!("the runtime does not let go: {error}")));
                false
            }
        }
    }
}

/// Whether the agent may ask the runtime to detach now: when no callback is running, or when
/// callbacks have been running since `wanted_ns` for so long that the agent should not wait longer.
fn may_request(under_way: usize, wanted_ns: u64, now_ns: u64) -> bool {
    under_way == 0 || now_ns >= wanted_ns + LONGEST_CALLBACK_NS
}

/// Milliseconds that a callback may take where this many threads compete for each processor.
fn evacuation_ms(runnable: u32, niceness: i32) -> u32 {
    let turns_ms = runnable.saturating_mul(TURN_MS);
    let longest_ms = (f64::from(turns_ms) * FOR_NICENESS.powi(niceness.max(0))) as u32;
    longest_ms.clamp(*EVACUATION_MS.start(), *EVACUATION_MS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen once on a busy machine: half a minute after the launcher was killed, the agent was
    /// still in a program of niceness 10.
    #[test]
    fn programs_that_get_little_of_a_busy_processor_have_longer_for_their_callbacks() {
        assert_eq!((evacuation_ms(1, 0), evacuation_ms(1, 19), evacuation_ms(40, -5)), (500, 1_387, 800));
        assert_eq!((evacuation_ms(9, 10), evacuation_ms(9, 19), evacuation_ms(u32::MAX, 0)), (1_676, 8_000, 8_000));
    }

    /// The agent once asked the runtime during the attach callback, which takes long on a busy
    /// machine, and the runtime checked again only after ten minutes.
    #[test]
    fn the_runtime_is_asked_when_no_callback_is_under_way() {
        assert!(may_request(0, 7, 7) && !may_request(1, 7, 7) && !may_request(2, 7, LONGEST_CALLBACK_NS));
        assert!(
            may_request(1, 7, 7 + LONGEST_CALLBACK_NS),
            "a callback that waits for something the program never does"
        );
    }
}
