//! The sentence about the resident memory of a process.

use clrscope_recording::model::Recording;

use super::{Finding, FindingKind};
use crate::memory::{MemoryPart, MemoryRow, memory};
use crate::numbers::{bytes, time};
use crate::query::Query;

/// Maximum number of places that a sentence names.
const NAMED: usize = 3;

/// Returns a sentence for each process whose memory was examined.
pub(super) fn found(recording: &Recording, query: &Query) -> Vec<Finding> {
    let Ok(view) = memory(recording, &Query { metric: None, ..query.clone() }) else { return Vec::new() };
    let sentence = |times: &crate::memory::MemoryTimes<'_>| {
        let rows = view.rows.iter().filter(|row| std::ptr::eq(row.process, times.process) && row.file.is_empty());
        let rows: Vec<&MemoryRow<'_>> = rows.collect();
        let whole = rows.iter().find(|row| row.part == MemoryPart::Resident)?;
        let (now, peak) = (bytes(whole.resident_bytes?), bytes(whole.peak_resident_bytes?));
        let mut places: Vec<_> = rows.iter().filter_map(|row| Some((place(row)?, row.resident_bytes?))).collect();
        places.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let named = places.iter().take(NAMED).map(|(words, size)| format!("{words} {}", bytes(*size)));
        let named = named.collect::<Vec<_>>().join(", ");
        let peak = match times.peak_ns == times.last_ns {
            true => String::new(),
            false => format!(", {peak} at the peak after {}", time(times.peak_ns)),
        };
        let pid = times.process.pid;
        Some(format!("process {pid} had {now} in memory at the end{peak}: {named}"))
    };
    let texts = view.times.iter().filter_map(sentence);
    texts.map(|text| Finding::exact(FindingKind::Recording, text, 0.0)).collect()
}

fn place(row: &MemoryRow<'_>) -> Option<&'static str> {
    match row.part {
        MemoryPart::Place(place) => Some(place.in_words()),
        _ => None,
    }
}
