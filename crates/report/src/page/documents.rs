//! Documents of a page: the packed documents of the views, and the members common to all of them.

use std::io;

use clrscope_analysis::Heaps;
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use super::least::least_share;
use super::moments;
use super::plan::{Budget, forest_of, planned};
use super::tracks::values_by_time;
use super::whole;
use super::{states, strip};
use crate::render::json::recording;
use crate::render::page::{Pool, SectionPacker};
use crate::render::text::facts;
use crate::view::Report;
use crate::views::VIEWS;

/// The documents and their common members, as JSON.
pub(super) fn documents<'a>(report: &Report<'a>, heaps: &Heaps<'a>, budget: Budget) -> io::Result<String> {
    let (recording, mut pool, mut all) = (report.recording, Pool::default(), Vec::new());
    for mut planned in planned(recording, &report.request, budget) {
        let forest = forest_of(&planned, recording);
        planned.request.min_share = forest.as_ref().map_or(0.0, |forest| least_share(forest, budget.nodes));
        let recording = planned.recording(recording);
        // What was not recorded has no document.
        let Ok(opened) = planned.view.open_with(recording, &planned.request, heaps) else { continue };
        let mut packed = SectionPacker::new(&mut pool);
        opened.render(&mut packed)?;
        let mut head = planned.head();
        let members = packed.members(planned.view.name);
        if let Some(forest) = &forest {
            if planned.request.min_share > 0.0 {
                head["whole"] = whole::sums_section(forest, &planned.measures, &mut pool, false);
            }
            head["states"] = states::times_by_state(forest, planned.request.min_share, None);
            head["times"] = moments::amounts_over_time(forest, recording, planned.request.min_share, budget.moments);
        }
        head["tracks"] = values_by_time(&planned, recording);
        head["strip"] = strip::over_time(&planned, recording);
        all.push(with_members(&head, &members));
    }
    let members = format!("\"values\":{},\"documents\":[{}]", pool.to_json(), all.join(","));
    Ok(with_members(&about(recording, report.view.name), &members))
}

/// The documents of existing reports; the page opens at `first`.
pub(super) fn documents_of(reports: &[Report<'_>], first: &Report<'_>) -> io::Result<String> {
    let (mut pool, mut all) = (Pool::default(), Vec::new());
    for report in reports {
        let mut packed = SectionPacker::new(&mut pool);
        report.render(&mut packed)?;
        let head = json!({ "view": report.view.name, "about": report.view.about, "options": [], "measures": [] });
        all.push(with_members(&head, &packed.members(report.view.name)));
    }
    let members = format!("\"values\":{},\"documents\":[{}]", pool.to_json(), all.join(","));
    Ok(with_members(&about(first.recording, first.view.name), &members))
}

/// Members common to all documents of a page.
pub(super) fn about(recording: &Recording, open: &str) -> Value {
    json!({
        "format": 1,
        "tool": concat!("clrscope ", env!("CARGO_PKG_VERSION")),
        "open": open,
        "recording": recording::recording(recording),
        "run": run(recording),
        "missing": missing(recording),
    })
}

/// What a text report's head says of the run: how long it took or was recorded, how it ended, and
/// since when, if that is known.
fn run(recording: &Recording) -> Vec<String> {
    let since = facts::date(recording).map(|date| format!("from {date}"));
    std::iter::once(facts::length_and_end(recording)).chain(since).collect()
}

/// Views without recorded data, each with the instruments that would have recorded it.
fn missing(recording: &Recording) -> Value {
    let recorded = recording.run.filled.instruments();
    let is_recorded = |name: &&str| recorded.iter().any(|one| one.name == **name);
    let needs = VIEWS.iter().map(|view| (view.name, view.instruments()));
    let all = needs.filter(|(_, needs)| !needs.is_empty() && !needs.iter().any(&is_recorded));
    all.map(|(view, instruments)| json!({ "view": view, "instruments": instruments })).collect()
}

/// An object with further members, given as JSON text.
pub(super) fn with_members(head: &Value, members: &str) -> String {
    let head = head.to_string();
    format!("{},{members}}}", &head[..head.len() - 1])
}
