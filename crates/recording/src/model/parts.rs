//! Parts of a recording: what lies between two boundaries, each of which somebody drew while the program ran.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Problem, TreeSource};
use crate::codec::{numbered, record};

record! {
    /// A part of the recording of one process: from a start or a mark to the next stop or mark.
    #[derive(Debug, Clone, Default)]
    pub struct Part {
        /// The name it was given, or its number among the parts of its process, from 1.
        pub name: String,
        /// Beginning of the part, nanoseconds since the start of the run.
        pub since_ns: u64,
        /// End of the part, nanoseconds since the start of the run.
        pub until_ns: u64,
    }
    beside {
        /// Gains of the threads' trees in the part.
        pub trees: PartTrees,
    }
}

record! {
    /// A boundary between parts, as the log of a process has it.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct PartBoundary {
        /// Monotonic nanoseconds.
        pub mono_ns: u64,
        /// Kind of the boundary: what ends and begins here.
        pub kind: BoundaryKind,
        /// The name of the part that begins; empty for none.
        pub name: String,
        /// Number of the boundary in `parts.log`, which says what the trees gained up to here; 0 where that is not known.
        pub number: u32,
    }
}

/// Trees of what the threads of a process gained in one part.
#[derive(Clone, Default)]
pub struct PartTrees {
    at_hand: Arc<BTreeMap<u32, TreeSource>>,
    lazy: Option<Arc<MakeTree>>,
}

/// Makes the tree of the thread at an index, if there is one. Parts and threads may both be many, so none is made before
/// somebody asks.
type MakeTree = dyn Fn(u32) -> Option<TreeSource> + Send + Sync;

impl PartTrees {
    /// Trees made by `make` from an index into [`Process::threads`](super::Process::threads).
    pub(crate) fn lazy(make: impl Fn(u32) -> Option<TreeSource> + Send + Sync + 'static) -> Self {
        Self { at_hand: Arc::default(), lazy: Some(Arc::new(make)) }
    }

    /// Trees by index into [`Process::threads`](super::Process::threads).
    #[must_use]
    pub fn new(trees: BTreeMap<u32, TreeSource>) -> Self {
        Self { at_hand: Arc::new(trees), lazy: None }
    }

    /// The tree of the thread at this index; `None` where it gained nothing, or nobody knows what.
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
    /// The process begins, and its recording does not: it starts later.
    Delay = 3,
}

numbered!(BoundaryKind: Mark, Start, Stop, Delay);

impl Part {
    /// The parts between `boundaries`, which are in order, of a recording that began at `start_ns` and ended at `end_ns`, both
    /// monotonic. Times of parts are counted from `start_ns`. A recording without boundaries has no parts.
    #[must_use]
    pub fn between(boundaries: &[PartBoundary], start_ns: u64, end_ns: u64) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut open = (!boundaries.is_empty()).then_some((start_ns, ""));
        let mut end = |(since, name): (u64, &str), until: u64| {
            let since_ns = since.saturating_sub(start_ns);
            let number = parts.len() + 1;
            let name = if name.is_empty() { number.to_string() } else { name.to_owned() };
            let until_ns = until.saturating_sub(start_ns).max(since_ns);
            parts.push(Self { name, since_ns, until_ns, trees: PartTrees::default() });
        };
        for boundary in boundaries {
            let before = open.take().filter(|_| boundary.kind != BoundaryKind::Delay);
            before.into_iter().for_each(|part| end(part, boundary.mono_ns));
            if matches!(boundary.kind, BoundaryKind::Start | BoundaryKind::Mark) {
                open = Some((boundary.mono_ns, &boundary.name));
            }
        }
        open.into_iter().for_each(|part| end(part, end_ns));
        parts
    }
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
}
