//! The view `lines`: samples, allocations or exceptions by source line.

use std::cell::RefCell;
use std::io;
use std::ops::RangeInclusive;

use clrscope_analysis::{Conditions, FoundPlace, LineRow, LinesView, METRICS, Metric, Sort, Unit, lines, share_bounds};
use clrscope_symbols::{Lines, SourceLine, Sources, SpotLine};

use super::sources::{file_name, not_found};
use super::{REQUESTS, SELECTION, nothing, tiers};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::spot::spot;
use crate::view::{Answer, View};

/// The view `lines`.
pub(super) static VIEW: View = View {
    name: "lines",
    about: "Lines of the source by samples, allocations or exceptions (needs PDBs)",
    takes: &[
        SELECTION,
        REQUESTS,
        &[Flag::Limit, Flag::Metric, Flag::Verbose, Flag::NoInlined, Flag::Paths, Flag::Source, Flag::Type],
    ],
    sorts: &[Sort::Own, Sort::Total, Sort::Name],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Pretty,
    columns: |request| sheet(request.query.metric.unwrap_or(METRICS[0])).infos(),
    open: |recording, request, _| {
        let mut found = Lines::default();
        let view = lines(recording, &request.query, &mut |module, method, place| match found.locate(
            module,
            method,
            &spot(place),
        ) {
            SpotLine::Line(SourceLine { file, line }) => FoundPlace::Line { file, line, by_call: false },
            SpotLine::ByCall(SourceLine { file, line }) => FoundPlace::Line { file, line, by_call: true },
            SpotLine::Unknown(file) => FoundPlace::Unknown { file },
            SpotLine::NoSource => FoundPlace::NoSource,
        })?;
        Ok(Box::new(OpenView { view, found: RefCell::new(found), request: request.clone() }))
    },
};

/// Lines shown before and after each line with samples.
const AROUND: u32 = 3;
/// Maximum number of source lines shown.
const MOST_SOURCE: usize = 400;

struct LineRows;

impl RowKind for LineRows {
    type Row<'a> = LineEntry<'a>;
}

/// A row, and the sums for its shares.
struct LineEntry<'a> {
    row: &'a LineRow<'a>,
    conditions: &'a Conditions<'a>,
}

impl Row for LineEntry<'_> {}

impl LineEntry<'_> {
    fn share(&self) -> f64 {
        self.conditions.share(self.row.amount)
    }
}

/// Columns of a metric, including columns of samples where samples can record the metric.
fn sheet<'c>(metric: &'static Metric) -> Sheet<'c, LineRows> {
    let sampled = metric.is_sampled() || metric.is_of_calls();
    let number = |key, title, of: fn(&LineRow<'_>) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &LineEntry<'_>| Cell::Count(of(row.row))).only_if(sampled)
    };
    let [own, total] = metric.keys().unwrap_or_default();
    let amount = |key, title, of: fn(&LineRow<'_>) -> u64| {
        let (kind, cell): (Kind, fn(u64) -> Cell<'static>) = match metric.unit {
            Unit::Bytes => (Kind::Bytes, Cell::Bytes),
            Unit::Nanoseconds => (Kind::Time, Cell::Time),
            Unit::Count => (Kind::Count, Cell::Count),
        };
        Column::new(key, title, kind, move |row: &LineEntry<'_>| cell(of(row.row)))
    };
    let bound = |key, title, of: fn((f64, f64)) -> f64| {
        Column::new(key, title, Kind::Share, move |row: &LineEntry<'_>| {
            Cell::Share(of(share_bounds(row.share(), row.conditions.samples)))
        })
        .only_if(sampled)
    };
    let own_title = if metric.unit == Unit::Nanoseconds { "time" } else { metric.title };
    let of_metric = [amount(own, own_title, |row| row.amount), amount(total, "inclusive", |row| row.total)];
    let mut columns = vec![
        Column::new("file", "file", Kind::Text, |row: &LineEntry<'_>| Cell::text(&row.row.file)),
        Column::new("line", "line", Kind::Number, |row: &LineEntry<'_>| {
            Cell::or_null(row.row.line, |line| Cell::Number(line.into()))
        }),
        number("samples", "samples", |row| row.samples),
        Column::new("share", "share", Kind::Share, |row: &LineEntry<'_>| Cell::Share(row.share())),
        bound("share_low", "at least", |bounds| bounds.0),
        bound("share_high", "at most", |bounds| bounds.1),
        number("self_samples", "of the line alone", |row| row.self_samples),
        number("total_samples", "inclusive", |row| row.total_samples),
        Column::new("time_ns", "time", Kind::Time, |row: &LineEntry<'_>| Cell::Time(row.row.amount)).only_if(sampled),
        Column::new("name", "function", Kind::Function, |row: &LineEntry<'_>| Cell::function(&row.row.function)),
        Column::new("signature", "signature", Kind::Text, |row: &LineEntry<'_>| {
            Cell::text(row.row.function.signature())
        }),
        Column::new("module", "module", Kind::Text, |row: &LineEntry<'_>| Cell::text(row.row.function.module())),
        Column::new("tiers", "code", Kind::Nested, |row: &LineEntry<'_>| tiers::cell(&row.row.tiers)).only_if(sampled),
    ];
    columns.extend(of_metric.into_iter().filter(|_| !sampled));
    Sheet::new(columns)
}

/// Columns in text.
fn text(metric: &Metric) -> Vec<(&'static str, u8)> {
    let sampled = metric.is_sampled();
    let [own, total] = metric.keys().unwrap_or_default();
    shown(&[
        (if sampled { "time_ns" } else { own }, 1, true),
        ("share", 0, true),
        ("share_low", 5, sampled),
        ("share_high", 5, sampled),
        ("samples", 2, sampled),
        (if sampled { "total_samples" } else { total }, 3, true),
        ("tiers", 4, sampled),
        ("file", 0, true),
        ("line", 0, true),
        ("name", 4, true),
    ])
}

/// Lines of source files.
struct SourceRows;

impl RowKind for SourceRows {
    type Row<'a> = SourceEntry<'a>;
}

/// A line of a source file, with its samples if it has some.
struct SourceEntry<'a> {
    /// The file, at its first line and after omitted lines; `None` at other lines.
    file: Option<&'a str>,
    name: &'a str,
    line: u32,
    text: String,
    found: Option<LineEntry<'a>>,
}

impl Row for SourceEntry<'_> {}

fn source_sheet<'c>(sampled: bool) -> Sheet<'c, SourceRows> {
    Sheet::new([
        Column::new("file", "file", Kind::Text, |row: &SourceEntry<'_>| {
            Cell::text(row.name).said(row.file.map(file_name).unwrap_or_default())
        }),
        Column::new("samples", "samples", Kind::Count, |row: &SourceEntry<'_>| match &row.found {
            Some(found) => Cell::Count(found.row.samples),
            None => Cell::Count(0).said(""),
        })
        .only_if(sampled),
        Column::new("share", "share", Kind::Share, |row: &SourceEntry<'_>| match &row.found {
            Some(found) => Cell::Share(found.share()),
            None => Cell::Share(0.0).said(""),
        }),
        Column::new("line", "line", Kind::Number, |row: &SourceEntry<'_>| Cell::Number(row.line.into())),
        Column::new("source", "source", Kind::Text, |row: &SourceEntry<'_>| Cell::text(&row.text)),
    ])
}

struct OpenView<'a> {
    view: LinesView<'a>,
    found: RefCell<Lines>,
    request: Request,
}

impl OpenView<'_> {
    /// Sentences about the amounts without a line, and the amounts with an inferred line.
    fn note(&self) -> Option<String> {
        let LinesView { without_line, amount_without_line, of_unknown_lines, by_call, conditions, .. } = &self.view;
        let sampled = conditions.metric.is_sampled();
        let without = if sampled { *without_line } else { *amount_without_line };
        let mut said = Vec::new();
        if *of_unknown_lines > 0 {
            let amount = self.amount(*of_unknown_lines);
            let why = "the runtime's map of optimised code allows several lines";
            said.push(format!("{amount} are in rows without a line: {why}."));
        }
        if *by_call > 0 {
            let amount = self.amount(*by_call);
            said.push(format!("{amount} are on an inferred line: no other line has the call seen there."));
        }
        if without > 0 {
            said.push(format!("{} have no line: {}", self.amount(without), self.because()));
        }
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// An amount with its share.
    fn amount(&self, amount: u64) -> String {
        let conditions = &self.view.conditions;
        let metric = conditions.metric;
        let all = if metric.is_sampled() { conditions.samples } else { conditions.total };
        let said = match metric.unit {
            _ if metric.is_sampled() => format!("{} samples", count(amount)),
            Unit::Bytes => bytes(amount),
            _ => format!("{} {}", count(amount), metric.title),
        };
        let share = amount as f64 / all.max(1) as f64 * 100.0;
        format!("{said} ({share:.1} %)")
    }

    /// Reason why stacks have no line, and the remedy, for the assembly through which most of these
    /// stacks pass.
    fn because(&self) -> String {
        let found = self.found.borrow();
        let modules: Vec<&str> =
            self.view.modules_without_line.iter().copied().filter(|module| !module.is_empty()).collect();
        let mut reasons = modules.iter().filter_map(|module| Some((*module, found.obstacle(module)?)));
        let Some((module, obstacle)) = reasons.next() else {
            return match modules.first() {
                Some(module) => {
                    format!(
                        "their stacks have only compiler-generated code, without lines in the PDB of {}.",
                        file_name(module)
                    )
                }
                None => "their stacks have only code of the runtime, of the framework, or without a file.".to_owned(),
            };
        };
        let others = match reasons.count() {
            0 => String::new(),
            1 => " One other assembly has no lines either.".to_owned(),
            more => format!(" {more} other assemblies have no lines either."),
        };
        format!("{}: {obstacle}. {}{others}", file_name(module), obstacle.cure())
    }

    /// The shown lines of a file, in order: lines with samples, and some lines around each.
    fn shown(rows: &[&LineRow<'_>]) -> Vec<u32> {
        let around =
            |line: u32| -> RangeInclusive<u32> { line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND) };
        let mut lines: Vec<u32> = rows.iter().filter_map(|row| row.line).flat_map(around).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// The sources of the rows, file by file in the order of the rows.
    fn sources<'s>(&'s self, sources: &mut Sources) -> (Vec<SourceEntry<'s>>, Vec<String>) {
        let LinesView { rows, conditions, .. } = &self.view;
        let mut files: Vec<&str> = Vec::new();
        for row in rows {
            if !files.contains(&row.file.as_str()) {
                files.push(&row.file);
            }
        }
        let (mut entries, mut missing) = (Vec::new(), Vec::new());
        for file in files {
            let mine: Vec<&LineRow<'_>> = rows.iter().filter(|row| row.file == file).collect();
            let mut before = 0;
            for line in Self::shown(&mine) {
                let Some(text) = sources.line(file, line) else { continue };
                let row = mine.iter().find(|row| row.line == Some(line));
                let found = row.map(|row| LineEntry { row, conditions });
                let first = (line != before + 1 || before == 0).then_some(file);
                entries.push(SourceEntry { file: first, name: file, line, text: text.replace('\t', "    "), found });
                before = line;
            }
            if before == 0 {
                missing.push(file.to_owned());
            }
        }
        entries.truncate(MOST_SOURCE);
        (entries, missing)
    }

    fn source(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let known = self.found.borrow_mut().embedded_sources();
        let (entries, missing) = self.sources(&mut Sources::new(known, self.request.source_root.clone()));
        let note = not_found(&missing, self.request.source_root.as_deref());
        let sampled = self.view.conditions.metric.is_sampled();
        let sheet = source_sheet(sampled);
        let text = shown(&[
            ("share", 0, true),
            ("samples", 3, sampled),
            ("file", 2, true),
            ("line", 0, true),
            ("source", 0, true),
        ]);
        let section = Section {
            title: Title::Bold("The source, with the share of each line".to_owned()),
            nothing: note.clone().unwrap_or_default(),
            ..sheet.section("source", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            entries.iter().try_for_each(|entry| visit(&sheet.entry(entry)))?;
            Ok(Tail { left_out: 0, note: note.clone() })
        })
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let LinesView { rows, left_out, conditions, .. } = &self.view;
        let sheet = sheet(conditions.metric);
        let section = Section {
            nothing: self.note().unwrap_or_else(|| nothing("line")),
            what: "lines",
            ..sheet.main(&self.request, "rows", Style::Table, &text(conditions.metric))
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(&LineEntry { row, conditions })))?;
            Ok(Tail { left_out: *left_out as u64, note: self.note() })
        })?;
        if self.request.source { self.source(renderer) } else { Ok(()) }
    }
}
