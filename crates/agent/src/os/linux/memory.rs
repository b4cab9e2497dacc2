//! Pages of this process, and reads of memory that may not be there.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Bytes of a page: either all of them are there or none.
pub(crate) const PAGE: usize = 4096;

/// So many words, all 0, which the system backs as they are touched.
pub(crate) fn zeroed_words(words: usize) -> Box<[AtomicU64]> {
    // SAFETY: zero is a valid value of each of them.
    unsafe { Box::new_zeroed_slice(words).assume_init() }
}

/// Maps new pages, which are zero and which the system backs as they are touched; `None` where it has none.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping at an address the kernel chooses.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED)
}

/// As [`map`], with a page behind that nobody can touch.
pub(crate) fn map_guarded(bytes: usize) -> Option<NonNull<u8>> {
    let start = map(bytes + PAGE)?;
    // SAFETY: the last page of a mapping that nobody uses yet.
    let failed = unsafe { libc::mprotect(start.byte_add(bytes).as_ptr().cast(), PAGE, libc::PROT_NONE) } != 0;
    (!failed).then_some(start)
}

/// Gives pages back for good.
///
/// # Safety
/// They were mapped by [`map`], and nobody uses them any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Gives the memory of pages back that stay mapped: they are zero from then on.
///
/// # Safety
/// They were mapped by [`map`] or [`map_guarded`], and nobody needs what they hold.
pub(crate) unsafe fn discard(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) };
}

/// Copies memory that may not be there; whether it was.
pub(crate) fn copy_if_there(address: usize, into: &mut [u8]) -> bool {
    static PROCESS: AtomicI32 = AtomicI32::new(0);
    let mut process = PROCESS.load(Ordering::Relaxed);
    if process == 0 {
        // SAFETY: no conditions. A forked child has no hooks.
        process = unsafe { libc::getpid() };
        PROCESS.store(process, Ordering::Relaxed);
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(address), iov_len: into.len() };
    // SAFETY: writes into `into` only; the other address is checked by the system.
    let copied = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    usize::try_from(copied) == Ok(into.len())
}
