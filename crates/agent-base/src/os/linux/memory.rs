//! Pages of this process, and reads of memory that may be unmapped.

use std::iter;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Bytes of a page. A page is mapped as a whole or not at all.
pub const PAGE: usize = 4096;

/// Allocates this many words, all 0. The system backs them when they are touched.
pub fn zeroed_words(words: usize) -> Box<[AtomicU64]> {
    // SAFETY: zero is a valid value of each of them.
    unsafe { Box::new_zeroed_slice(words).assume_init() }
}

/// Maps new pages. They are zero, and the system backs them when they are touched. `None` if the
/// system has no memory.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping at an address the kernel chooses.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED)
}

/// Like [`map`], followed by a page that cannot be accessed.
pub fn map_guarded(bytes: usize) -> Option<NonNull<u8>> {
    let start = map(bytes + PAGE)?;
    // SAFETY: the last page of a mapping that is not used yet.
    let failed = unsafe { libc::mprotect(start.byte_add(bytes).as_ptr().cast(), PAGE, libc::PROT_NONE) } != 0;
    (!failed).then_some(start)
}

/// Unmaps pages.
///
/// # Safety
/// The pages were mapped by [`map`] and are no longer used.
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Gives the memory of pages back and keeps them mapped: they are zero from then on.
///
/// # Safety
/// The pages were mapped by [`map`] or [`map_guarded`], and their contents are no longer needed.
pub unsafe fn discard(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) };
}

/// Copies memory that may be unmapped. Returns whether all of it was mapped.
pub fn copy_if_there(address: usize, into: &mut [u8]) -> bool {
    let there = [piece(address, into.len())];
    copy(&there, into) == into.len()
}

/// The word at an address; `None` if it is unmapped.
pub fn word_if_there(address: usize) -> Option<usize> {
    let mut word = [0; size_of::<usize>()];
    copy_if_there(address, &mut word).then(|| usize::from_ne_bytes(word))
}

/// Copies memory up to the first unmapped page. Returns the number of bytes copied.
pub fn copy_while_there(address: usize, into: &mut [u8]) -> usize {
    let end = address.saturating_add(into.len());
    let page_end = |start: usize| (start | (PAGE - 1)).saturating_add(1);
    let starts = iter::successors(Some(address), |&start| Some(page_end(start))).take_while(|&start| start < end);
    // The system copies a piece that ends in an unmapped page wholly or not at all
    // (process_vm_readv(2)).
    let pages: Vec<_> = starts.map(|start| piece(start, page_end(start).min(end) - start)).collect();
    copy(&pages, into)
}

fn piece(address: usize, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: ptr::with_exposed_provenance_mut(address), iov_len: bytes }
}

/// Copies pieces of this process's memory as far as they are mapped. Returns the number of bytes.
fn copy(from: &[libc::iovec], into: &mut [u8]) -> usize {
    static PROCESS: AtomicI32 = AtomicI32::new(0);
    let mut process = PROCESS.load(Ordering::Relaxed);
    if process == 0 {
        // SAFETY: no conditions. A forked child has no hooks.
        process = unsafe { libc::getpid() };
        PROCESS.store(process, Ordering::Relaxed);
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: writes into `into` only; the other addresses are checked by the system.
    let copied = unsafe { libc::process_vm_readv(process, &local, 1, from.as_ptr(), from.len() as u64, 0) };
    usize::try_from(copied).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_up_to_the_page_that_is_not_there() {
        let start = map_guarded_pages();
        let mut bytes = vec![0; 3 * PAGE];
        let copied = |from: usize, into: &mut [u8]| (copy_while_there(from, into), copy_if_there(from, into));
        assert_eq!(copied(start + 16, &mut bytes), (2 * PAGE - 16, false));
        assert_eq!(copied(start + 16, &mut bytes[..100]), (100, true));
        assert_eq!(copied(start + 2 * PAGE, &mut bytes), (0, false));
        assert_eq!(copied(usize::MAX - 8, &mut bytes), (0, false));
    }

    /// Two mapped pages before one that can't be read.
    fn map_guarded_pages() -> usize {
        let start = map(3 * PAGE).expect("memory");
        // SAFETY: the last of the pages, which is unused.
        let done = unsafe { libc::mprotect(start.as_ptr().add(2 * PAGE).cast(), PAGE, libc::PROT_NONE) };
        assert_eq!(done, 0);
        start.as_ptr().expose_provenance()
    }
}
