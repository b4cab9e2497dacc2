//! Room for the records of callers in the recording, and the addresses of new records.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_recording::layout::{chunk, instrument, probe_callers as layout};
use clrscope_recording::model::ProbeCaller;
use clrscope_recording::writer::{CallerCell, Chunk, EventStore, Keep};
use clrscope_agent_base::helper::Task;

use super::path::MOST_FRAMES;
use super::table::MOST_RECORDS;
use crate::services::context::Context;

/// Bytes of a chunk.
const CHUNK: usize = 64 << 10;
/// Bytes of all records.
const LIMIT: u64 = (MOST_RECORDS * layout::BYTES * CHUNK / (CHUNK - chunk::HEAD)) as u64;
/// Bytes that are backed in advance, so that no thread waits for a record.
const AHEAD: usize = 1 << 20;
/// Most records whose addresses wait for lookup: the new records of some milliseconds.
const MOST_WAITING: usize = 2048;

/// The records of callers in one recording.
pub(super) struct Records {
    store: EventStore,
    /// Held while a record is begun, and while the waiting records are taken; never while the
    /// runtime is queried.
    new: Mutex<New>,
}

/// Room for new records.
struct New {
    chunk: Option<Chunk>,
    /// Records whose addresses are to be looked up, up to a fixed capacity.
    waiting: Vec<Waiting>,
    /// Whether the records that were taken last are being looked up.
    under_way: bool,
}

/// Path of a call: the address at which the method continues, then the return addresses into its
/// callers.
pub(super) struct Way<A> {
    pub(super) addresses: A,
    /// Number of callers that are kept.
    pub(super) frames: usize,
    /// Whether the addresses include hidden callers, which no frame pointer leads to.
    pub(super) is_whole: bool,
}

/// A record whose addresses are to be looked up.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) cell: CallerCell,
    pub(super) time_ns: u64,
    /// Whether there are more callers, further out.
    pub(super) is_cut: bool,
    /// Whether the addresses include hidden callers, which no frame pointer leads to.
    pub(super) is_whole: bool,
    /// Number of callers that are kept.
    pub(super) frames: usize,
    length: usize,
    addresses: [usize; 1 + MOST_FRAMES],
}

impl Waiting {
    fn new(cell: CallerCell, time_ns: u64, way: Way<impl Iterator<Item = usize>>) -> Self {
        let mut addresses = [0; 1 + MOST_FRAMES];
        let (mut length, mut rest) = (0, way.addresses);
        for (place, address) in addresses.iter_mut().zip(rest.by_ref().take(1 + way.frames)) {
            *place = address;
            length += 1;
        }
        Self { cell, time_ns, is_cut: rest.next().is_some(), is_whole: way.is_whole, frames: way.frames, length, addresses }
    }

    /// The address at which the method continues, then the return addresses into its callers.
    pub(super) fn addresses(&self) -> &[usize] {
        self.addresses.get(..self.length).unwrap_or_default()
    }
}

impl Records {
    /// Creates the room, without records.
    ///
    /// # Errors
    /// A sentence for the user, when the file could not be made.
    pub(super) fn create(context: &Context) -> Result<Self, String> {
        let made = context.writer.create_slow_events(instrument::PROBE_CALLERS, LIMIT, Keep::First);
        let store = made.map_err(|error| format!("no memory for callers: {error}"))?;
        // At once, since the first call may come at once. A refusal is counted where a record finds
        // no place.
        let _ = store.keep_ahead_at_least(AHEAD);
        let waiting = Self::room_for_waiting();
        Ok(Self { store, new: Mutex::new(New { chunk: None, waiting, under_way: false }) })
    }

    /// An empty list for waiting records, with enough capacity that it never has to grow.
    pub(super) fn room_for_waiting() -> Vec<Waiting> {
        Vec::with_capacity(MOST_WAITING)
    }

    fn lock(&self) -> MutexGuard<'_, New> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a record, whose addresses are looked up soon. `None` if there is no room, or if
    /// `insert` finds no place for it. Safe in a hook.
    pub(super) fn begin(
        &self,
        record: &ProbeCaller,
        now: u64,
        way: Way<impl Iterator<Item = usize>>,
        insert: impl FnOnce(CallerCell) -> bool,
    ) -> Option<CallerCell> {
        let mut new = self.lock();
        if new.waiting.len() >= MOST_WAITING.min(new.waiting.capacity()) {
            return None;
        }
        let cell = new.chunk.and_then(|chunk| chunk.append_caller(record, now)).or_else(|| {
            new.chunk = self.store.allocate_chunk(0, CHUNK, now);
            new.chunk?.append_caller(record, now)
        })?;
        if !insert(cell) {
            return None;
        }
        new.waiting.push(Waiting::new(cell, now, way));
        Some(cell)
    }

    /// Moves the waiting records into `taken`, which must be empty. The caller reports with
    /// [`is_done`](Self::is_done) when they are looked up.
    pub(super) fn swap_waiting(&self, taken: &mut Vec<Waiting>) {
        let mut new = self.lock();
        std::mem::swap(&mut new.waiting, taken);
        new.under_way = true;
    }

    /// Call it when the records that [`swap_waiting`](Self::swap_waiting) took are looked up.
    pub(super) fn is_done(&self) {
        self.lock().under_way = false;
    }

    /// Whether no record waits for its addresses to be looked up.
    pub(super) fn is_settled(&self) -> bool {
        let new = self.lock();
        new.waiting.is_empty() && !new.under_way
    }

    /// Task of the helper thread for the room.
    pub(super) fn task(&'static self) -> Box<dyn Task> {
        Box::new(KeepAhead(self))
    }

    /// Call it when the recording is over. Calls that have not ended then add to private memory of
    /// the process.
    pub(super) fn outlive_recording(&self) {
        // SAFETY: no chunks are taken any more, since recording has stopped, and nothing reads
        // here.
        unsafe { self.store.segment().outlive_recording() };
    }

    /// In a forked child: makes the child's calls add to private memory instead of the recording.
    /// Async-signal-safe.
    pub(super) fn detach_in_child(&self) {
        self.store.segment().detach_in_child();
    }
}

struct KeepAhead(&'static Records);

impl Task for KeepAhead {
    fn tick(&mut self, _now_ns: u64) {
        // A refusal is counted where a record finds no place.
        let _ = self.0.store.keep_ahead_at_least(AHEAD);
    }

    fn write_out(&mut self) {
        // A failed write is tried again at the next round.
        let _ = self.0.store.segment().write_out();
    }
}
