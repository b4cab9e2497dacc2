//! Finds the place of each mapping (what its memory is used for), and sums up the memory of each
//! place.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Range};
use std::path::PathBuf;

use clrscope_recording::model::MemoryPlace;

use super::mappings::Mapping;

/// Alignment and maximum size of the arenas that the C library's heap uses for threads
/// (`HEAP_MAX_SIZE` of glibc's malloc on 64-bit machines).
const ARENA_BYTES: u64 = 64 << 20;

/// Inaccessible mapped memory of at least this size that follows the collector's ranges is taken
/// for its reserve. Guard pages of stacks are much smaller.
const LEAST_RESERVE: u64 = 256 << 20;

/// Data by which the places of mappings are recognised.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Ranges of the collector, in any order.
    pub(super) heap: Vec<Range<u64>>,
    /// Ranges of objects that are never collected.
    pub(super) frozen: Vec<Range<u64>>,
    /// Stack pointers of threads.
    pub(super) stacks: Vec<u64>,
    /// Any address in the agent's code.
    pub(super) own_code: u64,
    /// Folder of the recording.
    pub(super) recording: String,
    /// Path of the file that the process runs.
    pub(super) executable: PathBuf,
}

/// Amounts of memory of a place, or of a file within a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Amount {
    pub(super) resident: u64,
    pub(super) swapped: u64,
    /// Bytes of mappings that can be read, written or executed.
    pub(super) committed: u64,
    pub(super) mappings: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, more: Self) {
        self.resident += more.resident;
        self.swapped += more.swapped;
        self.committed += more.committed;
        self.mappings += more.mappings;
    }
}

impl From<&Mapping> for Amount {
    fn from(mapping: &Mapping) -> Self {
        let committed = if mapping.is_usable { mapping.bytes() } else { 0 };
        Self { resident: mapping.resident, swapped: mapping.swapped, committed, mappings: 1 }
    }
}

/// Sums up the mappings by place, and within a place by file. The key's file is empty for memory
/// without a file.
pub(super) fn sum_up(mappings: &[Mapping], marks: &Marks) -> BTreeMap<(MemoryPlace, String), Amount> {
    let own_file = mappings.iter().find(|mapping| mapping.contains(marks.own_code)).map(|own| own.path.as_str());
    let mut sums: BTreeMap<(MemoryPlace, String), Amount> = BTreeMap::new();
    let mut library: Option<&Mapping> = None;
    for (at, mapping) in mappings.iter().enumerate() {
        let overlaps =
            |ranges: &[Range<u64>]| ranges.iter().any(|range| mapping.start < range.end && range.start < mapping.end);
        let plain = mapping.is_anonymous();
        // Uninitialized variables lie behind the library that they belong to.
        let continued = library.filter(|library| plain && library.end == mapping.start);
        let place = match mapping.path.as_str() {
            "" if plain && overlaps(&marks.heap) => MemoryPlace::ManagedHeap,
            "" if plain && overlaps(&marks.frozen) => MemoryPlace::FrozenObjects,
            "" if plain && marks.stacks.iter().any(|stack| mapping.contains(*stack)) => MemoryPlace::Stacks,
            "" if continued.is_some() => MemoryPlace::Libraries,
            "" if plain && is_arena(mapping, mappings.get(at + 1)) => MemoryPlace::NativeHeap,
            "" if mapping.is_code => MemoryPlace::Code,
            "" => MemoryPlace::Other,
            path => place_of_file(path, own_file, marks),
        };
        let file = match (place, continued) {
            (MemoryPlace::Libraries, Some(library)) => library.path.as_str(),
            (MemoryPlace::Libraries | MemoryPlace::Assemblies | MemoryPlace::Files, None) => mapping.path.as_str(),
            _ => "",
        };
        library = Some(mapping).filter(|_| place == MemoryPlace::Libraries && continued.is_none());
        *sums.entry((place, file.to_owned())).or_default() += mapping.into();
    }
    sums
}

fn place_of_file(path: &str, own_file: Option<&str>, marks: &Marks) -> MemoryPlace {
    let recording = &marks.recording;
    let file = path.trim_end_matches(" (deleted)");
    let name = file.rsplit('/').next().unwrap_or(file);
    match file {
        "[stack]" => MemoryPlace::Stacks,
        "[heap]" => MemoryPlace::NativeHeap,
        _ if Some(path) == own_file || (!recording.is_empty() && file.starts_with(recording)) => MemoryPlace::Agent,
        // The runtime may map code twice, once to write and once to run it.
        _ if file.starts_with("/memfd:doublemapper") => MemoryPlace::Code,
        _ if file.starts_with('[') => MemoryPlace::Libraries,
        _ if name.ends_with(".so") || name.contains(".so.") => MemoryPlace::Libraries,
        _ if marks.executable.as_os_str() == file => MemoryPlace::Libraries,
        _ if name.ends_with(".dll") || name.ends_with(".exe") => MemoryPlace::Assemblies,
        _ => MemoryPlace::Files,
    }
}

/// Joins the ranges that belong to the collector, which reserves a large range at once. The memory
/// between two ranges also belongs to the collector if it is only plain memory without a gap. So
/// does the memory that follows, up to the end of the large piece that is reserved and not used
/// yet.
pub(super) fn extents(mappings: &[Mapping], ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.to_vec();
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end || is_plain(mappings, last.end..range.start) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    for range in &mut joined {
        range.end = end_of_reserve(mappings, range.end).unwrap_or(range.end);
    }
    joined
}

/// End of the first reserved and unused piece at or behind an address, if only plain memory lies
/// between.
fn end_of_reserve(mappings: &[Mapping], from: u64) -> Option<u64> {
    let first = mappings.partition_point(|mapping| mapping.end < from);
    let mut reached = from;
    for mapping in &mappings[first..] {
        if mapping.start > reached || !mapping.is_anonymous() {
            return None;
        }
        if !mapping.is_usable && mapping.bytes() >= LEAST_RESERVE {
            return Some(mapping.end);
        }
        reached = mapping.end;
    }
    None
}

/// Whether the whole range is plain memory.
fn is_plain(mappings: &[Mapping], range: Range<u64>) -> bool {
    let first = mappings.partition_point(|mapping| mapping.end <= range.start);
    let mut reached = range.start;
    for mapping in &mappings[first..] {
        if reached >= range.end || mapping.start > reached || !mapping.is_anonymous() {
            break;
        }
        reached = mapping.end;
    }
    reached >= range.end
}

/// Whether a mapping is the used part of a thread's arena of the C library's heap: it begins at the
/// alignment of arenas, and its unused part follows up to the next alignment boundary.
fn is_arena(mapping: &Mapping, next: Option<&Mapping>) -> bool {
    let end = mapping.start.saturating_add(ARENA_BYTES);
    let rest = next.is_some_and(|next| next.start == mapping.end && next.end == end && !next.is_usable);
    mapping.is_usable && mapping.start.is_multiple_of(ARENA_BYTES) && (rest || mapping.end == end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(range: Range<u64>, rights: &str, path: &str) -> Mapping {
        let text = format!("{:x}-{:x} {rights} 0 00:00 0 {path}\nRss: 4 kB\n", range.start, range.end);
        super::super::mappings::parse(&text).pop().expect("a mapping")
    }

    fn places(mappings: &[Mapping], marks: &Marks) -> Vec<(MemoryPlace, String, u64)> {
        let sums = sum_up(mappings, marks);
        sums.into_iter().map(|((place, file), amount)| (place, file, amount.mappings)).collect()
    }

    #[test]
    fn each_mapping_has_its_place() {
        const ARENA: u64 = ARENA_BYTES * 16;
        let all = [
            mapping(0x1000..0x2000, "r-xp", "/lib/libcoreclr.so"),
            mapping(0x2000..0x3000, "rw-p", "/lib/libcoreclr.so"),
            mapping(0x3000..0x4000, "rw-p", ""),
            mapping(0x4000..0x5000, "rw-p", ""),
            mapping(0x6000..0x7000, "r--p", "/app/Shop.dll"),
            mapping(0x7000..0x8000, "rwxs", "/memfd:doublemapper (deleted)"),
            mapping(0x9000..0xa000, "rw-p", "[heap]"),
            mapping(0xb000..0xc000, "rw-p", ""),
            mapping(0xd000..0xe000, "r-xp", "/lib/agent.so"),
            mapping(0xf000..0x10000, "rw-s", "/tmp/r.clrs.d/tree.seg"),
            mapping(0x11000..0x12000, "r--s", "/data/prices"),
            mapping(0x13000..0x14000, "rwxp", ""),
            mapping(ARENA..ARENA + 0x1000, "rw-p", ""),
            mapping(ARENA + 0x1000..ARENA + ARENA_BYTES, "---p", ""),
        ];
        let marks =
            Marks { stacks: vec![0xbff0], own_code: 0xd100, recording: "/tmp/r.clrs.d".into(), ..Marks::default() };
        let file = |place, file: &str, mappings| (place, file.to_owned(), mappings);
        let expected = [
            file(MemoryPlace::Code, "", 2),
            file(MemoryPlace::Libraries, "/lib/libcoreclr.so", 3),
            file(MemoryPlace::Assemblies, "/app/Shop.dll", 1),
            file(MemoryPlace::Stacks, "", 1),
            file(MemoryPlace::NativeHeap, "", 2),
            file(MemoryPlace::Files, "/data/prices", 1),
            file(MemoryPlace::Agent, "", 2),
            // Memory that does not follow the library, and the rest of the arena.
            file(MemoryPlace::Other, "", 2),
        ];
        assert_eq!(places(&all, &marks), expected);
    }

    /// Regions of small objects grow from the left, regions of large ones from the right. Memory
    /// between them belongs to the collector, used or not. Memory behind a gap, a file or code does
    /// not.
    #[test]
    fn everything_between_two_ranges_of_the_collector_is_its_own() {
        let all = [
            mapping(0x1000..0x2000, "rw-p", ""),
            mapping(0x2000..0x3000, "rw-p", ""),
            mapping(0x3000..0x8000, "---p", ""),
            mapping(0x8000..0x9000, "rw-p", ""),
            mapping(0x9000..0xa000, "rw-p", ""),
            mapping(0xb000..0xc000, "rw-p", ""),
            mapping(0xd000..0xe000, "rw-p", ""),
        ];
        let heap = |ranges: &[Range<u64>]| {
            let sums = sum_up(&all, &Marks { heap: extents(&all, ranges), ..Marks::default() });
            sums.get(&(MemoryPlace::ManagedHeap, String::new())).map_or((0, 0), |sum| (sum.mappings, sum.committed))
        };
        assert_eq!(heap(&[]), (0, 0));
        assert_eq!(heap(&[0x8000..0x8800, 0x1000..0x1800]), (4, 0x3000));
        assert_eq!(heap(std::slice::from_ref(&(0x1000..0x2000))), (1, 0x1000));
        assert_eq!(heap(&[0xd000..0xe000, 0xb000..0xc000]), (2, 0x2000));
    }

    /// Ranges that were added since the last query lie in the reserve.
    #[test]
    fn the_reserve_behind_the_ranges_is_the_collectors() {
        let end = 0x5000 + LEAST_RESERVE;
        let all = [
            mapping(0x1000..0x2000, "rw-p", ""),
            mapping(0x2000..0x3000, "---p", ""),
            mapping(0x3000..0x5000, "rw-p", ""),
            mapping(0x5000..end, "---p", ""),
            mapping(end..end + 0x1000, "rw-p", ""),
        ];
        let range = 0x1000..0x2000;
        let whole = 0x1000..end;
        assert_eq!(extents(&all, std::slice::from_ref(&range)), std::slice::from_ref(&whole));
        assert_eq!(extents(&all[..3], std::slice::from_ref(&range)), [range]);
    }
}
