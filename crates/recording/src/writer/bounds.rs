//! Bounds of a recording on the disk: its maximum size, and the free space that it must leave.
//!
//! Every request for segment space is checked here first; for a packed file, only the reserve is
//! checked. The processes of a recording share the maximum size. Each process measures the folder
//! at most four times a second, so together they may exceed the limit by the amount that they write
//! in that time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Time between two measurements of the folder.
const BETWEEN_COUNTS: Duration = Duration::from_millis(250);
/// Upper bound of the reserve in bytes; on a small file system, [`RESERVE_PART`] gives a smaller
/// reserve.
const RESERVE_MOST: u64 = 2 << 30;
/// Divisor that gives the reserve: the size of the file system divided by this number.
const RESERVE_PART: u64 = 20;

/// Bound that kept a segment of this process from growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The recording's maximum size.
    Size,
    /// The reserve: free space of the file system that the recording must leave.
    Reserve,
}

static SIZE_REACHED: AtomicBool = AtomicBool::new(false);
static RESERVE_REACHED: AtomicBool = AtomicBool::new(false);
static SIZE: RwLock<Option<Arc<SizeLimit>>> = RwLock::new(None);

fn size() -> Option<Arc<SizeLimit>> {
    SIZE.read().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Bound {
    /// Whether the bound was reached in this process.
    #[must_use]
    pub fn was_reached(self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }

    fn flag(self) -> &'static AtomicBool {
        match self {
            Self::Size => &SIZE_REACHED,
            Self::Reserve => &RESERVE_REACHED,
        }
    }

    /// Error of a segment, or of a packed file, that could not grow.
    pub(crate) fn error(self) -> io::Error {
        match self {
            Self::Size => {
                let mib = size().map_or(0, |limit| limit.most >> 20);
                io::Error::other(format!("it has its maximum size, {mib} MiB (--max-size)"))
            }
            // The system's error text comes first, because a program treats this error like a full
            // disk.
            Self::Reserve => {
                let what = "No space left on device but what is left free for others: 5 % of it, at most 2 GiB";
                io::Error::new(io::ErrorKind::StorageFull, what)
            }
        }
    }
}

/// Sets the maximum size of the recording in `folder`, in bytes, and forgets that a bound was
/// reached.
pub(super) fn set_size(folder: &Path, most: u64) {
    let limit = SizeLimit { folder: folder.to_owned(), most, known: Mutex::default() };
    *SIZE.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(limit));
    [Bound::Size, Bound::Reserve].iter().for_each(|bound| bound.flag().store(false, Ordering::Relaxed));
}

/// Requests `bytes` more bytes for the segment at `path`.
pub(super) fn ask(path: &Path, bytes: u64) -> Result<(), Bound> {
    let reached = if !leaves_reserve(path, bytes) {
        Bound::Reserve
    } else if size().is_some_and(|limit| !limit.reserve(bytes, Instant::now())) {
        Bound::Size
    } else {
        return Ok(());
    };
    reached.flag().store(true, Ordering::Relaxed);
    Err(reached)
}

/// A maximum size, and the part of it that is used.
#[derive(Debug)]
struct SizeLimit {
    folder: PathBuf,
    most: u64,
    known: Mutex<FolderSize>,
}

/// Bytes in the folder at the last measurement, and the bytes that this process has requested
/// since.
#[derive(Debug, Default)]
struct FolderSize {
    counted: Option<Instant>,
    bytes: u64,
}

impl SizeLimit {
    fn reserve(&self, bytes: u64, now: Instant) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.counted.is_none_or(|counted| now.saturating_duration_since(counted) >= BETWEEN_COUNTS) {
            *known = FolderSize { counted: Some(now), bytes: size_of(&self.folder) };
        }
        let fits = known.bytes.saturating_add(bytes) <= self.most;
        known.bytes += if fits { bytes } else { 0 };
        fits
    }
}

/// Bytes of the files in a recording's folder and in those of its processes.
fn size_of(folder: &Path) -> u64 {
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let length = |entry: &fs::DirEntry| entry.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = 0;
    for entry in files(folder) {
        bytes += match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()).map(|file| length(&file)).sum(),
            _ => length(&entry),
        };
    }
    bytes
}

/// Whether the file system of `path` keeps its reserve after `bytes` more bytes are taken; true if
/// the system does not tell how much is free.
pub(crate) fn leaves_reserve(path: &Path, bytes: u64) -> bool {
    let Ok(found) = rustix::fs::statvfs(path) else { return true };
    let unit = found.f_frsize.max(1);
    let reserve = (found.f_blocks.saturating_mul(unit) / RESERVE_PART).min(RESERVE_MOST);
    found.f_blocks == 0 || found.f_bavail.saturating_mul(unit) >= reserve.saturating_add(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_the_size_of_their_recording() {
        let folder = tempfile::tempdir().expect("a folder");
        let limit = SizeLimit { folder: folder.path().to_owned(), most: 1_000, known: Mutex::default() };
        let (now, later) = (Instant::now(), Instant::now() + BETWEEN_COUNTS);
        assert!(limit.reserve(600, now));
        assert!(!limit.reserve(600, now), "what was asked for counts before it is there");
        assert!(limit.reserve(400, now));
        // Another process wrote; this one's own were given up.
        let other = folder.path().join("7-1");
        fs::create_dir(&other).expect("a folder");
        fs::write(other.join("a.seg"), vec![1; 700]).expect("a file");
        fs::write(folder.path().join("run.log"), vec![1; 100]).expect("a file");
        assert_eq!(size_of(folder.path()), 800);
        assert!(limit.reserve(200, later));
        assert!(!limit.reserve(1, later));
    }

    #[test]
    fn what_would_touch_the_reserve_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(leaves_reserve(Path::new("/no/such/place"), 1 << 60), "where the system does not say, the disk will");
        assert!(!leaves_reserve(folder.path(), 1 << 60));
        assert!(Bound::Reserve.error().to_string().starts_with("No space left on device"));
    }
}
