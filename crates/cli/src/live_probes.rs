//! Rows about probes that are refreshed each second: calls so far, and times of the last calls.

use clrscope_analysis::numbers::{number, time};
use clrscope_analysis::{ProbeWatch, Query, QueryProblem, WatchedProbe, one_line};
use clrscope_contract::request::file_name;
use clrscope_recording::model::Recording;

/// Most rows that are shown, ordered by time since the last look.
const MOST_ROWS: usize = 10;
/// Titles of the columns before the name.
const TITLES: [&str; 5] = ["calls", "new", "failed", "50 %", "99 %"];

/// Rows about the probes of a recording that grows.
#[derive(Debug, Default)]
pub(crate) struct LiveProbes(ProbeWatch);

impl LiveProbes {
    /// Reads the recording. Returns the titles and the rows as lines; no lines if the recording has
    /// no probes.
    pub(crate) fn lines(&mut self, recording: &Recording, query: &Query) -> Result<Vec<String>, QueryProblem> {
        let watched = self.0.look(recording, query)?;
        let shown = watched.len().min(MOST_ROWS);
        let mut rows: Vec<([String; 5], String)> = watched[..shown].iter().map(row).collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        rows.insert(0, (TITLES.map(str::to_owned), "method".to_owned()));
        let mut lines = aligned(&rows);
        if watched.len() > shown {
            lines.push(format!("and {} more methods", watched.len() - shown));
        }
        Ok(lines)
    }
}

/// Cells of a row, and the name. Times are from the calls since the last look, and missing where
/// none ended.
fn row(watched: &WatchedProbe) -> ([String; 5], String) {
    let WatchedProbe { all, gained } = watched;
    let ended = |percent| gained.percentile_ns(percent).map_or_else(|| "-".to_owned(), time);
    let failed = if all.place.is_none() { number(all.failed) } else { "-".to_owned() };
    let place = all.place.as_ref().map(|place| format!("{}:{} in ", file_name(&place.file), place.line));
    let removed = if all.is_removed { " (removed)" } else { "" };
    let name = one_line(format!("{}{}{removed}", place.unwrap_or_default(), all.signature));
    ([number(all.calls), number(gained.calls), failed, ended(50), ended(99)], name)
}

/// Aligns the cells to the right in their columns.
fn aligned(rows: &[([String; 5], String)]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|(cells, _)| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..TITLES.len()).map(width).collect();
    let line = |(cells, name): &([String; 5], String)| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}  "));
        cells.collect::<String>() + name
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clrscope_analysis::{ProbeRow, ProbedPlace};

    use super::*;

    #[test]
    fn numbers_stand_under_each_other() {
        let of = |calls: u64, place: Option<ProbedPlace>| {
            let mut row = ProbeRow::default();
            row.signature = "Shop.Cart.Add()".to_owned();
            row.calls = calls;
            row.is_removed = place.is_some();
            row.place = place;
            row
        };
        let place = ProbedPlace { file: "/src/Cart.cs".to_owned(), line: 42 };
        let watched = [(of(12_000, None), 40), (of(7, Some(place)), 0)];
        let watched = watched.map(|(all, calls)| WatchedProbe { all, gained: of(calls, None) });
        let rows: Vec<_> = watched.iter().map(row).collect();
        assert_eq!(
            aligned(&rows),
            ["12,000  40  0  -  -  Shop.Cart.Add()", "     7   0  -  -  -  Cart.cs:42 in Shop.Cart.Add() (removed)"]
        );
    }
}
