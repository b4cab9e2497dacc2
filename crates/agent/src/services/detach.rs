//! Detaching from a program at the end of an attached recording.
//!
//! 1. The helper thread sees that the recording is [over](Detach::is_abandoned), ends what it
//!    does, [asks](Detach::request) the runtime to detach, and ends.
//! 2. The runtime waits until no callback runs any more and says so. Then
//!    [`detach_cleanup`](super::detach_cleanup) takes away what is left: thread keys and the
//!    mappings of the recording.
//!
//! The library stays mapped, since it is linked so and since threads may be in its code; the next
//! attach finds it again.
//!
//! The runtime never detaches a profiler that may have given methods other code. Then the agent
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

/// Between two looks whether the launcher lives.
const LOOK_NS: u64 = 500_000_000;
/// Milliseconds that the runtime lets callbacks take at first, at least and at most. Where one
/// takes longer the runtime looks again after twice that time, and then after ten minutes only.
const EVACUATION_MS: RangeInclusive<u32> = 500..=8_000;
/// Longest wait for callbacks that were under way when the recording ended: on a busy machine the
/// first one, about all modules that are loaded, takes seconds of a program that gets a hundredth
/// of a processor.
const LONGEST_CALLBACK_NS: u64 = 60_000_000_000;
/// Milliseconds more for each thread that waits for the same processor: a thread may have to wait
/// for its turn in the middle of a callback.
const TURN_MS: u32 = 20;
/// So many times less of a processor has a program for each step of its niceness.
const FOR_NICENESS: f64 = 1.25;

/// Makes the agent dormant where the runtime does not detach it. Returns whether it is dormant.
pub(crate) type GoDormant = Box<dyn Fn() -> bool + Send + Sync>;

/// Gives back what the agent holds of the runtime. It is called when no callback is under way and
/// the runtime can still be asked.
pub(crate) type ReleaseHandles = Box<dyn Fn() + Send + Sync>;

/// The detaching of the agent from a program that it was attached to.
pub(crate) struct Detachment {
    folder: Option<PathBuf>,
    info: ProfilerInfo,
    next_look: AtomicU64,
    /// Time at which the agent first wanted to detach.
    requested_ns: OnceLock<u64>,
    /// The runtime never took the agent, and has nothing to let go of.
    was_refused: AtomicBool,
    release_handles: ReleaseHandles,
    go_dormant: GoDormant,
    /// Reports once why the runtime does not detach the agent.
    reported: Once,
}

impl Detachment {
    /// `folder` is that of a recording which a launcher holds.
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
        // So that few callbacks are under way when the runtime looks. Where that is refused they
        // are waited for all the same.
        let _ = self.info.set_events(Events::NONE);
        // The runtime looks for callbacks twice, and then after ten minutes only.
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

/// Whether the runtime may be asked now, given how many callbacks are under way: none, or there
/// have been some since `requested_ns`, and no caller should wait longer.
fn may_request(under_way: usize, wanted_ns: u64, now_ns: u64) -> bool {
    under_way == 0 || now_ns >= wanted_ns + LONGEST_CALLBACK_NS
}

/// Milliseconds that a callback may take where so many threads want each processor.
fn evacuation_ms(runnable: u32, niceness: i32) -> u32 {
    let turns_ms = runnable.saturating_mul(TURN_MS);
    let longest_ms = (f64::from(turns_ms) * FOR_NICENESS.powi(niceness.max(0))) as u32;
    longest_ms.clamp(*EVACUATION_MS.start(), *EVACUATION_MS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen once on a busy machine: half a minute after the launcher was killed the agent was still
    /// in a program of niceness 10.
    #[test]
    fn programs_that_get_little_of_a_busy_processor_have_longer_for_their_callbacks() {
        assert_eq!((evacuation_ms(1, 0), evacuation_ms(1, 19), evacuation_ms(40, -5)), (500, 1_387, 800));
        assert_eq!((evacuation_ms(9, 10), evacuation_ms(9, 19), evacuation_ms(u32::MAX, 0)), (1_676, 8_000, 8_000));
    }

    /// The runtime was asked while it told of the attach, which takes long on a busy machine, and
    /// looked again after ten minutes only.
    #[test]
    fn the_runtime_is_asked_when_no_callback_is_under_way() {
        assert!(may_request(0, 7, 7) && !may_request(1, 7, 7) && !may_request(2, 7, LONGEST_CALLBACK_NS));
        assert!(
            may_request(1, 7, 7 + LONGEST_CALLBACK_NS),
            "a callback that waits for something the program never does"
        );
    }
}
