//! Pending requests. The framework's objects keep the numbers by which they are found.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use clrscope_agent_base::memory::PublishedState;

use super::traces::TraceNumbers;
use crate::services::numbers::{Numbered, Numbers};

/// A pending request.
#[derive(Debug)]
pub(super) struct PendingRequest {
    /// Number of the recording that records the request; 0 if it is no longer recorded.
    recording: AtomicU32,
    /// Number of the request's name in that recording.
    name: AtomicU32,
    /// Ticks when the request began; 0 if it began before the recording.
    began: AtomicU64,
    trace: [AtomicU64; 3],
    id: AtomicU64,
    /// Number in the copies of the recording that were made while the request was pending; 0 if it
    /// is in none.
    copied: AtomicU32,
}

/// The data of a request that are known when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RequestStart {
    pub(super) name: u32,
    /// Ticks when the request began; `None` if it began before the recording.
    pub(super) ticks: Option<u64>,
    pub(super) trace: TraceNumbers,
    /// Id of the request in the process; 0 for none.
    pub(super) id: u64,
    /// Number of the request in copies of the recording; 0 if no copy contains it.
    pub(super) copied: u32,
}

impl PendingRequest {
    /// Records the request from now on.
    pub(super) fn begin(&self, recording: u32, start: RequestStart) {
        self.name.store(start.name, Ordering::Relaxed);
        self.began.store(start.ticks.map_or(0, |ticks| ticks.max(1)), Ordering::Relaxed);
        self.trace.iter().zip(start.trace).for_each(|(place, number)| place.store(number, Ordering::Relaxed));
        self.id.store(start.id, Ordering::Relaxed);
        self.copied.store(0, Ordering::Relaxed);
        self.recording.store(recording, Ordering::Release);
    }

    /// The request's data in a recording. Only the first caller gets them, and records the end;
    /// later callers get `None`.
    pub(super) fn claim(&self, recording: u32) -> Option<RequestStart> {
        self.recording.compare_exchange(recording, 0, Ordering::SeqCst, Ordering::Relaxed).ok()?;
        Some(self.known())
    }

    /// The data of a request that is still pending in a recording. They include its number in
    /// copies, which is new if it had none. `None` if the request ends in the meantime, since the
    /// record of its end may then lack the number.
    pub(super) fn copy(&self, recording: u32, new_number: impl FnOnce() -> u32) -> Option<RequestStart> {
        let is_recorded = || self.recording.load(Ordering::SeqCst) == recording;
        let key = || (self.began.load(Ordering::Acquire), self.id.load(Ordering::Acquire));
        if !is_recorded() {
            return None;
        }
        let before = key();
        if self.copied.load(Ordering::Relaxed) == 0 {
            self.copied.store(new_number(), Ordering::Relaxed);
        }
        // Either the end of the request sees the number, or this code sees the end.
        fence(Ordering::SeqCst);
        let known = self.known();
        (is_recorded() && key() == before).then_some(known)
    }

    fn known(&self) -> RequestStart {
        let began = self.began.load(Ordering::Relaxed);
        RequestStart {
            name: self.name.load(Ordering::Relaxed),
            ticks: Some(began).filter(|began| *began != 0),
            trace: self.trace.each_ref().map(|number| number.load(Ordering::Relaxed)),
            id: self.id.load(Ordering::Relaxed),
            copied: self.copied.load(Ordering::Relaxed),
        }
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

/// Returns the table of the process, and creates it if necessary; `None` if the process has no
/// address space left.
pub(super) fn open() -> Option<&'static Requests> {
    let _alone = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    of_process().or_else(|| Some(REQUESTS.publish_for_good(Requests::map()?)))
}

/// The table of the process; `None` if it was not created yet.
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
        let start = RequestStart { name: 3, ticks: Some(9), trace: [1, 2, 3], id: 5, copied: 0 };
        request.begin(1, start);
        assert_eq!([request.claim(2), request.claim(1), request.claim(1)], [None, Some(start), None]);
        let before = RequestStart { name: 4, ..RequestStart::default() };
        request.begin(2, before);
        assert_eq!(request.claim(2), Some(before));
        assert_eq!(request.copy(2, || 7), None);
    }

    #[test]
    fn a_request_keeps_its_number_in_copies_and_the_next_one_there_has_none() {
        let requests = Requests::map().expect("address space");
        let request = requests.take_number().and_then(|number| requests.known(number)).expect("a request");
        let start = RequestStart { name: 3, ticks: Some(9), id: 5, ..RequestStart::default() };
        let copied = RequestStart { copied: 7, ..start };
        request.begin(1, start);
        assert_eq!(
            [request.copy(2, || 6), request.copy(1, || 7), request.copy(1, || 8)],
            [None, Some(copied), Some(copied)]
        );
        assert_eq!(request.claim(1), Some(copied));
        request.begin(1, start);
        assert_eq!(request.claim(1), Some(start));
    }
}
