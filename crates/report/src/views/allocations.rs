//! The view `allocations`: types by what was allocated of them.

use std::io;

use clrscope_analysis::{
    AllocationRow, Allocations, Conditions, Finding, LiveSum, Query, Sort, allocations, findings_about_allocations,
};
use clrscope_recording::model::{AllocationEngine, Recording};

use super::summary::show_findings;
use super::{LOG_FLAGS, NO_FOLDING, NO_HEAP, NO_METRIC, NO_SOURCE, RAW, THREADS_APART, nothing};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::Request;
use crate::view::{Answer, View};

/// The view `allocations`.
pub(super) static VIEW: View = View {
    name: "allocations",
    about: "Types by the bytes allocated, the own code that allocates most of each, and what is still alive",
    refuses: &[LOG_FLAGS, RAW, NO_METRIC, NO_FOLDING, NO_SOURCE, NO_HEAP, THREADS_APART],
    sorts: &[Sort::Own, Sort::Total, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| sheet(true).infos(),
    open: |recording: &Recording, request, _| {
        let view = allocations(recording, &request.query)?;
        let whole = allocations(recording, &Query { sort: None, limit: None, ..request.query.clone() })?;
        let findings = findings_about_allocations(&whole);
        Ok(Box::new(Opened { view, findings, request: request.clone() }))
    },
};

struct Types;

impl RowKind for Types {
    type Row<'a> = AllocationRow<'a>;
}

impl Row for AllocationRow<'_> {}

fn sheet<'c>(live: bool) -> Sheet<'c, Types> {
    let number = |key, title, of: fn(&AllocationRow<'_>) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &AllocationRow<'_>| Cell::Count(of(row)))
    };
    let size = |key, title, of: fn(&AllocationRow<'_>) -> u64| {
        Column::new(key, title, Kind::Bytes, move |row: &AllocationRow<'_>| Cell::Bytes(of(row)))
    };
    let alive = |key, title, kind, cell: fn(&LiveSum) -> Cell<'static>| {
        Column::new(key, title, kind, move |row: &AllocationRow<'_>| row.live.as_ref().map_or(Cell::Absent, cell))
            .only_if(live)
    };
    Sheet::new([
        Column::new("type", "type", Kind::Text, |row: &AllocationRow<'_>| match row.type_name {
            "" => Cell::text("").said("(unknown)"),
            name => Cell::text(name),
        }),
        Column::new("module", "module", Kind::Text, |row: &AllocationRow<'_>| Cell::text(row.module)),
        number("objects", "objects", |row| row.objects),
        number("objects_low", "objects at least", |row| row.objects_bounds.0),
        number("objects_high", "objects at most", |row| row.objects_bounds.1),
        size("bytes", "bytes", |row| row.bytes),
        size("bytes_low", "at least", |row| row.bytes_bounds.0),
        size("bytes_high", "at most", |row| row.bytes_bounds.1),
        Column::new("share", "share", Kind::Share, |row: &AllocationRow<'_>| Cell::Share(row.share)),
        number("seen_objects", "seen", |row| row.seen),
        alive("live_objects", "alive", Kind::Count, |live| Cell::Count(live.objects)),
        alive("live_bytes", "bytes alive", Kind::Bytes, |live| Cell::Bytes(live.bytes)),
        alive("live_survived_objects", "objects survived", Kind::Count, |live| Cell::Count(live.survived_objects)),
        alive("live_survived_bytes", "survived", Kind::Bytes, |live| Cell::Bytes(live.survived_bytes)),
        alive("live_collections", "collections outlived", Kind::Count, |live| Cell::Count(live.collections)),
        Column::new("allocated_by", "most by", Kind::Function, |row: &AllocationRow<'_>| {
            Cell::or_null(row.place, |(function, _)| Cell::function(&function))
        }),
        Column::new("allocated_by_bytes", "bytes by it", Kind::Bytes, |row: &AllocationRow<'_>| {
            Cell::or_null(row.place, |(_, bytes)| Cell::Bytes(bytes))
        }),
        Column::new("live_allocated_by", "most alive by", Kind::Function, |row: &AllocationRow<'_>| {
            Cell::or_null(row.live_place, |(function, _)| Cell::function(&function))
        })
        .only_if(live),
        Column::new("live_allocated_by_bytes", "alive by it", Kind::Bytes, |row: &AllocationRow<'_>| {
            Cell::or_null(row.live_place, |(_, bytes)| Cell::Bytes(bytes))
        })
        .only_if(live),
    ])
}

struct Opened<'a> {
    view: Allocations<'a>,
    findings: Vec<Finding>,
    request: Request,
}

impl Opened<'_> {
    /// Line about how the numbers came about.
    fn note(&self) -> String {
        let live = match self.view.rows.iter().any(|row| row.live.is_some()) {
            true => " What survived outlived a collection; what is alive besides was not collected yet.",
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
                let (by, why) = match sampling.engine {
                    AllocationEngine::Ticks => ("the runtime's allocation ticks, one", &*sampling.why_engine),
                    _ => ("the runtime's random samples, one", ""),
                };
                let why = if why.is_empty() { String::new() } else { format!(" Note: {why}.") };
                let mean = bytes(sampling.mean_bytes);
                format!("About {all}, by {by} for each {mean}.{whole}{why} 'alloc:exact' counts every object.")
            }
        }
    }
}

impl Answer for Opened<'_> {
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
            ("allocated_by", if live { 4 } else { 2 }, true),
        ]);
        let sheet = sheet(live);
        let main = sheet.main(&self.request, "rows", Style::Table, &text);
        let section = Section { nothing: nothing("allocation"), what: "types", ..main };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: *left_out as u64, note: Some(self.note()) })
        })
    }
}
