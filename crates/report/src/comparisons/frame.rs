//! Head and foot of a comparison: the recordings, the total amount, and the gates.

use std::io;

use clrscope_analysis::{Conditions, Judgement, NamedRecording, Side, SideTotal, Sides};
use clrscope_recording::model::Recording;

use super::columns::{columns, own_keys, sentence};
use super::told::{Fact, lost, side};
use super::{gates, merged};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::{count, time};
use crate::render::{Renderer, Style, Tail};
use crate::view::Answer;

/// A view's answer, with the gates shown above it.
pub(super) struct FramedAnswer<'a> {
    pub(super) inner: Box<dyn Answer + 'a>,
    pub(super) judgements: Vec<Judgement>,
}

impl Answer for FramedAnswer<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        self.inner.conditions()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        self.inner.sections(renderer)?;
        gates::show(&self.judgements, renderer)
    }
}

/// Maximum number of recordings of a side that are named; the others are only counted.
const MOST_NAMED: usize = 3;

struct Recordings;

impl RowKind for Recordings {
    type Row<'a> = (Side, &'a NamedRecording<'a>);
}

impl Row for (Side, &NamedRecording<'_>) {}

struct Facts;

impl RowKind for Facts {
    type Row<'a> = Fact;
}

impl Row for Fact {}

struct Totals;

impl RowKind for Totals {
    type Row<'a> = SideTotal;
}

impl Row for SideTotal {}

/// Shows the compared recordings: as lists in JSON, as sentences in text output. `most` is the
/// largest change, for recordings that were chosen by labels.
pub(super) fn show(
    sides: &Sides<'_>,
    total: Option<&SideTotal>,
    most: Option<String>,
    renderer: &mut dyn Renderer,
) -> io::Result<()> {
    show_facts(sides, total, most, renderer)?;
    merged::show(sides, renderer)?;
    show_recordings(sides, renderer)?;
    let Some(total) = total else { return Ok(()) };
    let unit = total.metric.unit;
    let mut all = vec![Column::new("metric", "metric", Kind::Text, |row: &SideTotal| Cell::text(row.metric.name))];
    all.extend(columns::<Totals>(own_keys(unit), unit, |row: &SideTotal| &row.change));
    let sheet = Sheet::new(all);
    renderer.section(&sheet.section("totals", Style::Table, &[]), &mut |visit| {
        visit(&sheet.entry(total))?;
        Ok(Tail::default())
    })
}

fn show_facts(
    sides: &Sides<'_>,
    total: Option<&SideTotal>,
    most: Option<String>,
    renderer: &mut dyn Renderer,
) -> io::Result<()> {
    let sheet: Sheet<'_, Facts> = Sheet::new([
        Column::new("condition", "condition", Kind::Text, |row: &Fact| Cell::text(row.0)),
        Column::new("text", "fact", Kind::Text, |row: &Fact| Cell::text(&row.1)),
        Column::new("warning", "warning", Kind::Flag, |row: &Fact| Cell::Flag(row.2)),
    ]);
    let facts = match &sides.chosen {
        Some(chosen) => merged::facts(sides, chosen, total, most).into_iter().chain(differences(sides)).collect(),
        None => facts(sides, total),
    };
    renderer.section(&sheet.section("facts", Style::Facts, &[("condition", 0), ("text", 0)]), &mut |visit| {
        facts.iter().try_for_each(|fact| visit(&sheet.entry(fact)))?;
        Ok(Tail::default())
    })
}

fn show_recordings(sides: &Sides<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
    let text = |key, of: fn(&NamedRecording<'_>) -> String| {
        Column::new(key, key, Kind::Text, move |row: &(Side, &NamedRecording<'_>)| Cell::Text(of(row.1).into()))
    };
    let sheet: Sheet<'_, Recordings> = Sheet::new([
        Column::new("side", "side", Kind::Text, |row: &(Side, &NamedRecording<'_>)| Cell::text(side(row.0))),
        text("file", |one| one.name.clone()),
        text("command", |one| one.recording.run.command.join(" ")),
        text("recorded", |one| one.recording.run.filled.text().to_owned()),
        text("runtime", |one| runtimes(one.recording).join(", ")),
        Column::new("duration_ns", "duration", Kind::Time, |row: &(Side, &NamedRecording<'_>)| {
            Cell::Time(row.1.recording.run.duration_ns)
        }),
        Column::new("lost", "lost", Kind::Count, |row: &(Side, &NamedRecording<'_>)| {
            Cell::Count(lost(row.1.recording))
        }),
    ]);
    renderer.section(&sheet.section("recordings", Style::Table, &[]), &mut |visit| {
        for (side, one) in sides.each() {
            visit(&sheet.entry(&(side, one)))?;
        }
        Ok(Tail::default())
    })
}

/// What was recorded, as the request without its labels: they only tell whose recording it is.
fn recorded(recording: &Recording) -> String {
    let parts = recording.run.filled.text().split(';').filter(|part| !part.starts_with("label="));
    parts.collect::<Vec<_>>().join(";").replace(',', ", ")
}

fn runtimes(recording: &Recording) -> Vec<String> {
    let mut all: Vec<String> = recording.processes.iter().map(|process| process.runtime.clone()).collect();
    all.sort();
    all.dedup();
    all
}

fn facts(sides: &Sides<'_>, total: Option<&SideTotal>) -> Vec<Fact> {
    let mut all = vec![("before", of_side(&sides.before), false), ("after", of_side(&sides.after), false)];
    all.extend(differences(sides));
    let losing = sides.each().filter(|(_, one)| lost(one.recording) > 0);
    all.extend(losing.map(|(_, one)| {
        let number = count(lost(one.recording));
        ("losses", format!("{}: {number} items were lost, and are missing in its numbers", one.name), true)
    }));
    let Some(SideTotal { metric, change }) = total else { return all };
    all.push((metric.title, sentence(change, metric.unit), false));
    if !change.is_exact() && (sides.before.len() == 1 || sides.after.len() == 1) {
        let text = "of single recordings cover the error of measurement, not how runs differ; for that, give several \
                    on each side (clrscope diff A1 A2 A3 -- B1 B2 B3)";
        all.push(("intervals", text.to_owned(), false));
    }
    all
}

/// Facts about further differences between the sides: the runtimes, and what was recorded.
fn differences(sides: &Sides<'_>) -> Vec<Fact> {
    let mut all = Vec::new();
    let differs = |of: fn(&Recording) -> String| {
        let on = |all: &[NamedRecording<'_>]| {
            let mut found: Vec<String> = all.iter().map(|one| of(one.recording)).collect();
            found.sort();
            found.dedup();
            found
        };
        let (before, after) = (on(&sides.before), on(&sides.after));
        (before != after || before.len() > 1).then(|| [before.join("; "), after.join("; ")])
    };
    if let Some([before, after]) = differs(|recording| runtimes(recording).join(", ")) {
        all.push(("runtime", format!("differs: {before} before, {after} after"), true));
    }
    if let Some([before, after]) = differs(recorded) {
        all.push(("recorded", format!("differently: {before} before, {after} after"), true));
    }
    all
}

/// The recordings of a side in a sentence.
fn of_side(all: &[NamedRecording<'_>]) -> String {
    let mut commands: Vec<String> = all.iter().map(|one| one.recording.run.command.join(" ")).collect();
    commands.sort();
    commands.dedup();
    let names: Vec<&str> = all.iter().take(MOST_NAMED).map(|one| &*one.name).collect();
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let number = if all.len() > 1 { format!("{} recordings, ", all.len()) } else { String::new() };
    let ran = match all {
        [only] => format!(", {}", time(only.recording.run.duration_ns)),
        _ => String::new(),
    };
    format!("{number}{}{more}: {}{ran}", names.join(", "), commands.join("; "))
}
