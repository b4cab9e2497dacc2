//! Limits of the recordings that are kept (`--keep`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clrscope_contract::request::{parse_duration, parse_size};
use jiff::Timestamp;

use super::names::{PeriodFile, Scope};

/// Limits for a set of recordings. When a limit is exceeded, the oldest recordings of the set are
/// deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Maximum number of recordings.
    number: Option<u64>,
    /// Maximum age of a recording, counted from the beginning of its period.
    age: Option<Duration>,
    /// Maximum bytes of all recordings together.
    bytes: Option<u64>,
}

impl Default for Keep {
    fn default() -> Self {
        Self { number: None, age: Some(Duration::from_secs(24 * 60 * 60)), bytes: Some(10 << 30) }
    }
}

impl Keep {
    /// Reads limits such as `24h,10GiB` or `100`: a bare number is a number of recordings.
    ///
    /// # Errors
    /// A sentence about the first text that is no limit.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut keep = Self { number: None, age: None, bytes: None };
        for limit in text.split(',').map(str::trim) {
            let is_twice = if let Ok(number @ 1..) = limit.parse() {
                keep.number.replace(number).is_some()
            } else if let Some(age) = age(limit) {
                keep.age.replace(age).is_some()
            } else if let Some(bytes) = bytes(limit) {
                keep.bytes.replace(bytes).is_some()
            } else {
                return Err(format!("'{limit}' is neither a number of recordings, nor an age, nor a size"));
            };
            if is_twice {
                return Err(format!("'{limit}' is a second limit of its kind"));
            }
        }
        Ok(keep)
    }

    /// Deletes the oldest recordings until all limits are met, but never the newest recording.
    /// Returns the number of deleted files.
    pub(crate) fn apply(self, scope: Scope<'_>, now: Timestamp) -> u64 {
        let files = scope.files();
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let mut left = files.len() as u64;
        let mut deleted = 0;
        for file in files.iter().take(files.len().saturating_sub(1)) {
            let is_old = self.age.is_some_and(|age| file.age(now) > age);
            let is_too_many =
                self.number.is_some_and(|most| left > most) || self.bytes.is_some_and(|most| bytes > most);
            if !is_old && !is_too_many {
                break;
            }
            if delete(&file.path).is_ok() {
                deleted += 1;
            }
            (left, bytes) = (left - 1, bytes.saturating_sub(file.bytes));
        }
        deleted
    }
}

/// Deletes the oldest recording, to make room on a full disk. Returns its path; `None` if there is
/// no recording to delete.
pub(super) fn delete_oldest(scope: Scope<'_>) -> Option<PathBuf> {
    let oldest: PeriodFile = scope.files().into_iter().next()?;
    delete(&oldest.path).ok().map(|()| oldest.path)
}

/// A file that is gone is deleted.
fn delete(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// An age such as `90m`, `24h` or `7d`. Seconds need their unit: a bare number is something else.
fn age(text: &str) -> Option<Duration> {
    if let Some(days) = text.strip_suffix('d') {
        return days.parse().ok().and_then(|days: u64| days.checked_mul(24 * 60 * 60)).map(Duration::from_secs);
    }
    parse_duration(text).ok().map(Duration::from_millis)
}

/// A size with a unit.
fn bytes(text: &str) -> Option<u64> {
    parse_size(text).ok().filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::super::names::file_name;
    use super::*;

    #[test]
    fn limits_are_numbers_ages_and_sizes() {
        let keep = |number, hours: Option<u64>, bytes| Keep {
            number,
            age: hours.map(|hours| Duration::from_secs(hours * 3600)),
            bytes,
        };
        assert_eq!(Keep::parse("24h,10GiB"), Ok(Keep::default()));
        assert_eq!(Keep::parse("100"), Ok(keep(Some(100), None, None)));
        assert_eq!(Keep::parse("7d, 5"), Ok(keep(Some(5), Some(7 * 24), None)));
        assert_eq!(Keep::parse("512MiB"), Ok(keep(None, None, Some(512 << 20))));
        for bad in ["", "0", "0h", "1h,2h", "much", "5,", "-1", "99999999999999999999d"] {
            assert!(Keep::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_oldest_recordings_of_a_program_go_first_and_the_newest_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |minute: i64| Timestamp::from_second(1_800_000_000 + minute * 60).expect("a time");
        let write = |program: &str, minute| {
            std::fs::write(folder.path().join(file_name(program, at(minute))), [0; 100]).expect("a file");
        };
        (0..10).for_each(|minute| write("shop", minute));
        write("shop-admin", 0);
        std::fs::write(folder.path().join("shop-mine.clrs"), "").expect("a file");
        let left = || std::fs::read_dir(folder.path()).expect("a folder").count();
        let shop = Scope::Program(folder.path(), "shop");
        let keep = |text: &str| Keep::parse(text).expect("limits").apply(shop, at(10));
        assert_eq!((keep("100,1d,1MiB"), left()), (0, 12));
        assert_eq!((keep("8"), left()), (2, 10));
        assert_eq!((keep("6m"), left()), (2, 8));
        assert_eq!((keep("400B"), left()), (2, 6));
        assert_eq!((keep("1s"), left()), (3, 3));
        assert!(folder.path().join(file_name("shop", at(9))).exists());
        assert_eq!(delete_oldest(shop), Some(folder.path().join(file_name("shop", at(9)))));
        assert_eq!(delete_oldest(shop), None);
    }

    #[test]
    fn recordings_of_all_programs_count_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |minute: i64| Timestamp::from_second(1_800_000_000 + minute * 60).expect("a time");
        for (program, minute) in [("shop", 0), ("shop-admin", 1), ("shop", 2), ("mail", 3), ("shop-admin", 4)] {
            let own = folder.path().join(program);
            std::fs::create_dir_all(&own).expect("a folder");
            std::fs::write(own.join(file_name(program, at(minute))), [0; 100]).expect("a file");
        }
        std::fs::write(folder.path().join("watch.json"), "{}").expect("a file");
        let keep = |text: &str| Keep::parse(text).expect("limits").apply(Scope::Below(folder.path()), at(5));
        let is_there =
            |program: &str, minute| folder.path().join(program).join(file_name(program, at(minute))).exists();
        assert_eq!(keep("4"), 1);
        assert!(!is_there("shop", 0) && is_there("shop-admin", 1));
        assert_eq!(keep("150B"), 3);
        assert!(is_there("shop-admin", 4) && !is_there("mail", 3));
    }
}
