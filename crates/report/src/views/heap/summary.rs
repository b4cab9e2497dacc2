//! The heap in the view `summary`: retained types and the root paths that hold them.

use std::io;

use clrscope_analysis::{Finding, HeapPath, HeapSummary, Heaps, QueryProblem, Retainer, heap_summary};
use clrscope_recording::model::Recording;

use super::fields::FieldLines;
use super::frame::heap_query;
use super::snapshots;
use super::types::share;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count};
use crate::render::{Renderer, Section, Style, Tail, Title};
use crate::request::Request;

struct Retainers;

impl RowKind for Retainers {
    type Row<'a> = RetainerEntry<'a>;
}

/// A type, and the bytes of the heap, for its share.
struct RetainerEntry<'a> {
    of: &'a Retainer<'a>,
    all: u64,
    lines: Vec<String>,
}

impl Row for RetainerEntry<'_> {
    fn below(&self) -> &[String] {
        &self.lines
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Retainers> {
    Sheet::new([
        Column::new("retained_bytes", "retained", Kind::Bytes, |row: &RetainerEntry<'_>| {
            Cell::Bytes(row.of.row.retained_bytes)
        }),
        Column::new("retained_share", "share", Kind::Share, |row: &RetainerEntry<'_>| {
            share(row.of.row.retained_bytes, row.all)
        }),
        Column::new("bytes", "bytes", Kind::Bytes, |row: &RetainerEntry<'_>| Cell::Bytes(row.of.row.bytes)),
        Column::new("objects", "objects", Kind::Count, |row: &RetainerEntry<'_>| Cell::Count(row.of.row.objects)),
        Column::new("pid", "process", Kind::Number, |row: &RetainerEntry<'_>| {
            Cell::Number(row.of.row.process.pid.into())
        })
        .only_if(processes),
        Column::new("type", "type", Kind::Type, |row: &RetainerEntry<'_>| Cell::text(&row.of.row.type_name)),
        Column::new("held_by", "held by", Kind::Text, |row: &RetainerEntry<'_>| {
            Cell::or_null(row.of.way.as_ref().map(HeapPath::label), |label| Cell::Text(label.into()))
        }),
    ])
}

/// Part of the view `summary` about the heap; empty if there is no snapshot.
pub(in crate::views) struct OfSummary<'a> {
    recording: &'a Recording,
    heap: HeapSummary<'a>,
    note: Option<String>,
    processes: bool,
}

/// Returns the part of the view `summary` about the heap.
///
/// # Errors
/// When the request selects no process.
pub(in crate::views) fn of_summary<'a>(
    recording: &'a Recording,
    heaps: &Heaps<'a>,
    request: &Request,
) -> Result<OfSummary<'a>, QueryProblem> {
    let heap = heap_summary(heaps, &heap_query(request))?;
    let notes = snapshots::cut_ones(&heap.snapshots);
    let notes: Vec<String> = notes.chain(snapshots::note_of_cut(recording, request, &heap.snapshots)).collect();
    let note = (!notes.is_empty()).then(|| notes.join(" "));
    Ok(OfSummary { recording, heap, note, processes: recording.processes.len() > 1 })
}

impl OfSummary<'_> {
    /// Sentences about the heap.
    pub(in crate::views) fn findings(&self) -> &[Finding] {
        &self.heap.findings
    }

    /// Whether there is nothing to show.
    pub(in crate::views) fn is_empty(&self) -> bool {
        self.heap.snapshots.is_empty() && self.note.is_none()
    }

    /// Shows the types and the root paths that hold them; text output shows these only if it shows
    /// several tables.
    ///
    /// # Errors
    /// Errors of the renderer.
    pub(in crate::views) fn show(&self, is_one_table: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
        let HeapSummary { types, all_types, snapshots: all, .. } = &self.heap;
        if self.is_empty() {
            return Ok(());
        }
        let sheet = sheet(self.processes);
        let text = shown(&[
            ("retained_bytes", 0, !is_one_table),
            ("retained_share", 1, !is_one_table),
            ("bytes", 2, !is_one_table),
            ("objects", 0, !is_one_table),
            ("pid", 2, self.processes && !is_one_table),
            ("type", 0, !is_one_table),
        ]);
        let size = all.iter().fold(0_u64, |sum, snapshot| sum.saturating_add(snapshot.bytes));
        let (first, of) = (types.len(), count(*all_types as u64));
        let title = format!("The heap by retained bytes of types ({first} of {of} types; {} in all)", bytes(size));
        let title = Title::Bold(title);
        let section = Section { title, what: "types", ..sheet.section("heap", Style::Table, &text) };
        let mut fields = FieldLines::new(&self.recording.processes);
        renderer.section(&section, &mut |visit| {
            for of in types {
                let lines = of.way.iter().map(|way| format!("held by {}", fields.way(way))).collect();
                visit(&sheet.entry(&RetainerEntry { of, all: size, lines }))?;
            }
            Ok(Tail { left_out: 0, note: self.note.clone() })
        })
    }
}
