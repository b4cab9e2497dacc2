//! The view `requests`: requests by route and host, or single requests, the slowest first.

use std::io;

use clrscope_analysis::{
    Conditions, Request as ServedOrMade, RequestEnd, RequestRow, RequestWork, Sort, TraceIds, conditions, each_request,
    requests,
};
use clrscope_recording::model::Recording;

use super::REQUESTS;
use super::request_work::{self, HasWork};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `requests`.
pub(super) static VIEW: View = View {
    name: "requests",
    about: "Requests served and made, by route and host: counts, failures, percentiles; with --each the slowest",
    takes: &[REQUESTS, &[Flag::Part, Flag::Since, Flag::Until, Flag::Limit, Flag::Each, Flag::Verbose]],
    sorts: &[Sort::Inclusive, Sort::Calls, Sort::Name],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |request| if request.each { each(true).infos() } else { routes(true).infos() },
    open: |recording, request, _| {
        let query = &request.query;
        let rows = match request.each {
            true => {
                let (all, left_out) = each_request(recording, query)?;
                Rows::Each(all.into_iter().map(RowWithWork::new).collect(), left_out)
            }
            false => {
                let (rows, left_out) = requests(recording, query)?;
                Rows::Routes(rows.into_iter().map(RowWithWork::new).collect(), left_out)
            }
        };
        Ok(Box::new(OpenView { rows, request: request.clone(), recording }))
    },
};

/// A row, and the lines of text output below it.
pub(super) struct RowWithWork<T> {
    row: T,
    below: Vec<String>,
}

impl<T> RowWithWork<T>
where
    Self: HasWork,
{
    pub(super) fn new(row: T) -> Self {
        let without = Self { row, below: Vec::new() };
        let below = without.work().map(request_work::words).unwrap_or_default();
        Self { below, ..without }
    }
}

impl<T> Row for RowWithWork<T> {
    fn below(&self) -> &[String] {
        &self.below
    }
}

/// Requests with the same name.
type Route<'a> = RowWithWork<RequestRow<'a>>;
/// One request.
pub(super) type Single<'a> = RowWithWork<ServedOrMade<'a>>;

impl HasWork for Route<'_> {
    fn work(&self) -> Option<&RequestWork> {
        self.row.work.as_ref()
    }
}

impl HasWork for Single<'_> {
    fn work(&self) -> Option<&RequestWork> {
        self.row.work.as_deref()
    }
}

/// Requests by their names.
struct Routes;

impl RowKind for Routes {
    type Row<'a> = Route<'a>;
}

fn routes<'c>(processes: bool) -> Sheet<'c, Routes> {
    let count = |key, title, of: fn(&RequestRow<'_>) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &Route<'_>| Cell::Count(of(&row.row)))
    };
    let time = |key, title, of: fn(&RequestRow<'_>) -> Option<u64>| {
        Column::new(key, title, Kind::Time, move |row: &Route<'_>| of(&row.row).map_or(Cell::Null, Cell::Time))
    };
    let known = [
        Column::new("direction", "", Kind::Text, |row: &Route<'_>| Cell::text(row.row.direction.name())),
        Column::new("route", "route or host", Kind::Text, |row: &Route<'_>| Cell::text(&row.row.route)),
        count("count", "requests", |row| row.count),
        Column::new("exact", "exact", Kind::Flag, |row: &Route<'_>| Cell::Flag(row.row.is_exact)),
        count("failed", "failed", |row| row.failed),
        count("aborted", "aborted", |row| row.aborted),
        count("partial", "partial", |row| row.partial),
        time("mean_ns", "mean", |row| row.mean_ns()),
        time("p50_ns", "50 %", |row| row.percentile_ns(50)),
        time("p90_ns", "90 %", |row| row.percentile_ns(90)),
        time("p99_ns", "99 %", |row| row.percentile_ns(99)),
        time("max_ns", "longest", |row| row.mean_ns().map(|_| row.max_ns)),
        time("total_ns", "together", |row| Some(row.total_ns)),
        Column::new("pid", "process", Kind::Number, |row: &Route<'_>| Cell::Number(row.row.process.pid.into()))
            .only_if(processes),
    ];
    Sheet::new(known.into_iter().chain(request_work::columns()))
}

/// Columns of names in text.
fn routes_text(rows: &[Route<'_>]) -> Vec<(&'static str, u8)> {
    let any = |of: fn(&RequestRow<'_>) -> u64| rows.iter().any(|row| of(&row.row) > 0);
    shown(&[
        ("direction", 0, true),
        ("count", 0, true),
        ("failed", 0, any(|row| row.failed)),
        ("aborted", 1, any(|row| row.aborted)),
        ("partial", 1, any(|row| row.partial)),
        ("mean_ns", 0, true),
        ("p50_ns", 4, true),
        ("p90_ns", 3, true),
        ("p99_ns", 0, true),
        ("max_ns", 2, true),
        ("route", 0, true),
    ])
}

/// Rows of single requests.
pub(super) struct Each;

impl RowKind for Each {
    type Row<'a> = Single<'a>;
}

/// How a request ended, in a word.
fn end(request: &ServedOrMade<'_>) -> &'static str {
    match request.end {
        RequestEnd::UnderWay => "under way",
        RequestEnd::Abortion => "aborted",
        _ if request.has_failed() => "failed",
        _ => "",
    }
}

pub(super) fn each<'c>(processes: bool) -> Sheet<'c, Each> {
    let flag = |key, title, of: fn(&ServedOrMade<'_>) -> bool| {
        Column::new(key, title, Kind::Flag, move |row: &Single<'_>| Cell::Flag(of(&row.row)))
    };
    let known = [
        Column::new("time_ns", "began at", Kind::Time, |row: &Single<'_>| Cell::Time(row.row.time_ns)),
        Column::new("duration_ns", "took", Kind::Time, |row: &Single<'_>| {
            row.row.duration_ns.map_or(Cell::Null, Cell::Time)
        }),
        Column::new("direction", "", Kind::Text, |row: &Single<'_>| Cell::text(row.row.direction.name())),
        Column::new("route", "route or host", Kind::Text, |row: &Single<'_>| Cell::text(&row.row.route)),
        Column::new("status", "status", Kind::Number, |row: &Single<'_>| Cell::or_null(row.row.status, Cell::Number)),
        Column::new("trace_id", "trace", Kind::Text, |row: &Single<'_>| id(&row.row, TraceIds::trace_id)),
        Column::new("span_id", "span", Kind::Text, |row: &Single<'_>| id(&row.row, TraceIds::span_id)),
        flag("failed", "failed", |row| row.has_failed()),
        flag("aborted", "aborted", |row| row.end == RequestEnd::Abortion),
        flag("partial", "partial", |row| row.is_partial()),
        Column::new("end", "end", Kind::Text, |row: &Single<'_>| Cell::text(end(&row.row))),
        Column::new("pid", "process", Kind::Number, |row: &Single<'_>| Cell::Number(row.row.process.pid.into()))
            .only_if(processes),
    ];
    Sheet::new(known.into_iter().chain(request_work::columns()))
}

/// An id of a request's trace.
fn id<'c>(request: &ServedOrMade<'_>, text: fn(TraceIds) -> String) -> Cell<'c> {
    request.trace.map_or(Cell::Null, |trace| Cell::Text(text(trace).into()))
}

/// Columns of single requests in text output.
pub(super) fn each_text(requests: &[Single<'_>]) -> Vec<(&'static str, u8)> {
    shown(&[
        ("time_ns", 1, true),
        ("duration_ns", 0, true),
        ("direction", 0, true),
        ("status", 0, true),
        ("end", 2, true),
        ("trace_id", 3, requests.iter().any(|request| request.row.trace.is_some())),
        ("route", 0, true),
    ])
}

/// The shown rows.
enum Rows<'a> {
    Routes(Vec<Route<'a>>, usize),
    Each(Vec<Single<'a>>, usize),
}

struct OpenView<'a> {
    rows: Rows<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let processes = self.recording.processes.len() > 1;
        let nothing = "No requests to show: the program served none by ASP.NET Core and made none by HttpClient, or the filters leave nothing.".to_owned();
        match &self.rows {
            Rows::Routes(rows, left_out) => {
                let sheet = routes(processes);
                let main = sheet.main(&self.request, "rows", Style::Table, &routes_text(rows));
                renderer.section(&Section { nothing, ..main }, &mut |visit| {
                    rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
                    Ok(Tail { left_out: *left_out as u64, note: None })
                })
            }
            Rows::Each(all, left_out) => {
                let sheet = each(processes);
                let main = sheet.main(&self.request, "rows", Style::Table, &each_text(all));
                renderer.section(&Section { nothing, what: "requests", ..main }, &mut |visit| {
                    all.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
                    Ok(Tail { left_out: *left_out as u64, note: None })
                })
            }
        }
    }
}
