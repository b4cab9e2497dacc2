//! The view `gc`: a summary of all garbage collections, then the collections in the order of time.

use std::io;

use clrscope_analysis::{
    Collection, CollectionKind, Conditions, FunctionRef, GENERATION_NAMES, collection_facts, collections, conditions,
    findings_about_collections,
};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use super::summary::show_findings;
use super::{SELECTION, nothing};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::json::{Object, object};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `gc`.
pub(super) static VIEW: View = View {
    name: "gc",
    about: "Garbage collections: reason and cause, pauses, sizes of the generations",
    takes: &[SELECTION, &[Flag::Limit, Flag::Verbose]],
    sorts: &[],
    text_rows: |_| Some(50),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let rows = collections(recording, &request.query)?;
        Ok(Box::new(OpenView { rows, request: request.clone(), recording }))
    },
};

struct Collections;

impl RowKind for Collections {
    type Row<'a> = Collection<'a>;
}

impl Row for Collection<'_> {}

fn function(of: &FunctionRef<'_>, il_offset: Option<u32>) -> Object {
    object([
        ("name", json!(of.name())),
        ("signature", json!(of.signature())),
        ("module", json!(of.module())),
        ("il_offset", json!(il_offset)),
    ])
}

fn generations(row: &Collection<'_>) -> Value {
    let of = |(name, sizes): (&&str, &clrscope_analysis::GenerationSizes)| {
        json!({
            "name": name,
            "before_bytes": sizes.before,
            "after_bytes": sizes.after,
            "free_before_bytes": sizes.free_before,
            "free_after_bytes": sizes.free_after,
        })
    };
    GENERATION_NAMES.iter().zip(&row.generations).map(of).collect()
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Collections> {
    let bytes = |key, title, of: fn(&Collection<'_>) -> Option<u64>| {
        Column::new(key, title, Kind::Bytes, move |row: &Collection<'_>| Cell::or_null(of(row), Cell::Bytes))
    };
    let count = |key, title, of: fn(&Collection<'_>) -> Option<u64>| {
        Column::new(key, title, Kind::Count, move |row: &Collection<'_>| Cell::or_null(of(row), Cell::Count))
    };
    let time = |key, title, of: fn(&Collection<'_>) -> Option<u64>| {
        Column::new(key, title, Kind::Time, move |row: &Collection<'_>| Cell::or_null(of(row), Cell::Time))
    };
    Sheet::new([
        Column::new("number", "number", Kind::Number, |row: &Collection<'_>| {
            Cell::or_null(row.number, |number| Cell::Number(number.into()))
        }),
        Column::new("generation", "gen", Kind::Number, |row: &Collection<'_>| Cell::Number(row.generation.into())),
        Column::new("reason", "reason", Kind::Text, |row: &Collection<'_>| Cell::text(row.reason.words())),
        Column::new("kind", "kind", Kind::Text, |row: &Collection<'_>| Cell::text(row.kind.name())),
        Column::new("background", "background", Kind::Flag, |row: &Collection<'_>| {
            Cell::Flag(row.kind == CollectionKind::Background)
        }),
        Column::new("compacting", "compacting", Kind::Flag, |row: &Collection<'_>| {
            Cell::or_null(row.compacting, Cell::Flag)
        }),
        time("start_ns", "start", |row| Some(row.start_ns)),
        time("end_ns", "end", |row| row.end_ns),
        time("suspend_ns", "to suspend", |row| Some(row.suspend_ns)),
        time("pause_ns", "pause", |row| Some(row.pause_ns)),
        time("runtime_pause_ns", "pause by events", |row| row.runtime_pause_ns),
        time("runtime_suspend_ns", "to suspend by events", |row| row.runtime_suspend_ns),
        bytes("heap_before_bytes", "before", |row| row.before_bytes()),
        bytes("heap_after_bytes", "after", |row| row.after_bytes()),
        bytes("live_bytes", "objects after", |row| row.live_bytes()),
        bytes("promoted_bytes", "promoted", |row| row.promoted_bytes),
        bytes("allocated_bytes", "allocated", |row| row.allocated_bytes),
        Column::new("generations", "generations", Kind::Nested, |row: &Collection<'_>| Cell::Nested(generations(row))),
        count("pinned_objects", "pinned", |row| row.pinned_objects),
        count("handles", "handles", |row| row.handles),
        count("finalizers", "finalizers", |row| Some(row.finalizers)),
        Column::new("memory_load", "memory load", Kind::Share, |row: &Collection<'_>| {
            Cell::or_null(row.memory_load, |percent| Cell::Share(percent as f64 / 100.0))
        }),
        Column::new("thread", "thread", Kind::Thread, |row: &Collection<'_>| Cell::or_null(row.thread, Cell::Thread)),
        Column::new("cause", "caused by", Kind::Function, |row: &Collection<'_>| {
            Cell::or_null(row.cause(), |cause| Cell::function(&cause))
        }),
        Column::new("stack", "stack", Kind::Nested, |row: &Collection<'_>| {
            Cell::Nested(row.stack().map(|(of, il_offset)| Value::Object(function(&of, il_offset))).collect())
        }),
        Column::new("pid", "process", Kind::Number, |row: &Collection<'_>| Cell::Number(row.process.pid.into()))
            .only_if(processes),
    ])
}

/// Columns in text.
fn text(rows: &[Collection<'_>], processes: bool) -> Vec<(&'static str, u8)> {
    shown(&[
        ("start_ns", 2, true),
        ("number", 3, true),
        ("pid", 2, processes),
        ("generation", 0, true),
        ("pause_ns", 0, true),
        ("suspend_ns", 4, true),
        ("heap_before_bytes", 2, true),
        ("heap_after_bytes", 1, true),
        ("promoted_bytes", 3, true),
        ("pinned_objects", 6, rows.iter().any(|row| row.pinned_objects.is_some_and(|pinned| pinned > 0))),
        ("finalizers", 6, rows.iter().any(|row| row.finalizers > 0)),
        ("kind", 5, true),
        ("compacting", 7, true),
        ("reason", 0, true),
        ("thread", 8, true),
        ("cause", 0, true),
    ])
}

struct OpenView<'a> {
    rows: Vec<Collection<'a>>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let facts = collection_facts(self.recording, &self.request.query);
        show_findings(&facts.map_or_else(Vec::new, |facts| findings_about_collections(&facts)), renderer)?;
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let main = sheet.main(&self.request, "rows", Style::Table, &text(&self.rows, processes));
        let section = Section {
            nothing: nothing("collection"),
            what: "collections",
            title: Title::Bold("Collections".to_owned()),
            ..main
        };
        let shown = self.request.query.limit.unwrap_or(usize::MAX).min(self.rows.len());
        renderer.section(&section, &mut |visit| {
            self.rows[..shown].iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: (self.rows.len() - shown) as u64, note: None })
        })
    }
}
