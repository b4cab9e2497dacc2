//! Reports in every format.

use std::io::{self, Write};

use crate::page;
use crate::render::{About, Csv, Format, Json, Renderer, Rows, Section, Tail, text};
use crate::view::Report;

/// Renders only the main section of a view.
struct RowsAlone<'o>(text::Text<'o>);

impl Renderer for RowsAlone<'_> {
    fn begin(&mut self, _about: &About<'_>) -> io::Result<()> {
        Ok(())
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        if !section.is_main {
            return Ok(());
        }
        self.0.section(section, &mut |visit| Ok(Tail { note: None, ..rows(visit)? }))
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Report<'_> {
    /// Writes the report in a format. Text takes at most `width` columns, and contains styles
    /// (colours and weights) that a caller may strip. A page has every view of the recording, with
    /// the report's filters, and opens at the report's view.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, format: Format, width: usize, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Text => self.render(&mut text::Text::new(out, width, self.request.on_terminal)),
            Format::Json => self.render(&mut Json::new(out, self.view.layout)),
            Format::Csv => self.render(&mut Csv::new(out)),
            Format::Html => page::write(self, out),
        }
    }

    /// Writes the rows of the main section as text, without the head, remarks and other sections.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_rows(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        self.render(&mut RowsAlone(text::Text::new(out, width, false)))
    }
}
