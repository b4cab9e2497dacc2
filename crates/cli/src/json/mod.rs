//! Rows as JSON: the exact keys of the documented schemas, times as integers of nanoseconds.

mod flow;
mod recording;
mod rows;
mod tree;

use serde_json::{Map, Value, json};

pub(crate) use flow::{flow, flow_function};
pub(crate) use recording::{is_complete, recording};
pub(crate) use rows::{THREAD_START, edge, finding, function_row, loss, module, thread};
pub(crate) use tree::{TreeWriter, node};

/// One JSON object, its keys in the order in which they were added.
pub(crate) type Object = Map<String, Value>;

/// A document of `view` about a recording: its schema, the recording, then `rest`.
pub(crate) fn document(view: &str, recording: Object, rest: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let mut document = Object::new();
    document.insert("schema".into(), json!(schema(view)));
    document.insert("recording".into(), Value::Object(recording));
    document.extend(rest.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Value::Object(document)
}

/// The name and version of a view's schema.
pub(crate) fn schema(view: &str) -> String {
    format!("clrscope.{view}/1")
}

/// Many rows as one value.
pub(crate) fn array(rows: impl Iterator<Item = Object>) -> Value {
    Value::Array(rows.map(Value::Object).collect())
}

/// An object from its keys and values.
fn object<const N: usize>(entries: [(&str, Value); N]) -> Object {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
