//! Allocating paths. The calling thread's stack becomes a number at once; a little later, its
//! frames are added to the recording's stack table.
//!
//! In a callback about an allocation the runtime may not always be queried: nothing refers to the
//! object yet, so a collection would free it. So callbacks only follow frame pointers. They hash
//! the return addresses, including those that no frame pointer leads to
//! ([`hidden_returns`](clrscope_agent_stacks::stacks::hidden_returns)), into one number, which does
//! not depend on the address of the stack. For a new number the runtime walks the stack, which
//! gives only addresses. A thread of the agent's own looks up the code at these addresses, and
//! fills the stacks into the waiting records.
//!
//! That walk also shows where frame pointers skipped a caller. A moment later the agent's thread
//! has found the code that hides the caller. Until then the runtime walks each stack that contains
//! such code, and the number comes from that walk.
//!
//! The number of a stack includes the awaiters of the method that was resumed on it. They are read
//! at once, since objects move later.
//!
//! With `exact` together with `calls` a path is the thread's current edge in the tree. The
//! functions of that path are known at once.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::internals::{CurrentStack, FrameChain, NativeFrame, ReturnAddress};
use clr_profiler::{NoStack, ProfilerInfo};
use clrscope_agent_base::code_owner::is_call_before;
use clrscope_agent_stacks::awaiters::{Awaiters, Chain, Moment, ResumedFrame};
use clrscope_agent_stacks::code::{Body, CodeMap, Place};
use clrscope_agent_stacks::stacks::block_addresses::StackGap;
use clrscope_agent_stacks::stacks::hidden_returns::{CallerReturn, HiddenReturns};
use clrscope_agent_stacks::stacks::table::RecordedStacks;
use clrscope_agent_stacks::stacks::{Mix, mix_address};
use clrscope_recording::model::{LossReason, StackFrame};
use clrscope_recording::writer::{AllocationCell, ProcessWriter, ThreadRecord, monotonic_ns};

use crate::instruments::calls::current_path::CurrentPath;
use crate::services::context::Context;

use super::limits::{BYTES_OF_A_PATH, Limits};
use super::own_paths::{OwnPaths, StackPath};

/// Frames of the runtime itself among the frames that are followed.
const NATIVE_FRAMES: usize = 32;
/// Stacks with fewer return addresses than this are not usable.
const LEAST: usize = 3;
/// Most frames of a path of edges. Such a path is kept whole, since the whole path identifies a
/// node of the tree.
const MOST_EDGES: usize = 4096;
/// Path of objects whose path is unknown: their stacks may differ, so none is looked up for all of
/// them.
const UNKNOWN: u64 = u64::MAX;
/// Mark of paths that are edges.
const OF_EDGES: u64 = 1 << 32;

/// The paths of one recording.
pub(super) struct Paths {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    recorded: &'static RecordedStacks,
    /// Paths are edges of the tree of `calls`.
    by_edges: bool,
    /// The map of code, until the lookup thread takes it.
    map: Mutex<Option<CodeMap>>,
    /// Frames kept of a stack; 0 for no stacks.
    frames: usize,
    /// Return addresses that no frame pointer leads to.
    hidden: HiddenReturns,
    limits: Limits,
    tables: Mutex<Tables>,
    reported_no_stack: AtomicBool,
    awaiters: Arc<Awaiters>,
    /// Collections that have begun.
    collections: AtomicU64,
    /// Paths are taken in the runtime's callback about an object, which keeps the object alive
    /// (`PublishObjectAndNotify` in its `gchelpers.cpp`).
    is_exact: bool,
}

#[derive(Default)]
struct Tables {
    /// Numbers in the stack table by path, for stacks that are looked up.
    numbers: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    pending: Vec<Pending>,
    /// Bytes of the pending stacks.
    pending_bytes: usize,
    /// Stacks that are being looked up.
    under_way: usize,
}

impl Tables {
    fn remember(&mut self, path: u64, number: u32, most: usize) {
        if self.numbers.len() >= most {
            self.numbers.clear();
        }
        self.numbers.insert(path, number);
    }
}

/// A stack that waits to be looked up.
struct Pending {
    path: u64,
    time_ns: u64,
    /// Methods, innermost first: the address at which each continues, by the runtime's walk, and
    /// the part of the stack between it and its callee.
    methods: Vec<(usize, StackGap)>,
    is_cut: bool,
    /// The awaiters of the method that was resumed on the stack, if known.
    awaiters: Option<Chain>,
    /// The record whose stack it is.
    cell: AllocationCell,
    /// Number of unloads before the walk.
    unloads: u64,
}

impl Pending {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.methods.iter().map(|(_, between)| size_of::<usize>() + between.bytes()).sum::<usize>()
    }
}

impl Paths {
    /// Creates empty tables within `limits`. Paths have at most `frames` frames; 0 for no paths.
    /// `exact`: each object is seen.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(super) fn new(
        context: &Context,
        (frames, limits): (usize, Limits),
        exact: bool,
    ) -> std::result::Result<Self, String> {
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            recorded: context.stacks.open(context.writer, &context.helper)?,
            by_edges: exact && context.hooks.has_tree(),
            map: Mutex::new(Some(context.code_map())),
            frames,
            hidden: HiddenReturns::default(),
            limits,
            tables: Mutex::default(),
            reported_no_stack: AtomicBool::new(false),
            awaiters: Arc::clone(context.code_feed().awaiters()),
            collections: AtomicU64::new(0),
            is_exact: exact,
        })
    }

    /// The stack table of the recording.
    pub(super) fn recorded(&self) -> &'static RecordedStacks {
        self.recorded
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for the calling thread's path; 0 if no stacks are recorded. Equal return addresses,
    /// or with `calls` equal edges, give equal numbers. `thread` is the thread's record, `frame`
    /// the frame that the framework's callback received, `own` the thread's knowledge of its stack.
    #[inline]
    pub(super) fn here(&self, thread: ThreadRecord, frame: NativeFrame, own: &mut OwnPaths) -> u64 {
        match self.frames {
            0 => 0,
            _ if self.by_edges => edge_here(thread).map_or(UNKNOWN, |here| OF_EDGES | u64::from(here.edge())),
            _ => self.with_awaiters(frame, own).0,
        }
    }

    /// Number for the calling thread's return addresses and for the awaiters of the method that was
    /// resumed there; also returns the awaiters, if known.
    #[inline]
    fn with_awaiters<'o>(&self, frame: NativeFrame, own: &'o mut OwnPaths) -> (u64, Option<&'o Chain>) {
        let Some(path) = self.of_stack(frame, &mut own.frames) else { return (UNKNOWN, None) };
        // 0 also has a special meaning.
        let number = |mixed: u64| mixed.clamp(1, UNKNOWN - 1);
        let Some(resumed) = path.resumed.method() else { return (number(path.mixed), None) };
        let moment = Moment { collections: self.collections.load(Ordering::Acquire), may_ask: self.is_exact };
        match self.awaiters.chain_here(&mut own.awaiters, resumed, moment) {
            Some(last) if !last.chain().is_unknown() => {
                (number(mix_address(path.mixed, last.mixed() as usize)), Some(last.chain()))
            }
            _ => (number(path.mixed), None),
        }
    }

    /// Call it when a collection begins, which may move objects.
    pub(super) fn collection_starts(&self) {
        self.collections.fetch_add(1, Ordering::AcqRel);
    }

    /// The calling thread's return addresses.
    #[inline(never)]
    fn of_stack(&self, frame: NativeFrame, chain: &mut FrameChain<StackPath>) -> Option<StackPath> {
        let stack = CurrentStack::here()?;
        let (hidden, is_unsure) = (&self.hidden, Cell::new(false));
        let behind = |address: usize| {
            let behind = hidden.behind(address);
            if behind == CallerReturn::Unsure {
                is_unsure.set(true);
            }
            behind.hidden()
        };
        // Such a number changes whenever more is known, so numbers would pile up.
        let generation = hidden.generation().rotate_left(32) ^ self.awaiters.generation();
        let fold = |outer, to| self.fold(outer, to);
        let framed = chain.follow(stack, frame, (LEAST, self.most()), (generation, behind), fold);
        if is_unsure.get() { self.by_walk(framed, chain) } else { framed }
    }

    #[inline]
    fn fold(&self, outer: StackPath, to: ReturnAddress) -> StackPath {
        StackPath { mixed: mix_address(outer.mixed, to.address), resumed: self.awaiters.fold(outer.resumed, to) }
    }

    /// Frames that are followed.
    fn most(&self) -> usize {
        self.frames + NATIVE_FRAMES
    }

    /// The calling thread's return addresses together with those of the runtime's walk, which skips
    /// none. The thread's knowledge of its frames does not help here and is forgotten.
    #[cold]
    fn by_walk(&self, framed: Option<StackPath>, chain: &mut FrameChain<StackPath>) -> Option<StackPath> {
        chain.forget();
        let (mixed, mut returns) = (framed?.mixed, Vec::new());
        let walk = self.info.stack_here_with_frame_pointers(|frame| {
            returns.push(ReturnAddress::new(frame.address, frame.frame_pointer));
            if returns.len() >= self.frames { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let outermost = StackPath { mixed, resumed: ResumedFrame::default() };
        walk.is_ok().then(|| returns.into_iter().rev().fold(outermost, |outer, to| self.fold(outer, to)))
    }

    /// The number of the calling thread's path in the stack table; `None` if it is unknown and
    /// can't be found at once.
    pub(super) fn number(&self, thread: ThreadRecord, path: u64) -> Option<u32> {
        if path == 0 || path == UNKNOWN {
            return Some(0);
        }
        let known = self.tables().numbers.get(&path).copied();
        if known.is_some() || !self.by_edges {
            return known;
        }
        let functions: Vec<u32> = edge_here(thread)?.functions().take(MOST_EDGES).collect();
        let frames: Vec<StackFrame> = functions.iter().map(|&function| StackFrame::method(function, None)).collect();
        let number = self.recorded.number_of(&frames, frames.len() == MOST_EDGES);
        self.tables().remember(path, number, self.limits.paths);
        Some(number)
    }

    /// Queues the calling thread's stack for lookup; the record gets the stack later. Returns
    /// whether there was room to remember what is new about its frames. Call it in a callback. Asks
    /// the runtime only for the stack.
    #[must_use]
    pub(super) fn look_up_later(&self, path: u64, frame: NativeFrame, cell: AllocationCell) -> bool {
        let (mut walked, mut is_cut) = (Vec::with_capacity(self.frames.min(64)), false);
        let unloads = self.awaiters.unloads();
        let walk = self.info.stack_here_with_frame_pointers(|frame| {
            is_cut = walked.len() >= self.frames;
            if is_cut {
                return ControlFlow::Break(());
            }
            walked.push(frame);
            ControlFlow::Continue(())
        });
        // The runtime allocates before any method runs, and where it starts a thread.
        if let Err(error) = walk
            && error != NoStack::UnsafePlace
            && !self.reported_no_stack.swap(true, Ordering::Relaxed)
        {
            self.writer.note(monotonic_ns(), &format!("alloc: the runtime could not walk a stack: {error}"));
        }
        if walked.is_empty() {
            return true;
        }
        let (stack, time_ns) = (CurrentStack::here(), monotonic_ns());
        let mut callee = None;
        let methods = walked.iter().map(|method| {
            let read = |stack| StackGap::read(stack, frame.address(), callee.replace(*method), *method);
            (method.address, stack.map(read).unwrap_or_default())
        });
        let methods: Vec<_> = methods.collect();
        let place = |method: &clr_profiler::StackFrame| Some((method.stack_pointer?.checked_sub(8)?, method.address));
        let places: Vec<_> = walked.iter().filter_map(place).collect();
        let compare = |stack| self.hidden.compare(stack, (frame, self.most()), (&places, time_ns));
        let has_room = stack.is_none_or(compare);
        // Until now different stacks may have had this number.
        let mut own = OwnPaths::default();
        let (again, awaiters) = self.with_awaiters(frame, &mut own);
        let path = if again == path { path } else { UNKNOWN };
        let pending = Pending { path, time_ns, methods, is_cut, awaiters: awaiters.cloned(), cell, unloads };
        let mut tables = self.tables();
        let bytes = tables.pending_bytes + pending.bytes();
        if bytes <= self.limits.waiting || tables.pending.is_empty() {
            tables.pending_bytes = bytes;
            tables.pending.push(pending);
        } else {
            drop(tables);
            self.writer.state().lose(LossReason::StackUnread, 1, monotonic_ns());
        }
        has_room
    }

    /// Bytes of memory that the tables take.
    pub(super) fn own_bytes(&self) -> u64 {
        let tables = self.tables();
        (tables.numbers.capacity() * BYTES_OF_A_PATH + tables.pending_bytes) as u64 + self.hidden.own_bytes()
    }

    /// Whether no stack waits to be looked up.
    pub(super) fn is_settled(&self) -> bool {
        let tables = self.tables();
        tables.pending.is_empty() && tables.under_way == 0
    }

    /// Takes the map of code, for the thread that looks up stacks.
    pub(super) fn take_map(&self) -> Option<CodeMap> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Looks up the stacks that wait. To be called on a thread of the agent's own.
    pub(super) fn look_up(&self, map: &mut CodeMap) {
        self.awaiters.look_up_wanted();
        let pending = {
            let mut tables = self.tables();
            let pending = std::mem::take(&mut tables.pending);
            tables.under_way = pending.len();
            tables.pending_bytes = 0;
            pending
        };
        if pending.is_empty() && !self.hidden.has_doubts() {
            return;
        }
        map.update();
        map.settle(&self.hidden);
        let mut frames = Vec::new();
        for stack in &pending {
            let known = self.tables().numbers.get(&stack.path).copied();
            let number = known.unwrap_or_else(|| {
                frames.clear();
                let mut callee = None;
                let moment = (stack.time_ns, stack.unloads);
                if map.is_behind() {
                    map.update();
                }
                map.look(|map| {
                    for (address, between) in &stack.methods {
                        add_frames_at(map, (*address, between), &mut callee, moment, &mut frames);
                    }
                });
                match &stack.awaiters {
                    None => self.recorded.number_of(&frames, stack.is_cut),
                    Some(chain) => self.recorded.number_of_awaited(&frames, stack.is_cut, chain),
                }
            });
            stack.cell.set_stack(number);
            if known.is_none() {
                self.keep(stack, number);
            }
        }
        self.tables().under_way = 0;
    }

    /// Remembers the number of a stack, unless code has gone since it was walked.
    fn keep(&self, stack: &Pending, number: u32) {
        let mut tables = self.tables();
        let is_gone = self.awaiters.unloads() != stack.unloads;
        if number != 0 && stack.path != UNKNOWN && !is_gone {
            tables.remember(stack.path, number, self.limits.paths);
        }
    }

    /// Call it when code has been unloaded, as other code may get its addresses.
    pub(super) fn code_unloaded(&self) {
        self.tables().numbers.clear();
        self.hidden.forget();
    }
}

/// The path of the calling thread in its tree; `thread` is its record.
#[inline]
fn edge_here(thread: ThreadRecord) -> Option<CurrentPath> {
    // SAFETY: callers have the record of the calling thread, which is in a callback about an
    // allocation.
    unsafe { CurrentPath::of_thread(thread) }
}

/// Adds the frames of the method that continues at a return address by the runtime's walk, frames
/// of inlined methods first; none if no method lies there. `callee` is the body that the method
/// called; afterwards it is the method's own body. The walk is identified by its time and its
/// number of unloads.
fn add_frames_at(
    map: &mut CodeMap,
    (address, between): (usize, &StackGap),
    callee: &mut Option<Arc<Body>>,
    (time_ns, unloads): (u64, u64),
    frames: &mut Vec<StackFrame>,
) {
    let Place::Method(body) = map.place_of_call(address, time_ns) else { return };
    map.note_async_code(&body, unloads);
    let called = callee.replace(Arc::clone(&body)).and_then(|body| map.frame_shape(&body));
    let is_inside = |at: usize| at.checked_sub(1).is_some_and(|call| body.addresses.contains(&call));
    let holds = |at: usize| is_inside(at) && is_call_before(at) != Some(false);
    let at = if map.has_blocks(&body) { between.address(called, holds) } else { Some(address) };
    // Perhaps in a block, at an unknown place.
    let Some(at) = at else { return frames.push(map.frame_without_line(&body)) };
    let there = map.frames_there(&body, at, true, time_ns);
    frames.extend_from_slice(map.inlined(there.inlined));
    frames.push(there.frame);
}
