//! Views of two sides: recordings, or sets of recordings, compared with others.
//!
//! Each is a [`View`] like those of one recording, with typed columns for every renderer; what is
//! compared and how it went with the gates stands above its rows.

mod allocations;
mod columns;
mod exceptions;
mod frame;
mod functions;
mod gates;
mod heaps;
mod probes;
mod tree;

use clrscope_analysis::{
    BYTES, ComparisonProblem, EXCEPTIONS, Judgement, Metric, NamedRecording, Query, QueryProblem, Sides,
    complete_snapshots, has_probes,
};
use clrscope_recording::model::Recording;

pub use gates::gate_words;
pub use tree::{ChangedFrame, changed_stacks};

use crate::request::Request;
use crate::view::{Answer, Report, View};
use frame::FramedAnswer;

/// A view of two sides.
pub struct Comparison {
    /// Name on the command line.
    pub name: &'static str,
    /// The view: name in schemas, columns, and the options that it takes.
    pub view: &'static View,
    /// Whether both sides have something to compare.
    is_possible: fn(&Sides<'_>) -> bool,
    /// The answer, and the metric that its rows are measured by.
    compare: Compare,
}

/// An answer, and the metric that its rows are measured by.
type Compared<'a> = (Box<dyn Answer + 'a>, Option<&'static Metric>);
/// Function that compares two sides.
type Compare = for<'a> fn(&Sides<'a>, &Request) -> Result<Compared<'a>, ComparisonProblem>;

/// Every view of two sides, in the order of the help text. Where none is asked for it is the first
/// that both sides have.
pub static COMPARISONS: &[Comparison] = &[
    Comparison {
        name: "functions",
        view: &functions::VIEW,
        is_possible: has_metric,
        compare: |sides, request| {
            let (answer, metric) = functions::compare(sides, request)?;
            Ok((Box::new(answer), Some(metric)))
        },
    },
    Comparison {
        name: "tree",
        view: &tree::VIEW,
        is_possible: has_metric,
        compare: |sides, request| {
            let (answer, metric) = tree::compare(sides, request)?;
            Ok((Box::new(answer), Some(metric)))
        },
    },
    Comparison {
        name: "allocations",
        view: &allocations::VIEW,
        is_possible: |sides| all_have(sides, |recording| BYTES.is_recorded(recording)),
        compare: |sides, request| Ok((Box::new(allocations::compare(sides, request)?), None)),
    },
    Comparison {
        name: "exceptions",
        view: &exceptions::VIEW,
        is_possible: |sides| all_have(sides, |recording| EXCEPTIONS.is_recorded(recording)),
        compare: |sides, request| Ok((Box::new(exceptions::compare(sides, request)?), None)),
    },
    Comparison {
        name: "probes",
        view: &probes::VIEW,
        is_possible: |sides| all_have(sides, has_probes),
        compare: |sides, request| Ok((Box::new(probes::compare(sides, request)?), None)),
    },
    Comparison {
        name: "heap",
        view: &crate::views::HEAP_DIFF,
        is_possible: |sides| all_have(sides, has_snapshots),
        compare: |sides, request| Ok((heaps::compare(sides, request)?, None)),
    },
];

impl std::fmt::Debug for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparison").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Comparison {
    /// The view of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        COMPARISONS.iter().find(|comparison| comparison.name == name)
    }

    /// Whether both sides have something to compare.
    #[must_use]
    pub fn is_possible(&self, sides: &Sides<'_>) -> bool {
        (self.is_possible)(sides)
    }

    /// Compares two sides, with the gates that were judged.
    ///
    /// # Errors
    /// When a recording does not have what is compared, or nothing that is meant; and where a side
    /// has no recording.
    pub fn open<'a>(
        &self,
        sides: &Sides<'a>,
        judgements: &[Judgement],
        request: &Request,
    ) -> Result<Report<'a>, ComparisonProblem> {
        let Some(last) = sides.after.last().filter(|_| !sides.before.is_empty()) else {
            let problem = QueryProblem::NoCommonMetric { before: Vec::new(), after: Vec::new() };
            return Err(ComparisonProblem { recording: None, problem });
        };
        let (inner, metric) = (self.compare)(sides, request)?;
        let answer = Box::new(FramedAnswer { inner, judgements: judgements.to_vec() });
        Ok(Report::new(self.view, last.recording, answer, request).by(metric))
    }
}

fn has_metric(sides: &Sides<'_>) -> bool {
    sides.metric(&Query::default()).is_ok()
}

fn all_have(sides: &Sides<'_>, is_in: fn(&Recording) -> bool) -> bool {
    sides.each().all(|(_, one)| is_in(one.recording))
}

fn has_snapshots(recording: &Recording) -> bool {
    complete_snapshots(recording, &Query::default()).is_ok_and(|found| !found.is_empty())
}

/// A recording compared with itself: what the views of two sides show of a single recording.
fn beside_itself(recording: &Recording) -> Sides<'_> {
    let one = NamedRecording { name: recording.run.command.join(" "), recording };
    Sides { before: vec![one.clone()], after: vec![one] }
}

/// The problem alone, of a comparison of one recording.
fn problem(found: ComparisonProblem) -> QueryProblem {
    found.problem
}
