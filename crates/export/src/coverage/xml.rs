//! XML writer for coverage formats: indented elements with attributes.

use std::fmt::Display;
use std::io::{self, Write};

use clrscope_analysis::is_printable;

/// A document that is written element by element.
pub(super) struct Xml<'o> {
    out: &'o mut dyn Write,
    open: Vec<&'static str>,
}

/// Escapes a text: replaces characters with a meaning in XML, characters that XML can't represent,
/// and characters that must not be printed.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if !is_printable(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

impl<'o> Xml<'o> {
    pub(super) fn begin(out: &'o mut dyn Write) -> io::Result<Self> {
        out.write_all(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n")?;
        Ok(Self { out, open: Vec::new() })
    }

    /// Begins an element with child elements.
    pub(super) fn open(&mut self, name: &'static str, attributes: Attributes<'_>) -> io::Result<()> {
        self.tag(name, attributes, ">")?;
        self.open.push(name);
        Ok(())
    }

    /// Ends the innermost element.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let Some(name) = self.open.pop() else { return Ok(()) };
        self.indent()?;
        writeln!(self.out, "</{name}>")
    }

    /// Writes an element without content.
    pub(super) fn empty(&mut self, name: &'static str, attributes: Attributes<'_>) -> io::Result<()> {
        self.tag(name, attributes, " />")
    }

    /// Writes an element with text.
    pub(super) fn text(&mut self, name: &'static str, text: &str) -> io::Result<()> {
        self.indent()?;
        writeln!(self.out, "<{name}>{}</{name}>", escaped(text))
    }

    fn tag(&mut self, name: &str, attributes: Attributes<'_>, end: &str) -> io::Result<()> {
        self.indent()?;
        write!(self.out, "<{name}")?;
        for (key, value) in attributes {
            write!(self.out, " {key}=\"{}\"", escaped(&value.to_string()))?;
        }
        writeln!(self.out, "{end}")
    }

    fn indent(&mut self) -> io::Result<()> {
        self.open.iter().try_for_each(|_| self.out.write_all(b"  "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_means_something_in_xml_is_written_out() {
        assert_eq!(escaped("List<T> & \"x\"\u{1}"), "List&lt;T&gt; &amp; &quot;x&quot;\u{fffd}");
        let mut out = Vec::new();
        let mut xml = Xml::begin(&mut out).expect("written");
        xml.open("a", &[("n", &1), ("t", &"<")]).expect("written");
        xml.empty("b", &[]).expect("written");
        xml.close().expect("written");
        let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";
        assert_eq!(String::from_utf8(out).expect("text"), format!("{head}<a n=\"1\" t=\"&lt;\">\n  <b />\n</a>\n"));
    }
}
