//! Rows of allocated types, with the source lines that allocate them.

use std::io;

use clrscope_analysis::{AllocatedBy, AllocationRow, Allocations, LiveSum};
use clrscope_symbols::Lines;

use super::sources::file_and_line;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count, share};
use crate::render::{Renderer, Section, Style, Tail, Title};
use crate::spot::LocatedLine;

/// Maximum number of types in the summary.
const MOST: usize = 10;

/// Kind of the rows.
pub(super) struct Types;

impl RowKind for Types {
    type Row<'a> = TypeEntry<'a>;
}

/// A type, and the source line that allocates most of its objects.
pub(super) struct TypeEntry<'a> {
    row: &'a AllocationRow<'a>,
    at: Option<LocatedLine>,
    live_at: Option<LocatedLine>,
    /// Sentences about the allocating code, for the summary.
    lines: Vec<String>,
}

impl Row for TypeEntry<'_> {
    fn below(&self) -> &[String] {
        &self.lines
    }
}

impl<'a> TypeEntry<'a> {
    /// The row with its source lines, if PDBs on this machine have them.
    pub(super) fn new(row: &'a AllocationRow<'a>, lines: &mut Lines) -> Self {
        let [at, live_at] = [&row.place, &row.live_place].map(|by| by.as_ref().and_then(|by| line_of(by, lines)));
        Self { row, at, live_at, lines: Vec::new() }
    }

    /// The row with its source lines and sentences.
    fn told(row: &'a AllocationRow<'a>, lines: &mut Lines) -> Self {
        let mut entry = Self::new(row, lines);
        let by = |by: &AllocatedBy<'_>, at: Option<&LocatedLine>| {
            let line = at.map_or_else(String::new, |at| format!(" ({})", short(at)));
            format!("by {}{line}", by.function.label())
        };
        if let Some(live) = row.live.filter(|live| live.survived_bytes > 0)
            && let Some(place) = &row.live_place
        {
            let survived = bytes(live.survived_bytes);
            entry.lines.push(format!("{survived} outlived collections, most {}", by(place, entry.live_at.as_ref())));
        }
        if let Some(place) = &row.place {
            let part = share(place.share_of(row.bytes));
            entry.lines.push(format!("{part} {}", by(place, entry.at.as_ref())));
        }
        entry
    }
}

/// The line of the instruction that allocated most.
fn line_of(by: &AllocatedBy<'_>, lines: &mut Lines) -> Option<LocatedLine> {
    let found = LocatedLine::find(lines, &by.function, by.place);
    found.filter(|LocatedLine { line: at, .. }| !at.file.is_empty() && at.line > 0)
}

/// A line without the folders of its file, with a remark if the line was chosen only by its call.
fn short(at: &LocatedLine) -> String {
    format!("{}{}", file_and_line(&at.line), at.remark())
}

/// The columns; `live` tells whether the recording tracked live objects.
pub(super) fn sheet<'c>(live: bool) -> Sheet<'c, Types> {
    let number = |key, title, of: fn(&AllocationRow<'_>) -> u64| {
        Column::new(key, title, Kind::Count, move |entry: &TypeEntry<'_>| Cell::Count(of(entry.row)))
    };
    let size = |key, title, of: fn(&AllocationRow<'_>) -> u64| {
        Column::new(key, title, Kind::Bytes, move |entry: &TypeEntry<'_>| Cell::Bytes(of(entry.row)))
    };
    let alive = |key, title, kind, cell: fn(&LiveSum) -> Cell<'static>| {
        Column::new(key, title, kind, move |entry: &TypeEntry<'_>| entry.row.live.as_ref().map_or(Cell::Absent, cell))
            .only_if(live)
    };
    let line = |at: Option<&LocatedLine>| {
        Cell::or_null(at, |at| Cell::Text(format!("{}:{}", at.line.file, at.line.line).into()).said(short(at)))
    };
    let by_call = |at: Option<&LocatedLine>| Cell::or_null(at, |at| Cell::Flag(at.by_call));
    Sheet::new([
        Column::new("type", "type", Kind::Type, |entry: &TypeEntry<'_>| match entry.row.type_name {
            "" => Cell::text("").said("(unknown)"),
            name => Cell::text(name),
        }),
        Column::new("module", "module", Kind::Text, |entry: &TypeEntry<'_>| Cell::text(entry.row.module)),
        number("objects", "objects", |row| row.objects),
        number("objects_low", "objects at least", |row| row.objects_bounds.0),
        number("objects_high", "objects at most", |row| row.objects_bounds.1),
        size("bytes", "bytes", |row| row.bytes),
        size("bytes_low", "at least", |row| row.bytes_bounds.0),
        size("bytes_high", "at most", |row| row.bytes_bounds.1),
        Column::new("share", "share", Kind::Share, |entry: &TypeEntry<'_>| Cell::Share(entry.row.share)),
        number("seen_objects", "seen", |row| row.seen),
        alive("live_objects", "alive", Kind::Count, |live| Cell::Count(live.objects)),
        alive("live_bytes", "bytes alive", Kind::Bytes, |live| Cell::Bytes(live.bytes)),
        alive("live_survived_objects", "objects survived", Kind::Count, |live| Cell::Count(live.survived_objects)),
        alive("live_survived_bytes", "survived", Kind::Bytes, |live| Cell::Bytes(live.survived_bytes)),
        alive("live_collections", "collections outlived", Kind::Count, |live| Cell::Count(live.collections)),
        Column::new("allocated_by", "most by", Kind::Function, |entry: &TypeEntry<'_>| {
            Cell::or_null(entry.row.place.as_ref(), |by| Cell::function(&by.function))
        }),
        Column::new("allocated_by_bytes", "bytes by it", Kind::Bytes, |entry: &TypeEntry<'_>| {
            Cell::or_null(entry.row.place, |by| Cell::Bytes(by.bytes))
        }),
        Column::new("allocated_at", "line", Kind::Text, move |entry: &TypeEntry<'_>| line(entry.at.as_ref())),
        Column::new("allocated_at_by_call", "by the call", Kind::Flag, move |entry: &TypeEntry<'_>| {
            by_call(entry.at.as_ref())
        }),
        Column::new("live_allocated_by", "most alive by", Kind::Function, |entry: &TypeEntry<'_>| {
            Cell::or_null(entry.row.live_place.as_ref(), |by| Cell::function(&by.function))
        })
        .only_if(live),
        Column::new("live_allocated_by_bytes", "alive by it", Kind::Bytes, |entry: &TypeEntry<'_>| {
            Cell::or_null(entry.row.live_place, |by| Cell::Bytes(by.bytes))
        })
        .only_if(live),
        Column::new("live_allocated_at", "line of alive", Kind::Text, move |entry: &TypeEntry<'_>| {
            line(entry.live_at.as_ref())
        })
        .only_if(live),
        Column::new("live_allocated_at_by_call", "alive by the call", Kind::Flag, move |entry: &TypeEntry<'_>| {
            by_call(entry.live_at.as_ref())
        })
        .only_if(live),
    ])
}

/// Shows, in the view `summary`, the types with the largest allocations, or with the most live
/// bytes if live objects were tracked. Text output shows them only if it shows several tables.
///
/// # Errors
/// Errors of the renderer.
pub(super) fn of_summary(found: &Allocations<'_>, is_one_table: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
    let live = found.rows.iter().any(|row| row.live.is_some());
    let sheet = sheet(live);
    let text = shown(&[
        ("bytes", 0, !is_one_table),
        ("share", 1, !is_one_table),
        ("objects", 2, !is_one_table),
        ("live_survived_bytes", 0, live && !is_one_table),
        ("live_bytes", 1, live && !is_one_table),
        ("type", 0, !is_one_table),
    ]);
    let first = &found.rows[..found.rows.len().min(MOST)];
    let of = count(found.rows.len() as u64);
    let title = format!("What was allocated ({} of {of} types; {} in all)", first.len(), bytes(found.bytes));
    let section =
        Section { title: Title::Bold(title), what: "types", ..sheet.section("allocated", Style::Table, &text) };
    let mut lines = Lines::default();
    renderer.section(&section, &mut |visit| {
        first.iter().try_for_each(|row| visit(&sheet.entry(&TypeEntry::told(row, &mut lines))))?;
        Ok(Tail::default())
    })
}
