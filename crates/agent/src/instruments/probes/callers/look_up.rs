//! The thread that looks up what code lies at the addresses of new paths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clr_profiler::{OwnThread, ProfilerInfo};
use clrscope_recording::model::StackFrame;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::records::{Records, Waiting};
use crate::services::code::{CodeMap, Place};
use crate::services::context::Context;
use crate::services::helper::Task;
use crate::services::stacks::table::RecordedStacks;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The thread's state.
pub(super) struct LookUp {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    recorded: &'static RecordedStacks,
    /// The map of code, until the thread takes it.
    map: Mutex<Option<CodeMap>>,
    is_over: AtomicBool,
}

impl LookUp {
    /// Without a thread so far.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(super) fn new(context: &Context) -> Result<Self, String> {
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            recorded: context.stacks.open(context.writer, &context.helper)?,
            map: Mutex::new(Some(context.code_map())),
            is_over: AtomicBool::new(false),
        })
    }

    /// The recording's stack table.
    pub(super) fn recorded(&self) -> &'static RecordedStacks {
        self.recorded
    }

    /// Starts the thread.
    pub(super) fn start(&'static self, records: &'static Records) {
        let Some(mut map) = self.map.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let started = OwnThread::start(&self.info, "clrscope-caller", move |thread| {
            let mut taken = Records::room_for_waiting();
            loop {
                let goes_on = thread.sleep(PAUSE);
                self.look_up(&mut map, records, &mut taken);
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

    fn look_up(&self, map: &mut CodeMap, records: &Records, taken: &mut Vec<Waiting>) {
        records.take(taken);
        if !taken.is_empty() {
            map.update();
            let mut frames = Vec::new();
            for waiting in taken.drain(..) {
                frames.clear();
                frames_of(map, &waiting, &mut frames);
                waiting.cell.set_stack(self.recorded.number_of(&frames, waiting.is_cut));
            }
        }
        records.is_done();
    }

    /// Task of the helper thread that lets recording stop only when no record waits.
    pub(super) fn settle(&'static self, records: &'static Records) -> Box<dyn Task> {
        Box::new(Settle { look_up: self, records })
    }
}

/// Beginning of the names of methods that the runtime makes to get from one method to another: for delegates, for native code.
const STUB: &str = "DynamicClass::IL_STUB";

/// The frames of a record: the probed method, then its callers without native code and the runtime's stubs. Where there is nothing else,
/// the innermost native code, or a stub.
fn frames_of(map: &mut CodeMap, waiting: &Waiting, frames: &mut Vec<StackFrame>) {
    let (mut native, mut stub, mut took_over) = (None, None, None);
    for (nth, &address) in waiting.addresses().iter().enumerate() {
        let place = map.place_of_call(address, waiting.time_ns);
        let frame = map.frame(&place, address, true);
        match &place {
            // A body that took over a running frame has that beneath its own, of the same method.
            Place::Method(_) if took_over.is_some() && took_over == function(frame) => took_over = None,
            Place::Method(body) if nth > 0 && map.name(body).starts_with(STUB) => stub = stub.or(Some(frame)),
            Place::Method(body) => {
                frames.push(frame);
                took_over = function(frame).filter(|_| body.took_over());
            }
            _ if nth == 0 => frames.push(frame),
            Place::Native(..) => native = native.or(Some(frame)),
            Place::Stub | Place::Nowhere => stub = stub.or(Some(frame)),
        }
    }
    if frames.len() == 1 {
        frames.extend(native.or(stub));
    }
}

fn function(frame: StackFrame) -> Option<u32> {
    match frame {
        StackFrame::Method { function, .. } => Some(function),
        _ => None,
    }
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
