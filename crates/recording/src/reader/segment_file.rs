//! A segment that is read part by part and never mapped, because events may need more space than
//! there is memory or address space.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::segment::{committed, is_cut, open_segment};
use crate::layout::HEADER_BYTES;
use crate::model::Problem;

/// Bytes that are read at once while zeros are skipped.
const WINDOW: usize = 64 << 10;

/// The content of a segment, cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SegmentFile {
    file: Arc<File>,
    /// Bytes of content.
    length: usize,
}

impl SegmentFile {
    /// Opens the segment `name` of `folder`. Adds damage to `problems`, under `place`.
    pub(super) fn open(folder: &Path, name: &str, kind: u32, place: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        let path = folder.join(name);
        let opened = Self::open_file(&path, kind);
        let what = match &opened {
            Ok((_, what)) => what.clone(),
            Err(what) => Some(what.clone()),
        };
        problems.extend(what.map(|what| Problem { place: format!("{place}{name}"), what }));
        opened.ok().map(|(segment, _)| segment)
    }

    /// Opens the segment. The second value describes damage that still allows reading.
    fn open_file(path: &Path, kind: u32) -> Result<(Self, Option<String>), String> {
        let unreadable = |error: io::Error| format!("can't be read: {error}");
        let (file, there) = open_segment(path).map_err(unreadable)?;
        if there == 0 {
            return Err("is empty".to_owned());
        }
        let mut head = vec![0; HEADER_BYTES.min(usize::try_from(there).unwrap_or(HEADER_BYTES))];
        file.read_exact_at(&mut head, 0).map_err(unreadable)?;
        let committed = committed(&head, kind)?;
        // A size beyond the file is wrong, or the file is truncated. The existing bytes can still
        // be read.
        let end = (HEADER_BYTES as u64).saturating_add(committed).min(there);
        let length = usize::try_from(end).unwrap_or(usize::MAX).saturating_sub(HEADER_BYTES);
        Ok((Self { file: Arc::new(file), length }, is_cut(path, end, committed)))
    }

    /// Length of the content in bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Fills `bytes` with the content at `at`.
    ///
    /// # Errors
    /// If reading fails, or if the content ends before `bytes` is full.
    pub(super) fn read(&self, at: usize, bytes: &mut [u8]) -> io::Result<()> {
        if at.checked_add(bytes.len()).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(bytes, (HEADER_BYTES + at) as u64)
    }

    /// The offset of the first block of `grain` bytes, counted from `at`, that has a byte other
    /// than zero; the end of the content if only zeros follow.
    ///
    /// # Errors
    /// Errors of reading.
    pub(super) fn something(&self, mut at: usize, grain: usize) -> io::Result<usize> {
        let mut window = vec![0; WINDOW];
        while at < self.length {
            let there = (self.length - at).min(WINDOW);
            let window = &mut window[..there];
            self.read(at, window)?;
            // Processors compare many bytes at once where all are looked at.
            let is_something = |part: &[u8]| part.iter().fold(0, |all, &byte| all | byte) != 0;
            if let Some(grains) = window.chunks(grain).position(is_something) {
                return Ok(at + grains * grain);
            }
            at += there;
        }
        Ok(self.length)
    }
}
