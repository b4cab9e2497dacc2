//! The view `waste`: memory that a program could save.

use std::io;

use clrscope_analysis::{HeapWaste, Sort, WasteRow};

use super::super::nothing;
use super::frame::{Frame, HeapRows, heap_view};
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::bytes;
use crate::render::{Renderer, Section, Style};
use crate::view::View;

/// The view `waste`.
pub(in crate::views) static VIEW: View = heap_view::<Wastes>();

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
        Column::new("type", "type", Kind::Type, |row: &WasteRow<'_>| Cell::text(&row.type_name)),
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

impl HeapRows for Wastes {
    const NAME: &'static str = "waste";
    const ABOUT: &'static str = "Equal strings and boxes, empty and sparse collections and arrays on the heap";
    const SORTS: &'static [Sort] = &[Sort::Total, Sort::Own, Sort::Calls];

    type Found<'a> = HeapWaste<'a>;

    fn columns() -> Vec<ColumnInfo> {
        sheet(true).infos()
    }

    fn show(found: &HeapWaste<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(frame.has_processes);
        let text = shown(&[
            ("wasted_bytes", 0, true),
            ("bytes", 3, true),
            ("objects", 0, true),
            ("kind", 0, true),
            ("pid", 4, frame.has_processes),
            ("type", 0, true),
            ("held_by", 1, true),
        ]);
        let main = sheet.main(frame.request, "rows", Style::Table, &text);
        let section = Section { nothing: nothing("waste"), what: "kinds of waste", ..main };
        renderer.section(&section, &mut |visit| {
            found.rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            let sums = found.sums.iter().map(|(kind, wasted)| format!("{} {}", kind.title(), bytes(*wasted)));
            let sums: Vec<String> = sums.collect();
            let note = (!sums.is_empty()).then(|| format!("In all: {}.", sums.join(", ")));
            Ok(frame.tail(found.left_out, note))
        })
    }
}
