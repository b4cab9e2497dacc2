//! Names of the recordings of periods: `PROGRAM-20261130T083804Z.clrs`, by the beginning of the
//! period.

use std::fs;
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

/// A recording of a period.
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

/// The recordings of periods of `program` in `folder`, the oldest first.
pub(super) fn files(folder: &Path, program: &str) -> Vec<PeriodFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PeriodFile> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let time = name.strip_prefix(program)?.strip_prefix('-')?.strip_suffix(EXTENSION)?;
            let begin = DateTime::strptime(TIME, time).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
            let bytes = entry.metadata().ok().filter(|about| about.is_file())?.len();
            Some(PeriodFile { path: entry.path(), bytes, begin })
        })
        .collect();
    found.sort_by(|a, b| (a.begin, &a.path).cmp(&(b.begin, &b.path)));
    found
}
