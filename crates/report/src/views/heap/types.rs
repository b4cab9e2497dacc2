//! The view `heap`: types with what their objects take and retain.

use std::io;

use clrscope_analysis::{Conditions, HeapRow, HeapView, Sort, conditions, heap};
use clrscope_recording::model::{HeapGeneration, Recording};
use serde_json::{Value, json};

use super::super::{LOG_FLAGS, NO_FOLDING, NO_METRIC, NO_SOURCE, RAW, nothing};
use super::{ALONE, REFUSED, TIMES, heap_query, snapshots};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::Request;
use crate::view::{Answer, View};

/// The view `heap`.
pub(in crate::views) static VIEW: View = View {
    name: "heap",
    about: "Types of objects on the heap, with their bytes and what they retain",
    refuses: &[LOG_FLAGS, NO_METRIC, NO_FOLDING, NO_SOURCE, RAW, ALONE, REFUSED, TIMES],
    sorts: &[Sort::Total, Sort::Own, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request| {
        let view = heap(recording, &heap_query(request))?;
        Ok(Box::new(Opened { view, request: request.clone(), recording }))
    },
};

struct Types;

impl RowKind for Types {
    type Row<'a> = TypeEntry<'a>;
}

/// A type, and the bytes of the heap that its own are a part of.
pub(super) struct TypeEntry<'a> {
    pub(super) row: &'a HeapRow<'a>,
    pub(super) all: u64,
}

impl Row for TypeEntry<'_> {}

/// Bytes as a part of all.
pub(super) fn share(bytes: u64, all: u64) -> Cell<'static> {
    Cell::Share(if all == 0 { 0.0 } else { (bytes as f64 / all as f64).min(1.0) })
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Types> {
    Sheet::new([
        Column::new("type", "type", Kind::Text, |row: &TypeEntry<'_>| Cell::text(&row.row.type_name)),
        Column::new("module", "module", Kind::Text, |row: &TypeEntry<'_>| Cell::text(row.row.module)),
        Column::new("objects", "objects", Kind::Count, |row: &TypeEntry<'_>| Cell::Count(row.row.objects)),
        Column::new("bytes", "bytes", Kind::Bytes, |row: &TypeEntry<'_>| Cell::Bytes(row.row.bytes)),
        Column::new("retained_bytes", "retained", Kind::Bytes, |row: &TypeEntry<'_>| {
            Cell::Bytes(row.row.retained_bytes)
        }),
        Column::new("retained_share", "share", Kind::Share, |row: &TypeEntry<'_>| {
            share(row.row.retained_bytes, row.all)
        })
        .on_request(),
        Column::new("generations", "generations", Kind::Nested, |row: &TypeEntry<'_>| generations(row.row)),
        Column::new("pid", "process", Kind::Number, |row: &TypeEntry<'_>| Cell::Number(row.row.process.pid.into()))
            .only_if(processes),
    ])
}

/// Objects by generation, those that hold some.
fn generations(row: &HeapRow<'_>) -> Cell<'static> {
    let all = HeapGeneration::ALL.iter().zip(&row.generations).filter(|(_, found)| found.objects > 0);
    let shown = all.map(
        |(generation, found)| json!({ "name": generation.name(), "objects": found.objects, "bytes": found.bytes }),
    );
    Cell::Nested(Value::Array(shown.collect()))
}

struct Opened<'a> {
    view: HeapView<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for Opened<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let HeapView { rows, left_out, snapshots: all } = &self.view;
        snapshots::show("snapshots", all, renderer)?;
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let text = shown(&[
            ("retained_bytes", 0, true),
            ("retained_share", 1, true),
            ("bytes", 0, true),
            ("objects", 0, true),
            ("pid", 2, processes),
            ("module", 4, true),
            ("type", 0, true),
        ]);
        let section = Section {
            nothing: nothing("object"),
            what: "types",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        let bytes = all.iter().fold(0_u64, |sum, snapshot| sum.saturating_add(snapshot.bytes));
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(&TypeEntry { row, all: bytes })))?;
            let note = snapshots::note_of_cut(self.recording, &self.request);
            Ok(Tail { left_out: *left_out as u64, note })
        })
    }
}
