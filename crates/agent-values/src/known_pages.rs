//! Pages that can be read without asking the system, because the system has copied from them before
//! and they can't disappear.
//!
//! Targets of spans and references on unknown ground (see [`Ground`](super::memory::Ground)) are
//! copied by the system, which takes a microsecond each time. But most targets lie in a few hundred
//! pages of the heap, and the runtime gives heap pages back only during a collection. A collection
//! never begins while a hook runs, and [`collections`](super::collections) report one that sweeps
//! concurrently with the program. So a page that the system has copied from is noted with the
//! current number of collections, and read directly until the next collection.
//!
//! The server collector has threads that may at any time give back the memory that a region
//! reserves behind its objects. There, only memory that was in use at the end of the last
//! collection is noted. Images of modules that are never unloaded, and objects that are never
//! collected, are noted for good. Other memory is never noted, as it may disappear at any time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use clr_profiler::HeapRange;
use clrscope_agent_base::os::memory::{PAGE, copy_if_there};
use clrscope_agent_base::os::threads;

/// Most pages that are noted. Two pages with the same table index displace each other.
const PAGES: usize = 8192;
/// End of a process's addresses.
const ADDRESSES: usize = 1 << 47;
/// Bits of a note for the number of collections; the bits above are for the page.
const TAG_BITS: u32 = 28;
/// Tag of pages that stay for good. No tag is 0, the value of an empty entry.
const FOR_GOOD: u64 = 1;
/// Largest reserved size of a piece of a heap that consists of regions. The unused rest of a larger
/// piece may be given back at any time.
const REGION: usize = 32 << 20;
/// Beginning of the thread names of the server collector, as in .NET 8 to 10.
const SERVER_THREADS: &str = ".NET Server GC";
/// Maximum size of an image.
const IMAGE: usize = 1 << 30;

static KNOWN: KnownPages = KnownPages::new();

/// A range of addresses whose pages may be noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: usize,
    end: usize,
}

impl Piece {
    /// A piece of the heap that uses some of its reserved bytes. `keeps_reserved`: the rest of a
    /// region is given back only during collections.
    fn of_heap(start: usize, used: usize, reserved: usize, keeps_reserved: bool) -> Self {
        let bytes = if keeps_reserved && reserved <= REGION { reserved } else { used };
        Self { start, end: start.saturating_add(bytes) }
    }
}

/// Pieces by their start; each list has no overlaps.
#[derive(Debug)]
struct Pieces {
    /// Pieces of the heap, and the number of collections at that time.
    heap: Vec<Piece>,
    epoch: u32,
    for_good: Vec<Piece>,
}

#[derive(Debug)]
struct KnownPages {
    notes: [AtomicU64; PAGES],
    pieces: RwLock<Pieces>,
    /// Whether a page outside of all pieces was seen: the heap may have grown.
    is_behind: AtomicBool,
}

/// Whether this many bytes from `address` on lie in pages that are known to be mapped. `epoch` is
/// the current number of collections. For hooks.
#[inline]
pub(super) fn are_there(address: usize, bytes: usize, epoch: Option<u32>) -> bool {
    KNOWN.hold(address, bytes, epoch)
}

/// Notes that the system has copied this many bytes. `epoch` is the number of collections before
/// the copy. For hooks.
pub(super) fn found(address: usize, bytes: usize, epoch: Option<u32>) {
    KNOWN.note(address, bytes, epoch);
}

/// Whether a hook saw a page that may belong to a part of the heap not reported yet.
pub(super) fn is_behind() -> bool {
    KNOWN.is_behind.load(Ordering::Relaxed)
}

/// Sets the ranges of the heap, as the runtime gave them at the collection number `epoch`.
pub(super) fn heap_is(ranges: &[HeapRange], epoch: u32) {
    let keeps_reserved = !has_server_collector();
    let piece = |range: &HeapRange| Piece::of_heap(range.start, range.bytes, range.reserved_bytes, keeps_reserved);
    KNOWN.heap_is(ranges.iter().map(piece).collect(), epoch);
}

/// Whether the process has the server collector. It is recognised by its threads, which exist
/// before the heap does. Computed once.
fn has_server_collector() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER
        .get_or_init(|| threads::all().into_iter().any(|thread| threads::name_of(thread).starts_with(SERVER_THREADS)))
}

/// Notes ranges of objects that are never collected; their memory stays mapped.
pub(super) fn stay(ranges: &[HeapRange]) {
    ranges.iter().for_each(|range| KNOWN.stays(range.start, range.reserved_bytes));
}

/// Notes the image of a module that is never unloaded: each section at its loaded address.
pub(super) fn image_stays(base: usize) {
    if let Some(bytes) = image_bytes(base) {
        KNOWN.stays(base, bytes);
    }
}

/// Bytes of an image in memory, from its own header.
fn image_bytes(base: usize) -> Option<usize> {
    let word = |at: usize| {
        let mut word = [0; 4];
        copy_if_there(base.checked_add(at)?, &mut word).then(|| u32::from_le_bytes(word) as usize)
    };
    if word(0)? & 0xffff != 0x5a4d {
        return None;
    }
    let header = word(0x3c)?;
    if word(header)? != 0x4550 {
        return None;
    }
    word(header + 24 + 56).filter(|bytes| *bytes <= IMAGE)
}

impl KnownPages {
    const fn new() -> Self {
        let pieces = Pieces { heap: Vec::new(), epoch: 0, for_good: Vec::new() };
        Self {
            notes: [const { AtomicU64::new(0) }; PAGES],
            pieces: RwLock::new(pieces),
            is_behind: AtomicBool::new(true),
        }
    }

    fn hold(&self, address: usize, bytes: usize, epoch: Option<u32>) -> bool {
        let Some(mut pages) = pages(address, bytes) else { return false };
        pages.all(|page| {
            let note = self.note_of_page(page).load(Ordering::Relaxed);
            note == noted(page, FOR_GOOD) || epoch.is_some_and(|epoch| note == noted(page, tag(epoch)))
        })
    }

    fn note(&self, address: usize, bytes: usize, epoch: Option<u32>) {
        let Some(pages) = pages(address, bytes) else { return };
        // Another thread may be changing the lists. The page is then noted another time.
        let Ok(pieces) = self.pieces.try_read() else { return };
        for page in pages {
            let tag = if holds(&pieces.for_good, page) {
                FOR_GOOD
            } else if epoch == Some(pieces.epoch) && holds(&pieces.heap, page) {
                tag(pieces.epoch)
            } else {
                self.is_behind.store(true, Ordering::Relaxed);
                continue;
            };
            self.note_of_page(page).store(noted(page, tag), Ordering::Relaxed);
        }
    }

    fn heap_is(&self, mut heap: Vec<Piece>, epoch: u32) {
        heap.sort_unstable_by_key(|piece| piece.start);
        let mut pieces = self.pieces.write().unwrap_or_else(PoisonError::into_inner);
        // An answer from before a collection may arrive after the answer from its end.
        if epoch.wrapping_sub(pieces.epoch) <= u32::MAX / 2 {
            (pieces.heap, pieces.epoch) = (heap, epoch);
            self.is_behind.store(false, Ordering::Relaxed);
        }
    }

    fn stays(&self, start: usize, bytes: usize) {
        let piece = Piece { start, end: start.saturating_add(bytes) };
        let mut pieces = self.pieces.write().unwrap_or_else(PoisonError::into_inner);
        let at = pieces.for_good.partition_point(|other| other.start < start);
        match pieces.for_good.get_mut(at) {
            Some(known) if known.start == start => known.end = known.end.max(piece.end),
            _ => pieces.for_good.insert(at, piece),
        }
    }

    fn note_of_page(&self, page: usize) -> &AtomicU64 {
        &self.notes[(page ^ page >> 13) % PAGES]
    }
}

/// Whether a whole page lies in one piece.
fn holds(pieces: &[Piece], page: usize) -> bool {
    let (start, end) = (page * PAGE, page * PAGE + PAGE);
    let at = pieces.partition_point(|piece| piece.start <= start);
    // A piece of the heap begins some bytes into its first page, but the page belongs to it.
    let first = pieces.get(at).is_some_and(|piece| piece.start < end && piece.end >= end);
    first || at.checked_sub(1).is_some_and(|at| pieces[at].end >= end)
}

/// The pages of this many bytes, if the addresses can belong to a process.
fn pages(address: usize, bytes: usize) -> Option<std::ops::RangeInclusive<usize>> {
    let last = address.checked_add(bytes.checked_sub(1)?)?;
    (last < ADDRESSES).then_some(address / PAGE..=last / PAGE)
}

fn tag(epoch: u32) -> u64 {
    FOR_GOOD + 1 + u64::from(epoch) % ((1 << TAG_BITS) - 2)
}

fn noted(page: usize, tag: u64) -> u64 {
    (page as u64) << TAG_BITS | tag
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP: usize = 0x7f00_0000_0000;

    fn known() -> Box<KnownPages> {
        let known = Box::new(KnownPages::new());
        let large = Piece::of_heap(HEAP + 64 * PAGE, PAGE, 2 * REGION, true);
        known.heap_is(vec![large, Piece::of_heap(HEAP + 40, 100, 8 * PAGE - 40, true)], 7);
        known
    }

    #[test]
    fn a_page_of_the_heap_is_known_until_there_is_a_collection() {
        let known = known();
        assert!(!known.hold(HEAP, 8, Some(7)), "nobody has read there");
        known.note(HEAP + 100, 8, Some(7));
        assert!(known.hold(HEAP + 8, 4000, Some(7)) && !known.hold(HEAP + 4000, 100, Some(7)));
        known.note(HEAP + 4090, 300, Some(7));
        assert!(known.hold(HEAP + 4000, 300, Some(7)));
        for epoch in [None, Some(8), Some(6)] {
            assert!(!known.hold(HEAP + 100, 8, epoch), "{epoch:?}");
        }
        known.note(HEAP + 2 * PAGE, 8, None);
        assert!(!known.hold(HEAP + 2 * PAGE, 8, Some(7)), "read while a collection was under way");
        known.note(HEAP + 3 * PAGE, 8, Some(8));
        assert!(!known.hold(HEAP + 3 * PAGE, 8, Some(8)), "where the heap lies now nobody has said");
    }

    #[test]
    fn an_answer_from_before_a_collection_does_not_count_after_it() {
        let known = known();
        known.heap_is(vec![Piece::of_heap(HEAP, PAGE, PAGE, true)], 8);
        known.heap_is(vec![Piece::of_heap(HEAP + 16 * PAGE, PAGE, PAGE, true)], 7);
        known.note(HEAP, 8, Some(8));
        known.note(HEAP + 16 * PAGE, 8, Some(8));
        assert!(known.hold(HEAP, 8, Some(8)) && !known.hold(HEAP + 16 * PAGE, 8, Some(8)));
    }

    #[test]
    fn memory_that_may_go_at_any_time_is_never_known() {
        let known = known();
        assert!(!known.is_behind.load(Ordering::Relaxed));
        // After a piece, before it, and in the unused reserve of a large piece.
        for elsewhere in [HEAP + 8 * PAGE, HEAP - PAGE, HEAP + 65 * PAGE, 0x1000, 0] {
            known.note(elsewhere, 8, Some(7));
            assert!(!known.hold(elsewhere, 8, Some(7)), "{elsewhere:x}");
        }
        assert!(known.is_behind.load(Ordering::Relaxed));
        known.note(HEAP + 64 * PAGE, 8, Some(7));
        assert!(known.hold(HEAP + 64 * PAGE, 8, Some(7)));
    }

    #[test]
    fn what_the_servers_collector_gives_back_between_collections_is_never_known() {
        let known = KnownPages::new();
        known.heap_is(vec![Piece::of_heap(HEAP, 2 * PAGE, 8 * PAGE, false)], 7);
        for page in [HEAP + PAGE, HEAP + 2 * PAGE] {
            known.note(page, 8, Some(7));
        }
        assert!(known.hold(HEAP + PAGE, 8, Some(7)), "in use");
        assert!(!known.hold(HEAP + 2 * PAGE, 8, Some(7)), "reserved");
    }

    #[test]
    fn addresses_that_no_process_has_are_never_known() {
        let known = known();
        known.note(HEAP, 8, Some(7));
        assert!(known.hold(HEAP, 8, Some(7)));
        for high in [1 << 47, 1 << 48, 1 << 63, 0xffff_8000_0000_0000] {
            known.note(HEAP | high, 8, Some(7));
            assert!(!known.hold(HEAP | high, 8, Some(7)), "{high:x}");
        }
        assert!(!known.hold(usize::MAX - 3, 8, Some(7)) && !known.hold(HEAP, 0, Some(7)));
        for epoch in [None, Some(0), Some(7), Some(u32::MAX)] {
            assert!(!known.hold(0, 8, epoch), "the page of null, {epoch:?}");
        }
    }

    #[test]
    fn what_stays_for_good_outlives_collections() {
        let known = known();
        known.stays(HEAP + 128 * PAGE, PAGE);
        known.stays(HEAP + 128 * PAGE, 4 * PAGE);
        known.note(HEAP + 130 * PAGE, 8, Some(7));
        for epoch in [None, Some(7), Some(8)] {
            assert!(known.hold(HEAP + 130 * PAGE, 8, epoch), "{epoch:?}");
        }
        known.note(HEAP + 132 * PAGE, 8, Some(7));
        assert!(!known.hold(HEAP + 132 * PAGE, 8, Some(7)));
    }

    #[test]
    fn an_image_says_how_large_it_is() {
        let mut image = vec![0_u8; 1024];
        let base = |image: &[u8]| image.as_ptr().expose_provenance();
        assert_eq!(image_bytes(base(&image)), None);
        image[..2].copy_from_slice(b"MZ");
        image[0x3c] = 0x80;
        image[0x80..0x82].copy_from_slice(b"PE");
        image[0x80 + 80..0x80 + 84].copy_from_slice(&0x1_2000_u32.to_le_bytes());
        assert_eq!(image_bytes(base(&image)), Some(0x1_2000));
        image[0x3c..0x40].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(image_bytes(base(&image)), None);
        assert_eq!(image_bytes(0), None);
    }
}
