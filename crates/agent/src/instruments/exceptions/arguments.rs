//! The shadow stack of arguments: the arguments of calls that have not ended, as they were when the
//! calls began.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_agent_base::memory::FixedVec;

/// Most bytes of a call's arguments that are kept.
const MOST_BYTES: usize = 1 << 10;
/// Most calls and bytes of a thread.
const MOST_CALLS: usize = 10_000;
const MOST_KEPT: usize = 4 << 20;
/// One of this many calls is a sample. The number is a prime, so that it differs from the periods
/// in which programs repeat themselves.
pub(super) const SAMPLED: u64 = 1021;
/// A frame that replaced another frame of the same call (OSR) lies at most this far below it.
const TAKEN_OVER_BYTES: usize = 4 << 10;

/// A call that has not ended, or was left by an exception.
#[derive(Debug, Clone, Copy)]
struct Call {
    /// The caller's stack pointer.
    sp: usize,
    function: u32,
    /// End of the call's bytes; they begin at the end of the previous call's bytes.
    end: usize,
}

struct Calls {
    calls: FixedVec<Call>,
    /// The first bytes belong to calls; the rest is left from earlier calls, since clearing it
    /// would cost more than all other work.
    bytes: FixedVec<u8>,
    /// Calls until the next sample.
    until_sample: u64,
    /// Value of [`FORGOTTEN`] when this thread last compared it.
    forgotten: u64,
}

thread_local! {
    /// The calls of a thread, once there is one.
    static CALLS: RefCell<Option<Calls>> = const { RefCell::new(None) };
}

/// Calls whose arguments found no room.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Number of calls whose arguments could not be kept for lack of room, since this function was last
/// called.
pub(super) fn dropped() -> u64 {
    DROPPED.swap(0, Ordering::Relaxed)
}

/// Number of times that all calls were forgotten. Threads drop the calls that they kept before the
/// last time.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

/// Forgets all calls of all threads. Needed when recording was stopped, as calls have ended unseen.
pub(super) fn forget_all() {
    FORGOTTEN.fetch_add(1, Ordering::AcqRel);
}

/// Runs `act` on the calls of this thread. `None` if the thread has none, and at the very end of a
/// thread.
fn with<R>(act: impl FnOnce(&mut Calls) -> R) -> Option<R> {
    let act = |calls: &RefCell<Option<Calls>>| calls.try_borrow_mut().ok()?.as_mut().map(|calls| act(calls.up_to_date()));
    CALLS.try_with(act).ok().flatten()
}

/// Gives the thread memory for its calls, if it has none yet and memory is available.
fn begin() {
    let _ = CALLS.try_with(|calls| {
        if let Ok(mut calls) = calls.try_borrow_mut()
            && calls.is_none()
        {
            *calls = Calls::new();
        }
    });
}

/// Keeps the arguments of a call that begins: `write` writes them and returns their number of
/// bytes. Returns whether the call is a sample ([`SAMPLED`]).
pub(super) fn keep(function: u32, sp: usize, mut write: impl FnMut(&mut [u8]) -> usize) -> bool {
    let mut keep = |all: &mut Calls| (all.push(function, sp, &mut write), all.is_sampled());
    let kept = with(&mut keep).or_else(|| {
        begin();
        with(keep)
    });
    if !kept.is_some_and(|(is_kept, _)| is_kept) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
    kept.is_some_and(|(_, is_sampled)| is_sampled)
}

/// Forgets calls whose caller's stack pointer is below `bound`, because they have ended.
pub(super) fn drop_below(bound: usize) {
    let _ = with(|all| all.drop_below(bound));
}

/// The arguments of the activation of `function` with this frame pointer.
pub(super) fn of_frame<R>(function: u32, frame_pointer: usize, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
    with(|all| all.find(function, frame_pointer).map(take)).flatten()
}

impl Calls {
    fn new() -> Option<Self> {
        let (calls, bytes) = (FixedVec::new(MOST_CALLS)?, FixedVec::zeros(MOST_KEPT)?);
        Some(Self { calls, bytes, until_sample: SAMPLED, forgotten: FORGOTTEN.load(Ordering::Acquire) })
    }

    fn push(&mut self, function: u32, sp: usize, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        self.drop_below(sp + 1);
        let start = self.used();
        if self.calls.len() >= MOST_CALLS {
            return false;
        }
        let Some(room) = self.bytes.get_mut(start..start + MOST_BYTES) else { return false };
        let end = start + write(room).min(MOST_BYTES);
        self.calls.push(Call { sp, function, end })
    }

    /// Drops the calls that were kept before the last [`forget_all`].
    fn up_to_date(&mut self) -> &mut Self {
        let forgotten = FORGOTTEN.load(Ordering::Acquire);
        if self.forgotten != forgotten {
            self.forgotten = forgotten;
            while self.calls.pop().is_some() {}
        }
        self
    }

    fn is_sampled(&mut self) -> bool {
        self.until_sample = self.until_sample.checked_sub(1).unwrap_or(SAMPLED - 1);
        self.until_sample == 0
    }

    fn drop_below(&mut self, bound: usize) {
        while self.calls.last().is_some_and(|last| last.sp < bound) {
            self.calls.pop();
        }
    }

    fn used(&self) -> usize {
        self.calls.last().map_or(0, |last| last.end)
    }

    /// A method with hooks stores its caller's frame pointer and return address at its own frame
    /// pointer, so the caller's stack pointer is 16 above. Where another frame replaced the call's
    /// own (OSR), the original frame lies somewhat further up. Calls that an exception has left lie
    /// below.
    fn find(&self, function: u32, frame_pointer: usize) -> Option<&[u8]> {
        let reach = frame_pointer + 1..=frame_pointer.saturating_add(TAKEN_OVER_BYTES);
        let mut above = (0..self.calls.len()).rev().filter(|&at| reach.contains(&self.calls[at].sp));
        let at = above.find(|&at| self.calls[at].function == function)?;
        let start = at.checked_sub(1).map_or(0, |before| self.calls[before].end);
        self.bytes.get(start..self.calls[at].end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(calls: &mut Calls, function: u32, sp: usize) {
        let bytes = [function as u8; 3];
        assert!(calls.push(function, sp, |buffer| {
            buffer[..3].copy_from_slice(&bytes);
            3
        }));
    }

    #[test]
    fn each_activation_has_its_own_and_what_was_left_is_not_found() {
        let mut calls = Calls::new().expect("address space");
        push(&mut calls, 1, 0x9000);
        push(&mut calls, 2, 0x8000);
        push(&mut calls, 2, 0x7000);
        assert_eq!(calls.find(2, 0x6FF0), Some(&[2; 3][..]));
        assert_eq!(calls.find(2, 0x7FF0), Some(&[2; 3][..]));
        assert_eq!(calls.find(1, 0x8F00), Some(&[1; 3][..]));
        assert_eq!((calls.find(1, 0x7FF0), calls.find(2, 0x8FF0)), (None, None));
        // The catch block of function 1 calls: its frame pointer is the frame pointer of function
        // 1, and the other frames lie below.
        push(&mut calls, 3, 0x5000);
        assert_eq!(calls.find(3, 0x4FF0), Some(&[3; 3][..]));
        assert_eq!(calls.find(2, 0x8FF0), None);
        // Back in function 1, the next call ends the calls that the exception has left.
        push(&mut calls, 4, 0x8800);
        assert_eq!((calls.calls.len(), calls.used()), (2, 6));
        calls.drop_below(0x9001);
        assert_eq!((calls.calls.len(), calls.used()), (0, 0));
    }

    #[test]
    fn what_finds_no_room_is_refused() {
        let mut calls = Calls::new().expect("address space");
        for at in 0..MOST_CALLS {
            push(&mut calls, 1, usize::MAX / 2 - at * 16);
        }
        assert!(!calls.push(1, 0x1000, |_| 0));
    }
}
