//! The request for which each thread works, for instruments that sum up the work of threads.
//!
//! The work of a thread is divided into stretches, from one switch to the next. In a stretch the
//! thread works for one request or for none. The sums of a stretch belong to the stretch's request,
//! as their records lie in its time.

use std::io;

use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::thread_own::{ThreadOwn, ThreadOwnPool};
use clrscope_recording::events::{Encoder, Tag};

/// A thread's current work.
#[derive(Debug, Default)]
struct Work {
    /// The request's id; 0 for none.
    request: u64,
    /// Number of the stretch within the thread; all stretches without a request have the same
    /// number.
    stretch: u32,
    /// Number of stretches so far.
    stretches: u32,
}

/// Number of a stretch without a request.
const NO_REQUEST: u32 = 0;

/// The state of threads for all recordings.
static OF_THREADS: ThreadOwnPool<Work> = ThreadOwnPool::nothing();
/// The state of the current recording, where requests are recorded.
static CURRENT: PublishedState<ThreadOwn<Work>> = PublishedState::nothing();

/// Prepares the state of threads: requests are recorded from now on.
///
/// # Errors
/// When the process has no thread key left.
pub(crate) fn open() -> io::Result<()> {
    CURRENT.publish(OF_THREADS.borrow_values()?);
    Ok(())
}

/// Call it when requests are not recorded any more.
pub(crate) fn withdraw() {
    CURRENT.withdraw();
}

/// Call it when no thread uses this module any more: another recording may reuse the state of
/// threads.
pub(crate) fn let_go() {
    OF_THREADS.give_back_all();
}

/// Notes that the calling thread works for the request with this id from now on; 0 for none. If
/// that is a change, calls `write`, which records the switch and returns whether it was written. If
/// it was not written, the next call tries again.
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
