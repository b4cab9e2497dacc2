//! The view `threads`.

use std::io;

use clrscope_analysis::{Amount, Conditions, Sort, Summary, ThreadRow, Threads, Totals, threads};

use clrscope_recording::model::Recording;

use super::sampled::{SampledRow, sampled_columns, sampled_text};
use super::{REQUESTS, nothing};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{count, time};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `threads`.
pub(super) static VIEW: View = View {
    name: "threads",
    about: "Every thread with its totals",
    takes: &[
        REQUESTS,
        &[
            Flag::Thread,
            Flag::Part,
            Flag::Since,
            Flag::Until,
            Flag::Limit,
            Flag::Verbose,
            Flag::JustMyCode,
            Flag::NoInlined,
        ],
    ],
    sorts: &[
        Sort::Exclusive,
        Sort::Inclusive,
        Sort::Callee,
        Sort::Suspended,
        Sort::Profiler,
        Sort::ExclusiveCpu,
        Sort::InclusiveCpu,
        Sort::Calls,
        Sort::Recursion,
        Sort::Name,
    ],
    text_rows: |_| Some(50),
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| sheet(true, true, true).infos(),
    open: |recording, request, _| {
        let view = threads(recording, &request.query)?;
        Ok(Box::new(OpenView { view, request: request.clone(), recording }))
    },
};

struct ThreadRows;

impl RowKind for ThreadRows {
    type Row<'a> = ThreadEntry<'a>;
}

/// A row, and the sums for its shares.
struct ThreadEntry<'a> {
    row: &'a ThreadRow<'a>,
    totals: &'a Totals,
    conditions: &'a Conditions<'a>,
}

impl Row for ThreadEntry<'_> {}

impl SampledRow for ThreadEntry<'_> {
    fn amount(&self) -> Amount {
        self.row.amount
    }

    fn conditions(&self) -> &Conditions<'_> {
        self.conditions
    }
}

fn sheet<'c>(processes: bool, cpu: bool, samples: bool) -> Sheet<'c, ThreadRows> {
    let number = |key, title, of: fn(&ThreadRow<'_>) -> u32| {
        Column::new(key, title, Kind::Number, move |row: &ThreadEntry<'_>| Cell::Number(of(row.row).into()))
    };
    let time = |key, title, of: fn(&ThreadRow<'_>) -> u64| {
        Column::new(key, title, Kind::Time, move |row: &ThreadEntry<'_>| Cell::Time(of(row.row)))
    };
    let measured = |key, title, of: fn(&ThreadRow<'_>) -> u64| {
        Column::new(key, title, Kind::Time, move |row: &ThreadEntry<'_>| match of(row.row) {
            0 => Cell::Time(0).said("-"),
            ns => Cell::Time(ns),
        })
    };
    let share = Column::new("running_share", "share", Kind::Share, |row: &ThreadEntry<'_>| {
        Cell::Share(row.totals.share(row.row.running_ns))
    });
    let columns = [
        number("id", "id", |row| row.thread.id),
        number("os_id", "os id", |row| row.thread.os_id),
        Column::new("name", "name", Kind::Text, |row: &ThreadEntry<'_>| Cell::text(&row.row.thread.name)),
        Column::new("role", "role", Kind::Text, |row: &ThreadEntry<'_>| Cell::text(row.row.thread.role.name())),
        number("pid", "process", |row| row.pid).only_if(processes),
        time("created_ns", "from", |row| row.thread.created_ns),
        Column::new("ended_ns", "to", Kind::Time, |row: &ThreadEntry<'_>| {
            Cell::or_null(row.row.thread.ended_ns, Cell::Time)
        }),
        measured("running_ns", "time", |row| row.running_ns),
        measured("outside_ns", "unrecorded", |row| row.outside_ns),
        Column::new("cpu_ns", "cpu", Kind::Time, |row: &ThreadEntry<'_>| Cell::measured(row.row.cpu_ns)).only_if(cpu),
        measured("suspended_ns", "suspended", |row| row.suspended_ns),
        measured("profiler_ns", "profiler", |row| row.profiler_ns),
        time("profiler_low_ns", "profiler from", |row| row.profiler_low_ns),
        time("profiler_high_ns", "profiler to", |row| row.profiler_high_ns),
        Column::new("calls", "calls", Kind::Count, |row: &ThreadEntry<'_>| Cell::Count(row.row.calls)),
        Column::new("max_depth", "depth", Kind::Count, |row: &ThreadEntry<'_>| Cell::Count(row.row.max_depth.into())),
        share.on_request(),
    ];
    Sheet::new(columns.into_iter().chain(sampled_columns(samples)))
}

/// Columns that identify the thread of a row.
const THREAD_NAMES: [(&str, u8); 6] =
    [("created_ns", 7), ("ended_ns", 7), ("os_id", 2), ("id", 0), ("role", 0), ("name", 0)];

/// Columns in text; the flags tell whether there are several processes, and CPU time.
fn text(processes: bool, cpu: bool) -> Vec<(&'static str, u8)> {
    shown(&[
        ("running_ns", 0, true),
        ("running_share", 1, true),
        ("cpu_ns", 0, cpu),
        ("outside_ns", 5, true),
        ("suspended_ns", 3, true),
        ("profiler_ns", 6, true),
        ("calls", 1, true),
        ("max_depth", 4, true),
        ("created_ns", 7, true),
        ("ended_ns", 7, true),
        ("pid", 2, processes),
        ("os_id", 2, true),
        ("id", 0, true),
        ("role", 0, true),
        ("name", 0, true),
    ])
}

/// The threads in the view `summary`, from samples: a line for each important thread, and one line
/// for the others.
pub(super) fn of_summary(view: &Summary<'_>, is_one_table: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
    let (seen, conditions) = (&view.threads, &view.conditions);
    if !conditions.metric.is_sampled() {
        return Ok(());
    }
    let sheet = sheet(conditions.processes.len() > 1, false, true);
    let text = if is_one_table { Vec::new() } else { sampled_text(conditions, &THREAD_NAMES[2..]) };
    let title = Title::Bold(format!("Threads by {}", conditions.metric.title));
    let section = Section { title, ..sheet.section("threads", Style::Table, &text) };
    renderer.section(&section, &mut |visit| {
        let totals = &conditions.totals;
        seen.rows.iter().try_for_each(|row| visit(&sheet.entry(&ThreadEntry { row, totals, conditions })))?;
        let others = match seen.others {
            1 => "one other thread".to_owned(),
            others => format!("{} other threads", count(others)),
        };
        let roles: Vec<String> = seen.roles.iter().map(|(role, number)| format!("{number} {}", role.name())).collect();
        let (ns, roles) = (time(seen.others_ns), roles.join(", "));
        let note = format!("... and {others} with {ns} in all ({roles}); --view threads has them.");
        Ok(Tail { left_out: 0, note: (seen.others > 0).then_some(note) })
    })
}

struct OpenView<'a> {
    view: Threads<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let Threads { rows, left_out, conditions } = &self.view;
        let cpu = rows.iter().any(|row| row.cpu_ns.is_some());
        let sampled = conditions.metric.is_sampled();
        let sheet = sheet(self.recording.processes.len() > 1, cpu, sampled);
        let text = match sampled {
            true => sampled_text(conditions, &THREAD_NAMES),
            false => text(conditions.processes.len() > 1, cpu),
        };
        let section = Section {
            nothing: nothing("thread"),
            what: "threads",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            let totals = &conditions.totals;
            rows.iter().try_for_each(|row| visit(&sheet.entry(&ThreadEntry { row, totals, conditions })))?;
            Ok(Tail { left_out: *left_out as u64, note: super::thread_time(self.recording, conditions) })
        })
    }
}
