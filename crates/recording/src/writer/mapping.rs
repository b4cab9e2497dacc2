//! A segment: a file that is mapped shared up to its maximum size; disk space is added as it is
//! needed.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::bounds::{self, Bound};
use crate::layout::{HEADER_BYTES, MAGIC, VERSION, header};

/// The most space that one call requests from the disk (a larger request would stall the helper
/// thread).
const PIECE: usize = 4 << 20;

/// The system is asked to back large segments with pages of this size, and they grow by multiples
/// of it. Hooks walk a tree of hundreds of megabytes in random order, and with small pages nearly
/// every step also misses the TLB. Where the file system has no large pages (ext4 and XFS do; Linux
/// 6.16 and 5.18) nothing changes.
const LARGE_PAGE: usize = 2 << 20;
/// A segment is large if it can grow to this size and begins with a large page.
const LARGE_FROM: usize = 64 << 20;

/// `errno` of the first error that kept any segment of this process from growing; a negative value
/// represents a [`Bound`].
static FIRST_REFUSAL: AtomicI32 = AtomicI32::new(0);
const OF_SIZE: i32 = -1;
const OF_RESERVE: i32 = -2;

/// File, start and bytes of each mapping of this process.
static MAPPED: Mutex<Vec<(PathBuf, usize, usize)>> = Mutex::new(Vec::new());

/// Removes the mappings of all segments in `folder`, after a recording has ended while the process
/// runs on.
///
/// # Safety
/// After this call nothing may use any of these segments, nor any record, chunk or field taken from
/// them.
pub unsafe fn unmap_all_in(folder: &Path) {
    let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    mapped.retain(|(file, start, bytes)| {
        let is_in = file.starts_with(folder);
        if is_in {
            // SAFETY: our own mapping, which is no longer used.
            unsafe { libc::munmap(ptr::with_exposed_provenance_mut(*start), *bytes) };
        }
        !is_in
    });
}

/// Sets the maximum size of the recording in `folder`, in bytes. Forgets why an earlier recording
/// of this process could not grow.
pub fn limit_size(folder: &Path, most: u64) {
    bounds::set_size(folder, most);
    FIRST_REFUSAL.store(0, Ordering::Relaxed);
}

/// Reason of the first failure to grow a segment of this process: for instance a full disk, a
/// limit, or a program that has changed its user and may no longer open its own recording.
#[must_use]
pub fn first_refusal() -> Option<io::Error> {
    match FIRST_REFUSAL.load(Ordering::Relaxed) {
        0 => None,
        OF_SIZE => Some(Bound::Size.error()),
        OF_RESERVE => Some(Bound::Reserve.error()),
        number => Some(io::Error::from_raw_os_error(number)),
    }
}

fn note_refusal(refusal: &Refusal) {
    let number = match refusal {
        Refusal::Bound(Bound::Size) => OF_SIZE,
        Refusal::Bound(Bound::Reserve) => OF_RESERVE,
        Refusal::System(error) => error.raw_os_error().unwrap_or(libc::EIO),
    };
    // Only the first error counts; later ones are usually the same.
    let _ = FIRST_REFUSAL.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
}

/// Reason why a segment could not grow.
enum Refusal {
    Bound(Bound),
    System(io::Error),
}

impl From<Bound> for Refusal {
    fn from(bound: Bound) -> Self {
        Self::Bound(bound)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// A mapped segment. All methods may be called from any thread.
///
/// The mapping stays when the segment is dropped: hooks of a dying process may still store into it.
/// Only [`unmap_all_in`] removes it.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    start: *mut u8,
    reserved: usize,
    /// Granularity in bytes of the segment's size in the file, if there is room.
    page: usize,
    committed: AtomicU64,
    /// Offset from which the content is in private memory and is written out late, if the file
    /// system could not promise space.
    late_from: AtomicUsize,
    late: AtomicBool,
    /// The last attempt to get more space failed.
    refused: AtomicBool,
}

// SAFETY: the mapping is shared memory that is only handed out as raw pointers; the fields are
// atomics.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

/// Reason why there is no more space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitError {
    /// The segment has its maximum size.
    Full,
    /// The disk, a quota or a limit refused more space.
    Refused,
}

/// The part of the address space where a segment is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    /// Anywhere.
    Any,
    /// Below 2 GiB, or anywhere if there is no room below.
    Low,
}

impl Area {
    /// Flags of `mmap`, in the order in which they are tried.
    fn flags(self) -> &'static [libc::c_int] {
        #[cfg(target_arch = "x86_64")]
        const LOW: &[libc::c_int] = &[libc::MAP_32BIT, 0];
        #[cfg(not(target_arch = "x86_64"))]
        const LOW: &[libc::c_int] = &[0];
        match self {
            Self::Any => &[0],
            Self::Low => LOW,
        }
    }
}

impl Segment {
    /// Creates the file (it must not exist) and maps `content` bytes after the header; the first
    /// `first` of these bytes are backed at once. Tries smaller sizes if there is too little
    /// address space.
    ///
    /// # Errors
    /// Errors of `open`, `fallocate` and `mmap`; the file is removed again.
    pub fn create(path: &Path, kind: u32, content: usize, first: usize) -> io::Result<Self> {
        Self::create_in(Area::Any, path, kind, content, first)
    }

    /// Like [`create`](Self::create), in the given part of the address space.
    pub(super) fn create_in(area: Area, path: &Path, kind: u32, content: usize, first: usize) -> io::Result<Self> {
        let file = Descriptor::create(path)?;
        Self::map(area, path, &file, content, first).and_then(|segment| segment.begin(&file, kind, first)).inspect_err(
            |_| {
                // An empty file would only confuse the reader. If it can't be removed, it stays.
                let _ = std::fs::remove_file(path);
            },
        )
    }

    fn map(area: Area, path: &Path, file: &Descriptor, content: usize, first: usize) -> io::Result<Self> {
        let mut reserved = HEADER_BYTES + content.next_multiple_of(HEADER_BYTES);
        loop {
            let map = |flags: &libc::c_int| {
                let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | flags;
                // SAFETY: a new shared mapping of our own file at an address the kernel chooses.
                unsafe { libc::mmap(ptr::null_mut(), reserved, libc::PROT_READ | libc::PROT_WRITE, flags, file.0, 0) }
            };
            let start = area.flags().iter().map(map).find(|start| *start != libc::MAP_FAILED);
            if let Some(start) = start {
                let large = reserved >= LARGE_FROM && first >= LARGE_PAGE;
                if large {
                    // SAFETY: advice about the mapping that was just made; a kernel that does not
                    // know it refuses.
                    unsafe { libc::madvise(start, reserved, libc::MADV_HUGEPAGE) };
                }
                let mapped = (path.to_owned(), start.expose_provenance(), reserved);
                MAPPED.lock().unwrap_or_else(PoisonError::into_inner).push(mapped);
                return Ok(Self {
                    path: path.to_owned(),
                    start: start.cast(),
                    reserved,
                    page: if large { LARGE_PAGE } else { HEADER_BYTES },
                    committed: AtomicU64::new(0),
                    late_from: AtomicUsize::new(0),
                    late: AtomicBool::new(false),
                    refused: AtomicBool::new(false),
                });
            }
            reserved = (reserved / 2).next_multiple_of(HEADER_BYTES);
            if reserved < 64 << 10 {
                return Err(io::Error::last_os_error());
            }
        }
    }

    fn begin(self, file: &Descriptor, kind: u32, first: usize) -> io::Result<Self> {
        // Large pages are rounded down: a disk that has little room is to have room for this.
        let first = if self.page == LARGE_PAGE { first & !(LARGE_PAGE - 1) } else { first + HEADER_BYTES };
        let first = first.next_multiple_of(HEADER_BYTES).min(self.reserved) - HEADER_BYTES;
        bounds::ask(&self.path, (HEADER_BYTES + first) as u64).map_err(Bound::error)?;
        if let Err(error) = allocate(file, 0, HEADER_BYTES + first) {
            if !cannot_promise(&error) {
                return Err(error);
            }
            self.go_late(0)?;
        }
        self.committed.store(first as u64, Ordering::Release);
        // SAFETY: the header was just backed by space and no other code knows the mapping yet.
        unsafe {
            ptr::copy_nonoverlapping(MAGIC.as_ptr(), self.start, MAGIC.len());
            self.start.add(header::KIND).cast::<u32>().write(kind);
            self.start.add(header::VERSION).cast::<u32>().write(VERSION);
        }
        self.publish();
        Ok(self)
    }

    /// Address of the first byte after the header. Only the first [`committed`](Self::committed)
    /// bytes may be accessed.
    #[must_use]
    pub fn content(&self) -> *mut u8 {
        self.start.wrapping_add(HEADER_BYTES)
    }

    /// Number of bytes of content that may be accessed.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.committed.load(Ordering::Acquire) as usize
    }

    /// Maximum length of the content in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.reserved - HEADER_BYTES
    }

    /// Whether the file system could not promise space, so that content is written out late.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// Whether the last attempt to get space was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Backs content up to `wanted` bytes, or as many as possible. Blocks on the disk: never call
    /// it from a hook. One thread at a time.
    ///
    /// # Errors
    /// When fewer than `wanted` bytes could be backed.
    pub fn commit(&self, wanted: usize) -> Result<(), CommitError> {
        let enough = self.rounded(wanted);
        while self.committed() < enough {
            let step = (enough - self.committed()).min(PIECE);
            // A disk without room for whole large pages may have room for what is needed.
            let needed =
                wanted.saturating_sub(self.committed()).next_multiple_of(HEADER_BYTES).clamp(HEADER_BYTES, step);
            if let Err(refusal) = self.commit_piece(step).or_else(|_| self.commit_piece(needed)) {
                self.refused.store(true, Ordering::Relaxed);
                note_refusal(&refusal);
                return Err(CommitError::Refused);
            }
        }
        self.refused.store(false, Ordering::Relaxed);
        if wanted > self.capacity() { Err(CommitError::Full) } else { Ok(()) }
    }

    /// `content` rounded up to whole pages of the file.
    fn rounded(&self, content: usize) -> usize {
        (HEADER_BYTES + content).next_multiple_of(self.page).min(self.reserved) - HEADER_BYTES
    }

    fn commit_piece(&self, step: usize) -> Result<(), Refusal> {
        let from = HEADER_BYTES + self.committed();
        bounds::ask(&self.path, step as u64)?;
        if !self.is_late() {
            let file = Descriptor::open(&self.path)?;
            if let Err(error) = allocate(&file, from, step) {
                if !cannot_promise(&error) {
                    return Err(error.into());
                }
                self.go_late(from)?;
            }
        }
        // A first touch inside a hook may wait for the disk: touch now. Old kernels lack the
        // advice, then the hook's first touch is as slow as it always was. SAFETY: the range lies
        // in our mapping and is backed.
        unsafe { libc::madvise(self.start.add(from).cast(), step, libc::MADV_POPULATE_WRITE) };
        self.committed.fetch_add(step as u64, Ordering::Release);
        self.publish();
        Ok(())
    }

    /// Replaces the mapping from `from` on by private memory.
    fn go_late(&self, from: usize) -> io::Result<()> {
        if !self.make_private(from) {
            return Err(io::Error::last_os_error());
        }
        self.late_from.store(from, Ordering::Relaxed);
        self.late.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Writes out the content held in private memory; does nothing if the file system promised the
    /// space. Blocks.
    ///
    /// # Errors
    /// Errors of `open` and `pwrite`; the next call tries everything again.
    pub fn write_out(&self) -> io::Result<()> {
        if !self.is_late() {
            return Ok(());
        }
        let file = Descriptor::open(&self.path)?;
        let mut at = self.late_from.load(Ordering::Relaxed);
        let end = HEADER_BYTES + self.committed();
        while at < end {
            // SAFETY: the range is readable; other threads store into it meanwhile, which at worst
            // writes a torn record that the next call repairs.
            let wrote = unsafe { libc::pwrite(file.0, self.start.add(at).cast(), end - at, at as i64) };
            match usize::try_from(wrote) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(wrote) => at += wrote,
                Err(_) if interrupted() => {}
                Err(_) => return Err(io::Error::last_os_error()),
            }
        }
        Ok(())
    }

    fn publish(&self) {
        let committed = self.committed.load(Ordering::Relaxed);
        // SAFETY: the header is backed, aligned, and only this field is ever stored to again.
        unsafe { AtomicU64::from_ptr(self.start.add(header::COMMITTED).cast()) }.store(committed, Ordering::Release);
    }

    /// Replaces the mapping by private zeroed memory: for a forked child, which must never write
    /// its parent's segments. Async-signal-safe.
    pub fn detach_in_child(&self) {
        // If it fails the child's hooks are off anyway.
        let _ = self.make_private(0);
    }

    /// Replaces the backed part of the mapping by private zeroed memory, and gives the rest of the
    /// address space back. After the end of the recording, instrumented code of the program may
    /// still run and store into this memory. [`unmap_all_in`] skips the segment from now on. If the
    /// system refuses, the file stays mapped.
    ///
    /// # Safety
    /// After this call nothing may use memory beyond [`committed`](Self::committed), nor read
    /// recorded content.
    pub unsafe fn outlive_recording(&self) {
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.retain(|(_, start, _)| *start != self.start.expose_provenance());
        let used = HEADER_BYTES + self.committed();
        if self.make_private_range(0, used) && used < self.reserved {
            // SAFETY: the tail of our own mapping, which is no longer used.
            unsafe { libc::munmap(self.start.add(used).cast(), self.reserved - used) };
        }
    }

    /// Replaces the mapping from `from` on by private zeroed memory. Returns false if the system
    /// refused; `errno` holds the error. One system call.
    fn make_private(&self, from: usize) -> bool {
        self.make_private_range(from, self.reserved)
    }

    /// As [`make_private`](Self::make_private), up to `end`.
    fn make_private_range(&self, from: usize, end: usize) -> bool {
        // SAFETY: the range is a part of our own mapping. Who replaces what others still use means
        // to.
        let there = unsafe {
            libc::mmap(
                self.start.add(from).cast(),
                end - from,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        there != libc::MAP_FAILED
    }
}

/// A file descriptor that is open during one call.
struct Descriptor(libc::c_int);

impl Descriptor {
    fn create(path: &Path) -> io::Result<Self> {
        Self::with_flags(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW)
    }

    fn open(path: &Path) -> io::Result<Self> {
        Self::with_flags(path, libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW)
    }

    fn with_flags(path: &Path, flags: libc::c_int) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        loop {
            // SAFETY: a nul-terminated path that lives through the call.
            let descriptor = unsafe { libc::open(name.as_ptr(), flags, 0o600) };
            if descriptor >= 0 {
                return Ok(Self(descriptor));
            }
            if !interrupted() {
                return Err(io::Error::last_os_error());
            }
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: ours, and closed once.
        unsafe { libc::close(self.0) };
    }
}

fn allocate(file: &Descriptor, from: usize, length: usize) -> io::Result<()> {
    loop {
        // SAFETY: plain numbers. Not `posix_fallocate`: the C library's would write where the file
        // system can't promise, and a promise is all we want.
        let failed = unsafe { libc::fallocate(file.0, 0, from as i64, length as i64) } != 0;
        if !failed {
            return Ok(());
        }
        if !interrupted() {
            return Err(io::Error::last_os_error());
        }
    }
}

fn cannot_promise(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}
