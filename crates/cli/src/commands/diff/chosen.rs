//! Recordings of a folder, chosen by their labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clrscope_analysis::{LabelSelection, Query, observed_ns};
use clrscope_recording::model::Recording;

use super::Named;
use crate::errors::{Failure, quoted, shown};
use crate::recording_file::open;
use crate::recording_folder::recordings_in;
use crate::terminal::say;

/// Most values of a label that a hint names.
const MOST_VALUES: usize = 8;

/// The chosen recordings of both sides.
pub(super) struct ChosenSides {
    /// The recordings before and after.
    pub(super) sides: [Vec<Named>; 2],
    /// Names of recordings that can't be read.
    pub(super) unreadable: Vec<String>,
}

/// The labels of all recordings: the values of each key.
#[derive(Default)]
struct KnownLabels {
    recordings: usize,
    values: BTreeMap<String, BTreeSet<String>>,
}

/// Opens the recordings whose processes have the labels, reduced to these processes. Recordings
/// that can't be read are named on stderr and left out; copies of a recording count once.
///
/// # Errors
/// When the folder has no recordings, a side has none of them, or both have the same one.
pub(super) fn open_chosen(folder: &Path, labels: &[LabelSelection; 2], query: &Query) -> Result<ChosenSides, Failure> {
    let Some(files) = recordings_in(folder) else { return Err(no_recordings(folder)) };
    let (mut known, mut unreadable) = (KnownLabels::default(), Vec::new());
    let mut sides = [Vec::new(), Vec::new()];
    for file in files {
        let recording = match open(&file) {
            Ok(recording) => recording,
            Err(failure) => {
                say(&format!("clrscope: {} is left out: {}", shown(&file), failure.why()));
                unreadable.push(file.to_string_lossy().into_owned());
                continue;
            }
        };
        known.add(&recording);
        let Some(side) = side_of(&recording, labels).map_err(|()| both_have(&file))? else { continue };
        let recording = recording.with_processes(|of, process| labels[side].selects(of, process));
        sides[side].push((file.to_string_lossy().into_owned(), recording));
    }
    let mut narrowed = [Vec::new(), Vec::new()];
    for (at, side) in sides.into_iter().enumerate() {
        if side.is_empty() {
            return Err(known.without_match(folder, &labels[at]));
        }
        for (name, recording) in without_copies(side) {
            narrowed[at].push((name, recording.narrowed_for(query)?));
        }
    }
    Ok(ChosenSides { sides: narrowed, unreadable })
}

/// The side that a recording belongs to; an error where it belongs to both.
fn side_of(recording: &Recording, labels: &[LabelSelection; 2]) -> Result<Option<usize>, ()> {
    let has = |side: usize| recording.processes.iter().any(|process| labels[side].selects(recording, process));
    match (has(0), has(1)) {
        (true, true) => Err(()),
        (true, false) => Ok(Some(0)),
        (false, true) => Ok(Some(1)),
        (false, false) => Ok(None),
    }
}

/// The recordings without copies: of those with one identifier, the one that tells of most time.
fn without_copies(all: Vec<Named>) -> Vec<Named> {
    let mut kept: Vec<Named> = Vec::new();
    for (name, recording) in all {
        let is_same = |(_, other): &&mut Named| !recording.run.id.is_empty() && other.run.id == recording.run.id;
        let Some(other) = kept.iter_mut().find(is_same) else {
            kept.push((name, recording));
            continue;
        };
        say(&format!("clrscope: {} and {} are one recording, and count once", quoted(&other.0), quoted(&name)));
        if observed_ns(&recording) > observed_ns(&other.1) {
            *other = (name, recording);
        }
    }
    kept
}

impl KnownLabels {
    fn add(&mut self, recording: &Recording) {
        self.recordings += 1;
        for process in &recording.processes {
            for (key, value) in LabelSelection::labels_of(recording, process) {
                self.values.entry(key).or_default().insert(value);
            }
        }
    }

    /// The failure of a selection that no recording has.
    fn without_match(&self, folder: &Path, labels: &LabelSelection) -> Failure {
        let short = |key: &str| LabelSelection::short_key(key).to_owned();
        let asked: Vec<String> = labels.keys().map(short).collect();
        let values = |key: &String| {
            let all = self.values.get(key)?;
            let named: Vec<&str> = all.iter().take(MOST_VALUES).map(String::as_str).collect();
            let more =
                if all.len() > MOST_VALUES { format!(" and {} more", all.len() - MOST_VALUES) } else { String::new() };
            Some(format!("{key} {}{more}", named.join(", ")))
        };
        let found: Vec<String> = asked.iter().filter_map(values).collect();
        let number = self.recordings;
        let why = match (number, found.is_empty()) {
            (0, _) => "none of the recordings there can be read".to_owned(),
            (_, true) => {
                let keys: Vec<&str> = self.values.keys().map(String::as_str).collect();
                format!("the {number} recordings there have no such label, but {}", keys.join(", "))
            }
            (_, false) => format!("the {number} recordings there have {}", found.join("; ")),
        };
        let what = format!("no recording in {} has the labels {labels}", shown(folder));
        Failure::new(what, why, "name labels that they have; in a value * stands for any text")
    }
}

fn both_have(file: &Path) -> Failure {
    let why = "its labels match both --before and --after";
    Failure::usage(format!("{} is on both sides", shown(file)), why, "name labels that only one of the sides has")
}

fn no_recordings(folder: &Path) -> Failure {
    let what = format!("cannot choose recordings by labels in {}", shown(folder));
    let why = match (folder.exists(), folder.is_dir()) {
        (false, _) => "there is no such folder",
        (true, false) => "it is not a folder",
        (true, true) => "it has no recordings (NAME.clrs or NAME.clrs.d), or is one itself",
    };
    Failure::new(what, why, "name the folder that has the recordings of both sides")
}
