//! Calls as the fixture `Arguments` says them, and values in its form.

use clrscope_analysis::{Argument, Field, Value as Taken};
use serde_json::{Map, Value, json};

/// One end of a call: as said by the program, or as recorded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) is_begin: bool,
    pub(crate) name: String,
    pub(crate) args: Value,
    pub(crate) returns: Value,
}

/// Calls that the program says it makes, in order.
pub(crate) fn said(stdout: &str) -> Vec<Call> {
    stdout.lines().filter_map(said_line).collect()
}

fn said_line(line: &str) -> Option<Call> {
    let (kind, rest) = line.split_once(' ')?;
    let is_begin = match kind {
        "ARGS" => true,
        "RETURNS" => false,
        _ => return None,
    };
    let (name, values) = rest.split_once(' ').expect("a name");
    let mut values = serde_json::Deserializer::from_str(values).into_iter::<Value>();
    let mut next = || values.next().expect("one more value").expect("JSON");
    let (args, returns) = if is_begin {
        (next(), Value::Null)
    } else {
        let returns = next();
        (next(), returns)
    };
    Some(Call { is_begin, name: name.to_owned(), args, returns })
}

pub(crate) fn argument(argument: &Argument<'_>) -> (String, Value) {
    (argument.name.to_owned(), argument.value.as_ref().map_or(Value::Null, plain))
}

/// A value as the fixture writes it: without types and addresses.
pub(crate) fn plain(taken: &Taken<'_>) -> Value {
    let fields = |fields: &[Field<'_>]| {
        fields.iter().map(|field| (field.name.to_owned(), plain(&field.value))).collect::<Map<_, _>>()
    };
    match taken {
        Taken::Null => Value::Null,
        Taken::Bool(value) => json!(value),
        Taken::Char(unit) => json!(String::from_utf16_lossy(&[*unit])),
        Taken::Int(value) => json!(value),
        Taken::UInt(value) => json!(value),
        Taken::Float(value) => json!(value.to_string().parse::<f64>().expect("a number")),
        Taken::Double(value) => json!(value),
        Taken::String { text, is_cut, .. } => json!(if *is_cut { format!("{text}\u{2026}") } else { text.clone() }),
        Taken::Enum { name, .. } => json!(name.as_deref().expect("a constant's name")),
        Taken::Boxed { value, .. } => plain(value),
        Taken::Object { fields: all, .. } | Taken::Struct { fields: all, .. } => json!({ "fields": fields(all) }),
        Taken::Array { length, items, .. } => {
            json!({ "length": length, "items": items.iter().map(plain).collect::<Vec<_>>() })
        }
        other => json!(format!("{other:?}")),
    }
}

/// Equal, with numbers as numbers: the program writes 5.0 as 5.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
