//! JSON documents: a schema, the recording, then sections of rows. Rows are written one by one as
//! they arrive.

pub(crate) mod recording;
pub(crate) mod values;

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::guard::JsonGuard;
use super::{About, Entry, Renderer, Rows, Section, Style};

/// One JSON object, its keys in the order in which they were added.
pub(crate) type Object = Map<String, Value>;

/// An object from its keys and values.
pub(crate) fn object<const N: usize>(entries: [(&str, Value); N]) -> Object {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Layout of a document: the places where it has line breaks and spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Line breaks and spaces everywhere.
    Pretty,
    /// Line breaks between members and between rows.
    Rows,
    /// Line breaks between rows only.
    Dense,
}

/// Writes a report as one document.
pub(crate) struct Json<'o> {
    out: JsonGuard<&'o mut dyn Write>,
    layout: Layout,
    sections: usize,
    /// The blocks after the first.
    others: Vec<Object>,
}

impl<'o> Json<'o> {
    pub(crate) fn new(out: &'o mut dyn Write, layout: Layout) -> Self {
        Self { out: JsonGuard::new(out), layout, sections: 0, others: Vec::new() }
    }

    /// Begins a member of the document.
    fn key(&mut self, key: &str) -> io::Result<()> {
        match self.layout {
            Layout::Dense => write!(self.out, "\"{key}\":"),
            Layout::Pretty | Layout::Rows => write!(self.out, "\n  \"{key}\": "),
        }
    }

    /// Writes a value that is a member of the document.
    fn member(&mut self, value: &Value) -> io::Result<()> {
        match self.layout {
            Layout::Pretty => write_indented(&mut self.out, value, "\n  "),
            Layout::Rows | Layout::Dense => write!(self.out, "{value}"),
        }
    }

    /// Writes the rows of a section as a list.
    fn list(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut is_first = true;
        write!(self.out, "[")?;
        rows(&mut |entry| {
            write!(self.out, "{}", if std::mem::take(&mut is_first) { "" } else { "," })?;
            let row = Value::Object(row(section, entry));
            match self.layout {
                Layout::Pretty => {
                    write!(self.out, "\n    ")?;
                    write_indented(&mut self.out, &row, "\n    ")
                }
                Layout::Rows => write!(self.out, "\n    {row}"),
                // Sections other than the rows of a log are short.
                Layout::Dense if !section.is_main => write!(self.out, "{row}"),
                Layout::Dense => write!(self.out, "\n{row}"),
            }
        })?;
        match self.layout {
            Layout::Pretty if is_first => write!(self.out, "]"),
            Layout::Pretty | Layout::Rows => write!(self.out, "\n  ]"),
            Layout::Dense => write!(self.out, "]"),
        }
    }

    /// Keeps a section for the end of the document; for the sections of all blocks but the first.
    fn keep(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut all = Vec::new();
        rows(&mut |entry| {
            all.push(Value::Object(row(section, entry)));
            Ok(())
        })?;
        let value = if section.style == Style::Single { all.pop().unwrap_or_default() } else { Value::Array(all) };
        if self.others.len() < section.block {
            self.others.push(Object::new());
        }
        if let Some(block) = self.others.last_mut() {
            block.insert(section.key.to_owned(), value);
        }
        Ok(())
    }
}

impl Renderer for Json<'_> {
    fn begin(&mut self, about: &About<'_>) -> io::Result<()> {
        write!(self.out, "{{")?;
        self.key("schema")?;
        write!(self.out, "\"clrscope.{}/1\",", about.view)?;
        self.key("recording")?;
        self.member(&Value::Object(recording::recording(about.recording)))?;
        let Some(metric) = about.metric else { return Ok(()) };
        write!(self.out, ",")?;
        self.key("metric")?;
        self.member(&json!(metric.name))
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        if section.block > 0 {
            return self.keep(section, rows);
        }
        write!(self.out, "{}", if self.layout == Layout::Dense && self.sections > 0 { ",\n" } else { "," })?;
        self.sections += 1;
        self.key(section.key)?;
        match section.style {
            Style::Single => {
                let mut only = Object::new();
                rows(&mut |entry| {
                    only = row(section, entry);
                    Ok(())
                })?;
                self.member(&Value::Object(only))
            }
            Style::Tree | Style::Flame { .. } => {
                let mut tree = Tree { out: &mut self.out, open: 0 };
                write!(tree.out, "[")?;
                rows(&mut |entry| tree.node(section, entry))?;
                tree.close_down_to(0)?;
                write!(self.out, "]")
            }
            _ => self.list(section, rows),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        let others = std::mem::take(&mut self.others);
        if !others.is_empty() {
            write!(self.out, ",")?;
            self.key("others")?;
            self.member(&Value::Array(others.into_iter().map(Value::Object).collect()))?;
        }
        writeln!(self.out, "{}", if self.layout == Layout::Dense { "}" } else { "\n}" })
    }
}

/// A row as an object. Missing values are left out, or are `null` where the request selected the
/// columns.
fn row(section: &Section, entry: &dyn Entry) -> Object {
    let mut all = Object::new();
    for &column in &section.json {
        let value = entry.cell(column).to_json().or(section.is_picked.then_some(Value::Null));
        if let Some(value) = value {
            all.insert(section.columns[column].key.to_owned(), value);
        }
    }
    all
}

/// Writes a value with line breaks; `line` is a line break with the indentation of the value.
fn write_indented(out: &mut dyn Write, value: &Value, line: &str) -> io::Result<()> {
    // Line breaks within strings are escaped: all that there are belong to the layout.
    write!(out, "{}", format!("{value:#}").replace('\n', line))
}

/// Writes nodes one by one, so that a large tree is not in memory twice and a deep tree needs no
/// recursion.
struct Tree<'o> {
    out: &'o mut dyn Write,
    /// Number of nodes whose array of children is open.
    open: u32,
}

impl Tree<'_> {
    fn node(&mut self, section: &Section, entry: &dyn Entry) -> io::Result<()> {
        let depth = entry.depth();
        self.close_down_to(depth)?;
        // A first child follows the bracket of its parent, any other a sibling.
        if depth < self.open {
            write!(self.out, ",")?;
        }
        let text = json!(row(section, entry)).to_string();
        let comma = if text == "{}" { "" } else { "," };
        write!(self.out, "\n{}{comma}\"children\":[", &text[..text.len() - 1])?;
        self.open = depth.min(self.open) + 1;
        Ok(())
    }

    fn close_down_to(&mut self, depth: u32) -> io::Result<()> {
        for _ in depth..self.open {
            write!(self.out, "]}}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, Kind};
    use crate::column::{Column, Row, RowKind, Sheet};
    use crate::render::Tail;

    struct Depth(u32);

    struct Depths;

    impl RowKind for Depths {
        type Row<'a> = Depth;
    }

    impl Row for Depth {
        fn depth(&self) -> u32 {
            self.0
        }
    }

    /// The written array of a tree with nodes at these depths.
    fn written(depths: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let sheet: Sheet<'_, Depths> =
            Sheet::new([Column::new("depth", "", Kind::Count, |row: &Depth| Cell::Count(row.0.into()))]);
        let section = sheet.section("roots", Style::Tree, &[]);
        let mut text = Vec::new();
        let mut json = Json::new(&mut text, Layout::Dense);
        let mut depths = depths.into_iter();
        let taken = json.section(&section, &mut |visit| {
            depths.try_for_each(|depth| visit(&sheet.entry(&Depth(depth))))?;
            Ok(Tail::default())
        });
        taken.expect("memory takes all");
        text.strip_prefix(b",\"roots\":").expect("the key").to_vec()
    }

    /// The depths of the nodes, from the nesting of the document.
    fn depths(nodes: &Value) -> Vec<u64> {
        let mut all = Vec::new();
        for node in nodes.as_array().expect("an array") {
            all.push(node["depth"].as_u64().expect("a depth"));
            all.extend(depths(&node["children"]));
        }
        all
    }

    #[test]
    fn nesting_follows_the_depths() {
        let document = |case: &[u32]| -> Value { serde_json::from_slice(&written(case.to_vec())).expect("JSON") };
        for case in [&[][..], &[0], &[0, 0], &[0, 1, 2, 1, 0, 1], &[0, 1, 2, 3, 0]] {
            let expected: Vec<u64> = case.iter().map(|&d| u64::from(d)).collect();
            assert_eq!(depths(&document(case)), expected);
        }
        assert_eq!(document(&[0, 1, 1])[0]["children"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_deep_path_needs_no_stack() {
        let text = written(0..200_000);
        let brackets = |b: u8| text.iter().filter(|&&c| c == b).count();
        assert_eq!(brackets(b'{'), brackets(b'}'));
        assert_eq!(brackets(b'['), brackets(b']'));
        assert_eq!(brackets(b'{'), 200_000);
    }
}
