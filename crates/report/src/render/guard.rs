//! The last filter before a terminal: no control character passes, even if a renderer forgot to
//! escape it.

use std::io::{self, Write};

/// Length of the longest style sequence, `ESC [ 38 ; 5 ; 255 m`.
const LONGEST_STYLE: usize = 12;

/// Writes text and escapes everything that could control a terminal: all control characters except
/// line feeds and the sequences of colours and weights, which the text renderers use themselves.
///
/// Each write must hold whole characters, as the bytes of a `str` do.
pub struct Guard<W>(W);

impl<W: Write> Guard<W> {
    /// Creates a guard before `out`.
    pub fn new(out: W) -> Self {
        Self(out)
    }
}

impl<W: Write> Write for Guard<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        pass(&mut self.0, bytes, style, |out, c| write!(out, "{}", c.escape_default()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes JSON and escapes the control characters that JSON leaves unescaped: DEL and control
/// characters of two bytes. The meaning of the document does not change.
pub(crate) struct JsonGuard<W>(W);

impl<W: Write> JsonGuard<W> {
    pub(crate) fn new(out: W) -> Self {
        Self(out)
    }
}

impl<W: Write> Write for JsonGuard<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        pass(&mut self.0, bytes, |_| None, |out, c| write!(out, "\\u{:04x}", u32::from(c)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes `bytes` with control characters escaped by `escape`. Line feeds stay, and so do the
/// sequences that `allowed` recognises at the beginning of its argument; `allowed` returns their
/// length.
fn pass<W: Write>(
    out: &mut W,
    bytes: &[u8],
    allowed: impl Fn(&[u8]) -> Option<usize>,
    escape: impl Fn(&mut W, char) -> io::Result<()>,
) -> io::Result<()> {
    let mut rest = bytes;
    let mut from = 0;
    while let Some((at, length, c)) = control(&rest[from..]) {
        let at = from + at;
        if let Some(length) = allowed(&rest[at..]) {
            from = at + length;
            continue;
        }
        out.write_all(&rest[..at])?;
        escape(out, c)?;
        rest = &rest[at + length..];
        from = 0;
    }
    out.write_all(rest)
}

/// The first control character except line feeds: its place, its length in bytes, and the
/// character.
fn control(bytes: &[u8]) -> Option<(usize, usize, char)> {
    let is_first = |&b: &u8| b < 0x20 && b != b'\n' || b == 0x7f || b == 0xc2;
    let mut from = 0;
    loop {
        let at = from + bytes[from..].iter().position(&is_first)?;
        match (bytes[at], bytes.get(at + 1)) {
            // Two bytes: U+0080 to U+00BF. The first half of these are controls.
            (0xc2, Some(&second @ 0x80..=0x9f)) => return Some((at, 2, char::from(second))),
            (0xc2, _) => from = at + 1,
            (byte, _) => return Some((at, 1, char::from(byte))),
        }
    }
}

/// The length of the style sequence that `bytes` begin with.
fn style(bytes: &[u8]) -> Option<usize> {
    let inner = bytes.strip_prefix(b"\x1b[")?;
    let end = inner.iter().take(LONGEST_STYLE).position(|b| !b.is_ascii_digit() && *b != b';')?;
    (inner[end] == b'm').then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(text: &str) -> String {
        let mut out = Vec::new();
        Guard::new(&mut out).write_all(text.as_bytes()).expect("memory takes all");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn styles_and_line_feeds_pass_and_nothing_else_does() {
        let style = anstyle::AnsiColor::Yellow.on_default().bold();
        let text = format!("{style}bold{style:#}\nplain \u{e4}\u{c0}\u{a0}\n");
        assert_eq!(guarded(&text), text);
        assert_eq!(
            guarded("\x1b]0;title\x07 \x1b[2J\r\u{9b}31m\x7f\x1b"),
            "\\u{1b}]0;title\\u{7} \\u{1b}[2J\\r\\u{9b}31m\\u{7f}\\u{1b}"
        );
        assert_eq!(guarded("\x1b[1111111111111111111m"), "\\u{1b}[1111111111111111111m");
    }

    #[test]
    fn json_stays_what_it_was() {
        let text = serde_json::json!({"a": "\x1b[31m\n\u{7f}\u{9b}\u{e4}\u{a0}"}).to_string();
        let mut out = Vec::new();
        JsonGuard::new(&mut out).write_all(text.as_bytes()).expect("memory takes all");
        let out = String::from_utf8(out).expect("UTF-8");
        assert!(!out.contains(['\x1b', '\u{7f}', '\u{9b}']), "{out:?}");
        let back: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(back["a"], "\x1b[31m\n\u{7f}\u{9b}\u{e4}\u{a0}");
    }
}
