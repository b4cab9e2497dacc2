//! The view `losses`: data that were not recorded, and data that could not be read.

use std::io;

use clrscope_analysis::{Conditions, LossRow, Losses, conditions, losses};
use clrscope_recording::model::{LossReason, Problem, Recording};
use serde_json::json;

use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::time;
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `losses`.
pub(super) static VIEW: View = View {
    name: "losses",
    about: "What was not recorded, and why",
    takes: &[&[Flag::Since, Flag::Until, Flag::Limit, Flag::Verbose]],
    sorts: &[],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| sheet(true, true, true).infos(),
    open: |recording, request, _| {
        let view = losses(recording, &request.query)?;
        Ok(Box::new(OpenView { view, request: request.clone(), recording }))
    },
};

struct LossRows;

impl RowKind for LossRows {
    type Row<'a> = LossEntry<'a>;
}

enum LossEntry<'a> {
    Lost(&'a LossRow<'a>),
    Unreadable(&'a Problem),
}

impl Row for LossEntry<'_> {
    fn below(&self) -> &[String] {
        match self {
            Self::Lost(row) => &row.loss.details,
            Self::Unreadable(_) => &[],
        }
    }
}

impl LossEntry<'_> {
    fn lost<'r>(&'r self, of: impl FnOnce(&'r LossRow<'_>) -> Cell<'r>, otherwise: Cell<'r>) -> Cell<'r> {
        match self {
            Self::Lost(row) => of(row),
            Self::Unreadable(_) => otherwise,
        }
    }

    fn problem<'r>(&'r self, of: impl FnOnce(&'r Problem) -> Cell<'r>) -> Cell<'r> {
        match self {
            Self::Lost(_) => Cell::Absent,
            Self::Unreadable(problem) => of(problem),
        }
    }

    fn reason(&self) -> LossReason {
        match self {
            Self::Lost(row) => row.loss.reason,
            Self::Unreadable(_) => LossReason::Unreadable,
        }
    }
}

/// The columns. The flags tell whether there are several processes, losses with details, and
/// unreadable data.
fn sheet<'c>(processes: bool, details: bool, problems: bool) -> Sheet<'c, LossRows> {
    let moment = |ns| Cell::Time(ns).said(time(ns));
    Sheet::new([
        Column::new("reason", "reason", Kind::Text, |row: &LossEntry<'_>| Cell::text(row.reason().name())),
        Column::new("count", "count", Kind::Count, |row: &LossEntry<'_>| {
            row.lost(|row| Cell::Count(row.loss.count), Cell::Count(1))
        }),
        Column::new("first_ns", "first", Kind::Time, move |row: &LossEntry<'_>| {
            row.lost(|row| moment(row.loss.first_ns), Cell::Null)
        }),
        Column::new("last_ns", "last", Kind::Time, move |row: &LossEntry<'_>| {
            row.lost(|row| moment(row.loss.last_ns), Cell::Null)
        }),
        Column::new("details", "details", Kind::Nested, |row: &LossEntry<'_>| {
            row.lost(
                |row| if row.loss.details.is_empty() { Cell::Absent } else { Cell::Nested(json!(row.loss.details)) },
                Cell::Absent,
            )
        })
        .only_if(details),
        Column::new("pid", "process", Kind::Number, |row: &LossEntry<'_>| {
            row.lost(|row| Cell::Number(row.pid.into()), Cell::Absent)
        })
        .only_if(processes),
        Column::new("place", "place", Kind::Text, |row: &LossEntry<'_>| {
            row.problem(|problem| Cell::text(&problem.place))
        })
        .only_if(problems),
        Column::new("what", "what", Kind::Text, |row: &LossEntry<'_>| row.problem(|problem| Cell::text(&problem.what)))
            .only_if(problems),
        Column::new("sentence", "", Kind::Text, |row: &LossEntry<'_>| match row {
            LossEntry::Lost(row) => Cell::text(row.loss.reason.sentence()),
            LossEntry::Unreadable(problem) => Cell::Text(format!("{}: {}", problem.place, problem.what).into()),
        })
        .on_request(),
    ])
}

const TEXT: &[(&str, u8)] =
    &[("count", 0), ("first_ns", 1), ("last_ns", 1), ("pid", 2), ("reason", 0), ("sentence", 0)];

struct OpenView<'a> {
    view: Losses<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let Losses { rows, problems, left_out } = &self.view;
        let details = rows.iter().any(|row| !row.loss.details.is_empty());
        let sheet = sheet(self.recording.processes.len() > 1, details, !problems.is_empty());
        let section = Section {
            nothing: "Nothing was lost.".to_owned(),
            ..sheet.main(&self.request, "rows", Style::Table, TEXT)
        };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(&LossEntry::Lost(row))))?;
            problems.iter().try_for_each(|problem| visit(&sheet.entry(&LossEntry::Unreadable(problem))))?;
            Ok(Tail { left_out: *left_out as u64, note: None })
        })
    }
}
