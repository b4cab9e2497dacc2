//! Measurements of one goal, as lines of `docs/benchmarks.md`.

use super::absolute::Line;
use super::goals::{Goal, Limit};
use super::page::{Part, Table};
use super::series::Series;
use super::verdict;
use crate::machine;

/// The lines of one goal that are measured so far.
pub(super) struct Report {
    id: &'static str,
    runtime: String,
    lines: Vec<(Table, String)>,
    /// Ratio of the first comparison.
    first: Option<f64>,
    pairs: usize,
    repeated: usize,
    load: (f64, f64),
}

impl Report {
    pub(super) fn new(id: &'static str, runtime: &str, pairs: usize) -> Self {
        let load = machine::load();
        Self { id, runtime: runtime.to_owned(), lines: Vec::new(), first: None, pairs, repeated: 0, load: (load, load) }
    }

    /// Adds a comparison; returns its line for the terminal.
    pub(super) fn ratio(&mut self, goal: &Goal, what: &str, series: &Series) -> String {
        let first = *self.first.get_or_insert(series.ratio.median);
        let (figure, wanted) = match goal.limit {
            Limit::MoreMs(most) => {
                let more = series.more_ms;
                (format!("{:+.0} ms ({:+.0} to {:+.0})", more.median, more.low, more.high), format!("{most:.0} ms"))
            }
            Limit::Ratio(most) => (ratio(series), format!("{most:.2}")),
            Limit::OfFirst(times) => (ratio(series), format!("{times:.0} x {first:.2}")),
            Limit::None => (ratio(series), String::new()),
        };
        let verdict = verdict(goal.limit, series, first);
        let (subject, base) = series.seconds;
        let (wall, base_wall) = series.wall;
        let line = format!(
            "| {} | {what} | {figure} | {wanted} | {verdict} | {subject:.2} / {base:.2} | {wall:.2} / {base_wall:.2} |",
            goal.id
        );
        self.lines.push((Table::Ratios, line));
        self.repeated += series.repeated;
        self.look();
        format!(
            "{:10} {what:56} {figure:24} {wanted:8} {verdict:10} {} pairs, {} repeated",
            goal.id, series.pairs, series.repeated
        )
    }

    /// Adds a line with a figure that is not a ratio; returns the line for the terminal.
    pub(super) fn absolute(&mut self, (id, what, figure, verdict): Line) -> String {
        self.lines.push((Table::Absolutes, format!("| {id} | {what} | {figure} | {verdict} |")));
        self.look();
        format!("{id:10} {what:56} {figure} {verdict}")
    }

    fn look(&mut self) {
        let load = machine::load();
        self.load = (self.load.0.min(load), self.load.1.max(load));
    }

    /// The lines, with one that says where and when they were measured; `None` if nothing was
    /// measured.
    pub(super) fn part(self) -> Option<Part> {
        let Self { id, runtime, mut lines, pairs, repeated, load, .. } = self;
        if lines.is_empty() {
            return None;
        }
        let day = jiff::Timestamp::now().strftime("%Y-%m-%d");
        let conditions = format!(
            "| {id} | {day} | {}, .NET {runtime} | {:.1} to {:.1} | {pairs} | {repeated} |",
            machine::describe(),
            load.0,
            load.1
        );
        lines.push((Table::Conditions, conditions));
        Some(Part { id, lines })
    }
}

fn ratio(series: &Series) -> String {
    format!("{:.2} ({:.2} to {:.2})", series.ratio.median, series.ratio.low, series.ratio.high)
}
