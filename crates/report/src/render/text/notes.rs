//! Sentences, and the short table at the end of a run.

use clrscope_analysis::Summary;

use super::head::wrapped;
use super::names::Names;
use super::one_line;
use super::table::{Column, Table};
use super::units::{count, share, time_cell};
use crate::cell::Cell;

/// A sentence of a list.
pub(super) fn bullet(text: &str, width: usize) -> String {
    let lines = wrapped(&one_line(text), width.saturating_sub(2));
    format!("- {}\n", lines.join("\n  "))
}

/// A short table of the first functions, for the end of a run.
#[must_use]
pub fn first_functions(view: &Summary<'_>, width: usize) -> String {
    let names = Names::of(view.top.iter().map(|row| (row.function.name(), row.function.plain_signature())));
    let mut table = Table::new(vec![
        Column::number("own time", 0),
        Column::number("share", 0),
        Column::number("calls", 1),
        Column::names("function", 0),
    ]);
    for row in &view.top {
        let own = row.times.exclusive_ns;
        let Cell::Function(named) = Cell::function(&row.function) else { continue };
        table.row_with_prefix(
            vec![
                time_cell(own),
                share(view.conditions.totals.share(own)),
                count(row.times.calls),
                format!("{}{}", names.shown(named.name, named.signature), named.after),
            ],
            String::new(),
        );
    }
    table.render_below(width, None).0
}
