//! The view `summary`: what stands out, and the first functions.

use std::io;

use clrscope_analysis::{Conditions, Finding, Sort, Summary, Totals, summary};

use super::functions::{self, FunctionEntry, SORTS};
use super::timed::Present;
use super::{LOG_FLAGS, NO_METRIC, THREADS_APART, TIMES, no_functions};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::count;
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::Request;
use crate::view::{Answer, View};

/// The view `summary`.
pub(super) static VIEW: View = View {
    name: "summary",
    about: "What stands out, and the first functions",
    refuses: &[LOG_FLAGS, NO_METRIC, TIMES, THREADS_APART],
    sorts: &SORTS,
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| functions::sheet(Present::all(None)).infos(),
    open: |recording, request| {
        let view = summary(recording, &request.query)?;
        Ok(Box::new(Opened { view, request: request.clone(), processes: recording.processes.len() > 1 }))
    },
};

/// What stands out.
struct Findings;

impl RowKind for Findings {
    type Row<'a> = Finding;
}

impl Row for Finding {}

fn findings<'c>() -> Sheet<'c, Findings> {
    Sheet::new([
        Column::new("text", "", Kind::Text, |finding: &Finding| Cell::text(&finding.text)),
        Column::new("share", "share", Kind::Share, |finding: &Finding| Cell::Share(finding.share)),
    ])
}

struct Opened<'a> {
    view: Summary<'a>,
    request: Request,
    processes: bool,
}

impl Opened<'_> {
    fn title(&self) -> String {
        let (first, all) = (self.view.top.len(), count(self.view.functions as u64));
        format!("The first {first} of {all} functions by {}", order(self.sort()))
    }

    fn sort(&self) -> Sort {
        self.request.query.sort.unwrap_or(Sort::Exclusive)
    }

    fn note(&self) -> Option<String> {
        let is_waiting = self.sort() == Sort::Exclusive && mostly_waiting(&self.view.conditions.totals);
        let note = "Most of this time threads waited; --sort exclusive-cpu shows where they worked.";
        is_waiting.then(|| note.to_owned())
    }
}

impl Answer for Opened<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = findings();
        let title = Title::Bold("What stands out".to_owned());
        let section = Section { title, ..sheet.section("findings", Style::Notes, &[("text", 0)]) };
        renderer.section(&section, &mut |visit| {
            self.view.findings.iter().try_for_each(|finding| visit(&sheet.entry(finding)))?;
            Ok(Tail::default())
        })?;
        let (top, conditions) = (&self.view.top, &self.view.conditions);
        let (cpu, metric) = (conditions.totals.cpu_ns.is_some(), conditions.metric);
        let sheet = functions::sheet(Present { processes: self.processes, threads: false, cpu, metric });
        let section = Section {
            title: Title::Bold(self.title()),
            nothing: no_functions(conditions),
            what: "functions",
            ..sheet.main(&self.request, "top", Style::Table, &functions::text(top.iter(), conditions))
        };
        renderer.section(&section, &mut |visit| {
            top.iter().try_for_each(|row| visit(&sheet.entry(&FunctionEntry { row, conditions })))?;
            Ok(Tail { left_out: 0, note: self.note() })
        })
    }
}

/// What rows are ordered by, in words.
fn order(sort: Sort) -> &'static str {
    match sort {
        Sort::Own | Sort::Exclusive => "their own time",
        Sort::ExclusiveCpu => "their own CPU time",
        Sort::Total | Sort::Inclusive => "the time of all they call",
        Sort::InclusiveCpu => "the CPU time of all they call",
        Sort::Callee => "the time in what they call",
        Sort::Suspended => "the time they stood suspended",
        Sort::Profiler => "the profiler's share",
        Sort::Calls => "their calls",
        Sort::Recursion => "the depth of their recursion",
        Sort::Name => "name",
        Sort::Module => "module",
    }
}

/// Whether threads stood still for most of the time, so that wall time says little about work.
fn mostly_waiting(totals: &Totals) -> bool {
    totals.cpu_ns.is_some_and(|cpu| cpu < totals.functions_ns.saturating_sub(totals.suspended_ns) / 2)
}
