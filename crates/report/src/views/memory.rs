//! The view `memory`: how the memory of the process is used.

use std::io;

use clrscope_analysis::{Conditions, MemoryPart, MemoryRow, MemoryTimes, MemoryView, conditions, memory};
use clrscope_recording::model::Recording;

use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, time};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `memory`.
pub(super) static VIEW: View = View {
    name: "memory",
    about: "What the process uses memory for, at the end and at its peak: managed heap by generation, code, stacks, \
            libraries, native",
    takes: &[&[Flag::Part, Flag::Since, Flag::Until, Flag::Verbose]],
    sorts: &[],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let view = memory(recording, &request.query)?;
        Ok(Box::new(OpenView { view, request: request.clone(), recording }))
    },
};

struct Parts;

impl RowKind for Parts {
    type Row<'a> = MemoryRow<'a>;
}

impl Row for MemoryRow<'_> {}

fn sheet<'c>(processes: bool) -> Sheet<'c, Parts> {
    let size = |key, title, of: fn(&MemoryRow<'_>) -> Option<u64>| {
        Column::new(key, title, Kind::Bytes, move |row: &MemoryRow<'_>| Cell::or_null(of(row), Cell::Bytes))
    };
    Sheet::new([
        Column::new("part", "part", Kind::Text, |row: &MemoryRow<'_>| Cell::text(row.part.name()).said(in_words(row))),
        Column::new("inside", "inside", Kind::Text, |row: &MemoryRow<'_>| {
            Cell::or_null(inside(row), |part| Cell::text(part.name()))
        }),
        Column::new("file", "file", Kind::Text, |row: &MemoryRow<'_>| Cell::text(&row.file)),
        size("resident_bytes", "in memory", |row| row.resident_bytes),
        size("peak_resident_bytes", "at peak", |row| row.peak_resident_bytes),
        size("committed_bytes", "committed", |row| row.committed_bytes),
        size("swapped_bytes", "swapped", |row| row.swapped_bytes),
        size("object_bytes", "objects", |row| row.object_bytes),
        size("free_bytes", "free", |row| row.free_bytes),
        size("peak_object_bytes", "objects at peak", |row| row.peak_object_bytes),
        Column::new("mappings", "mappings", Kind::Count, |row: &MemoryRow<'_>| {
            Cell::or_null(row.mappings, Cell::Count)
        }),
        Column::new("pid", "process", Kind::Number, |row: &MemoryRow<'_>| Cell::Number(row.process.pid.into()))
            .only_if(processes),
    ])
}

/// The part that contains a row; for a file, the place that the row names.
fn inside(row: &MemoryRow<'_>) -> Option<MemoryPart> {
    if row.file.is_empty() { row.part.inside() } else { Some(row.part) }
}

fn in_words(row: &MemoryRow<'_>) -> String {
    let words = match row.part {
        MemoryPart::Resident => return "all of the process".to_owned(),
        _ if !row.file.is_empty() => return format!("    {}", file_name(&row.file)),
        MemoryPart::Place(place) => return format!("  {}", place.in_words()),
        MemoryPart::Generation(number @ 0..=2) => format!("generation {number}"),
        MemoryPart::Generation(3) => "large objects".to_owned(),
        MemoryPart::Generation(_) => "pinned objects".to_owned(),
        MemoryPart::Newer => "newer, or not used".to_owned(),
    };
    format!("    {words}")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

struct OpenView<'a> {
    view: MemoryView<'a>,
    request: Request,
    recording: &'a Recording,
}

impl OpenView<'_> {
    /// Whether text shows the row by default.
    fn is_shown(&self, row: &MemoryRow<'_>) -> bool {
        self.request.verbose || row.file.is_empty()
    }
}

fn note(times: &MemoryTimes<'_>) -> String {
    let (last, peak, most) = (time(times.last_ns), time(times.peak_ns), bytes(times.most_bytes));
    let generations = match times.has_generations {
        true => "Generations are as the last collection left them: objects, and free bytes between them.",
        false => "No collection was recorded by then, so the generations are not known.",
    };
    format!(
        "In memory at {last}, with the peak at {peak}; the system's own figure for the peak since the process began is \
         {most}. {generations}"
    )
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let swapped = self.view.rows.iter().any(|row| row.swapped_bytes.is_some_and(|bytes| bytes > 0));
        let text = shown(&[
            ("resident_bytes", 0, true),
            ("peak_resident_bytes", 0, true),
            ("committed_bytes", 2, true),
            ("swapped_bytes", 1, swapped),
            ("object_bytes", 0, true),
            ("free_bytes", 0, true),
            ("pid", 3, processes),
            ("part", 0, true),
        ]);
        let main = sheet.main(&self.request, "rows", Style::Table, &text);
        let nothing =
            "The recording ended before memory was first measured, or no measurement falls into the selected time.";
        let section = Section { nothing: nothing.to_owned(), what: "parts", ..main };
        let notes: Vec<String> = self.view.times.iter().map(note).collect();
        renderer.section(&section, &mut |visit| {
            self.view.rows.iter().filter(|row| self.is_shown(row)).try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: 0, note: (!notes.is_empty()).then(|| notes.join("\n")) })
        })
    }
}
