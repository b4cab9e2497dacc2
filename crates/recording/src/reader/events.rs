//! Chunks of events, in the order of their allocation.

use std::io;
use std::path::Path;

use super::recent::{self, Encoding, FoundChunk, KeptTime};
use super::segment_file::SegmentFile;
use crate::layout::{chunk, kind, u32_at, u64_at};
use crate::model::{ByteSource, EventArena, EventBytes, EventChunk, Problem};

/// The process whose events are read.
#[derive(Clone, Copy)]
pub(super) struct Source {
    /// Number of the process's threads.
    pub(super) threads: usize,
    /// Whether the process recorded its end: nothing is written any more.
    pub(super) ended: bool,
    /// The period whose events are kept; `None` if the recording keeps all events.
    pub(super) kept: Option<KeptTime>,
}

/// Reads all segments of events of a process's folder. The events themselves stay where they are.
pub(super) fn read(folder: &Path, place: &str, source: Source, problems: &mut Vec<Problem>) -> Vec<EventArena> {
    let mut found = Vec::new();
    for (file, instrument) in segments(folder) {
        let inside = format!("{place}/");
        let Some(segment) = SegmentFile::open(folder, &file, kind::EVENTS, &inside, problems) else { continue };
        let encoding = Encoding::of_instrument(&instrument);
        let source = Source { kept: source.kept.filter(|_| encoding != Encoding::Other), ..source };
        let (mut chunks, problem) = chunks(&segment, source);
        problems.extend(problem.map(|what| Problem { place: format!("{inside}{file}"), what }));
        if let Some(kept) = source.kept {
            recent::keep(&mut chunks, encoding, kept);
        }
        let chunks = chunks.into_iter().map(|found| found.chunk).collect();
        found.push(EventArena { instrument, chunks });
    }
    found
}

/// Names of the files, each with the name of its instrument, in alphabetical order.
fn segments(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let instrument = file.strip_prefix("events-")?.strip_suffix(".seg")?.to_owned();
            Some((file, instrument))
        })
        .collect();
    found.sort();
    found
}

/// Walks over the chunks. Returns them, and a sentence about any damage.
fn chunks(segment: &SegmentFile, source: Source) -> (Vec<FoundChunk>, Option<String>) {
    let (mut found, mut strange) = (Vec::new(), 0_u64);
    let (mut at, mut head) = (0, [0; chunk::HEAD]);
    while at < segment.len() {
        if let Err(error) = segment.read(at, &mut head) {
            let what = (error.kind() != io::ErrorKind::UnexpectedEof)
                .then(|| format!("can't be read at {at}: {error}; what stood before is here"));
            return (finish(found), what);
        }
        let whole = u32_at(&head, chunk::BYTES) as usize;
        if whole == 0 {
            // Handed out, but not begun before the program was killed; or the end.
            at = segment.something(at + chunk::GRAIN, chunk::GRAIN).unwrap_or(segment.len());
            continue;
        }
        if !whole.is_multiple_of(chunk::GRAIN) {
            let what = format!("has a chunk of {whole} bytes at {at}; what stood before is here");
            return (finish(found), Some(what));
        }
        match u32_at(&head, chunk::FORMAT) {
            chunk::VERSION => found.extend(event(segment, &head, at, whole, source)),
            0 => {}
            _ => strange += 1,
        }
        at = at.saturating_add(whole);
    }
    (finish(found), (strange > 0).then(|| format!("has {strange} chunks of a version this clrscope can't read")))
}

fn finish(mut chunks: Vec<FoundChunk>) -> Vec<FoundChunk> {
    chunks.sort_by_key(|found| found.chunk.sequence);
    chunks
}

/// The chunk at `at`, which begins with `head`; `None` when it is empty or is being used again.
fn event(segment: &SegmentFile, head: &[u8], at: usize, whole: usize, source: Source) -> Option<FoundChunk> {
    let sequence = u64_at(head, chunk::SEQUENCE);
    let used = (u32_at(head, chunk::USED) as usize).min(whole - chunk::HEAD);
    let from = at + chunk::HEAD;
    let end = from.saturating_add(used).min(segment.len());
    if sequence == 0 || from >= end {
        return None;
    }
    let stored = StoredChunk { segment: segment.clone(), chunk: at, sequence, length: end - from, ended: source.ended };
    let thread = (u32_at(head, chunk::THREAD) as usize).checked_sub(1).filter(|&index| index < source.threads);
    let thread = thread.map_or(u32::MAX, |index| index as u32);
    Some(FoundChunk {
        chunk: EventChunk { thread, sequence, bytes: EventBytes::new(stored) },
        first_ns: u64_at(head, chunk::FIRST),
        last_ns: u64_at(head, chunk::LAST),
        is_dictionary: u32_at(head, chunk::DICTIONARY) != 0,
    })
}

/// The bytes of a chunk in its segment.
struct StoredChunk {
    segment: SegmentFile,
    chunk: usize,
    sequence: u64,
    length: usize,
    /// Whether the segment is complete, because no process writes to it any more.
    ended: bool,
}

impl ByteSource for StoredChunk {
    fn at_hand(&self) -> Option<&[u8]> {
        None
    }

    fn read(&self) -> Result<Vec<u8>, Problem> {
        let problem = |error| Problem {
            place: format!("chunk {}", self.sequence),
            what: format!("can't be read any more: {error}"),
        };
        let mut copy = vec![0; self.length];
        self.segment.read(self.chunk + chunk::HEAD, &mut copy).map_err(problem)?;
        if self.ended {
            return Ok(copy);
        }
        // The program may be writing: the copy is only good when the chunk is still the same
        // afterwards.
        let mut head = [0; chunk::HEAD];
        self.segment.read(self.chunk, &mut head).map_err(problem)?;
        // A ring that reused the chunk is no problem: the missing sequence number shows the reuse.
        Ok(if u64_at(&head, chunk::SEQUENCE) == self.sequence { copy } else { Vec::new() })
    }
}
