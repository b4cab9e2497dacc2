//! Documents in the form that a page holds: the JSON of a view, with rows turned into columns and
//! each text stored once.
//!
//! The page rebuilds the exact document of `--format json` from this form. A column has the values
//! of the JSON key, and further data for display (titles, kinds, and the words that people see
//! instead of a value). A column marked `"plain"` holds numbers, booleans and null as they are, and
//! `""` if a row has no such key. Other columns hold indices into the pool, and -1 if a row has no
//! such key.

use std::fmt::Write as _;
use std::io;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::cell::{Cell, Kind};
use crate::render::text::grid::words;
use crate::render::{About, Entry, Renderer, Rows, Section, Tail, Title};

/// A pool of values that are not plain numbers, each stored once.
#[derive(Default)]
pub(crate) struct Pool {
    places: FxHashMap<String, usize>,
    /// The values as JSON text, as members of an array.
    text: String,
}

impl Pool {
    /// Returns the index of a value; adds the value if it is new.
    pub(crate) fn index_of(&mut self, value: &Value) -> usize {
        let text = value.to_string();
        if let Some(&place) = self.places.get(&text) {
            return place;
        }
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(&text);
        let place = self.places.len();
        self.places.insert(text, place);
        place
    }

    /// The values as a JSON array.
    pub(crate) fn to_json(&self) -> String {
        format!("[{}]", self.text)
    }
}

/// Packs the sections of one report.
pub(crate) struct SectionPacker<'p> {
    pool: &'p mut Pool,
    sections: Vec<String>,
    /// Number of rows in all sections.
    pub(crate) rows: usize,
    metric: Option<&'static str>,
}

impl<'p> SectionPacker<'p> {
    /// Packs into the pool of a page.
    pub(crate) fn new(pool: &'p mut Pool) -> Self {
        Self { pool, sections: Vec::new(), rows: 0, metric: None }
    }

    /// Members of the document: `"schema": ..., "sections": [...]`, without braces.
    pub(crate) fn members(&self, view: &str) -> String {
        let metric = self.metric.map_or_else(String::new, |metric| format!("\"metric\":{},", json!(metric)));
        format!("\"schema\":\"clrscope.{view}/1\",{metric}\"sections\":[{}]", self.sections.join(","))
    }
}

/// A column while rows are added.
struct Packing {
    column: usize,
    plain: bool,
    values: String,
    /// Text shown instead of the value, by row.
    words: String,
}

impl Packing {
    fn new(column: usize, kind: Kind) -> Self {
        let plain = matches!(kind, Kind::Count | Kind::Number | Kind::Time | Kind::Bytes | Kind::Share | Kind::Flag);
        Self { column, plain, values: String::new(), words: String::new() }
    }

    fn add_cell(&mut self, row: usize, entry: &dyn Entry, is_tree: bool, pool: &mut Pool) {
        let cell = entry.cell(self.column);
        if row > 0 {
            self.values.push(',');
        }
        // Writing to a string does not fail.
        let _ = match (cell.to_json(), self.plain) {
            (None, true) => write!(self.values, "\"\""),
            (None, false) => write!(self.values, "-1"),
            (Some(value @ (Value::Null | Value::Bool(_) | Value::Number(_))), true) => write!(self.values, "{value}"),
            (Some(value), true) => write!(self.values, "[{}]", pool.index_of(&value)),
            (Some(value), false) => write!(self.values, "{}", pool.index_of(&value)),
        };
        if let Some(words) = said(cell, is_tree) {
            let comma = if self.words.is_empty() { "" } else { "," };
            let _ = write!(self.words, "{comma}{row},{}", pool.index_of(&Value::String(words)));
        }
    }

    fn finish(&self, section: &Section) -> String {
        let info = &section.columns[self.column];
        let mut all = json!({ "key": info.key, "title": info.title, "kind": info.kind.name() });
        if !info.parts.is_empty() {
            all["parts"] = json!(info.parts);
        }
        for (key, list) in [("json", &section.json), ("csv", &section.csv)] {
            all[key] = json!(list.contains(&self.column));
        }
        // The place among the columns of text, which has the most telling ones first.
        all["text"] = json!(section.text.iter().position(|shown| shown.column == self.column));
        let (head, plain) = (all.to_string(), if self.plain { ",\"plain\":true" } else { "" });
        let words = if self.words.is_empty() { String::new() } else { format!(",\"words\":[{}]", self.words) };
        format!("{}{plain},\"values\":[{}]{words}}}", &head[..head.len() - 1], self.values)
    }
}

/// Words that people see instead of a value; `None` if they are its usual form.
pub(crate) fn said(cell: Cell<'_>, is_tree: bool) -> Option<String> {
    match cell {
        Cell::Said(..) => Some(words(&cell)),
        // Nodes of trees stand below their threads, which have a column of their own.
        Cell::Function(mut named) => {
            if is_tree {
                named.before.clear();
            }
            let is_more = !named.before.is_empty() || !named.after.is_empty();
            is_more.then(|| words(&Cell::Function(named)))
        }
        _ => None,
    }
}

/// The columns of a section for a page: the columns of JSON and of text, in the order of JSON.
fn columns(section: &Section) -> Vec<usize> {
    let others = section.text.iter().map(|shown| shown.column).chain(section.csv.iter().copied());
    let mut all = section.json.clone();
    for column in others {
        if !all.contains(&column) {
            all.push(column);
        }
    }
    all
}

impl Renderer for SectionPacker<'_> {
    fn begin(&mut self, about: &About<'_>) -> io::Result<()> {
        self.metric = about.metric.map(|metric| metric.name);
        Ok(())
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        let is_tree = section.style.is_tree();
        let mut packing: Vec<Packing> =
            columns(section).into_iter().map(|at| Packing::new(at, section.columns[at].kind)).collect();
        let (mut count, mut depths, mut below) = (0_usize, String::new(), String::new());
        let tail: Tail = rows(&mut |entry| {
            packing.iter_mut().for_each(|column| column.add_cell(count, entry, is_tree, self.pool));
            if is_tree {
                let _ = write!(depths, "{}{}", if count > 0 { "," } else { "" }, entry.depth());
            }
            for line in entry.below() {
                let comma = if below.is_empty() { "" } else { "," };
                let _ = write!(below, "{comma}{count},{}", self.pool.index_of(&json!(line)));
            }
            count += 1;
            Ok(())
        })?;
        self.rows += count;
        let title = match &section.title {
            Title::None => Value::Null,
            Title::Bold(title) | Title::Faint(title) => json!(title),
        };
        let head = json!({
            "key": section.key, "style": section.style.name(), "block": section.block, "main": section.is_main,
            "title": title, "nothing": section.nothing, "what": section.what, "left_out": tail.left_out,
            "note": tail.note, "picked": section.is_picked, "rows": count,
        })
        .to_string();
        let columns: Vec<String> = packing.iter().map(|column| column.finish(section)).collect();
        let columns = columns.join(",");
        let head = &head[..head.len() - 1];
        self.sections.push(format!("{head},\"depths\":[{depths}],\"below\":[{below}],\"columns\":[{columns}]}}"));
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}
