//! The view `awaits`: awaits of the program's own async methods, those with the longest time first.

use std::io;

use clrscope_analysis::{AwaitRow, Conditions, Sort, awaits, conditions};
use clrscope_recording::model::Recording;
use clrscope_symbols::Lines;

use super::located_path::{LocatedPath, paths};
use super::sources::line_behind;
use super::{REQUESTS, SELECTION};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::spot::LocatedLine;
use crate::view::{Answer, View};

/// The view `awaits`.
pub(super) static VIEW: View = View {
    name: "awaits",
    about: "Awaits of async methods: how often they had to wait, for what, how long, and who awaited the method",
    takes: &[SELECTION, REQUESTS, &[Flag::Limit, Flag::Verbose, Flag::Paths]],
    sorts: &[Sort::Own, Sort::Total, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let (rows, left_out) = awaits(recording, &request.query)?;
        Ok(Box::new(OpenView { rows, left_out, request: request.clone(), recording }))
    },
};

struct Awaits;

impl RowKind for Awaits {
    type Row<'a> = AwaitEntry<'a>;
}

/// A row, with the line of the await and the lines of its paths.
struct AwaitEntry<'a> {
    row: &'a AwaitRow<'a>,
    line: Option<LocatedLine>,
    paths: Vec<LocatedPath<'a>>,
}

impl Row for AwaitEntry<'_> {}

impl<'a> AwaitEntry<'a> {
    fn new(row: &'a AwaitRow<'a>, lines: &mut Lines) -> Self {
        let line = LocatedLine::find(lines, &row.frame.function, row.frame.place);
        let path =
            |path: &'a clrscope_analysis::AwaitPath<'a>| LocatedPath::new((path.count, path.ns), path.frames(), lines);
        Self { row, line, paths: row.paths.iter().map(path).collect() }
    }

    /// The method, with the line of the await where the line is known.
    fn method(&self) -> Cell<'a> {
        let function = self.row.frame.function;
        let line = line_behind(self.line.as_ref().map(|found| &found.line));
        Cell::text(function.name()).said(format!("{}{line}", function.label()))
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Awaits> {
    let count = |key, title, of: fn(&AwaitRow<'_>) -> u64| {
        Column::new(key, title, Kind::Count, move |entry: &AwaitEntry<'_>| Cell::Count(of(entry.row)))
    };
    let time = |key, title, of: fn(&AwaitRow<'_>) -> Option<u64>| {
        Column::new(key, title, Kind::Time, move |entry: &AwaitEntry<'_>| of(entry.row).map_or(Cell::Null, Cell::Time))
    };
    Sheet::new([
        Column::new("name", "method", Kind::Text, |entry: &AwaitEntry<'_>| entry.method()),
        Column::new("module", "module", Kind::Text, |entry: &AwaitEntry<'_>| {
            Cell::text(entry.row.frame.function.module())
        }),
        Column::new("file", "file", Kind::Text, |entry: &AwaitEntry<'_>| {
            entry.line.as_ref().map_or(Cell::Null, |found| Cell::Text(found.line.file.clone().into()))
        }),
        Column::new("line", "line", Kind::Number, |entry: &AwaitEntry<'_>| {
            entry.line.as_ref().map_or(Cell::Null, |found| Cell::Number(found.line.line.into()))
        }),
        Column::new("awaits", "awaits", Kind::Text, |entry: &AwaitEntry<'_>| {
            Cell::text(&entry.row.awaits).said(without_namespace(&entry.row.awaits))
        }),
        count("count", "awaits ended", |row| row.count),
        Column::new("exact", "exact", Kind::Flag, |entry: &AwaitEntry<'_>| Cell::Flag(entry.row.is_exact)),
        count("pending", "pending", |row| row.pending),
        count("failed", "failed", |row| row.failed),
        count("cancelled", "cancelled", |row| row.cancelled),
        time("mean_ns", "mean", |row| row.mean_ns()),
        time("p50_ns", "50 %", |row| row.percentile_ns(50)),
        time("p90_ns", "90 %", |row| row.percentile_ns(90)),
        time("p99_ns", "99 %", |row| row.percentile_ns(99)),
        time("max_ns", "longest", |row| row.mean_ns().map(|_| row.max_ns)),
        time("self_ns", "awaited itself", |row| Some(row.self_ns)),
        time("total_ns", "awaited", |row| Some(row.total_ns)),
        Column::new("awaiter", "awaited by", Kind::Text, |entry: &AwaitEntry<'_>| {
            entry.paths.iter().find_map(|path| path.own_place_behind(1)).unwrap_or(Cell::Null)
        }),
        Column::new("paths", "paths", Kind::Nested, |entry: &AwaitEntry<'_>| paths(&entry.paths))
            .parts(&["count", "total_ns", "frames"]),
        Column::new("pid", "process", Kind::Number, |entry: &AwaitEntry<'_>| {
            Cell::Number(entry.row.process.pid.into())
        })
        .only_if(processes),
    ])
}

/// The name of the awaited operation, without namespaces.
pub(super) fn without_namespace(name: &str) -> &str {
    let end = name.find("::").unwrap_or(name.len());
    &name[name[..end].rfind('.').map_or(0, |dot| dot + 1)..]
}

/// Columns in text.
fn text(rows: &[AwaitRow<'_>]) -> Vec<(&'static str, u8)> {
    let any = |of: fn(&AwaitRow<'_>) -> u64| rows.iter().any(|row| of(row) > 0);
    shown(&[
        ("self_ns", 0, true),
        ("total_ns", 0, true),
        ("count", 0, true),
        ("mean_ns", 1, true),
        ("p99_ns", 3, true),
        ("max_ns", 2, true),
        ("pending", 0, any(|row| row.pending)),
        ("failed", 1, any(|row| row.failed)),
        ("cancelled", 1, any(|row| row.cancelled)),
        ("name", 0, true),
        ("awaits", 1, true),
        ("awaiter", 4, true),
    ])
}

struct OpenView<'a> {
    rows: Vec<AwaitRow<'a>>,
    left_out: usize,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(self.recording.processes.len() > 1);
        let main = sheet.main(&self.request, "rows", Style::Table, &text(&self.rows));
        let nothing = "No awaits to show: no async method of the program had to wait, or the filters leave nothing.";
        let section = Section { nothing: nothing.to_owned(), ..main };
        renderer.section(&section, &mut |visit| {
            let lines = &mut Lines::default();
            self.rows.iter().try_for_each(|row| visit(&sheet.entry(&AwaitEntry::new(row, lines))))?;
            Ok(Tail { left_out: self.left_out as u64, note: None })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::without_namespace;

    #[test]
    fn what_is_awaited_is_named_without_namespaces() {
        let short = |name| without_namespace(name);
        assert_eq!(short("System.Threading.Tasks.Task::Delay"), "Task::Delay");
        assert_eq!(short("Shop.Cart+Row::.ctor"), "Cart+Row::.ctor");
        assert_eq!([short("System.Threading.Tasks.Task"), short("[not known]")], ["Task", "[not known]"]);
    }
}
