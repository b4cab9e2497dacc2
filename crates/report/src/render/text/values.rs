//! Values of the program as text, in one line.

use std::fmt::Write;

use clrscope_analysis::{Argument, Captured, Value};

use super::one_line;

/// Characters of a string that are shown.
const CHARACTERS: usize = 80;

/// The arguments of a call that begins: `(this: Cart {Total: 3}, int id: 7)`.
pub(super) fn arguments(captured: &Captured<'_>) -> String {
    let all: Vec<String> = captured.this.iter().chain(&captured.arguments).map(argument).collect();
    format!("({})", all.join(", "))
}

/// What a call that ends gives: ` = int 42, out int rest: 1`.
pub(super) fn results(captured: &Captured<'_>) -> String {
    let mut text = String::new();
    if let Some((type_name, returned)) = &captured.returns {
        text += &format!(" = {}{}", type_before(type_name, returned), value(returned));
    }
    for argument in captured.arguments.iter().map(argument) {
        text += &format!(", {argument}");
    }
    text
}

fn argument(argument: &Argument<'_>) -> String {
    let passing = argument.passing.name();
    let space = if passing.is_empty() { "" } else { " " };
    let (name, type_name) = (argument.name, short(argument.type_name));
    match &argument.value {
        None | Some(Value::Hidden) => format!("{passing}{space}{type_name} {name}"),
        // Types alone: an object tells its own, which may be another than the declared.
        Some(Value::Object { type_name, address: 0, .. }) => format!("{passing}{space}{} {name}", short(type_name)),
        Some(found) if name == "this" => format!("this: {}", value(found)),
        Some(found) => format!("{passing}{space}{}{name}: {}", type_before(argument.type_name, found), value(found)),
    }
}

/// The declared type, where the value does not name its own.
fn type_before(type_name: &str, found: &Value<'_>) -> String {
    match found {
        Value::Object { .. } | Value::Struct { .. } | Value::Array { .. } | Value::Enum { .. } => String::new(),
        _ => format!("{} ", short(type_name)),
    }
}

fn value(found: &Value<'_>) -> String {
    match found {
        Value::Unknown => "?".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Hidden => "...".to_owned(),
        Value::Redacted => "(redacted)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Char(unit) => format!("'{}'", one_line(String::from_utf16_lossy(&[*unit]))),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Pointer(address) => format!("0x{address:x}"),
        Value::String { text, length, is_cut } => string(text, *length, *is_cut),
        Value::Enum { type_name, name: Some(name), .. } => format!("{}.{name}", short(type_name)),
        Value::Enum { type_name, name: None, number } => format!("{}({number})", short(type_name)),
        Value::Object { type_name, address: 0, .. } => short(type_name).to_owned(),
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
            let comma = if items.is_empty() { "" } else { ", " };
            text + &if (items.len() as u32) < *length { format!("{comma}...]") } else { "]".to_owned() }
        }
    }
}

fn string(text: &str, length: u32, is_cut: bool) -> String {
    let shown: String = text.chars().take(CHARACTERS).collect();
    let is_cut = is_cut || shown.len() < text.len();
    let end = if is_cut { format!("... ({length} characters)") } else { String::new() };
    format!("\"{}\"{end}", one_line(shown))
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

#[cfg(test)]
mod tests {
    use clrscope_analysis::Passing;

    use super::*;

    fn taken<'a>(name: &'a str, type_name: &'a str, passing: Passing, value: Option<Value<'a>>) -> Argument<'a> {
        Argument { name, type_name, passing, value }
    }

    #[test]
    fn arguments_are_shown_with_type_name_and_value() {
        let cart = Value::Object {
            type_name: "Shop.Cart",
            address: 0x10,
            size_bytes: 24,
            fields: vec![("Total", Value::Int(3)), ("Day", Value::Null)],
        };
        let items = Value::Array { type_name: "Shop.Item[]", length: 40, items: vec![Value::Null] };
        let captured = Captured {
            this: Some(taken("this", "Shop.Cart", Passing::Value, Some(cart))),
            arguments: vec![
                taken("id", "int", Passing::Value, Some(Value::Int(7))),
                taken("items", "Shop.Item[]", Passing::In, Some(items)),
                taken("rest", "System.Collections.Generic.List<int>", Passing::Out, None),
            ],
            returns: None,
        };
        assert_eq!(
            arguments(&captured),
            "(this: Cart @0x10 (24 bytes) {Total: 3, Day: null}, int id: 7, in items: Item[] of 40 [null, ...], out List<int> rest)"
        );
    }

    #[test]
    fn results_are_shown_with_type_and_value() {
        let color = Value::Enum { type_name: "Shop.Color", name: Some("Red".to_owned()), number: 0 };
        let captured = Captured {
            this: None,
            arguments: vec![taken("rest", "string", Passing::Out, Some(Value::Null))],
            returns: Some(("Shop.Color", color)),
        };
        assert_eq!(results(&captured), " = Color.Red, out string rest: null");
        let captured = Captured { returns: Some(("int", Value::Int(42))), ..Captured::default() };
        assert_eq!(results(&captured), " = int 42");
        let nothing = Value::Array { type_name: "int[]", length: 9, items: Vec::new() };
        assert_eq!(value(&nothing), "int[] of 9 [...]");
    }
}
