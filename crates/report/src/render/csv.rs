//! Comma-separated values: RFC 4180's quoting, lines that end with a line feed, the keys of JSON.
//!
//! The columns depend on the view and the request, not on the rows. Values that are split, such as
//! a thread, have a column for each possible part; the column's name is the key and the part's
//! name, joined by `_`. All other nested values are JSON text.
//!
//! Text of the program (names of threads, messages, arguments) may begin like a formula, and a
//! spreadsheet would run it. Such text gets an apostrophe in front, as OWASP advises
//! (<https://owasp.org/www-community/attacks/CSV_Injection>). Numbers stay as they are.

use std::borrow::Cow;
use std::io::{self, Write};

use clrscope_export::delimited::write_line;
use serde_json::Value;

use super::{About, Entry, Renderer, Rows, Section};

/// Writes the main section of a report as comma-separated values.
pub(crate) struct Csv<'o> {
    out: &'o mut dyn Write,
    has_header: bool,
}

impl<'o> Csv<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, has_header: false }
    }
}

impl Renderer for Csv<'_> {
    fn begin(&mut self, _about: &About<'_>) -> io::Result<()> {
        Ok(())
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        if !section.is_main {
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_header, true) {
            write_line(&mut *self.out, ',', &header(section))?;
        }
        rows(&mut |entry| write_line(&mut *self.out, ',', &fields(section, entry)))?;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn header(section: &Section) -> Vec<Cow<'static, str>> {
    let mut names = Vec::new();
    for &column in &section.csv {
        let column = &section.columns[column];
        match column.parts {
            [] => names.push(column.key.into()),
            parts => names.extend(parts.iter().map(|part| Cow::from(format!("{}_{part}", column.key)))),
        }
    }
    names
}

fn fields(section: &Section, entry: &dyn Entry) -> Vec<Cow<'static, str>> {
    let mut fields = Vec::new();
    for &column in &section.csv {
        let value = entry.cell(column).to_json().unwrap_or(Value::Null);
        match section.columns[column].parts {
            [] => fields.push(field(&value)),
            parts => fields.extend(parts.iter().map(|part| value.get(part).map_or(Cow::Borrowed(""), field))),
        }
    }
    fields
}

fn field(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) if begins_as_formula(text) => Cow::Owned(format!("'{text}")),
        Value::String(text) => Cow::Owned(text.clone()),
        other => Cow::Owned(other.to_string()),
    }
}

/// Whether a spreadsheet would interpret the text as a formula.
fn begins_as_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_spreadsheet_would_run_has_an_apostrophe_in_front() {
        for text in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"] {
            assert_eq!(field(&Value::from(text)), format!("'{text}"));
        }
        for text in ["", "a=b", "Shop.Cart::Add", "'quoted'"] {
            assert_eq!(field(&Value::from(text)), text);
        }
        assert_eq!(field(&Value::from(-1)), "-1", "a number is one");
    }
}
