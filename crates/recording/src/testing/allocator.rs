//! Measures the memory that code takes: `#[global_allocator] static ALLOCATOR: Counting =
//! Counting;` and [`of_thread`], [`of_process`] or [`so_far`].
//!
//! The counters hold the bytes that are allocated and not freed. A reallocated block counts only
//! with its new size, although both blocks may exist for a moment (the system moves large blocks by
//! remapping their pages, without a copy).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

thread_local! {
    // Values without destructors, so they exist from a thread's first allocation to its last.
    static THREAD_NOW: Cell<isize> = const { Cell::new(0) };
    static THREAD_PEAK: Cell<isize> = const { Cell::new(0) };
}

static PROCESS_NOW: AtomicIsize = AtomicIsize::new(0);
static PROCESS_PEAK: AtomicIsize = AtomicIsize::new(0);

/// The system's allocator, which also counts bytes: for each thread, and for all threads together.
#[derive(Debug)]
pub struct Counting;

fn count(bytes: isize) {
    let now = THREAD_NOW.get() + bytes;
    THREAD_NOW.set(now);
    THREAD_PEAK.set(THREAD_PEAK.get().max(now));
    PROCESS_PEAK.fetch_max(PROCESS_NOW.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: hands everything on to the system's allocator; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Runs `work` and returns the peak of the bytes that this thread held, minus the bytes that it
/// held before `work`. For tests that run in parallel.
pub fn of_thread<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = THREAD_NOW.get();
    THREAD_PEAK.set(before);
    let done = work();
    (done, usize::try_from(THREAD_PEAK.get() - before).unwrap_or(0))
}

/// Runs `work` and returns the peak of the bytes that all threads together held, minus the bytes
/// that they held before `work`. For work on several threads, while nothing else runs.
pub fn of_process<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = PROCESS_NOW.load(Relaxed);
    PROCESS_PEAK.store(before, Relaxed);
    let done = work();
    (done, usize::try_from(PROCESS_PEAK.load(Relaxed) - before).unwrap_or(0))
}

/// The peak of the bytes that all threads together held since the process started, or since
/// [`of_process`] last began.
pub fn so_far() -> usize {
    usize::try_from(PROCESS_PEAK.load(Relaxed)).unwrap_or(0)
}
