//! Pages of a screen: rows of a view, or of a table of our own.

use clrscope_analysis::{Query, Sort};
use clrscope_recording::model::Recording;
use clrscope_report::{Format, Request, View};
use serde_json::{Value, json};

use super::rates::Rates;

/// Rows of a page at most.
const MOST_ROWS: usize = 200;

/// Content of a page.
pub(crate) enum Content {
    /// A view, as the request asks for it.
    View(&'static View, Box<Request>),
    /// Types by what is allocated of them in a second.
    Rates(Rates),
}

/// A page: a name, and what it shows.
pub(crate) struct Page {
    /// Name on the screen.
    pub(crate) title: &'static str,
    /// Key in JSON.
    pub(crate) key: &'static str,
    contents: Vec<Content>,
    /// Number of the sort key among those that the view has; `None` for its own order.
    sort: Option<usize>,
    /// Lines as they were at the last look.
    lines: Vec<String>,
    rows: Vec<Value>,
}

impl Page {
    /// A page of these contents, one below the other.
    pub(crate) fn new(title: &'static str, key: &'static str, contents: Vec<Content>) -> Self {
        Self { title, key, contents, sort: None, lines: Vec::new(), rows: Vec::new() }
    }

    /// Takes a look, for so many columns.
    pub(crate) fn look(&mut self, recording: &Recording, width: usize) {
        let sort = self.sort();
        self.lines.clear();
        self.rows.clear();
        for content in &mut self.contents {
            let (text, rows) = match content {
                Content::View(view, request) => look_at(view, recording, request, sort, width),
                Content::Rates(rates) => {
                    rates.look(recording);
                    (table(rates, width), rates.types().iter().map(super::rates::TypeRate::json).collect())
                }
            };
            if !self.lines.is_empty() {
                self.lines.push(String::new());
            }
            self.lines.extend(text.lines().map(str::to_owned));
            self.rows.extend(rows);
        }
    }

    /// Lines of text, the first one with names of columns.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Rows for programs.
    pub(crate) fn rows(&self) -> Value {
        json!(self.rows)
    }

    /// The sort key that was chosen.
    pub(crate) fn sort(&self) -> Option<Sort> {
        let number = self.sort?;
        self.sorts().get(number).copied()
    }

    /// Chooses the next sort key; behind the last one the order is the view's own.
    pub(crate) fn sort_next(&mut self) {
        let next = self.sort.map_or(0, |number| number + 1);
        self.sort = (next < self.sorts().len()).then_some(next);
    }

    fn sorts(&self) -> &'static [Sort] {
        match self.contents.first() {
            Some(Content::View(view, _)) => view.sorts,
            _ => &[],
        }
    }
}

fn look_at(
    view: &'static View,
    recording: &Recording,
    request: &Request,
    sort: Option<Sort>,
    width: usize,
) -> (String, Vec<Value>) {
    let query = Query { limit: Some(MOST_ROWS), sort, ..request.query.clone() };
    let request = Request { query, ..request.clone() };
    // What was not recorded, or not yet, has no rows.
    let report = match view.open(recording, &request) {
        Ok(report) => report,
        Err(problem) => return (problem.to_string(), Vec::new()),
    };
    let (mut text, mut document) = (Vec::new(), Vec::new());
    // Memory takes all.
    let _ = report.write_rows(width, &mut text);
    let _ = report.write(Format::Json, width, &mut document);
    let document: Value = serde_json::from_slice(&document).unwrap_or_default();
    let rows = document.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
    (anstream::adapter::strip_str(&String::from_utf8_lossy(&text)).to_string(), rows)
}

fn table(rates: &Rates, width: usize) -> String {
    let types = rates.types();
    if types.is_empty() {
        return "Nothing was allocated, or too little to be sampled.".to_owned();
    }
    let rows = types.iter().map(|rate| format!("{:>10.2} {:>12.0}  {}", rate.bytes / 1e6, rate.objects, rate.name));
    let head = format!("{:>10} {:>12}  type", "MB/s", "objects/s");
    let fitted = |line: String| line.chars().take(width).collect::<String>();
    std::iter::once(head).chain(rows).map(fitted).collect::<Vec<_>>().join("\n")
}
