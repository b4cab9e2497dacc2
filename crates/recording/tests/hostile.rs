//! Recordings that were cut, damaged or made to do harm: whatever the bytes, reading them neither
//! panics nor hangs nor takes much memory; and what was damaged is said.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clrscope_recording::model::{Clock, Recording};
use clrscope_recording::testing::allocator::{self, Counting};
use clrscope_recording::testing::fuzzing::{Target, directory_to_bytes, load_all, seeds};
use clrscope_recording::testing::mutate::{lie, mutate};
use clrscope_recording::testing::synthetic::{
    Numbers, Shape, segments, trim, write_directory, write_directory_in_periods,
};
use clrscope_recording::{EndOfPeriod, Period, open_period, written_periods};
use common::{packed, unpacked};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory for reading a recording: at most so many times its size (measured: up to 17.5 times) ...
const MULTIPLE: usize = 24;
/// ... and this, which every recording needs, however short (measured: 628 bytes). What the
/// decompressor, a C library, asks for is its own and not counted.
const CONSTANT: usize = 4 << 10;
/// Nothing of this size may take longer, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(5);

/// A small recording directory, without the space that segments keep ahead.
fn directory(folder: &Path, clock: Clock) -> PathBuf {
    let name = folder.join("x.clrs.d");
    let shape = Shape { tree_bytes: 12 << 10, threads: 2, functions: 8, clock, steps_per_look: 9 };
    write_directory(&name, &shape).expect("a directory");
    trim(&name).expect("files to cut");
    name
}

/// A folder in memory where there is such: these tests write thousands of files.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

fn small() -> Recording {
    let folder = folder();
    let mut recording = clrscope_recording::open(&directory(folder.path(), Clock::Sampled)).expect("a recording");
    // Trees are read on demand, and the directory goes away.
    for thread in recording.processes.iter_mut().flat_map(|process| &mut process.threads) {
        thread.tree = clrscope_recording::model::TreeSource::ready(thread.tree.load());
    }
    for chunk in recording.processes.iter_mut().flat_map(|p| &mut p.events).flat_map(|arena| &mut arena.chunks) {
        chunk.bytes = chunk.bytes.load().to_vec().into();
    }
    recording
}

/// Reads all of it within bounds.
fn within_bounds(size: usize, read: impl FnOnce() -> Option<Recording>) -> Option<Recording> {
    let started = Instant::now();
    let (recording, bytes) = allocator::of_thread(|| {
        read().inspect(|recording| {
            load_all(recording);
        })
    });
    assert!(bytes <= size * MULTIPLE + CONSTANT, "{bytes} bytes of memory for {size} of recording");
    assert!(started.elapsed() < LONGEST, "{:?} for {size} bytes", started.elapsed());
    recording
}

fn read_packed(bytes: &[u8]) -> Option<Recording> {
    within_bounds(bytes.len(), || unpacked(bytes).ok())
}

/// Everything a recording says, as a text.
fn described(recording: &Recording) -> String {
    let trees = recording.processes.iter().flat_map(|process| &process.threads).map(|thread| thread.tree.load());
    format!("{:?} {:?} {:?}", recording.run, recording.processes, trees.collect::<Vec<_>>())
}

#[test]
fn a_packed_file_cut_anywhere_gives_what_stood_before() {
    let bytes = packed(&small());
    let whole = small();
    let mut before = [0; 5];
    for end in 0..bytes.len() {
        let Some(read) = read_packed(&bytes[..end]) else {
            assert!(before == [0; 5] && end < 300, "refused at {end}");
            continue;
        };
        assert!(!read.problems.is_empty(), "a cut at {end} went unnoticed");
        // More bytes never give less.
        let now = amounts(&read);
        assert!(now.iter().zip(&before).all(|(now, before)| now >= before), "{now:?} after {before:?} at {end}");
        before = now;
    }
    assert_eq!(before, amounts(&whole));
    assert!(before.iter().all(|&amount| amount > 0), "{before:?}");
}

/// Amounts in a recording: functions, costs of hooks, bytes of events, nodes of trees, nodes of
/// stacks.
fn amounts(recording: &Recording) -> [usize; 5] {
    let Some(process) = recording.processes.first() else { return [0; 5] };
    let costs = process.calls.as_ref().map_or(0, |calls| calls.pair_costs.len());
    let chunks = process.events.iter().flat_map(|arena| &arena.chunks);
    let events = chunks.map(|chunk| chunk.bytes.load().len()).sum();
    [process.functions.len(), costs, events, load_all(recording), process.stacks.len()]
}

#[test]
fn no_damaged_byte_of_a_packed_file_goes_unnoticed() {
    let bytes = packed(&small());
    let truth = described(&unpacked(&bytes).expect("it was just written"));
    let mut numbers = Numbers::new(3);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << numbers.below(8);
        let Some(read) = read_packed(&damaged) else {
            assert!(at < 12, "refused because of byte {at}");
            continue;
        };
        assert!(!read.problems.is_empty() || described(&read) == truth, "damage at {at} went unnoticed");
    }
}

#[test]
fn one_damaged_section_costs_no_other() {
    let bytes = packed(&small());
    let whole = unpacked(&bytes).expect("it was just written");
    let mut partial = 0;
    for at in 16..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] = !damaged[at];
        let read = read_packed(&damaged).expect("only its start can make a file unreadable");
        let same = |a: bool, b: bool, c: bool| usize::from(a) + usize::from(b) + usize::from(c);
        let (p, q) = (&whole.processes[0], read.processes.first());
        let kept = q.map_or(0, |q| {
            let functions = format!("{:?}", q.functions) == format!("{:?}", p.functions);
            let modules = format!("{:?}", q.modules) == format!("{:?}", p.modules);
            same(functions, modules, load_all(&read) == load_all(&whole))
        });
        assert!(kept >= 2, "byte {at} cost {}", 3 - kept);
        partial += usize::from(kept == 2);
    }
    assert!(partial > 100, "{partial}");
}

#[test]
fn random_damage_to_a_packed_file_does_no_harm() {
    let seeds = seeds(Target::OpenPacked).expect("seeds");
    let mut numbers = Numbers::new(4);
    for _ in 0..3_000 {
        let mut bytes = seeds[numbers.below(seeds.len())].clone();
        mutate(&mut bytes, &mut numbers);
        read_packed(&bytes);
    }
}

#[test]
fn a_packed_file_that_lies_under_right_checksums_does_no_harm() {
    let seeds = seeds(Target::OpenPacked).expect("seeds");
    let mut numbers = Numbers::new(5);
    let mut read = 0;
    for _ in 0..3_000 {
        let bytes = lie(&seeds[numbers.below(seeds.len())], &mut numbers);
        read += usize::from(read_packed(&bytes).is_some_and(|r| !r.processes.is_empty()));
    }
    // Most of them get past the checksums, or this would test nothing.
    assert!(read > 2_000, "{read}");
}

#[test]
fn every_file_of_a_directory_cut_anywhere_gives_what_stood_before() {
    for clock in [Clock::Sampled, Clock::Tsc] {
        let folder = folder();
        let name = directory(folder.path(), clock);
        let size: usize = segments(&name).expect("files").iter().map(|path| length(path)).sum();
        // Only trees depend on the clock.
        let of_clock = |path: &PathBuf| clock == Clock::Sampled || path.ends_with("tree.seg");
        for path in segments(&name).expect("files").into_iter().filter(of_clock) {
            let bytes = fs::read(&path).expect("a segment");
            let file = fs::File::options().write(true).open(&path).expect("a segment");
            let mut nodes = usize::MAX;
            for end in (0..=bytes.len()).rev() {
                file.set_len(end as u64).expect("a shorter file");
                let read = within_bounds(size, || clrscope_recording::open(&name).ok()).expect("most of it is there");
                let nodes_now = load_all(&read);
                assert!(end == bytes.len() || !read.problems.is_empty(), "a cut of {} at {end}", path.display());
                assert!(nodes_now <= nodes, "more in {} at {end}", path.display());
                nodes = nodes_now;
            }
            fs::write(&path, &bytes).expect("the segment again");
        }
        assert_eq!(clrscope_recording::open(&name).expect("a recording").problems, []);
    }
}

fn length(path: &Path) -> usize {
    path.metadata().map_or(0, |metadata| metadata.len() as usize)
}

#[test]
fn random_damage_to_a_directory_does_no_harm() {
    let mut numbers = Numbers::new(6);
    for clock in [Clock::Sampled, Clock::Tsc] {
        let folder = folder();
        let name = directory(folder.path(), clock);
        damage(&name, &mut numbers, || clrscope_recording::open(&name).ok());
    }
}

#[test]
fn random_damage_to_a_recording_in_periods_does_no_harm() {
    let mut numbers = Numbers::new(7);
    for clock in [Clock::Sampled, Clock::Tsc] {
        let folder = folder();
        let name = folder.path().join("x.clrs.d");
        let shape = Shape { tree_bytes: 12 << 10, threads: 2, functions: 8, clock, steps_per_look: 9 };
        write_directory_in_periods(&name, &shape).expect("a directory");
        trim(&name).expect("files to cut");
        let open = |number| {
            let earlier = written_periods(&name).written;
            open_period(&name, &Period::new(EndOfPeriod { number, mono_ns: u64::MAX }, &earlier, &|_| true)).ok()
        };
        // The logs reach back to the period before the last one.
        for number in [2, 3] {
            let recording = open(number).expect("a period");
            let [process] = recording.processes.as_slice() else { panic!("one process") };
            assert_eq!(
                process.parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>(),
                [format!("period {number}")]
            );
        }
        let mut periods = [1, 2, 3, 4, u32::MAX].into_iter().cycle();
        damage(&name, &mut numbers, || periods.next().and_then(open));
    }
}

/// Damages files of the directory one after another, and opens it each time.
fn damage(name: &Path, numbers: &mut Numbers, mut open: impl FnMut() -> Option<Recording>) {
    let files = segments(name).expect("files");
    for _ in 0..1_000 {
        let path = &files[numbers.below(files.len())];
        let bytes = fs::read(path).expect("a segment");
        let mut damaged = bytes.clone();
        if numbers.below(4) > 0 {
            // The content, most of the time: the first page is nearly empty.
            let mut content = damaged.split_off(4096);
            mutate(&mut content, numbers);
            damaged.append(&mut content);
        } else {
            mutate(&mut damaged, numbers);
        }
        fs::write(path, &damaged).expect("a damaged segment");
        let size = files.iter().map(|path| length(path)).sum();
        within_bounds(size, &mut open);
        fs::write(path, &bytes).expect("the segment again");
    }
}

#[test]
fn every_target_survives_its_seeds() {
    for target in Target::ALL {
        let seeds = seeds(target).expect("seeds");
        assert!(seeds.len() >= 2);
        seeds.iter().for_each(|seed| target.run(seed));
    }
}

#[test]
fn a_directory_survives_as_bytes() {
    let folder = folder();
    let name = directory(folder.path(), Clock::Sampled);
    let bytes = directory_to_bytes(&name).expect("bytes");
    assert!(bytes.len() > 8_000, "{}", bytes.len());
    Target::OpenDirectory.run(&bytes);
}
