//! The bytes of a chunk of events, which may still be on disk.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::Problem;

/// Where bytes come from.
pub(crate) trait ByteSource: Send + Sync {
    /// The bytes, if they are in memory or mapped as they are and will stay so.
    fn at_hand(&self) -> Option<&[u8]>;

    /// The bytes, read or decompressed again.
    ///
    /// # Errors
    /// What can't be read any more, and why.
    fn read(&self) -> Result<Vec<u8>, Problem>;
}

/// The bytes of a chunk. They are read when first looked at: opening a recording leaves them where they
/// are. Cheap to clone.
///
/// Dereferencing reads them once and keeps them as long as the recording; [`load`](Self::load) keeps
/// nothing, so that a recording of any size can be walked chunk by chunk.
///
/// Bytes that can't be read by then (the disk fails, the file was cut meanwhile) read as none, and
/// [`problem`](Self::problem) says why; [`Recording::late_problems`](super::Recording::late_problems) has them all.
#[derive(Clone)]
pub struct EventBytes(Arc<Kept>);

struct Kept {
    source: Box<dyn ByteSource>,
    read: OnceLock<Vec<u8>>,
    problem: OnceLock<Problem>,
}

impl Kept {
    fn read(&self) -> Vec<u8> {
        self.source.read().unwrap_or_else(|problem| {
            let _ = self.problem.set(problem);
            Vec::new()
        })
    }
}

impl EventBytes {
    pub(crate) fn new(source: impl ByteSource + 'static) -> Self {
        Self(Arc::new(Kept { source: Box::new(source), read: OnceLock::new(), problem: OnceLock::new() }))
    }

    /// The bytes, without keeping them where they must be read for it.
    #[must_use]
    pub fn load(&self) -> Cow<'_, [u8]> {
        match self.0.source.at_hand().or(self.0.read.get().map(Vec::as_slice)) {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(self.0.read()),
        }
    }

    /// Why the bytes could not be read when they were first missed, if so.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        self.0.problem.get()
    }
}

impl Deref for EventBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let kept = &self.0;
        kept.source.at_hand().unwrap_or_else(|| kept.read.get_or_init(|| kept.read()))
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
    fn bytes_are_read_when_asked_for_and_kept_only_by_looking_at_them() {
        let reads = Arc::new(AtomicU32::new(0));
        let bytes = EventBytes::new(Counted(Arc::clone(&reads)));
        assert_eq!((bytes.load().len(), bytes.load().len()), (3, 3));
        assert_eq!(reads.load(Ordering::Relaxed), 2);
        assert_eq!((bytes.len(), bytes.clone()[2]), (3, 3));
        assert_eq!(bytes, EventBytes::from(vec![1, 2, 3]));
        assert_eq!(reads.load(Ordering::Relaxed), 3);
    }
}
