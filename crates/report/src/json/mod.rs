//! Rows as JSON: the exact keys of the documented schemas, times as integers of nanoseconds.

mod events;
mod exceptions;
mod flow;
mod recording;
mod rows;
mod tree;
mod values;

use std::io::{self, Write};

use serde_json::{Map, Value, json};

pub use events::event;
pub use exceptions::{exception, exception_group};
pub use flow::{flow, flow_function};
pub use recording::{is_complete, recording};
pub use rows::{THREAD_START, edge, finding, function_row, loss, module, thread};
pub use tree::{TreeWriter, node};

/// One JSON object, its keys in the order in which they were added.
pub type Object = Map<String, Value>;

/// A document of `view` about a recording: its schema, the recording, then `rest`.
pub fn document(view: &str, recording: Object, rest: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let mut document = Object::new();
    document.insert("schema".into(), json!(schema(view)));
    document.insert("recording".into(), Value::Object(recording));
    document.extend(rest.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Value::Object(document)
}

/// Writes a document of `view` row by row: there may be more rows than fit in memory as values.
///
/// # Errors
/// Those of `out`.
pub fn stream_rows(
    out: &mut dyn Write,
    view: &str,
    recording: Object,
    rows: impl Iterator<Item = Object>,
) -> io::Result<()> {
    write!(
        out,
        "{{\n  \"schema\": {},\n  \"recording\": {},\n  \"rows\": [",
        json!(schema(view)),
        Value::Object(recording)
    )?;
    for (at, row) in rows.enumerate() {
        write!(out, "{}\n    {}", if at == 0 { "" } else { "," }, Value::Object(row))?;
    }
    writeln!(out, "\n  ]\n}}")
}

/// The name and version of a view's schema.
pub fn schema(view: &str) -> String {
    format!("clrscope.{view}/1")
}

/// Many rows as one value.
pub fn array(rows: impl Iterator<Item = Object>) -> Value {
    Value::Array(rows.map(Value::Object).collect())
}

/// An object from its keys and values.
fn object<const N: usize>(entries: [(&str, Value); N]) -> Object {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
