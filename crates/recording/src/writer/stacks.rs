//! The stack table: each call stack is stored once, and records refer to it by number.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fields::Fields;
use super::growing::{AHEAD_LEAST, Growing};
use super::mapping::{CommitError, Segment};
use crate::layout::{kind, stack};
use crate::model::{AwaiterChain, StackFrame, StackNode, Stacks};

/// Address space for nodes: 16 million of them.
const CAPACITY: usize = 256 << 20;
/// Slots of the index at the beginning. A power of two.
const FIRST_SLOTS: usize = 1 << 10;

/// The table of a process, shared by all instruments that record stacks.
///
/// The nodes of the table are mapped and appended in order, so they survive the process and can be
/// read meanwhile. An index in private memory finds existing nodes; its lock is held for memory
/// accesses only. The index grows, so hooks must not use the table.
#[derive(Debug)]
pub struct StackTable {
    space: Growing,
    index: Mutex<Index>,
}

/// A hash table with open addressing. The fields of a node are the key.
#[derive(Debug)]
struct Index {
    /// Each slot holds the hash and the number of a node, or 0 if it is free. The size is a power
    /// of two. Because slots hold the hash, a search reads only the node that it finds.
    slots: Vec<u64>,
    used: usize,
}

impl StackTable {
    /// Creates the file.
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let segment = Segment::create(path, kind::STACKS, CAPACITY, AHEAD_LEAST)?;
        // Number 0 is no stack.
        let space = Growing::new(segment, CAPACITY, stack::BYTES);
        Ok(Self { space, index: Mutex::new(Index { slots: vec![0; FIRST_SLOTS], used: 0 }) })
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        self.space.segment()
    }

    /// Whether the limit is reached. Then waiting for more space is useless.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.space.used() + stack::BYTES > self.space.limit()
    }

    /// Whether the disk refused the last request for space.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.space.is_refused()
    }

    /// Backs space ahead of need. Blocks, so only the helper thread calls it.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub fn keep_ahead(&self) -> Result<(), CommitError> {
        self.space.keep_ahead(AHEAD_LEAST)
    }

    /// The number of the stack with these frames, innermost first; 0 for no frames. Deeper stacks
    /// are cut to the innermost [`Stacks::DEEPEST`] frames. `cut`: the stack had more frames.
    /// `None` if there is no backed memory for a new frame: the caller retries later, or counts the
    /// loss.
    #[must_use]
    pub fn intern(&self, frames: &[StackFrame], cut: bool) -> Option<u32> {
        let kept = &frames[..frames.len().min(Stacks::DEEPEST)];
        let mut index = self.index();
        let root = if cut || kept.len() < frames.len() { self.find_or_add(&mut index, StackNode::CUT)? } else { 0 };
        kept.iter().rev().try_fold(root, |parent, &frame| self.find_or_add(&mut index, StackNode::new(parent, frame)))
    }

    /// The number of the stack with these frames, as [`intern`](Self::intern) gives it, together
    /// with its chain of awaiters.
    #[must_use]
    pub fn intern_awaited(&self, frames: &[StackFrame], cut: bool, chain: AwaiterChain<'_>) -> Option<u32> {
        let kept = &frames[..frames.len().min(Stacks::DEEPEST)];
        let mut index = self.index();
        let end = self.find_or_add(&mut index, StackNode::awaits_end(chain.end))?;
        let frame = |index: &mut Index, parent, frame| self.find_or_add(index, StackNode::new(parent, frame));
        let awaiter = chain.frames.iter().rev().try_fold(end, |parent, &one| frame(&mut index, parent, one))?;
        let mut root = self.find_or_add(&mut index, StackNode::awaited_by(awaiter))?;
        if cut || kept.len() < frames.len() {
            root = self.find_or_add(&mut index, StackNode::CUT.called_by(root))?;
        }
        kept.iter().rev().try_fold(root, |parent, &one| frame(&mut index, parent, one))
    }

    /// The number of the stack that has these frames, innermost first, on top of the stack with the
    /// number `callers`. Appends the number of each new level to `numbers`, outermost first. `None`
    /// as for [`intern`](Self::intern). The caller must ensure that there are no more than
    /// [`Stacks::DEEPEST`] frames.
    #[must_use]
    pub fn intern_above(&self, callers: u32, frames: &[StackFrame], numbers: &mut Vec<u32>) -> Option<u32> {
        let mut index = self.index();
        frames.iter().rev().try_fold(callers, |parent, &frame| {
            let number = self.find_or_add(&mut index, StackNode::new(parent, frame))?;
            numbers.push(number);
            Some(number)
        })
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_or_add(&self, index: &mut Index, node: StackNode) -> Option<u32> {
        let words = node.words();
        let hash = Index::hash(words);
        let mut at = index.start_of(hash);
        while index.slots[at] != 0 {
            let number = index.slots[at] as u32;
            if index.slots[at] >> 32 == hash >> 32 && self.words(number) == words {
                return Some(number);
            }
            at = (at + 1) & (index.slots.len() - 1);
        }
        let number = self.add(words)?;
        index.slots[at] = (hash >> 32) << 32 | u64::from(number);
        index.used += 1;
        // Three quarters of the slots.
        if index.used * 4 > index.slots.len() * 3 {
            index.grow();
        }
        Some(number)
    }

    /// Appends a node. The caller must hold the lock of the index, so that nodes are written in the
    /// order of their numbers.
    fn add(&self, [parent, kind, subject, offset]: [u32; 4]) -> Option<u32> {
        let number = (self.space.allocate(stack::BYTES)? / stack::BYTES) as u32;
        let node = self.node(number);
        node.u32(stack::PARENT).store(parent, Ordering::Relaxed);
        node.u32(stack::SUBJECT).store(subject, Ordering::Relaxed);
        node.u32(stack::OFFSET).store(offset, Ordering::Relaxed);
        // Last, so that a reader finds a whole node or none.
        node.u32(stack::KIND).store(kind, Ordering::Release);
        Some(number)
    }

    fn words(&self, number: u32) -> [u32; 4] {
        let node = self.node(number);
        [stack::PARENT, stack::KIND, stack::SUBJECT, stack::OFFSET].map(|at| node.u32(at).load(Ordering::Relaxed))
    }

    /// The node with this number, which must be allocated already.
    fn node(&self, number: u32) -> Fields<{ stack::BYTES }> {
        let address = self.segment().content().wrapping_add(number as usize * stack::BYTES);
        // SAFETY: what was taken is backed and stays mapped for ever, and nodes are multiples of
        // eight bytes.
        unsafe { Fields::at(address) }
    }
}

impl Index {
    /// Fibonacci hashing. The rotation moves the high bits, which are mixed best, to the low end.
    fn hash(words: [u32; 4]) -> u64 {
        let mix = |mixed: u64, word: u32| (mixed ^ u64::from(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        // Slots keep the upper half; its best-mixed bits select the slot.
        words.into_iter().fold(0, mix).rotate_left(32)
    }

    /// The slot at which a search begins, from the upper half of a hash.
    fn start_of(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 2];
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            let mut at = self.start_of(slot);
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = slot;
        }
    }
}
