//! A segment as bytes: mapped read-only, with a checked header.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use crate::layout::{HEADER_BYTES, MAGIC, VERSION, header, u32_at, u64_at};
use crate::model::Problem;

/// Problem of an empty segment. A segment can be empty because its space is reserved before the
/// first byte is written.
pub(super) const NOT_BEGUN: &str = "was not begun: the program ended just then, or its first page is lost";

/// The content of a segment, cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SegmentBytes {
    map: Option<Arc<Mmap>>,
    end: usize,
    /// Bytes of content according to the segment's header when it was opened.
    committed: u64,
}

impl SegmentBytes {
    /// Opens the segment `name` of `folder`. Adds damage to `problems`, under `place`.
    pub(crate) fn open(folder: &Path, name: &str, kind: u32, place: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        let path = folder.join(name);
        let mut opened = Self::open_file(&path, kind);
        let what = match &mut opened {
            Ok(bytes) => bytes.cut(&path),
            Err(what) => Some(what.clone()),
        };
        problems.extend(what.map(|what| Problem { place: format!("{place}{name}"), what }));
        opened.ok()
    }

    fn open_file(path: &Path, kind: u32) -> Result<Self, String> {
        let map = map(path).map_err(|error| format!("can't be read: {error}"))?;
        let Some(map) = map else { return Err("is empty".to_owned()) };
        let committed = committed(&map, kind)?;
        // A size beyond the file is wrong, or the file is truncated. The existing bytes can still
        // be read.
        let end = HEADER_BYTES.saturating_add(usize::try_from(committed).unwrap_or(usize::MAX)).min(map.len());
        Ok(Self { end: end.max(HEADER_BYTES.min(map.len())), map: Some(Arc::new(map)), committed })
    }

    /// Sentence for a file that is too short. If the file is as long as it was when the segment was
    /// opened, only the bytes that it had then are read.
    fn cut(&mut self, path: &Path) -> Option<String> {
        let there = self.end;
        let what = is_cut(path, there as u64, self.committed);
        if what.is_some() || there as u64 >= (HEADER_BYTES as u64).saturating_add(self.committed) {
            return what;
        }
        // Only the bytes that the segment held before are looked at.
        self.committed = there.saturating_sub(HEADER_BYTES) as u64;
        None
    }

    /// Whether the segment has become longer since it was opened.
    pub(crate) fn has_grown(&self) -> bool {
        self.map.as_deref().is_some_and(|map| u64_at(map, header::COMMITTED) > self.committed)
    }

    /// Gives the memory of the mapping back to the system. Later reads use the system's page cache.
    pub(crate) fn release(&self) {
        let Some(map) = &self.map else { return };
        // SAFETY: the mapping is a shared one of a file and only read, so no byte of it changes.
        // Where the advice is refused the pages stay, which is no harm.
        let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
    }

    /// A segment without content.
    pub(crate) fn empty() -> Self {
        Self { map: None, end: 0, committed: 0 }
    }
}

impl Deref for SegmentBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().and_then(|map| map.get(HEADER_BYTES..self.end)).unwrap_or(&[])
    }
}

/// Whether a segment has any readable content.
pub(super) fn has_content(folder: &Path, name: &str, kind: u32) -> bool {
    SegmentBytes::open_file(&folder.join(name), kind).is_ok_and(|bytes| bytes.iter().any(|&byte| byte != 0))
}

/// Returns the version in a segment's header; `None` unless the file starts like a segment.
pub(super) fn version(path: &Path) -> Option<u32> {
    let map = map(path).ok()??;
    map.starts_with(&MAGIC).then(|| u32_at(&map, header::VERSION))
}

/// Number of bytes of content according to the header in the first bytes of a segment of this kind.
pub(super) fn committed(bytes: &[u8], kind: u32) -> Result<u64, String> {
    if !bytes.starts_with(&MAGIC) {
        let begun = bytes.iter().take(HEADER_BYTES).any(|&byte| byte != 0);
        let what = if begun { "does not start as a segment does" } else { NOT_BEGUN };
        return Err(what.to_owned());
    }
    if u32_at(bytes, header::KIND) != kind {
        return Err(format!("is of kind {} where {kind} was expected", u32_at(bytes, header::KIND)));
    }
    let version = u32_at(bytes, header::VERSION);
    if version != VERSION {
        return Err(format!("has version {version}; this clrscope reads version {VERSION}"));
    }
    Ok(u64_at(bytes, header::COMMITTED))
}

/// Returns a sentence for the user if a file is cut off: it has only `there` readable bytes, fewer
/// than its header and the content that the header names.
pub(super) fn is_cut(path: &Path, there: u64, committed: u64) -> Option<String> {
    let whole = (HEADER_BYTES as u64).saturating_add(committed);
    if there >= whole {
        return None;
    }
    // The program may have made it longer after we read the file's length and before we read the
    // header's.
    let now = path.metadata().map_or(0, |metadata| metadata.len());
    (now < whole).then(|| format!("is cut: {there} of {whole} bytes are there; what stood before is here"))
}

/// Opens a segment and returns its length too. An error if the path is not a regular file.
pub(super) fn open_segment(path: &Path) -> io::Result<(File, u64)> {
    // Not blocking: a pipe under the name of a segment would keep us for ever.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok((file, metadata.len()))
}

fn map(path: &Path) -> io::Result<Option<Mmap>> {
    let (file, length) = open_segment(path)?;
    if length == 0 {
        return Ok(None);
    }
    // SAFETY: the bytes may change under us while the program still records; they are only ever
    // read as numbers that are checked after reading, never as references to typed data. Nothing of
    // ours ever makes a segment shorter.
    unsafe { Mmap::map(&file) }.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header of a log with `committed` bytes of content.
    fn header(committed: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[header::KIND..header::KIND + 4].copy_from_slice(&crate::layout::kind::LOG.to_le_bytes());
        bytes[header::VERSION..header::VERSION + 4].copy_from_slice(&VERSION.to_le_bytes());
        bytes[header::COMMITTED..header::COMMITTED + 8].copy_from_slice(&committed.to_le_bytes());
        bytes
    }

    #[test]
    fn a_segment_that_grew_between_looking_at_its_length_and_at_its_size_has_grown() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("process.log");
        std::fs::write(&path, [header(8192), vec![1; 4096]].concat()).expect("a file");
        // The mapping is of the length that the file has now; the size in it is of a moment later.
        let mut segment = SegmentBytes::open_file(&path, crate::layout::kind::LOG).expect("a segment");
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len((HEADER_BYTES + 8192) as u64))
            .expect("a longer file");
        assert_eq!(segment.cut(&path), None);
        assert_eq!(segment.len(), 4096);
        assert!(segment.has_grown());
    }
}
