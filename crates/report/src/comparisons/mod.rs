//! Views of two sides: comparisons of recordings, or of sets of recordings.
//!
//! Each is a [`View`] like the views of one recording, with typed columns for every renderer. The
//! compared recordings and the results of the gates stand above the rows.

mod allocations;
mod columns;
mod exceptions;
mod frame;
mod functions;
mod gates;
mod heaps;
mod merged;
mod probes;
mod told;
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
    /// The view: its name in schemas, its columns and its options.
    pub view: &'static View,
    /// Whether both sides have data to compare.
    is_possible: fn(&Sides<'_>) -> bool,
    /// Returns the answer, and the metric of its rows.
    compare: Compare,
}

/// An answer, and the metric of its rows.
type Compared<'a> = (Box<dyn Answer + 'a>, Option<&'static Metric>);
/// Function that compares two sides.
type Compare = for<'a> fn(&Sides<'a>, &Request) -> Result<Compared<'a>, ComparisonProblem>;

/// Every view of two sides, in the order of the help text. The default is the first view for which
/// both sides have data.
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
    /// The view with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        COMPARISONS.iter().find(|comparison| comparison.name == name)
    }

    /// Whether both sides have data to compare.
    #[must_use]
    pub fn is_possible(&self, sides: &Sides<'_>) -> bool {
        (self.is_possible)(sides)
    }

    /// Compares two sides and includes the judged gates.
    ///
    /// # Errors
    /// When a recording lacks the compared data, when the request selects nothing, or when a side
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

/// A recording compared with itself, to show a single recording in a view of two sides.
fn beside_itself(recording: &Recording) -> Sides<'_> {
    let one = NamedRecording { name: recording.run.command.join(" "), recording };
    Sides { before: vec![one.clone()], after: vec![one], chosen: None }
}

/// The problem of a comparison of one recording, without the name of the recording.
fn problem(found: ComparisonProblem) -> QueryProblem {
    found.problem
}
