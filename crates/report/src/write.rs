//! Reports in every format.

use std::io::{self, Write};

use crate::page;
use crate::render::{Csv, Format, Json, text};
use crate::view::Report;

impl Report<'_> {
    /// Writes the report in a format; text takes at most `width` columns, and has styles that a caller may strip. A page has
    /// every view of the recording, under the report's filters, and opens at the report's own.
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
}
