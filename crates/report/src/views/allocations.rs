//! The view `allocations`: types with their allocations.

use std::io;

use clrscope_analysis::{Allocations, Conditions, Finding, Query, Sort, allocations, findings_about_allocations};
use clrscope_recording::model::{AllocationEngine, Recording};
use clrscope_symbols::Lines;

use super::allocated::{TypeEntry, sheet};
use super::summary::show_findings;
use super::{REQUESTS, SELECTION, nothing};
use crate::column::shown;
use crate::render::text::units::{bytes, count};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `allocations`.
pub(super) static VIEW: View = View {
    name: "allocations",
    about: "Types by the bytes allocated, the own code that allocates most of each, and what is still alive",
    takes: &[SELECTION, REQUESTS, &[Flag::Limit, Flag::Verbose, Flag::Type, Flag::Paths]],
    sorts: &[Sort::Own, Sort::Total, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| sheet(true).infos(),
    open: |recording: &Recording, request, _| {
        let view = allocations(recording, &request.query)?;
        let whole = allocations(recording, &Query { sort: None, limit: None, ..request.query.clone() })?;
        let findings = findings_about_allocations(&whole);
        Ok(Box::new(OpenView { view, findings, request: request.clone() }))
    },
};

struct OpenView<'a> {
    view: Allocations<'a>,
    findings: Vec<Finding>,
    request: Request,
}

impl OpenView<'_> {
    /// Line about how the numbers came about.
    fn note(&self) -> String {
        let live = match self.view.rows.iter().any(|row| row.live.is_some()) {
            true => " 'survived' is what outlived a collection; no collection has examined the rest of 'alive'.",
            false => "",
        };
        self.engine_note() + live
    }

    fn engine_note(&self) -> String {
        let Allocations { sampling, .. } = &self.view;
        let all = format!("{} in {} objects", bytes(self.view.bytes), count(self.view.objects));
        let sampled = sampling.iter().find(|sampling| sampling.engine != AllocationEngine::Exact);
        match sampled {
            None => format!("In all {all}, every object counted."),
            Some(sampling) => {
                let whole = match (sampling.large_exact, sampling.pinned_exact) {
                    (true, true) => " Large and pinned objects are all counted.",
                    (true, false) => " Large objects are all counted.",
                    _ => "",
                };
                let by = match sampling.engine {
                    AllocationEngine::Ticks => "the runtime's allocation ticks, one",
                    _ => "the runtime's random samples, one",
                };
                let why = &sampling.why_engine;
                let why = if why.is_empty() { String::new() } else { format!(" Note: {why}.") };
                let mean = bytes(sampling.mean_bytes);
                format!("About {all}, by {by} for each {mean}.{whole}{why} 'alloc:exact' counts every object.")
            }
        }
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        show_findings(&self.findings, renderer)?;
        let Allocations { rows, left_out, sampling, .. } = &self.view;
        let live = sampling.iter().any(|sampling| sampling.follows);
        let sampled = sampling.iter().any(|sampling| sampling.engine != AllocationEngine::Exact);
        let text = shown(&[
            ("bytes", 0, true),
            ("share", 0, true),
            ("bytes_low", 4, sampled),
            ("bytes_high", 4, sampled),
            ("objects", 1, true),
            ("live_bytes", 0, live),
            ("live_survived_bytes", 0, live),
            ("live_objects", 3, live),
            ("live_collections", 3, live),
            ("type", 0, true),
            ("live_allocated_by", 2, live),
            ("live_allocated_at", 2, live),
            ("allocated_by", if live { 4 } else { 2 }, true),
            ("allocated_at", if live { 4 } else { 2 }, true),
        ]);
        let sheet = sheet(live);
        let main = sheet.main(&self.request, "rows", Style::Table, &text);
        let section = Section { nothing: nothing("allocation"), what: "types", ..main };
        let mut lines = Lines::default();
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(&TypeEntry::new(row, &mut lines))))?;
            Ok(Tail { left_out: *left_out as u64, note: Some(self.note()) })
        })
    }
}
