//! The agent's allocator: the C library's, and a reserve for when there is no memory.
//!
//! A program may run into a limit of its address space (`ulimit -v`) and go on: the runtime throws
//! `OutOfMemoryException`, and much code of the program can do without more memory. Rust's default
//! would end the program if the agent then needs a few bytes in a callback. So they come from a
//! reserve, which is part of the library's own variables and costs nothing until it is used.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the reserve of the agent: enough for tables of callbacks that double some hundred kB.
const BYTES: usize = 1 << 20;

/// The C library's allocator, with a reserve of its own. For `#[global_allocator]`.
pub struct WithReserve {
    reserve: Reserve<BYTES>,
}

impl WithReserve {
    /// Creates the allocator with an unused reserve.
    #[expect(clippy::new_without_default, reason = "it is for a static alone")]
    pub const fn new() -> Self {
        Self { reserve: Reserve::new() }
    }
}

// SAFETY: memory comes from the system's allocator or from the reserve, which hands out each byte
// once until it is given back; each goes back to where it came from.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { self.reserve.take(layout) } else { memory }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if memory.is_null() { self.reserve.take_zeroed(layout) } else { memory }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if self.reserve.has(memory) {
            self.reserve.give_back(memory, layout);
        } else {
            // SAFETY: as the caller promises; it is not from the reserve.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let is_reserved = self.reserve.has(memory);
        if !is_reserved {
            // SAFETY: as the caller promises; it is not from the reserve.
            let moved = unsafe { System.realloc(memory, layout, bytes) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises that this size is possible with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        // SAFETY: as the caller promises, `bytes` is not zero.
        let moved = if is_reserved { unsafe { self.alloc(wanted) } } else { self.reserve.take(wanted) };
        if !moved.is_null() {
            // SAFETY: both are at least so long, and the new one is memory that nothing else uses.
            unsafe { ptr::copy_nonoverlapping(memory, moved, layout.size().min(bytes)) };
            // SAFETY: as the caller promises; it is used no more.
            unsafe { self.dealloc(memory, layout) };
        }
        moved
    }
}

/// Memory that is handed out from its beginning to its end. The last piece can be used again when
/// it is given back, and all of it when everything was given back.
#[repr(C, align(4096))]
struct Reserve<const BYTES: usize> {
    memory: UnsafeCell<[u8; BYTES]>,
    /// Number of pieces in use (upper half), and the bytes from the beginning that are used.
    used: AtomicU64,
}

// SAFETY: a piece of the memory belongs to one caller until it gives the piece back.
unsafe impl<const BYTES: usize> Sync for Reserve<BYTES> {}

impl<const BYTES: usize> Reserve<BYTES> {
    const fn new() -> Self {
        assert!(BYTES <= u32::MAX as usize, "half a word counts them");
        Self { memory: UnsafeCell::new([0; BYTES]), used: AtomicU64::new(0) }
    }

    fn start(&self) -> *mut u8 {
        self.memory.get().cast()
    }

    fn has(&self, memory: *mut u8) -> bool {
        self.offset(memory) < BYTES
    }

    /// Offset from the beginning; beyond the end for other memory.
    fn offset(&self, memory: *mut u8) -> usize {
        memory.addr().wrapping_sub(self.start().addr())
    }

    /// Takes a piece; null where there is no room.
    fn take(&self, layout: Layout) -> *mut u8 {
        let mut offset = 0;
        let taken = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            let (pieces, bytes) = halves(used);
            // The memory begins at a page.
            offset = bytes.checked_next_multiple_of(layout.align())?;
            let end = offset.checked_add(layout.size()).filter(|end| *end <= BYTES)?;
            (layout.align() <= align_of::<Self>()).then(|| whole(pieces + 1, end))
        });
        // SAFETY: it ends within the memory.
        taken.map_or(ptr::null_mut(), |_| unsafe { self.start().add(offset) })
    }

    fn take_zeroed(&self, layout: Layout) -> *mut u8 {
        let memory = self.take(layout);
        if !memory.is_null() {
            // SAFETY: the piece is so long, and the caller's alone.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    fn give_back(&self, memory: *mut u8, layout: Layout) {
        let offset = self.offset(memory);
        let less = |used| {
            let (pieces, bytes) = halves(used);
            let left = match pieces {
                0 | 1 => 0,
                _ if bytes == offset + layout.size() => offset,
                _ => bytes,
            };
            Some(whole(pieces.saturating_sub(1), left))
        };
        let _ = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

fn halves(used: u64) -> (u64, usize) {
    (used >> 32, used as u32 as usize)
}

fn whole(pieces: u64, bytes: usize) -> u64 {
    pieces << 32 | bytes as u64
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).expect("a layout")
    }

    #[test]
    fn a_reserve_ends_and_begins_again_when_everything_is_back() {
        let reserve = Reserve::<4096>::new();
        let pieces: Vec<*mut u8> =
            std::iter::from_fn(|| Some(reserve.take(layout(100, 64)))).take_while(|piece| !piece.is_null()).collect();
        assert_eq!(pieces.len(), 32);
        for pair in pieces.windows(2) {
            assert_eq!(pair[1].addr() - pair[0].addr(), 128);
        }
        assert!(pieces.iter().all(|piece| reserve.has(*piece) && piece.addr().is_multiple_of(64)));
        assert!(reserve.take(layout(1, 1)).addr() != 0, "the last piece left some bytes");
        assert!(reserve.take(layout(100, 1)).is_null());
        pieces.iter().for_each(|piece| reserve.give_back(*piece, layout(100, 64)));
        assert!(reserve.take(layout(4000, 1)).is_null(), "one byte is still in use");
        reserve.give_back(reserve.start().wrapping_add(31 * 128 + 100), layout(1, 1));
        assert!(!reserve.take(layout(4096, 4096)).is_null());
        assert!(!reserve.has(std::ptr::from_ref(&reserve.used).cast_mut().cast()), "what lies behind is not in it");
    }

    #[test]
    fn the_last_piece_is_used_again_and_zeroed_where_that_is_wanted() {
        let reserve = Reserve::<4096>::new();
        let first = reserve.take(layout(16, 8));
        let second = reserve.take(layout(4000, 8));
        // SAFETY: it has so many bytes.
        unsafe { second.write_bytes(0xA5, 4000) };
        reserve.give_back(second, layout(4000, 8));
        let again = reserve.take_zeroed(layout(4000, 8));
        assert_eq!(again, second);
        // SAFETY: it has so many bytes.
        assert!(unsafe { std::slice::from_raw_parts(again, 4000) }.iter().all(|byte| *byte == 0));
        reserve.give_back(first, layout(16, 8));
        reserve.give_back(again, layout(4000, 8));
        assert_eq!(reserve.used.into_inner(), 0);
    }

    #[test]
    fn threads_never_get_the_same_piece() {
        let reserve = Reserve::<65_536>::new();
        thread::scope(|scope| {
            for number in 1..=8_u8 {
                let reserve = &reserve;
                scope.spawn(move || {
                    for round in 0..10_000_usize {
                        let size = layout(8 + round % 300, 8);
                        let piece = reserve.take(size);
                        // While another thread always has a piece, nothing is free again.
                        if piece.is_null() {
                            continue;
                        }
                        // SAFETY: the piece is so long, and this thread's alone.
                        let bytes = unsafe {
                            piece.write_bytes(number, size.size());
                            std::slice::from_raw_parts(piece, size.size())
                        };
                        assert!(bytes.iter().all(|byte| *byte == number));
                        reserve.give_back(piece, size);
                    }
                });
            }
        });
        assert_eq!(reserve.used.into_inner(), 0);
    }

    #[test]
    fn memory_of_the_reserve_grows_back_into_the_systems() {
        static ALLOCATOR: WithReserve = WithReserve::new();
        let allocator = &ALLOCATOR;
        let piece = allocator.reserve.take(layout(3, 1));
        // SAFETY: it has three bytes; then what grew is used, and given back once.
        unsafe {
            piece.copy_from_nonoverlapping(b"abc".as_ptr(), 3);
            let grown = allocator.realloc(piece, layout(3, 1), 5000);
            assert!(!allocator.reserve.has(grown));
            assert_eq!(std::slice::from_raw_parts(grown, 3), b"abc");
            allocator.dealloc(grown, layout(5000, 1));
        }
        assert_eq!(allocator.reserve.used.load(Ordering::Relaxed), 0);
    }

    /// More than any address space has: the system refuses it, and so does the reserve.
    #[test]
    fn what_even_the_reserve_lacks_is_refused() {
        static ALLOCATOR: WithReserve = WithReserve::new();
        let allocator = &ALLOCATOR;
        let huge = layout(1 << 60, 8);
        // SAFETY: nothing is used of what is refused; the small one keeps its content and is given
        // back once.
        unsafe {
            assert!(allocator.alloc(huge).is_null());
            assert!(allocator.alloc_zeroed(huge).is_null());
            let small = allocator.alloc_zeroed(layout(8, 8));
            assert!(allocator.realloc(small, layout(8, 8), 1 << 60).is_null());
            assert_eq!(small.cast::<u64>().read(), 0);
            allocator.dealloc(small, layout(8, 8));
        }
        assert_eq!(allocator.reserve.used.load(Ordering::Relaxed), 0);
    }
}
