//! Head of a comparison of recordings that were chosen by labels: three lines about many
//! recordings.

use std::collections::BTreeSet;
use std::io;

use clrscope_analysis::{
    Change, Chosen, NamedRecording, Per, Resource, Side, SideTotal, Sides, Unit, observed_unix_ns,
};
use jiff::Timestamp;

use super::columns::sentence;
use super::told::{Fact, lost, side};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::units::{count, time};
use crate::render::{Renderer, Style, Tail};

/// Maximum number of unreadable recordings that are named.
const MOST_NAMED: usize = 3;

/// Sums over the recordings of a side.
struct SideSums {
    side: Side,
    labels: String,
    recordings: u64,
    hosts: BTreeSet<String>,
    /// Total recorded time of the recordings.
    recorded_ns: u64,
    first_unix_ns: u64,
    last_unix_ns: u64,
}

struct SidesOfLabels;

impl RowKind for SidesOfLabels {
    type Row<'a> = SideSums;
}

impl Row for SideSums {}

/// The facts: what is compared, the total amount, the largest change, and what is missing.
pub(super) fn facts(sides: &Sides<'_>, chosen: &Chosen, total: Option<&SideTotal>, most: Option<String>) -> Vec<Fact> {
    let [before, after] = sums(sides, chosen);
    let compared = format!("{} with {} UTC", of_side(&before), of_side(&after));
    let mut all = vec![("compared", compared, false)];
    if let Some(SideTotal { metric, change }) = total {
        all.push((metric.title, format!("per {}: {}", chosen.per.name(), sentence(change, metric.unit)), false));
    }
    if let Some(most) = most {
        let per = if total.is_none() { format!("per {}: ", chosen.per.name()) } else { String::new() };
        all.push(("most", format!("{per}{most}"), false));
    }
    all.extend(left_out(chosen));
    all.extend(losses(sides));
    all
}

/// The largest change in words: the name of what changed, its change and its unit. `None` if the
/// sides are not merged from several recordings.
pub(super) fn most_changed(sides: &Sides<'_>, largest: Option<(String, &Change, Unit)>, what: &str) -> Option<String> {
    sides.chosen.as_ref()?;
    Some(largest.map_or_else(
        || format!("no {what} changed beyond chance"),
        |(name, change, unit)| format!("{name}: {}", sentence(change, unit)),
    ))
}

/// Shows the sums of both sides; in JSON they are a list.
pub(super) fn show(sides: &Sides<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
    let Some(chosen) = &sides.chosen else { return Ok(()) };
    let number = |key, kind, of: fn(&SideSums) -> u64| {
        Column::new(key, key, kind, move |row: &SideSums| match kind {
            Kind::Time => Cell::Time(of(row)),
            _ => Cell::Count(of(row)),
        })
    };
    let per = chosen.per.name();
    let sheet: Sheet<'_, SidesOfLabels> = Sheet::new([
        Column::new("side", "side", Kind::Text, |row: &SideSums| Cell::text(side(row.side))),
        Column::new("labels", "labels", Kind::Text, |row: &SideSums| Cell::text(&row.labels)),
        Column::new("per", "per", Kind::Text, move |_: &SideSums| Cell::text(per)),
        number("recordings", Kind::Count, |row| row.recordings),
        number("hosts", Kind::Count, |row| row.hosts.len() as u64),
        number("recorded_ns", Kind::Time, |row| row.recorded_ns),
        Column::new("first", "first", Kind::Text, |row: &SideSums| Cell::Text(moment(row.first_unix_ns).into())),
        Column::new("last", "last", Kind::Text, |row: &SideSums| Cell::Text(moment(row.last_unix_ns).into())),
    ]);
    let sums = sums(sides, chosen);
    renderer.section(&sheet.section("sides", Style::Table, &[]), &mut |visit| {
        sums.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
        Ok(Tail::default())
    })
}

fn sums(sides: &Sides<'_>, chosen: &Chosen) -> [SideSums; 2] {
    [(Side::Before, &sides.before, &chosen.before), (Side::After, &sides.after, &chosen.after)].map(
        |(side, recordings, labels)| {
            let times: Vec<_> = recordings.iter().map(|one| observed_unix_ns(one.recording)).collect();
            SideSums {
                side,
                labels: labels.clone(),
                recordings: recordings.len() as u64,
                hosts: hosts(recordings),
                recorded_ns: times.iter().fold(0, |sum: u64, time| sum.saturating_add(time.end - time.start)),
                first_unix_ns: times.iter().map(|time| time.start).min().unwrap_or(0),
                last_unix_ns: times.iter().map(|time| time.end).max().unwrap_or(0),
            }
        },
    )
}

fn hosts(recordings: &[NamedRecording<'_>]) -> BTreeSet<String> {
    let processes = recordings.iter().flat_map(|one| one.recording.processes.iter().map(|of| (one.recording, of)));
    let named = processes.map(|(recording, process)| Resource::from_process(recording, process).host().into_owned());
    named.filter(|host| !host.is_empty()).collect()
}

/// A side in words: `12 recordings of 3 hosts (12.0 min, 30 Nov 08:00 to 09:00)`.
fn of_side(side: &SideSums) -> String {
    let recordings = some(side.recordings, "recording");
    let hosts = some(side.hosts.len() as u64, "host");
    let [first, last] = [side.first_unix_ns, side.last_unix_ns].map(of_unix);
    let day = |time: Timestamp| time.strftime("%d %b").to_string();
    let end = if day(first) == day(last) { last.strftime("%H:%M") } else { last.strftime("%d %b %H:%M") };
    let first = first.strftime("%d %b %H:%M");
    format!("{recordings} of {hosts} ({}, {first} to {end})", time(side.recorded_ns))
}

fn of_unix(ns: u64) -> Timestamp {
    Timestamp::from_nanosecond(ns.into()).unwrap_or_default()
}

/// A time as RFC 3339.
fn moment(unix_ns: u64) -> String {
    of_unix(unix_ns).to_string()
}

fn left_out(chosen: &Chosen) -> Option<Fact> {
    let all = &chosen.unreadable;
    let named = all.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {} more", count(more as u64)),
    };
    (!all.is_empty()).then(|| {
        ("left out", format!("{}, which can't be read: {named}{more}", some(all.len() as u64, "recording")), true)
    })
}

/// A number of things: `12 recordings`.
fn some(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

fn losses(sides: &Sides<'_>) -> Option<Fact> {
    let lost: Vec<u64> = sides.each().map(|(_, one)| lost(one.recording)).filter(|lost| *lost > 0).collect();
    let sum = lost.iter().fold(0, |sum: u64, lost| sum.saturating_add(*lost));
    let text = || {
        format!("{} lost {} items, which are missing in the numbers", some(lost.len() as u64, "recording"), count(sum))
    };
    (!lost.is_empty()).then(|| ("losses", text(), true))
}

/// What amounts are measured per, for titles: ` per hour` or ` per recording`; empty if the sides
/// are not merged from several recordings.
pub(super) fn per(sides: &Sides<'_>) -> &'static str {
    match sides.chosen.as_ref().map(|chosen| chosen.per) {
        None => "",
        Some(Per::Hour) => " per hour",
        Some(Per::Recording) => " per recording",
    }
}
