//! Columns of amounts on two sides.

use clrscope_analysis::{Change, Level, Metric, Unit};

use crate::cell::{Cell, Kind};
use crate::column::{Column, RowKind};
use crate::render::text::units::{bytes, count, share, signed, time};

/// Keys of the columns of one amount, in the order of [`columns`].
pub(super) type Keys = [&'static str; 11];

/// Makes keys that end in the unit.
macro_rules! keys {
    ($before:literal, $after:literal, $difference:literal, $growth:literal, $change:literal, $ending:literal) => {
        [
            concat!($before, $ending),
            concat!($before, "_low", $ending),
            concat!($before, "_high", $ending),
            concat!($after, $ending),
            concat!($after, "_low", $ending),
            concat!($after, "_high", $ending),
            concat!($difference, $ending),
            concat!($difference, "_low", $ending),
            concat!($difference, "_high", $ending),
            $growth,
            $change,
        ]
    };
}
pub(super) use keys;

/// Keys of the columns of a row's main amount, which depend on the unit.
pub(super) const fn own_keys(unit: Unit) -> Keys {
    match unit {
        Unit::Nanoseconds => keys!("before", "after", "difference", "growth", "change", "_ns"),
        Unit::Bytes => keys!("before", "after", "difference", "growth", "change", "_bytes"),
        Unit::Count => keys!("before", "after", "difference", "growth", "change", ""),
    }
}

/// Keys of the columns of a row's total, which depend on the unit.
pub(super) const fn total_keys(unit: Unit) -> Keys {
    match unit {
        Unit::Nanoseconds => {
            keys!("total_before", "total_after", "total_difference", "total_growth", "total_change", "_ns")
        }
        Unit::Bytes => {
            keys!("total_before", "total_after", "total_difference", "total_growth", "total_change", "_bytes")
        }
        Unit::Count => keys!("total_before", "total_after", "total_difference", "total_growth", "total_change", ""),
    }
}

/// An amount in words.
pub(super) fn words(amount: f64, unit: Unit) -> String {
    let whole = amount.max(0.0).round() as u64;
    match unit {
        _ if amount.is_infinite() => "any number".to_owned(),
        Unit::Nanoseconds => time(whole),
        Unit::Bytes => bytes(whole),
        Unit::Count => count(whole),
    }
}

/// A difference in words, with its sign.
pub(super) fn difference_words(difference: f64, unit: Unit) -> String {
    let of = match unit {
        Unit::Nanoseconds => time,
        Unit::Bytes => bytes,
        Unit::Count => count,
    };
    if difference.is_infinite() {
        return if difference > 0.0 { "any more" } else { "any less" }.to_owned();
    }
    signed(difference.round() as i64, of)
}

/// Growth in words: `+5.0 %`, or `new` if the first side has nothing.
pub(super) fn growth_words(change: &Change) -> String {
    match change.growth() {
        None if change.after.median > 0.0 => "new".to_owned(),
        None => String::new(),
        Some(growth) => {
            let sign = if growth < 0.0 { "-" } else { "+" };
            format!("{sign}{}", share(growth.abs()))
        }
    }
}

/// The confidence interval of a difference in words.
pub(super) fn range_words(change: &Change, unit: Unit) -> String {
    if change.is_exact() {
        return "exact".to_owned();
    }
    let [low, high] = [change.low, change.high].map(|bound| difference_words(bound, unit));
    format!("{low} to {high}")
}

fn amount_cell(amount: f64, unit: Unit) -> Cell<'static> {
    let whole = amount.max(0.0).round() as u64;
    match unit {
        _ if amount.is_infinite() => Cell::Null,
        Unit::Nanoseconds => Cell::Time(whole),
        Unit::Bytes => Cell::Bytes(whole),
        Unit::Count => Cell::Count(whole),
    }
}

fn difference_cell(difference: f64, unit: Unit) -> Cell<'static> {
    match difference.is_infinite() {
        true => Cell::Null,
        false => Cell::Change(difference.round() as i64).said(difference_words(difference, unit)),
    }
}

const fn kind(unit: Unit) -> Kind {
    match unit {
        Unit::Nanoseconds => Kind::Time,
        Unit::Bytes => Kind::Bytes,
        Unit::Count => Kind::Count,
    }
}

/// The columns of an amount: both sides and the difference, each with its interval, growth and
/// judgement.
pub(super) fn columns<'c, K: RowKind + 'c>(
    keys: Keys,
    unit: Unit,
    of: impl for<'r, 'a> Fn(&'r K::Row<'a>) -> &'r Change + Copy + 'c,
) -> Vec<Column<'c, K>> {
    let kind = kind(unit);
    let [before, before_low, before_high, after, after_low, after_high, difference, low, high, growth, change] = keys;
    let level = |key, title, side: fn(&Change) -> &Level, part: fn(&Level) -> f64| {
        Column::new(key, title, kind, move |row: &K::Row<'_>| amount_cell(part(side(of(row))), unit))
    };
    let differs = |key, title, part: fn(&Change) -> f64| {
        Column::new(key, title, kind, move |row: &K::Row<'_>| difference_cell(part(of(row)), unit))
    };
    vec![
        level(before, "before", |change| &change.before, |level| level.median),
        level(before_low, "before from", |change| &change.before, |level| level.low),
        level(before_high, "before to", |change| &change.before, |level| level.high),
        level(after, "after", |change| &change.after, |level| level.median),
        level(after_low, "after from", |change| &change.after, |level| level.low),
        level(after_high, "after to", |change| &change.after, |level| level.high),
        differs(difference, "difference", |change| change.difference),
        differs(low, "difference from", |change| change.low),
        differs(high, "difference to", |change| change.high),
        Column::new(growth, "growth", Kind::Share, move |row: &K::Row<'_>| match of(row).growth() {
            Some(growth) => Cell::Share(growth).said(growth_words(of(row))),
            None => Cell::Null.said(growth_words(of(row))),
        }),
        Column::new(change, "change", Kind::Verdict, move |row: &K::Row<'_>| Cell::text(of(row).verdict.name())),
    ]
}

/// A column for text output with the confidence interval of a difference.
pub(super) fn range_column<'c, K: RowKind + 'c>(
    key: &'static str,
    unit: Unit,
    of: impl for<'r, 'a> Fn(&'r K::Row<'a>) -> &'r Change + Copy + 'c,
) -> Column<'c, K> {
    Column::new(key, "95 %", Kind::Text, move |row: &K::Row<'_>| Cell::Text(range_words(of(row), unit).into()))
        .on_request()
}

/// A sentence about an amount on both sides: `5,000 before, 5,100 after: +100 (+2.0 %), exact`.
pub(super) fn sentence(change: &Change, unit: Unit) -> String {
    let [before, after] = [change.before, change.after].map(|level| {
        let [median, low, high] = [level.median, level.low, level.high].map(|amount| words(amount, unit));
        if level.is_exact() { median } else { format!("{median} ({low} to {high})") }
    });
    let growth = match growth_words(change) {
        growth if growth.is_empty() => growth,
        growth => format!(" ({growth})"),
    };
    let judged = match (change.is_exact(), change.verdict.is_change()) {
        (true, _) => ", exact".to_owned(),
        (false, true) => format!(", in 95 of 100 cases {}", range_words(change, unit)),
        (false, false) => format!(", within the noise: {}", range_words(change, unit)),
    };
    let difference = difference_words(change.difference, unit);
    let difference =
        if difference == "0" || difference.starts_with("0 ") { "no difference".to_owned() } else { difference };
    format!("{before} before, {after} after: {difference}{growth}{judged}")
}

/// The unit of the rows' metric; nanoseconds if no metric is named.
pub(super) fn unit_of(metric: Option<&'static Metric>) -> Unit {
    metric.map_or(Unit::Nanoseconds, |metric| metric.unit)
}
