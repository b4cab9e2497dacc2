//! The `recording` object: the source of the numbers, part of every document.

use std::collections::BTreeMap;

use clrscope_analysis::{AttributeValue, Resource, recorded_time, unmatched_patterns};
use clrscope_recording::model::{Exit, Loss, LossReason, Part, PartSpan, Process, Recording, Sampler};
use serde_json::{Value, json};

use super::{Object, object};
use crate::recorded::is_complete;

/// The `recording` object.
pub(crate) fn recording(recording: &Recording) -> Object {
    let (run, time) = (&recording.run, recorded_time(recording));
    let mut all = object([
        ("id", json!(Some(&run.id).filter(|id| !id.is_empty()))),
        ("command", json!(run.command)),
        ("started", json!(started(run.started_unix_ns))),
        ("duration_ns", json!(run.duration_ns)),
        ("since_ns", json!(time.start)),
        ("until_ns", json!(time.end)),
        ("instruments", json!({ "given": run.given.text(), "filled": run.filled.text() })),
        ("complete", json!(is_complete(recording))),
        ("processes", array(recording.processes.iter().map(|one| process(recording, one)))),
        ("losses", array(all_losses(recording).into_iter())),
    ]);
    let mut parts = Vec::new();
    for process in &recording.processes {
        parts.extend(Part::spans(&process.parts).iter().map(|span| part(process, span)));
    }
    if !parts.is_empty() {
        all.insert("parts".to_owned(), array(parts.into_iter()));
    }
    let unmatched = unmatched_patterns(recording);
    if !unmatched.is_empty() {
        let rows = unmatched.iter().map(|one| {
            let nearest = json!(one.nearest);
            object([("option", json!(one.option)), ("pattern", json!(one.pattern)), ("nearest", nearest)])
        });
        all.insert("unmatched_patterns".to_owned(), array(rows));
    }
    if !recording.problems.is_empty() {
        let problems = recording.problems.iter().map(|p| object([("place", json!(p.place)), ("what", json!(p.what))]));
        all.insert("problems".to_owned(), array(problems));
    }
    all
}

/// A time in the format of RFC 3339, in UTC.
fn started(unix_ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(time) => time.to_string(),
        Err(_) => jiff::Timestamp::UNIX_EPOCH.to_string(),
    }
}

fn process(recording: &Recording, process: &Process) -> Object {
    let mut all = object([
        ("pid", json!(process.pid)),
        ("command", json!(process.command)),
        ("runtime", json!(process.runtime)),
        ("complete", json!(process.complete)),
    ]);
    match process.exit {
        Some(Exit::Code(code)) => all.insert("exit_code".to_owned(), json!(code)),
        Some(Exit::Signal(signal)) => all.insert("signal".to_owned(), json!(signal)),
        None => all.insert("exit_code".to_owned(), Value::Null),
    };
    all.insert("resource".to_owned(), Value::Object(resource(recording, process)));
    if !process.samplers.is_empty() {
        let sampler =
            |one: &Sampler| object([("instrument", json!(one.instrument)), ("period_ns", json!(one.interval_ns))]);
        all.insert("sampling".to_owned(), array(process.samplers.iter().map(sampler)));
    }
    all
}

/// Attributes that identify processes across many recordings, with the keys of OpenTelemetry.
fn resource(recording: &Recording, process: &Process) -> Object {
    let resource = Resource::from_process(recording, process);
    let value = |value: &AttributeValue<'_>| match value {
        AttributeValue::Text(text) => json!(text),
        AttributeValue::Number(number) => json!(number),
    };
    resource.attributes().map(|(key, of)| (key.to_owned(), value(of))).collect()
}

/// A part of the recording of a process.
fn part(process: &Process, part: &PartSpan) -> Object {
    object([
        ("name", json!(part.name)),
        ("pid", json!(process.pid)),
        ("since_ns", json!(part.since_ns)),
        ("until_ns", json!(part.until_ns)),
    ])
}

/// The losses of all processes, summed by reason; unreadable data are one of the reasons.
fn all_losses(recording: &Recording) -> Vec<Object> {
    let mut sums: BTreeMap<LossReason, Loss> = BTreeMap::new();
    for loss in recording.processes.iter().flat_map(|p| &p.losses) {
        let sum = sums.entry(loss.reason).or_insert(Loss { count: 0, details: Vec::new(), ..loss.clone() });
        sum.count = sum.count.saturating_add(loss.count);
        sum.first_ns = sum.first_ns.min(loss.first_ns);
        sum.last_ns = sum.last_ns.max(loss.last_ns);
        sum.details.extend_from_slice(&loss.details);
    }
    if !recording.problems.is_empty() {
        let count = recording.problems.len() as u64;
        let reason = LossReason::Unreadable;
        let unread = sums.entry(reason).or_insert(Loss::new(reason, 0, 0, recording.run.duration_ns));
        unread.count = unread.count.max(count);
    }
    sums.values().map(loss).collect()
}

/// The losses of a reason; `details` only if there are any.
fn loss(loss: &Loss) -> Object {
    let mut all = object([
        ("reason", json!(loss.reason.name())),
        ("count", json!(loss.count)),
        ("first_ns", json!(loss.first_ns)),
        ("last_ns", json!(loss.last_ns)),
    ]);
    if !loss.details.is_empty() {
        all.insert("details".to_owned(), json!(loss.details));
    }
    all
}

fn array(rows: impl Iterator<Item = Object>) -> Value {
    Value::Array(rows.map(Value::Object).collect())
}
