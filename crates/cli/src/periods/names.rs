//! Names of the recordings of periods: `PROGRAM-20261130T083804Z.clrs`, by the beginning of the
//! period.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const TIME: &str = "%Y%m%dT%H%M%SZ";
const EXTENSION: &str = ".clrs";

/// Name of the recording of a period of `program` that begins at this time.
pub(super) fn file_name(program: &str, begin: Timestamp) -> String {
    format!("{program}-{}{EXTENSION}", begin.strftime(TIME))
}

/// The file of a period's recording.
#[derive(Debug)]
pub(super) struct PeriodFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    begin: Timestamp,
}

impl PeriodFile {
    /// Time since the beginning of the period.
    pub(super) fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.begin)).unwrap_or_default()
    }
}

/// A set of recordings of periods to which the limits of `--keep` apply together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The recordings of one program in a folder: the folder and the program's name.
    Program(&'a Path, &'a str),
    /// The recordings of all programs, each in its own folder below this one.
    Below(&'a Path),
}

impl Scope<'_> {
    /// The recordings, the oldest first.
    pub(super) fn files(self) -> Vec<PeriodFile> {
        let mut found = match self {
            Self::Program(folder, program) => files_in(folder, Some(program)),
            Self::Below(folder) => entries_of(folder).flat_map(|entry| files_in(&entry.path(), None)).collect(),
        };
        found.sort_by(|a, b| (a.begin, &a.path).cmp(&(b.begin, &b.path)));
        found
    }
}

/// Whether this is the name of the recording of a period.
pub(super) fn is_recording(name: &str) -> bool {
    begin_of(name).is_some()
}

/// The program in the name of a period's recording, and the beginning of the period.
fn begin_of(name: &str) -> Option<(&str, Timestamp)> {
    let (program, time) = name.strip_suffix(EXTENSION)?.rsplit_once('-')?;
    let begin = DateTime::strptime(TIME, time).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some((program, begin))
}

/// The recordings of periods of `program` in `folder`, or of all programs, in any order.
fn files_in(folder: &Path, program: Option<&str>) -> Vec<PeriodFile> {
    let of_entry = |entry: DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (of, begin) = begin_of(&name)?;
        if program.is_some_and(|program| program != of) {
            return None;
        }
        let bytes = entry.metadata().ok().filter(|about| about.is_file())?.len();
        Some(PeriodFile { path: entry.path(), bytes, begin })
    };
    entries_of(folder).filter_map(of_entry).collect()
}

fn entries_of(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}
