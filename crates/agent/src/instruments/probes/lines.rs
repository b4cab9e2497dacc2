//! The lines that are wanted, and their places in an assembly.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_contract::request::{LineHint, SourceLine};
use clrscope_recording::writer::ProcessWriter;
use clrscope_agent_base::recording_lifetime::keep;

use super::line_search::{LinePlace, LineSearch};
use super::line_store::LineStore;

/// The lines that are wanted, and room for their counters.
pub(super) struct Lines {
    /// In the order in which the rules were given: the last rule about a place counts.
    rules: Mutex<Vec<LineRule>>,
    search: LineSearch,
    pub(super) store: &'static LineStore,
    writer: &'static ProcessWriter,
    /// Notes about lines that the recording has already.
    noted: Mutex<HashSet<(String, Option<LineHint>)>>,
}

/// A rule that says whether a line is wanted.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LineRule {
    line: SourceLine,
    is_wanted: bool,
}

/// What was found for lines in a module: their places, or suggestions.
#[derive(Default)]
pub(super) struct LineMatches {
    pub(super) places: Vec<LinePlace>,
    pub(super) hints: Vec<(SourceLine, LineHint)>,
}

impl Lines {
    pub(super) fn new(wanted: &[SourceLine], writer: &'static ProcessWriter) -> Self {
        let rules = wanted.iter().map(|line| LineRule { line: line.clone(), is_wanted: true }).collect();
        Self {
            rules: Mutex::new(rules),
            search: LineSearch::default(),
            store: keep(LineStore::new(writer)),
            writer,
            noted: Mutex::default(),
        }
    }

    /// Whether no line was ever wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.rules().is_empty()
    }

    pub(super) fn rules(&self) -> MutexGuard<'_, Vec<LineRule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a last rule about a line, which replaces an earlier one. Returns the previous rules.
    pub(super) fn say(&self, line: &SourceLine, is_wanted: bool) -> Vec<LineRule> {
        let mut rules = self.rules();
        let before = rules.clone();
        rules.retain(|rule| rule.line != *line);
        rules.push(LineRule { line: line.clone(), is_wanted });
        before
    }

    /// The lines that are wanted, according to the last rule about each.
    pub(super) fn wanted(&self) -> Vec<SourceLine> {
        self.rules().iter().filter(|rule| rule.is_wanted).map(|rule| rule.line.clone()).collect()
    }

    /// Whether a place is wanted, according to the last rule about it.
    pub(super) fn wants(&self, place: &LinePlace) -> bool {
        let rules = self.rules();
        let last = rules.iter().rev().find(|rule| rule.line.is_meant(&place.file, place.line));
        last.is_some_and(|rule| rule.is_wanted)
    }

    /// Finds lines in the assembly at a path.
    pub(super) fn find(&self, path: &Path, lines: &[SourceLine]) -> LineMatches {
        let module = match self.search.open(path) {
            Ok(module) => module,
            Err(hint) => {
                let hints = lines.iter().map(|line| (line.clone(), hint.clone())).collect();
                return LineMatches { hints, ..LineMatches::default() };
            }
        };
        let places = module.places(lines);
        let is_missed = |line: &&SourceLine| !places.iter().any(|place| line.is_meant(&place.file, place.line));
        let missed = lines.iter().filter(is_missed);
        let hints = missed.flat_map(|line| module.hints(line).into_iter().map(|hint| (line.clone(), hint)));
        LineMatches { hints: hints.collect(), places }
    }

    /// Notes in the recording which lines have a place, and the suggestions for the other lines.
    /// Each is noted once.
    pub(super) fn note(&self, lines: &[SourceLine], found: &LineMatches) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let word = |line: &SourceLine| format!("probe-at={line}");
        let has_place = |line: &&SourceLine| found.places.iter().any(|place| line.is_meant(&place.file, place.line));
        for line in lines.iter().filter(has_place).map(word) {
            if noted.insert((line.clone(), None)) {
                self.writer.pattern_matched(&line);
            }
        }
        for (line, hint) in &found.hints {
            let line = word(line);
            if noted.insert((line.clone(), Some(hint.clone()))) {
                self.writer.near_name(&line, &hint.to_string());
            }
        }
    }
}
