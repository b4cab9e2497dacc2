//! The view `heap-diff`: two snapshots side by side.

use std::io;

use clrscope_analysis::{
    GrownWay, HeapAmounts, HeapChange, HeapChanges, HeapQuery, Heaps, QueryProblem, SnapshotRef, Sort,
    complete_snapshots, heap_changes,
};
use clrscope_recording::model::Recording;

use super::frame::{Frame, HeapRows, OF_TWO, OfSnapshots, Refusals, answer, heap_query, heap_view};
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count, signed};
use crate::render::{Renderer, Section, Style, Title};
use crate::request::Request;
use crate::view::{Answer, View};

/// The view `heap-diff`.
pub(crate) static VIEW: View = heap_view::<Changes>();

/// Number of the snapshot to compare with, in one recording: the first that is complete, unless the request names one.
fn earlier(recording: &Recording, request: &Request) -> Result<u32, QueryProblem> {
    match request.against {
        Some(number) => Ok(number),
        None => Ok(complete_snapshots(recording, &request.query)?.first().map_or(1, |(_, snapshot)| snapshot.number)),
    }
}

/// Two recordings side by side: their last complete snapshots, or those that the request names.
///
/// # Errors
/// When no snapshot is meant in either recording.
pub(crate) fn heap_changes_of<'a>(
    before: &'a Recording,
    after: &'a Recording,
    request: &Request,
) -> Result<Box<dyn Answer + 'a>, QueryProblem> {
    let query = heap_query(request);
    let base = HeapQuery { snapshot: request.against, ..query.clone() };
    let found = heap_changes((&Heaps::of(before), &base), (&Heaps::of(after), &query))?;
    Ok(answer::<Changes>(found, request, after))
}

struct Changes;

impl RowKind for Changes {
    type Row<'a> = ChangeEntry<'a>;
}

/// A type that changed, and the line about who holds what came.
struct ChangeEntry<'a> {
    change: &'a HeapChange,
    lines: Vec<String>,
}

impl<'a> ChangeEntry<'a> {
    fn new(change: &'a HeapChange) -> Self {
        let line = |way: &GrownWay| {
            let size = bytes(way.bytes.unsigned_abs());
            match way.objects {
                0 => format!("{size} more, held by {}", way.label),
                more => format!("{} with {size}, held by {}", signed(more, count), way.label),
            }
        };
        Self { change, lines: change.held_by.iter().map(line).collect() }
    }
}

impl Row for ChangeEntry<'_> {
    fn below(&self) -> &[String] {
        &self.lines
    }
}

fn sheet<'c>() -> Sheet<'c, Changes> {
    let objects = |key, title, of: fn(&HeapChange) -> HeapAmounts| {
        Column::new(key, title, Kind::Count, move |row: &ChangeEntry<'_>| Cell::Count(of(row.change).objects))
    };
    let own = |key, title, of: fn(&HeapChange) -> HeapAmounts| {
        Column::new(key, title, Kind::Bytes, move |row: &ChangeEntry<'_>| Cell::Bytes(of(row.change).bytes))
    };
    let retained = |key, title, of: fn(&HeapChange) -> HeapAmounts| {
        Column::new(key, title, Kind::Bytes, move |row: &ChangeEntry<'_>| Cell::Bytes(of(row.change).retained_bytes))
    };
    let growth = |key, title, at: usize, of: fn(u64) -> String| {
        Column::new(key, title, if at == 0 { Kind::Count } else { Kind::Bytes }, move |row: &ChangeEntry<'_>| {
            let growth = row.change.growth()[at];
            Cell::Change(growth).said(signed(growth, of))
        })
    };
    Sheet::new([
        Column::new("type", "type", Kind::Text, |row: &ChangeEntry<'_>| Cell::text(&row.change.type_name)),
        Column::new("module", "module", Kind::Text, |row: &ChangeEntry<'_>| Cell::text(&row.change.module)),
        objects("objects_before", "objects before", |row| row.before),
        objects("objects", "objects", |row| row.after),
        growth("objects_growth", "more objects", 0, count),
        own("bytes_before", "bytes before", |row| row.before),
        own("bytes", "bytes", |row| row.after),
        growth("bytes_growth", "more bytes", 1, bytes),
        retained("retained_bytes_before", "retained before", |row| row.before),
        retained("retained_bytes", "retained", |row| row.after),
        growth("retained_bytes_growth", "more retained", 2, bytes),
        Column::new("held_by", "held by", Kind::Text, |row: &ChangeEntry<'_>| {
            Cell::or_null(row.change.held_by.as_ref(), |way| Cell::text(&way.label))
        }),
    ])
}

impl<'a> OfSnapshots<'a> for HeapChanges<'a> {
    fn find(heaps: &Heaps<'a>, request: &Request, recording: &'a Recording) -> Result<Self, QueryProblem> {
        let after = heap_query(request);
        let before = HeapQuery { snapshot: Some(earlier(recording, request)?), ..after.clone() };
        heap_changes((heaps, &before), (heaps, &after))
    }

    fn snapshots(&self) -> Vec<(&'static str, &[SnapshotRef<'a>])> {
        let [before, after] = &self.snapshots;
        vec![("before", before), ("after", after)]
    }
}

impl HeapRows for Changes {
    const NAME: &'static str = "heap-diff";
    const ABOUT: &'static str = "Types by what their objects retain more than in an earlier snapshot (see --against)";
    const REFUSES: Refusals = OF_TWO;
    const SORTS: &'static [Sort] = &[Sort::Total, Sort::Own, Sort::Calls, Sort::Name, Sort::Module];

    type Found<'a> = HeapChanges<'a>;

    fn columns() -> Vec<ColumnInfo> {
        sheet().infos()
    }

    fn show(found: &HeapChanges<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet();
        let text = shown(&[
            ("retained_bytes_growth", 0, true),
            ("bytes_growth", 1, true),
            ("objects_growth", 0, true),
            ("objects_before", 3, true),
            ("objects", 2, true),
            ("retained_bytes", 4, true),
            ("module", 5, true),
            ("type", 0, true),
        ]);
        let section = Section {
            title: Title::Bold("What changed".to_owned()),
            nothing: "Nothing changed: the snapshots have the same objects of each type.".to_owned(),
            what: "types",
            ..sheet.main(frame.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            found.rows.iter().try_for_each(|row| visit(&sheet.entry(&ChangeEntry::new(row))))?;
            Ok(frame.tail(found.left_out, None))
        })
    }
}
