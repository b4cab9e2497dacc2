//! Boundaries between parts of the recording that the program's own code draws, on the thread that
//! runs the code.
//!
//! Some instruments count what threads do without recording events. Only the helper thread knows
//! their counts up to a boundary, so the program's thread waits for the helper thread: work before
//! the boundary is counted in the part before, and work after it in the next part. Everything else
//! has times, and the program's thread notes the boundary itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clrscope_recording::model::{BoundaryKind, PartBoundary};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::HelperHandle;
use super::rounds::Helper;

/// Longest wait of a thread of the program for a boundary.
const PATIENCE: Duration = Duration::from_secs(2);

/// Queue of boundaries that wait for the helper thread.
#[derive(Default)]
pub(super) struct Marks {
    /// Whether boundaries are accepted: the process is being recorded, and the helper thread
    /// handles them.
    are_taken: AtomicBool,
    /// Whether any instrument counts up to a boundary.
    have_gains: AtomicBool,
    queue: Mutex<Queue>,
    noted: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(BoundaryKind, String)>,
    /// Boundaries that were drawn so far.
    drawn: u64,
    /// Number of the boundaries that are noted.
    noted: u64,
}

/// Identifies a boundary that was drawn.
#[must_use = "what the thread does next may lie in the part before"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawnBoundary(u64);

impl Marks {
    pub(super) fn begin(&self, are_taken: bool, have_gains: bool) {
        self.have_gains.store(have_gains, Ordering::Release);
        self.are_taken.store(are_taken, Ordering::Release);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether boundaries are accepted from now on. If not, threads no longer wait for
    /// boundaries.
    pub(super) fn take(&self, are_taken: bool) {
        self.are_taken.store(are_taken, Ordering::Release);
        if !are_taken {
            drop(self.queue());
            self.noted.notify_all();
        }
    }
}

impl HelperHandle {
    /// Whether the program's code can draw boundaries, because the process is being recorded.
    pub fn takes_marks(&self) -> bool {
        self.0.marks.are_taken.load(Ordering::Acquire)
    }

    /// Draws a boundary between parts. Boundaries are noted in the order of the calls.
    pub fn draw(&self, writer: &ProcessWriter, kind: BoundaryKind, name: &str) -> DrawnBoundary {
        let marks = &self.0.marks;
        let name = name.to_owned();
        let mut queue = marks.queue();
        if marks.have_gains.load(Ordering::Acquire) {
            queue.waiting.push((kind, name));
            queue.drawn += 1;
            let drawn = DrawnBoundary(queue.drawn);
            drop(queue);
            self.wake();
            return drawn;
        }
        // Under the lock, so that times are in the order of the log.
        writer.part_boundary(&PartBoundary { mono_ns: monotonic_ns(), kind, name, number: 0 });
        DrawnBoundary(0)
    }

    /// The boundary that was drawn last.
    pub fn last_drawn(&self) -> DrawnBoundary {
        DrawnBoundary(self.0.marks.queue().drawn)
    }

    /// Waits until a boundary is noted, at most two seconds, and only while the process is being
    /// recorded. Returns whether it was noted.
    pub fn wait_for_boundary(&self, boundary: DrawnBoundary) -> bool {
        let (marks, deadline) = (&self.0.marks, Instant::now() + PATIENCE);
        let mut queue = marks.queue();
        loop {
            if queue.noted >= boundary.0 {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.takes_marks() || self.is_gone() {
                return false;
            }
            queue = marks.noted.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Helper {
    /// Notes the boundaries that the program's code drew since the last call.
    pub(super) fn note_marks(&mut self) {
        // One after another. Boundaries that are drawn in the meantime come after those of this
        // round.
        let waiting = std::mem::take(&mut self.link.marks.queue().waiting);
        for (kind, name) in waiting {
            self.draw_boundary(kind, name);
            self.link.marks.queue().noted += 1;
            self.link.marks.noted.notify_all();
        }
    }
}
