//! The view `pending`: pending async operations, merged by logical stack.

use std::io;

use clrscope_analysis::{PendingOperation, PendingOperations, Sort};
use clrscope_symbols::Lines;
use serde_json::json;

use super::super::nothing;
use super::super::pending_frame::LocatedFrame;
use super::frame::{Frame, HeapRows, heap_view};
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Renderer, Section, Style, Tail, Title};
use crate::request::Flag;
use crate::view::View;

/// The view `pending`.
pub(in crate::views) static VIEW: View = heap_view::<Operations>();

struct Operations;

impl RowKind for Operations {
    type Row<'a> = OperationEntry<'a>;
}

/// Operations of one stack, and its frames, also as lines of text.
struct OperationEntry<'a> {
    operation: &'a PendingOperation<'a>,
    frames: Vec<LocatedFrame<'a>>,
    lines: Vec<String>,
}

impl<'a> OperationEntry<'a> {
    fn new(operation: &'a PendingOperation<'a>, sources: &mut Lines) -> Self {
        let frames = LocatedFrame::all(operation.process, &operation.frames, sources);
        let lines = frames.iter().map(|frame| format!("  {}", frame.text())).collect();
        Self { operation, frames, lines }
    }
}

impl Row for OperationEntry<'_> {
    fn below(&self) -> &[String] {
        &self.lines
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Operations> {
    Sheet::new([
        Column::new("count", "count", Kind::Count, |row: &OperationEntry<'_>| Cell::Count(row.operation.count)),
        Column::new("waits_for", "waits for", Kind::Text, |row: &OperationEntry<'_>| {
            Cell::text(&row.operation.waits_for)
        }),
        Column::new("frames", "method, and who awaits it", Kind::Nested, |row: &OperationEntry<'_>| {
            Cell::Nested(LocatedFrame::json(&row.frames)).said(String::new())
        }),
        Column::new("blocked_threads", "threads that block on it", Kind::Nested, |row: &OperationEntry<'_>| {
            Cell::Nested(json!(row.operation.blocked_threads))
        }),
        Column::new("pid", "process", Kind::Number, |row: &OperationEntry<'_>| {
            Cell::Number(row.operation.process.pid.into())
        })
        .only_if(processes),
    ])
}

impl HeapRows for Operations {
    const NAME: &'static str = "pending";
    const ABOUT: &'static str = "Pending async operations, merged by who awaits whom, with what they wait for";
    const TAKES: &'static [&'static [Flag]] = &[&[Flag::Limit, Flag::Verbose, Flag::Snapshot]];
    const SORTS: &'static [Sort] = &[Sort::Calls, Sort::Name];
    const TEXT_ROWS: Option<usize> = Some(20);

    type Found<'a> = PendingOperations<'a>;

    fn columns() -> Vec<ColumnInfo> {
        sheet(true).infos()
    }

    fn show(found: &PendingOperations<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let section = sheet(frame.has_processes).main(frame.request, "rows", Style::Table, &text(frame.has_processes));
        show_in(section, found, frame.has_processes, renderer, |note| frame.tail(found.left_out, note))
    }
}

/// Shows operations as the section `pending`, in addition to the other sections of a view.
pub(in crate::views) fn show_beside(
    found: &PendingOperations<'_>,
    title: Title,
    has_processes: bool,
    renderer: &mut dyn Renderer,
) -> io::Result<()> {
    let section = sheet(has_processes).section("pending", Style::Table, &text(has_processes));
    let tail = |note| Tail { left_out: found.left_out as u64, note };
    show_in(Section { title, ..section }, found, has_processes, renderer, tail)
}

fn text(has_processes: bool) -> Vec<(&'static str, u8)> {
    shown(&[("count", 0, true), ("pid", 2, has_processes), ("waits_for", 0, true), ("frames", 0, true)])
}

fn show_in(
    section: Section,
    found: &PendingOperations<'_>,
    has_processes: bool,
    renderer: &mut dyn Renderer,
    tail: impl Fn(Option<String>) -> Tail,
) -> io::Result<()> {
    let sheet = sheet(has_processes);
    let section = Section { nothing: nothing("async operation that waits"), what: "stacks", ..section };
    renderer.section(&section, &mut |visit| {
        let mut lines = Lines::default();
        found.rows.iter().try_for_each(|row| visit(&sheet.entry(&OperationEntry::new(row, &mut lines))))?;
        let cut = (found.not_followed > 0)
            .then(|| format!("{} chains have too many branches to be followed to their ends.", found.not_followed));
        Ok(tail(cut))
    })
}
