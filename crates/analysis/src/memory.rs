//! The view `memory`: how each process uses its memory, at the last measurement and at the peak.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_recording::events::{Kind, Record, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, MemoryPlace, Process, Recording};

use crate::query::{Query, QueryProblem};
use crate::select;

/// A part of the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryPart {
    /// All resident memory.
    Resident,
    /// The memory of one kind, such as the managed heap.
    Place(MemoryPlace),
    /// A generation of the managed heap: 0, 1, 2, 3 for large objects, 4 for pinned ones.
    Generation(u64),
    /// Memory of the managed heap outside of the generations after the last collection: newer
    /// objects, and space reserved for them.
    Newer,
}

impl MemoryPart {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resident => "resident",
            Self::Place(place) => place.name(),
            Self::Generation(0) => "generation-0",
            Self::Generation(1) => "generation-1",
            Self::Generation(2) => "generation-2",
            Self::Generation(3) => "large-objects",
            Self::Generation(_) => "pinned-objects",
            Self::Newer => "newer-or-unused",
        }
    }

    /// The larger part that contains this part; `None` for all resident memory.
    #[must_use]
    pub const fn inside(self) -> Option<Self> {
        match self {
            Self::Resident => None,
            Self::Place(_) => Some(Self::Resident),
            Self::Generation(_) | Self::Newer => Some(Self::Place(MemoryPlace::ManagedHeap)),
        }
    }
}

/// A part of the memory of a process at the last measurement and at the peak.
#[derive(Debug, Clone)]
pub struct MemoryRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// The part of the memory.
    pub part: MemoryPart,
    /// The file that this row covers; empty if it covers all files.
    pub file: String,
    /// Resident bytes at the last measurement; `None` if the operating system does not report them
    /// for the part.
    pub resident_bytes: Option<u64>,
    /// Resident bytes at the peak of the process.
    pub peak_resident_bytes: Option<u64>,
    /// Bytes mapped for reading or writing at the last measurement, resident or not.
    pub committed_bytes: Option<u64>,
    /// Bytes that are swapped out at the last measurement.
    pub swapped_bytes: Option<u64>,
    /// Bytes of objects after the last collection before the last measurement.
    pub object_bytes: Option<u64>,
    /// Free bytes between these objects.
    pub free_bytes: Option<u64>,
    /// Bytes of objects after the last collection before the peak of the process.
    pub peak_object_bytes: Option<u64>,
    /// Number of mappings at the last measurement.
    pub mappings: Option<u64>,
}

/// Times at which the memory of a process was measured.
#[derive(Debug, Clone)]
pub struct MemoryTimes<'a> {
    /// The process.
    pub process: &'a Process,
    /// Time of the last measurement, in nanoseconds since the start of the run.
    pub last_ns: u64,
    /// Time of the peak of resident memory, in nanoseconds since the start of the run.
    pub peak_ns: u64,
    /// Peak of resident memory since the process began, as reported by the operating system.
    pub most_bytes: u64,
    /// Whether the sizes of the generations are known from a collection before the last
    /// measurement.
    pub has_generations: bool,
}

/// The memory of the processes of a recording.
#[derive(Debug, Clone, Default)]
pub struct MemoryView<'a> {
    /// The rows, grouped by process, each after the row that contains it.
    pub rows: Vec<MemoryRow<'a>>,
    /// Measurement times of each process.
    pub times: Vec<MemoryTimes<'a>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    resident: u64,
    committed: u64,
    swapped: u64,
    mappings: u64,
}

/// One measurement.
#[derive(Debug, Default)]
struct Look {
    time_ns: u64,
    most: u64,
    wanted: u64,
    found: u64,
    places: BTreeMap<(MemoryPlace, String), Amount>,
    /// By generation: bytes after the last collection, and the free bytes among them.
    generations: BTreeMap<u64, (u64, u64)>,
}

impl Look {
    fn is_whole(&self) -> bool {
        self.wanted > 0 && self.found >= self.wanted
    }

    fn amount(&self, part: MemoryPart, file: Option<&str>) -> Option<Amount> {
        let is_in = |place: MemoryPlace, name: &str| match part {
            MemoryPart::Resident => true,
            MemoryPart::Place(wanted) => wanted == place && file.is_none_or(|file| file == name),
            MemoryPart::Generation(_) | MemoryPart::Newer => false,
        };
        let found = self.places.iter().filter(|((place, name), _)| is_in(*place, name));
        let sum = |sum: Option<Amount>, amount: &Amount| {
            let sum = sum.unwrap_or_default();
            Some(Amount {
                resident: sum.resident.saturating_add(amount.resident),
                committed: sum.committed.saturating_add(amount.committed),
                swapped: sum.swapped.saturating_add(amount.swapped),
                mappings: sum.mappings.saturating_add(amount.mappings),
            })
        };
        found.map(|(_, amount)| amount).fold(None, sum)
    }

    fn resident(&self) -> u64 {
        self.amount(MemoryPart::Resident, None).unwrap_or_default().resident
    }

    /// Resident bytes of the managed heap that are not part of the generations.
    fn newer(&self) -> Option<u64> {
        let heap = self.amount(MemoryPart::Place(MemoryPlace::ManagedHeap), None)?;
        let known = self.generations.values().fold(0_u64, |sum, (bytes, _)| sum.saturating_add(*bytes));
        (!self.generations.is_empty()).then(|| heap.resident.saturating_sub(known))
    }
}

/// Memory of the processes that a query selects, at the last measurement in the query's time range
/// and at the peak in that range.
///
/// # Errors
/// When the query selects no process, or `memory` was not recorded.
pub fn memory<'a>(recording: &'a Recording, query: &Query) -> Result<MemoryView<'a>, QueryProblem> {
    query.without_metric("memory")?;
    let processes = select::threads(recording, query)?;
    let arenas = |process: &'a Process| process.arenas(instrument::MEMORY).collect::<Vec<_>>();
    if processes.iter().all(|selected| arenas(selected.process).is_empty()) {
        return Err(QueryProblem::NotRecorded { view: "memory", instrument: instrument::MEMORY });
    }
    let mut view = MemoryView::default();
    for process in processes.iter().map(|selected| selected.process) {
        let looks = looks(process, &arenas(process), query);
        let last = looks.iter().max_by_key(|look| look.time_ns);
        let peak = looks.iter().rev().max_by_key(|look| look.resident());
        if let (Some(last), Some(peak)) = (last, peak) {
            view.times.push(MemoryTimes {
                process,
                last_ns: last.time_ns,
                peak_ns: peak.time_ns,
                most_bytes: last.most,
                has_generations: !last.generations.is_empty(),
            });
            view.rows.extend(rows(process, last, peak));
        }
    }
    Ok(view)
}

/// The measurements in the query's time range, in the order of time.
fn looks(process: &Process, arenas: &[&EventArena], query: &Query) -> Vec<Look> {
    let mut looks: BTreeMap<u64, Look> = BTreeMap::new();
    for arena in arenas {
        let chunks: Vec<_> = arena.chunks.iter().map(|chunk| chunk.bytes.load()).collect();
        for record in chunks.iter().flat_map(|bytes| Records::new(bytes)) {
            let number = record.number(Tag::NUMBER).unwrap_or(0);
            match record.kind {
                Kind::MEMORY_LOOK => {
                    let look = looks.entry(number).or_default();
                    look.time_ns = process.started_ns.saturating_add(record.time_ns);
                    look.wanted = record.number(Tag::COUNT).unwrap_or(0);
                    look.most = record.number(Tag::MOST).unwrap_or(0);
                }
                Kind::MEMORY_PLACE => looks.entry(number).or_default().add_place(&record),
                Kind::MEMORY_GENERATION => looks.entry(number).or_default().add_generation(&record),
                _ => {}
            }
        }
    }
    let wanted = |look: &Look| look.is_whole() && query.wants_time(process, look.time_ns);
    let mut looks: Vec<Look> = looks.into_values().filter(wanted).collect();
    looks.sort_by_key(|look| look.time_ns);
    looks
}

impl Look {
    fn add_place(&mut self, record: &Record<'_>) {
        self.found += 1;
        let number = |tag| record.number(tag).unwrap_or(0);
        let Some(place) = MemoryPlace::from_number(number(Tag::PLACE)) else { return };
        let file = record.text(Tag::NAME).unwrap_or_default().to_owned();
        let amount = Amount {
            resident: number(Tag::BYTES),
            committed: number(Tag::COMMITTED),
            swapped: number(Tag::SWAPPED),
            mappings: number(Tag::COUNT),
        };
        self.places.insert((place, file), amount);
    }

    fn add_generation(&mut self, record: &Record<'_>) {
        self.found += 1;
        let number = |tag| record.number(tag).unwrap_or(0);
        self.generations.insert(number(Tag::GENERATION), (number(Tag::AFTER), number(Tag::FREE_AFTER)));
    }
}

/// Rows of one process: the whole memory, its places, and the known parts of the places.
fn rows<'a>(process: &'a Process, last: &Look, peak: &Look) -> Vec<MemoryRow<'a>> {
    let mut rows = Vec::new();
    let of_system = |part: MemoryPart, file: Option<&str>| {
        let (now, then) = (last.amount(part, file), peak.amount(part, file));
        let row = MemoryRow {
            resident_bytes: Some(now.map_or(0, |amount| amount.resident)),
            peak_resident_bytes: Some(then.map_or(0, |amount| amount.resident)),
            committed_bytes: Some(now.map_or(0, |amount| amount.committed)),
            swapped_bytes: Some(now.map_or(0, |amount| amount.swapped)),
            mappings: Some(now.map_or(0, |amount| amount.mappings)),
            file: file.unwrap_or_default().to_owned(),
            ..blank(process, part)
        };
        (now.is_some() || then.is_some()).then_some(row)
    };
    rows.extend(of_system(MemoryPart::Resident, None));
    for place in MemoryPlace::all() {
        rows.extend(of_system(MemoryPart::Place(place), None));
        if place == MemoryPlace::ManagedHeap {
            rows.extend(within_heap(process, last, peak));
        }
        let files = [last, peak].into_iter().flat_map(|look| look.places.keys());
        let files: BTreeSet<&String> =
            files.filter(|(of, file)| *of == place && !file.is_empty()).map(|(_, file)| file).collect();
        let mut files: Vec<_> =
            files.into_iter().filter_map(|file| of_system(MemoryPart::Place(place), Some(file))).collect();
        files.sort_by(|a, b| b.resident_bytes.cmp(&a.resident_bytes).then_with(|| a.file.cmp(&b.file)));
        rows.extend(files);
    }
    rows
}

/// Rows of the generations, and of the rest of the managed heap.
fn within_heap<'a>(process: &'a Process, last: &Look, peak: &Look) -> Vec<MemoryRow<'a>> {
    let numbers: BTreeSet<u64> = last.generations.keys().chain(peak.generations.keys()).copied().collect();
    let generation = |number: u64| {
        let (now, then) = (last.generations.get(&number), peak.generations.get(&number));
        let objects = |sizes: &(u64, u64)| sizes.0.saturating_sub(sizes.1);
        MemoryRow {
            object_bytes: now.map(objects),
            free_bytes: now.map(|sizes| sizes.1),
            peak_object_bytes: then.map(objects),
            ..blank(process, MemoryPart::Generation(number))
        }
    };
    let newer = last.newer().or(peak.newer()).map(|_| MemoryRow {
        resident_bytes: last.newer(),
        peak_resident_bytes: peak.newer(),
        ..blank(process, MemoryPart::Newer)
    });
    numbers.into_iter().map(generation).chain(newer).collect()
}

fn blank(process: &Process, part: MemoryPart) -> MemoryRow<'_> {
    MemoryRow {
        process,
        part,
        file: String::new(),
        resident_bytes: None,
        peak_resident_bytes: None,
        committed_bytes: None,
        swapped_bytes: None,
        object_bytes: None,
        free_bytes: None,
        peak_object_bytes: None,
        mappings: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(time_ns: u64, heap: u64, other: u64) -> Look {
        let amount = |resident| Amount { resident, committed: resident * 2, swapped: 1, mappings: 3 };
        let places = [
            ((MemoryPlace::ManagedHeap, String::new()), amount(heap)),
            ((MemoryPlace::Libraries, "/a.so".to_owned()), amount(other)),
            ((MemoryPlace::Libraries, String::new()), amount(5)),
        ];
        let generations = [(0, (0, 0)), (2, (60, 20))].into_iter().collect();
        Look { time_ns, places: places.into_iter().collect(), generations, ..Look::default() }
    }

    #[test]
    fn parts_add_up_to_the_part_they_are_in() {
        let process = Process::default();
        let rows = rows(&process, &look(9, 100, 7), &look(3, 300, 8));
        let find = |part, file: &str| rows.iter().find(|row| row.part == part && row.file == file).expect("a row");
        let resident = find(MemoryPart::Resident, "");
        assert_eq!((resident.resident_bytes, resident.peak_resident_bytes), (Some(112), Some(313)));
        let libraries = find(MemoryPart::Place(MemoryPlace::Libraries), "");
        assert_eq!(
            (libraries.resident_bytes, libraries.committed_bytes, libraries.mappings),
            (Some(12), Some(24), Some(6))
        );
        assert_eq!(find(MemoryPart::Place(MemoryPlace::Libraries), "/a.so").resident_bytes, Some(7));
        let old = find(MemoryPart::Generation(2), "");
        assert_eq!((old.object_bytes, old.free_bytes, old.resident_bytes), (Some(40), Some(20), None));
        let newer = find(MemoryPart::Newer, "");
        assert_eq!((newer.resident_bytes, newer.peak_resident_bytes), (Some(40), Some(240)));
        assert!(
            rows.iter().all(|row| row.part.inside().is_none_or(|inside| rows.iter().any(|row| row.part == inside)))
        );
    }

    #[test]
    fn nothing_is_said_of_generations_before_a_collection() {
        let process = Process::default();
        let before = |look: Look| Look { generations: BTreeMap::new(), ..look };
        let rows = rows(&process, &before(look(9, 100, 7)), &before(look(3, 300, 8)));
        assert!(rows.iter().all(|row| matches!(row.part, MemoryPart::Resident | MemoryPart::Place(_))));
    }
}
