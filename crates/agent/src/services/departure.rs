//! The end of an attached recording: the runtime is asked to let go of the agent, and nothing stays of it but its code.
//!
//! 1. The helper thread sees that the recording is [over](Departure::is_abandoned), ends what it does, [asks](Departure::ask) the
//!    runtime, and ends.
//! 2. The runtime waits until no callback runs any more and says so. Then [`leftovers`](super::leftovers) takes away what is left: thread keys and the
//!    mappings of the recording.
//!
//! The library stays mapped, since it is linked so and since threads may be in its code; the next attach finds it again.
//!
//! The runtime never lets a profiler go that might have given methods other code. Then the agent [sleeps](Sleep) instead.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

use clr_profiler::{Events, HResult, ProfilerInfo};
use clrscope_recording::writer::{is_abandoned, monotonic_ns};

use super::developer_log::{Level, log};
use crate::os::process::{niceness, runnable_per_processor};

/// Between two looks whether the launcher lives.
const LOOK_NS: u64 = 500_000_000;
/// Milliseconds that the runtime lets callbacks take at first, at least and at most. Where one takes longer the runtime looks again
/// after twice that time, and then after ten minutes only.
const EVACUATION_MS: RangeInclusive<u32> = 500..=8_000;
/// Longest wait for callbacks that were under way when the recording ended: on a busy machine the first one, about all modules that
/// are loaded, takes seconds of a program that gets a hundredth of a processor.
const LONGEST_CALLBACK_NS: u64 = 60_000_000_000;
/// Milliseconds more for each thread that waits for the same processor: a thread may have to wait for its turn in the middle of a callback.
const TURN_MS: u32 = 20;
/// So many times less of a processor has a program for each step of its niceness.
const FOR_NICENESS: f64 = 1.25;

/// Way out where the runtime does not let the agent go; whether the agent sleeps from now on.
pub(crate) type Sleep = Box<dyn Fn() -> bool + Send + Sync>;

/// Gives back what the agent holds of the runtime: called once no callback is under way, while the runtime can still be asked.
pub(crate) type LetGo = Box<dyn Fn() + Send + Sync>;

/// The way out of a program that was attached to.
pub(crate) struct Departure {
    folder: Option<PathBuf>,
    info: ProfilerInfo,
    next_look: AtomicU64,
    /// Time since which the agent wants to leave.
    wanted_ns: OnceLock<u64>,
    /// The runtime never took the agent, and has nothing to let go of.
    was_refused: AtomicBool,
    let_go: LetGo,
    sleep: Sleep,
    /// Told once why the runtime does not let go.
    told: Once,
}

impl Departure {
    /// `folder` is that of a recording which a launcher holds.
    pub(crate) fn new(folder: Option<PathBuf>, info: &ProfilerInfo, let_go: LetGo, sleep: Sleep) -> Self {
        Self {
            folder,
            info: info.clone(),
            next_look: AtomicU64::new(0),
            wanted_ns: OnceLock::new(),
            was_refused: AtomicBool::new(false),
            let_go,
            sleep,
            told: Once::new(),
        }
    }

    /// Whether nobody waits for the recording any more. Looks into the file system now and then, so for the helper thread.
    pub(crate) fn is_abandoned(&self, now_ns: u64) -> bool {
        if now_ns < self.next_look.load(Ordering::Relaxed) {
            return false;
        }
        self.next_look.store(now_ns + LOOK_NS, Ordering::Relaxed);
        self.folder.as_deref().is_some_and(is_abandoned)
    }

    /// The runtime has refused the setup.
    pub(crate) fn was_refused(&self) {
        self.was_refused.store(true, Ordering::Release);
    }

    /// Asks the runtime to let go of the agent; whether it will, or has, or the agent sleeps.
    pub(crate) fn ask(&self) -> bool {
        if self.was_refused.load(Ordering::Acquire) {
            return true;
        }
        // So that few callbacks are under way when the runtime looks. Where that is refused they are waited for all the same.
        let _ = self.info.set_events(Events::NONE);
        // The runtime looks for callbacks twice, and then after ten minutes only.
        let now_ns = monotonic_ns();
        let wanted_ns = *self.wanted_ns.get_or_init(|| now_ns);
        if !may_ask(self.info.callbacks_under_way(), wanted_ns, now_ns) {
            return false;
        }
        (self.let_go)();
        match self.info.request_detach(evacuation_ms(runnable_per_processor(), niceness())) {
            Ok(()) => true,
            Err(error) if error.hresult() == HResult::PROFILER_DETACHING => true,
            Err(error) if error.hresult() == HResult::IRREVERSIBLE_INSTRUMENTATION => (self.sleep)(),
            Err(error) => {
                self.told.call_once(|| log(Level::Warn, || format!("the runtime does not let go: {error}")));
                false
            }
        }
    }
}

/// Whether the runtime may be asked now, given how many callbacks are under way: none, or there have been some since `wanted_ns`, and nobody
/// should wait for longer.
fn may_ask(under_way: usize, wanted_ns: u64, now_ns: u64) -> bool {
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

    /// Seen once on a busy machine: half a minute after the launcher was killed the agent was still in a program of niceness 10.
    #[test]
    fn programs_that_get_little_of_a_busy_processor_have_longer_for_their_callbacks() {
        assert_eq!((evacuation_ms(1, 0), evacuation_ms(1, 19), evacuation_ms(40, -5)), (500, 1_387, 800));
        assert_eq!((evacuation_ms(9, 10), evacuation_ms(9, 19), evacuation_ms(u32::MAX, 0)), (1_676, 8_000, 8_000));
    }

    /// The runtime was asked while it told of the attach, which takes long on a busy machine, and looked again after ten minutes only.
    #[test]
    fn the_runtime_is_asked_when_no_callback_is_under_way() {
        assert!(may_ask(0, 7, 7) && !may_ask(1, 7, 7) && !may_ask(2, 7, LONGEST_CALLBACK_NS));
        assert!(may_ask(1, 7, 7 + LONGEST_CALLBACK_NS), "a callback that waits for something the program never does");
    }
}
