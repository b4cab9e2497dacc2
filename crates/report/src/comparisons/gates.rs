//! Gates below a comparison, each with its result.

use std::io;

use clrscope_analysis::{Judgement, Level, Outcome};

use super::columns::sentence;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::share;
use crate::render::{Renderer, Style, Tail, Title};

struct Gates;

impl RowKind for Gates {
    type Row<'a> = Judgement;
}

impl Row for Judgement {}

/// Shows the gates, if there are any.
pub(super) fn show(all: &[Judgement], renderer: &mut dyn Renderer) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let number = |key, title, of: fn(&Judgement) -> f64| {
        Column::new(key, title, Kind::Nested, move |row: &Judgement| match of(row) {
            value if !value.is_finite() => Cell::Null,
            value => Cell::Nested(serde_json::json!(value)),
        })
    };
    let sheet: Sheet<'_, Gates> = Sheet::new([
        Column::new("gate", "gate", Kind::Text, |row: &Judgement| Cell::text(&row.gate.text)),
        Column::new("outcome", "outcome", Kind::Text, |row: &Judgement| Cell::text(row.outcome.name())),
        number("before", "before", |row| row.change.before.median),
        number("before_low", "before from", |row| row.change.before.low),
        number("before_high", "before to", |row| row.change.before.high),
        number("after", "after", |row| row.change.after.median),
        number("after_low", "after from", |row| row.change.after.low),
        number("after_high", "after to", |row| row.change.after.high),
        Column::new("text", "text", Kind::Text, |row: &Judgement| Cell::Text(found(row).into())),
        Column::new("sentence", "", Kind::Text, |row: &Judgement| Cell::Text(gate_words(row).into())).on_request(),
    ]);
    let mut section = sheet.section("gates", Style::Notes, &[("sentence", 0)]);
    section.title = Title::Bold("Gates".to_owned());
    renderer.section(&section, &mut |visit| {
        all.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
        Ok(Tail::default())
    })
}

/// The amounts of a gate in words.
fn found(judgement: &Judgement) -> String {
    let gate = &judgement.gate;
    match gate.is_share {
        true => {
            let change = judgement.change;
            let of = |level: Level| {
                let [median, low, high] = [level.median, level.low, level.high].map(share);
                if level.is_exact() { median } else { format!("{median} ({low} to {high})") }
            };
            format!("{} before, {} after", of(change.before), of(change.after))
        }
        false => sentence(&judgement.change, gate.metric.unit),
    }
}

/// A gate and its result in one line, for output that shows nothing else.
#[must_use]
pub fn gate_words(judgement: &Judgement) -> String {
    let outcome = match judgement.outcome {
        Outcome::Passed => "passed",
        Outcome::Unclear => "passed, though noise hides whether its limit was exceeded",
        Outcome::Failed => "failed",
    };
    let Judgement { gate, .. } = judgement;
    format!("{} {outcome}: {}, {}", gate.text, gate.measured(), found(judgement))
}
