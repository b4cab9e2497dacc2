//! Nested commands: a provider's method that reads one value calls its method that reads rows, and
//! both are one command. Only the outermost counts.
//!
//! A thread is within a command while it runs that command's code. An async method carries this
//! state over its awaits: it sets the state when it resumes, and resets it when it waits or ends.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use clr_profiler::PerThread;
use clrscope_agent_base::memory::PublishedState;

/// Whether a thread is within a command, and how many it has begun. Only the thread itself changes
/// this value.
#[derive(Default)]
pub(super) struct Within {
    is_within: AtomicU32,
    begun: AtomicU32,
}

/// The states of the process's threads. Changed code stays, so they are never freed.
static THREADS: PublishedState<PerThread<Within>> = PublishedState::nothing();
static MADE: Mutex<()> = Mutex::new(());

/// Makes room for the threads' states, unless there is room already.
///
/// # Errors
/// When the process has no thread key left.
pub(super) fn open() -> io::Result<()> {
    let _alone = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if THREADS.get().is_none() {
        THREADS.publish_for_good(PerThread::new(Within::default, |_| ())?);
    }
    Ok(())
}

fn with(act: impl FnOnce(&Within) -> u32) -> u32 {
    THREADS.get().map_or(0, |threads| threads.with(act))
}

/// Whether the calling thread is within a command: 0 or 1.
pub(super) fn is_within() -> u32 {
    with(|thread| thread.is_within.load(Ordering::Relaxed))
}

/// Sets whether the calling thread is within a command (0 or 1). Returns the previous value.
pub(super) fn put(is_within: u32) -> u32 {
    with(|thread| {
        let was = thread.is_within.load(Ordering::Relaxed);
        thread.is_within.store(is_within, Ordering::Relaxed);
        was
    })
}

/// Number of commands that the calling thread has begun.
pub(super) fn begun() -> u32 {
    with(|thread| thread.begun.load(Ordering::Relaxed))
}

/// Counts a command that the calling thread begins.
pub(super) fn begin() {
    with(|thread| {
        let begun = thread.begun.load(Ordering::Relaxed).wrapping_add(1);
        thread.begun.store(begun, Ordering::Relaxed);
        begun
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_is_within_commands_of_its_own() {
        open().and_then(|()| open()).expect("a key");
        assert_eq!((is_within(), put(1), put(1), begun()), (0, 0, 1, 0));
        begin();
        let other = std::thread::scope(|scope| scope.spawn(|| (is_within(), begun())).join());
        assert_eq!(other.expect("the thread ends"), (0, 0));
        assert_eq!((put(0), is_within(), begun()), (1, 0, 1));
    }
}
