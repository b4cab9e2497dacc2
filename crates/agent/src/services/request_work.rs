//! The request for which each thread works, for instruments that add up what threads do.
//!
//! A thread works for a request, or for none, from one switch to the next. Sums of one such stretch
//! are of its request, because their records lie in its time.

use std::io;

use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::thread_own::{ThreadOwn, ThreadOwnPool};
use clrscope_recording::events::{Encoder, Tag};

/// What a thread works for.
#[derive(Debug, Default)]
struct Work {
    /// The request's id; 0 for none.
    request: u64,
    /// Number of the stretch among those of the thread; the same for all without a request.
    stretch: u32,
    /// Stretches so far.
    stretches: u32,
}

/// Number of a stretch without a request.
const NO_REQUEST: u32 = 0;

/// The same of all recordings.
static OF_THREADS: ThreadOwnPool<Work> = ThreadOwnPool::nothing();
/// Those of the recording under way, where requests are recorded.
static CURRENT: PublishedState<ThreadOwn<Work>> = PublishedState::nothing();

/// Requests are recorded from now on.
///
/// # Errors
/// When the process has no thread key left.
pub(crate) fn open() -> io::Result<()> {
    CURRENT.publish(OF_THREADS.borrow_values()?);
    Ok(())
}

/// Requests are recorded no more.
pub(crate) fn withdraw() {
    CURRENT.withdraw();
}

/// No thread is in here any more: another recording may use what threads keep.
pub(crate) fn let_go() {
    OF_THREADS.give_back_all();
}

/// The calling thread works for a request from now on, by its id; 0 for none. Where it did not
/// before, `write` records that and returns whether it could: else it is tried again the next time.
#[inline]
pub(crate) fn switch(request: u64, write: impl FnOnce() -> bool) {
    let Some(threads) = CURRENT.get() else { return };
    threads.with(|work| {
        if work.request != request && write() {
            work.switch(request);
        }
    });
}

/// Returns the number of the stretch of work that the calling thread is in.
#[inline]
pub(crate) fn stretch() -> u32 {
    CURRENT.get().and_then(|threads| threads.with(|work| work.stretch)).unwrap_or(NO_REQUEST)
}

/// Returns the id of the request for which the calling thread works; 0 for none.
#[inline]
pub(crate) fn request() -> u64 {
    CURRENT.get().and_then(|threads| threads.with(|work| work.request)).unwrap_or(0)
}

/// Adds the id of a request to a record, unless it is 0.
pub(crate) fn put_request(encoder: &mut Encoder<'_>, request: u64) {
    if request != 0 {
        encoder.number(Tag::REQUEST, request);
    }
}

impl Work {
    fn switch(&mut self, request: u64) {
        self.request = request;
        self.stretch = NO_REQUEST;
        if request != 0 {
            self.stretches = self.stretches.wrapping_add(1).max(NO_REQUEST + 1);
            self.stretch = self.stretches;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stretch_for_a_request_has_a_number_of_its_own() {
        let mut work = Work::default();
        let mut switched = |request| {
            work.switch(request);
            (work.request, work.stretch)
        };
        assert_eq!([0, 7, 8, 0, 7].map(&mut switched), [(0, 0), (7, 1), (8, 2), (0, 0), (7, 3)]);
    }
}
