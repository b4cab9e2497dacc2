//! The page for browsers: one file that holds every view of a recording and the script that shows
//! them; or the script alone, which requests each document from a server ([`served`]).
//!
//! A file needs no network and may not use one: its content security policy forbids loading
//! anything, and allows only the style and the script in the file, by their hashes. The data are
//! the documents of `--format json`: packed ([`render::page`](crate::render::page)), compressed,
//! and encoded in base64, so that no text of a recording can end the element that holds it. The
//! sources of the script are in `ui/`, the build results in `built/`.

mod base64;
mod chosen_requests;
mod documents;
mod encoded;
mod least;
mod moments;
mod pictures;
mod plan;
mod served;
mod shell;
mod states;
mod strip;
mod tracks;
mod whole;

use std::io::{self, Write};

use clrscope_analysis::{Heaps, one_line};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::render::page::{Plain, escaped};
use crate::request::Request;
use crate::view::{Report, View};
use crate::views::view;
pub use chosen_requests::ChosenRequests;
use documents::{documents, documents_of};
pub use pictures::{PictureAnswer, PictureRequest};
use plan::Budget;
pub use served::{DocumentRequest, ServedRecording, served_page, served_policy};

/// Maximum characters of the data: a page has less than 10 MB, and script and summary take the
/// rest.
const MOST_DATA: usize = 9_000_000;

/// Writes the page of a report's recording, with the report's filters; the page opens at the
/// report's view.
///
/// # Errors
/// Errors of `out`.
pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (mut budget, heaps) = (Budget::FIRST, Heaps::new(report.recording));
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

/// A page of existing reports, which opens at the first one. For comparisons, whose rows come from
/// several recordings.
#[derive(Debug)]
pub struct ReportsPage {
    title: String,
    plain: String,
    data: String,
}

/// Room that a page has for reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Paths with a smaller share of the whole are not shown.
    pub min_share: f64,
    /// Maximum number of rows of a report, or of children of a path.
    pub rows: usize,
}

impl Room {
    /// The initial room, enough for nearly all reports.
    pub const FIRST: Self = Self { min_share: 0.0002, rows: 50_000 };

    /// A smaller room, for data of `size` that exceed `most`. `None` if the data fit, or if a
    /// smaller room would leave nothing.
    fn smaller(self, size: usize, most: usize) -> Option<Self> {
        let smaller = Self { min_share: self.min_share * 3.0, rows: self.rows / 3 };
        (size > most && smaller.rows > 0).then_some(smaller)
    }

    /// The request, limited to this room.
    #[must_use]
    pub fn limited(self, request: &Request) -> Request {
        let mut request = Request { min_share: self.min_share, ..request.clone() };
        request.query.limit = Some(request.query.limit.map_or(self.rows, |asked| asked.min(self.rows)));
        request
    }
}

impl ReportsPage {
    /// A page of the reports that `open` returns for the available room. Calls `open` again with
    /// ever smaller room until the page is small enough. The first report is also readable without
    /// script.
    ///
    /// # Errors
    /// Errors of `open`; the inner result has errors of rendering.
    pub fn fitting<'a, E>(
        title: &str,
        open: impl FnMut(Room) -> Result<Vec<Report<'a>>, E>,
    ) -> Result<io::Result<Self>, E> {
        Self::within(MOST_DATA, title, open)
    }

    fn within<'a, E>(
        most: usize,
        title: &str,
        mut open: impl FnMut(Room) -> Result<Vec<Report<'a>>, E>,
    ) -> Result<io::Result<Self>, E> {
        let mut room = Room::FIRST;
        loop {
            let page = Self::new(&open(room)?, title);
            match page.as_ref().ok().and_then(|page| room.smaller(page.data.len(), most)) {
                Some(smaller) => room = smaller,
                None => return Ok(page),
            }
        }
    }

    fn new(reports: &[Report<'_>], title: &str) -> io::Result<Self> {
        let title = one_line(title);
        let Some(first) = reports.first() else { return Ok(Self { title, plain: String::new(), data: String::new() }) };
        let mut text = Plain::default();
        first.render(&mut text)?;
        let plain = format!("<h1>{}</h1>\n{}", escaped(&title), text.html);
        let data = base64::encoded(&compressed(&documents_of(reports, first)?)?);
        Ok(Self { title, plain, data })
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        shell::write(out, &shell::policy("'none'"), &self.title, &self.plain, "", &self.data)
    }
}

fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes())?;
    gzip.finish()
}

/// The summary for readers without script.
fn plain<'a>(report: &Report<'a>, heaps: &Heaps<'a>, command: &str) -> io::Result<String> {
    let mut plain = Plain::default();
    let request = Request {
        query: plan::filters_for(&report.request, view("summary").map(|view| (view, false))),
        ..Request::default()
    };
    let open = |view: &'static View| view.open_with(report.recording, &view.for_people(&request), heaps).ok();
    let summary = view("summary").and_then(open);
    if let Some(summary) = summary {
        summary.render(&mut plain)?;
    }
    Ok(format!("<h1>{}</h1>\n{}", escaped(command), plain.html))
}

#[cfg(test)]
mod tests {
    use clrscope_recording::testing::many::Many;

    use super::*;

    #[test]
    fn room_shrinks_until_a_page_fits_or_nothing_is_left() {
        assert_eq!(Room::FIRST.smaller(MOST_DATA, MOST_DATA), None);
        let smaller = Room::FIRST.smaller(MOST_DATA + 1, MOST_DATA).expect("less room");
        assert!(smaller.rows < Room::FIRST.rows && smaller.min_share > Room::FIRST.min_share);
        let rooms = std::iter::successors(Some(Room::FIRST), |room| room.smaller(usize::MAX, MOST_DATA));
        assert!(rooms.count() < 20, "it ends");
    }

    #[test]
    fn a_page_of_reports_that_is_too_large_is_made_again_with_fewer_rows() {
        let recording = Many { samples: 2_000, stacks: 500, threads: 2 }.recording();
        let mut rooms = Vec::new();
        let mut page = |most| {
            rooms.clear();
            let made = ReportsPage::within(most, "both", |room| {
                rooms.push(room);
                let functions = view("functions").expect("a view");
                functions.open(&recording, &room.limited(&Request::default())).map(|report| vec![report])
            });
            (made.expect("an answer").expect("a page").data.len(), rooms.len())
        };
        let (whole, tries) = page(MOST_DATA);
        assert_eq!(tries, 1, "{whole}");
        let (smaller, tries) = page(whole / 2);
        assert!(smaller <= whole / 2 && tries > 1, "{smaller} of {whole} after {tries}");
    }
}
