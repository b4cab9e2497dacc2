//! Memory for tree blocks: one mapped file for all threads, handed out in pieces.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::mapping::{CommitError, Segment};
use crate::layout::kind;

/// A thread's first piece; each further one is twice as large, up to [`LARGEST_PIECE`].
const FIRST_PIECE: u32 = 4 << 10;
const LARGEST_PIECE: u32 = 256 << 10;
/// Backed at the start, and kept ready at least.
const AHEAD_LEAST: usize = 2 << 20;
/// Kept ready at most.
const AHEAD_MOST: usize = 64 << 20;
/// Remainders of ended threads that are remembered.
const REMAINDERS: usize = 1024;

/// The arena. Addresses are offsets from [`base`](Self::base), multiples of 64.
#[derive(Debug)]
pub struct Arena {
    segment: Segment,
    limit: usize,
    used: AtomicUsize,
    used_at_last_look: AtomicUsize,
    disk_refused: AtomicBool,
    remainders: Mutex<Vec<Piece>>,
}

/// A piece of the arena, all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First byte.
    pub next: u32,
    /// Past the last byte.
    pub end: u32,
}

impl Arena {
    /// Creates the file with room for `limit` bytes of blocks (at most just under 4 GiB).
    ///
    /// # Errors
    /// Those of [`Segment::create`].
    pub fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let limit = (limit as usize).clamp(64 << 10, (4 << 30) - (1 << 20));
        let segment = Segment::create(path, kind::TREE, limit, AHEAD_LEAST)?;
        let limit = limit.min(segment.capacity());
        Ok(Self {
            segment,
            limit,
            // The first block stays empty: offset 0 means "no block".
            used: AtomicUsize::new(FIRST_PIECE as usize),
            used_at_last_look: AtomicUsize::new(0),
            disk_refused: AtomicBool::new(false),
            remainders: Mutex::new(Vec::with_capacity(REMAINDERS)),
        })
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Address of offset 0.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.segment.content()
    }

    /// Bytes handed out.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the limit is reached, so that waiting for more is useless.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used() + FIRST_PIECE as usize > self.limit
    }

    /// Whether the disk refused the last request for space.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.disk_refused.load(Ordering::Relaxed)
    }

    /// A piece for a thread whose last piece had `last` bytes (0 for its first), or `None` when
    /// nothing is backed yet. Does not block and does not allocate: safe in a hook.
    #[must_use]
    pub fn take(&self, last: u32) -> Option<Piece> {
        if last == 0
            && let Some(piece) = self.take_remainder()
        {
            return Some(piece);
        }
        let wanted = (last * 2).clamp(FIRST_PIECE, LARGEST_PIECE);
        self.bump(wanted).or_else(|| self.bump(FIRST_PIECE))
    }

    fn take_remainder(&self) -> Option<Piece> {
        self.remainders.try_lock().ok()?.pop()
    }

    fn bump(&self, bytes: u32) -> Option<Piece> {
        let end = self.segment.committed().min(self.limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            (used + bytes as usize <= end).then_some(used + bytes as usize)
        });
        let next = taken.ok()? as u32;
        Some(Piece { next, end: next + bytes })
    }

    /// Takes back what an ended thread did not use. Not for hooks.
    pub fn give_back(&self, piece: Piece) {
        let mut remainders = self.remainders.lock().unwrap_or_else(PoisonError::into_inner);
        if piece.end > piece.next && remainders.len() < REMAINDERS {
            remainders.push(piece);
        }
    }

    /// Backs space ahead of need: as much as was used since the last call, many times over. Blocks:
    /// for the helper thread.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub fn keep_ahead(&self) -> Result<(), CommitError> {
        let used = self.used();
        let grown = used.saturating_sub(self.used_at_last_look.swap(used, Ordering::Relaxed));
        let ahead = (grown * 16).clamp(AHEAD_LEAST, AHEAD_MOST).max((used / 4).min(AHEAD_MOST));
        let wanted = (used + ahead).min(self.limit);
        if self.segment.committed() >= (used + ahead / 2).min(self.limit) {
            return Ok(());
        }
        let outcome = self.segment.commit(wanted);
        self.disk_refused.store(outcome == Err(CommitError::Refused), Ordering::Relaxed);
        outcome
    }
}
