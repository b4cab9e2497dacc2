//! The view `diff-tree`: call paths on two sides, and their stacks for a flame graph.

use std::convert::Infallible;
use std::io;

use clrscope_analysis::{
    ComparisonProblem, Metric, PathChange, Shown, SideTotal, Sides, SmallerPaths, Sort, TreeChanges, tree_changes,
};

use super::columns::{growth_words, own_keys, total_keys, unit_of};
use super::functions::sheet;
use super::merged::{most_changed, per};
use super::{beside_itself, frame, problem};
use crate::column::shown;
use crate::render::text::units::count;
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};
use crate::views::{FOLDING, REQUESTS, SELECTION};

/// The view `diff-tree`.
pub(super) static VIEW: View = View {
    name: "diff-tree",
    about: "The calling-context trees of both sides as one, with new and gone paths",
    takes: &[SELECTION, REQUESTS, FOLDING, &[Flag::Limit, Flag::Raw, Flag::Metric, Flag::Type]],
    sorts: &[Sort::Total, Sort::Own, Sort::Name, Sort::Module],
    text_rows: |_| None,
    has_head: false,
    layout: Layout::Dense,
    columns: |request| sheet(unit_of(request.query.metric), true).infos(),
    open: |recording, request, _| Ok(Box::new(compare(&beside_itself(recording), request).map_err(problem)?.0)),
};

/// The answer of the view.
pub(super) struct OpenComparison<'a> {
    sides: Sides<'a>,
    changes: TreeChanges<'a>,
    request: Request,
}

/// Compares trees.
pub(super) fn compare<'a>(
    sides: &Sides<'a>,
    request: &Request,
) -> Result<(OpenComparison<'a>, &'static Metric), ComparisonProblem> {
    let changes = tree_changes(sides, &request.query)?;
    let metric = changes.metric;
    Ok((OpenComparison { sides: sides.clone(), changes, request: request.clone() }, metric))
}

impl Answer for OpenComparison<'_> {
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let TreeChanges { metric, total, .. } = &self.changes;
        let largest = self.sides.chosen.as_ref().and_then(|_| self.changes.largest());
        let named = largest.as_ref().map(|row| (row.function.label().into_owned(), &row.own, metric.unit));
        let most = most_changed(&self.sides, named, "path");
        frame::show(&self.sides, Some(&SideTotal { metric, change: *total }), most, renderer)?;
        let (unit, totals) = (metric.unit, !metric.exclusive);
        let sheet = sheet(unit, totals);
        let keys = if totals { total_keys(unit) } else { own_keys(unit) };
        let [before, _, _, after, _, _, difference, _, _, growth, change] = keys;
        let range = if totals { "total_difference_range" } else { "difference_range" };
        let text = shown(&[
            (difference, 0, true),
            (growth, 2, true),
            (range, 1, true),
            (change, 0, true),
            (before, 3, true),
            (after, 3, true),
            ("name", 0, true),
        ]);
        let section = Section {
            title: Title::Bold(format!("Paths by {}{}", metric.title, per(&self.sides))),
            nothing: "No path to show: nothing was recorded, or the filters leave nothing.".to_owned(),
            what: "paths",
            ..sheet.main(&self.request, "roots", Style::Tree, &text)
        };
        renderer.section(&section, &mut |visit| {
            let min_share = self.request.min_share;
            let paths = Shown { min_share, different: min_share > 0.0 };
            let smaller = self.changes.walk(&paths, |row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: 0, note: note(&smaller) })
        })
    }
}

fn note(smaller: &SmallerPaths) -> Option<String> {
    let SmallerPaths { subtrees, same, left_out } = *smaller;
    let of = |number: u64, what: &str| (number > 0).then(|| format!("{} {what}", count(number)));
    let all = [of(subtrees + left_out, "smaller paths"), of(same, "paths that are exactly as they were")];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("... and {}; --format json has them.", all.join(" and ")))
}

/// A frame in a flame graph of two sides, with its growth. Stacks list their frames outermost
/// first. The weight of a stack is its own amount on the side where that is larger.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedFrame {
    /// Name of the function, with the growth if that is beyond chance.
    pub label: String,
    /// Growth of the path's total: positive for growth, at least 1 for new paths, -1 for paths that
    /// are gone; 0 if the difference may be chance.
    pub growth: f64,
}

/// Frames of the path at the current position of a walk.
type Open = Vec<ChangedFrame>;

/// Calls `visit` for every stack of both sides, with its frames and its own weight.
///
/// # Errors
/// As [`Comparison::open`](crate::Comparison::open).
pub fn changed_stacks(
    sides: &Sides<'_>,
    request: &Request,
    mut visit: impl FnMut(&[ChangedFrame], u64),
) -> Result<&'static Metric, ComparisonProblem> {
    let changes = tree_changes(sides, &request.query)?;
    let exclusive = changes.metric.exclusive;
    let mut path: Open = Vec::new();
    let paths = Shown { min_share: request.min_share, different: false };
    let shown = changes.walk(&paths, |row| -> Result<(), Infallible> {
        path.truncate(row.depth as usize);
        path.push(frame_of(row, exclusive));
        let weight = row.own.before.median.max(row.own.after.median).round() as u64;
        if weight > 0 {
            visit(&path, weight);
        }
        Ok(())
    });
    match shown {
        Ok(_) => Ok(changes.metric),
        Err(never) => match never {},
    }
}

fn frame_of(row: &PathChange<'_>, exclusive: bool) -> ChangedFrame {
    let change = if exclusive { &row.own } else { &row.total };
    let name = row.function.label();
    if !change.verdict.is_change() {
        return ChangedFrame { label: name.into_owned(), growth: 0.0 };
    }
    let words = match change.after.median > 0.0 {
        true => growth_words(change),
        false => "gone".to_owned(),
    };
    ChangedFrame { label: format!("{name} ({words})"), growth: change.growth().unwrap_or(f64::INFINITY) }
}
