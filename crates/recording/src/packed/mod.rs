//! A packed recording: `NAME.clrs`, one file, compressed, with checksums and an index.
//!
//! Each version has its own module, which specifies and reads its bytes; this module selects it by
//! the first bytes. All versions begin with the eight bytes [`MAGIC`], followed by the version as a
//! `u32`. `docs/format-changelog.md` lists the changes between versions.

mod source;
pub mod v1;

pub(crate) use source::Source;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::layout::u32_at;
use crate::model::Recording;
use crate::open_error::{OpenError, not_empty};

/// First eight bytes of a packed recording of any version.
pub const MAGIC: [u8; 8] = *b"CLRSCOPE";

/// Opens the file at `path`.
pub(crate) fn open(path: &Path) -> Result<Recording, OpenError> {
    let io = |error| OpenError::Io(path.to_owned(), error);
    // Open without blocking: otherwise a pipe with the name of a recording would block for ever.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(OpenError::NotARecording(path.to_owned(), "it is neither a file nor a directory"));
    }
    read(path, Source::File(file, metadata.len()))
}

/// Reads an in-memory packed recording, for instance the output of
/// [`pack::write`](crate::pack::write). `path` is used only in errors.
///
/// # Errors
/// As for [`open`](crate::open).
pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Recording, OpenError> {
    read(path, Source::Bytes(bytes.into()))
}

fn read(path: &Path, source: Source) -> Result<Recording, OpenError> {
    let mut start = Vec::new();
    let length = source.len().min(v1::START);
    source.read(0, length, &mut start).map_err(|error| OpenError::Io(path.to_owned(), error))?;
    if start.is_empty() {
        return Err(OpenError::NotARecording(path.to_owned(), "it is empty"));
    }
    if !start.starts_with(&MAGIC) {
        return Err(OpenError::NotARecording(path.to_owned(), "it does not start as one does"));
    }
    if start.len() < v1::START as usize {
        return Err(OpenError::NotARecording(path.to_owned(), "it was cut before its first section"));
    }
    match u32_at(&start, 8) {
        v1::VERSION => not_empty(path, v1::read(Arc::new(source))),
        found => Err(OpenError::Version { path: path.to_owned(), found, newest: v1::VERSION }),
    }
}
