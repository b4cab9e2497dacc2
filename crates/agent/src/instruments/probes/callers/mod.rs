//! Callers of probed methods: counts calls, failures and times by call path, on request.
//!
//! A probed method passes its frame. The frame pointers from there on lead to the wanted number of
//! return addresses, which are hashed into one number. A call is added, without a lock, to the
//! record of its thread and that number; the record lies in the recording. The runtime is not
//! queried. For a new number a thread of the agent's own looks up the code at the addresses.
//!
//! | module | what it holds |
//! |---|---|
//! | [`code`] | the inserted code that reports a call, and the functions that it calls |
//! | [`arch`] | the entry point that takes the frame pointer |
//! | [`find`] | the record of the callers, from the frame pointer |
//! | [`path`] | the return addresses on the stack |
//! | [`table`] | the table that leads to the record of a thread and path |
//! | [`records`] | room for the records in the recording, and the records whose addresses wait for lookup |
//! | [`look_up`] | the thread that looks up addresses |

mod arch;
mod code;
mod find;
mod look_up;
mod path;
mod records;
mod table;

use std::sync::atomic::{AtomicU64, Ordering};

use clr_profiler::internals::CurrentStack;
use clrscope_recording::model::{LossReason, ProbeCaller};
use clrscope_recording::writer::{MethodLanes, ProcessWriter, ThreadRecord, monotonic_ns};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::threads;

use crate::services::context::Context;

pub(super) use code::{CallerSignatures, edits, keep_record};
use look_up::LookUp;
use path::Call;
use records::{Records, Way};
use table::{Key, Table};

/// The callers of the current recording. Code of an earlier recording may still run, and writes to
/// no other recording.
static CURRENT: PublishedState<Callers> = PublishedState::nothing();
/// Recordings of callers so far.
static RECORDINGS: AtomicU64 = AtomicU64::new(0);

/// A method whose callers are recorded. Inserted code contains the address of this value, so it is
/// created once and never freed.
pub(super) struct CalledMethod {
    pub(super) number: u32,
    pub(super) lanes: MethodLanes,
    /// Number of the recording. The parts of the recording are dropped when it is over; the method
    /// is not.
    recording: u64,
}

/// Records the callers of probed methods in one recording.
pub(super) struct Callers {
    /// Distinguishes the recording from others of the process.
    recording: u64,
    writer: &'static ProcessWriter,
    start_ns: u64,
    /// Callers of a call that are kept.
    frames: usize,
    table: Table,
    records: Records,
    look_up: LookUp,
    /// Number of code unloads so far: other code may lie at the same addresses after an unload.
    unloads: AtomicU64,
}

impl Callers {
    /// Makes this recording the current one for the code of methods. `frames` is the number of
    /// callers that are kept of each call.
    ///
    /// # Errors
    /// A sentence for the user, when a file could not be made.
    pub(super) fn publish(context: &Context, frames: u32) -> Result<&'static Self, String> {
        Ok(CURRENT.publish(Self {
            recording: RECORDINGS.fetch_add(1, Ordering::Relaxed) + 1,
            writer: context.writer,
            start_ns: context.start_ns,
            frames: (frames as usize).clamp(1, path::MOST_FRAMES),
            table: Table::cleared(),
            records: Records::create(context)?,
            look_up: LookUp::new(context)?,
            unloads: AtomicU64::new(0),
        }))
    }

    /// Creates the data of a method whose callers are recorded under this number.
    pub(super) fn method(&self, number: u32, lanes: MethodLanes) -> &'static CalledMethod {
        Box::leak(Box::new(CalledMethod { number, lanes, recording: self.recording }))
    }

    /// Returns the callers of a recording, if it is the current one. Valid until the next stop of
    /// all threads, so only for hooks.
    #[inline]
    fn of_recording(recording: u64) -> Option<&'static Self> {
        CURRENT.get().filter(|current| current.recording == recording)
    }

    /// Address of the record of a method's callers, from the method's frame pointer and the address
    /// at which it continues. 0 if there is none; that is counted. For hooks.
    #[inline]
    fn record(&self, method: u32, frame: usize, goes_on_at: usize) -> usize {
        if let (Some(thread), Some(stack)) = (threads::known(), CurrentStack::here()) {
            let call = Call { stack, frame, goes_on_at };
            let path = call.path(self.frames, self.unloads.load(Ordering::Relaxed));
            match self.table.find(Key { thread: thread.serial(), path }) {
                Some(cell) if cell.gaps() == 0 => return cell.address(),
                Some(cell) => return self.whole(thread, method, call, (path, cell.gaps())),
                None => {}
            }
        }
        self.begin(method, frame, goes_on_at)
    }

    /// As [`record`](Self::record), for a path with callers that no frame pointer leads to.
    #[inline(never)]
    fn whole(&self, thread: ThreadRecord, method: u32, call: Call, (path, gaps): (u64, u32)) -> usize {
        let known = self.look_up.hidden();
        let path = call.whole_path(path, gaps, known);
        if let Some(cell) = self.table.find(Key { thread: thread.serial(), path }) {
            return cell.address();
        }
        self.begun(|| {
            let addresses = std::iter::once(call.goes_on_at).chain(call.all_callers(gaps, known));
            self.begin_for(thread, method, path, Way { addresses, frames: self.frames, is_whole: true })
        })
    }

    /// Begins the record of a new path, on a thread that may be new, too.
    #[cold]
    #[inline(never)]
    fn begin(&self, method: u32, frame: usize, goes_on_at: usize) -> usize {
        self.begun(|| {
            let (thread, stack) = threads::current().zip(CurrentStack::here())?;
            let call = Call { stack, frame, goes_on_at };
            let path = call.path(self.frames, self.unloads.load(Ordering::Relaxed));
            let addresses = std::iter::once(goes_on_at).chain(call.callers());
            self.begin_for(thread, method, path, Way { addresses, frames: self.frames, is_whole: false })
        })
    }

    /// Address of the record that `begin` begins; 0 if there is none, and that is counted.
    #[cold]
    fn begun(&self, begin: impl FnOnce() -> Option<usize>) -> usize {
        let mut begun = None;
        guard(|| begun = begin());
        begun.unwrap_or_else(|| {
            self.writer.state().lose(LossReason::CallerUnknown, 1, monotonic_ns());
            0
        })
    }

    fn begin_for(
        &self,
        thread: ThreadRecord,
        method: u32,
        path: u64,
        way: Way<impl Iterator<Item = usize>>,
    ) -> Option<usize> {
        let key = Key { thread: thread.serial(), path };
        let now = monotonic_ns();
        let time_ns = now.saturating_sub(self.start_ns);
        let record = ProbeCaller { method, thread: key.thread, path, time_ns, ..ProbeCaller::default() };
        let is_known = || self.table.find(key);
        let begin = || self.records.begin(&record, now, way, |cell| self.table.insert(key, cell));
        // A new thread has a number of its own, and no other thread begins records under that
        // number.
        is_known().or_else(begin).map(|cell| cell.address())
    }

    /// Call it when code has been unloaded, as other code may get its addresses.
    pub(super) fn code_unloaded(&self) {
        self.unloads.fetch_add(1, Ordering::AcqRel);
    }

    /// Call it when the recording begins: addresses are looked up from now on.
    pub(super) fn begins(&'static self) {
        self.look_up.start(&self.records);
    }

    /// Tasks of the helper thread.
    pub(super) fn tasks(&'static self) -> Vec<Box<dyn Task>> {
        vec![self.records.task(), self.look_up.recorded().task(), self.look_up.settle(&self.records)]
    }

    /// Call it when the recording is over. Calls that have not ended then add to private memory of
    /// the process.
    pub(super) fn outlive_recording(&self) {
        CURRENT.withdraw();
        self.records.outlive_recording();
    }

    /// In a forked child: releases all mappings. Async-signal-safe.
    pub(super) fn detach_in_child(&self) {
        CURRENT.withdraw();
        self.records.detach_in_child();
        self.look_up.recorded().detach_in_child();
    }
}
