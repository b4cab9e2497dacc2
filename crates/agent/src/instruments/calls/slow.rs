//! Slow paths of the hooks. They handle threads seen for the first time, new paths, frames left
//! behind by exceptions, and counts past 32 bits.
//!
//! The thread is in cooperative mode here: a collection waits until we return. So nothing blocks
//! longer than [`PATIENCE`](clrscope_agent_base::memory::PATIENCE), nothing takes a lock that could
//! be held across a call to the runtime, and nothing calls the runtime.

use std::sync::atomic::{AtomicUsize, Ordering};

use clrscope_recording::layout::{block, function, thread};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{Piece, ThreadRecord, monotonic_ns};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::threads;

use super::edge_map::EdgeMap;
use super::frames::{Frame, Stack, edge_of, frame, frame_at};
use super::shared::{Shared, shared};
use super::stack_room;

/// Most blocks of a caller that hooks walk: 40 callees. Callers with more blocks have all edges in
/// the map, except those of the first block.
const WALKED_MOST: usize = 8;

/// The top frame of stopped threads. It matches no enter and no leave, so every hook of a stopped
/// thread takes the slow path, and the slow path does nothing.
static STOPPED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The address that is set as the top frame of a thread when recording is stopped.
pub(crate) fn stopped_top() -> u64 {
    STOPPED.as_ptr().expose_provenance() as u64
}

/// The frame on top of a thread's shadow stack; `None` if it does not represent a call.
pub(super) fn top_of(record: ThreadRecord) -> Option<*mut Frame> {
    let top = record.u64(own::TOP).load(Ordering::Acquire);
    let bottom = record.u64(own::FRAMES).load(Ordering::Relaxed);
    let ended = record.u64(thread::ENDED).load(Ordering::Acquire) != 0;
    (!ended && bottom != 0 && top > bottom && top != stopped_top()).then(|| frame_at(top))
}

/// Slow path of enter: does everything that the fast path would have done.
pub(crate) extern "C" fn enter(function: u32, sp: usize) {
    guard(|| {
        let Some(shared) = shared() else { return };
        let Some(record) = threads::current() else { return };
        // SAFETY: the calling thread's record; no other `Stack` of it is in use.
        let mut stack = unsafe { Stack::of_thread(record) };
        charge(shared, record, &stack);
        stack.drop_below(sp + 1);
        push(shared, record, &mut stack, function, sp, true);
        #[cfg(feature = "panic-on-demand")]
        crate::panic_on_demand::panic_if_asked("hook");
    });
}

/// Slow path of leave.
pub(crate) extern "C" fn leave(sp: usize) {
    guard(|| end_frame(sp, false));
}

/// Slow path of tail call.
pub(crate) extern "C" fn tailcall(sp: usize) {
    guard(|| end_frame(sp, true));
}

fn end_frame(sp: usize, by_tail_call: bool) {
    let Some(shared) = shared() else { return };
    // A thread that is new to us leaves functions that it entered before we looked.
    let Some(record) = threads::known() else { return };
    // SAFETY: the calling thread's record; no other `Stack` of it is in use.
    let mut stack = unsafe { Stack::of_thread(record) };
    charge(shared, record, &stack);
    stack.drop_below(sp);
    if stack.top().sp == sp {
        if by_tail_call {
            stack.mark_top();
        }
        stack.pop();
    } else if !stack.was_ended_by_block(sp) {
        shared.writer.state().lose(LossReason::UnmatchedLeave, 1, monotonic_ns());
    }
}

/// Call it when an edge's count has just passed 2^32. Writes the carry to the log, and pushes the
/// frame as usual.
pub(crate) extern "C" fn carry(edge: *mut u32, sp: usize) {
    guard(|| {
        let Some(shared) = shared() else { return };
        let Some(record) = threads::known() else { return };
        if !shared.writer.carry_in_hook(shared.edge_id(edge)) {
            shared.lost_carries.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the calling thread's record; no other `Stack` of it is in use.
        unsafe { Stack::of_thread(record) }.push(frame(sp, edge));
    });
}

/// Enters a part of the runtime or an unmanaged function. It gets an ordinary edge. The stack
/// pointer of its frame lies just below the frame on top and above the frames of later calls.
pub(crate) fn enter_pseudo(shared: &Shared, function: u32) {
    let Some(record) = threads::current() else { return };
    // SAFETY: the calling thread's record; no other `Stack` of it is in use.
    let mut stack = unsafe { Stack::of_thread(record) };
    charge(shared, record, &stack);
    let sp = stack.top().sp - 1;
    push(shared, record, &mut stack, function, sp, true);
}

/// Whether [`enter_pseudo`] pushed this frame without memory for an edge of its own. Real frames
/// lie at multiples of eight.
fn is_folded_pseudo(shared: &Shared, frame: Frame) -> bool {
    !frame.sp.is_multiple_of(8) && shared.key_of(edge_of(frame)) == function::TRUNCATED
}

/// Leaves a function that [`enter_pseudo`] entered, and everything above it; returns whether the
/// function was on the stack.
pub(crate) fn leave_pseudo(shared: &Shared, function: u32) -> bool {
    let Some(record) = threads::current() else { return false };
    // SAFETY: the calling thread's record; no other `Stack` of it is in use.
    let mut stack = unsafe { Stack::of_thread(record) };
    charge(shared, record, &stack);
    let found = stack.find(|frame| shared.key_of(edge_of(frame)) == function || is_folded_pseudo(shared, frame));
    if let Some(frame) = found {
        stack.end_from(frame);
    }
    found.is_some()
}

/// Leaves the topmost suspension, whatever its reason. Does nothing if there is none.
pub(crate) fn leave_suspension(shared: &Shared) {
    let Some(record) = threads::active() else { return };
    // SAFETY: the calling thread's record; no other `Stack` of it is in use.
    let mut stack = unsafe { Stack::of_thread(record) };
    charge(shared, record, &stack);
    let is_suspension = |frame: Frame| {
        let key = shared.key_of(edge_of(frame));
        let is_suspension = (function::SUSPENDED..function::SUSPENDED + 10).contains(&key) || key == function::GC;
        is_suspension || is_folded_pseudo(shared, frame)
    };
    if let Some(frame) = stack.find(is_suspension) {
        stack.end_from(frame);
    }
}

/// With `clock=tsc`, charges the ticks since the thread's last event to the edge on top.
pub(crate) fn charge(shared: &Shared, record: ThreadRecord, stack: &Stack) {
    if shared.stride as usize != block::STRIDE_TSC {
        return;
    }
    let now = clrscope_agent_base::clock::ticks();
    let last = record.u64(own::LAST_TICKS).swap(now, Ordering::Relaxed);
    shared.add_ticks(edge_of(stack.top()), now.wrapping_sub(last));
}

/// Finds or makes the edge of `function` under the frame on top, counts the call, pushes the frame.
fn push(shared: &Shared, record: ThreadRecord, stack: &mut Stack, function: u32, sp: usize, may_wait: bool) {
    if stack.is_full() {
        shared.writer.state().lose(LossReason::StackFull, 1, monotonic_ns());
        return;
    }
    let caller = edge_of(stack.top());
    let edge = find_or_make(shared, record, stack, caller, function, may_wait)
        .unwrap_or_else(|| truncated(shared, record, stack, caller));
    if shared.count(edge) && !shared.writer.carry_in_hook(shared.edge_id(edge)) {
        shared.lost_carries.fetch_add(1, Ordering::Relaxed);
    }
    stack.push(frame(sp, edge));
    stack_room::note(record, sp, record.u64(own::TOP).load(Ordering::Relaxed));
}

/// The edge for a path that found no memory: below its caller where there is a free place,
/// otherwise next to the thread's root. Calls of such a path stay in the same edge.
fn truncated(shared: &Shared, record: ThreadRecord, stack: &Stack, caller: *mut u32) -> *mut u32 {
    let reason = if shared.arena.is_full() {
        LossReason::TreeFull
    } else if shared.arena.is_refused() {
        LossReason::DiskFull
    } else {
        LossReason::ArenaBehind
    };
    shared.writer.state().lose(reason, 1, monotonic_ns());
    if shared.key_of(caller) == function::TRUNCATED {
        return caller;
    }
    find_or_make(shared, record, stack, caller, function::TRUNCATED, false).unwrap_or_else(|| {
        let root = record.u32(thread::ROOT).load(Ordering::Relaxed);
        shared.set_key(root, 1, function::TRUNCATED, false);
        shared.edge(root, 1)
    })
}

fn find_or_make(
    shared: &Shared,
    record: ThreadRecord,
    stack: &Stack,
    caller: *mut u32,
    function: u32,
    may_wait: bool,
) -> Option<*mut u32> {
    let mut at = shared.first_block(caller);
    if at == 0 {
        at = take_block(shared, record, may_wait)?;
        shared.set_key(at, 0, function, stack.next_is_after_tail_call());
        // SAFETY: the block was just taken, its first edge is whole, and none was there before.
        unsafe { shared.set_first_block(caller, at) };
        return Some(shared.edge(at, 0));
    }
    let (mut first, mut blocks) = (0, 0);
    loop {
        for slot in 0..block::EDGES {
            match shared.key(at, slot) {
                0 => {
                    shared.set_key(at, slot, function, stack.next_is_after_tail_call());
                    return Some(shared.edge(at, slot));
                }
                key if key == function => return Some(shared.edge(at, slot)),
                _ => {}
            }
        }
        if shared.is_mapped(at) {
            return find_or_make_mapped(shared, record, stack, caller, function, at, may_wait);
        }
        if shared.key(at, 0) != function::PADDING {
            first = if blocks == 0 { at } else { first };
            blocks += 1;
        }
        let next = shared.next(at);
        if next == 0 {
            if blocks >= WALKED_MOST && map_edges(shared, record, caller, first) {
                return find_or_make_mapped(shared, record, stack, caller, function, first, may_wait);
            }
            let new = take_block(shared, record, may_wait)?;
            shared.set_key(new, 0, function, stack.next_is_after_tail_call());
            // SAFETY: the block was just taken.
            unsafe { shared.set_next(at, new) };
            return Some(shared.edge(new, 0));
        }
        at = next;
    }
}

/// Puts all edges of `caller` except those of its first block into the thread's map, and makes
/// hooks search there; returns whether there was room.
fn map_edges(shared: &Shared, record: ThreadRecord, caller: *mut u32, first: u32) -> bool {
    // SAFETY: the calling thread's record; no other `EdgeMap` of it is in use.
    let mut map = unsafe { EdgeMap::of_thread(record) };
    let mut at = shared.next(first);
    while at != 0 {
        let mut slots = 0..block::EDGES;
        if !slots.all(|slot| map.insert(shared, caller, shared.key(at, slot), shared.edge(at, slot))) {
            return false;
        }
        at = shared.next(at);
    }
    shared.set_mapped(first);
    true
}

/// The edge of a caller with many callees that is not in its block `last`. Hooks don't walk behind
/// that block.
fn find_or_make_mapped(
    shared: &Shared,
    record: ThreadRecord,
    stack: &Stack,
    caller: *mut u32,
    function: u32,
    last: u32,
    may_wait: bool,
) -> Option<*mut u32> {
    // SAFETY: the calling thread's record; no other `EdgeMap` of it is in use.
    let mut map = unsafe { EdgeMap::of_thread(record) };
    if let Some(edge) = map.find(shared, caller, function) {
        return Some(edge);
    }
    if !map.is_complete()
        && let Some(edge) = find_behind(shared, last, function)
    {
        return Some(edge);
    }
    let newest = shared.next(last);
    let free = (0..block::EDGES).find(|&slot| shared.key(newest, slot) == 0);
    let (at, slot) = match free {
        Some(slot) => (newest, slot),
        None => (take_block(shared, record, may_wait)?, 0),
    };
    shared.set_key(at, slot, function, stack.next_is_after_tail_call());
    if at != newest {
        // SAFETY: the block was just taken, and leads to those that were there.
        unsafe { shared.set_next(at, newest) };
        // SAFETY: as above.
        unsafe { shared.set_next(last, at) };
    }
    let edge = shared.edge(at, slot);
    map.insert(shared, caller, function, edge);
    Some(edge)
}

/// The edge of `function` in the blocks behind `last`. Used where the map has no room for all
/// edges.
fn find_behind(shared: &Shared, last: u32, function: u32) -> Option<*mut u32> {
    let mut at = shared.next(last);
    while at != 0 {
        if let Some(slot) = (0..block::EDGES).find(|&slot| shared.key(at, slot) == function) {
            return Some(shared.edge(at, slot));
        }
        at = shared.next(at);
    }
    None
}

/// A fresh block of zeros.
fn take_block(shared: &Shared, record: ThreadRecord, may_wait: bool) -> Option<u32> {
    let next = record.u32(own::FREE_NEXT).load(Ordering::Relaxed);
    let end = record.u32(own::FREE_END).load(Ordering::Relaxed);
    let at = if next + shared.stride <= end { next } else { refill(shared, record, may_wait)?.next };
    record.u32(own::FREE_NEXT).store(at + shared.stride, Ordering::Relaxed);
    record.u32(thread::BLOCKS).fetch_add(1, Ordering::Relaxed);
    Some(at)
}

fn refill(shared: &Shared, record: ThreadRecord, may_wait: bool) -> Option<Piece> {
    let last = record.u32(own::PIECE_BYTES).load(Ordering::Relaxed);
    let take = || shared.arena.allocate_piece(last);
    let wait = || shared.patience.wait(&shared.arena, shared.stride as usize, take);
    let piece = take().or_else(|| if may_wait { wait() } else { None })?;
    record.u32(own::PIECE_BYTES).store(piece.end - piece.next, Ordering::Relaxed);
    record.u32(own::FREE_END).store(piece.end, Ordering::Relaxed);
    Some(piece)
}
