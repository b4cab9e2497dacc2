//! The view `probes`: calls of probed methods and their durations, and how often probed lines were
//! reached.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use clrscope_analysis::{Conditions, ProbeCallers, ProbeLog, ProbeRow, ProbedPlace, Sort, conditions, probes};
use clrscope_recording::model::Recording;

use super::nothing;
use super::probe_callers;
use super::probe_calls::{self, TEXT_ROWS};
use super::sources::file_name;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::count;
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `probes`.
pub(super) static VIEW: View = View {
    name: "probes",
    about: "Calls of chosen methods: number, failures and times, with percentiles; with --each, each call; with \
            --callers, their callers; how often chosen lines were reached",
    takes: &[&[Flag::Function, Flag::Module, Flag::Limit, Flag::Each, Flag::Callers, Flag::Verbose]],
    sorts: &[Sort::Total, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |request| Some(if request.each { TEXT_ROWS } else { 30 }),
    has_head: true,
    layout: Layout::Rows,
    columns: |request| match request {
        Request { each: true, .. } => probe_calls::sheet(true).infos(),
        Request { callers: true, .. } => probe_callers::sheet().infos(),
        _ => sheet().infos(),
    },
    open: |recording, request, _| {
        let (request, query) = (request.clone(), &request.query);
        if request.each {
            return Ok(Box::new(OpenedCalls { log: ProbeLog::open(recording, query)?, request, recording }));
        }
        if request.callers {
            let callers = ProbeCallers::open(recording, query)?;
            return Ok(Box::new(OpenedCallers { callers, request, recording }));
        }
        let (rows, left_out) = probes(recording, query)?;
        Ok(Box::new(OpenView { rows, left_out, request, recording }))
    },
};

struct Probes;

impl RowKind for Probes {
    type Row<'a> = ProbeRow;
}

impl Row for ProbeRow {}

fn sheet<'c>() -> Sheet<'c, Probes> {
    let number = |key, title, of: fn(&ProbeRow) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &ProbeRow| Cell::Count(of(row)))
    };
    let time = |key, title, of: fn(&ProbeRow) -> Option<u64>| {
        Column::new(key, title, Kind::Time, move |row: &ProbeRow| Cell::or_null(of(row), Cell::Time))
    };
    Sheet::new([
        Column::new("name", "method", Kind::Text, |row: &ProbeRow| Cell::text(&row.name).said(in_words(row))),
        Column::new("signature", "signature", Kind::Text, |row: &ProbeRow| Cell::text(&row.signature)),
        Column::new("module", "module", Kind::Text, |row: &ProbeRow| Cell::text(&row.module)),
        number("calls", "calls", |row| row.calls),
        Column::new("failed", "failed", Kind::Count, |row: &ProbeRow| of_calls(row, Cell::Count(row.failed))),
        time("total_ns", "total", |row| row.place.is_none().then_some(row.total_ns)),
        time("mean_ns", "mean", ProbeRow::mean_ns),
        time("p50_ns", "50 %", |row| row.percentile_ns(50)),
        time("p90_ns", "90 %", |row| row.percentile_ns(90)),
        time("p99_ns", "99 %", |row| row.percentile_ns(99)),
        time("max_ns", "longest", |row| row.mean_ns().map(|_| row.max_ns)),
        Column::new("active", "active", Kind::Count, |row: &ProbeRow| of_calls(row, Cell::Count(row.active()))),
        Column::new("removed", "removed", Kind::Flag, |row: &ProbeRow| Cell::Flag(row.is_removed)),
        Column::new("file", "file", Kind::Text, |row: &ProbeRow| {
            Cell::or_null(row.place.as_ref(), |place| Cell::text(&place.file))
        }),
        Column::new("line", "line", Kind::Number, |row: &ProbeRow| {
            Cell::or_null(row.place.as_ref(), |place| Cell::Number(place.line.into()).said(place_in_words(place)))
        }),
    ])
}

/// The cell, for a row about a method; absent for a line, which has no calls.
fn of_calls<'a>(row: &ProbeRow, cell: Cell<'a>) -> Cell<'a> {
    if row.place.is_none() { cell } else { Cell::Null }
}

/// A probed line, written as in the request.
pub(crate) fn place_in_words(place: &ProbedPlace) -> String {
    format!("{}:{}", file_name(&place.file), place.line)
}

/// The method, with a remark where its probes were removed.
fn in_words(row: &ProbeRow) -> String {
    let removed = if row.is_removed { " (removed)" } else { "" };
    format!("{}{removed}", row.signature)
}

/// Columns of text, each with the rank by which narrow terminals omit it.
const TEXT: [(&str, u8); 11] = [
    ("calls", 0),
    ("failed", 1),
    ("total_ns", 0),
    ("mean_ns", 2),
    ("p50_ns", 0),
    ("p90_ns", 3),
    ("p99_ns", 0),
    ("max_ns", 4),
    ("active", 5),
    ("line", 0),
    ("name", 0),
];

struct OpenView<'a> {
    rows: Vec<ProbeRow>,
    left_out: usize,
    request: Request,
    recording: &'a Recording,
}

struct OpenedCalls<'a> {
    log: ProbeLog<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenedCalls<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        probe_calls::write(&self.log, &self.request, self.recording.processes.len() > 1, renderer)
    }
}

struct OpenedCallers<'a> {
    callers: ProbeCallers<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenedCallers<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        probe_callers::write(&self.callers, &self.request, renderer)
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet();
        let main = sheet.main(&self.request, "rows", Style::Table, &in_text(&self.rows));
        let section = Section { nothing: nothing("probed method"), what: "methods", ..main };
        show(&self.rows, self.left_out, &sheet, &section, renderer)
    }
}

/// Columns of text that have values in these rows.
fn in_text(rows: &[ProbeRow]) -> Vec<(&'static str, u8)> {
    let has_lines = rows.iter().any(|row| row.place.is_some());
    let has_methods = !rows.iter().all(|row| row.place.is_some()) || rows.is_empty();
    let is_shown = |key| match key {
        "line" => has_lines,
        "calls" | "name" => true,
        _ => has_methods,
    };
    TEXT.into_iter().filter(|(key, _)| is_shown(*key)).collect()
}

fn show(
    rows: &[ProbeRow],
    left_out: usize,
    sheet: &Sheet<'_, Probes>,
    section: &Section,
    renderer: &mut dyn Renderer,
) -> io::Result<()> {
    renderer.section(section, &mut |visit| {
        rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
        Ok(Tail { left_out: left_out as u64, note: note(rows) })
    })
}

/// Shows the first rows in the view `summary`; text output shows them only if it shows several
/// tables.
///
/// # Errors
/// Errors of the renderer.
pub(super) fn of_summary(
    rows: &[ProbeRow],
    left_out: usize,
    is_one_table: bool,
    renderer: &mut dyn Renderer,
) -> io::Result<()> {
    let sheet = sheet();
    let text = if is_one_table { Vec::new() } else { in_text(rows) };
    let [first, all] = [rows.len(), rows.len() + left_out].map(|rows| count(rows as u64));
    let what = if rows.iter().any(|row| row.place.is_some()) { "Probed methods and lines" } else { "Probed methods" };
    let title = Title::Bold(format!("{what} by time ({first} of {all})"));
    let section = Section { title, what: "methods", ..sheet.section("probed", Style::Table, &text) };
    show(rows, 0, &sheet, &section, renderer)
}

/// Note below the rows; `None` if there is nothing to note.
fn note(rows: &[ProbeRow]) -> Option<String> {
    const TIMES: &str = "Times are wall time of calls that ended, callees included; async methods and iterators count \
                         each resumption. 'active' are calls that had not ended.";
    const LINES: &str = "For a line, 'calls' is how often it was reached in that method.";
    let mut words = Vec::new();
    if rows.iter().any(|row| row.place.is_none()) {
        words.push(TIMES.to_owned());
    }
    let mut files: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for place in rows.iter().filter_map(|row| row.place.as_ref()) {
        files.entry(place_in_words(place)).or_default().insert(&place.file);
    }
    if !files.is_empty() {
        words.push(LINES.to_owned());
    }
    for (line, files) in files.iter().filter(|(_, files)| files.len() > 1) {
        let files: Vec<&str> = files.iter().copied().collect();
        words.push(format!("{line} is in {} files: {}.", files.len(), files.join(", ")));
    }
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_told_apart() {
        let row = |file: &str| {
            let mut row = ProbeRow::default();
            row.place = Some(ProbedPlace { file: file.to_owned(), line: 42 });
            row
        };
        let said = |rows: &[ProbeRow]| note(rows).unwrap_or_default();
        assert!(!said(&[row("/a/Cart.cs"), row("/a/Cart.cs")]).contains("files:"));
        let both = said(&[row("/a/Cart.cs"), row("/b/Cart.cs")]);
        assert!(both.ends_with(" Cart.cs:42 is in 2 files: /a/Cart.cs, /b/Cart.cs."), "{both}");
        assert!(!said(&[ProbeRow::default()]).contains("reached") && note(&[]).is_none());
    }
}
