//! The view `load`: durations of served requests by the number of requests in flight, with the knee
//! of the curve.

use std::io;

use clrscope_analysis::{Conditions, LoadCurve, LoadLevel, NoKnee, conditions, loads};
use clrscope_recording::model::Recording;
use serde_json::json;

use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::{count, time};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// Maximum number of routes whose knees are named below the rows.
const MOST_NAMED: usize = 3;

/// The view `load`.
pub(super) static VIEW: View = View {
    name: "load",
    about: "Response time by the number of requests in flight, by route, with its knee: the load from which on \
            requests queue",
    takes: &[&[Flag::Part, Flag::Since, Flag::Until, Flag::Limit, Flag::Request, Flag::Verbose]],
    sorts: &[],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let curves = loads(recording, &request.query)?;
        Ok(Box::new(OpenView { curves, request: request.clone(), recording }))
    },
};

/// Levels of routes.
struct Levels;

impl RowKind for Levels {
    type Row<'a> = LevelEntry<'a>;
}

/// A level with its route.
struct LevelEntry<'a> {
    curve: &'a LoadCurve<'a>,
    level: &'a LoadLevel,
    is_knee: bool,
}

impl Row for LevelEntry<'_> {}

fn sheet<'c>(processes: bool) -> Sheet<'c, Levels> {
    Sheet::new([
        Column::new("route", "route", Kind::Text, |row: &LevelEntry<'_>| Cell::text(&row.curve.route)),
        Column::new("in_flight", "in flight", Kind::Count, |row: &LevelEntry<'_>| {
            Cell::Count(row.level.load.first()).said(in_flight(row.level))
        }),
        Column::new("in_flight_to", "to", Kind::Count, |row: &LevelEntry<'_>| Cell::Count(row.level.load.last())),
        Column::new("requests", "requests", Kind::Count, |row: &LevelEntry<'_>| Cell::Count(row.level.requests)),
        Column::new("exact", "exact", Kind::Flag, |row: &LevelEntry<'_>| Cell::Flag(row.curve.is_exact)),
        Column::new("mean_ns", "mean", Kind::Time, |row: &LevelEntry<'_>| Cell::Time(row.level.mean_ns())),
        Column::new("p90_ns", "90 %", Kind::Time, |row: &LevelEntry<'_>| {
            Cell::or_null(row.level.percentile_ns(90), Cell::Time)
        }),
        Column::new("per_second", "a second", Kind::Count, |row: &LevelEntry<'_>| {
            Cell::or_null(row.level.per_second(), |rate| Cell::Nested(json!(rate)).said(per_second(rate)))
        }),
        Column::new("knee", "", Kind::Flag, |row: &LevelEntry<'_>| {
            Cell::Flag(row.is_knee).said(if row.is_knee { "knee" } else { "" })
        }),
        Column::new("pid", "process", Kind::Number, |row: &LevelEntry<'_>| Cell::Number(row.curve.process.pid.into()))
            .only_if(processes),
    ])
}

/// Columns in text.
const TEXT: &[(&str, u8)] =
    &[("in_flight", 0), ("requests", 0), ("mean_ns", 0), ("p90_ns", 1), ("per_second", 0), ("knee", 0), ("route", 0)];

/// Requests in flight at a level: `4`, `12-15`.
fn in_flight(level: &LoadLevel) -> String {
    match (level.load.first(), level.load.last()) {
        (first, last) if first == last => count(first),
        (first, last) => format!("{}-{}", count(first), count(last)),
    }
}

/// A rate in three digits, or more.
fn per_second(rate: f64) -> String {
    match rate {
        ..9.995 => format!("{rate:.2}"),
        ..99.95 => format!("{rate:.1}"),
        _ => count(rate.round() as u64),
    }
}

struct OpenView<'a> {
    curves: Vec<LoadCurve<'a>>,
    request: Request,
    recording: &'a Recording,
}

impl OpenView<'_> {
    /// Sentences that name the knees, or the reason why there is none.
    fn note(&self) -> Option<String> {
        let knees = |is_all: bool| {
            let curves = self.curves.iter().filter(move |curve| curve.is_all == is_all);
            curves.filter_map(|curve| Some((curve, curve.knee().ok()?))).collect::<Vec<_>>()
        };
        // All routes together have one of their own where no route has.
        let named = Some(knees(false)).filter(|knees| !knees.is_empty()).unwrap_or_else(|| knees(true));
        if named.is_empty() {
            return self.why_none();
        }
        let more = named.len().saturating_sub(MOST_NAMED);
        let more = (more > 0).then(|| format!("{more} more routes have one: --format json has all."));
        let sentences = named.iter().take(MOST_NAMED).map(|(curve, knee)| self.sentence(curve, knee));
        let advice = "To see what they wait for, record with -i awaits -i locks.".to_owned();
        Some(sentences.chain(more).chain([advice]).collect::<Vec<_>>().join(" "))
    }

    fn sentence(&self, curve: &LoadCurve<'_>, knee: &LoadLevel) -> String {
        let route = if curve.is_all { "all routes together" } else { &*curve.route };
        let process = match self.recording.processes.len() {
            ..2 => String::new(),
            _ => format!(" in process {}", curve.process.pid),
        };
        let rate = |level: &LoadLevel| level.per_second().map_or_else(|| "0".to_owned(), per_second);
        let beyond = curve.highest().unwrap_or(knee);
        format!(
            "The knee of {route}{process} is at {} in flight: {} requests a second, {} each. With more in flight each \
             takes longer: at {} in flight {}, and {} are done a second.",
            in_flight(knee),
            rate(knee),
            time(knee.mean_ns()),
            in_flight(beyond),
            time(beyond.mean_ns()),
            rate(beyond),
        )
    }

    /// Reason why there is no knee, if there are rows.
    fn why_none(&self) -> Option<String> {
        let mut reasons = self.curves.iter().filter_map(|curve| curve.knee().err());
        let first = reasons.next()?;
        let reason = if reasons.any(|reason| reason == NoKnee::NotReached) { NoKnee::NotReached } else { first };
        let said = match reason {
            NoKnee::NotReached => {
                "No knee: requests took hardly longer with more of them in flight. The program can serve a higher load."
            }
            NoKnee::TooFew => {
                "No knee: finding one takes 20 requests or more at each of two loads at least. Record while the load \
                 rises."
            }
        };
        Some(said.to_owned())
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(self.recording.processes.len() > 1);
        let main = sheet.main(&self.request, "rows", Style::Table, TEXT);
        let nothing = "No requests to show: the program served none by ASP.NET Core, or the filters leave nothing.";
        let limit = self.request.query.limit.unwrap_or(usize::MAX);
        let all: usize = self.curves.iter().map(|curve| curve.levels.len()).sum();
        renderer.section(&Section { nothing: nothing.to_owned(), ..main }, &mut |visit| {
            let rows = self.curves.iter().flat_map(|curve| {
                let knee = curve.knee().ok().map(|level| level.load);
                curve.levels.iter().map(move |level| LevelEntry { curve, level, is_knee: knee == Some(level.load) })
            });
            rows.take(limit).try_for_each(|row| visit(&sheet.entry(&row)))?;
            Ok(Tail { left_out: all.saturating_sub(limit) as u64, note: self.note() })
        })
    }
}
