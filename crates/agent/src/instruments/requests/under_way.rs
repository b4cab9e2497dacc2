//! Requests under way, by the numbers that the framework's objects keep of them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use clrscope_agent_base::memory::PublishedState;

use super::traces::TraceNumbers;
use crate::services::numbers::{Numbered, Numbers};

/// A request under way.
#[derive(Debug)]
pub(super) struct PendingRequest {
    /// Number of the recording that records it; 0 of one that is no longer recorded.
    recording: AtomicU32,
    /// Number of its name in that recording.
    name: AtomicU32,
    /// Ticks when it began; 0 of one that began before the recording.
    began: AtomicU64,
    trace: [AtomicU64; 3],
    id: AtomicU64,
}

/// What is known of a request at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RequestStart {
    pub(super) name: u32,
    /// Ticks; `None` where it began before the recording.
    pub(super) ticks: Option<u64>,
    pub(super) trace: TraceNumbers,
    /// Id in the process; 0 of one that has none.
    pub(super) id: u64,
}

impl PendingRequest {
    /// The request is recorded from now on.
    pub(super) fn begin(&self, recording: u32, start: RequestStart) {
        self.name.store(start.name, Ordering::Relaxed);
        self.began.store(start.ticks.map_or(0, |ticks| ticks.max(1)), Ordering::Relaxed);
        self.trace.iter().zip(start.trace).for_each(|(place, number)| place.store(number, Ordering::Relaxed));
        self.id.store(start.id, Ordering::Relaxed);
        self.recording.store(recording, Ordering::Release);
    }

    /// What a recording knows of it, for the caller that records its end; later callers get `None`.
    pub(super) fn claim(&self, recording: u32) -> Option<RequestStart> {
        self.recording.compare_exchange(recording, 0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let began = self.began.load(Ordering::Relaxed);
        let trace = self.trace.each_ref().map(|number| number.load(Ordering::Relaxed));
        let id = self.id.load(Ordering::Relaxed);
        Some(RequestStart {
            name: self.name.load(Ordering::Relaxed),
            ticks: Some(began).filter(|began| *began != 0),
            trace,
            id,
        })
    }
}

// SAFETY: zeros are a request that is not recorded.
unsafe impl Numbered for PendingRequest {}

/// Returns an id that no other request of the process has.
pub(super) fn next_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(0);
    IDS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The requests of the process.
pub(super) type Requests = Numbers<PendingRequest>;

static REQUESTS: PublishedState<Requests> = PublishedState::nothing();
/// Only one table is made.
static MADE: Mutex<()> = Mutex::new(());

/// Makes the table of the process, unless it is there; `None` where there is no address space.
pub(super) fn open() -> Option<&'static Requests> {
    let _alone = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    of_process().or_else(|| Some(REQUESTS.publish_for_good(Requests::map()?)))
}

/// The table of the process, once it is made.
#[inline]
pub(super) fn of_process() -> Option<&'static Requests> {
    REQUESTS.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_claims_a_request_first_records_it_and_only_its_own_recording_does() {
        let requests = Requests::map().expect("address space");
        let request = requests.take_number().and_then(|number| requests.known(number)).expect("a request");
        let start = RequestStart { name: 3, ticks: Some(9), trace: [1, 2, 3], id: 5 };
        request.begin(1, start);
        assert_eq!([request.claim(2), request.claim(1), request.claim(1)], [None, Some(start), None]);
        let before = RequestStart { name: 4, ..RequestStart::default() };
        request.begin(2, before);
        assert_eq!(request.claim(2), Some(before));
    }
}
