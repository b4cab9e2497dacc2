//! The snapshots that a view is about: a list in JSON, lines in text.

use std::io;

use clrscope_analysis::{Missing, SnapshotRef, cut_snapshots};
use clrscope_recording::model::{HeapSnapshot, Process, Recording};

use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::{bytes, count, time};
use crate::render::{Renderer, Style, Tail};
use crate::request::Request;

struct Snapshots;

impl RowKind for Snapshots {
    type Row<'a> = SnapshotRef<'a>;
}

impl Row for SnapshotRef<'_> {}

fn sheet<'c>() -> Sheet<'c, Snapshots> {
    let number = |key, kind, of: fn(&SnapshotRef<'_>) -> u64| {
        Column::new(key, "", kind, move |row: &SnapshotRef<'_>| match kind {
            Kind::Bytes => Cell::Bytes(of(row)),
            Kind::Time => Cell::Time(of(row)),
            _ => Cell::Count(of(row)),
        })
    };
    Sheet::new([
        Column::new("pid", "process", Kind::Number, |row: &SnapshotRef<'_>| Cell::Number(row.process.pid.into())),
        Column::new("number", "number", Kind::Number, |row: &SnapshotRef<'_>| Cell::Number(row.snapshot.number.into())),
        number("time_ns", Kind::Time, |row| row.time_ns()),
        Column::new("reason", "reason", Kind::Text, |row: &SnapshotRef<'_>| Cell::text(row.snapshot.reason.name())),
        Column::new("name", "name", Kind::Text, |row: &SnapshotRef<'_>| Cell::text(&row.snapshot.name)),
        Column::new("collected", "collected", Kind::Flag, |row: &SnapshotRef<'_>| Cell::Flag(row.snapshot.collected)),
        number("pause_ns", Kind::Time, |row| row.snapshot.pause_ns),
        number("objects", Kind::Count, |row| row.objects),
        number("bytes", Kind::Bytes, |row| row.bytes),
        number("references", Kind::Count, |row| row.references),
        number("missing", Kind::Count, |row| lost(row.missing)),
        Column::new("sentence", "", Kind::Text, |row: &SnapshotRef<'_>| Cell::Text(sentence(row).into())).on_request(),
    ])
}

/// Everything that is missing of a snapshot, by number.
fn lost(missing: Missing) -> u64 {
    let Missing { chunks, references, roots, objects } = missing;
    [references, roots, objects].into_iter().fold(chunks, u64::saturating_add)
}

/// A snapshot in a line.
fn sentence(row: &SnapshotRef<'_>) -> String {
    let HeapSnapshot { number, name, collected, pause_ns, .. } = row.snapshot;
    let named = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let all = row.process.snapshots.len();
    let how = if *collected { "after a full collection" } else { "of the heap as it was, garbage included" };
    let mut text = format!(
        "Snapshot {number} of {all}{named} at {}, {how}: {} objects with {}; the program stood still for {}.",
        time(row.time_ns()),
        count(row.objects),
        bytes(row.bytes),
        time(*pause_ns)
    );
    let Missing { chunks, references, roots, objects } = row.missing;
    if lost(row.missing) > 0 {
        let parts = [
            (chunks, "pieces of the file"),
            (objects, "objects"),
            (references, "referred-to objects"),
            (roots, "objects of roots"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(lost, _)| *lost > 0).map(|(lost, what)| format!("{} {what}", count(*lost))).collect();
        text.push_str(&format!(" Missing: {}.", parts.join(", ")));
    }
    text
}

/// Shows the snapshots of a view's rows: `key` in JSON.
pub(super) fn show(key: &'static str, all: &[SnapshotRef<'_>], renderer: &mut dyn Renderer) -> io::Result<()> {
    let sheet = sheet();
    let section = sheet.section(key, Style::Notes, &[("sentence", 0)]);
    renderer.section(&section, &mut |visit| {
        all.iter().try_for_each(|snapshot| visit(&sheet.entry(snapshot)))?;
        Ok(Tail::default())
    })
}

/// A snapshot that is not complete, and why.
type Cut<'a> = (&'a Process, &'a HeapSnapshot, String);

/// Remark about snapshots of which nothing is shown, if there are some.
pub(super) fn note_of_cut(recording: &Recording, request: &Request) -> Option<String> {
    let said = |(_, snapshot, why): &Cut<'_>| {
        format!("Snapshot {} is not complete, and nothing of it is shown: {why}.", snapshot.number)
    };
    let all: Vec<String> = cut_snapshots(recording, &request.query).iter().map(said).collect();
    (!all.is_empty()).then(|| all.join(" "))
}
