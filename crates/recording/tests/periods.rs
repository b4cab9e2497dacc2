//! The share of a process in each period, where the process answers late or not at all: together
//! the shares are its whole time, once.

use std::path::{Path, PathBuf};

use clrscope_recording::model::{BoundaryKind, PartBoundary};
use clrscope_recording::writer::{ProcessRecord, ProcessWriter, RunWriter, monotonic_ns, process_folders};
use clrscope_recording::{EndOfPeriod, Period, open_period};

const SECOND: u64 = 1_000_000_000;

/// A recording of one process that is read in periods of ten seconds.
struct InPeriods {
    folder: tempfile::TempDir,
    writer: ProcessWriter,
    /// Monotonic nanoseconds of the start.
    start_ns: u64,
    ends: Vec<EndOfPeriod>,
    /// The shares that were read: number of the period, first and last second.
    shares: Vec<(u32, u64, u64)>,
    _run: RunWriter,
}

impl InPeriods {
    fn begin() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("x.clrs.d");
        let run = RunWriter::create(&place, &["program".to_owned()], "exceptions", SECOND).expect("a recording");
        let start_ns = monotonic_ns();
        let process = ProcessRecord { pid: 7, mono_ns: start_ns, unix_ns: 1, ..ProcessRecord::default() };
        let writer = ProcessWriter::create(&place, &process).expect("a process");
        Self { folder, writer, start_ns, ends: Vec::new(), shares: Vec::new(), _run: run }
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("x.clrs.d")
    }

    /// The process ends a period at this second, or all of them.
    fn cut(&self, period: Option<u32>, second: u64) {
        let mono_ns = self.start_ns + second * SECOND;
        let name = period.map_or_else(String::new, |number| number.to_string());
        self.writer.part_boundary(&PartBoundary { mono_ns, kind: BoundaryKind::Cut, name, number: 0 });
        self.writer.state().alive(mono_ns, 0, 0);
    }

    /// The process ends in an orderly way.
    fn end(&self, second: u64) {
        self.cut(None, second);
        self.writer.state().ended();
    }

    /// The launcher reads the period that ends at this second, as it does for a file.
    fn read(&mut self, second: u64, has_ended: bool) {
        let number = self.ends.len() as u32 + 1;
        let mono_ns = if second == u64::MAX { second } else { self.start_ns + second * SECOND };
        let has_ended = |_: &Path| has_ended;
        let end = EndOfPeriod { number, mono_ns };
        let period = Period::new(end, &self.ends, &has_ended);
        let recording = open_period(&self.place(), &period).expect("a period");
        for process in &recording.processes {
            // Where a process answered late, the share has a part for each answer.
            let (first, last) = (process.parts.first().expect("a part"), process.parts.last().expect("a part"));
            let seconds = |ns: u64| (ns.saturating_sub(process.started_ns) + SECOND / 2) / SECOND;
            self.shares.push((number, seconds(first.since_ns), seconds(last.until_ns)));
        }
        for over in period.over() {
            std::fs::remove_dir_all(over).expect("a folder");
        }
        self.ends.push(end);
    }

    fn is_gone(&self) -> bool {
        process_folders(&self.place()).next().is_none()
    }
}

#[test]
fn a_process_that_answers_in_time_has_a_share_of_each_period() {
    let mut run = InPeriods::begin();
    run.cut(Some(1), 10);
    run.read(11, false);
    run.cut(Some(2), 20);
    run.read(21, false);
    run.end(25);
    run.read(u64::MAX, true);
    assert_eq!(run.shares, [(1, 0, 10), (2, 10, 20), (3, 20, 25)]);
    assert!(run.is_gone());
}

#[test]
fn a_process_that_ends_instead_of_answering_is_in_one_period() {
    let mut run = InPeriods::begin();
    run.cut(Some(1), 10);
    run.read(11, false);
    // It did not answer by second 21, and has ended when the period is read.
    run.end(22);
    run.read(21, false);
    run.read(u64::MAX, true);
    assert_eq!(run.shares, [(1, 0, 10), (2, 10, 22)]);
    assert!(run.is_gone());
}

#[test]
fn a_process_that_answers_after_its_period_was_written_loses_no_time() {
    let mut run = InPeriods::begin();
    run.cut(Some(1), 10);
    run.read(11, false);
    run.read(21, false);
    // It was suspended, and ends the second period now; then it is suspended again.
    run.cut(Some(2), 27);
    run.read(31, false);
    run.cut(Some(4), 40);
    run.read(41, false);
    run.end(45);
    run.read(u64::MAX, true);
    assert_eq!(run.shares, [(1, 0, 10), (4, 10, 40), (5, 40, 45)]);
}

#[test]
fn a_killed_process_that_is_known_to_be_dead_late_has_its_last_share_then() {
    let mut run = InPeriods::begin();
    run.cut(Some(1), 10);
    run.read(11, false);
    run.writer.state().alive(run.start_ns + 20 * SECOND, 0, 0);
    // It was killed before the end of the second period.
    run.read(21, false);
    run.read(31, true);
    run.read(u64::MAX, true);
    assert_eq!(run.shares, [(1, 0, 10), (3, 10, 20)]);
    assert!(run.is_gone());
}

#[test]
fn a_process_that_ends_with_its_period_has_no_empty_share() {
    let mut run = InPeriods::begin();
    run.cut(Some(1), 10);
    run.read(11, false);
    run.end(10);
    run.read(21, true);
    assert_eq!(run.shares, [(1, 0, 10)]);
    assert!(run.is_gone());
}
