//! Values of the program as text, in one line.

use clrscope_analysis::{Argument, CapturedValues, Elements, Field, Value};

use super::one_line;

/// Characters of a string that are shown.
const CHARACTERS: usize = 80;

/// The arguments of a call that begins: `(this: Cart {Total: 3}, int id: 7)`.
pub(super) fn arguments(captured: &CapturedValues<'_>) -> String {
    let all: Vec<String> = captured.this.iter().chain(&captured.arguments).map(argument).collect();
    format!("({})", all.join(", "))
}

/// Results of a call that ends: ` = int 42, out int rest: 1`.
pub(super) fn results(captured: &CapturedValues<'_>) -> String {
    let mut text = String::new();
    if let Some((type_name, returned)) = &captured.returns {
        text += &format!(" = {}{}", type_before(type_name, returned), value(returned));
    }
    for argument in captured.arguments.iter().map(argument) {
        text += &format!(", {argument}");
    }
    text
}

pub(super) fn argument(argument: &Argument<'_>) -> String {
    let passing = argument.passing.name();
    let space = if passing.is_empty() { "" } else { " " };
    let (name, type_name) = (argument.name, short(argument.type_name));
    match &argument.value {
        None | Some(Value::Hidden) => format!("{passing}{space}{type_name} {name}"),
        // Types alone: an object has its own, which may be another than the declared.
        Some(Value::OfType { type_name }) => format!("{passing}{space}{} {name}", short(type_name)),
        Some(found) if name == "this" => format!("this: {}", value(found)),
        Some(found) => format!("{passing}{space}{}{name}: {}", type_before(argument.type_name, found), value(found)),
    }
}

/// The declared type; empty if the value names its own type.
pub(super) fn type_before(type_name: &str, found: &Value<'_>) -> String {
    match found {
        Value::Object { .. }
        | Value::Struct { .. }
        | Value::Array { .. }
        | Value::Enum { .. }
        | Value::Boxed { .. }
        | Value::OfType { .. }
        | Value::Type { .. } => String::new(),
        _ => format!("{} ", short(type_name)),
    }
}

pub(super) fn value(found: &Value<'_>) -> String {
    if let Some(text) = known(found) {
        return text;
    }
    match found {
        Value::Unknown => "?".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Hidden => "...".to_owned(),
        Value::Redacted => "(redacted)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Char(unit) => character(*unit),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Pointer(address) => format!("0x{address:x}"),
        Value::Method { name, .. } => one_line(*name),
        Value::String { text, length, is_cut } => string(text, *length, *is_cut),
        Value::Enum { type_name, name: Some(name), .. } => format!("{}.{name}", short(type_name)),
        Value::Enum { type_name, name: None, number } => format!("{}({number})", short(type_name)),
        Value::Boxed { type_name, value: inner } => format!("{} {}", short(type_name), value(inner)),
        Value::OfType { type_name } => short(type_name).to_owned(),
        Value::Type { of, .. } => format!("typeof({of})"),
        Value::Object { type_name, address, fields, .. } if fields.is_empty() => {
            format!("{} @0x{address:x}", short(type_name))
        }
        Value::Object { type_name, address, size_bytes, fields } => {
            format!("{} @0x{address:x} ({size_bytes} bytes) {}", short(type_name), fields_of(fields))
        }
        Value::Struct { type_name, fields } => format!("{} {}", short(type_name), fields_of(fields)),
        Value::Array { type_name, dimensions, items, .. } if !dimensions.is_empty() => {
            format!("{} {}", with_dimensions(short(type_name), dimensions), shaped(dimensions, &mut items.iter()))
        }
        Value::Array { type_name, length, items, .. } => {
            let items = items.iter().map(value).collect();
            format!("{} of {length} [{}]", short(type_name), listed(items, u64::from(*length)))
        }
    }
}

/// Readable form of a value, with its type.
pub(super) fn known(found: &Value<'_>) -> Option<String> {
    let (Value::Struct { type_name, .. } | Value::Object { type_name, .. }) = found else { return None };
    if let Some(text) = found.text() {
        return Some(format!("{} {}", short(type_name), escaped(&text, '"')));
    }
    if let Some(method) = found.method() {
        return Some(format!("{} -> {}", short(type_name), one_line(method)));
    }
    if let (Value::Struct { fields, .. }, true) = (found, type_name.starts_with('(')) {
        let all: Vec<String> = fields.iter().map(|field| value(&field.value)).collect();
        return Some(format!("({})", all.join(", ")));
    }
    let Elements { count, items } = found.elements()?;
    let item = |(key, item): &(Option<&Value<'_>>, &Value<'_>)| match key {
        Some(key) => format!("{}: {}", value(key), value(item)),
        None => value(item),
    };
    Some(format!("{} of {count} [{}]", short(type_name), listed(items.iter().map(item).collect(), count)))
}

/// Items with commas; dots if there are more.
fn listed(mut items: Vec<String>, count: u64) -> String {
    if (items.len() as u64) < count {
        items.push("...".to_owned());
    }
    items.join(", ")
}

/// The name of an array type with its dimensions: `int[2,3]` for `int[,]`.
fn with_dimensions(type_name: &str, dimensions: &[u32]) -> String {
    let sizes: Vec<String> = dimensions.iter().map(u32::to_string).collect();
    let (element, rest) = type_name.rfind('[').map_or((type_name, ""), |at| type_name.split_at(at));
    let behind = rest.find(']').map_or("", |at| &rest[at + 1..]);
    format!("{element}[{}]{behind}", sizes.join(","))
}

/// Elements in nested rows by dimension, as far as there are elements.
fn shaped<'v, 'a: 'v>(dimensions: &[u32], items: &mut std::slice::Iter<'v, Value<'a>>) -> String {
    let Some((count, inner)) = dimensions.split_first() else { return items.next().map_or_else(String::new, value) };
    let mut all = Vec::new();
    while all.len() < *count as usize && !items.as_slice().is_empty() {
        all.push(shaped(inner, items));
    }
    // A part that holds nothing takes nothing.
    let is_cut = all.len() < *count as usize && !dimensions.contains(&0);
    format!("[{}]", listed(all.clone(), if is_cut { u64::from(*count) } else { all.len() as u64 }))
}

fn string(text: &str, length: u32, is_cut: bool) -> String {
    let shown: String = text.chars().take(CHARACTERS).collect();
    let is_cut = is_cut || shown.len() < text.len();
    let end = if is_cut { format!("... ({length} characters)") } else { String::new() };
    format!("\"{}\"{end}", escaped(&shown, '"'))
}

/// A character in C# notation; half of a surrogate pair by its number.
fn character(unit: u16) -> String {
    match char::from_u32(u32::from(unit)) {
        Some(c) => format!("'{}'", escaped(&c.to_string(), '\'')),
        None => format!("'\\u{unit:04x}'"),
    }
}

/// Text between quotes in C# notation, with characters escaped that would end the quotes or change
/// what a terminal shows.
fn escaped(text: &str, quote: char) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => all.push_str("\\\\"),
            c if c == quote => all.extend(['\\', c]),
            '\0' => all.push_str("\\0"),
            '\n' => all.push_str("\\n"),
            '\r' => all.push_str("\\r"),
            '\t' => all.push_str("\\t"),
            c if c.is_control() || is_formatting(c) => all.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => all.push(c),
        }
    }
    all
}

/// Whether a character is invisible and changes how others are shown: directions, joiners, marks.
fn is_formatting(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn fields_of(fields: &[Field<'_>]) -> String {
    let all: Vec<String> =
        fields.iter().map(|field| format!("{}: {}", one_line(field.name), value(&field.value))).collect();
    format!("{{{}}}", all.join(", "))
}

/// The name without its namespace; tuples stay whole.
pub(super) fn short(type_name: &str) -> &str {
    if type_name.starts_with('(') {
        return type_name;
    }
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

    fn field<'a>(name: &'a str, value: Value<'a>) -> Field<'a> {
        Field { name, type_name: "", value }
    }

    fn text_of(text: &str) -> String {
        value(&Value::String { text: text.to_owned(), length: text.chars().count() as u32, is_cut: false })
    }

    #[test]
    fn strings_in_values_are_escaped() {
        assert_eq!(text_of(r#"a", string b: "x"#), r#""a\", string b: \"x""#);
        assert_eq!(text_of(r"back\slash"), r#""back\\slash""#);
        assert_eq!(text_of("\u{1b}[31m\n\0\u{202e}'"), r#""\u001b[31m\n\0\u202e'""#);
        assert_eq!(value(&Value::Char(u16::from(b'\''))), r"'\''");
        assert_eq!(value(&Value::Char(0xD800)), r"'\ud800'");
        assert_eq!(value(&Value::Char(u16::from(b'"'))), r#"'"'"#);
    }

    #[test]
    fn arrays_of_several_dimensions_are_shown_in_their_shape() {
        let matrix = |dimensions: Vec<u32>, kept: i64| {
            let length = dimensions.iter().product();
            let items = (1..=kept).map(Value::Int).collect();
            value(&Value::Array { type_name: "int[,]", length, dimensions, items })
        };
        assert_eq!(matrix(vec![2, 3], 6), "int[2,3] [[1, 2, 3], [4, 5, 6]]");
        assert_eq!(matrix(vec![3, 3], 4), "int[3,3] [[1, 2, 3], [4, ...], ...]");
        assert_eq!(matrix(vec![0, 3], 0), "int[0,3] []");
        assert_eq!(matrix(vec![2, 3], 0), "int[2,3] [...]");
    }

    #[test]
    fn values_are_shown_as_people_know_them() {
        let span =
            Value::Struct { type_name: "System.TimeSpan", fields: vec![field("_ticks", Value::Int(900_000_000))] };
        assert_eq!(value(&span), "TimeSpan 00:01:30");
        let pair = vec![field("Item1", Value::Int(1)), field("Item2", Value::Null)];
        assert_eq!(value(&Value::Struct { type_name: "(int, string)", fields: pair }), "(1, null)");
        let boxed = Value::Boxed { type_name: "byte", value: Box::new(Value::UInt(5)) };
        assert_eq!(argument(&taken("o", "object", Passing::Value, Some(boxed))), "o: byte 5");
        let of = Value::Type { type_name: "System.RuntimeType", address: 8, of: "Shop.Cart" };
        assert_eq!(value(&of), "typeof(Shop.Cart)");
        let method = field("_methodPtr", Value::Method { address: 16, name: "Shop.Cart::Total" });
        let type_name = "System.Func<int, int>";
        let delegate = Value::Object { type_name, address: 8, size_bytes: 64, fields: vec![method] };
        assert_eq!(value(&delegate), "Func<int, int> -> Shop.Cart::Total");
        let items = Value::Array { type_name: "int[]", length: 4, dimensions: Vec::new(), items: vec![Value::Int(7)] };
        let list = vec![field("_items", items), field("_size", Value::Int(2)), field("_version", Value::Int(2))];
        let type_name = "System.Collections.Generic.List<int>";
        let list = Value::Object { type_name, address: 8, size_bytes: 32, fields: list };
        assert_eq!(value(&list), "List<int> of 2 [7, ...]");
    }

    #[test]
    fn types_alone_say_no_more_than_types() {
        let array = taken("a", "System.Array", Passing::Value, Some(Value::OfType { type_name: "int[]" }));
        assert_eq!(argument(&array), "int[] a");
    }

    #[test]
    fn arguments_are_shown_with_type_name_and_value() {
        let cart = Value::Object {
            type_name: "Shop.Cart",
            address: 0x10,
            size_bytes: 24,
            fields: vec![field("Total", Value::Int(3)), field("Day", Value::Null)],
        };
        let items =
            Value::Array { type_name: "Shop.Item[]", length: 40, dimensions: Vec::new(), items: vec![Value::Null] };
        let captured = CapturedValues {
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
        let captured = CapturedValues {
            this: None,
            arguments: vec![taken("rest", "string", Passing::Out, Some(Value::Null))],
            returns: Some(("Shop.Color", color)),
        };
        assert_eq!(results(&captured), " = Color.Red, out string rest: null");
        let captured = CapturedValues { returns: Some(("int", Value::Int(42))), ..CapturedValues::default() };
        assert_eq!(results(&captured), " = int 42");
        let nothing = Value::Array { type_name: "int[]", length: 9, dimensions: Vec::new(), items: Vec::new() };
        assert_eq!(value(&nothing), "int[] of 9 [...]");
    }
}
