//! Text of the program that was profiled, as it may be printed.
//!
//! A program names its threads, types and exceptions as it likes: line breaks would forge lines of
//! a report, and escape sequences would command the terminal of the reader.

/// Whether a character may stand in a line that is printed: no control character (line breaks,
/// escape sequences in one byte and in two), and none that changes the direction of what follows,
/// which shows another text than there is.
#[must_use]
pub fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// A text on one line, with characters that may not be printed written out: `\n`, `\u{1b}`.
#[must_use]
pub fn one_line(text: impl Into<String>) -> String {
    let text = text.into();
    if text.chars().all(is_printable) {
        return text;
    }
    let mut line = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_printable(c) {
            line.push(c);
        } else {
            line.extend(c.escape_default());
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_written_out_and_all_else_stays() {
        assert_eq!(one_line("a\x1b[31mb\r\n\t\u{9b}0m"), "a\\u{1b}[31mb\\r\\n\\t\\u{9b}0m");
        assert_eq!(one_line("safe\u{202e}gpj.exe"), "safe\\u{202e}gpj.exe");
        assert_eq!(one_line("\u{540d} \\ \"\u{e4}\""), "\u{540d} \\ \"\u{e4}\"");
    }
}
