//! Strings of JSON, for formats that are written as they come.

use std::fmt::Write as _;

/// A string in JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_those_of_json() {
        assert_eq!(quoted("a\"b\\c\n\u{1}\u{2028}\u{540d}"), "\"a\\\"b\\\\c\\u000a\\u0001\\u2028\u{540d}\"");
    }
}
