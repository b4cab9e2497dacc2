//! Nested calls of a probed method on the same thread: their time is part of the outer call's time.
//!
//! A thread has an entry for each probed method that it calls, with the stack address of the
//! outermost active call. A call is nested if its own stack address is lower. So a missed end does
//! not make later calls nested. Entries are never freed: the threads and methods of a process are
//! few, and new threads reuse the addresses of ended ones.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use clrscope_recording::writer::{MethodLanes, ProcessWriter};
use clrscope_agent_base::arch::thread_address;
use clrscope_agent_base::helper::Task;

/// Number of entries, a power of two. Unused memory is not backed.
const ENTRIES: usize = 1 << 16;
/// Most entries that are searched for a thread and method.
const MOST_LOOKS: usize = 16;

/// Flag in the begin time of a call: the call is the outermost one of its method on its thread.
pub(super) const OUTERMOST: u64 = 1 << 63;

struct Entry {
    /// Address of the thread; 0 for a free entry.
    thread: AtomicUsize,
    /// Address of the method's lanes; 0 until the thread has set it.
    method: AtomicU64,
    /// Stack address of the outermost active call; 0 for none. Only the entry's thread writes it.
    call: AtomicUsize,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry { thread: AtomicUsize::new(0), method: AtomicU64::new(0), call: AtomicUsize::new(0) }
}; ENTRIES];

/// Calls that found no entry: the time of calls nested in them is counted twice.
static WITHOUT_ENTRY: AtomicU64 = AtomicU64::new(0);

/// Begins a call of the method on the calling thread. Returns [`OUTERMOST`] for an outermost call,
/// and 0 for a nested one. Takes a few instructions and no lock.
#[inline]
pub(super) fn begin(method: MethodLanes) -> u64 {
    let (thread, here) = (thread_address(), stack_address());
    let Some(entry) = find(thread, method.address(), true) else {
        WITHOUT_ENTRY.fetch_add(1, Ordering::Relaxed);
        return OUTERMOST;
    };
    let outer = entry.call.load(Ordering::Relaxed);
    // Stacks grow down: a call above the noted outer call shows that the outer call has ended.
    if outer > here {
        return 0;
    }
    entry.call.store(here, Ordering::Relaxed);
    OUTERMOST
}

/// Ends a call of the calling thread. `began` has the flag [`OUTERMOST`] if it was an outermost
/// call.
#[inline]
pub(super) fn end(method: MethodLanes, began: u64) {
    if began & OUTERMOST != 0
        && let Some(entry) = find(thread_address(), method.address(), false)
    {
        entry.call.store(0, Ordering::Relaxed);
    }
}

/// Notes once in the recording that calls found no free entry.
pub(super) struct NoteFull {
    writer: &'static ProcessWriter,
    is_noted: bool,
}

impl NoteFull {
    pub(super) fn new(writer: &'static ProcessWriter) -> Self {
        Self { writer, is_noted: false }
    }
}

impl Task for NoteFull {
    fn slow_tick(&mut self, now_ns: u64) {
        if !self.is_noted && WITHOUT_ENTRY.load(Ordering::Relaxed) > 0 {
            self.is_noted = true;
            let text = "probes: more threads call more methods than there is room for: time of some calls of a method within itself \
                        counts again in its total";
            self.writer.note(now_ns, text);
        }
    }
}

/// The entry of the calling thread and a method.
#[inline]
fn find(thread: usize, method: u64, makes: bool) -> Option<&'static Entry> {
    let mixed = ((thread as u64 >> 6) ^ (method >> 6).rotate_left(20)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let first = (mixed >> 40) as usize;
    for look in 0..MOST_LOOKS {
        let entry = &TABLE[(first + look) & (ENTRIES - 1)];
        let of = entry.thread.load(Ordering::Relaxed);
        if of == thread && entry.method.load(Ordering::Relaxed) == method {
            return Some(entry);
        }
        if of != 0 {
            continue;
        }
        if !makes {
            return None;
        }
        if entry.thread.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            entry.method.store(method, Ordering::Relaxed);
            return Some(entry);
        }
    }
    None
}

#[inline]
fn stack_address() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(number: usize) -> MethodLanes {
        // SAFETY: nothing is added to these lanes.
        unsafe { MethodLanes::at(std::ptr::without_provenance_mut(number << 12), 1) }
    }

    /// Makes a call of the method with `within` nested calls; notes which were outermost, inner
    /// calls last.
    #[inline(never)]
    fn calls(method: MethodLanes, within: usize, found: &mut Vec<bool>) {
        let began = begin(method);
        found.push(began == OUTERMOST);
        if within > 0 {
            calls(method, within - 1, found);
        }
        end(method, began);
    }

    #[test]
    fn the_first_of_calls_within_each_other_is_the_outermost() {
        let of = |number| {
            let mut found = Vec::new();
            calls(lanes(number), 3, &mut found);
            found
        };
        let right = [true, false, false, false];
        assert_eq!([of(1), of(1), of(2)], [right; 3]);
        let began = begin(lanes(3));
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| of(3)).join()).expect("it ends");
        assert_eq!((began, elsewhere.as_slice(), of(3)[0]), (OUTERMOST, right.as_slice(), false));
        end(lanes(3), began);
        assert_eq!(of(3), right);
    }

    #[test]
    fn a_call_whose_end_was_not_counted_makes_no_later_one_nested() {
        #[inline(never)]
        fn deeper(method: MethodLanes) {
            let room = std::hint::black_box([0_u8; 4096]);
            assert_eq!(begin(method), OUTERMOST);
            std::hint::black_box(room);
        }
        deeper(lanes(4));
        assert_eq!(begin(lanes(4)), OUTERMOST);
    }
}
