//! The page for browsers: one file that holds every view of a recording and the program that shows them.
//!
//! It needs no network and may not use one: its content security policy lets nothing be loaded, and only the style and the
//! program run that are in the file, by their hashes. The data are the documents of `--format json`, packed
//! ([`render::page`](crate::render::page)), compressed, and written as base64, so that no text of a recording can end the
//! element that holds it. `ui/` has the sources of the program; what is built of them lies in `built/`.

mod base64;
mod plan;

use std::io::{self, Write};

use clrscope_analysis::{Heaps, one_line};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::render::json::recording;
use crate::render::page::{Packed, Plain, Pool, escaped};
use crate::request::Request;
use crate::view::{Report, View};
use crate::views::view;
use plan::{Budget, Planned, planned};

/// Program of the page.
pub(crate) const SCRIPT: &str = include_str!("built/page.js");
/// Style of the page.
pub(crate) const STYLE: &str = include_str!("built/page.css");
/// Hashes of program and style, and of the sources that they were built from.
pub(crate) const SEAL: &str = include_str!("built/seal.json");

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
    let seal: Value = serde_json::from_str(SEAL)?;
    let hash = |of: &str| seal[of].as_str().unwrap_or_default().to_owned();
    let (script, style) = (hash("script"), hash("style"));
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{script}'; \
         style-src '{style}'; base-uri 'none'; form-action 'none'\">"
    )?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<meta name=\"referrer\" content=\"no-referrer\">")?;
    writeln!(out, "<title>{} - clrscope</title>\n<style>{STYLE}</style>\n</head>\n<body>", escaped(&command))?;
    writeln!(out, "<div id=\"page\"><main class=\"plain\">\n{}</main></div>", plain(report, &heaps, &command)?)?;
    writeln!(out, "<script type=\"application/octet-stream\" id=\"data\">{data}</script>")?;
    writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>")
}

/// The documents and what belongs to all of them, as JSON.
fn documents<'a>(report: &Report<'a>, heaps: &Heaps<'a>, budget: Budget) -> io::Result<String> {
    let (recording, mut pool, mut all) = (report.recording, Pool::default(), Vec::new());
    for Planned { view, request, measures, options } in planned(recording, &report.request, budget) {
        // What was not recorded has no document.
        let Ok(opened) = view.open_with(recording, &request, heaps) else { continue };
        let mut packed = Packed::new(&mut pool);
        opened.render(&mut packed)?;
        let head = json!({ "view": view.name, "about": view.about, "options": options, "measures": measures });
        let head = head.to_string();
        all.push(format!("{},{}}}", &head[..head.len() - 1], packed.members(view.name)));
    }
    let head = json!({
        "format": 1,
        "tool": concat!("clrscope ", env!("CARGO_PKG_VERSION")),
        "open": report.view.name,
        "recording": recording::recording(recording),
    })
    .to_string();
    Ok(format!("{},\"values\":{},\"documents\":[{}]}}", &head[..head.len() - 1], pool.to_json(), all.join(",")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_holds_nothing_that_would_end_its_element() {
        for part in [SCRIPT, STYLE] {
            let lower = part.to_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("<!--") && !lower.contains("</style"));
        }
    }
}
