//! Rows of cells as a table.

use std::collections::BTreeSet;

use anstyle::{AnsiColor, Style as Ansi};
use clrscope_analysis::Verdict;

use super::names::{NameKind, Names, readable};
use super::table::{Column, Table};
use super::units::{bytes_cell, count, share, time_cell};
use super::{FAINT, one_line};
use crate::cell::{Cell, Kind};
use crate::render::{Entry, Section};

/// Style of own code among other code.
const OWN: Ansi = Ansi::new().bold();
/// Style of changes that cost more; `LESS` is the style of changes that save something.
const MORE: Ansi = AnsiColor::Red.on_default();
const LESS: Ansi = AnsiColor::Green.on_default();

/// Columns of indentation per level of a tree.
const STEP: usize = 2;
/// Indentation takes at most the width divided by this.
const MOST_INDENT: usize = 4;
/// Maximum indentation in columns, however wide a table may be.
const WIDEST_INDENT: usize = 60;

/// Rows of a section, collected until they are laid out together.
pub(super) struct Grid {
    columns: Vec<(usize, Column)>,
    /// Columns that have verdicts.
    verdicts: Vec<usize>,
    /// The column that is indented, if the rows are a tree.
    indented: Option<usize>,
    /// Whether the lines below rows are shown.
    with_below: bool,
    width: usize,
    rows: Vec<Line>,
    /// Column widths of the rows that were laid out before, whose titles also apply to these rows.
    widths: Option<Vec<usize>>,
}

/// A line of the table, before its columns have widths.
enum Line {
    Cells(Vec<Text>),
    /// Lines of text below a row.
    Below(String),
}

/// A cell as text.
enum Text {
    Words {
        indentation: String,
        words: String,
        style: Option<Ansi>,
    },
    /// A function, shown by name, or by signature where others have the same name.
    Function {
        indentation: String,
        before: String,
        name: String,
        signature: String,
        after: String,
        is_own: bool,
    },
}

impl Grid {
    /// A table without rows.
    pub(super) fn new(section: &Section, width: usize) -> Self {
        let column = |shown: &crate::render::TextColumn| {
            let info = &section.columns[shown.column];
            let column = match (info.kind, info.kind.is_left()) {
                (Kind::Function, _) => Column::names(info.title, shown.dispensable),
                (Kind::Type, _) => Column::names_of(NameKind::Type, info.title, shown.dispensable),
                (Kind::Counter, _) => Column::names_of(NameKind::Counter, info.title, shown.dispensable),
                (_, true) => Column::words(info.title, shown.dispensable),
                (_, false) => Column::number(info.title, shown.dispensable),
            };
            (shown.column, column)
        };
        let is_tree = section.style.is_tree();
        let is_name = |column: &usize| section.columns[*column].kind == Kind::Function;
        Self {
            columns: section.text.iter().map(column).collect(),
            verdicts: (0..section.columns.len()).filter(|&at| section.columns[at].kind == Kind::Verdict).collect(),
            indented: section.text.iter().map(|shown| shown.column).find(is_name).filter(|_| is_tree),
            with_below: !section.is_picked,
            width,
            rows: Vec::new(),
            widths: None,
        }
    }

    pub(super) fn row(&mut self, entry: &dyn Entry) {
        let cell = |&(column, _): &(usize, Column)| {
            let indentation = match self.indented == Some(column) {
                true => indentation(entry.depth() as usize, self.width),
                false => String::new(),
            };
            match entry.cell(column) {
                Cell::Function(named) => Text::Function {
                    indentation,
                    before: named.before,
                    name: if named.has_namesakes { named.signature } else { named.name }.to_owned(),
                    signature: named.signature.to_owned(),
                    after: named.after,
                    is_own: named.is_own,
                },
                cell => {
                    let words = words(&cell);
                    let style = if self.verdicts.contains(&column) { style_of_verdict(&words) } else { None };
                    Text::Words { indentation, words, style }
                }
            }
        };
        let row = self.columns.iter().map(cell).collect();
        self.rows.push(Line::Cells(row));
        let below = entry.below().iter().filter(|_| self.with_below);
        self.rows.extend(below.map(|words| Line::Below(one_line(words.as_str()))));
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the rows so far as text and forgets them. The first call puts the titles above them.
    pub(super) fn flush(&mut self) -> String {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() || self.columns.is_empty() {
            return String::new();
        }
        let cells = rows.iter().flat_map(|line| match line {
            Line::Cells(cells) => &cells[..],
            Line::Below(_) => &[],
        });
        let functions = cells.filter_map(|cell| match cell {
            Text::Function { name, signature, .. } => Some((name.as_str(), signature.as_str())),
            Text::Words { .. } => None,
        });
        let names = Names::from_functions(functions);
        let are_own: BTreeSet<bool> = rows.iter().flat_map(Line::are_own).collect();
        // Where all functions are of one kind, nothing has to stand out.
        let own_style = (are_own.len() > 1).then_some(OWN);
        let mut table = Table::new(self.columns.iter().map(|(_, column)| *column).collect());
        for line in &rows {
            let row = match line {
                Line::Cells(row) => row,
                Line::Below(words) => {
                    table.below(words.clone());
                    continue;
                }
            };
            let (mut cells, mut styles, mut prefix) = (Vec::new(), Vec::new(), String::new());
            for (at, cell) in row.iter().enumerate() {
                let (indentation, words, style) = match cell {
                    Text::Words { indentation, words, style } => (indentation.clone(), words.clone(), *style),
                    Text::Function { indentation, before, name, signature, after, is_own } => {
                        let name = readable(one_line(names.shown(name, signature)));
                        let style = own_style.filter(|_| *is_own);
                        (format!("{indentation}{before}"), format!("{name}{after}"), style)
                    }
                };
                styles.push(style);
                if at + 1 == row.len() {
                    prefix = indentation;
                    cells.push(words);
                } else {
                    cells.push(format!("{indentation}{words}"));
                }
            }
            table.row_with_prefix(cells, prefix);
            table.style_last(styles);
        }
        let with_titles = self.widths.is_none();
        let (text, widths) = table.render_below(self.width, self.widths.take());
        self.widths = Some(widths);
        if with_titles { text } else { text.split_once('\n').map_or_else(String::new, |(_, rows)| rows.to_owned()) }
    }
}

impl Line {
    /// For each function in the line: whether it is own code.
    fn are_own(&self) -> impl Iterator<Item = bool> {
        let cells = match self {
            Self::Cells(cells) => &cells[..],
            Self::Below(_) => &[],
        };
        cells.iter().filter_map(|cell| match cell {
            Text::Function { is_own, .. } => Some(*is_own),
            Text::Words { .. } => None,
        })
    }
}

fn style_of_verdict(word: &str) -> Option<Ansi> {
    let all = [
        (Verdict::New, MORE),
        (Verdict::More, MORE),
        (Verdict::Less, LESS),
        (Verdict::Gone, LESS),
        (Verdict::Unclear, FAINT),
    ];
    all.into_iter().find_map(|(verdict, style)| (verdict.name() == word).then_some(style))
}

/// A value as text in one line.
pub(crate) fn words(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Absent | Cell::Null => String::new(),
        Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Cell::Count(number) => count(*number),
        Cell::Number(number) => number.to_string(),
        Cell::Time(ns) => time_cell(*ns),
        Cell::Bytes(number) => bytes_cell(*number),
        Cell::Change(number) => number.to_string(),
        Cell::Share(part) => share(*part),
        Cell::Text(text) => one_line(text.as_ref()),
        Cell::Function(named) => format!("{}{}{}", named.before, one_line(named.name), named.after),
        Cell::Thread(thread) => {
            let name = if thread.name.is_empty() { thread.role.name() } else { &thread.name };
            format!("{} {}", thread.id, one_line(name))
        }
        Cell::Nested(value) => one_line(value.to_string()),
        Cell::Said(_, words) => one_line(words.as_str()),
    }
}

/// Spaces for the indentation, as long as they leave room for names; deeper rows show their depth
/// as a number.
fn indentation(depth: usize, width: usize) -> String {
    let most = (width / MOST_INDENT).min(WIDEST_INDENT);
    match depth * STEP {
        spaces if spaces <= most => " ".repeat(spaces),
        _ => format!("{:>most$} ", format!("depth {depth}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nodes_say_their_depth_instead_of_leaving_the_screen() {
        assert_eq!(indentation(0, 80), "");
        assert_eq!(indentation(10, 80), " ".repeat(20));
        assert_eq!(indentation(11, 80), format!("{:>20} ", "depth 11"));
        assert_eq!(indentation(10_000, 80).len(), 21);
    }
}
