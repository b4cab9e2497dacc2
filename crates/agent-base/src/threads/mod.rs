//! Threads: a record for each, from its first event until its end, independent of instruments.
//!
//! A thread begins when a hook or callback first sees it. Then each instrument with per-thread data
//! prepares the record. [`names`] finds out the names of threads.

pub mod names;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::Duration;

use clr_profiler::internals::CurrentStack;
use clrscope_recording::layout::thread;
use clrscope_recording::model::{LossReason, ThreadRole};
use clrscope_recording::writer::{ProcessWriter, ThreadRecord, ThreadTable, monotonic_ns};

use crate::boundary::guard;
use crate::clock;
use crate::helper::HelperHandle;
use crate::hooks;
use crate::memory::{Patience, PublishedState};
use crate::os::threads::{nap, thread_id};

/// The process-wide key whose destructor runs at a thread's end.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Pause between two checks whether threads have ended.
const A_MOMENT: Duration = Duration::from_micros(50);

/// Whether some thread was seen from outside before any hook or callback of its own.
static SEEN_BY_OTHERS: AtomicBool = AtomicBool::new(false);

static REGISTRY: PublishedState<Registry> = PublishedState::nothing();

/// Number of threads that are in [`thread_ended`].
static ENDING: AtomicU32 = AtomicU32::new(0);

/// Whether threads may still have records of a recording of this process that is over.
static HAS_LET_GO: AtomicBool = AtomicBool::new(false);

struct Registry {
    writer: &'static ProcessWriter,
    patience: Patience,
    followers: &'static dyn FollowThreads,
    /// Whether threads may have run long before they are seen.
    begins_late: bool,
}

impl Registry {
    /// Whether a thread is the main thread of the program. Hosts may run the program on any thread:
    /// without a delay, the main thread is the first thread that is seen.
    fn is_main(&self, serial: u32, os_id: u32) -> bool {
        if self.begins_late { os_id == std::process::id() } else { serial == 1 }
    }
}

/// Told about the begin and end of threads, to prepare each thread's record.
pub trait FollowThreads: Send + Sync {
    /// Prepares the record of the calling thread, which is new. Runs in a hook, so it neither
    /// blocks nor waits. Returns false when there is no room; then the thread is not recorded at
    /// all.
    fn thread_begins(&self, record: ThreadRecord) -> bool;

    /// The calling thread ends. Called after its last hook, or between two hooks.
    fn thread_ends(&self, record: ThreadRecord);
}

/// Registers `followers` for threads. Call it before any hook. Returns whether that worked.
/// `begins_late`: the program was running before the recording began.
pub fn prepare(
    writer: &'static ProcessWriter,
    helper: HelperHandle,
    followers: &'static dyn FollowThreads,
    begins_late: bool,
) -> bool {
    let mut key = 0;
    // SAFETY: writes one key; the destructor stays valid because the library is never unloaded.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(thread_ended)) } == 0;
    if made {
        KEY.store(key, Ordering::Release);
        REGISTRY.publish(Registry { writer, patience: Patience::new(helper), followers, begins_late });
    }
    made
}

/// Whether threads are tracked, because this process is being recorded.
pub fn is_prepared() -> bool {
    REGISTRY.get().is_some()
}

/// Forgets all threads in a forked child, where no thread is tracked. Async-signal-safe.
pub fn withdraw() {
    REGISTRY.withdraw();
    hooks::set_current_record(ptr::null_mut());
}

/// Forgets all threads after a recording while the process keeps running. When this returns, no
/// record is used any more. Call it when there are no more callbacks and no hooks.
pub fn let_go() {
    HAS_LET_GO.store(true, Ordering::SeqCst);
    REGISTRY.withdraw();
    let key = KEY.swap(u32::MAX, Ordering::AcqRel);
    // SAFETY: the key that `prepare` made, or none, which the C library refuses. The values of
    // threads under this key need no destructor.
    unsafe { libc::pthread_key_delete(key) };
    fence(Ordering::SeqCst);
    while ENDING.load(Ordering::SeqCst) != 0 {
        nap(A_MOMENT);
    }
}

/// The calling thread's record, if the thread has one. Safe in a hook.
#[inline]
pub fn known() -> Option<ThreadRecord> {
    let address = hooks::current_record();
    // SAFETY: only `begin` sets it.
    (!address.is_null() && is_of_this_recording(address)).then(|| unsafe { ThreadRecord::from_address(address) })
}

/// The thread-local word of a thread outlives the recording; its value under the key does not.
#[inline]
fn is_of_this_recording(address: *mut u8) -> bool {
    // SAFETY: for a key that is not there the C library answers null.
    let kept = || unsafe { libc::pthread_getspecific(KEY.load(Ordering::Relaxed)) };
    !HAS_LET_GO.load(Ordering::Relaxed) || kept() == address.cast()
}

/// The calling thread's record, if it has one and the process is being recorded. Safe in a hook.
#[inline]
pub fn active() -> Option<ThreadRecord> {
    known().filter(|_| !hooks::is_stopped())
}

/// The calling thread's record. If the thread has none yet, the record begins here. `None` if there
/// can be none. Safe in a hook.
#[inline]
pub fn current() -> Option<ThreadRecord> {
    if hooks::is_stopped() {
        return None;
    }
    known().or_else(begin)
}

#[cold]
fn begin() -> Option<ThreadRecord> {
    let registry = REGISTRY.get()?;
    let begun = try_begin(registry);
    if begun.is_none() {
        registry.writer.state().lose(reason_without_place(registry.writer.threads()), 1, monotonic_ns());
    }
    begun
}

/// The reason why a thread found no place in the table. A full table never gets room again. A table
/// that is behind gets room soon, and the thread takes it at its next call.
fn reason_without_place(table: &ThreadTable) -> LossReason {
    if table.may_grow() { LossReason::ThreadTableBehind } else { LossReason::ThreadTableFull }
}

/// A record for a thread that begins now. Waits a little for one: threads can start faster than a
/// busy machine lets the helper thread run.
fn take_record(registry: &Registry) -> Option<ThreadRecord> {
    let (table, now) = (registry.writer.threads(), monotonic_ns());
    let wait = || registry.patience.wait(table, thread::BYTES, || table.allocate_record(now));
    let record = table.allocate_record(now).or_else(wait)?;
    hooks::own::clear(record);
    Some(record)
}

fn try_begin(registry: &Registry) -> Option<ThreadRecord> {
    let table = registry.writer.threads();
    let os_id = thread_id();
    let seen = SEEN_BY_OTHERS.load(Ordering::Acquire).then(|| table.find(os_id)).flatten();
    let record = match seen {
        Some(record) => record,
        None => {
            let record = take_record(registry)?;
            let first = registry.is_main(record.serial(), os_id);
            record.set_role(if first { ThreadRole::Main } else { ThreadRole::User });
            record.u32(thread::OS_ID).store(os_id, Ordering::Relaxed);
            record
        }
    };
    if !registry.followers.thread_begins(record) {
        // A record without an id was never used; walks of the table pass over it.
        record.u32(thread::OS_ID).store(0, Ordering::Release);
        return None;
    }
    hooks::set_current_record(record.address());
    // SAFETY: the key exists. Without memory for the entry, the thread's end is only detected by
    // its absence.
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), record.address().cast()) };
    Some(record)
}

/// Record of another thread, for instruments that look at threads from outside. A thread without a
/// record gets a new one, which its first hook or callback will use. `None` if there is no room;
/// this is counted as a loss. Not for hooks.
pub fn seen(os_id: u32) -> Option<ThreadRecord> {
    let registry = REGISTRY.get()?;
    let table = registry.writer.threads();
    SEEN_BY_OTHERS.store(true, Ordering::Release);
    if let Some(record) = table.find(os_id) {
        return Some(record);
    }
    let Some(record) = take_record(registry) else {
        registry.writer.state().lose(reason_without_place(table), 1, monotonic_ns());
        return None;
    };
    record.set_role(if os_id == std::process::id() { ThreadRole::Main } else { ThreadRole::User });
    record.u32(thread::OS_ID).store(os_id, Ordering::Release);
    Some(record)
}

/// The end of the calling thread's stack; 0 if unknown.
pub fn stack_end() -> usize {
    CurrentStack::bounds().map_or(0, |bounds| bounds.end)
}

/// Destructor of the key, which runs on the thread at its end. Managed code that still runs
/// afterwards finds no record and begins a new one, and the destructor runs again.
extern "C" fn thread_ended(record: *mut c_void) {
    ENDING.fetch_add(1, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    guard(|| {
        let Some(registry) = REGISTRY.get() else { return };
        // A thread that an earlier recording has seen may get here while the next one begins. Its
        // record may be gone, and none of the present followers has prepared it.
        if !registry.writer.threads().holds(record.cast()) {
            return;
        }
        // SAFETY: the address of a record of the table that is in use.
        let record = unsafe { ThreadRecord::from_address(record.cast()) };
        hooks::set_current_record(ptr::null_mut());
        if let Some(cpu) = clock::own_cpu_ns() {
            record.u64(thread::CPU).store(cpu, Ordering::Relaxed);
        }
        record.u64(thread::ENDED).store(monotonic_ns(), Ordering::Release);
        registry.followers.thread_ends(record);
    });
    ENDING.fetch_sub(1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_its_own_records_and_those_of_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = |name| ThreadTable::create(&folder.path().join(name)).expect("a table");
        let (ours, others) = (table("ours.seg"), table("others.seg"));
        let (first, second) =
            (ours.allocate_record(1).expect("a place").address(), ours.allocate_record(1).expect("a place").address());
        assert!(ours.holds(first) && ours.holds(second) && !others.holds(first));
        let not_taken = second.wrapping_add(thread::BYTES);
        assert!(
            [not_taken, first.wrapping_add(8), first.wrapping_sub(thread::BYTES), ptr::null_mut()]
                .iter()
                .all(|&address| !ours.holds(address))
        );
    }

    #[test]
    fn a_table_that_is_behind_is_not_told_of_as_full() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = ThreadTable::create(&folder.path().join("threads.seg")).expect("a table");
        while table.allocate_record(1).is_some() {}
        assert_eq!(reason_without_place(&table), LossReason::ThreadTableBehind);
        table.keep_ahead();
        assert!(table.allocate_record(1).is_some(), "the next attempt finds a place");
        while table.len() < thread::MOST {
            table.keep_ahead();
            while table.allocate_record(1).is_some() {}
        }
        assert_eq!(reason_without_place(&table), LossReason::ThreadTableFull);
    }
}
