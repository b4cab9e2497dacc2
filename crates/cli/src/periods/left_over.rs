//! Recordings in periods that a killed launcher has left.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clrscope_recording::writer::{is_abandoned, living_processes, take_abandoned};
use clrscope_recording::{EndOfPeriod, Period, open_period, written_periods};
use jiff::Timestamp;

use super::names::Scope;
use super::{Clock, CutState, PeriodPlace, remove_over, write_period};
use crate::errors::{reason, shown};
use crate::output;
use crate::terminal::say;

/// Writes the last periods of recordings that killed launchers have left unfinished in `folder`,
/// and removes the directories of these recordings. If `is_pushed`, the recordings are marked as
/// ones to be pushed.
pub(crate) fn write_left_over(folder: &Path, is_pushed: bool) {
    for recording in left_over(folder) {
        // An agent that was attached notices the end of its launcher within moments, and leaves.
        let began = Instant::now();
        let grows = || living_processes(&recording).next().is_some();
        while grows() && began.elapsed() < FOR_LEAVING {
            thread::park_timeout(LOOK_EVERY);
        }
        if grows() {
            say(&format!("clrscope: {} is left as it is: a program still records into it", shown(&recording)));
            continue;
        }
        // Another process may write it at the same time.
        if let Some(_taken) = take_abandoned(&recording) {
            write(folder, &recording, is_pushed);
        }
    }
}

/// Longest wait for the agents of a killed launcher to leave.
const FOR_LEAVING: Duration = Duration::from_secs(5);
/// Pause between two looks for them.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Directories of recordings in `folder` that no launcher holds.
fn left_over(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| output::file_of(path).is_some() && path.join("run.log").is_file() && is_abandoned(path))
        .collect();
    found.sort();
    found
}

fn write(folder: &Path, recording: &Path, is_pushed: bool) {
    let Some(program) = program_of(recording) else { return };
    let (recording_folder, is_one_of_many) = (recording.to_owned(), false);
    let folder = folder.to_owned();
    let place = PeriodPlace { recording: recording_folder, folder, program, is_one_of_many, is_pushed };
    let so_far = written_periods(recording);
    let (began_ns, began_unix_ns) = so_far.start_ns;
    let began = Timestamp::from_nanosecond(began_unix_ns.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    let clock = Clock { began, began_ns };
    let (mut earlier, last) = (so_far.written.clone(), so_far.last_written());
    let (mut ends, mut cuts) = (Vec::new(), CutState::default());
    // The launcher was killed before it had written this period.
    if so_far.ended.number > last.number {
        ends.push(so_far.ended);
    }
    let last = so_far.ended.number.max(last.number);
    ends.push(EndOfPeriod { number: last.saturating_add(1), mono_ns: u64::MAX });
    for end in ends {
        let period = Period::new(end, &earlier, &|_| true);
        let written = if is_written(&place, &so_far.id_of(end.number)) {
            // Finds which processes were over.
            open_period(recording, &period).map(|_| None).map_err(|error| error.to_string())
        } else {
            write_period(&place, &period, clock.at(period.since_ns()), &mut cuts).map_err(|failure| failure.to_string())
        };
        match written {
            Ok(Some((file, _))) => say(&format!("clrscope: {} is the end of an earlier recording", shown(&file))),
            Ok(None) => {}
            Err(failure) => return say(failure.trim_end()),
        }
        remove_over(&period);
        earlier.push(end);
    }
    if let Err(error) = output::remove(recording) {
        say(&format!("clrscope: {} could not be removed: {}", shown(recording), reason(&error)));
    }
}

/// Newest recordings that are looked through for one that the launcher has written, but could not
/// note before it was killed.
const LOOKED_THROUGH: usize = 3;

/// Whether the recording with this identifier is there.
fn is_written(place: &PeriodPlace, id: &str) -> bool {
    let files = Scope::Program(&place.folder, &place.program).files();
    let mut found =
        files.iter().rev().take(LOOKED_THROUGH).filter_map(|file| clrscope_recording::open(&file.path).ok());
    !id.is_empty() && found.any(|found| found.run.id == id)
}

/// The program's name in `PROGRAM-YYYYMMDD-HHMMSS.clrs.d`.
fn program_of(recording: &Path) -> Option<String> {
    let file = output::file_of(recording)?;
    let stem = file.file_stem()?.to_str()?;
    let parts: Vec<&str> = stem.rsplitn(3, '-').collect();
    Some(parts.last().filter(|_| parts.len() == 3).map_or(stem, |program| program).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_precedes_the_time() {
        let program = |name: &str| program_of(Path::new(name));
        assert_eq!(program("a/shop-20261130-083804.clrs.d").as_deref(), Some("shop"));
        assert_eq!(program("shop-admin-20261130-083804.clrs.d").as_deref(), Some("shop-admin"));
        assert_eq!(program("shop.clrs.d").as_deref(), Some("shop"));
        assert_eq!(program("shop"), None);
    }
}
