//! Work of the runtime on the program's threads, as its callbacks report it: which thread suspends
//! the others and collects, and which thread loads modules.
//!
//! Callbacks note the beginning and end of such work. The draining thread asks later what a thread
//! did at a time. Some callbacks come while the runtime has suspended all threads. So nothing is
//! allocated here. The lock is held only for a copy of a few kilobytes, and only by threads that
//! the runtime doesn't suspend in the meantime.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_agent_base::os::threads::thread_id;
use clrscope_recording::model::Activity;
use clrscope_recording::writer::monotonic_ns;

/// Pieces of work that are remembered, more than the runtime does between two rounds of the
/// draining thread.
const REMEMBERED: usize = 256;

/// Kind of work that the runtime does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Work {
    /// The thread suspends the other threads, and collects once they have stopped.
    #[default]
    Collection,
    /// The thread suspends the other threads for something else.
    Suspension,
    /// The thread loads a module.
    ModuleLoad,
}

/// A piece of work of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    os_id: u32,
    work: Work,
    /// Monotonic nanoseconds of the start, of the moment when the other threads had stopped, and of
    /// the end; [`OPEN`] for future times.
    from_ns: u64,
    stopped_ns: u64,
    until_ns: u64,
}

const OPEN: u64 = u64::MAX;

/// The most recent work, with its beginnings and ends.
#[derive(Debug, Clone)]
pub(super) struct Spans {
    all: [Span; REMEMBERED],
    /// Number of pieces so far, and number of changes to them so far.
    begun: usize,
    changes: u64,
}

/// The runtime's work, as callbacks report it.
pub(super) struct RuntimeWork(Mutex<Spans>);

/// Times at which objects may have moved. Objects move only while the runtime has suspended the
/// program (`SuspendEE` and `RestartEE` in the runtime's `threadsuspend.cpp`).
#[derive(Debug, Default)]
pub(super) struct ObjectMoves {
    /// Odd while the program is suspended.
    changes: AtomicU64,
    /// Monotonic nanoseconds of the last change.
    last_ns: AtomicU64,
}

impl ObjectMoves {
    /// Call it when the program was suspended, and when it is about to resume.
    pub(super) fn change(&self) {
        self.last_ns.store(monotonic_ns(), Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Runs `look`, which looks at objects. Returns its result, with the number of possible moves
    /// so far. `None` if objects may have moved since `since_ns` or during the look.
    pub(super) fn unmoved<T>(&self, since_ns: u64, look: impl FnOnce() -> T) -> Option<(T, u64)> {
        let before = self.changes.load(Ordering::Acquire);
        if !before.is_multiple_of(2) || self.last_ns.load(Ordering::Acquire) >= since_ns {
            return None;
        }
        let found = look();
        fence(Ordering::Acquire);
        (self.changes.load(Ordering::Acquire) == before).then_some((found, before))
    }
}

impl ObjectMoves {
    /// Number of possible moves of objects so far; `None` while they may move. Async-signal-safe.
    pub(super) fn unmoved_so_far(&self) -> Option<u64> {
        Some(self.changes.load(Ordering::Acquire)).filter(|changes| changes.is_multiple_of(2))
    }
}

impl Default for Spans {
    fn default() -> Self {
        Self { all: [Span::default(); REMEMBERED], begun: 0, changes: 0 }
    }
}

impl RuntimeWork {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Spans::default()))
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it when the calling thread begins work of this kind.
    pub(super) fn begin(&self, work: Work) {
        let (os_id, now) = (thread_id(), monotonic_ns());
        self.spans().begin(os_id, work, now);
    }

    /// Call it when the calling thread has suspended the others.
    pub(super) fn stopped(&self) {
        let (os_id, now) = (thread_id(), monotonic_ns());
        self.spans().change(os_id, |work| work != Work::ModuleLoad, |span| span.stopped_ns = now);
    }

    /// Call it when the calling thread ends the work that it [began](Self::begin). `is_it` says
    /// which kinds of work that may be.
    pub(super) fn end(&self, is_it: impl Fn(Work) -> bool) {
        let (os_id, now) = (thread_id(), monotonic_ns());
        self.spans().change(os_id, is_it, |span| span.until_ns = now);
    }

    /// Updates `copy` to the current state of this.
    pub(super) fn copy_into(&self, copy: &mut Spans) {
        let spans = self.spans();
        if spans.changes != copy.changes {
            copy.clone_from(&spans);
        }
    }
}

impl Spans {
    fn begin(&mut self, os_id: u32, work: Work, now: u64) {
        let span = Span { os_id, work, from_ns: now, stopped_ns: OPEN, until_ns: OPEN };
        self.all[self.begun % REMEMBERED] = span;
        self.begun += 1;
        self.changes += 1;
    }

    /// Changes the last open piece of work of a thread.
    fn change(&mut self, os_id: u32, is_it: impl Fn(Work) -> bool, change: impl Fn(&mut Span)) {
        let is_open = |span: &&mut Span| span.os_id == os_id && span.until_ns == OPEN && is_it(span.work);
        let known = &mut self.all[..self.begun.min(REMEMBERED)];
        if let Some(span) = known.iter_mut().filter(is_open).max_by_key(|span| span.from_ns) {
            change(span);
            self.changes += 1;
        }
    }

    fn known(&self) -> &[Span] {
        &self.all[..self.begun.min(REMEMBERED)]
    }

    /// What the runtime was doing on a thread at a time.
    pub(super) fn activity(&self, os_id: u32, time_ns: u64) -> Activity {
        let is_it = |span: &&Span| span.os_id == os_id && span.from_ns <= time_ns && time_ns < span.until_ns;
        let innermost = self.known().iter().filter(is_it).max_by_key(|span| span.from_ns);
        innermost.map_or(Activity::None, |span| match span.work {
            Work::Collection if span.stopped_ns <= time_ns => Activity::Gc,
            Work::Collection | Work::Suspension => Activity::Suspension,
            Work::ModuleLoad => Activity::TypeLoading,
        })
    }

    /// Whether another thread was collecting at a time, so that this thread had to be suspended.
    pub(super) fn is_suspended(&self, os_id: u32, time_ns: u64) -> bool {
        self.known().iter().any(|span| {
            let is_collection = span.work == Work::Collection && span.os_id != os_id;
            is_collection && span.from_ns <= time_ns && time_ns < span.until_ns
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_suspends_the_others_and_collects_and_they_stand_still() {
        let mut spans = Spans::default();
        spans.begin(7, Work::ModuleLoad, 100);
        spans.begin(7, Work::Collection, 110);
        spans.change(7, |work| work == Work::Collection, |span| span.stopped_ns = 120);
        assert_eq!(spans.activity(7, u64::MAX - 1), Activity::Gc, "it has not ended");
        spans.change(7, |work| work == Work::Collection, |span| span.until_ns = 130);
        spans.change(7, |work| work == Work::ModuleLoad, |span| span.until_ns = 140);
        let about = [99, 105, 115, 125, 135, 140].map(|time| spans.activity(7, time));
        let expected = [
            Activity::None,
            Activity::TypeLoading,
            Activity::Suspension,
            Activity::Gc,
            Activity::TypeLoading,
            Activity::None,
        ];
        assert_eq!(about, expected);
        assert_eq!([105, 115, 125, 135].map(|time| spans.is_suspended(8, time)), [false, true, true, false]);
        assert!(!spans.is_suspended(7, 125) && spans.activity(8, 125) == Activity::None);
    }

    #[test]
    fn nothing_is_found_where_objects_may_have_moved() {
        let moves = ObjectMoves::default();
        assert_eq!(moves.unmoved(1, || 7), Some((7, 0)));
        let before = monotonic_ns();
        moves.change();
        assert_eq!(moves.unmoved(u64::MAX, || 7), None, "the program is stopped");
        moves.change();
        assert_eq!(moves.unmoved(before, || 7), None, "it was stopped since");
        assert_eq!(moves.unmoved(monotonic_ns() + 1, || 7), Some((7, 2)));
        let stops = || {
            moves.change();
            moves.change();
        };
        assert_eq!(moves.unmoved(u64::MAX, stops), None, "it is stopped meanwhile");
    }

    #[test]
    fn the_last_pieces_of_work_are_remembered() {
        let work = RuntimeWork::new();
        for _ in 0..2 * REMEMBERED {
            work.begin(Work::Suspension);
            work.stopped();
            work.end(|work| work == Work::Suspension);
        }
        let mut copy = Spans::default();
        work.copy_into(&mut copy);
        assert!(copy.known().iter().all(|span| span.until_ns != OPEN && span.os_id == thread_id()));
        assert_eq!(copy.activity(thread_id(), copy.all[0].from_ns), Activity::Suspension);
    }
}
