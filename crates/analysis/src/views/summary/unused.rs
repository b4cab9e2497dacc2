//! Sentences about processors that a program left unused. Samples of CPU time do not show what the
//! program's threads waited for.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Recording, ThreadRole};

use super::findings::{Evidence, has};
use super::{Finding, FindingKind};
use crate::parts::watched_ns;
use crate::query::Query;
use crate::samples::SampleKind;
use crate::sampling::sampled_bounds;
use crate::views::rows::{FunctionRow, ThreadRow};

/// Shortest time that is worth a sentence, because short programs wait a lot at start and end.
const LEAST_NS: u64 = 500_000_000;
/// A program that uses more of the processors than this leaves few unused.
const MUCH_OF_ALL: f64 = 0.5;
/// A program with a thread that worked for more of the time than this was not limited by waits
/// alone.
const MUCH_OF_ONE: f64 = 0.5;

/// Sentences about a program that used clearly fewer processors than were available. They tell how
/// to find out what the program's threads waited for, and which code is resumed after awaits
/// (during an await no thread waits). Empty if the recording already shows waits.
pub(super) fn found(evidence: &Evidence<'_, '_>, recording: &Recording, query: &Query) -> Vec<Finding> {
    let Evidence { view, again, .. } = *evidence;
    let shows_waits = view.conditions.metric.is_of_calls() || has(view, instrument::WALL);
    let filtered = query.filters_functions() || !query.threads.is_empty();
    let processors = recording.processes.iter().map(|process| process.processors).max().unwrap_or(0);
    let time_ns = view.conditions.processes.iter().map(|one| watched_ns(one.process, query)).max().unwrap_or(0);
    if shows_waits || filtered || processors == 0 || view.kinds.is_empty() || time_ns < LEAST_NS {
        return Vec::new();
    }
    let programs = view.kinds.iter().filter(|row| row.kind != SampleKind::Profiler);
    let cpu_ns = programs.map(|row| row.time_ns).fold(0_u64, u64::saturating_add);
    let used = cpu_ns as f64 / time_ns as f64;
    let samples = view.conditions.samples.max(1) as f64;
    let (_, most_ns) = sampled_bounds(cpu_ns as f64, view.conditions.total as f64 / samples);
    let surely_unused = 1.0 - most_ns / time_ns as f64 / f64::from(processors);
    let unused = 1.0 - used / f64::from(processors);
    let busiest_ns = view.threads.rows.iter().filter(|row| is_programs(row)).map(|row| row.amount.own).max();
    let busiest = busiest_ns.unwrap_or(0) as f64 / time_ns as f64;
    if surely_unused < 1.0 - MUCH_OF_ALL || busiest > MUCH_OF_ONE {
        return Vec::new();
    }
    let of = if processors == 1 { "of one processor".to_owned() } else { format!("of {processors} processors") };
    let waits = format!("the program used {used:.2} {of}: {again} -i wall shows what its threads waited for");
    let has_awaits = has(view, instrument::AWAITS);
    let async_code = view.own.iter().map(|own| &own.row).find(|row| !has_awaits && is_async(row));
    let awaits = async_code.map(|row| {
        let name = row.function.label();
        format!(
            "{name} spends time in awaits, which hold no thread, so cpu and wall miss it: {again} -i awaits shows how \
             long each of its awaits took"
        )
    });
    [Some(waits), awaits].into_iter().flatten().map(|text| Finding::exact(FindingKind::Wait, text, unused)).collect()
}

/// Whether a thread runs code of the program, not only of the runtime.
fn is_programs(row: &ThreadRow<'_>) -> bool {
    matches!(row.thread.role, ThreadRole::User | ThreadRole::Main | ThreadRole::Pool)
}

/// Whether a row is for the code of an `async` method or lambda.
fn is_async(row: &FunctionRow<'_>) -> bool {
    row.function.marker().is_some_and(|marker| marker.starts_with("async"))
}
