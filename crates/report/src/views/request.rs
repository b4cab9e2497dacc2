//! The view `request`: one served request, step by step: the threads that worked for it and when,
//! its awaits, and thrown exceptions.

use std::io;

use clrscope_analysis::{Conditions, RequestStep, RequestSteps, StepKind, conditions, request_steps};
use clrscope_recording::model::Recording;
use clrscope_symbols::Lines;

use super::REQUESTS;
use super::awaits::without_namespace;
use super::requests::{Single, each, each_text};
use super::sources::line_behind;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::count;
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::spot::LocatedLine;
use crate::view::{Answer, View};

/// The view `request`.
pub(super) static VIEW: View = View {
    name: "request",
    about: "One served request step by step, the longest of those that the filters choose: its threads, awaits, exceptions",
    takes: &[REQUESTS, &[Flag::Part, Flag::Since, Flag::Until, Flag::Limit, Flag::Verbose]],
    sorts: &[],
    text_rows: |_| Some(60),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let found = request_steps(recording, &request.query)?;
        Ok(Box::new(OpenView { found, request: request.clone(), recording }))
    },
};

struct Steps;

impl RowKind for Steps {
    type Row<'a> = StepEntry<'a>;
}

/// A step, with its line and the beginning of its request.
struct StepEntry<'a> {
    step: &'a RequestStep<'a>,
    began_ns: u64,
    pid: u32,
    line: Option<LocatedLine>,
}

impl Row for StepEntry<'_> {}

impl<'a> StepEntry<'a> {
    fn new(step: &'a RequestStep<'a>, request: &clrscope_analysis::Request<'_>, lines: &mut Lines) -> Self {
        let line = step.method.and_then(|(function, place)| LocatedLine::find(lines, &function, place));
        Self { step, began_ns: request.time_ns, pid: request.process.pid, line }
    }

    /// The method, with its line where the line is known.
    fn method(&self) -> Cell<'a> {
        let Some((function, _)) = self.step.method else { return Cell::Null };
        let line = line_behind(self.line.as_ref().map(|found| &found.line));
        Cell::text(function.name()).said(format!("{}{line}", without_namespace(&function.label())))
    }

    /// Description of the step.
    fn words(&self) -> Cell<'a> {
        let (kind, step) = (self.step.kind, self.step);
        let said = match step.thread.filter(|_| kind == StepKind::Runs) {
            Some(thread) => format!("{} on thread {}", kind.name(), thread.id),
            None => format!("{} {}", kind.name(), without_namespace(&step.what)),
        };
        Cell::text(kind.name()).said(said.trim_end().to_owned())
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Steps> {
    Sheet::new([
        Column::new("time_ns", "time", Kind::Time, |row: &StepEntry<'_>| Cell::Time(row.step.time_ns)),
        Column::new("after_ns", "after", Kind::Time, |row: &StepEntry<'_>| {
            Cell::Time(row.step.time_ns.saturating_sub(row.began_ns))
        }),
        Column::new("duration_ns", "took", Kind::Time, |row: &StepEntry<'_>| match row.step.kind {
            StepKind::Throws => Cell::Null,
            _ => Cell::Time(row.step.duration_ns),
        }),
        Column::new("kind", "", Kind::Text, |row: &StepEntry<'_>| row.words()),
        Column::new("thread_id", "thread", Kind::Number, |row: &StepEntry<'_>| {
            row.step.thread.map_or(Cell::Null, |thread| Cell::Number(thread.id.into()))
        }),
        Column::new("what", "what", Kind::Text, |row: &StepEntry<'_>| match &*row.step.what {
            "" => Cell::Null,
            what => Cell::text(what),
        }),
        Column::new("name", "in", Kind::Text, |row: &StepEntry<'_>| row.method()),
        Column::new("module", "module", Kind::Text, |row: &StepEntry<'_>| {
            row.step.method.map_or(Cell::Null, |(function, _)| Cell::text(function.module()))
        }),
        Column::new("file", "file", Kind::Text, |row: &StepEntry<'_>| {
            row.line.as_ref().map_or(Cell::Null, |found| Cell::Text(found.line.file.clone().into()))
        }),
        Column::new("line", "line", Kind::Number, |row: &StepEntry<'_>| {
            row.line.as_ref().map_or(Cell::Null, |found| Cell::Number(found.line.line.into()))
        }),
        Column::new("samples", "samples", Kind::Count, |row: &StepEntry<'_>| Cell::Count(row.step.samples)),
        Column::new("pending", "pending", Kind::Flag, |row: &StepEntry<'_>| Cell::Flag(row.step.is_pending)),
        Column::new("pid", "process", Kind::Number, |row: &StepEntry<'_>| Cell::Number(row.pid.into()))
            .only_if(processes),
    ])
}

/// Columns in text.
const TEXT: &[(&str, u8)] = &[("after_ns", 0), ("duration_ns", 0), ("kind", 0), ("name", 0)];

struct OpenView<'a> {
    found: Option<RequestSteps<'a>>,
    request: Request,
    recording: &'a Recording,
}

impl OpenView<'_> {
    fn note(&self) -> Option<String> {
        let found = self.found.as_ref()?;
        let others = match found.others {
            0 => None,
            1 => Some("The longest of 2 requests that match the filters.".to_owned()),
            others => Some(format!("The longest of {} requests that match the filters.", count(others + 1))),
        };
        let awaits = (!found.has_awaits).then(|| "To see what it awaited, record with -i awaits, too.".to_owned());
        let sentences: Vec<String> = others.into_iter().chain(awaits).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(self.recording.processes.len() > 1);
        let nothing = "No request to show: no thread is known to have worked for one that matches the filters.";
        if let Some(found) = &self.found {
            let of_request = each(self.recording.processes.len() > 1);
            let single = Single::new(found.request.clone());
            let text = each_text(std::slice::from_ref(&single));
            let section = of_request.section("request", Style::Single, &text);
            renderer.section(&section, &mut |visit| {
                visit(&of_request.entry(&single))?;
                Ok(Tail::default())
            })?;
        }
        let main = sheet.main(&self.request, "rows", Style::Table, TEXT);
        let section = Section { nothing: nothing.to_owned(), what: "steps", title: Title::None, ..main };
        renderer.section(&section, &mut |visit| {
            let Some(found) = &self.found else { return Ok(Tail::default()) };
            let lines = &mut Lines::default();
            let entry = |step, lines: &mut Lines| StepEntry::new(step, &found.request, lines);
            found.steps.iter().try_for_each(|step| visit(&sheet.entry(&entry(step, lines))))?;
            Ok(Tail { left_out: found.left_out as u64, note: self.note() })
        })
    }
}
