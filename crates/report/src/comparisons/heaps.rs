//! Snapshots of the heap on two sides: the view `heap-diff`, with one recording or a set of
//! recordings on each side.

use std::io;

use clrscope_analysis::{ComparisonProblem, Conditions, NamedRecording, QueryProblem, Sides};

use super::frame;
use crate::render::Renderer;
use crate::request::Request;
use crate::view::Answer;
use crate::views::{heap_changes_of, heap_query_of};

/// Rows of a comparison of sets, with the recordings in the sets.
struct OfSets<'a> {
    sides: Sides<'a>,
    inner: Box<dyn Answer + 'a>,
}

impl Answer for OfSets<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        self.inner.conditions()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        frame::show(&self.sides, None, None, renderer)?;
        self.inner.sections(renderer)
    }
}

/// Compares snapshots.
pub(super) fn compare<'a>(sides: &Sides<'a>, request: &Request) -> Result<Box<dyn Answer + 'a>, ComparisonProblem> {
    for (side, one) in sides.each() {
        let failed = |problem| ComparisonProblem { recording: Some(one.name.clone()), problem };
        heap_query_of(side, request).check(one.recording, "heap-diff").map_err(failed)?;
    }
    let everywhere = |problem| ComparisonProblem { recording: None, problem };
    let all = |side: &[NamedRecording<'a>]| side.iter().map(|one| one.recording).collect::<Vec<_>>();
    let (before, after) = (all(&sides.before), all(&sides.after));
    let Some(last) = after.last().copied().filter(|_| !before.is_empty()) else {
        return Err(everywhere(QueryProblem::NoCommonMetric { before: Vec::new(), after: Vec::new() }));
    };
    let inner = heap_changes_of(&before, &after, last, request).map_err(everywhere)?;
    if before.len() == 1 && after.len() == 1 {
        return Ok(inner);
    }
    Ok(Box::new(OfSets { sides: sides.clone(), inner }))
}
