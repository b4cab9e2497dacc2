//! The view `diff-allocations`: types with their allocations on two sides.

use std::io;

use clrscope_analysis::{AllocationChanges, ComparisonProblem, Sides, Sort, TypeChange, Unit, allocation_changes};

use super::columns::{Keys, columns, keys, range_column};
use super::functions::note;
use super::merged::{most_changed, per};
use super::{beside_itself, frame, problem};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};
use crate::views::{REQUESTS, SELECTION};

/// The view `diff-allocations`.
pub(super) static VIEW: View = View {
    name: "diff-allocations",
    about: "Types by growth of allocated bytes, with intervals",
    takes: &[SELECTION, REQUESTS, &[Flag::Limit, Flag::Type]],
    sorts: &[Sort::Own, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: false,
    layout: Layout::Rows,
    columns: |_| sheet().infos(),
    open: |recording, request, _| Ok(Box::new(compare(&beside_itself(recording), request).map_err(problem)?)),
};

const BYTES: Keys = keys!("before", "after", "difference", "growth", "change", "_bytes");
const OBJECTS: Keys =
    keys!("objects_before", "objects_after", "objects_difference", "objects_growth", "objects_change", "");

struct Types;

impl RowKind for Types {
    type Row<'a> = TypeChange;
}

impl Row for TypeChange {}

fn sheet<'c>() -> Sheet<'c, Types> {
    let mut all = vec![
        Column::new("type", "type", Kind::Text, |row: &TypeChange| match row.type_name.as_str() {
            "" => Cell::text("").said("(unknown)"),
            name => Cell::text(name),
        }),
        Column::new("module", "module", Kind::Text, |row: &TypeChange| Cell::text(&row.module)),
    ];
    all.extend(columns::<Types>(BYTES, Unit::Bytes, |row: &TypeChange| &row.bytes));
    all.push(range_column("difference_range", Unit::Bytes, |row: &TypeChange| &row.bytes));
    all.extend(columns::<Types>(OBJECTS, Unit::Count, |row: &TypeChange| &row.objects));
    Sheet::new(all)
}

/// The answer of the view.
pub(super) struct OpenComparison<'a> {
    sides: Sides<'a>,
    changes: AllocationChanges,
    request: Request,
}

/// Compares allocations.
pub(super) fn compare<'a>(sides: &Sides<'a>, request: &Request) -> Result<OpenComparison<'a>, ComparisonProblem> {
    let changes = allocation_changes(sides, &request.query)?;
    Ok(OpenComparison { sides: sides.clone(), changes, request: request.clone() })
}

impl Answer for OpenComparison<'_> {
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let AllocationChanges { rows, largest, left_out, verdicts } = &self.changes;
        let named = largest.as_ref().map(|row| (row.type_name.clone(), &row.bytes, Unit::Bytes));
        let most = most_changed(&self.sides, named, "type");
        frame::show(&self.sides, None, most, renderer)?;
        let sheet = sheet();
        let text = shown(&[
            ("difference_bytes", 0, true),
            ("growth", 2, true),
            ("difference_range", 1, true),
            ("change", 0, true),
            ("before_bytes", 3, true),
            ("after_bytes", 3, true),
            ("objects_difference", 1, true),
            ("type", 0, true),
        ]);
        let section = Section {
            title: Title::Bold(format!("Allocated types{}", per(&self.sides))),
            nothing: "Nothing was allocated on either side, or the filters leave nothing.".to_owned(),
            what: "types",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: *left_out as u64, note: Some(note(verdicts, ["type", "types"])) })
        })
    }
}
