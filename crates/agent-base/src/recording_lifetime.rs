//! Objects that live as long as a recording, in a process that keeps running after it.
//!
//! Callbacks, hooks, signal handlers and threads of the agent refer to the parts of a recording
//! without a lifetime. A program that is started with the agent keeps these parts to its end. A
//! program that is attached to repeatedly must not keep them: each attach would leave 10 to 170 kB.
//!
//! 1. [`keep`] creates a part and registers it.
//! 2. [`recording_is_over`] says that the parts are not used from then on. They are not freed yet.
//! 3. [`free_ended`], at the beginning of the next recording, frees them. By then a thread that was
//!    about to leave a part has left it. Parts of a recording that never ended stay for good.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// An object that lives as long as its owner. References to it are `'static`.
pub struct OwnedObject<T: Send + Sync + 'static>(&'static T);

impl<T: Send + Sync> OwnedObject<T> {
    /// Moves an object to a fixed address until the owner is dropped.
    ///
    /// # Safety
    /// No reference to the object is used once the owner is dropped.
    pub unsafe fn new(object: T) -> Self {
        Self(Box::leak(Box::new(object)))
    }

    /// Returns the object, whose reference has no lifetime.
    pub fn get(&self) -> &'static T {
        self.0
    }
}

impl<T: Send + Sync> Drop for OwnedObject<T> {
    fn drop(&mut self) {
        // SAFETY: the box that `new` leaked. The caller of `new` guarantees that it is not used
        // from now on.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self.0).cast_mut()) });
    }
}

/// Owner of a part.
type Part = Box<dyn Send>;

struct Parts {
    /// Parts of the current recording.
    current: Vec<Part>,
    /// Parts of recordings that are over.
    ended: Vec<Part>,
}

static PARTS: Mutex<Parts> = Mutex::new(Parts { current: Vec::new(), ended: Vec::new() });

fn parts() -> MutexGuard<'static, Parts> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves a part of the recording to a fixed address until the recording is
/// [over](recording_is_over).
pub fn keep<T: Send + Sync + 'static>(part: T) -> &'static T {
    // SAFETY: the owner is dropped after `recording_is_over`, whose caller guarantees this, or
    // never.
    let owner = unsafe { OwnedObject::new(part) };
    let part = owner.get();
    parts().current.push(Box::new(owner));
    part
}

/// Marks all parts of a recording that is over. They are freed when the next recording begins.
///
/// # Safety
/// From now on no part is used, nor anything taken from a part.
pub unsafe fn recording_is_over() {
    let mut parts = parts();
    let mut over = std::mem::take(&mut parts.current);
    parts.ended.append(&mut over);
}

/// Frees the parts of recordings that are over, newest first. Parts of a recording that began and
/// did not end stay for good. Called before a recording begins.
pub fn free_ended() {
    let ended = {
        let mut parts = parts();
        std::mem::forget(std::mem::take(&mut parts.current));
        std::mem::take(&mut parts.ended)
    };
    ended.into_iter().rev().for_each(drop);
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;

    /// Tests share the parts of the process, so tests that keep some run one at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// Returns a guard. While it lives, no other test keeps parts.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Both cases in one test, as they share the parts of the process.
    #[test]
    fn parts_are_freed_at_the_next_beginning_after_the_end_and_those_without_an_end_never() {
        let _alone = alone();
        let (ended, never) = (Arc::new(()), Arc::new(()));
        keep(Arc::clone(&ended));
        // SAFETY: nothing keeps the reference.
        unsafe { recording_is_over() };
        assert_eq!(Arc::strong_count(&ended), 2, "a thread may be about to leave it");
        free_ended();
        assert_eq!(Arc::strong_count(&ended), 1);
        keep(Arc::clone(&never));
        free_ended();
        // SAFETY: as above.
        unsafe { recording_is_over() };
        free_ended();
        assert_eq!(Arc::strong_count(&never), 2);
    }
}
