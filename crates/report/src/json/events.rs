//! Rows of `events`.

use clrscope_analysis::{EventRow, Events};
use serde_json::{Value, json};

use super::rows::thread_identity;
use super::{Object, object};

/// A row of `events`. `with_pid` where a report shows more than one process.
pub fn event<'a>(events: &Events<'a>, row: &EventRow<'a>, with_pid: bool) -> Object {
    let mut all = object([
        ("time_ns", json!(row.time_ns)),
        ("thread", row.thread.map_or(Value::Null, |thread| json!(thread_identity(thread)))),
        ("depth", json!(row.depth)),
        ("group", json!(row.group())),
        ("event", json!(row.event())),
        ("phase", json!(row.phase())),
    ]);
    if with_pid {
        all.insert("pid".to_owned(), json!(row.process.pid));
    }
    let (mut names, mut ids) = (Object::new(), Object::new());
    for subject in events.subjects(row) {
        let id = format!("{:#x}", subject.id);
        names.insert(subject.role.to_owned(), json!(subject.name.unwrap_or(&id)));
        ids.insert(subject.role.to_owned(), json!(id));
    }
    if let Some(name) = row.given_name() {
        names.insert("given".to_owned(), json!(name));
    }
    for (key, value) in row.details().filter(|(key, _)| matches!(*key, "object" | "handle")) {
        ids.insert(key.to_owned(), json!(format!("{value:#x}")));
    }
    all.insert("names".to_owned(), Value::Object(names));
    all.insert("ids".to_owned(), Value::Object(ids));
    all.insert("result".to_owned(), json!(row.result()));
    all.insert("reason".to_owned(), json!(row.reason()));
    all.insert("duration_ns".to_owned(), json!(row.duration_ns));
    for (key, value) in row.details().filter(|(key, _)| !matches!(*key, "object" | "handle")) {
        let value = if matches!(key, "found" | "critical") { json!(value != 0) } else { json!(value) };
        all.insert(key.to_owned(), value);
    }
    all
}
