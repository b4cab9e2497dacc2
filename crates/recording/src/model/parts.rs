//! Parts of a recording: the time between two boundaries. Each boundary was set while the program
//! ran, by a command or by the program's own code.
//!
//! Parts are consecutive and never overlap. A named section is a [`PartSpan`] of one or several
//! parts, since sections that the program's code begins and ends may nest and overlap. Each part
//! lists the spans that begin and end with it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::{Problem, TreeSource};
use crate::codec::{numbered, record};

record! {
    /// A part of the recording of one process: from one boundary to the next.
    #[derive(Debug, Clone, Default)]
    pub struct Part {
        /// The name of the span that contains the part; if there are several, the span that the
        /// program's code began last. Without a span, it is the part's number within its process,
        /// from 1.
        pub name: String,
        /// Beginning of the part, nanoseconds since the start of the run.
        pub since_ns: u64,
        /// End of the part, nanoseconds since the start of the run.
        pub until_ns: u64,
        /// Names of the spans that begin with the part.
        pub begins: Vec<String>,
        /// Names of the spans that end with the part.
        pub ends: Vec<String>,
    }
    beside {
        /// Gains of the threads' trees in the part.
        pub trees: PartTrees,
    }
}

record! {
    /// A boundary between parts, as stored in the log of a process.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct PartBoundary {
        /// Monotonic nanoseconds.
        pub mono_ns: u64,
        /// Kind of the boundary: which part or span ends or begins here.
        pub kind: BoundaryKind,
        /// The name of the part that begins; empty if it has none.
        pub name: String,
        /// Number of the boundary in `parts.log`, which has the gains of the trees up to here; 0 if
        /// unknown.
        pub number: u32,
    }
}

impl PartBoundary {
    /// Number of the period that ends here; `None` if no period ends here, or if the process itself
    /// ended the period.
    pub(crate) fn ended_period(&self) -> Option<u32> {
        self.name.parse().ok().filter(|_| self.kind == BoundaryKind::Cut)
    }

    /// Whether the process has ended its last period here.
    pub(crate) fn is_end_of_process(&self) -> bool {
        self.kind == BoundaryKind::Cut && self.ended_period().is_none()
    }
}

/// Trees with the gains of a process's threads in one part.
#[derive(Clone, Default)]
pub struct PartTrees {
    at_hand: Arc<BTreeMap<u32, TreeSource>>,
    lazy: Option<Arc<MakeTree>>,
}

/// Makes the tree of the thread at an index, if there is one. There may be many parts and many
/// threads, so a tree is made only on request.
type MakeTree = dyn Fn(u32) -> Option<TreeSource> + Send + Sync;

impl PartTrees {
    /// Trees that `make` creates on demand, given an index into
    /// [`Process::threads`](super::Process::threads).
    pub(crate) fn lazy(make: impl Fn(u32) -> Option<TreeSource> + Send + Sync + 'static) -> Self {
        Self { at_hand: Arc::default(), lazy: Some(Arc::new(make)) }
    }

    /// Trees that exist already, by index into [`Process::threads`](super::Process::threads).
    #[must_use]
    pub fn new(trees: BTreeMap<u32, TreeSource>) -> Self {
        Self { at_hand: Arc::new(trees), lazy: None }
    }

    /// The tree of the thread at this index; `None` if the thread gained nothing, or its gain is
    /// unknown.
    #[must_use]
    pub fn of_thread(&self, index: u32) -> Option<TreeSource> {
        self.at_hand.get(&index).cloned().or_else(|| self.lazy.as_ref()?(index))
    }

    /// Problems with trees that could not be read when they were decoded.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.at_hand.values().filter_map(TreeSource::problem)
    }
}

impl fmt::Debug for PartTrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartTrees")
    }
}

/// Kind of a boundary between parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum BoundaryKind {
    /// One part ends and the next begins.
    #[default]
    Mark = 0,
    /// Recording starts again: a part begins.
    Start = 1,
    /// Recording stops for now: a part ends.
    Stop = 2,
    /// The process starts without recording; the recording starts later.
    Delay = 3,
    /// The program's code begins a span of this name.
    Begin = 4,
    /// The program's code ends the span of this name.
    End = 5,
    /// A period ends and the next begins, in a recording that the launcher writes in periods. The
    /// name is the number of the period that ends; it is empty if the process itself ended the
    /// period.
    Cut = 6,
}

numbered!(BoundaryKind: Mark, Start, Stop, Delay, Begin, End, Cut);

impl BoundaryKind {
    /// Whether a part begins here, if recording is active.
    pub(crate) fn begins_part(self) -> bool {
        !matches!(self, Self::Stop | Self::Delay)
    }

    /// Whether boundaries of this kind are ignored while recording is stopped.
    pub(crate) fn needs_recording(self) -> bool {
        matches!(self, Self::Begin | Self::End | Self::Cut)
    }
}

/// A section that reports show as a part, between two boundaries.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartSpan {
    /// Name of the section; for a part without a name, its number.
    pub name: String,
    /// Start of the section, in nanoseconds since the start of the run.
    pub since_ns: u64,
    /// End of the section, in nanoseconds since the start of the run.
    pub until_ns: u64,
}

impl Part {
    /// The parts of a recording from `start_ns` to `end_ns`, both monotonic. `boundaries` must be
    /// in the order of their times. Times of parts are relative to `start_ns`. A recording without
    /// boundaries has no parts.
    ///
    /// A span ends at its end boundary, when recording stops, or with the recording.
    #[must_use]
    pub fn between(boundaries: &[PartBoundary], start_ns: u64, end_ns: u64) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let begin = |since_ns: u64| Self { since_ns, ..Self::default() };
        let mut current = (!boundaries.is_empty()).then(|| begin(start_ns));
        let mut open = OpenSpans::default();
        let mut end = |mut part: Self, until_ns: u64, name: Option<&str>| {
            part.name = name.map_or_else(|| (parts.len() + 1).to_string(), str::to_owned);
            part.since_ns = part.since_ns.saturating_sub(start_ns);
            part.until_ns = until_ns.saturating_sub(start_ns).max(part.since_ns);
            parts.push(part);
        };
        for PartBoundary { kind, name, mono_ns, .. } in boundaries {
            if kind.needs_recording() && current.is_none() {
                continue;
            }
            let (name_before, name) = (open.last(), cut(name));
            let (begins, ends) = match kind {
                BoundaryKind::Mark | BoundaryKind::Start => open.mark(name),
                BoundaryKind::Stop | BoundaryKind::Delay => (Vec::new(), open.end_all()),
                BoundaryKind::Begin => (open.begin(name), Vec::new()),
                BoundaryKind::End => (Vec::new(), open.end(name)),
                BoundaryKind::Cut => (Vec::new(), Vec::new()),
            };
            if let Some(part) = current.take().filter(|_| *kind != BoundaryKind::Delay) {
                end(Self { ends, ..part }, *mono_ns, name_before);
            }
            current = kind.begins_part().then(|| Self { begins, ..begin(*mono_ns) });
        }
        if let Some(part) = current {
            let name = open.last();
            end(Self { ends: open.end_all(), ..part }, end_ns, name);
        }
        parts
    }

    /// Indices of the `parts` within sections with one of these names, in ascending order.
    #[must_use]
    pub fn named<S: AsRef<str>>(parts: &[Self], names: &[S]) -> Vec<usize> {
        let is_meant = |name: &str| names.iter().any(|wanted| wanted.as_ref() == name);
        let mut open = 0_usize;
        let mut found = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            open += part.begins.iter().filter(|name| is_meant(name)).count();
            if open > 0 || is_meant(&part.name) {
                found.push(place);
            }
            open = open.saturating_sub(part.ends.iter().filter(|name| is_meant(name)).count());
        }
        found
    }

    /// The sections that reports show as a process's parts: the named sections, undivided, and the
    /// parts without a name, sorted by start.
    #[must_use]
    pub fn spans(parts: &[Self]) -> Vec<PartSpan> {
        let mut spans: Vec<PartSpan> = Vec::new();
        // Indices into the spans.
        let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
        for part in parts {
            let span =
                |name: &str| PartSpan { name: name.to_owned(), since_ns: part.since_ns, until_ns: part.until_ns };
            for name in &part.begins {
                open.entry(name).or_default().push(spans.len());
                spans.push(span(name));
            }
            if open.is_empty() {
                spans.push(span(&part.name));
            }
            for name in &part.ends {
                let Some(places) = open.get_mut(name.as_str()) else { continue };
                places.pop().into_iter().for_each(|place| spans[place].until_ns = part.until_ns);
                if places.is_empty() {
                    open.remove(name.as_str());
                }
            }
        }
        spans
    }
}

/// Maximum length of a part's name in bytes.
pub(crate) const LONGEST_NAME: usize = 256;

/// The name, truncated to the maximum length: parts repeat it.
fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

/// Names of open spans.
#[derive(Default)]
struct OpenSpans<'a> {
    /// The name given by a command; empty for none.
    mark: &'a str,
    /// The spans that the program's code began, by their sequence numbers.
    by_number: BTreeMap<u32, &'a str>,
    numbers: HashMap<&'a str, u32>,
    begun: u32,
}

impl<'a> OpenSpans<'a> {
    /// Handles a mark by a command: ends the span of the previous mark, and begins a span if the
    /// mark has a name. Returns the names that begin and those that end.
    fn mark(&mut self, name: &'a str) -> (Vec<String>, Vec<String>) {
        let ended = std::mem::replace(&mut self.mark, name);
        (named(name), named(ended))
    }

    /// Returns the name, unless it is already open.
    fn begin(&mut self, name: &'a str) -> Vec<String> {
        if name.is_empty() || self.numbers.contains_key(name) {
            return Vec::new();
        }
        self.begun += 1;
        self.by_number.insert(self.begun, name);
        self.numbers.insert(name, self.begun);
        named(name)
    }

    /// Returns the name, if it was open.
    fn end(&mut self, name: &str) -> Vec<String> {
        let Some(number) = self.numbers.remove(name) else { return Vec::new() };
        self.by_number.remove(&number);
        named(name)
    }

    fn end_all(&mut self) -> Vec<String> {
        let Self { mark, by_number, .. } = std::mem::take(self);
        by_number.values().map(|name| (*name).to_owned()).chain(named(mark)).collect()
    }

    /// The name of the current part.
    fn last(&self) -> Option<&'a str> {
        let by_code = self.by_number.last_key_value().map(|(_, name)| *name);
        by_code.or(Some(self.mark).filter(|name| !name.is_empty()))
    }
}

/// A list with the name; empty if the name is empty.
fn named(name: &str) -> Vec<String> {
    Some(name).filter(|name| !name.is_empty()).map(str::to_owned).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(boundaries: &[(u64, BoundaryKind, &str)]) -> Vec<(String, u64, u64)> {
        let boundary = |&(mono_ns, kind, name): &(u64, BoundaryKind, &str)| {
            let name = name.to_owned();
            PartBoundary { mono_ns, kind, name, number: 0 }
        };
        let boundaries: Vec<_> = boundaries.iter().map(boundary).collect();
        let part = |part: Part| (part.name, part.since_ns, part.until_ns);
        Part::between(&boundaries, 100, 200).into_iter().map(part).collect()
    }

    #[test]
    fn parts_lie_between_starts_marks_and_stops() {
        use BoundaryKind::{Delay, Mark, Start, Stop};
        let part = |name: &str, since, until| (name.to_owned(), since, until);
        assert_eq!(parts(&[]), []);
        assert_eq!(parts(&[(140, Mark, "warm")]), [part("1", 0, 40), part("warm", 40, 100)]);
        let switched = [(110, Stop, ""), (120, Start, "load"), (130, Stop, ""), (150, Start, "")];
        assert_eq!(parts(&switched), [part("1", 0, 10), part("load", 20, 30), part("3", 50, 100)]);
        assert_eq!(parts(&[(100, Delay, ""), (130, Start, "")]), [part("1", 30, 100)]);
        assert_eq!(parts(&[(100, Delay, "")]), [], "it ended before the delay was over");
    }

    fn read(boundaries: &[(u64, BoundaryKind, &str)]) -> Vec<Part> {
        let boundary = |&(mono_ns, kind, name): &(u64, BoundaryKind, &str)| PartBoundary {
            mono_ns,
            kind,
            name: name.to_owned(),
            number: 0,
        };
        Part::between(&boundaries.iter().map(boundary).collect::<Vec<_>>(), 100, 200)
    }

    fn spans(parts: &[Part]) -> Vec<(String, u64, u64)> {
        Part::spans(parts).into_iter().map(|span| (span.name, span.since_ns, span.until_ns)).collect()
    }

    /// Start and end of each part in the spans with this name.
    fn times(parts: &[Part], name: &str) -> Vec<(u64, u64)> {
        Part::named(parts, &[name]).into_iter().map(|at| (parts[at].since_ns, parts[at].until_ns)).collect()
    }

    #[test]
    fn what_code_begins_and_ends_may_nest_overlap_and_come_again() {
        use BoundaryKind::{Begin, End};
        let span = |name: &str, since, until| (name.to_owned(), since, until);
        let all = [
            (110, Begin, "a"),
            (120, Begin, "b"),
            (130, End, "b"),
            (140, Begin, "c"),
            (150, End, "a"),
            (160, End, "c"),
            (170, Begin, "a"),
        ];
        let parts = read(&all);
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["1", "a", "b", "a", "c", "c", "7", "a"]);
        let expected = [("1", 0, 10), ("a", 10, 50), ("b", 20, 30), ("c", 40, 60), ("7", 60, 70), ("a", 70, 100)];
        assert_eq!(spans(&parts), expected.map(|(name, since, until)| span(name, since, until)));
        assert_eq!(times(&parts, "a"), [(10, 20), (20, 30), (30, 40), (40, 50), (70, 100)]);
        assert_eq!(times(&parts, "b"), [(20, 30)]);
        assert_eq!(times(&parts, "c"), [(40, 50), (50, 60)]);
        assert_eq!(times(&parts, "7"), [(60, 70)]);
        assert_eq!(times(&parts, "d"), []);
    }

    #[test]
    fn what_code_begins_goes_on_over_marks_and_ends_where_recording_stops() {
        use BoundaryKind::{Begin, End, Mark, Start, Stop};
        let span = |name: &str, since, until| (name.to_owned(), since, until);
        let all = [
            (110, Mark, "load"),
            (120, Begin, "a"),
            (130, Mark, "more"),
            (140, Stop, ""),
            (145, Begin, "never"),
            (150, Start, ""),
            (160, End, "a"),
            (170, Begin, "a"),
            (180, Begin, "a"),
        ];
        let parts = read(&all);
        let expected = [
            ("1", 0, 10),
            ("load", 10, 30),
            ("a", 20, 40),
            ("more", 30, 40),
            ("5", 50, 60),
            ("6", 60, 70),
            ("a", 70, 100),
        ];
        assert_eq!(spans(&parts), expected.map(|(name, since, until)| span(name, since, until)));
        assert_eq!(times(&parts, "load"), [(10, 20), (20, 30)]);
        assert_eq!(times(&parts, "a"), [(20, 30), (30, 40), (70, 80), (80, 100)]);
        assert_eq!(times(&parts, "more"), [(30, 40)]);
    }

    /// Parts recorded by versions without spans count as spans themselves.
    #[test]
    fn parts_that_say_nothing_of_spans_are_spans_themselves() {
        let part =
            |name: &str, since_ns| Part { name: name.to_owned(), since_ns, until_ns: since_ns + 5, ..Part::default() };
        let parts = [part("1", 0), part("load", 5), part("load", 20)];
        let expected = [("1", 0, 5), ("load", 5, 10), ("load", 20, 25)];
        assert_eq!(spans(&parts), expected.map(|(name, since, until)| (name.to_owned(), since, until)));
        assert_eq!(times(&parts, "load"), [(5, 10), (20, 25)]);
    }

    #[test]
    fn a_long_name_is_not_repeated_at_its_length() {
        let long = "é".repeat(LONGEST_NAME);
        let parts = read(&[(110, BoundaryKind::Begin, &long), (120, BoundaryKind::End, &long)]);
        assert_eq!(parts[1].name, "é".repeat(LONGEST_NAME / 2));
        assert_eq!(spans(&parts).len(), 3);
    }
}
