//! The view `locks`: contended locks, longest waiting time first, with the waiting code and the
//! code that held the lock.

use std::io;

use clrscope_analysis::{Conditions, LockPath, LockQuery, LockRow, Sort, conditions, locks};
use clrscope_recording::model::Recording;
use clrscope_symbols::Lines;

use super::located_path::{LocatedPath, paths};
use super::{REQUESTS, SELECTION};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units;
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `locks`.
pub(super) static VIEW: View = View {
    name: "locks",
    about: "Contended locks, and what else threads blocked on: how often and how long they waited, where, and where a lock was held",
    takes: &[SELECTION, REQUESTS, &[Flag::Limit, Flag::Name, Flag::Verbose, Flag::Paths]],
    sorts: &[Sort::Inclusive, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let query = LockQuery { query: request.query.clone(), types: request.names.clone() };
        let (rows, left_out) = locks(recording, &query)?;
        Ok(Box::new(OpenView { rows, left_out, request: request.clone(), recording }))
    },
};

struct Locks;

impl RowKind for Locks {
    type Row<'a> = LockEntry<'a>;
}

/// A row, with the source lines of its paths.
struct LockEntry<'a> {
    row: &'a LockRow<'a>,
    waiters: Vec<LocatedPath<'a>>,
    holders: Vec<LocatedPath<'a>>,
}

impl Row for LockEntry<'_> {}

impl<'a> LockEntry<'a> {
    fn new(row: &'a LockRow<'a>, lines: &mut Lines) -> Self {
        let mut located = |paths: &'a [LockPath<'a>]| {
            let located = |path: &'a LockPath<'a>| LocatedPath::new((path.count, path.ns), path.frames(), lines);
            paths.iter().map(located).collect()
        };
        Self { row, waiters: located(&row.waiters), holders: located(&row.holders) }
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Locks> {
    let count = |key, title, of: fn(&LockRow<'_>) -> u64| {
        Column::new(key, title, Kind::Count, move |entry: &LockEntry<'_>| Cell::Count(of(entry.row)))
    };
    let time = |key, title, of: fn(&LockRow<'_>) -> u64| {
        Column::new(key, title, Kind::Time, move |entry: &LockEntry<'_>| Cell::Time(of(entry.row)))
    };
    let place = |key, title, of: for<'r, 'a> fn(&'r LockEntry<'a>) -> &'r [LocatedPath<'a>]| {
        Column::new(key, title, Kind::Text, move |entry: &LockEntry<'_>| {
            of(entry).iter().find_map(LocatedPath::own_place).unwrap_or(Cell::Null)
        })
    };
    Sheet::new([
        Column::new("kind", "kind", Kind::Text, |entry: &LockEntry<'_>| Cell::text(entry.row.kind.name())),
        Column::new("type", "type", Kind::Type, |entry: &LockEntry<'_>| Cell::text(entry.row.type_name)),
        Column::new("module", "module", Kind::Text, |entry: &LockEntry<'_>| Cell::text(entry.row.module)),
        Column::new("locks", "locks", Kind::Count, |entry: &LockEntry<'_>| {
            at_least(entry.row.locks, entry.row.has_more_locks)
        }),
        Column::new("count", "waits", Kind::Count, |entry: &LockEntry<'_>| {
            at_least(entry.row.count, entry.row.is_sampled)
        }),
        Column::new("exact", "exact", Kind::Flag, |entry: &LockEntry<'_>| Cell::Flag(entry.row.is_exact)),
        time("total_ns", "waited", |row| row.total_ns),
        time("total_low_ns", "waited at least", |row| row.bounds_ns.0),
        time("total_high_ns", "waited at most", |row| row.bounds_ns.1),
        Column::new("max_ns", "longest", Kind::Time, |entry: &LockEntry<'_>| {
            measured(entry.row, Cell::Time, |row| row.max_ns)
        }),
        Column::new("max_waiters", "at once", Kind::Count, |entry: &LockEntry<'_>| {
            measured(entry.row, Cell::Count, |row| row.max_waiters)
        }),
        count("pending", "waiting still", |row| row.pending),
        place("waiter", "waited in", |entry| &entry.waiters),
        place("holder", "held by", |entry| &entry.holders),
        Column::new("waiters", "waiters", Kind::Nested, |entry: &LockEntry<'_>| paths(&entry.waiters))
            .parts(&["count", "total_ns", "frames"]),
        count("waiters_without_stack", "waits without stack", |row| row.without_stack),
        Column::new("holders", "holders", Kind::Nested, |entry: &LockEntry<'_>| paths(&entry.holders))
            .parts(&["count", "total_ns", "frames"]),
        count("waits_without_holder", "waits without holder", |row| row.without_holder),
        Column::new("pid", "process", Kind::Number, |entry: &LockEntry<'_>| Cell::Number(entry.row.process.pid.into()))
            .only_if(processes),
    ])
}

/// A number that may be only a lower bound.
fn at_least(number: u64, may_be_more: bool) -> Cell<'static> {
    let cell = Cell::Count(number);
    if may_be_more { cell.said(format!("\u{2265} {}", units::count(number))) } else { cell }
}

/// A cell with a measured value; absent where waits come from samples, which do not have the value.
fn measured<'c>(row: &LockRow<'_>, cell: fn(u64) -> Cell<'c>, of: fn(&LockRow<'_>) -> u64) -> Cell<'c> {
    if row.is_sampled { Cell::Null } else { cell(of(row)) }
}

/// Columns in text.
fn text(rows: &[LockRow<'_>]) -> Vec<(&'static str, u8)> {
    shown(&[
        ("total_ns", 0, true),
        ("count", 0, true),
        ("max_ns", 1, true),
        ("max_waiters", 1, true),
        ("pending", 0, rows.iter().any(|row| row.pending > 0)),
        ("locks", 4, rows.iter().any(|row| row.locks > 1)),
        ("kind", 3, true),
        ("type", 0, true),
        ("waiter", 0, true),
        ("holder", 2, rows.iter().any(|row| !row.holders.is_empty())),
    ])
}

struct OpenView<'a> {
    rows: Vec<LockRow<'a>>,
    left_out: usize,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(self.recording.processes.len() > 1);
        let main = sheet.main(&self.request, "rows", Style::Table, &text(&self.rows));
        let nothing = "No locks to show: no thread waited for one, or the filters leave nothing.".to_owned();
        let section = Section { nothing, ..main };
        renderer.section(&section, &mut |visit| {
            let lines = &mut Lines::default();
            self.rows.iter().try_for_each(|row| visit(&sheet.entry(&LockEntry::new(row, lines))))?;
            Ok(Tail { left_out: self.left_out as u64, note: note(&self.rows) })
        })
    }
}

/// Note below incomplete rows: the facts about them that are unknown.
fn note(rows: &[LockRow<'_>]) -> Option<String> {
    let sum = |of: fn(&LockRow<'_>) -> u64| rows.iter().filter(|row| row.kind.is_held()).map(of).sum::<u64>();
    let (waits, without) = (sum(|row| row.count), sum(|row| row.without_holder));
    let percent = without as f64 / waits.max(1) as f64 * 100.0;
    let holders = (percent >= 1.0).then(|| {
        format!(
            "In {percent:.0} % of the waits for locks the code that held the lock is not known: it ran on a thread \
             that had not waited for it."
        )
    });
    let is_sampled = rows.iter().any(|row| row.is_sampled);
    let has_more = rows.iter().any(|row| row.has_more_locks);
    let said = [(is_sampled, SAMPLED), (has_more, MORE_LOCKS)].into_iter().filter(|(is_said, _)| *is_said);
    let notes: Vec<String> = holders.into_iter().chain(said.map(|(_, note)| note.to_owned())).collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// Note for a recording with more locks than can be kept apart.
const MORE_LOCKS: &str = "Threads waited for more locks than can be told apart: there are more than shown.";
/// Note about waits by samples.
const SAMPLED: &str = "\u{2265}: waits that samples of wall saw; shorter ones between samples are not counted.";
