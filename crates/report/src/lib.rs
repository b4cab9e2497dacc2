//! What a recording says, as text, JSON and CSV.
//!
//! Nothing here reads files or writes to the terminal: whoever calls hands in a recording and gets text or rows.

pub mod csv;
pub mod json;
pub mod text;

/// A text on one line, control characters written out: they would break lines of a report, or the terminal.
#[must_use]
pub fn one_line(text: impl Into<String>) -> String {
    let text = text.into();
    if !text.chars().any(char::is_control) {
        return text;
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}
