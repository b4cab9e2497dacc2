//! The view `timeline`: the activity of each thread over time, from samples.

use std::io;

use clrscope_analysis::{Conditions, Lane, Timeline, TimelineRow, timeline};

use super::{REQUESTS, nothing};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::time;
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `timeline`.
pub(super) static VIEW: View = View {
    name: "timeline",
    about: "What each thread did over time, by samples",
    takes: &[REQUESTS, &[Flag::Thread, Flag::Part, Flag::Since, Flag::Until, Flag::Limit, Flag::Verbose]],
    sorts: &[],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let view = timeline(recording, &request.query)?;
        let processes = recording.processes.len() > 1;
        Ok(Box::new(OpenView { view, request: request.clone(), processes }))
    },
};

/// Characters of a strip by height, from idle to a whole processor.
const BARS: [char; 9] =
    [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
/// Maximum number of characters of a strip.
const STRIP: usize = 60;

struct TimelineRows;

impl RowKind for TimelineRows {
    type Row<'a> = TimelineRow<'a>;
}

impl Row for TimelineRow<'_> {}

fn sheet<'c>(processes: bool) -> Sheet<'c, TimelineRows> {
    Sheet::new([
        Column::new("thread", "thread", Kind::Thread, |row: &TimelineRow<'_>| Cell::Thread(row.thread)),
        Column::new("pid", "process", Kind::Number, |row: &TimelineRow<'_>| Cell::Number(row.pid.into()))
            .only_if(processes),
        Column::new("time_ns", "from", Kind::Time, |row: &TimelineRow<'_>| Cell::Time(row.time_ns)),
        Column::new("duration_ns", "of", Kind::Time, |row: &TimelineRow<'_>| Cell::Time(row.duration_ns)),
        Column::new("kind", "kind", Kind::Text, |row: &TimelineRow<'_>| Cell::text(row.kind)),
        Column::new("amount_ns", "time", Kind::Time, |row: &TimelineRow<'_>| Cell::Time(row.amount_ns)),
    ])
}

/// Threads as lines of text.
struct Lanes;

impl RowKind for Lanes {
    type Row<'a> = LaneEntry<'a>;
}

struct LaneEntry<'a> {
    lane: &'a Lane<'a>,
    piece_ns: u64,
}

impl Row for LaneEntry<'_> {}

impl LaneEntry<'_> {
    /// The strip: one character per group of intervals, whose height shows how busy the thread was.
    fn strip(&self) -> String {
        let pieces = &self.lane.pieces;
        let together = pieces.len().div_ceil(STRIP).max(1);
        let bar = |group: &[u64]| {
            let busy = group.iter().fold(0_u64, |sum, amount| sum.saturating_add(*amount)) as f64;
            let part = busy / (self.piece_ns as f64 * group.len() as f64);
            let height = (part * (BARS.len() - 1) as f64).round() as usize;
            BARS[if busy > 0.0 { height.clamp(1, BARS.len() - 1) } else { 0 }]
        };
        pieces.chunks(together).map(bar).collect()
    }
}

fn lanes<'c>(processes: bool) -> Sheet<'c, Lanes> {
    Sheet::new([
        Column::new("amount_ns", "time", Kind::Time, |row: &LaneEntry<'_>| Cell::Time(row.lane.amount_ns)),
        Column::new("busy_ns", "busy", Kind::Time, |row: &LaneEntry<'_>| Cell::Time(row.lane.busy_ns)),
        Column::new("thread", "thread", Kind::Thread, |row: &LaneEntry<'_>| Cell::Thread(row.lane.thread)),
        Column::new("pid", "process", Kind::Number, |row: &LaneEntry<'_>| Cell::Number(row.lane.pid.into()))
            .only_if(processes),
        Column::new("strip", "over the run", Kind::Text, |row: &LaneEntry<'_>| Cell::Text(row.strip().into())),
    ])
}

struct OpenView<'a> {
    view: Timeline<'a>,
    request: Request,
    processes: bool,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let Timeline { rows, left_out, lanes: all, piece_ns, conditions } = &self.view;
        let sheet = sheet(self.processes);
        let section = Section { what: "pieces", ..sheet.main(&self.request, "rows", Style::Table, &[]) };
        renderer.section(&section, &mut |visit| {
            rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: *left_out as u64, note: None })
        })?;
        let sheet = lanes(self.processes);
        let mut text = vec![("amount_ns", 0), ("thread", 0), ("strip", 0)];
        // CPU time is busy time.
        if all.iter().any(|lane| lane.busy_ns < lane.amount_ns) {
            text.insert(0, ("busy_ns", 0));
        }
        if self.processes {
            text.insert(text.len() - 2, ("pid", 1));
        }
        let section = Section {
            title: Title::Bold(format!("{} of threads over the run", capital(conditions.metric.title))),
            nothing: nothing("sample"),
            what: "threads",
            ..sheet.section("threads", Style::Table, if self.request.columns.is_some() { &[] } else { &text })
        };
        let limit = self.request.query.limit.unwrap_or(usize::MAX);
        renderer.section(&section, &mut |visit| {
            let piece_ns = *piece_ns;
            all.iter().take(limit).try_for_each(|lane| visit(&sheet.entry(&LaneEntry { lane, piece_ns })))?;
            let together = all.first().map_or(1, |lane| lane.pieces.len().div_ceil(STRIP).max(1)) as u64;
            let span = time(piece_ns.saturating_mul(together));
            let note = format!(
                "Each character is {span} of the run; at full height a thread used one processor (cpu) or was busy \
                 (wall) \
                 all of that time. Busy threads run, are ready to run, or wait for a lock or the runtime."
            );
            Ok(Tail { left_out: all.len().saturating_sub(limit) as u64, note: (!all.is_empty()).then_some(note) })
        })
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
