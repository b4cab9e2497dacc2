//! Pages of a screen: rows of a view, or of a special table.

use clrscope_analysis::{Query, Sort};
use clrscope_recording::model::Recording;
use clrscope_report::{Format, NameKind, Request, UNLIMITED, View};
use serde_json::Value;

use super::rates::{Rates, TypeRate};

/// Most rows of a page.
const MOST_ROWS: usize = 200;

/// Content of a page.
pub(crate) enum Content {
    /// A view with a request.
    View(&'static View, Box<Request>),
    /// Types with their allocations per second.
    Rates(Rates),
}

/// A page: its name and its contents.
pub(crate) struct Page {
    /// Name on the screen.
    pub(crate) title: &'static str,
    /// Key in JSON.
    pub(crate) key: &'static str,
    contents: Vec<Content>,
    /// Index of the sort key among the view's keys; `None` for the view's own order.
    sort: Option<usize>,
    /// The current lines.
    lines: Vec<String>,
}

impl Page {
    /// Creates a page with these contents, one below the other.
    pub(crate) fn new(title: &'static str, key: &'static str, contents: Vec<Content>) -> Self {
        Self { title, key, contents, sort: None, lines: Vec::new() }
    }

    /// Reads the recording, because rates are differences between two looks.
    pub(crate) fn look(&mut self, recording: &Recording) {
        for content in &mut self.contents {
            if let Content::Rates(rates) = content {
                rates.look(recording);
            }
        }
    }

    /// Builds the lines, `width` columns wide.
    pub(crate) fn make_lines(&mut self, recording: &Recording, width: usize) {
        let texts = self.contents.iter().map(|content| match content {
            Content::View(view, request) => text_of(view, recording, request, self.sort(), width),
            Content::Rates(rates) => table(rates, width),
        });
        self.lines = texts.collect::<Vec<_>>().join("\n").lines().map(str::to_owned).collect();
    }

    /// Lines of text; the first has the names of the columns.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Rows as JSON.
    pub(crate) fn rows(&self, recording: &Recording) -> Value {
        let rows = self.contents.iter().flat_map(|content| match content {
            Content::View(view, request) => rows_of(view, recording, request),
            Content::Rates(rates) => rates.types().iter().map(TypeRate::json).collect(),
        });
        rows.collect()
    }

    /// The selected sort key; `None` for the view's own order.
    pub(crate) fn sort(&self) -> Option<Sort> {
        let number = self.sort?;
        self.sorts().get(number).copied()
    }

    /// Selects the next sort key; after the last one comes the view's own order.
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

/// Rows of a view as text.
fn text_of(view: &'static View, recording: &Recording, request: &Request, sort: Option<Sort>, width: usize) -> String {
    let query = Query { limit: Some(MOST_ROWS), sort, ..request.query.clone() };
    let mut text = Vec::new();
    match view.open(recording, &Request { query, ..request.clone() }) {
        // Writing into memory can't fail.
        Ok(report) => drop(report.write_rows(width, &mut text)),
        // Data that was not recorded, or not yet, has no rows.
        Err(problem) => return problem.to_string() + "\n",
    }
    anstream::adapter::strip_str(&String::from_utf8_lossy(&text)).to_string()
}

/// Rows of a view as in its JSON document.
fn rows_of(view: &'static View, recording: &Recording, request: &Request) -> Vec<Value> {
    let query = Query { limit: Some(MOST_ROWS), ..request.query.clone() };
    let Ok(report) = view.open(recording, &Request { query, ..request.clone() }) else { return Vec::new() };
    let mut document = Vec::new();
    // As above.
    drop(report.write(Format::Json, UNLIMITED, &mut document));
    let document: Value = serde_json::from_slice(&document).unwrap_or_default();
    document.get("rows").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn table(rates: &Rates, width: usize) -> String {
    let types = rates.types();
    if types.is_empty() {
        return "Nothing was allocated, or too little to be sampled.\n".to_owned();
    }
    let row = |rate: &TypeRate| {
        let numbers = format!("{:>10.2} {:>12.0}  ", rate.bytes / 1e6, rate.objects);
        let name = NameKind::Type.shortened(&rate.name, width.saturating_sub(numbers.len()));
        format!("{numbers}{name}\n")
    };
    let head = format!("{:>10} {:>12}  type\n", "MB/s", "objects/s");
    std::iter::once(head).chain(types.iter().map(row)).collect()
}
