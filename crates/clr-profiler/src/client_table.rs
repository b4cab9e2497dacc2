//! An append-only table that hooks can read without a lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::ClientId;

/// The first block has this many entries; each further one doubles the table.
const FIRST_BLOCK: usize = 64;
const BLOCKS: usize = 26;

/// A table of functions' records. The table assigns a [`ClientId`] to each record, and finds the
/// record by this identifier.
///
/// ```
/// use clr_profiler::ClientTable;
/// let table = ClientTable::new();
/// let id = table.push("Shop.Checkout::Pay").expect("there is room");
/// assert_eq!(table.get(id), Some(&"Shop.Checkout::Pay"));
/// ```
///
/// [`push`](Self::push) is for the mapper. [`get`](Self::get) is for the hooks: it makes two loads,
/// takes no lock and allocates nothing. Entries are never moved or removed, so a hook that runs
/// after `Shutdown` finds its record too. The table holds up to about four thousand million
/// entries; further records get no identifier.
pub struct ClientTable<T> {
    blocks: [OnceLock<Box<[OnceLock<T>]>>; BLOCKS],
    len: AtomicUsize,
    grow: Mutex<()>,
}

impl<T> ClientTable<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS], len: AtomicUsize::new(0), grow: Mutex::new(()) }
    }

    /// Adds a record and returns its identifier for the hooks; `None` when the table is full.
    pub fn push(&self, record: T) -> Option<ClientId> {
        let _one_at_a_time = self.grow.lock().unwrap_or_else(PoisonError::into_inner);
        let index = self.len.load(Ordering::Relaxed);
        let (block, offset) = block_and_offset(index);
        let block = self.blocks.get(block)?.get_or_init(|| (0..block_len(block)).map(|_| OnceLock::new()).collect());
        block.get(offset)?.set(record).ok()?;
        self.len.store(index + 1, Ordering::Release);
        ClientId::new(index + 1)
    }

    /// The record of `id`; `None` for an identifier that this table did not assign.
    #[must_use]
    pub fn get(&self, id: ClientId) -> Option<&T> {
        let (block, offset) = block_and_offset(id.get() - 1);
        self.blocks.get(block)?.get()?.get(offset)?.get()
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All records so far, in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &T)> {
        (1..=self.len()).filter_map(|n| ClientId::new(n).and_then(|id| self.get(id).map(|record| (id, record))))
    }
}

impl<T> Default for ClientTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

const fn block_len(block: usize) -> usize {
    if block == 0 { FIRST_BLOCK } else { FIRST_BLOCK << (block - 1) }
}

/// Returns the block and the offset of an entry. A block holds as many entries as all blocks before
/// it together.
const fn block_and_offset(index: usize) -> (usize, usize) {
    let block = (usize::BITS - (index / FIRST_BLOCK).leading_zeros()) as usize;
    (block, if block == 0 { index } else { index - block_len(block) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_under_the_identifiers_they_were_given() {
        let table = ClientTable::new();
        let ids: Vec<_> = (0..5000).map(|n| table.push(n).unwrap()).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(table.get(*id), Some(&n));
        }
        assert_eq!(table.len(), 5000);
        assert_eq!(table.get(ClientId::new(5001).unwrap()), None);
        assert_eq!(table.get(ClientId::new(usize::MAX).unwrap()), None);
        assert!(table.iter().map(|(_, n)| *n).eq(0..5000));
    }

    #[test]
    fn hooks_may_read_while_the_mapper_adds() {
        let table = ClientTable::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..2000_usize {
                        let id = table.push(n).unwrap();
                        assert_eq!(table.get(id), Some(&n));
                    }
                });
            }
        });
        assert_eq!(table.len(), 8000);
    }
}
