//! Source of the bytes of a packed recording.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// An open file, or bytes in memory. A file is read part by part and never mapped: if another
/// program truncates the file during reading, the result is an error, not a SIGBUS.
#[derive(Debug)]
pub(crate) enum Source {
    /// An open file and its length when it was opened.
    File(File, u64),
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
}

impl Source {
    /// Number of bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Reads `length` bytes at `at` into `buffer`, replacing its contents. Allocates nothing for a
    /// range beyond the end.
    pub(crate) fn read(&self, at: u64, length: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        let end = at.checked_add(length).filter(|&end| end <= self.len());
        let (Some(end), Ok(size)) = (end, usize::try_from(length)) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        match self {
            Self::File(file, _) => {
                buffer.resize(size, 0);
                file.read_exact_at(buffer, at)
            }
            Self::Bytes(bytes) => {
                buffer.clear();
                buffer.extend_from_slice(&bytes[at as usize..end as usize]);
                Ok(())
            }
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::Bytes(Arc::default())
    }
}
