//! The view `heap-diff`: two snapshots side by side.

use std::io;

use clrscope_analysis::{Conditions, HeapAmounts, HeapChange, HeapChanges, HeapQuery, QueryProblem, Sort};
use clrscope_analysis::{complete_snapshots, conditions, heap_changes};
use clrscope_recording::model::Recording;

use super::super::{LOG_FLAGS, NO_FOLDING, NO_METRIC, NO_SOURCE, RAW};
use super::{REFUSED, TIMES, heap_query, snapshots};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::Request;
use crate::view::{Answer, Report, View};

/// The view `heap-diff`.
pub(in crate::views) static VIEW: View = View {
    name: "heap-diff",
    about: "Types by what their objects retain more than in an earlier snapshot (see --against)",
    refuses: &[LOG_FLAGS, NO_METRIC, NO_FOLDING, NO_SOURCE, RAW, REFUSED, TIMES],
    sorts: &[Sort::Total, Sort::Own, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet().infos(),
    open: |recording, request| {
        let after = heap_query(request);
        let before = HeapQuery { snapshot: Some(earlier(recording, request)?), ..after.clone() };
        let view = heap_changes((recording, &before), (recording, &after))?;
        Ok(Box::new(Opened { view, request: request.clone(), recording }))
    },
};

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
pub fn compare_heaps<'a>(
    before: &'a Recording,
    after: &'a Recording,
    request: &Request,
) -> Result<Report<'a>, QueryProblem> {
    let query = heap_query(request);
    let base = HeapQuery { snapshot: request.against, ..query.clone() };
    let view = heap_changes((before, &base), (after, &query))?;
    let answer = Opened { view, request: request.clone(), recording: after };
    Ok(Report::new(&VIEW, after, Box::new(answer), request))
}

struct Changes;

impl RowKind for Changes {
    type Row<'a> = HeapChange;
}

impl Row for HeapChange {}

/// A difference with its sign.
fn signed(number: i64, of: fn(u64) -> String) -> String {
    let sign = match number {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", of(number.unsigned_abs()))
}

fn sheet<'c>() -> Sheet<'c, Changes> {
    let objects = |key, title, of: fn(&HeapChange) -> HeapAmounts| {
        Column::new(key, title, Kind::Count, move |row: &HeapChange| Cell::Count(of(row).objects))
    };
    let own = |key, title, of: fn(&HeapChange) -> HeapAmounts| {
        Column::new(key, title, Kind::Bytes, move |row: &HeapChange| Cell::Bytes(of(row).bytes))
    };
    let retained = |key, title, of: fn(&HeapChange) -> HeapAmounts| {
        Column::new(key, title, Kind::Bytes, move |row: &HeapChange| Cell::Bytes(of(row).retained_bytes))
    };
    let growth = |key, title, at: usize, of: fn(u64) -> String| {
        Column::new(key, title, if at == 0 { Kind::Count } else { Kind::Bytes }, move |row: &HeapChange| {
            let growth = row.growth()[at];
            Cell::Change(growth).said(signed(growth, of))
        })
    };
    Sheet::new([
        Column::new("type", "type", Kind::Text, |row: &HeapChange| Cell::text(&row.type_name)),
        Column::new("module", "module", Kind::Text, |row: &HeapChange| Cell::text(&row.module)),
        objects("objects_before", "objects before", |row| row.before),
        objects("objects", "objects", |row| row.after),
        growth("objects_growth", "more objects", 0, count),
        own("bytes_before", "bytes before", |row| row.before),
        own("bytes", "bytes", |row| row.after),
        growth("bytes_growth", "more bytes", 1, bytes),
        retained("retained_bytes_before", "retained before", |row| row.before),
        retained("retained_bytes", "retained", |row| row.after),
        growth("retained_bytes_growth", "more retained", 2, bytes),
    ])
}

struct Opened<'a> {
    view: HeapChanges<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for Opened<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let HeapChanges { rows, left_out, snapshots: [before, after] } = &self.view;
        snapshots::show("before", before, renderer)?;
        snapshots::show("after", after, renderer)?;
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
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            let note = snapshots::note_of_cut(self.recording, &self.request);
            Ok(Tail { left_out: *left_out as u64, note })
        })
    }
}
