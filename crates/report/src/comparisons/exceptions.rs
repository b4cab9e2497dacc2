//! The view `diff-exceptions`: exceptions by type and throwing method on two sides.

use std::io;

use clrscope_analysis::{
    ComparisonProblem, ExceptionChange, ExceptionChanges, Sides, Sort, Thrower, Unit, exception_changes, one_line,
};

use super::columns::{Keys, columns, keys};
use super::functions::note;
use super::merged::{most_changed, per};
use super::{beside_itself, frame, problem};
use crate::cell::{Cell, FunctionCell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};
use crate::views::{REQUESTS, SELECTION};

/// The view `diff-exceptions`.
pub(super) static VIEW: View = View {
    name: "diff-exceptions",
    about: "Exceptions by type and throwing method, with the growth of each",
    takes: &[SELECTION, REQUESTS, &[Flag::Limit, Flag::Type]],
    sorts: &[Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: false,
    layout: Layout::Rows,
    columns: |_| sheet().infos(),
    open: |recording, request, _| Ok(Box::new(compare(&beside_itself(recording), request).map_err(problem)?)),
};

const COUNT: Keys = keys!("before", "after", "difference", "growth", "change", "");
const UNHANDLED: Keys =
    keys!("unhandled_before", "unhandled_after", "unhandled_difference", "unhandled_growth", "unhandled_change", "");

struct Throws;

impl RowKind for Throws {
    type Row<'a> = ExceptionChange;
}

impl Row for ExceptionChange {}

fn sheet<'c>() -> Sheet<'c, Throws> {
    let mut all = vec![
        Column::new("type", "type", Kind::Text, |row: &ExceptionChange| Cell::text(&row.type_name)),
        Column::new("name", "thrown by", Kind::Function, |row: &ExceptionChange| {
            Cell::or_null(row.place.as_ref(), thrower)
        }),
        Column::new("module", "module", Kind::Text, |row: &ExceptionChange| {
            Cell::or_null(row.place.as_ref(), |place| Cell::text(&place.module))
        }),
    ];
    all.extend(columns::<Throws>(COUNT, Unit::Count, |row: &ExceptionChange| &row.count));
    all.extend(columns::<Throws>(UNHANDLED, Unit::Count, |row: &ExceptionChange| &row.unhandled));
    Sheet::new(all)
}

fn thrower(place: &Thrower) -> Cell<'_> {
    let after = place.marker.as_ref().map_or_else(String::new, |marker| format!(" ({})", one_line(marker)));
    let (name, signature) = (&*place.name, &*place.signature);
    Cell::Function(FunctionCell { before: String::new(), name, signature, after, has_namesakes: false, is_own: false })
}

/// The answer of the view.
pub(super) struct OpenComparison<'a> {
    sides: Sides<'a>,
    changes: ExceptionChanges,
    request: Request,
}

/// Compares exceptions.
pub(super) fn compare<'a>(sides: &Sides<'a>, request: &Request) -> Result<OpenComparison<'a>, ComparisonProblem> {
    let changes = exception_changes(sides, &request.query)?;
    Ok(OpenComparison { sides: sides.clone(), changes, request: request.clone() })
}

impl Answer for OpenComparison<'_> {
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let ExceptionChanges { rows, largest, left_out, verdicts } = &self.changes;
        let named = largest.as_ref().map(|row| (row.type_name.clone(), &row.count, Unit::Count));
        let most = most_changed(&self.sides, named, "kind of exception");
        frame::show(&self.sides, None, most, renderer)?;
        let sheet = sheet();
        let text = shown(&[
            ("difference", 0, true),
            ("growth", 2, true),
            ("change", 0, true),
            ("before", 1, true),
            ("after", 1, true),
            ("type", 0, true),
            ("name", 2, true),
        ]);
        let section = Section {
            title: Title::Bold(format!("Exceptions{}", per(&self.sides))),
            nothing: "No exception was thrown on either side, or the filters leave none.".to_owned(),
            what: "rows",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail {
                left_out: *left_out as u64,
                note: Some(note(verdicts, ["kind of exception", "kinds of exceptions"])),
            })
        })
    }
}
