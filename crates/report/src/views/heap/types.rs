//! The view `heap`: types with the shallow and retained bytes of their objects.

use std::io;

use clrscope_analysis::{HeapRow, HeapView, Sort};
use clrscope_recording::model::HeapGeneration;
use serde_json::{Value, json};

use super::super::nothing;
use super::frame::{Frame, HeapRows, heap_view};
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Renderer, Section, Style};
use crate::view::View;

/// The view `heap`.
pub(in crate::views) static VIEW: View = heap_view::<Types>();

struct Types;

impl RowKind for Types {
    type Row<'a> = TypeEntry<'a>;
}

/// A type, and the bytes of the whole heap, from which its share is computed.
pub(super) struct TypeEntry<'a> {
    pub(super) row: &'a HeapRow<'a>,
    pub(super) all: u64,
}

impl Row for TypeEntry<'_> {}

/// Bytes as a share of all bytes.
pub(super) fn share(bytes: u64, all: u64) -> Cell<'static> {
    Cell::Share(if all == 0 { 0.0 } else { (bytes as f64 / all as f64).min(1.0) })
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Types> {
    Sheet::new([
        Column::new("type", "type", Kind::Type, |row: &TypeEntry<'_>| Cell::text(&row.row.type_name)),
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

/// Objects by generation, without empty generations.
fn generations(row: &HeapRow<'_>) -> Cell<'static> {
    let all = HeapGeneration::ALL.iter().zip(&row.generations).filter(|(_, found)| found.objects > 0);
    let shown = all.map(
        |(generation, found)| json!({ "name": generation.name(), "objects": found.objects, "bytes": found.bytes }),
    );
    Cell::Nested(Value::Array(shown.collect()))
}

impl HeapRows for Types {
    const NAME: &'static str = "heap";
    const ABOUT: &'static str = "Types of objects on the heap, with their bytes and what they retain";
    const SORTS: &'static [Sort] = &[Sort::Total, Sort::Own, Sort::Calls, Sort::Name, Sort::Module];

    type Found<'a> = HeapView<'a>;

    fn columns() -> Vec<ColumnInfo> {
        sheet(true).infos()
    }

    fn show(found: &HeapView<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(frame.has_processes);
        let text = shown(&[
            ("retained_bytes", 0, true),
            ("retained_share", 1, true),
            ("bytes", 0, true),
            ("objects", 0, true),
            ("pid", 2, frame.has_processes),
            ("module", 4, true),
            ("type", 0, true),
        ]);
        let main = sheet.main(frame.request, "rows", Style::Table, &text);
        let section = Section { nothing: nothing("object"), what: "types", ..main };
        renderer.section(&section, &mut |visit| {
            let mut entries = found.rows.iter().map(|row| TypeEntry { row, all: frame.bytes });
            entries.try_for_each(|entry| visit(&sheet.entry(&entry)))?;
            Ok(frame.tail(found.left_out, None))
        })
    }
}
