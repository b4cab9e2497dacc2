//! The view `roots`: who holds the objects of a type.

use std::io;

use clrscope_analysis::{Conditions, HeapWay, HeapWays, Sort, WayPlace, WayStep, conditions, heap_ways};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use super::super::{LOG_FLAGS, NO_FOLDING, NO_METRIC, NO_SOURCE, RAW, nothing};
use super::{ALONE, REFUSED, TIMES, heap_query, snapshots};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::json::{Object, object};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::Request;
use crate::view::{Answer, View};

/// The view `roots`.
pub(in crate::views) static VIEW: View = View {
    name: "roots",
    about: "Who holds the objects of --type: the ways from roots, with the fields that lead on",
    refuses: &[LOG_FLAGS, NO_METRIC, NO_FOLDING, NO_SOURCE, RAW, ALONE, REFUSED, TIMES],
    sorts: &[Sort::Own, Sort::Calls, Sort::Name],
    text_rows: |_| Some(10),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request| {
        let view = heap_ways(recording, &heap_query(request))?;
        Ok(Box::new(Opened { view, request: request.clone(), recording }))
    },
};

struct Ways;

impl RowKind for Ways {
    type Row<'a> = WayEntry<'a>;
}

/// A way, and its steps in lines.
struct WayEntry<'a> {
    way: &'a HeapWay<'a>,
    lines: Vec<String>,
}

impl<'a> WayEntry<'a> {
    fn new(way: &'a HeapWay<'a>) -> Self {
        Self { way, lines: way.steps.iter().map(line).collect() }
    }
}

impl Row for WayEntry<'_> {
    fn below(&self) -> &[String] {
        &self.lines
    }
}

/// A step in a line: what leads there, and the type of the object.
fn line(step: &WayStep) -> String {
    let again = if step.repeats { ", which leads to such again" } else { "" };
    match step.place.label().as_str() {
        "" => format!("  {}{again}", step.type_name),
        place => format!("  {place} -> {}{again}", step.type_name),
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Ways> {
    Sheet::new([
        Column::new("type", "type", Kind::Text, |row: &WayEntry<'_>| Cell::text(row.way.type_name())),
        Column::new("objects", "objects", Kind::Count, |row: &WayEntry<'_>| Cell::Count(row.way.objects)),
        Column::new("bytes", "bytes", Kind::Bytes, |row: &WayEntry<'_>| Cell::Bytes(row.way.bytes)),
        Column::new("path", "held by", Kind::Nested, |row: &WayEntry<'_>| {
            Cell::Nested(path(row.way)).said(row.way.root_label())
        }),
        Column::new("pid", "process", Kind::Number, |row: &WayEntry<'_>| Cell::Number(row.way.process.pid.into()))
            .only_if(processes),
    ])
}

/// A way in JSON: the root, then each object.
fn path(way: &HeapWay<'_>) -> Value {
    let root = way.root.as_ref().map_or_else(
        || object([("kind", Value::Null), ("name", Value::Null), ("thread", Value::Null)]),
        |root| {
            let thread = root.thread.and_then(|thread| Cell::Thread(thread).to_json());
            object([("kind", json!(root.kind.name())), ("name", json!(&*root.name)), ("thread", json!(thread))])
        },
    );
    std::iter::once(root).chain(way.steps.iter().map(step)).map(Value::Object).collect()
}

fn step(step: &WayStep) -> Object {
    let mut row = object([("type", json!(&*step.type_name))]);
    let mut set = |key: &str, value: Value| _ = row.insert(key.to_owned(), value);
    match &step.place {
        WayPlace::Root => {}
        WayPlace::Field(name) => set("field", json!(&**name)),
        WayPlace::Index(at) => set("index", json!(at)),
        WayPlace::FieldOfElement(at, name) => {
            set("index", json!(at));
            set("field", json!(&**name));
        }
        WayPlace::Dependent => set("field", json!("(value of a weak table)")),
        WayPlace::Loader => set("field", json!("(load context)")),
        WayPlace::Unknown => set("field", Value::Null),
    }
    if step.repeats {
        set("repeats", json!(true));
    }
    row
}

struct Opened<'a> {
    view: HeapWays<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for Opened<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let HeapWays { rows, left_out, snapshots: all } = &self.view;
        snapshots::show("snapshots", all, renderer)?;
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let text = shown(&[("bytes", 0, true), ("objects", 0, true), ("pid", 2, processes), ("path", 0, true)]);
        let section = Section {
            nothing: nothing("object of such a type"),
            what: "ways",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|way| visit(&sheet.entry(&WayEntry::new(way))))?;
            let note = snapshots::note_of_cut(self.recording, &self.request);
            Ok(Tail { left_out: *left_out as u64, note })
        })
    }
}
