//! Records waits in the current recording.

use std::sync::atomic::{AtomicU32, Ordering};

use clr_profiler::FunctionId;
use clrscope_agent_base::clock::ticks;
use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::tick_scale::TickScale;
use clrscope_agent_stacks::stacks::CallStacks;
use clrscope_recording::events::{Kind, Tag};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::place::Place;
use super::waits::{Wait, Waits};
use crate::services::event_log::EventLog;
use crate::services::request_work::put_request;
use crate::services::stack_rate::StackRate;

/// Most paths that are taken in each tenth of a second, unless all are wanted. One takes at least 4
/// µs.
const PATHS: u64 = 250;

static CURRENT: PublishedState<Recorder> = PublishedState::nothing();
/// Recordings of awaits so far.
static RECORDINGS: AtomicU32 = AtomicU32::new(0);

/// Outcome of an await. The numbers are those in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The awaited operation returned its result.
    Result = 0,
    /// The awaited operation threw an exception.
    Failure = 1,
    /// The awaited operation was cancelled.
    Cancellation = 2,
}

/// Records waits in the current recording.
pub(super) struct Recorder {
    pub(super) log: &'static EventLog,
    pub(super) stacks: CallStacks,
    writer: &'static ProcessWriter,
    /// Converts ticks to nanoseconds.
    pub(super) scale: TickScale,
    /// Limit of the paths that are taken, unless all are wanted.
    rate: Option<StackRate>,
    /// Distinguishes the recording from others of the process.
    number: u32,
}

impl Recorder {
    /// Makes this recording the current one for the code of methods.
    pub(super) fn publish(
        log: &'static EventLog,
        stacks: CallStacks,
        writer: &'static ProcessWriter,
        exact: bool,
    ) -> &'static Self {
        let number = RECORDINGS.fetch_add(1, Ordering::Relaxed) + 1;
        let rate = (!exact).then(|| StackRate::new(PATHS));
        CURRENT.publish(Self { log, stacks, writer, scale: TickScale::new(), rate, number })
    }

    /// The current recording, for inserted code. `None` if there is none. Valid until the next stop
    /// of all threads.
    #[inline]
    pub(super) fn current() -> Option<&'static Self> {
        CURRENT.get()
    }

    /// Ends the current recording for the code of methods.
    pub(super) fn withdraw() {
        CURRENT.withdraw();
    }

    /// Number that distinguishes the recording from others of the process.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Whether the call path of a wait that ends now should be recorded.
    #[inline]
    pub(super) fn wants_path(&self, now: u64) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.admits(self.scale.moment(now, now).0))
    }

    /// The number of the stack of a method that resumes at a place, with its awaiters. Allocates,
    /// as callbacks about exceptions do, and does not query the runtime.
    pub(super) fn path(&self, place: &Place, this: usize) -> u32 {
        let (function, index) = place.function();
        // SAFETY: the function that was compiled last of the method, whose module stays loaded.
        let function = unsafe { FunctionId::from_raw(function) };
        self.stacks.number_of_resumed((index, place.il_offset), function, this)
    }

    /// Counts a wait for which no number was left.
    pub(super) fn drop_wait(&self) {
        self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns());
    }

    /// Records a wait that has ended, and frees its number.
    pub(super) fn ended(&self, waits: &Waits, number: u32, outcome: Outcome) {
        let Some(wait) = waits.known(number) else { return };
        if let Some(began) = wait.claim() {
            let (ended_ns, lasted_ns) = self.scale.moment(wait.ended.load(Ordering::Relaxed), began);
            let path = wait.path.load(Ordering::Relaxed);
            let stack = if path == 0 { self.stack_alone(wait) } else { path };
            let request = wait.request.load(Ordering::Relaxed);
            self.log.write_with(Some(ended_ns), Kind::AWAIT_ENDED, |encoder| {
                encoder.number(Tag::STACK_NODE, stack.into());
                encoder.number(Tag::DURATION, lasted_ns);
                if outcome != Outcome::Result {
                    encoder.number(Tag::OUTCOME, outcome as u64);
                }
                put_request(encoder, request);
            });
        }
        waits.give_back(number);
    }

    /// Records all waits that have not ended.
    pub(super) fn pending(&self, waits: &Waits) {
        let now = ticks();
        for wait in waits.all() {
            let stack = self.stack_alone(wait);
            let request = wait.request.load(Ordering::Relaxed);
            let Some(began) = wait.claim() else { continue };
            let (now_ns, lasted_ns) = self.scale.moment(now, began);
            self.log.write_with(Some(now_ns), Kind::AWAIT_PENDING, |encoder| {
                encoder.number(Tag::STACK_NODE, stack.into());
                encoder.number(Tag::DURATION, lasted_ns);
                put_request(encoder, request);
            });
        }
    }

    /// The number of the stack of a wait's method alone.
    fn stack_alone(&self, wait: &Wait) -> u32 {
        wait.place().map_or(0, |place| place.stack_in(self.number))
    }
}
