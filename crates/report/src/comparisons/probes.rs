//! The view `diff-probes`: probed methods and lines on two sides.

use std::io;

use clrscope_analysis::{Change, ComparisonProblem, ProbeChange, ProbeChanges, Sides, Sort, Unit, probe_changes};

use super::columns::{Keys, columns, keys};
use super::functions::note;
use super::merged::{most_changed, per};
use super::{beside_itself, frame, problem};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{count, time};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};
use crate::views::{SELECTION, place_in_words};

/// The view `diff-probes`.
pub(super) static VIEW: View = View {
    name: "diff-probes",
    about: "Probed methods by growth of the time of their calls, with calls, failures and percentiles; lines by how \
            often they were reached",
    takes: &[SELECTION, &[Flag::Limit, Flag::Type]],
    sorts: &[Sort::Total, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: false,
    layout: Layout::Rows,
    columns: |_| sheet().infos(),
    open: |recording, request, _| Ok(Box::new(compare(&beside_itself(recording), request).map_err(problem)?)),
};

const TOTAL: Keys = keys!("before", "after", "difference", "growth", "change", "_ns");
const CALLS: Keys = keys!("calls_before", "calls_after", "calls_difference", "calls_growth", "calls_change", "");
const FAILED: Keys = keys!("failed_before", "failed_after", "failed_difference", "failed_growth", "failed_change", "");
const MEAN: Keys = keys!("mean_before", "mean_after", "mean_difference", "mean_growth", "mean_change", "_ns");
const PERCENTILES: [Keys; 3] = [
    keys!("p50_before", "p50_after", "p50_difference", "p50_growth", "p50_change", "_ns"),
    keys!("p90_before", "p90_after", "p90_difference", "p90_growth", "p90_change", "_ns"),
    keys!("p99_before", "p99_after", "p99_difference", "p99_growth", "p99_change", "_ns"),
];

struct Probes;

impl RowKind for Probes {
    type Row<'a> = ProbeChange;
}

impl Row for ProbeChange {}

fn sheet<'c>() -> Sheet<'c, Probes> {
    let mut all = vec![
        Column::new("name", "method", Kind::Text, |row: &ProbeChange| Cell::text(&row.name).said(&*row.signature)),
        Column::new("signature", "signature", Kind::Text, |row: &ProbeChange| Cell::text(&row.signature)),
        Column::new("module", "module", Kind::Text, |row: &ProbeChange| Cell::text(&row.module)),
        Column::new("file", "file", Kind::Text, |row: &ProbeChange| {
            Cell::or_null(row.place.as_ref(), |place| Cell::text(&place.file))
        }),
        Column::new("line", "line", Kind::Number, |row: &ProbeChange| {
            Cell::or_null(row.place.as_ref(), |place| Cell::Number(place.line.into()).said(place_in_words(place)))
        }),
    ];
    all.extend(columns::<Probes>(TOTAL, Unit::Nanoseconds, |row: &ProbeChange| &row.total_ns));
    all.extend(columns::<Probes>(CALLS, Unit::Count, |row: &ProbeChange| &row.calls));
    all.extend(columns::<Probes>(FAILED, Unit::Count, |row: &ProbeChange| &row.failed));
    all.extend(columns::<Probes>(MEAN, Unit::Nanoseconds, |row: &ProbeChange| &row.mean_ns));
    for (at, keys) in PERCENTILES.into_iter().enumerate() {
        all.extend(columns::<Probes>(keys, Unit::Nanoseconds, move |row: &ProbeChange| &row.percentiles_ns[at]));
    }
    all.push(both("calls_range", "calls", Kind::Count, |row| (Some(&row.calls), count)));
    all.push(both("mean_range", "mean", Kind::Time, |row| (time_of(row, &row.mean_ns), time)));
    all.push(both("p99_range", "99 %", Kind::Time, |row| (time_of(row, &row.percentiles_ns[2]), time)));
    Sheet::new(all)
}

/// A time of a row; lines have none.
fn time_of<'r>(row: &ProbeChange, time: &'r Change) -> Option<&'r Change> {
    row.place.is_none().then_some(time)
}

/// An amount of a row, where the row has one, and the function that formats it.
type Amount = for<'r> fn(&'r ProbeChange) -> (Option<&'r Change>, fn(u64) -> String);

/// An amount on both sides, formatted in one column of text: `821 us to 157 ms`, or `- to 20 ns` if
/// there was none before.
fn both<'c>(key: &'static str, title: &'static str, kind: Kind, of: Amount) -> Column<'c, Probes> {
    Column::new(key, title, kind, move |row: &ProbeChange| {
        let (Some(change), words) = of(row) else { return Cell::Null.said("") };
        let [before, after] = [change.before.median, change.after.median].map(|median| median.max(0.0).round() as u64);
        let side = |amount: u64| if amount > 0 { words(amount) } else { "-".to_owned() };
        let said = format!("{} to {}", side(before), side(after));
        if kind == Kind::Count { Cell::Count(after).said(said) } else { Cell::Time(after).said(said) }
    })
    .on_request()
}

/// The answer of the view.
pub(super) struct OpenComparison<'a> {
    sides: Sides<'a>,
    changes: ProbeChanges,
    request: Request,
}

/// Compares probed methods and lines.
pub(super) fn compare<'a>(sides: &Sides<'a>, request: &Request) -> Result<OpenComparison<'a>, ComparisonProblem> {
    let changes = probe_changes(sides, &request.query)?;
    Ok(OpenComparison { sides: sides.clone(), changes, request: request.clone() })
}

impl Answer for OpenComparison<'_> {
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let ProbeChanges { rows, largest, left_out, verdicts } = &self.changes;
        let unit = |row: &ProbeChange| if row.place.is_some() { Unit::Count } else { Unit::Nanoseconds };
        let named = largest.as_ref().map(|row| (row.name.clone(), row.main(), unit(row)));
        let most = most_changed(&self.sides, named, "probed method");
        frame::show(&self.sides, None, most, renderer)?;
        let sheet = sheet();
        let has_lines = rows.iter().any(|row| row.place.is_some());
        let has_methods = rows.iter().any(|row| row.place.is_none());
        let text = shown(&[
            ("difference_ns", 0, has_methods),
            ("growth", 2, has_methods),
            ("calls_range", 0, true),
            ("mean_range", 1, has_methods),
            ("p99_range", 3, has_methods),
            ("line", 0, has_lines),
            ("name", 0, true),
        ]);
        let section = Section {
            title: Title::Bold(format!("Probed methods{}", per(&self.sides))),
            nothing: "Nothing had probes on either side, or the filters leave nothing.".to_owned(),
            what: "rows",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: *left_out as u64, note: Some(note(verdicts, ["row", "rows"])) })
        })
    }
}
