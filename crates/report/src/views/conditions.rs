//! The view `conditions`: how the numbers of the other views came about, a fact in each row.

use std::io;

use clrscope_analysis::{Conditions, InliningKnowledge, conditions};
use clrscope_recording::model::Recording;

use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::facts::{Fact, facts};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `conditions`.
pub(super) static VIEW: View = View {
    name: "conditions",
    about: "How the numbers came about: settings, clock, inlining, overhead, losses",
    takes: &[&[Flag::Thread, Flag::Raw]],
    sorts: &[],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| sheet().infos(),
    open: |recording, request, _| {
        let conditions = conditions(recording, &request.query)?;
        Ok(Box::new(OpenView { conditions, request: request.clone(), recording }))
    },
};

struct Facts;

impl RowKind for Facts {
    type Row<'a> = Fact;
}

impl Row for Fact {}

fn sheet<'c>() -> Sheet<'c, Facts> {
    let bound = |key, title, at: usize| {
        Column::new(key, title, Kind::Time, move |fact: &Fact| {
            Cell::measured(fact.bounds_ns.map(|bounds_ns| bounds_ns[at]))
        })
    };
    let inlining = |key, title, of: fn(&InliningKnowledge) -> u64| {
        Column::new(key, title, Kind::Count, move |fact: &Fact| {
            fact.inlining.as_ref().map_or(Cell::Absent, |known| Cell::Count(of(known)))
        })
    };
    Sheet::new([
        Column::new("condition", "condition", Kind::Text, |fact: &Fact| Cell::text(fact.key)),
        Column::new("text", "fact", Kind::Text, |fact: &Fact| Cell::text(&fact.text)),
        Column::new("warning", "warning", Kind::Flag, |fact: &Fact| Cell::Flag(fact.is_warning)),
        Column::new("time_ns", "time", Kind::Time, |fact: &Fact| Cell::measured(fact.time_ns)),
        bound("low_ns", "at least", 0),
        bound("high_ns", "at most", 1),
        Column::new("share", "share", Kind::Share, |fact: &Fact| fact.share.map_or(Cell::Absent, Cell::Share)),
        inlining("samples_not_inlined", "samples without inlined methods", |known| known.none),
        inlining("samples_inlined", "samples with inlined methods", |known| known.named),
        inlining("samples_inlining_unknown", "samples without knowledge", |known| known.unknown),
        inlining("older_methods", "older methods", |known| known.older_methods),
        Column::new("samples_awaiter_unknown", "samples without awaiter", Kind::Count, |fact: &Fact| {
            fact.unknown_awaiter.map_or(Cell::Absent, Cell::Count)
        }),
    ])
}

struct OpenView<'a> {
    conditions: Conditions<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet();
        let section: Section = sheet.main(&self.request, "rows", Style::Facts, &[("condition", 0), ("text", 0)]);
        renderer.section(&section, &mut |visit| {
            let facts = facts(self.recording, &self.conditions);
            facts.iter().try_for_each(|fact| visit(&sheet.entry(fact)))?;
            Ok(Tail::default())
        })
    }
}
