//! The snapshots that a view shows: a list in JSON, lines in text output.

use std::io;

use clrscope_analysis::{CutSnapshot, Missing, SnapshotRef, cut_snapshots};
use clrscope_recording::model::{HeapSnapshot, Recording};

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

/// Columns of snapshots; `side` goes before their sentences.
fn sheet<'c>(side: &'static str) -> Sheet<'c, Snapshots> {
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
        Column::new("state", "state", Kind::Text, |row: &SnapshotRef<'_>| Cell::text(row.snapshot.state.name())),
        Column::new("sentence", "", Kind::Text, move |row: &SnapshotRef<'_>| {
            Cell::Text(format!("{side}{}", sentence(row)).into())
        })
        .on_request(),
    ])
}

/// Words before a snapshot's sentence that name its side, if there are two sides.
fn side_of(key: &str) -> &'static str {
    match key {
        "before" => "Before: ",
        "after" => "After: ",
        _ => "",
    }
}

/// Number of the items that are missing from a snapshot.
fn lost(missing: Missing) -> u64 {
    let Missing { chunks, references, roots, objects } = missing;
    [references, roots, objects].into_iter().fold(chunks, u64::saturating_add)
}

/// A snapshot in one line. It includes the number only where the process has several snapshots.
fn sentence(row: &SnapshotRef<'_>) -> String {
    let HeapSnapshot { number, name, collected, pause_ns, .. } = row.snapshot;
    let named = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let which = match row.process.snapshots.len() {
        1 => String::new(),
        all => format!(" {number} of {all}"),
    };
    let how = if *collected { "after a full collection" } else { "of the heap as it was, garbage included" };
    let (at, objects, size) = (time(row.time_ns()), count(row.objects), bytes(row.bytes));
    let mut text = match row.why_cut() {
        None => format!(
            "Snapshot{which}{named} at {at}, {how}: {objects} objects with {size}; the program was stopped for {}.",
            time(*pause_ns)
        ),
        Some(why) => format!(
            "Snapshot{which}{named} at {at}, {how}, is not complete: {why}. {objects} objects with {size} were \
             written; what they retain, and what holds them, is shown for these only."
        ),
    };
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

/// Shows the snapshots from which a view's rows come; in JSON under `key`.
pub(super) fn show(key: &'static str, all: &[SnapshotRef<'_>], renderer: &mut dyn Renderer) -> io::Result<()> {
    let sheet = sheet(side_of(key));
    let section = sheet.section(key, Style::Notes, &[("sentence", 0)]);
    renderer.section(&section, &mut |visit| {
        all.iter().try_for_each(|snapshot| visit(&sheet.entry(snapshot)))?;
        Ok(Tail::default())
    })
}

/// Sentences about incomplete snapshots.
pub(super) fn cut_ones<'s>(all: &'s [SnapshotRef<'_>]) -> impl Iterator<Item = String> + 's {
    all.iter().filter(|shown| shown.why_cut().is_some()).map(sentence)
}

/// Remark about incomplete snapshots that are not among the shown ones, if there are any.
pub(super) fn note_of_cut(recording: &Recording, request: &Request, shown: &[SnapshotRef<'_>]) -> Option<String> {
    let is_shown = |cut: &CutSnapshot<'_>| shown.iter().any(|shown| std::ptr::eq(shown.snapshot, cut.snapshot));
    let said = |cut: CutSnapshot<'_>| {
        let number = cut.snapshot.number;
        let there = if cut.is_there { format!(" --snapshot {number} shows what was written.") } else { String::new() };
        format!("Snapshot {number} is not complete, and is not shown: {}.{there}", cut.why)
    };
    let cut = cut_snapshots(recording, &request.query).into_iter();
    let all: Vec<String> = cut.filter(|cut| !is_shown(cut)).map(said).collect();
    (!all.is_empty()).then(|| all.join(" "))
}
