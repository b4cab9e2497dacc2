//! The view `coverage`: executed lines and branches, by assembly, class and method, or line by
//! line; with the source.

mod source;

use std::io;

use clrscope_analysis::{
    Conditions, Coverage, CoverageSums, FileCoverage, LineCoverage, MethodCoverage, Query, QueryProblem, conditions,
    coverage,
};
use clrscope_recording::model::Recording;

use super::nothing;
use super::sources::file_name;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::{count, share};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title, text};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `coverage`.
pub(super) static VIEW: View = View {
    name: "coverage",
    about: "Lines and branches that were run, by assembly, class and method",
    takes: &[&[Flag::Module, Flag::Limit, Flag::Verbose, Flag::Source, Flag::Lines]],
    sorts: &[],
    text_rows: |_| Some(20),
    has_head: true,
    layout: Layout::Rows,
    columns: |request| if request.lines { line_sheet().infos() } else { method_sheet().infos() },
    open: |recording, request, _| Ok(Box::new(OpenView::new(recording, request)?)),
};

/// Maximum number of classes in text.
const MOST_CLASSES: usize = 30;

/// Sums of an assembly, class or method, with its names.
struct Sums<'a> {
    module: &'a str,
    file: &'a str,
    class: &'a str,
    name: &'a str,
    parameters: &'a str,
    line: u32,
    sums: CoverageSums,
}

impl Row for Sums<'_> {}

struct SumRows;

impl RowKind for SumRows {
    type Row<'a> = Sums<'a>;
}

/// A line of a file.
struct Line<'a> {
    file: &'a FileCoverage,
    number: u32,
    line: &'a LineCoverage,
}

impl Row for Line<'_> {}

struct LineRows;

impl RowKind for LineRows {
    type Row<'a> = Line<'a>;
}

fn text_of<'c>(key: &'static str, title: &'static str, of: fn(&Sums<'_>) -> String) -> Column<'c, SumRows> {
    Column::new(key, title, Kind::Text, move |row: &Sums<'_>| Cell::Text(of(row).into()))
}

/// Columns of sums; they follow the columns with names.
fn sums<'c>() -> impl Iterator<Item = Column<'c, SumRows>> {
    let number = |key, title, of: fn(&CoverageSums) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &Sums<'_>| Cell::Count(of(&row.sums)))
    };
    [
        number("lines", "lines", |sums| sums.lines),
        number("lines_covered", "run", |sums| sums.lines_covered),
        Column::new("line_share", "of lines", Kind::Share, |row: &Sums<'_>| Cell::Share(row.sums.line_share())),
        number("branches", "branches", |sums| sums.branches),
        number("branches_covered", "taken", |sums| sums.branches_covered),
        Column::new("branch_share", "of branches", Kind::Share, |row: &Sums<'_>| match row.sums.branches {
            0 => Cell::Share(1.0).said("-"),
            _ => Cell::Share(row.sums.branch_share()),
        }),
    ]
    .into_iter()
}

const SUMS_IN_TEXT: [(&str, u8); 6] = [
    ("line_share", 0),
    ("lines_covered", 3),
    ("lines", 2),
    ("branch_share", 0),
    ("branches_covered", 5),
    ("branches", 4),
];

fn module_sheet<'c>() -> Sheet<'c, SumRows> {
    Sheet::new([text_of("module", "assembly", |row| row.module.to_owned())].into_iter().chain(sums()))
}

fn class_sheet<'c>() -> Sheet<'c, SumRows> {
    let names = [
        text_of("module", "assembly", |row| row.module.to_owned()),
        text_of("class", "class", |row| row.class.to_owned()),
        file_column(),
    ];
    Sheet::new(names.into_iter().chain(sums()))
}

fn method_sheet<'c>() -> Sheet<'c, SumRows> {
    let names = [
        file_column(),
        text_of("class", "class", |row| row.class.to_owned()),
        Column::new("name", "method", Kind::Text, |row: &Sums<'_>| {
            Cell::text(row.name).said(format!("{}.{}{}", row.class, row.name, row.parameters))
        }),
        text_of("parameters", "parameters", |row| row.parameters.to_owned()),
        text_of("module", "assembly", |row| row.module.to_owned()),
        Column::new("line", "line", Kind::Number, |row: &Sums<'_>| Cell::Number(row.line.into())),
    ];
    Sheet::new(names.into_iter().chain(sums()))
}

/// Column with the whole path; people see only the file's name.
fn file_column<'c>() -> Column<'c, SumRows> {
    Column::new("file", "file", Kind::Text, |row: &Sums<'_>| Cell::text(row.file).said(file_name(row.file)))
}

fn line_sheet<'c>() -> Sheet<'c, LineRows> {
    Sheet::new([
        Column::new("file", "file", Kind::Text, |row: &Line<'_>| Cell::text(&row.file.file)),
        Column::new("line", "line", Kind::Number, |row: &Line<'_>| Cell::Number(row.number.into())),
        Column::new("hits", "hits", Kind::Count, |row: &Line<'_>| Cell::Count(row.line.hits)),
        Column::new("branches", "branches", Kind::Count, |row: &Line<'_>| Cell::Count(row.line.branches.len() as u64)),
        Column::new("branches_covered", "taken", Kind::Count, |row: &Line<'_>| {
            Cell::Count(row.line.branches_covered())
        }),
        Column::new("module", "assembly", Kind::Text, |row: &Line<'_>| Cell::text(&row.file.module)),
    ])
}

struct OpenView<'a> {
    coverage: Coverage,
    files: Vec<FileCoverage>,
    request: Request,
    recording: &'a Recording,
}

/// Coverage by assembly in the view `summary`.
pub(super) struct OfSummary<'a>(OpenView<'a>);

impl<'a> OfSummary<'a> {
    /// Returns the coverage of the recording; `None` if it was not recorded, or no lines are known.
    pub(super) fn for_query(recording: &'a Recording, query: &Query) -> Option<Self> {
        let request = Request { query: query.clone(), ..Request::default() };
        let opened = OpenView::new(recording, &request).ok()?;
        (!opened.files.is_empty()).then_some(Self(opened))
    }

    /// Shows the coverage; text output shows it only if it shows several tables.
    ///
    /// # Errors
    /// Errors of the renderer.
    pub(super) fn show(&self, is_one_table: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
        self.0.modules("covered", !is_one_table, renderer)
    }
}

/// Coverage of each assembly and class, for people, in `width` columns.
///
/// # Errors
/// When no coverage was recorded.
pub fn first_coverage(recording: &Recording, query: &Query, width: usize) -> Result<String, QueryProblem> {
    let request = Request { query: query.clone(), ..Request::default() };
    let opened = OpenView::new(recording, &request)?;
    let mut out = Vec::new();
    let mut renderer = text::Text::new(&mut out, width, false);
    // Nothing that is written to memory fails.
    let _ = opened.modules("modules", true, &mut renderer).and_then(|()| opened.classes(&mut renderer));
    Ok(String::from_utf8_lossy(&out).into_owned())
}

impl<'a> OpenView<'a> {
    fn new(recording: &'a Recording, request: &Request) -> Result<Self, QueryProblem> {
        let coverage = coverage(recording, &request.query)?;
        Ok(Self { files: coverage.files(), coverage, request: request.clone(), recording })
    }

    /// Sums of the files of each assembly, in order.
    fn modules_of(&self) -> Vec<Sums<'_>> {
        let mut rows: Vec<Sums<'_>> = Vec::new();
        for file in &self.files {
            if rows.last().is_none_or(|last| last.module != file.module) {
                let module = file.module.as_str();
                let sums = CoverageSums::default();
                rows.push(Sums { module, file: "", class: "", name: "", parameters: "", line: 0, sums });
            }
            if let Some(last) = rows.last_mut() {
                last.sums.add(CoverageSums::from_lines(&file.lines));
            }
        }
        rows
    }

    fn classes_of(&self) -> Vec<Sums<'_>> {
        let mut methods: Vec<&MethodCoverage> = self.coverage.methods.iter().collect();
        methods.sort_by_key(|method| (&method.module, &method.class, &method.file));
        let same = |a: &MethodCoverage, b: &Sums<'_>| (&*a.module, &*a.class, &*a.file) == (b.module, b.class, b.file);
        let mut rows: Vec<Sums<'_>> = Vec::new();
        for method in methods {
            let sums = CoverageSums::from_lines(&method.lines);
            match rows.last_mut().filter(|last| same(method, last)) {
                Some(last) => last.sums.add(sums),
                None => rows.push(Sums { name: "", parameters: "", line: 0, ..row(method) }),
            }
        }
        order(&mut rows);
        rows
    }

    fn methods_of(&self) -> Vec<Sums<'_>> {
        let mut rows: Vec<Sums<'_>> = self.coverage.methods.iter().map(row).collect();
        order(&mut rows);
        rows
    }

    fn modules(&self, name: &'static str, in_text: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = module_sheet();
        let columns = || SUMS_IN_TEXT.into_iter().chain([("module", 0)]).collect();
        let text: Vec<(&'static str, u8)> = if in_text { columns() } else { Vec::new() };
        let section = Section {
            title: Title::Bold("Coverage".to_owned()),
            nothing: nothing("assembly with lines"),
            what: "assemblies",
            ..sheet.section(name, Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            self.modules_of().iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: 0, note: self.note() })
        })
    }

    fn note(&self) -> Option<String> {
        let mut said = Vec::new();
        if self.modules_of().len() > 1 {
            let sums = self.coverage.sums();
            let [lines, branches] = [sums.line_share(), sums.branch_share()].map(share);
            let all = [sums.lines, sums.branches].map(count);
            said.push(format!("In all {lines} of {} lines and {branches} of {} branches.", all[0], all[1]));
        }
        if self.coverage.unknown_methods > 0 {
            said.push(format!(
                "{} methods are not shown: the files of their assemblies have changed since the run.",
                count(self.coverage.unknown_methods)
            ));
        }
        (!said.is_empty()).then(|| said.join(" "))
    }

    fn classes(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = class_sheet();
        let text: Vec<(&'static str, u8)> = SUMS_IN_TEXT.into_iter().chain([("class", 0), ("file", 1)]).collect();
        let section = Section {
            title: Title::Bold("Classes, by number of lines that were not run".to_owned()),
            what: "classes",
            text_rows: Some(MOST_CLASSES),
            ..sheet.section("classes", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            self.classes_of().iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail::default())
        })
    }

    fn methods(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = method_sheet();
        let text: Vec<(&'static str, u8)> = SUMS_IN_TEXT.into_iter().chain([("name", 0), ("line", 6)]).collect();
        let section = Section {
            title: Title::Bold("Methods, by number of lines that were not run".to_owned()),
            nothing: nothing("method with lines"),
            what: "methods",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        let rows = self.methods_of();
        let shown = self.request.query.limit.unwrap_or(usize::MAX).min(rows.len());
        renderer.section(&section, &mut |visit| {
            rows[..shown].iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: (rows.len() - shown) as u64, note: None })
        })
    }

    fn lines(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = line_sheet();
        let text = [("hits", 0), ("branches", 2), ("branches_covered", 3), ("file", 0), ("line", 0)];
        let section = Section {
            nothing: nothing("line"),
            what: "lines",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        let rows = self
            .files
            .iter()
            .flat_map(|file| file.lines.iter().map(move |(number, line)| Line { file, number: *number, line }));
        let rows: Vec<Line<'_>> = rows.collect();
        let shown = self.request.query.limit.unwrap_or(usize::MAX).min(rows.len());
        renderer.section(&section, &mut |visit| {
            rows[..shown].iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: (rows.len() - shown) as u64, note: None })
        })
    }
}

fn row(method: &MethodCoverage) -> Sums<'_> {
    let MethodCoverage { module, file, class, name, parameters, lines } = method;
    Sums { module, file, class, name, parameters, line: method.first_line(), sums: CoverageSums::from_lines(lines) }
}

/// Sorts rows by the number of lines that were not executed, largest first, then by their place in
/// the source.
fn order(rows: &mut [Sums<'_>]) {
    let missed = |row: &Sums<'_>| row.sums.lines - row.sums.lines_covered;
    rows.sort_by(|a, b| missed(b).cmp(&missed(a)).then_with(|| sort_key(a).cmp(&sort_key(b))));
}

fn sort_key<'r>(row: &'r Sums<'_>) -> (&'r str, &'r str, u32, &'r str, &'r str) {
    (row.module, row.file, row.line, row.class, row.name)
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        if self.request.lines {
            self.lines(renderer)?;
        } else {
            self.modules("modules", true, renderer)?;
            self.classes(renderer)?;
            self.methods(renderer)?;
        }
        if self.request.source { source::section(self, renderer) } else { Ok(()) }
    }
}
