//! The view `waste`: memory that a program could do without.

use std::io;

use clrscope_analysis::{Conditions, HeapWaste, Sort, WasteRow, conditions, heap_waste};
use clrscope_recording::model::Recording;

use super::super::{LOG_FLAGS, NO_FOLDING, NO_METRIC, NO_SOURCE, RAW, nothing};
use super::{ALONE, REFUSED, TIMES, heap_query, snapshots};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::bytes;
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::Request;
use crate::view::{Answer, View};

/// The view `waste`.
pub(in crate::views) static VIEW: View = View {
    name: "waste",
    about: "Equal strings and boxes, empty and sparse collections and arrays on the heap",
    refuses: &[LOG_FLAGS, NO_METRIC, NO_FOLDING, NO_SOURCE, RAW, ALONE, REFUSED, TIMES],
    sorts: &[Sort::Total, Sort::Own, Sort::Calls],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request| {
        let view = heap_waste(recording, &heap_query(request))?;
        Ok(Box::new(Opened { view, request: request.clone(), recording }))
    },
};

struct Wastes;

impl RowKind for Wastes {
    type Row<'a> = WasteRow<'a>;
}

impl Row for WasteRow<'_> {}

fn sheet<'c>(processes: bool) -> Sheet<'c, Wastes> {
    Sheet::new([
        Column::new("kind", "what", Kind::Text, |row: &WasteRow<'_>| {
            let words = match row.length {
                Some(length) => format!("{} of {length} characters", row.kind.title()),
                None => row.kind.title().to_owned(),
            };
            Cell::text(row.kind.name()).said(words)
        }),
        Column::new("type", "type", Kind::Text, |row: &WasteRow<'_>| Cell::text(&row.type_name)),
        Column::new("module", "module", Kind::Text, |row: &WasteRow<'_>| Cell::text(row.module)),
        Column::new("length", "length", Kind::Count, |row: &WasteRow<'_>| Cell::or_null(row.length, Cell::Count)),
        Column::new("objects", "objects", Kind::Count, |row: &WasteRow<'_>| Cell::Count(row.objects)),
        Column::new("bytes", "bytes", Kind::Bytes, |row: &WasteRow<'_>| Cell::Bytes(row.bytes)),
        Column::new("wasted_bytes", "wasted", Kind::Bytes, |row: &WasteRow<'_>| Cell::Bytes(row.wasted_bytes)),
        Column::new("held_by", "one is held by", Kind::Text, |row: &WasteRow<'_>| {
            Cell::or_null(row.held_by.as_ref(), |(name, place)| Cell::Text(format!("{name}{}", place.label()).into()))
        }),
        Column::new("pid", "process", Kind::Number, |row: &WasteRow<'_>| Cell::Number(row.process.pid.into()))
            .only_if(processes),
    ])
}

struct Opened<'a> {
    view: HeapWaste<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for Opened<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let HeapWaste { rows, left_out, sums, snapshots: all } = &self.view;
        snapshots::show("snapshots", all, renderer)?;
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let text = shown(&[
            ("wasted_bytes", 0, true),
            ("bytes", 3, true),
            ("objects", 0, true),
            ("kind", 0, true),
            ("pid", 4, processes),
            ("type", 0, true),
            ("held_by", 1, true),
        ]);
        let section = Section {
            nothing: nothing("waste"),
            what: "kinds of waste",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            let sums: Vec<String> =
                sums.iter().map(|(kind, wasted)| format!("{} {}", kind.title(), bytes(*wasted))).collect();
            let notes = (!sums.is_empty()).then(|| format!("In all: {}.", sums.join(", ")));
            let notes: Vec<String> =
                notes.into_iter().chain(snapshots::note_of_cut(self.recording, &self.request)).collect();
            Ok(Tail { left_out: *left_out as u64, note: (!notes.is_empty()).then(|| notes.join(" ")) })
        })
    }
}
