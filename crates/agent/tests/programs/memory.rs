//! Where the memory of a program is, against what it took itself and what the system and the
//! runtime say.

use std::collections::BTreeMap;

use clrscope_analysis::{MemoryPart, MemoryRow, Query, memory};
use clrscope_recording::model::{MemoryPlace, Recording};
use clrscope_testkit::{each_runtime, fixture};

use crate::support::record_command;

const MEGA: u64 = 1 << 20;

/// What the program prints behind a word: numbers.
fn printed(output: &str, word: &str) -> Vec<Vec<u64>> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.map(|line| line.split(' ').map(|number| number.parse().expect("a number")).collect()).collect()
}

fn find<'r, 'a>(rows: &'r [MemoryRow<'a>], part: MemoryPart) -> &'r MemoryRow<'a> {
    rows.iter().find(|row| row.part == part && row.file.is_empty()).unwrap_or_else(|| panic!("{part:?}: {rows:#?}"))
}

fn bytes(rows: &[MemoryRow<'_>], place: MemoryPlace) -> (u64, u64) {
    let row = find(rows, MemoryPart::Place(place));
    (row.resident_bytes.expect("a size"), row.peak_resident_bytes.expect("a size"))
}

/// The program has touched so much in each place; what .NET has there itself comes on top.
#[test]
fn each_place_has_what_the_program_put_there() {
    each_runtime(|runtime| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = runtime.command(&fixture("Memory"));
        command.arg(folder.path().join("mapped"));
        let run = record_command(runtime, "Memory", "memory", command);
        let output = run.finished.expect_success().stdout_text();
        let view = memory(&run.recording, &Query::default()).expect("memory");
        let rows = &view.rows;
        let near = |what: &str, (bytes, wanted, more): (u64, u64, u64)| {
            assert!(
                (wanted..wanted + more).contains(&bytes),
                "{what} on {}: {bytes}, {rows:#?}\n{output}",
                runtime.version
            );
        };
        // Eight stacks of 3 MB, a mapped file of 32, twenty thousand blocks of 1,000 bytes.
        near("stacks", (bytes(rows, MemoryPlace::Stacks).0, 24 * MEGA, 4 * MEGA));
        near("files", (bytes(rows, MemoryPlace::Files).0, 32 * MEGA, 4 * MEGA));
        near("malloc", (bytes(rows, MemoryPlace::NativeHeap).0, 20_000 * 1_000, 12 * MEGA));
        // One block of 64 MB; at the peak 200 MB more. The collector's tables are there too.
        let (other, other_at_peak) = bytes(rows, MemoryPlace::Other);
        near("other", (other, 64 * MEGA, 20 * MEGA));
        near("other at the peak", (other_at_peak, 264 * MEGA, 20 * MEGA));
        assert_system_agrees(&run.recording, &output);
        assert_runtime_agrees(rows, &output);
        // Files are told apart by name.
        let core = |row: &&MemoryRow<'_>| row.file.ends_with("/libcoreclr.so");
        let core = rows.iter().find(core).expect("the runtime's library");
        assert_eq!(core.part, MemoryPart::Place(MemoryPlace::Libraries));
        near("libcoreclr.so", (core.resident_bytes.expect("a size"), MEGA, 20 * MEGA));
    });
}

/// The whole is what the system said of the program, to what comes and goes within a moment.
fn assert_system_agrees(recording: &Recording, output: &str) {
    let view = memory(recording, &Query::default()).expect("memory");
    let whole = find(&view.rows, MemoryPart::Resident);
    let (now, peak) = (whole.resident_bytes.expect("a size"), whole.peak_resident_bytes.expect("a size"));
    let (said, said_at_peak) = (printed(output, "RESIDENT")[0][0], printed(output, "PEAK")[0][0]);
    assert!(now.abs_diff(said) < 10 * MEGA, "{now} and {said}\n{output}");
    // The stated limit: a look comes once a twentieth and 1 MB more than ever is there.
    let limit = said_at_peak / 20 + MEGA;
    assert!(peak.abs_diff(said_at_peak) < limit, "{peak} and {said_at_peak}\n{output}");
    assert!(view.times[0].most_bytes.abs_diff(said_at_peak) < 10 * MEGA, "{:?}", view.times);
    let sum = |of: fn(&MemoryRow<'_>) -> Option<u64>| {
        let places = view.rows.iter().filter(|row| matches!(row.part, MemoryPart::Place(_)) && row.file.is_empty());
        places.filter_map(of).sum::<u64>()
    };
    assert_eq!([sum(|row| row.resident_bytes), sum(|row| row.peak_resident_bytes)], [now, peak]);
}

/// Generations are to the byte what the runtime tells the program; the managed heap is what it has
/// committed, to its tables.
fn assert_runtime_agrees(rows: &[MemoryRow<'_>], output: &str) {
    let said: BTreeMap<u64, (u64, u64)> =
        printed(output, "GENERATION").iter().map(|line| (line[0], (line[1], line[2]))).collect();
    assert_eq!(said.len(), 5, "{output}");
    for (number, (size, free)) in said {
        let row = find(rows, MemoryPart::Generation(number));
        let ours = (row.object_bytes.expect("a size"), row.free_bytes.expect("a size"));
        assert_eq!(ours, (size - free, free), "generation {number}: {rows:#?}\n{output}");
    }
    let heap = find(rows, MemoryPart::Place(MemoryPlace::ManagedHeap));
    let committed = printed(output, "COMMITTED")[0][0];
    let ours = heap.committed_bytes.expect("a size");
    assert!(ours.abs_diff(committed) < 16 * MEGA, "{ours} and {committed}: {rows:#?}\n{output}");
    assert!(heap.resident_bytes <= heap.committed_bytes);
    // At the peak no collection was over, and the 140 MB were there.
    assert!(heap.peak_resident_bytes >= Some(130 * MEGA), "{rows:#?}\n{output}");
}
