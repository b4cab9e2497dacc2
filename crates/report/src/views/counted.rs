//! Counts from instrumented code in the view `summary`: probed methods and lines, and coverage.

use std::io;

use clrscope_analysis::{ProbeRow, Query, probes};
use clrscope_recording::model::Recording;

use super::{coverage, probes as probed};
use crate::render::{Renderer, text};

/// Maximum number of probed methods and lines that are shown.
const MOST: usize = 10;

/// Part of the view `summary` about probes and coverage; empty if neither was recorded.
pub(super) struct OfSummary<'a> {
    probed: Option<(Vec<ProbeRow>, usize)>,
    covered: Option<coverage::OfSummary<'a>>,
}

impl<'a> OfSummary<'a> {
    /// Returns the part for `query`. Counters have no threads, times or parts of the run.
    pub(super) fn for_query(recording: &'a Recording, query: &Query) -> Self {
        let is_whole = query.threads.is_empty()
            && query.parts.is_empty()
            && (query.since_ns, query.until_ns) == (None, None)
            && query.functions.is_empty();
        if !is_whole {
            return Self { probed: None, covered: None };
        }
        let query = Query { limit: Some(MOST), sort: None, metric: None, ..query.clone() };
        let probed = probes(recording, &query).ok().filter(|(rows, _)| !rows.is_empty());
        Self { probed, covered: coverage::OfSummary::for_query(recording, &query) }
    }

    /// Whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.probed.is_none() && self.covered.is_none()
    }

    /// Shows the part; text output shows it only if it shows several tables.
    ///
    /// # Errors
    /// Errors of the renderer.
    pub(super) fn show(&self, is_one_table: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
        if let Some((rows, left_out)) = &self.probed {
            probed::of_summary(rows, *left_out, is_one_table, renderer)?;
        }
        self.covered.as_ref().map_or(Ok(()), |covered| covered.show(is_one_table, renderer))
    }
}

/// Counts from instrumented code for people, in `width` columns; `None` if nothing was counted.
#[must_use]
pub fn first_counted(recording: &Recording, query: &Query, width: usize) -> Option<String> {
    let counted = OfSummary::for_query(recording, query);
    let mut out = Vec::new();
    // Nothing that is written to memory fails.
    let _ = counted.show(false, &mut text::Text::new(&mut out, width, false));
    (!counted.is_empty()).then(|| String::from_utf8_lossy(&out).into_owned())
}
