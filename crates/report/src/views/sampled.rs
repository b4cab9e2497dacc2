//! Columns and sections of samples for rows that are not functions.

use std::io;

use clrscope_analysis::{Amount, Conditions, KindRow, SampleCount, StateRow, Summary, share_bounds};

use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Renderer, Section, Style, Tail, Title};

/// A row with samples.
pub(super) trait SampledRow {
    /// Amount of the metric in the row.
    fn amount(&self) -> Amount;

    /// Conditions of the view, with the sums for shares.
    fn conditions(&self) -> &Conditions<'_>;

    /// The row's own share of all samples, by weight.
    fn self_share(&self) -> f64 {
        self.conditions().share(self.amount().own)
    }
}

/// Columns of samples. JSON and CSV show them by default if `samples` is true.
pub(super) fn sampled_columns<'c, K: RowKind + 'c>(samples: bool) -> Vec<Column<'c, K>>
where
    for<'a> K::Row<'a>: SampledRow,
{
    let time = |key, title, of: fn(Amount) -> u64| {
        Column::new(key, title, Kind::Time, move |row: &K::Row<'_>| Cell::Time(of(row.amount())))
    };
    let number = |key, title, of: fn(SampleCount) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &K::Row<'_>| Cell::Count(of(row.amount().samples)))
    };
    let share = |key, title, of: fn(f64, u64) -> f64| {
        Column::new(key, title, Kind::Share, move |row: &K::Row<'_>| {
            Cell::Share(of(row.self_share(), row.conditions().samples))
        })
    };
    let all = [
        time("self_ns", "self", |amount| amount.own),
        time("total_ns", "total", |amount| amount.total),
        number("self_samples", "samples", |samples| samples.own),
        number("total_samples", "samples in all", |samples| samples.total),
        share("self_share", "share", |share, _| share),
        share("self_share_low", "at least", |share, samples| share_bounds(share, samples).0),
        share("self_share_high", "at most", |share, samples| share_bounds(share, samples).1),
    ];
    all.into_iter().map(|column| column.only_if(samples)).collect()
}

/// Columns of samples in text output, followed by the columns that name the row.
pub(super) fn sampled_text(conditions: &Conditions<'_>, names: &[(&'static str, u8)]) -> Vec<(&'static str, u8)> {
    let mut text = shown(&[
        ("self_ns", 0, true),
        ("self_share", 0, true),
        ("self_share_low", 5, true),
        ("self_share_high", 5, true),
        ("total_ns", 3, names.iter().any(|(key, _)| *key == "module")),
        ("self_samples", 4, true),
        ("pid", 2, conditions.processes.len() > 1),
    ]);
    text.extend(names);
    text
}

/// Section about kinds of work.
struct Kinds;

impl RowKind for Kinds {
    type Row<'a> = KindEntry;
}

/// A kind, and the sums for its shares.
struct KindEntry {
    row: KindRow,
    samples: u64,
    time_ns: u64,
}

impl Row for KindEntry {}

impl KindEntry {
    fn share(&self) -> f64 {
        self.row.time_ns as f64 / self.time_ns.max(1) as f64
    }
}

/// Shows the CPU time by kind of work.
pub(super) fn kinds(view: &Summary<'_>, is_one_table: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
    if view.kinds.is_empty() {
        return Ok(());
    }
    let bound = |key, title, of: fn((f64, f64)) -> f64| {
        Column::new(key, title, Kind::Share, move |row: &KindEntry| {
            Cell::Share(of(share_bounds(row.share(), row.samples)))
        })
    };
    let sheet: Sheet<'_, Kinds> = Sheet::new([
        Column::new("kind", "kind", Kind::Text, |row: &KindEntry| Cell::text(row.row.kind.name())),
        Column::new("samples", "samples", Kind::Count, |row: &KindEntry| Cell::Count(row.row.samples)),
        Column::new("time_ns", "cpu", Kind::Time, |row: &KindEntry| Cell::Time(row.row.time_ns)),
        Column::new("share", "share", Kind::Share, |row: &KindEntry| Cell::Share(row.share())),
        bound("share_low", "at least", |bounds| bounds.0),
        bound("share_high", "at most", |bounds| bounds.1),
        Column::new("text", "what", Kind::Text, |row: &KindEntry| Cell::text(row.row.kind.title())),
    ]);
    let all = [("time_ns", 0), ("share", 0), ("share_low", 5), ("share_high", 5), ("samples", 4), ("text", 0)];
    let text = if is_one_table { &[][..] } else { &all };
    let title = Title::Bold("Where the CPU time went".to_owned());
    let section = Section { title, ..sheet.section("kinds", Style::Table, text) };
    let sum = |of: fn(&KindRow) -> u64| view.kinds.iter().map(of).fold(0_u64, u64::saturating_add);
    let (samples, time_ns) = (sum(|row| row.samples), sum(|row| row.time_ns));
    renderer.section(&section, &mut |visit| {
        view.kinds.iter().try_for_each(|&row| visit(&sheet.entry(&KindEntry { row, samples, time_ns })))?;
        Ok(Tail::default())
    })
}

/// Section about the states of threads.
struct States;

impl RowKind for States {
    type Row<'a> = StateEntry<'a>;
}

/// A state, and the total time for its share.
struct StateEntry<'a> {
    row: &'a StateRow<'a>,
    time_ns: u64,
}

impl Row for StateEntry<'_> {}

/// Shows the wall time by thread state.
pub(super) fn states(view: &Summary<'_>, is_one_table: bool, renderer: &mut dyn Renderer) -> io::Result<()> {
    if view.states.is_empty() {
        return Ok(());
    }
    let sheet: Sheet<'_, States> = Sheet::new([
        Column::new("state", "state", Kind::Text, |row: &StateEntry<'_>| Cell::text(row.row.state.name())),
        Column::new("samples", "samples", Kind::Count, |row: &StateEntry<'_>| Cell::Count(row.row.samples)),
        Column::new("time_ns", "thread time", Kind::Time, |row: &StateEntry<'_>| Cell::Time(row.row.time_ns)),
        Column::new("share", "share", Kind::Share, |row: &StateEntry<'_>| {
            Cell::Share(row.row.time_ns as f64 / row.time_ns.max(1) as f64)
        }),
        Column::new("threads", "threads", Kind::Count, |row: &StateEntry<'_>| Cell::Count(row.row.threads)),
        Column::new("most_ns", "of it", Kind::Time, |row: &StateEntry<'_>| {
            Cell::measured(row.row.most.map(|(_, ns)| ns))
        }),
        Column::new("most_below", "below", Kind::Function, |row: &StateEntry<'_>| match row.row.most {
            Some((function, _)) => Cell::function(&function),
            None => Cell::Absent,
        }),
    ]);
    let most = view.states.iter().any(|row| row.most.is_some());
    let all = shown(&[
        ("time_ns", 0, true),
        ("share", 0, true),
        ("threads", 1, true),
        ("samples", 4, true),
        ("state", 0, true),
        ("most_ns", 2, most),
        ("most_below", 2, most),
    ]);
    let text = if is_one_table { &[][..] } else { &all };
    let title = Title::Bold("What threads did, by wall time".to_owned());
    let section = Section { title, ..sheet.section("states", Style::Table, text) };
    let time_ns = view.states.iter().map(|row| row.time_ns).fold(0_u64, u64::saturating_add);
    renderer.section(&section, &mut |visit| {
        view.states.iter().try_for_each(|row| visit(&sheet.entry(&StateEntry { row, time_ns })))?;
        Ok(Tail::default())
    })
}
