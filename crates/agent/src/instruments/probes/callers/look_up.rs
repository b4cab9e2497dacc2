//! The thread that looks up the code at the addresses of new paths.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clr_profiler::{OwnThread, ProfilerInfo};
use clrscope_recording::model::StackFrame;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};
use clrscope_agent_base::helper::Task;
use clrscope_agent_stacks::code::{CodeMap, Place};
use clrscope_agent_stacks::stacks::hidden_returns::{CallerReturn, HiddenReturns};
use clrscope_agent_stacks::stacks::table::RecordedStacks;

use super::records::{Records, Waiting};
use crate::services::context::Context;

/// Pause between two rounds of lookups.
const PAUSE: Duration = Duration::from_millis(5);

/// The state of the thread that looks up addresses.
pub(super) struct LookUp {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    recorded: &'static RecordedStacks,
    /// The map of code, until the thread takes it.
    map: Mutex<Option<CodeMap>>,
    hidden: HiddenReturns,
    is_over: AtomicBool,
}

impl LookUp {
    /// Creates the state, without a thread.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(super) fn new(context: &Context) -> Result<Self, String> {
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            recorded: context.stacks.open(context.writer, &context.helper)?,
            map: Mutex::new(Some(context.code_map())),
            hidden: HiddenReturns::default(),
            is_over: AtomicBool::new(false),
        })
    }

    /// The recording's stack table.
    pub(super) fn recorded(&self) -> &'static RecordedStacks {
        self.recorded
    }

    /// The known callers that no frame pointer leads to.
    #[inline]
    pub(super) fn hidden(&self) -> &HiddenReturns {
        &self.hidden
    }

    /// Starts the thread that looks up addresses.
    pub(super) fn start(&'static self, records: &'static Records) {
        let Some(mut map) = self.map.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let started = OwnThread::start(&self.info, "clrscope-caller", move |thread| {
            let (mut taken, mut known) = (Records::room_for_waiting(), KnownSince::new());
            loop {
                let goes_on = thread.sleep(PAUSE);
                self.look_up((&mut map, &mut known), records, &mut taken);
                if !goes_on {
                    break;
                }
            }
            self.is_over.store(true, Ordering::Release);
        });
        if let Err(error) = started {
            self.is_over.store(true, Ordering::Release);
            self.writer.note(monotonic_ns(), &format!("probes: callers have no names: {error}"));
        }
    }

    fn look_up(&self, (map, known): (&mut CodeMap, &mut KnownSince), records: &Records, taken: &mut Vec<Waiting>) {
        records.swap_waiting(taken);
        if !taken.is_empty() {
            if map.update() {
                self.hidden.forget();
                known.clear();
            }
            let mut frames = Vec::new();
            for waiting in taken.drain(..) {
                frames.clear();
                let hidden = (&self.hidden, &mut *known);
                let (gaps, is_cut) = map.look(|map| frames_of(map, &waiting, hidden, &mut frames));
                waiting.cell.set_stack(self.recorded.number_of(&frames, waiting.is_cut || is_cut));
                waiting.cell.set_gaps(gaps);
            }
        }
        records.is_done();
    }

    /// Task of the helper thread. It lets recording stop only when no record waits for lookup.
    pub(super) fn settle(&'static self, records: &'static Records) -> Box<dyn Task> {
        Box::new(Settle { look_up: self, records })
    }
}

/// Beginning of the names of stub methods, which the runtime makes for delegates and native calls.
const STUB: &str = "DynamicClass::IL_STUB";

/// Return addresses that hide others, each with the time from which calls know this.
type KnownSince = HashMap<usize, u64>;

/// The frames of a record: the probed method, then its callers without native code and the
/// runtime's stubs. Where there are no other callers, the innermost native code, or a stub. The
/// callers end at the first one that hides, or may hide, callers that the walk did not know.
/// Returns a bit for each frame-pointer address that hides others, and whether the callers ended
/// early. Addresses behind the last kept caller are ignored.
fn frames_of(
    map: &mut CodeMap,
    waiting: &Waiting,
    (hidden, known): (&HiddenReturns, &mut KnownSince),
    frames: &mut Vec<StackFrame>,
) -> (u32, bool) {
    let (mut native, mut stub, mut found, mut is_cut) = (None, None, 0, false);
    for (nth, &address) in waiting.addresses().iter().enumerate() {
        let place = map.place_of_call(address, waiting.time_ns);
        let frame = map.frame(&place, address, true);
        match &place {
            _ if is_cut => {}
            Place::Method(body) if nth > 0 && map.name(body).is_some_and(|name| name.starts_with(STUB)) => stub = stub.or(Some(frame)),
            Place::Method(_) => frames.push(frame),
            _ if nth == 0 => frames.push(frame),
            Place::Native(..) => native = native.or(Some(frame)),
            Place::Stub | Place::Nowhere => stub = stub.or(Some(frame)),
        }
        if let Place::Method(body) = &place
            && (1..waiting.frames).contains(&nth)
        {
            match map.behind(body, address) {
                CallerReturn::Nothing => {}
                behind @ (CallerReturn::Hidden(_) | CallerReturn::Seen(_)) => {
                    let since_ns = || if hidden.note(address, behind) { monotonic_ns() } else { u64::MAX };
                    let since_ns = *known.entry(address).or_insert_with(since_ns);
                    found |= 1_u32.checked_shl(nth as u32 - 1).unwrap_or(0);
                    is_cut |= !waiting.is_whole || since_ns > waiting.time_ns;
                }
                CallerReturn::Unsure => is_cut = true,
            }
        }
    }
    if frames.len() == 1 {
        frames.extend(native.or(stub));
    }
    (if waiting.is_whole { 0 } else { found }, is_cut)
}

struct Settle {
    look_up: &'static LookUp,
    records: &'static Records,
}

impl Task for Settle {
    fn stop(&mut self) -> bool {
        self.look_up.is_over.load(Ordering::Acquire) || self.records.is_settled()
    }
}
