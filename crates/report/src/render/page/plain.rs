//! The summary as plain HTML, for readers without script and for desktop search engines.

use std::borrow::Cow;
use std::io;

use clrscope_analysis::one_line;

use crate::render::text::grid::words;
use crate::render::{About, Entry, Renderer, Rows, Section, Style, Title};

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 50;

/// Writes the sections of text output as headings, lists and tables.
#[derive(Default)]
pub(crate) struct Plain {
    /// The HTML.
    pub(crate) html: String,
}

/// The text, with escapes in place of the characters of tags, quotes and entities.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            '\'' => all.push_str("&#39;"),
            c => all.push(c),
        }
    }
    Cow::Owned(all)
}

impl Plain {
    fn title(&mut self, title: &Title) {
        if let Title::Bold(title) | Title::Faint(title) = title {
            self.html.push_str(&format!("<h2>{}</h2>\n", escaped(&one_line(title.as_str()))));
        }
    }

    fn list(&mut self, section: &Section, entries: &[Vec<String>]) {
        if entries.is_empty() {
            return;
        }
        self.title(&section.title);
        self.html.push_str("<ul>\n");
        for cells in entries {
            self.html.push_str(&format!("<li>{}</li>\n", escaped(&cells.join(" "))));
        }
        self.html.push_str("</ul>\n");
    }

    fn table(&mut self, section: &Section, entries: &[Vec<String>]) {
        if entries.is_empty() {
            return;
        }
        self.title(&section.title);
        let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| -> String {
            texts.map(|text| format!("<{tag}>{}</{tag}>", escaped(text.trim()))).collect()
        };
        let titles = cells("th", &mut section.text.iter().map(|shown| section.columns[shown.column].title));
        self.html.push_str(&format!("<table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n"));
        for row in entries.iter().take(MOST_ROWS) {
            self.html.push_str(&format!("<tr>{}</tr>\n", cells("td", &mut row.iter().map(String::as_str))));
        }
        self.html.push_str("</tbody>\n</table>\n");
    }
}

impl Renderer for Plain {
    fn begin(&mut self, _about: &About<'_>) -> io::Result<()> {
        Ok(())
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        if section.text.is_empty() {
            return Ok(());
        }
        let mut entries: Vec<Vec<String>> = Vec::new();
        let tail = rows(&mut |entry: &dyn Entry| {
            if entries.len() < MOST_ROWS {
                entries.push(section.text.iter().map(|shown| words(&entry.cell(shown.column))).collect());
            }
            Ok(())
        })?;
        match section.style {
            Style::Notes | Style::Facts => self.list(section, &entries),
            _ => self.table(section, &entries),
        }
        if let Some(note) = tail.note {
            self.html.push_str(&format!("<p>{}</p>\n", escaped(&one_line(note))));
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_a_tag() {
        assert_eq!(escaped("<b>&\"'</b>"), "&lt;b&gt;&amp;&quot;&#39;&lt;/b&gt;");
        assert!(matches!(escaped("Shop.Cart::Total"), Cow::Borrowed(_)));
    }
}
