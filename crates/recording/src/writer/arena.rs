//! Memory for tree blocks: one mapped file for all threads, allocated in pieces.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::growing::{AHEAD_LEAST, Growing};
use super::mapping::{CommitError, Segment};
use crate::layout::kind;

/// Size of a thread's first piece; each further piece is twice as large, up to [`LARGEST_PIECE`].
const FIRST_PIECE: u32 = 4 << 10;
const LARGEST_PIECE: u32 = 256 << 10;
/// Maximum number of remembered remainders of pieces of ended threads.
const REMAINDERS: usize = 1024;

/// The arena. Addresses are offsets from [`base`](Self::base), multiples of 64.
#[derive(Debug)]
pub struct Arena {
    space: Growing,
    remainders: Mutex<Vec<Piece>>,
}

/// A piece of the arena, all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the piece's first byte.
    pub next: u32,
    /// Offset of the byte after the piece's last one.
    pub end: u32,
}

impl Arena {
    /// Creates the file with room for `limit` bytes of blocks (at most just under 4 GiB).
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let limit = (limit as usize).clamp(64 << 10, (4 << 30) - (1 << 20));
        let segment = Segment::create(path, kind::TREE, limit, AHEAD_LEAST)?;
        // The first block stays empty: offset 0 means "no block".
        let space = Growing::new(segment, limit, FIRST_PIECE as usize);
        Ok(Self { space, remainders: Mutex::new(Vec::with_capacity(REMAINDERS)) })
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        self.space.segment()
    }

    /// Address of offset 0.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.segment().content()
    }

    /// Number of bytes allocated so far.
    #[must_use]
    pub fn used(&self) -> usize {
        self.space.used()
    }

    /// Whether the limit is reached. Then waiting for more space is useless.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used() + FIRST_PIECE as usize > self.space.limit()
    }

    /// Whether the disk refused the last request for space.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.space.is_refused()
    }

    /// Allocates a piece for a thread whose last piece had `last` bytes (0 for its first); `None`
    /// when no free space is backed yet. Does not block and calls no allocator: safe in a hook.
    #[must_use]
    pub fn allocate_piece(&self, last: u32) -> Option<Piece> {
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
        let next = self.space.allocate(bytes as usize)? as u32;
        Some(Piece { next, end: next + bytes })
    }

    /// Takes back the unused rest of an ended thread's piece. Not for hooks.
    pub fn give_back(&self, piece: Piece) {
        let mut remainders = self.remainders.lock().unwrap_or_else(PoisonError::into_inner);
        if piece.end > piece.next && remainders.len() < REMAINDERS {
            remainders.push(piece);
        }
    }

    /// Backs space ahead of need: many times the amount used since the last call. Blocks, so only
    /// the helper thread calls it.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub fn keep_ahead(&self) -> Result<(), CommitError> {
        self.space.keep_ahead(AHEAD_LEAST)
    }
}
