//! The view `diff-functions`: functions on two sides.

use std::io;

use clrscope_analysis::{
    ComparisonProblem, FunctionChanges, FunctionRef, Metric, PathChange, SideTotal, Sides, Sort, Unit, Verdict,
    Verdicts, function_changes,
};

use super::columns::{columns, own_keys, range_column, total_keys, unit_of};
use super::merged::{most_changed, per};
use super::{beside_itself, frame, problem};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::count;
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};
use crate::views::{FOLDING, REQUESTS, SELECTION};

/// The view `diff-functions`.
pub(super) static VIEW: View = View {
    name: "diff-functions",
    about: "Functions by growth of the metric, with intervals",
    takes: &[SELECTION, REQUESTS, FOLDING, &[Flag::Limit, Flag::Raw, Flag::Metric, Flag::Type]],
    sorts: &[Sort::Own, Sort::Total, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: false,
    layout: Layout::Rows,
    columns: |request| sheet(unit_of(request.query.metric), true).infos(),
    open: |recording, request, _| Ok(Box::new(compare(&beside_itself(recording), request).map_err(problem)?.0)),
};

/// Rows of functions and of paths.
pub(super) struct Paths;

impl RowKind for Paths {
    type Row<'a> = PathChange<'a>;
}

impl Row for PathChange<'_> {
    fn depth(&self) -> u32 {
        self.depth
    }
}

/// Titles of columns of totals, next to columns of own amounts.
const TOTAL_TITLES: &[(&str, &str)] =
    &[("difference", "in all"), ("before", "before in all"), ("after", "after in all"), ("growth", "growth in all")];

/// The columns of rows of functions and paths; `totals` adds the columns of totals.
pub(super) fn sheet<'c>(unit: Unit, totals: bool) -> Sheet<'c, Paths> {
    let text = |key, title, of: for<'r> fn(&'r FunctionRef<'_>) -> &'r str| {
        Column::new(key, title, Kind::Text, move |row: &PathChange<'_>| Cell::text(of(&row.function)))
    };
    let part = |key, title, of: fn(&PathChange<'_>) -> f64| {
        Column::new(key, title, Kind::Share, move |row: &PathChange<'_>| Cell::Share(of(row)))
    };
    let mut all = vec![
        Column::new("depth", "depth", Kind::Count, |row: &PathChange<'_>| Cell::Count(row.depth.into())).on_request(),
        Column::new("name", "function", Kind::Function, |row: &PathChange<'_>| Cell::function(&row.function)),
        text("signature", "signature", |function| function.signature()),
        text("module", "module", |function| function.module()),
        Column::new("kind", "kind", Kind::Text, |row: &PathChange<'_>| Cell::text(row.function.kind().name())),
    ];
    all.extend(columns::<Paths>(own_keys(unit), unit, |row: &PathChange<'_>| &row.own));
    all.push(range_column("difference_range", unit, |row: &PathChange<'_>| &row.own));
    all.extend([
        part("share_before", "share before", |row| row.own_share.before.median),
        part("share_after", "share after", |row| row.own_share.after.median),
        part("share_after_low", "share after from", |row| row.own_share.after.low),
        part("share_after_high", "share after to", |row| row.own_share.after.high),
    ]);
    let total = columns::<Paths>(total_keys(unit), unit, |row: &PathChange<'_>| &row.total);
    all.extend(total.into_iter().map(|column| column.only_if(totals).titled(TOTAL_TITLES)));
    all.push(range_column("total_difference_range", unit, |row: &PathChange<'_>| &row.total));
    all.extend([
        part("total_share_before", "share before", |row| row.total_share.before.median).only_if(totals),
        part("total_share_after", "share after", |row| row.total_share.after.median).only_if(totals),
    ]);
    Sheet::new(all)
}

/// The answer of the view.
pub(super) struct OpenComparison<'a> {
    sides: Sides<'a>,
    changes: FunctionChanges<'a>,
    request: Request,
}

/// Compares functions.
pub(super) fn compare<'a>(
    sides: &Sides<'a>,
    request: &Request,
) -> Result<(OpenComparison<'a>, &'static Metric), ComparisonProblem> {
    let changes = function_changes(sides, &request.query)?;
    let metric = changes.metric;
    Ok((OpenComparison { sides: sides.clone(), changes, request: request.clone() }, metric))
}

impl Answer for OpenComparison<'_> {
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let FunctionChanges { metric, rows, largest, left_out, verdicts, total } = &self.changes;
        let total = SideTotal { metric, change: *total };
        let named = largest.as_ref().map(|row| (row.function.label().into_owned(), &row.own, metric.unit));
        let most = most_changed(&self.sides, named, "function");
        frame::show(&self.sides, Some(&total), most, renderer)?;
        let (unit, totals) = (metric.unit, !metric.exclusive);
        let sheet = sheet(unit, totals);
        let [before, _, _, after, _, _, difference, ..] = own_keys(unit);
        let [.., total_difference, _, _, _, _] = total_keys(unit);
        let text = shown(&[
            (difference, 0, true),
            ("growth", 2, true),
            ("difference_range", 1, true),
            ("change", 0, true),
            (before, 3, true),
            (after, 3, true),
            (total_difference, 4, totals),
            ("name", 0, true),
        ]);
        let title = format!("Functions by {}{}", metric.title, per(&self.sides));
        let section = Section {
            title: Title::Bold(title),
            nothing: "No function differs.".to_owned(),
            what: "functions",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        let is_for_people = self.request.min_share > 0.0;
        renderer.section(&section, &mut |visit| {
            let by_total = matches!(self.request.query.sort, Some(Sort::Total));
            let is_shown = |row: &&PathChange<'_>| !is_for_people || is_different(row, by_total);
            rows.iter().filter(is_shown).try_for_each(|row| visit(&sheet.entry(row)))?;
            let left_out = if is_for_people { left_out_of(rows, verdicts) } else { *left_out as u64 };
            Ok(Tail { left_out, note: Some(note(verdicts, ["function", "functions"])) })
        })
    }
}

/// Whether a row shows a difference: of own amounts, or of totals where rows are sorted by totals.
fn is_different(row: &PathChange<'_>, by_total: bool) -> bool {
    (row.has_own() && row.own.verdict != Verdict::Same) || (by_total && row.total.verdict != Verdict::Same)
}

/// Number of rows with a difference that the limit left out.
fn left_out_of(rows: &[PathChange<'_>], verdicts: &Verdicts) -> u64 {
    let shown = rows.iter().filter(|row| is_different(row, false)).count() as u64;
    (verdicts.changed + verdicts.unclear).saturating_sub(shown)
}

/// A note with the number of rows for each verdict, and how many rows may look changed only by
/// chance.
pub(super) fn note(verdicts: &Verdicts, [one, several]: [&str; 2]) -> String {
    let Verdicts { changed, unclear, same } = *verdicts;
    let mut text = format!("{} {} changed", count(changed), if changed == 1 { one } else { several });
    if unclear > 0 {
        text.push_str(&format!(", {} with a difference within the noise", count(unclear)));
    }
    text.push_str(&format!(", {} exactly as before.", count(same)));
    let doubtful = changed + unclear;
    if unclear > 0 && doubtful >= 20 {
        let by_chance = count(doubtful / 20);
        text.push_str(&format!(
            " With intervals of 95 %, up to {by_chance} of {} may look changed by chance.",
            count(doubtful)
        ));
    }
    text
}
