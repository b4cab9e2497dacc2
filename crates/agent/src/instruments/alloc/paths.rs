//! Paths that allocate: the calling thread's stack as one number at once, and as frames in the recording's stack table a little later.
//!
//! In a callback about an allocation the runtime may not always be asked: an object that nobody refers to yet would be lost if a
//! collection ran. So callbacks do no more than follow frame pointers: the return addresses are mixed into one number, which is the
//! same wherever the stack is. For a number that is new the runtime walks the stack, which gives addresses and nothing else. What code
//! lies at these is looked up by a thread of the agent's own, which then fills in the stacks of the records that wait for it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::internals::{CurrentStack, NativeFrame};
use clr_profiler::{NoStack, ProfilerInfo};
use clrscope_recording::model::{LossReason, StackFrame};
use clrscope_recording::writer::{AllocationCell, ProcessWriter, monotonic_ns};

use crate::services::code::{CodeMap, Place};
use crate::services::context::Context;
use crate::services::stacks::Mix;
use crate::services::stacks::table::RecordedStacks;

/// Frames of the runtime's own among those that are followed.
const NATIVE_FRAMES: usize = 32;
/// Fewer return addresses than this say nothing about a stack.
const LEAST: usize = 3;
/// Paths that are remembered.
const MOST_PATHS: usize = 1 << 20;
/// Stacks that wait to be looked up, at most.
const MOST_PENDING: usize = 1 << 17;

/// The paths of one recording.
pub(super) struct Paths {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    recorded: &'static RecordedStacks,
    /// The map of code, until the thread that looks addresses up takes it.
    map: Mutex<Option<CodeMap>>,
    /// Frames kept of a stack; 0 for no stacks.
    frames: usize,
    tables: Mutex<Tables>,
    unloads: AtomicU64,
    reported_no_stack: AtomicBool,
}

#[derive(Default)]
struct Tables {
    /// Numbers in the stack table by paths, as far as they are looked up.
    numbers: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    pending: Vec<Pending>,
    /// Stacks that are being looked up.
    under_way: usize,
}

/// A stack that waits to be looked up.
struct Pending {
    path: u64,
    time_ns: u64,
    /// Return addresses in managed code, innermost first.
    addresses: Vec<usize>,
    is_cut: bool,
    /// The record whose stack it is.
    cell: AllocationCell,
    unloads: u64,
}

impl Paths {
    /// Paths with so many frames; 0 for none.
    ///
    /// # Errors
    /// A sentence for the user, when the file of stacks could not be made.
    pub(super) fn new(context: &Context, frames: usize) -> std::result::Result<Self, String> {
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            recorded: context.stacks.open(context.writer, &context.helper)?,
            map: Mutex::new(Some(context.code_map())),
            frames,
            tables: Mutex::default(),
            unloads: AtomicU64::new(0),
            reported_no_stack: AtomicBool::new(false),
        })
    }

    /// The stack table.
    pub(super) fn recorded(&self) -> &'static RecordedStacks {
        self.recorded
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for the calling thread's stack, the same for the same return addresses; 0 where no stacks are wanted. `frame` is the frame
    /// that the framework's callback was given.
    #[inline]
    pub(super) fn here(&self, frame: NativeFrame) -> u64 {
        if self.frames == 0 {
            return 0;
        }
        follow(frame, self.frames + NATIVE_FRAMES).unwrap_or(u64::MAX)
    }

    /// The number of a path's stack in the stack table, where it is known.
    pub(super) fn number(&self, path: u64) -> Option<u32> {
        if path == 0 {
            return Some(0);
        }
        self.tables().numbers.get(&path).copied()
    }

    /// Has the calling thread's stack looked up, and filled into the record. In a callback; of the runtime the stack alone is asked.
    pub(super) fn look_up_later(&self, path: u64, cell: AllocationCell) {
        let (mut addresses, mut is_cut) = (Vec::with_capacity(self.frames.min(64)), false);
        let unloads = self.unloads.load(Ordering::Acquire);
        let walk = self.info.stack_here(|frame| {
            is_cut = addresses.len() >= self.frames;
            if is_cut {
                return ControlFlow::Break(());
            }
            addresses.push(frame.address);
            ControlFlow::Continue(())
        });
        // The runtime allocates before any method runs, and where it starts a thread.
        if let Err(error) = walk
            && error != NoStack::UnsafePlace
            && !self.reported_no_stack.swap(true, Ordering::Relaxed)
        {
            self.writer.note(monotonic_ns(), &format!("alloc: the runtime could not walk a stack: {error}"));
        }
        if addresses.is_empty() {
            return;
        }
        let pending = Pending { path, time_ns: monotonic_ns(), addresses, is_cut, cell, unloads };
        let mut tables = self.tables();
        if tables.pending.len() < MOST_PENDING {
            tables.pending.push(pending);
        } else {
            drop(tables);
            self.writer.state().lose(LossReason::StackUnread, 1, monotonic_ns());
        }
    }

    /// Whether all stacks are looked up.
    pub(super) fn is_settled(&self) -> bool {
        let tables = self.tables();
        tables.pending.is_empty() && tables.under_way == 0
    }

    /// The map of code, for the thread that looks addresses up.
    pub(super) fn take_map(&self) -> Option<CodeMap> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Looks up what waits for it. On a thread of the agent's own.
    pub(super) fn look_up(&self, map: &mut CodeMap) {
        let pending = {
            let mut tables = self.tables();
            let pending = std::mem::take(&mut tables.pending);
            tables.under_way = pending.len();
            pending
        };
        if pending.is_empty() {
            return;
        }
        map.update();
        let mut frames = Vec::new();
        for stack in &pending {
            let known = self.tables().numbers.get(&stack.path).copied();
            let number = known.unwrap_or_else(|| {
                frames.clear();
                frames.extend(stack.addresses.iter().filter_map(|&address| frame_at(map, address, stack.time_ns)));
                self.recorded.number_of(&frames, stack.is_cut)
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
        if number == 0 || stack.path == u64::MAX || self.unloads.load(Ordering::Acquire) != stack.unloads {
            return;
        }
        if tables.numbers.len() >= MOST_PATHS {
            tables.numbers.clear();
        }
        tables.numbers.insert(stack.path, number);
    }

    /// Code is gone; other code may come to lie at its addresses.
    pub(super) fn code_unloaded(&self) {
        let mut tables = self.tables();
        tables.numbers.clear();
        self.unloads.fetch_add(1, Ordering::AcqRel);
    }
}

/// Follows the frame pointers of the calling thread and mixes the return addresses of at most so many frames; `None` where there are too few.
#[inline]
fn follow(frame: NativeFrame, most: usize) -> Option<u64> {
    let stack = CurrentStack::here()?;
    let (mut mix, mut frame, mut found) = (Mix::default(), frame.address(), 0);
    while found < most
        && let Some(address) = stack.word(frame.wrapping_add(8))
        && let Some(up) = stack.word(frame)
    {
        mix.write_usize(address);
        found += 1;
        if up <= frame {
            break;
        }
        frame = up;
    }
    // 0 and the largest number have meanings of their own.
    (found >= LEAST).then(|| mix.finish().clamp(1, u64::MAX - 1))
}

/// The frame of a method that goes on at a return address; `None` for what is no method.
fn frame_at(map: &mut CodeMap, address: usize, time_ns: u64) -> Option<StackFrame> {
    let place = map.place(address.checked_sub(1)?, time_ns);
    matches!(place, Place::Method(_)).then(|| map.frame(&place, address, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_return_addresses_and_nothing_else() {
        let mut words = [0_usize; 16];
        let at = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let set = |frames: &[(usize, usize, usize)]| {
            for &(index, up, address) in frames {
                std::hint::black_box(&mut words)[index] = if up == 0 { 0 } else { at + up * 8 };
                std::hint::black_box(&mut words)[index + 1] = address;
            }
            follow(NativeFrame::new(at), 9)
        };
        let mut set = set;
        let first = set(&[(0, 4, 11), (4, 8, 22), (8, 0, 33)]);
        assert!(first.is_some());
        // The last frame lies elsewhere.
        assert_eq!(set(&[(4, 10, 22), (10, 0, 33)]), first);
        assert_ne!(set(&[(10, 0, 34)]), first);
        assert_eq!(set(&[(0, 0, 11)]), None, "one address is too few");
        assert_eq!(follow(NativeFrame::new(usize::MAX), 9), None);
    }
}
