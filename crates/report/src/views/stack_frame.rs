//! A stack frame in the JSON of views of stacks.

use clrscope_recording::model::FunctionKind;
use clrscope_symbols::SourceLine;
use serde_json::{Value, json};

use crate::render::json::object;

/// Returns a frame; module and line are null if they are not known.
pub(super) fn json_frame(name: &str, kind: FunctionKind, module: Option<&str>, line: Option<&SourceLine>) -> Value {
    Value::Object(object([
        ("name", json!(name)),
        ("kind", json!(kind.name())),
        ("module", json!(module)),
        ("file", json!(line.map(|line| &line.file))),
        ("line", json!(line.map(|line| line.line))),
    ]))
}
