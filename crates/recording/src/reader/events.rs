//! Chunks of events, in the order in which they were taken.

use std::path::Path;

use super::segment::SegmentBytes;
use crate::layout::{chunk, kind, u32_at, u64_at};
use crate::model::{Event, EventArena, Problem};

/// Reads all segments of events of a process's folder. `threads` is how many threads it has.
pub(super) fn read(folder: &Path, place: &str, threads: usize, problems: &mut Vec<Problem>) -> Vec<EventArena> {
    let mut found = Vec::new();
    for (file, instrument) in segments(folder) {
        match SegmentBytes::open(&folder.join(&file), kind::EVENTS) {
            Ok(bytes) => {
                let (chunks, problem) = chunks(&bytes, threads);
                problems.extend(problem.map(|what| Problem { place: format!("{place}/{file}"), what }));
                found.push(EventArena { instrument, chunks });
            }
            Err(what) => problems.push(Problem { place: format!("{place}/{file}"), what }),
        }
    }
    found
}

/// The files' names with their instruments', in alphabetical order.
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

/// Walks the row of chunks; what else there is to say.
fn chunks(bytes: &[u8], threads: usize) -> (Vec<Event>, Option<String>) {
    let (mut found, mut strange) = (Vec::new(), 0_u64);
    let mut at = 0;
    while at < bytes.len() {
        let whole = u32_at(bytes, at + chunk::BYTES) as usize;
        if whole == 0 {
            // Handed out, but not begun before the program was killed; or the end.
            at += chunk::GRAIN;
            continue;
        }
        if !whole.is_multiple_of(chunk::GRAIN) {
            let what = format!("has a chunk of {whole} bytes at {at}; what stood before is here");
            return (finish(found), Some(what));
        }
        match u32_at(bytes, at + chunk::FORMAT) {
            chunk::VERSION => found.extend(event(bytes, at, whole, threads)),
            0 => {}
            _ => strange += 1,
        }
        at = at.saturating_add(whole);
    }
    (finish(found), (strange > 0).then(|| format!("has {strange} chunks of a version this clrscope can't read")))
}

fn finish(mut chunks: Vec<Event>) -> Vec<Event> {
    chunks.sort_by_key(|chunk| chunk.sequence);
    chunks
}

/// The chunk at `at`; `None` when it is empty or was used again while we read it.
fn event(bytes: &[u8], at: usize, whole: usize, threads: usize) -> Option<Event> {
    let sequence = u64_at(bytes, at + chunk::SEQUENCE);
    let used = (u32_at(bytes, at + chunk::USED) as usize).min(whole - chunk::HEAD);
    let from = at + chunk::HEAD;
    let end = from.saturating_add(used).min(bytes.len());
    let copy = bytes.get(from..end)?.to_vec();
    // The program may be writing: the copy is only good when the chunk was the same before and after.
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    if sequence == 0 || copy.is_empty() || u64_at(bytes, at + chunk::SEQUENCE) != sequence {
        return None;
    }
    let thread = (u32_at(bytes, at + chunk::THREAD) as usize).checked_sub(1).filter(|&index| index < threads);
    Some(Event { thread: thread.map_or(u32::MAX, |index| index as u32), sequence, bytes: copy })
}
