//! JSON strings for formats that are written as a stream.

/// Returns a JSON string. Control characters of terminals and line ends of JavaScript are escaped
/// as numbers, which JSON permits.
pub(crate) fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let as_number = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if !quoted.contains(as_number) {
        return quoted;
    }
    let one = |c: char| if as_number(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    quoted.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_those_of_json() {
        let text = "a\"b\\c\n\u{1}\u{9b}\u{2028}\u{540d}";
        assert_eq!(quoted(text), "\"a\\\"b\\\\c\\n\\u0001\\u009b\\u2028\u{540d}\"");
        assert_eq!(serde_json::from_str::<String>(&quoted(text)).expect("JSON"), text);
    }
}
