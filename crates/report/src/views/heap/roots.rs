//! The view `roots`: the root paths that hold the objects of a type.

use std::io;

use clrscope_analysis::{HeapPath, HeapPathPlace, HeapPathStep, HeapPaths, Sort};
use serde_json::{Value, json};

use super::super::nothing;
use super::frame::{Frame, HeapRows, heap_view};
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::json::{Object, object};
use crate::render::{Renderer, Section, Style};
use crate::view::View;

/// The view `roots`.
pub(in crate::views) static VIEW: View = heap_view::<Ways>();

struct Ways;

impl RowKind for Ways {
    type Row<'a> = WayEntry<'a>;
}

/// A root path, and its steps as lines of text.
struct WayEntry<'a> {
    way: &'a HeapPath<'a>,
    lines: Vec<String>,
}

impl<'a> WayEntry<'a> {
    fn new(way: &'a HeapPath<'a>) -> Self {
        Self { way, lines: way.steps.iter().map(line).collect() }
    }
}

impl Row for WayEntry<'_> {
    fn below(&self) -> &[String] {
        &self.lines
    }
}

/// A step in one line: the reference that leads to the object, and the object's type.
fn line(step: &HeapPathStep) -> String {
    let again = if step.repeats { ", which leads to another such" } else { "" };
    match step.place.label().as_str() {
        "" => format!("  {}{again}", step.type_name),
        place => format!("  {place} -> {}{again}", step.type_name),
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Ways> {
    Sheet::new([
        Column::new("type", "type", Kind::Type, |row: &WayEntry<'_>| Cell::text(row.way.type_name())),
        Column::new("objects", "objects", Kind::Count, |row: &WayEntry<'_>| Cell::Count(row.way.objects)),
        Column::new("bytes", "bytes", Kind::Bytes, |row: &WayEntry<'_>| Cell::Bytes(row.way.bytes)),
        Column::new("path", "held by", Kind::Nested, |row: &WayEntry<'_>| {
            Cell::Nested(path(row.way)).said(row.way.root_label())
        }),
        Column::new("pid", "process", Kind::Number, |row: &WayEntry<'_>| Cell::Number(row.way.process.pid.into()))
            .only_if(processes),
    ])
}

/// A root path in JSON: the root, then each object.
fn path(way: &HeapPath<'_>) -> Value {
    let root = way.root.as_ref().map_or_else(
        || object([("kind", Value::Null), ("name", Value::Null), ("thread", Value::Null)]),
        |root| {
            let thread = root.thread.and_then(|thread| Cell::Thread(thread).to_json());
            object([("kind", json!(root.kind.name())), ("name", json!(&*root.name)), ("thread", json!(thread))])
        },
    );
    std::iter::once(root).chain(way.steps.iter().map(step)).map(Value::Object).collect()
}

fn step(step: &HeapPathStep) -> Object {
    let mut row = object([("type", json!(&*step.type_name))]);
    let mut set = |key: &str, value: Value| _ = row.insert(key.to_owned(), value);
    match &step.place {
        HeapPathPlace::Root => {}
        HeapPathPlace::Field(name) => set("field", json!(&**name)),
        HeapPathPlace::Index(at) => set("index", json!(at)),
        HeapPathPlace::FieldOfElement(at, name) => {
            set("index", json!(at));
            set("field", json!(&**name));
        }
        HeapPathPlace::Dependent => set("field", json!("(value of a weak table)")),
        HeapPathPlace::Loader => set("field", json!("(load context)")),
        HeapPathPlace::Unknown => set("field", Value::Null),
    }
    if step.repeats {
        set("repeats", json!(true));
    }
    row
}

impl HeapRows for Ways {
    const NAME: &'static str = "roots";
    const ABOUT: &'static str = "What holds objects: paths from the roots, with each field; --type selects objects";
    const SORTS: &'static [Sort] = &[Sort::Own, Sort::Calls, Sort::Name];
    const TEXT_ROWS: Option<usize> = Some(10);

    type Found<'a> = HeapPaths<'a>;

    fn columns() -> Vec<ColumnInfo> {
        sheet(true).infos()
    }

    fn show(found: &HeapPaths<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(frame.has_processes);
        let text =
            shown(&[("bytes", 0, true), ("objects", 0, true), ("pid", 2, frame.has_processes), ("path", 0, true)]);
        let main = sheet.main(frame.request, "rows", Style::Table, &text);
        let section = Section { nothing: nothing("object of such a type"), what: "ways", ..main };
        renderer.section(&section, &mut |visit| {
            found.rows.iter().try_for_each(|way| visit(&sheet.entry(&WayEntry::new(way))))?;
            Ok(frame.tail(found.left_out, None))
        })
    }
}
