//! Values of the program as JSON.

use clrscope_analysis::{Argument, CapturedValues, Elements, Field, Value as Taken};
use serde_json::{Value, json};

use super::Object;

/// The value of `this`; `None` if there is none.
pub(crate) fn this(captured: &CapturedValues<'_>) -> Option<Value> {
    captured.this.as_ref().map(|this| this.value.as_ref().map_or(Value::Null, value))
}

/// The arguments. A call without arguments has an empty list at its start, and `None` at its end.
pub(crate) fn arguments(captured: &CapturedValues<'_>, at_enter: bool) -> Option<Value> {
    let all = &captured.arguments;
    (at_enter || !all.is_empty()).then(|| all.iter().map(argument).collect())
}

/// Result of the call; `None` if it did not return a value.
pub(crate) fn returns(captured: &CapturedValues<'_>) -> Option<Value> {
    let (type_name, returned) = captured.returns.as_ref()?;
    let mut returns = Object::new();
    returns.insert("type".to_owned(), json!(type_name));
    add_value(&mut returns, returned);
    Some(Value::Object(returns))
}

fn argument(argument: &Argument<'_>) -> Value {
    let mut all = Object::new();
    all.insert("name".to_owned(), json!(argument.name));
    all.insert("type".to_owned(), json!(argument.type_name));
    if !argument.passing.name().is_empty() {
        all.insert("passing".to_owned(), json!(argument.passing.name()));
    }
    if let Some(value) = &argument.value {
        add_value(&mut all, value);
    }
    Value::Object(all)
}

/// Adds the value, or the reason why there is none.
fn add_value(all: &mut Object, taken: &Taken<'_>) {
    match taken {
        Taken::Hidden => {}
        Taken::Redacted => _ = all.insert("redacted".to_owned(), json!(true)),
        Taken::Unknown => _ = all.insert("unknown".to_owned(), json!(true)),
        taken => _ = all.insert("value".to_owned(), value(taken)),
    }
    if let Taken::Boxed { type_name, .. } = taken {
        all.insert("boxed".to_owned(), json!(type_name));
    }
}

fn value(taken: &Taken<'_>) -> Value {
    match taken {
        Taken::Null => Value::Null,
        Taken::Unknown => json!({ "unknown": true }),
        Taken::Hidden => json!({ "hidden": true }),
        Taken::Redacted => json!({ "redacted": true }),
        Taken::Bool(value) => json!(value),
        Taken::Char(unit) => json!(String::from_utf16_lossy(&[*unit])),
        Taken::Int(value) => json!(value),
        Taken::UInt(value) => json!(value),
        Taken::Float(value) if value.is_finite() => {
            // As the shortest text of the 32-bit number, not of the 64-bit number next to it.
            json!(value.to_string().parse::<f64>().unwrap_or(f64::from(*value)))
        }
        Taken::Float(value) => json!(value.to_string()),
        Taken::Double(value) if value.is_finite() => json!(value),
        Taken::Double(value) => json!(value.to_string()),
        Taken::Pointer(address) => json!(address),
        Taken::Method { address, .. } => json!(*address as i64),
        Taken::String { text, is_cut, .. } => json!(if *is_cut { format!("{text}\u{2026}") } else { text.clone() }),
        Taken::Enum { name, number, .. } => name.as_ref().map_or(json!(number), |name| json!(name)),
        Taken::Boxed { value: inner, .. } => value(inner),
        Taken::OfType { type_name } => json!({ "type": type_name }),
        Taken::Type { type_name, address, .. } => {
            with_meaning(json!({ "type": type_name, "address": address, "fields": {} }), taken)
        }
        Taken::Object { type_name, address, size_bytes, fields } => {
            let fields = fields_of(fields);
            let object = json!({ "type": type_name, "address": address, "size_bytes": size_bytes, "fields": fields });
            with_meaning(object, taken)
        }
        Taken::Struct { type_name, fields } => {
            with_meaning(json!({ "type": type_name, "fields": fields_of(fields) }), taken)
        }
        Taken::Array { type_name, length, dimensions, items } => {
            let items: Vec<Value> = items.iter().map(value).collect();
            let mut array = json!({ "type": type_name, "length": length, "items": items });
            if !dimensions.is_empty() {
                array["dimensions"] = json!(dimensions);
            }
            array
        }
    }
}

/// Adds the readable form of a value: its text, its method, or its elements.
fn with_meaning(mut object: Value, taken: &Taken<'_>) -> Value {
    if let Some(text) = taken.text() {
        object["text"] = json!(text);
    }
    if let Some(method) = taken.method() {
        object["method"] = json!(method);
    }
    if let Some(Elements { count, items }) = taken.elements() {
        let item = |(key, item): &(Option<&Taken<'_>>, &Taken<'_>)| match key {
            Some(key) => json!({ "key": value(key), "value": value(item) }),
            None => value(item),
        };
        object["length"] = json!(count);
        object["items"] = items.iter().map(item).collect();
    }
    object
}

fn fields_of(fields: &[Field<'_>]) -> Object {
    fields.iter().map(|field| (field.name.to_owned(), value(&field.value))).collect()
}
