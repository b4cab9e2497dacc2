//! Values of the program as text, in one line.

use std::fmt::Write;

use clrscope_analysis::{Argument, Captured, Value};

/// Characters of a string that are shown.
const CHARACTERS: usize = 80;

/// The arguments of a call that begins: `(this: Cart {Total: 3}, id: 7)`.
pub(super) fn arguments(captured: &Captured<'_>) -> String {
    let all: Vec<String> = captured.this.iter().chain(&captured.arguments).map(argument).collect();
    format!("({})", all.join(", "))
}

/// What a call that ends gives: ` = 42, out rest: 1`.
pub(super) fn results(captured: &Captured<'_>) -> String {
    let mut text = String::new();
    if let Some((_, returned)) = &captured.returns {
        text += &format!(" = {}", value(returned));
    }
    for argument in captured.arguments.iter().map(argument) {
        text += &format!(", {argument}");
    }
    text
}

fn argument(argument: &Argument<'_>) -> String {
    let passing = argument.passing.name();
    let space = if passing.is_empty() { "" } else { " " };
    match &argument.value {
        None => format!("{passing}{space}{}", argument.name),
        Some(Value::Hidden) => format!("{passing}{space}{}: {}", argument.name, argument.type_name),
        Some(found) => format!("{passing}{space}{}: {}", argument.name, value(found)),
    }
}

fn value(found: &Value<'_>) -> String {
    match found {
        Value::Unknown => "?".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Hidden => "...".to_owned(),
        Value::Redacted => "(redacted)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Char(unit) => format!("'{}'", printable(&String::from_utf16_lossy(&[*unit]))),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Pointer(address) => format!("0x{address:x}"),
        Value::String { text, length, is_cut } => string(text, *length, *is_cut),
        Value::Enum { type_name, name: Some(name), .. } => format!("{}.{name}", short(type_name)),
        Value::Enum { type_name, name: None, number } => format!("{}({number})", short(type_name)),
        Value::Object { type_name, address, fields, .. } if fields.is_empty() => {
            format!("{} @0x{address:x}", short(type_name))
        }
        Value::Object { type_name, address, size_bytes, fields } => {
            format!("{} @0x{address:x} ({size_bytes} bytes) {}", short(type_name), fields_of(fields))
        }
        Value::Struct { type_name, fields } => format!("{} {}", short(type_name), fields_of(fields)),
        Value::Array { type_name, length, items } => {
            let mut text = format!("{} of {length} [", short(type_name));
            for (at, item) in items.iter().enumerate() {
                let _ = write!(text, "{}{}", if at == 0 { "" } else { ", " }, value(item));
            }
            text + if (items.len() as u32) < *length { ", ...]" } else { "]" }
        }
    }
}

fn string(text: &str, length: u32, is_cut: bool) -> String {
    let shown: String = text.chars().take(CHARACTERS).collect();
    let is_cut = is_cut || shown.len() < text.len();
    let end = if is_cut { format!("... ({length} characters)") } else { String::new() };
    format!("\"{}\"{end}", printable(&shown))
}

/// Nothing of the program's may move the cursor or change colours.
fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

fn fields_of(fields: &[(&str, Value<'_>)]) -> String {
    let all: Vec<String> = fields.iter().map(|(name, found)| format!("{name}: {}", value(found))).collect();
    format!("{{{}}}", all.join(", "))
}

/// The name without its namespace.
fn short(type_name: &str) -> &str {
    let plain = type_name.split('<').next().unwrap_or(type_name);
    plain.rfind('.').map_or(type_name, |at| &type_name[at + 1..])
}
