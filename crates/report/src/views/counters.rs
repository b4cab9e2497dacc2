//! The view `counters`: values of event counters and meters.

use std::io;

use clrscope_analysis::{Conditions, CounterKind, CounterRow, Sort, conditions, counters};
use clrscope_recording::model::Recording;
use serde_json::json;

use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `counters`.
pub(super) static VIEW: View = View {
    name: "counters",
    about: "Event counters and meters of the runtime, the framework and the program: last value, mean, greatest, total",
    takes: &[&[Flag::Part, Flag::Since, Flag::Until, Flag::Limit, Flag::Name, Flag::Verbose]],
    sorts: &[Sort::Name],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let (rows, left_out) = counters(recording, &request.query, &request.names)?;
        Ok(Box::new(OpenView { rows, left_out, request: request.clone(), recording }))
    },
};

struct Counters;

impl RowKind for Counters {
    type Row<'a> = CounterRow<'a>;
}

impl Row for CounterRow<'_> {}

fn sheet<'c>(processes: bool) -> Sheet<'c, Counters> {
    let value = |key, title, of: fn(&CounterRow<'_>) -> Option<f64>| {
        Column::new(key, title, Kind::Count, move |row: &CounterRow<'_>| {
            Cell::or_null(of(row), |value| Cell::Nested(json!(value)).said(number(value)))
        })
    };
    Sheet::new([
        Column::new("provider", "provider", Kind::Text, |row: &CounterRow<'_>| Cell::text(&row.provider)),
        Column::new("name", "counter", Kind::Counter, |row: &CounterRow<'_>| {
            Cell::text(&row.name).said(format!("{}{}", row.full_name(), unit(row)))
        }),
        Column::new("unit", "unit", Kind::Text, |row: &CounterRow<'_>| Cell::text(&row.unit)),
        Column::new("tags", "tags", Kind::Text, |row: &CounterRow<'_>| Cell::text(&row.labels)),
        Column::new("kind", "kind", Kind::Text, |row: &CounterRow<'_>| Cell::text(row.kind.name())),
        value("value", "last", |row| Some(row.value())),
        Column::new("time_ns", "time", Kind::Time, |row: &CounterRow<'_>| {
            Cell::or_null(row.points.last(), |point| Cell::Time(point.time_ns))
        }),
        value("mean", "mean", |row| Some(row.mean())),
        value("min", "least", |row| Some(row.min())),
        value("max", "most", |row| Some(row.max())),
        value("total", "total", |row| row.total),
        Column::new("count", "count", Kind::Count, |row: &CounterRow<'_>| Cell::Count(row.count)),
        value("p50", "50 %", |row| row.percentiles.map(|all| all[0])),
        value("p95", "95 %", |row| row.percentiles.map(|all| all[1])),
        value("p99", "99 %", |row| row.percentiles.map(|all| all[2])),
        Column::new("pid", "process", Kind::Number, |row: &CounterRow<'_>| Cell::Number(row.process.pid.into()))
            .only_if(processes),
    ])
}

/// Unit in words, as for a rate.
fn unit(row: &CounterRow<'_>) -> String {
    match (row.kind, &*row.unit) {
        (CounterKind::Counter, "") => " (per s)".to_owned(),
        (CounterKind::Counter, unit) => format!(" ({unit} per s)"),
        (_, "") => String::new(),
        (_, unit) => format!(" ({unit})"),
    }
}

/// A number in four digits or more.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value.fract() == 0.0 && size < 1e15 => grouped(value),
        ..0.001 => format!("{value:.2e}"),
        ..9.9995 => format!("{value:.3}"),
        ..99.995 => format!("{value:.2}"),
        ..999.95 => format!("{value:.1}"),
        ..1e15 => grouped(value.round()),
        _ => format!("{value:.3e}"),
    }
}

fn grouped(value: f64) -> String {
    let digits = crate::render::text::units::count(value.abs() as u64);
    if value < 0.0 { format!("-{digits}") } else { digits }
}

struct OpenView<'a> {
    rows: Vec<CounterRow<'a>>,
    left_out: usize,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let text = shown(&[
            ("value", 0, true),
            ("mean", 1, true),
            ("max", 1, true),
            ("total", 2, true),
            ("pid", 3, processes),
            ("name", 0, true),
        ]);
        let main = sheet.main(&self.request, "rows", Style::Table, &text);
        let nothing = "No counters to show: the program ran for less than an interval, or the filters leave nothing.";
        let section = Section { nothing: nothing.to_owned(), what: "counters", ..main };
        let note = "Values of counters that only grow are per second; 'total' is what was added or measured in the \
                    recording. For histograms, a value is the mean of an interval's measurements.";
        renderer.section(&section, &mut |visit| {
            self.rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: self.left_out as u64, note: (!self.rows.is_empty()).then(|| note.to_owned()) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_four_digits_or_are_whole() {
        let texts = [0.0, 12.0, -1234.0, 0.5, 42.123, 999.99, 1_234_567.8, 0.000_012, -3.5].map(number);
        assert_eq!(texts, ["0", "12", "-1,234", "0.500", "42.12", "1,000", "1,234,568", "1.20e-5", "-3.500"]);
    }
}
