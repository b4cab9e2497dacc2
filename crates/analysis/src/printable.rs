//! Text from the profiled program, made safe for printing.
//!
//! A program chooses the names of its threads, types and exceptions. Line breaks in them could
//! forge lines of a report, and escape sequences could control the reader's terminal.

/// Whether a character may be printed within a line. False for control characters (line breaks,
/// escape sequences of one and two bytes), and for characters that disguise the following text by
/// changing its direction.
#[must_use]
pub fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// The text on one line. Unprintable characters are written as escapes, such as `\n` or `\u{1b}`.
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
