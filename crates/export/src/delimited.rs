//! Lines of fields with a delimiter between them: RFC 4180's quoting, lines that end with a line
//! feed.
//!
//! Control characters are escaped (`\n`, `\u{1b}`), so each record is one line, and a terminal can
//! show the file safely.

use std::borrow::Cow;
use std::io::{self, Write};

use clrscope_analysis::{is_printable, one_line};

/// Writes one line. Fields that contain the delimiter or a quote are quoted, quotes within them are
/// doubled (RFC 4180), and control characters are escaped.
///
/// # Errors
/// Errors of `out`.
pub fn write_line(out: &mut dyn Write, delimiter: char, fields: &[Cow<'_, str>]) -> io::Result<()> {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            write!(out, "{delimiter}")?;
        }
        let field = if field.chars().all(is_printable) { Cow::Borrowed(&**field) } else { one_line(&**field).into() };
        if field.contains([delimiter, '"']) {
            write!(out, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            out.write_all(field.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

/// Nanoseconds as seconds, with a decimal point and all nine digits, whatever the locale.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_quotes_has_them() {
        let mut out = Vec::new();
        let fields = ["a;b", "c,d", "say \"x\"", "two\nlines", ""].map(Cow::from);
        write_line(&mut out, ';', &fields).expect("written");
        assert_eq!(String::from_utf8_lossy(&out), "\"a;b\";c,d;\"say \"\"x\"\"\";two\\nlines;\n");
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(1), "0.000000001");
        assert_eq!(seconds(12_000_000_034), "12.000000034");
    }
}
