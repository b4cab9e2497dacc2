//! The shadow stack and the tree of a thread, from the thread's first event until its end.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use clr_profiler::internals::CurrentStack;
use clrscope_recording::layout::{block, thread};
use clrscope_recording::writer::{Piece, ThreadRecord};
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::os::memory::{PAGE, discard, map_guarded};
use clrscope_agent_base::clock;

use super::edge_map::EdgeMap;
use super::frames::{self, Frame};
use super::shared::Shared;
use super::stack_room;

/// Room for frames that are not managed calls (`[JIT]`, suspensions, filters), in addition to the
/// frames of managed calls.
const SPARE_BYTES: usize = 64 << 10;
/// Size for threads whose stack can't be measured or is unlimited.
const LARGE_STACK: usize = 256 << 20;
/// Shadow stacks of ended threads that are kept for new ones.
const KEPT_STACKS: usize = 256;

/// A shadow stack's memory.
#[derive(Clone, Copy)]
struct Frames {
    start: usize,
    bytes: usize,
}

static KEPT: Mutex<Vec<Frames>> = Mutex::new(Vec::new());

/// Makes room for the shadow stacks that are kept, so that the end of a thread does not allocate.
pub(super) fn prepare() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).reserve(KEPT_STACKS);
}

/// Creates the shadow stack of the calling thread, which is new, and the first block of its tree;
/// or lets it continue the tree of the thread that had the record before. Returns whether there was
/// room.
pub(super) fn begin(shared: &Shared, record: ThreadRecord) -> bool {
    let Some(memory) = take_frames() else { return false };
    let before = record.u32(thread::ROOT_BEFORE).load(Ordering::Relaxed);
    let root_block = if before != 0 { Some(before) } else { begin_tree(shared, record) };
    let Some(root_block) = root_block else {
        keep_frames(memory);
        return false;
    };
    let root = shared.edge(root_block, 0);
    let lowest = memory.start as *mut Frame;
    // SAFETY: fresh memory of at least one page.
    unsafe { lowest.write(frames::frame(usize::MAX, root)) };

    record.u64(own::BASE).store(shared.arena.base() as u64, Ordering::Relaxed);
    record.u64(own::FRAMES).store(memory.start as u64, Ordering::Relaxed);
    record.u64(own::FRAMES_END).store((memory.start + memory.bytes) as u64, Ordering::Relaxed);
    record.u64(own::LAST_TICKS).store(clock::ticks(), Ordering::Relaxed);
    stack_room::begin(record);
    record.u64(own::TOP).store(memory.start as u64, Ordering::Release);
    // Last: from here on the reader and the helper thread believe the record.
    record.u32(thread::ROOT).store(root_block, Ordering::Release);
    record.u32(thread::ROOT_BEFORE).store(0, Ordering::Relaxed);
    true
}

/// Creates the first block of the tree of a thread whose record had none before. `None` if there is
/// no room.
fn begin_tree(shared: &Shared, record: ThreadRecord) -> Option<u32> {
    let piece = shared.arena.allocate_piece(0)?;
    shared.set_key(piece.next, 0, block::ROOT_KEY, false);
    record.u32(thread::BLOCKS).store(1, Ordering::Relaxed);
    record.u32(own::FREE_NEXT).store(piece.next + shared.stride, Ordering::Relaxed);
    record.u32(own::FREE_END).store(piece.end, Ordering::Relaxed);
    record.u32(own::PIECE_BYTES).store(piece.end - piece.next, Ordering::Relaxed);
    Some(piece.next)
}

/// Takes a shadow stack with as many bytes as the thread's stack. An entry has 16 bytes, and the
/// frames of two calls lie at least 16 bytes apart, so the fast path need not check the limit. A
/// guard page lies behind.
fn take_frames() -> Option<Frames> {
    let bytes = (stack_bytes() + SPARE_BYTES).next_multiple_of(PAGE);
    let kept = KEPT.try_lock().ok().and_then(|mut kept| {
        let found = kept.iter().position(|frames| frames.bytes == bytes)?;
        Some(kept.swap_remove(found))
    });
    kept.or_else(|| map_frames(bytes))
}

fn map_frames(bytes: usize) -> Option<Frames> {
    Some(Frames { start: map_guarded(bytes)?.as_ptr().expose_provenance(), bytes })
}

/// Keeps a shadow stack for the next thread. It is never unmapped: the helper thread may be reading
/// it.
fn keep_frames(frames: Frames) {
    // SAFETY: our own mapping; pages that deep calls have touched are given back to the system.
    unsafe {
        if frames.bytes > PAGE {
            discard((frames.start + PAGE) as *mut u8, frames.bytes - PAGE);
        }
        (frames.start as *mut u8).write_bytes(0, PAGE);
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() < KEPT_STACKS {
        kept.push(frames);
    }
}

/// The size of the calling thread's stack; for the first thread the size up to which its stack may
/// grow.
fn stack_bytes() -> usize {
    CurrentStack::bounds().map_or(LARGE_STACK, |bounds| bounds.len().min(LARGE_STACK))
}

/// Call it when a thread has ended. Gives its unused memory to other threads. The map of its edges
/// stays where another thread will continue its tree.
pub(super) fn end(shared: &Shared, record: ThreadRecord) {
    if !shared.writer.threads().reuses_records() {
        // SAFETY: the calling thread's record, and its hooks are over: it has no record any more.
        unsafe { EdgeMap::of_thread(record) }.give_back();
    }
    let next = record.u32(own::FREE_NEXT).load(Ordering::Relaxed);
    let end = record.u32(own::FREE_END).swap(next, Ordering::Relaxed);
    // A thread that continues the tree needs few blocks more.
    record.u32(own::PIECE_BYTES).store(0, Ordering::Relaxed);
    if end.saturating_sub(next) >= shared.stride {
        shared.arena.give_back(Piece { next, end });
    }
    let start = record.u64(own::FRAMES).load(Ordering::Relaxed) as usize;
    let bytes = record.u64(own::FRAMES_END).load(Ordering::Relaxed) as usize - start;
    keep_frames(Frames { start, bytes });
}
