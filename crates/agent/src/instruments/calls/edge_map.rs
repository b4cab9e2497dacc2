//! The edges of callers with many callees.
//!
//! Hooks find an edge by walking the blocks of its caller. For a caller that calls five thousand
//! functions in turn (an interpreter, a dispatcher, generated code) they would walk a thousand
//! blocks for each call. So for a caller with more than a few blocks they search only the first one
//! ([`block::MAPPED`](clrscope_recording::layout::block::MAPPED)); the edges of the other blocks
//! are in a map of the thread, by caller and function.
//!
//! The map is a table with open addressing in pages of the thread, which no other thread reads.
//! Hooks in assembly search it, and the slow path, on the same thread, inserts entries. An entry
//! holds a fingerprint of caller and function, and the place of the edge. For one function two
//! callers never have the same fingerprint, and an edge knows its function. So an entry is the
//! right one if both the fingerprint and the function of its edge match. The upper bits of the
//! fingerprint give the place of an entry; a search continues from there to the first free entry. A
//! free entry follows the last place, so a search needs no bound.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use clrscope_recording::writer::ThreadRecord;
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::os::memory::{PAGE, map, unmap};

use super::shared::Shared;

/// Factor by which the caller's place enters a fingerprint. It is odd, so that no two callers get
/// the same fingerprint.
pub(crate) const CALLER_FACTOR: u32 = 0x2c1b_3c6d;
/// Factor by which the function's index enters a fingerprint. It is near 2^32 divided by the golden
/// ratio, so that indices at any distance from each other are spread evenly.
pub(crate) const CALLEE_FACTOR: u32 = 0x1e37_79b1;

/// Bits of the first table's size.
const FIRST_BITS: u32 = 9;
/// Bits of the largest table's size: a gigabyte.
const MOST_BITS: u32 = 27;
/// Entries behind the table's last place, for entries that find the last places taken. The last one
/// stays free.
const SPARE: usize = PAGE / size_of::<Entry>();

/// One edge in the map. Hooks in assembly read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Entry {
    /// Place of the edge's child field in the arena; 0 for a free entry.
    pub(crate) edge: u32,
    pub(crate) fingerprint: u32,
}

/// The map of one thread, whose words lie in the thread's record.
pub(super) struct EdgeMap {
    record: ThreadRecord,
}

impl EdgeMap {
    /// Returns the map of the calling thread.
    ///
    /// # Safety
    /// `record` must be the calling thread's, and no other map of it may be in use.
    pub(super) unsafe fn of_thread(record: ThreadRecord) -> Self {
        Self { record }
    }

    /// Whether the map contains all edges that belong into it.
    pub(super) fn is_complete(&self) -> bool {
        self.record.u32(own::EDGE_MAP_LACKS).load(Ordering::Relaxed) == 0
    }

    /// The edge from `caller` to `function`, if it is in the map.
    pub(super) fn find(&self, shared: &Shared, caller: *mut u32, function: u32) -> Option<*mut u32> {
        let fingerprint = fingerprint(shared.place_in_arena(caller), function);
        let found = self.table()?.find(fingerprint, |edge| shared.key_of(shared.edge_at(edge)) == function)?;
        Some(shared.edge_at(found))
    }

    /// Inserts an edge that is not in the map; returns whether there was room. Does not call the
    /// heap; makes at most one system call for pages.
    pub(super) fn insert(&mut self, shared: &Shared, caller: *mut u32, function: u32, edge: *mut u32) -> bool {
        let fingerprint = fingerprint(shared.place_in_arena(caller), function);
        let entry = Entry { edge: shared.place_in_arena(edge), fingerprint };
        let fits = self.table_with_room().is_some_and(|mut table| table.put(entry)) || self.grow_and_put(entry);
        let counter = if fits { own::EDGE_MAP_LENGTH } else { own::EDGE_MAP_LACKS };
        let counter = self.record.u32(counter);
        // Only this thread writes it.
        counter.store(counter.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        fits
    }

    /// Frees the memory. Call it when the thread makes no more calls.
    pub(super) fn give_back(&mut self) {
        let table = self.table();
        self.record.u64(own::EDGE_MAP).store(0, Ordering::Relaxed);
        self.record.u32(own::EDGE_MAP_LENGTH).store(0, Ordering::Relaxed);
        if let Some(table) = table {
            table.unmap();
        }
    }

    fn table(&self) -> Option<Table> {
        let start = self.record.u64(own::EDGE_MAP).load(Ordering::Relaxed) as usize;
        let entries = NonNull::new(std::ptr::with_exposed_provenance_mut(start))?;
        Some(Table { entries, bits: u32::BITS - self.record.u32(own::EDGE_MAP_SHIFT).load(Ordering::Relaxed) })
    }

    /// The table, if it is less than two thirds full.
    fn table_with_room(&self) -> Option<Table> {
        let length = self.record.u32(own::EDGE_MAP_LENGTH).load(Ordering::Relaxed) as usize;
        self.table().filter(|table| (length + 1) * 3 <= table.places() * 2)
    }

    /// Takes a table of twice the size, or the first one.
    fn grow_and_put(&mut self, entry: Entry) -> bool {
        let old = self.table();
        let bits = old.map_or(FIRST_BITS, |old| old.bits + 1);
        let Some(mut table) = Table::map(bits) else { return false };
        let all_fit = old.is_none_or(|old| old.taken().all(|entry| table.put(entry))) && table.put(entry);
        if !all_fit {
            table.unmap();
            return false;
        }
        self.record.u64(own::EDGE_MAP).store(table.entries.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
        self.record.u32(own::EDGE_MAP_SHIFT).store(u32::BITS - bits, Ordering::Relaxed);
        if let Some(old) = old {
            old.unmap();
        }
        true
    }
}

/// The fingerprint by which an edge is searched. Hooks in assembly compute it too.
fn fingerprint(caller: u32, function: u32) -> u32 {
    caller.wrapping_mul(CALLER_FACTOR).wrapping_add(function.wrapping_mul(CALLEE_FACTOR))
}

/// A table of two to the power of `bits` places, and [`SPARE`] entries behind them.
#[derive(Clone, Copy)]
struct Table {
    entries: NonNull<Entry>,
    bits: u32,
}

impl Table {
    fn map(bits: u32) -> Option<Self> {
        let empty = (bits <= MOST_BITS).then(|| map(Self::bytes(bits))).flatten()?;
        Some(Self { entries: empty.cast(), bits })
    }

    fn unmap(self) {
        // SAFETY: the whole mapping that `map` made; the record names another table by now, or
        // none.
        unsafe { unmap(self.entries.cast(), Self::bytes(self.bits)) };
    }

    const fn bytes(bits: u32) -> usize {
        ((1 << bits) + SPARE) * size_of::<Entry>()
    }

    fn places(self) -> usize {
        1 << self.bits
    }

    /// All entries, free ones included.
    fn all(&self) -> &[Entry] {
        // SAFETY: the mapping holds so many entries, whose bytes were zero at first, and only the
        // thread that borrows the table here ever writes them.
        unsafe { std::slice::from_raw_parts(self.entries.as_ptr(), self.places() + SPARE) }
    }

    fn taken(&self) -> impl Iterator<Item = Entry> {
        self.all().iter().copied().filter(|entry| entry.edge != 0)
    }

    /// The entries from the place of this fingerprint up to the first free one.
    fn entries_behind(&self, fingerprint: u32) -> impl Iterator<Item = (usize, Entry)> {
        let first = (fingerprint >> (u32::BITS - self.bits)) as usize;
        self.all().iter().copied().enumerate().skip(first)
    }

    fn find(&self, fingerprint: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let taken = self.entries_behind(fingerprint).map(|(_, entry)| entry).take_while(|entry| entry.edge != 0);
        taken.filter(|entry| entry.fingerprint == fingerprint).map(|entry| entry.edge).find(|&edge| is_it(edge))
    }

    /// Inserts an entry; false where only the last entry is free, which stays free.
    fn put(&mut self, entry: Entry) -> bool {
        let free = self.entries_behind(entry.fingerprint).find(|(_, there)| there.edge == 0).map(|(place, _)| place);
        let free = free.filter(|&place| place + 1 < self.places() + SPARE);
        if let Some(place) = free {
            // SAFETY: within the mapping, which only this thread uses.
            unsafe { self.entries.add(place).write(entry) };
        }
        free.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(caller: u32, function: u32) -> Entry {
        Entry { edge: 20 + 64 * function, fingerprint: fingerprint(caller, function) }
    }

    /// The most steps that a search takes among the edges of these callers and functions.
    fn longest_search(table: &Table, pairs: impl Iterator<Item = (u32, u32)>) -> usize {
        let steps = |pair: (u32, u32)| {
            let wanted = fingerprint(pair.0, pair.1);
            table.entries_behind(wanted).take_while(|(_, entry)| entry.fingerprint != wanted).count()
        };
        pairs.map(steps).max().unwrap_or(0)
    }

    #[test]
    fn edges_are_found_by_caller_and_function() {
        let mut table = Table::map(FIRST_BITS).expect("memory");
        for function in 32..132 {
            assert!(table.put(entry(84, function)));
        }
        for function in 32..132 {
            let wanted = entry(84, function);
            assert_eq!(table.find(wanted.fingerprint, |edge| edge == wanted.edge), Some(wanted.edge));
            assert_eq!(table.find(wanted.fingerprint, |_| false), None, "the edge must be of that function");
            assert_eq!(table.find(fingerprint(148, function), |_| true), None, "another caller");
        }
        table.unmap();
    }

    /// Numbers of functions follow each other, or lie evenly apart (the tenth method of each of
    /// many classes); callers lie a multiple of a block's size apart and call the same functions.
    #[test]
    fn searches_stay_short_however_functions_are_numbered() {
        for (callers, functions, apart) in
            [(1, 20_000, 1), (1, 20_000, 2), (1, 20_000, 16), (1, 20_000, 1024), (100, 200, 1), (1000, 20, 3)]
        {
            let pairs = || {
                (0..callers).flat_map(move |caller| (0..functions).map(move |f| (20 + 128 * caller, 32 + f * apart)))
            };
            let mut table = Table::map(15).expect("memory");
            assert!(pairs().all(|(caller, function)| table.put(entry(caller, function))));
            let longest = longest_search(&table, pairs());
            assert!(longest < 64, "{callers} callers, {functions} functions {apart} apart: {longest} steps");
            table.unmap();
        }
    }

    #[test]
    fn the_last_entry_stays_free() {
        let mut table = Table::map(FIRST_BITS).expect("memory");
        let last = Entry { edge: 20, fingerprint: u32::MAX };
        let taken = (0..2 * SPARE).filter(|_| table.put(last)).count();
        assert_eq!(taken, SPARE, "one place and all that is behind it but the last");
        assert_eq!(table.find(u32::MAX, |_| false), None, "the search ends");
        table.unmap();
    }
}
