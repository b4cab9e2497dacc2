//! Which of the given patterns have matched something: one that never does is probably misspelt, and
//! the report says so.

use std::sync::atomic::{AtomicBool, Ordering};

use clrscope_contract::request::{Filter, Glob};
use clrscope_recording::writer::ProcessWriter;

/// Some patterns of one option.
struct Marks {
    /// As the recording names them.
    words: Vec<String>,
    seen: Vec<AtomicBool>,
    writer: &'static ProcessWriter,
}

impl Marks {
    fn new<'t>(option: &str, patterns: impl Iterator<Item = &'t str>, writer: &'static ProcessWriter) -> Self {
        let words: Vec<String> = patterns.map(|pattern| format!("{option}={pattern}")).collect();
        let seen = words.iter().map(|_| AtomicBool::new(false)).collect();
        Self { words, seen, writer }
    }

    /// Has `matches` look at the patterns that have not matched anything yet.
    fn test(&self, matches: impl Fn(usize) -> bool) {
        for (at, seen) in self.seen.iter().enumerate() {
            if !seen.load(Ordering::Relaxed) && matches(at) && !seen.swap(true, Ordering::Relaxed) {
                self.writer.pattern_matched(&self.words[at]);
            }
        }
    }
}

/// Includes and excludes, watched.
pub(crate) struct WatchedFilter {
    filter: Filter,
    include: Marks,
    exclude: Marks,
}

impl WatchedFilter {
    pub(crate) fn new(filter: Filter, writer: &'static ProcessWriter) -> Self {
        let include = Marks::new("include", filter.include.iter().map(|pattern| pattern.as_str()), writer);
        let exclude = Marks::new("exclude", filter.exclude.iter().map(|pattern| pattern.as_str()), writer);
        Self { filter, include, exclude }
    }

    /// Whether a function passes.
    pub(crate) fn passes(&self, assembly: &str, name: &str) -> bool {
        self.include.test(|at| self.filter.include[at].matches(assembly, name));
        self.exclude.test(|at| self.filter.exclude[at].matches(assembly, name));
        self.filter.passes(assembly, name)
    }

    /// Whether there are includes, which name functions.
    pub(crate) fn names_any(&self) -> bool {
        !self.filter.include.is_empty()
    }

    /// Whether a function is named by an include.
    pub(crate) fn names(&self, assembly: &str, name: &str) -> bool {
        self.filter.includes(assembly, name)
    }
}

/// Names whose values are never read, watched. Upper and lower case are the same: a property and its parameter differ by
/// nothing else.
pub(crate) struct Redaction {
    /// In lower case.
    globs: Vec<Glob>,
    marks: Marks,
}

impl Redaction {
    pub(crate) fn new(globs: &[String], writer: &'static ProcessWriter) -> Self {
        let marks = Marks::new("redact", globs.iter().map(String::as_str), writer);
        Self { globs: globs.iter().map(|text| Glob::new(&text.to_lowercase())).collect(), marks }
    }

    /// Whether values of this name are not to be read.
    pub(crate) fn hides(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.marks.test(|at| self.globs[at].matches(&name));
        self.globs.iter().any(|glob| glob.matches(&name))
    }
}
