//! The view `heap-diff`: compares two snapshots, or two sets of snapshots.

use std::io;
use std::slice::from_ref;

use clrscope_analysis::{
    Change, GrownPath, HeapChange, HeapChanges, HeapQuery, Heaps, QueryProblem, Side, SnapshotRef, Sort,
    complete_snapshots, heap_changes,
};
use clrscope_recording::model::Recording;

use super::fields::FieldLines;
use super::frame::{Frame, HeapRows, OF_ONE, OfSnapshots, answer, heap_query, heap_view};
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count, signed};
use crate::render::{Renderer, Section, Style, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `heap-diff`.
pub(crate) static VIEW: View = heap_view::<Changes>();

/// Number of the snapshot to compare with, within one recording: the one in the request, otherwise
/// the first complete one.
fn earlier(recording: &Recording, request: &Request) -> Result<u32, QueryProblem> {
    match request.against {
        Some(number) => Ok(number),
        None => Ok(complete_snapshots(recording, &request.query)?.first().map_or(1, |(_, snapshot)| snapshot.number)),
    }
}

/// The part of a request that is about the snapshots of one side; each snapshot is in its own
/// recording.
pub(crate) fn heap_query_of(side: Side, request: &Request) -> HeapQuery {
    let query = heap_query(request);
    match side {
        Side::Before => HeapQuery { snapshot: request.against, ..query },
        Side::After => query,
    }
}

/// Compares recordings. Each is represented by the snapshot that the request names for its side, or
/// else by its last complete snapshot. `last` is the last recording of the side after.
///
/// # Errors
/// When the request selects no snapshot of a recording.
pub(crate) fn heap_changes_of<'a>(
    before: &[&'a Recording],
    after: &[&'a Recording],
    last: &'a Recording,
    request: &Request,
) -> Result<Box<dyn Answer + 'a>, QueryProblem> {
    let heaps = |all: &[&'a Recording]| all.iter().map(|one| Heaps::new(one)).collect::<Vec<_>>();
    let [then, now] = [Side::Before, Side::After].map(|side| heap_query_of(side, request));
    let found = heap_changes((&heaps(before), &then), (&heaps(after), &now))?;
    Ok(answer::<Changes>(found, request, last))
}

struct Changes;

impl RowKind for Changes {
    type Row<'a> = ChangeEntry<'a>;
}

/// A type that changed, and the line about what holds the new objects.
struct ChangeEntry<'a> {
    change: &'a HeapChange,
    lines: Vec<String>,
}

impl<'a> ChangeEntry<'a> {
    fn new(change: &'a HeapChange, fields: &mut FieldLines<'_>) -> Self {
        let line = |way: &GrownPath| {
            let held_by = fields.grown_way(way);
            let size = bytes(way.bytes.unsigned_abs());
            match way.objects {
                0 => format!("{size} more, held by {held_by}"),
                more => format!("{} with {size}, held by {held_by}", signed(more, count)),
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

/// Function that takes an amount from a row.
type Part = fn(&HeapChange) -> &Change;

/// A column of counts or bytes.
fn amount<'c>(
    key: &'static str,
    title: &'static str,
    part: Part,
    kind: Kind,
    of: fn(&Change) -> f64,
) -> Column<'c, Changes> {
    Column::new(key, title, kind, move |row: &ChangeEntry<'_>| {
        let amount = of(part(row.change)).max(0.0).round() as u64;
        if kind == Kind::Bytes { Cell::Bytes(amount) } else { Cell::Count(amount) }
    })
}

/// A column of differences.
fn growth<'c>(
    key: &'static str,
    title: &'static str,
    part: Part,
    kind: Kind,
    of: fn(&Change) -> f64,
) -> Column<'c, Changes> {
    let words = if kind == Kind::Bytes { bytes } else { count };
    Column::new(key, title, kind, move |row: &ChangeEntry<'_>| {
        let growth = of(part(row.change)).round() as i64;
        Cell::Change(growth).said(signed(growth, words))
    })
}

/// The columns of an amount: both sides and the growth. For sets of recordings (`in_sets`), also
/// their intervals and the judgement.
macro_rules! amounts {
    ($name:literal, $titles:expr, $part:expr, $kind:expr, $in_sets:expr) => {{
        let ([before, after, more], part, kind, in_sets): ([&'static str; 3], Part, Kind, bool) =
            ($titles, $part, $kind, $in_sets);
        let bound = |key, of| amount(key, "", part, kind, of).only_if(in_sets);
        let difference = |key, of| growth(key, "", part, kind, of).only_if(in_sets);
        [
            amount(concat!($name, "_before"), before, part, kind, |change| change.before.median),
            bound(concat!($name, "_before_low"), |change| change.before.low),
            bound(concat!($name, "_before_high"), |change| change.before.high),
            amount($name, after, part, kind, |change| change.after.median),
            bound(concat!($name, "_low"), |change| change.after.low),
            bound(concat!($name, "_high"), |change| change.after.high),
            growth(concat!($name, "_growth"), more, part, kind, |change| change.difference),
            difference(concat!($name, "_growth_low"), |change| change.low),
            difference(concat!($name, "_growth_high"), |change| change.high),
            Column::new(concat!($name, "_change"), "change", Kind::Text, move |row: &ChangeEntry<'_>| {
                Cell::text(part(row.change).verdict.name())
            })
            .only_if(in_sets),
        ]
    }};
}

fn sheet<'c>(in_sets: bool) -> Sheet<'c, Changes> {
    let mut all = vec![
        Column::new("type", "type", Kind::Type, |row: &ChangeEntry<'_>| Cell::text(&row.change.type_name)),
        Column::new("module", "module", Kind::Text, |row: &ChangeEntry<'_>| Cell::text(&row.change.module)),
    ];
    let [objects, own, retained] = [
        ["objects before", "objects", "more objects"],
        ["bytes before", "bytes", "more bytes"],
        ["retained before", "retained", "more retained"],
    ];
    all.extend(amounts!("objects", objects, |change| &change.objects, Kind::Count, in_sets));
    all.extend(amounts!("bytes", own, |change| &change.bytes, Kind::Bytes, in_sets));
    all.extend(amounts!("retained_bytes", retained, |change| &change.retained_bytes, Kind::Bytes, in_sets));
    all.push(
        Column::new("retained_bytes_range", "95 %", Kind::Text, |row: &ChangeEntry<'_>| {
            let change = &row.change.retained_bytes;
            let [low, high] = [change.low, change.high].map(|bound| signed(bound.round() as i64, bytes));
            Cell::Text(format!("{low} to {high}").into())
        })
        .on_request(),
    );
    all.push(Column::new("held_by", "held by", Kind::Text, |row: &ChangeEntry<'_>| {
        Cell::or_null(row.change.held_by.as_ref(), |way| Cell::Text(way.label().into()))
    }));
    Sheet::new(all)
}

impl<'a> OfSnapshots<'a> for HeapChanges<'a> {
    fn find(heaps: &Heaps<'a>, request: &Request, recording: &'a Recording) -> Result<Self, QueryProblem> {
        let after = heap_query(request);
        let before = HeapQuery { snapshot: Some(earlier(recording, request)?), ..after.clone() };
        heap_changes((from_ref(heaps), &before), (from_ref(heaps), &after))
    }

    fn snapshots(&self) -> Vec<(&'static str, &[SnapshotRef<'a>])> {
        let [before, after] = &self.snapshots;
        vec![("before", before), ("after", after)]
    }
}

impl HeapRows for Changes {
    const NAME: &'static str = "heap-diff";
    const ABOUT: &'static str = "Types by growth of retained bytes since an earlier snapshot (see --against)";
    const TAKES: &'static [&'static [Flag]] = &[OF_ONE, &[Flag::Against]];
    const SORTS: &'static [Sort] = &[Sort::Total, Sort::Own, Sort::Calls, Sort::Name, Sort::Module];

    type Found<'a> = HeapChanges<'a>;

    fn columns() -> Vec<ColumnInfo> {
        sheet(true).infos()
    }

    fn show(found: &HeapChanges<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let [before, after] = found.recordings;
        let in_sets = before > 1 || after > 1;
        let sheet = sheet(in_sets);
        let text = shown(&[
            ("retained_bytes_growth", 0, true),
            ("retained_bytes_range", 1, in_sets),
            ("retained_bytes_change", 0, in_sets),
            ("bytes_growth", 1, true),
            ("objects_growth", 0, true),
            ("objects_before", 3, true),
            ("objects", 2, true),
            ("retained_bytes", 4, true),
            ("module", 5, true),
            ("type", 0, true),
        ]);
        let section = Section {
            title: Title::Bold(match in_sets {
                true => format!("What changed, by the medians of {before} recordings before and {after} after"),
                false => "What changed".to_owned(),
            }),
            nothing: "Nothing changed: the snapshots have the same objects of each type.".to_owned(),
            what: "types",
            ..sheet.main(frame.request, "rows", Style::Table, &text)
        };
        let mut fields = FieldLines::new(&frame.recording.processes);
        renderer.section(&section, &mut |visit| {
            found.rows.iter().try_for_each(|row| visit(&sheet.entry(&ChangeEntry::new(row, &mut fields))))?;
            Ok(frame.tail(found.left_out, None))
        })
    }
}
