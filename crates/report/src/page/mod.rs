//! The page for browsers: one file that holds every view of a recording and the program that shows them; or the program alone,
//! which asks for what it shows ([`served`]).
//!
//! A file needs no network and may not use one: its content security policy lets nothing be loaded, and only the style and the
//! program run that are in the file, by their hashes. The data are the documents of `--format json`, packed
//! ([`render::page`](crate::render::page)), compressed, and written as base64, so that no text of a recording can end the
//! element that holds it. `ui/` has the sources of the program; what is built of them lies in `built/`.

mod base64;
mod documents;
mod least;
mod moments;
mod plan;
mod served;
mod shell;

use std::io::{self, Write};

use clrscope_analysis::{Heaps, one_line};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::render::page::{Plain, escaped};
use crate::request::Request;
use crate::view::{Report, View};
use crate::views::view;
use documents::{documents, documents_of};
use plan::Budget;
pub use served::{Served, Wanted, served_page, served_policy};

/// Characters of the data at most: a page has less than 10 MB, and the rest is program and summary.
const MOST_DATA: usize = 9_000_000;

/// Writes the page of the recording that a report is about, with the report's filters, opened at the report's view.
///
/// # Errors
/// Errors of `out`.
pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (mut budget, heaps) = (Budget::FIRST, Heaps::of(report.recording));
    let data = loop {
        let data = base64::encoded(&compressed(&documents(report, &heaps, budget)?)?);
        match budget.smaller(data.len(), MOST_DATA) {
            Some(smaller) => budget = smaller,
            None => break data,
        }
    };
    let command = one_line(report.recording.run.command.join(" "));
    shell::write(out, &shell::policy("'none'"), &command, &plain(report, &heaps, &command)?, "", &data)
}

/// Writes a page of reports that are there already, with all their rows, opened at the first: of comparisons, whose rows are
/// not of one recording. Trees are without the smallest paths where the reports are.
///
/// # Errors
/// Errors of `out`.
pub fn write_pages(reports: &[Report<'_>], title: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = reports.first() else { return Ok(()) };
    let mut text = Plain::default();
    first.render(&mut text)?;
    let title = one_line(title);
    let plain = format!("<h1>{}</h1>\n{}", escaped(&title), text.html);
    let data = base64::encoded(&compressed(&documents_of(reports, first)?)?);
    shell::write(out, &shell::policy("'none'"), &title, &plain, "", &data)
}

fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes())?;
    gzip.finish()
}

/// The summary for readers without script.
fn plain<'a>(report: &Report<'a>, heaps: &Heaps<'a>, command: &str) -> io::Result<String> {
    let mut plain = Plain::default();
    let request = Request { query: plan::filters_for(&report.request, view("summary")), ..Request::default() };
    let open = |view: &'static View| view.open_with(report.recording, &view.for_people(&request), heaps).ok();
    let summary = view("summary").and_then(open);
    if let Some(summary) = summary {
        summary.render(&mut plain)?;
    }
    Ok(format!("<h1>{}</h1>\n{}", escaped(command), plain.html))
}
