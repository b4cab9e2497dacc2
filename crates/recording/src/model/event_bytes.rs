//! The bytes of a chunk of events, which may still be on disk.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::Problem;

/// Source of bytes.
pub(crate) trait ByteSource: Send + Sync {
    /// The bytes, if they are in memory or mapped unchanged and will stay so.
    fn at_hand(&self) -> Option<&[u8]>;

    /// The bytes, read or decompressed again.
    ///
    /// # Errors
    /// The bytes that can no longer be read, and the reason.
    fn read(&self) -> Result<Vec<u8>, Problem>;
}

/// The bytes of a chunk, read on request: opening a recording leaves them on disk, so a recording
/// of any size can be walked chunk by chunk. Cheap to clone.
///
/// Bytes that can no longer be read (after a disk failure or a truncation) are empty, and
/// [`problem`](Self::problem) gives the reason;
/// [`Recording::late_problems`](super::Recording::late_problems) lists all such problems.
#[derive(Clone)]
pub struct EventBytes(Arc<SharedBytes>);

/// State shared by the clones of [`EventBytes`].
struct SharedBytes {
    source: Box<dyn ByteSource>,
    problem: OnceLock<Problem>,
}

impl SharedBytes {
    fn read(&self) -> Vec<u8> {
        self.source.read().unwrap_or_else(|problem| {
            let _ = self.problem.set(problem);
            Vec::new()
        })
    }
}

impl EventBytes {
    pub(crate) fn new(source: impl ByteSource + 'static) -> Self {
        Self(Arc::new(SharedBytes { source: Box::new(source), problem: OnceLock::new() }))
    }

    /// The bytes. If they have to be read from disk, each call reads them again.
    #[must_use]
    pub fn load(&self) -> Cow<'_, [u8]> {
        match self.0.source.at_hand() {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(self.0.read()),
        }
    }

    /// Reason why the first failed read failed; `None` if none failed.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        self.0.problem.get()
    }
}

impl ByteSource for Vec<u8> {
    fn at_hand(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn read(&self) -> Result<Vec<u8>, Problem> {
        Ok(self.clone())
    }
}

impl From<Vec<u8>> for EventBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl Default for EventBytes {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl PartialEq for EventBytes {
    fn eq(&self, other: &Self) -> bool {
        self.load() == other.load()
    }
}

impl Eq for EventBytes {}

impl fmt::Debug for EventBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Counted(Arc<AtomicU32>);

    impl ByteSource for Counted {
        fn at_hand(&self) -> Option<&[u8]> {
            None
        }

        fn read(&self) -> Result<Vec<u8>, Problem> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(vec![1, 2, 3])
        }
    }

    #[test]
    fn bytes_are_read_each_time_they_are_asked_for() {
        let reads = Arc::new(AtomicU32::new(0));
        let bytes = EventBytes::new(Counted(Arc::clone(&reads)));
        assert_eq!((bytes.load().len(), bytes.load().len()), (3, 3));
        assert_eq!(reads.load(Ordering::Relaxed), 2);
        assert_eq!(bytes.clone().load()[2], 3);
        assert_eq!(bytes, EventBytes::from(vec![1, 2, 3]));
        assert_eq!(reads.load(Ordering::Relaxed), 4);
    }
}
