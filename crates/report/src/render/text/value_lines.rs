//! Values of the program over several lines, for values that are too wide for one line: a line for
//! each argument, and for each field with its type.

use clrscope_analysis::{Argument, CapturedValues, Elements, Field, Value};

use super::names::columns;
use super::one_line;
use super::values::{argument, known, short, type_before, value};

/// Additional indentation of the lines that belong to a line.
const INDENT: usize = 2;
/// Minimum room of a line, however deep it is nested.
const LEAST_ROOM: usize = 20;

/// Lines for the values of a call; only nested parts are indented.
pub(super) fn lines(captured: &CapturedValues<'_>, room: usize) -> Vec<String> {
    let mut lines = Lines { room, lines: Vec::new() };
    if let Some((type_name, returned)) = &captured.returns {
        lines.value(&format!("= {}", type_before(type_name, returned)), returned, 0);
    }
    captured.this.iter().chain(&captured.arguments).for_each(|argument| lines.argument(argument));
    lines.lines
}

struct Lines {
    room: usize,
    lines: Vec<String>,
}

impl Lines {
    fn add(&mut self, text: &str, depth: usize) {
        self.lines.push(format!("{}{}", " ".repeat(depth * INDENT), one_line(text)));
    }

    fn fits(&self, text: &str, depth: usize) -> bool {
        columns(text) <= self.room.saturating_sub(depth * INDENT).max(LEAST_ROOM)
    }

    fn argument(&mut self, of: &Argument<'_>) {
        let whole = argument(of);
        match &of.value {
            Some(found) if !self.fits(&whole, 0) => {
                // The text before the value is the same as in one line.
                let before = whole.strip_suffix(&value(found)).unwrap_or_default().to_owned();
                self.value(&before, found, 0);
            }
            _ => self.add(&whole, 0),
        }
    }

    /// A value after its name, in one line if it fits.
    fn value(&mut self, before: &str, found: &Value<'_>, depth: usize) {
        let whole = format!("{before}{}", value(found));
        if self.fits(&whole, depth) {
            return self.add(&whole, depth);
        }
        if let Some(Elements { count, items }) = found.elements() {
            self.add(&format!("{before}{} of {count}", type_of(found)), depth);
            for (number, (key, item)) in items.iter().enumerate() {
                let key = key.map_or_else(|| format!("[{number}]"), value);
                self.value(&format!("{key}: "), item, depth + 1);
            }
            return self.more(items.len() as u64, count, depth + 1);
        }
        match found {
            Value::Object { type_name, address, size_bytes, fields }
                if !fields.is_empty() && known(found).is_none() =>
            {
                self.add(&format!("{before}{} @0x{address:x} ({size_bytes} bytes)", short(type_name)), depth);
                self.fields(fields, depth + 1);
            }
            Value::Struct { type_name, fields } if known(found).is_none() => {
                self.add(&format!("{before}{}", short(type_name)), depth);
                self.fields(fields, depth + 1);
            }
            Value::Array { type_name, length, dimensions, items } if dimensions.is_empty() && has_parts(items) => {
                self.add(&format!("{before}{} of {length}", short(type_name)), depth);
                for (number, item) in items.iter().enumerate() {
                    self.value(&format!("[{number}]: "), item, depth + 1);
                }
                self.more(items.len() as u64, u64::from(*length), depth + 1);
            }
            _ => self.add(&whole, depth),
        }
    }

    fn fields(&mut self, fields: &[Field<'_>], depth: usize) {
        for field in fields {
            let declared =
                if field.type_name.is_empty() { String::new() } else { type_before(field.type_name, &field.value) };
            self.value(&format!("{declared}{}: ", field.name), &field.value, depth);
        }
    }

    /// Dots if there are more elements than were recorded.
    fn more(&mut self, kept: u64, count: u64, depth: usize) {
        if kept < count {
            self.add("...", depth);
        }
    }
}

fn type_of<'v>(found: &Value<'v>) -> &'v str {
    match found {
        Value::Object { type_name, .. } => short(type_name),
        _ => "",
    }
}

/// Whether elements have parts of their own. A hundred simple numbers are better shown in one line
/// than in a line each.
fn has_parts(items: &[Value<'_>]) -> bool {
    items.iter().any(|item| matches!(item, Value::Object { .. } | Value::Struct { .. } | Value::Array { .. }))
}

#[cfg(test)]
mod tests {
    use clrscope_analysis::Passing;

    use super::*;

    fn field<'a>(name: &'a str, type_name: &'a str, value: Value<'a>) -> Field<'a> {
        Field { name, type_name, value }
    }

    fn captured() -> CapturedValues<'static> {
        let place = vec![field("X", "int", Value::Int(1)), field("Y", "int", Value::Int(2))];
        let fields = vec![
            field("Total", "decimal", Value::Null),
            field("Place", "Shop.Place", Value::Struct { type_name: "Shop.Place", fields: place }),
            field("Name", "string", Value::String { text: "a\nb".to_owned(), length: 3, is_cut: false }),
        ];
        let cart = Value::Object { type_name: "Shop.Cart", address: 16, size_bytes: 40, fields };
        let argument =
            |name, type_name, value| Argument { name, type_name, passing: Passing::Value, value: Some(value) };
        CapturedValues {
            this: Some(argument("this", "Shop.Cart", cart)),
            arguments: vec![argument("id", "int", Value::Int(7))],
            returns: None,
        }
    }

    #[test]
    fn fields_have_lines_with_their_types_where_one_line_is_too_narrow() {
        assert_eq!(
            lines(&captured(), 30),
            [
                "this: Cart @0x10 (40 bytes)",
                "  decimal Total: null",
                "  Place: Place {X: 1, Y: 2}",
                "  string Name: \"a\\nb\"",
                "int id: 7",
            ]
        );
        assert_eq!(lines(&captured(), 24)[2..5], ["  Place: Place", "    int X: 1", "    int Y: 2"]);
        let wide = lines(&captured(), 200);
        assert_eq!(wide.len(), 2, "{wide:?}");
    }

    #[test]
    fn elements_that_are_objects_have_lines_of_their_own() {
        let item = |number| Value::Object {
            type_name: "Shop.Item",
            address: number,
            size_bytes: 24,
            fields: vec![field("Id", "int", Value::Int(number as i64))],
        };
        let items =
            Value::Array { type_name: "Shop.Item[]", length: 3, dimensions: Vec::new(), items: vec![item(1), item(2)] };
        let captured = CapturedValues { returns: Some(("Shop.Item[]", items)), ..CapturedValues::default() };
        assert_eq!(
            lines(&captured, 40),
            ["= Item[] of 3", "  [0]: Item @0x1 (24 bytes) {Id: 1}", "  [1]: Item @0x2 (24 bytes) {Id: 2}", "  ..."]
        );
    }
}
