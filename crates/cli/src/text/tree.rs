//! The view `tree`: numbers on the left, names indented by their depth on the right.

use clrscope_analysis::{Totals, Tree, TreeNode};

use super::names::{Names, columns};
use super::table::{Column, Table};
use super::units::{count, share, time, time_cell};
use super::{FAINT, styled};
use crate::errors::one_line;

/// Columns of indentation per level.
const STEP: usize = 2;
/// From this part of the width on, deeper nodes are not indented further: their depth is a number.
const MOST_INDENT: usize = 3;

/// The view `tree`.
pub(crate) fn tree(view: &Tree<'_>, width: usize) -> String {
    if view.nodes.is_empty() {
        return "No path to show: nothing was recorded, or the filters leave nothing.\n".to_owned();
    }
    let totals = &view.conditions.totals;
    let names = Names::of(view.nodes.iter().map(|node| node.function));
    let per_thread = view.nodes.iter().any(|node| node.thread.is_some());
    let mut table = Table::new(vec![
        Column::number("inclusive", 0),
        Column::number("share", 0),
        Column::number("exclusive", 2),
        Column::number("calls", 1),
        Column::words(if per_thread { "thread and function" } else { "function" }, 0),
    ]);
    for node in &view.nodes {
        table.row(vec![
            time_cell(node.times.inclusive_ns),
            share(totals.share(node.times.inclusive_ns)),
            time_cell(node.times.exclusive_ns),
            count(node.times.calls),
            label(node, &names, width),
        ]);
    }
    table.render(width) + &pruned(view, totals)
}

fn label(node: &TreeNode<'_>, names: &Names<'_>, width: usize) -> String {
    let depth = node.depth as usize;
    let indent = depth * STEP;
    let most = width / MOST_INDENT;
    let indentation = match indent <= most {
        true => " ".repeat(indent),
        false => format!("{:<most$}", format!("{}({depth})", " ".repeat(most.saturating_sub(depth_columns(depth))))),
    };
    let thread = match node.thread {
        Some(thread) if depth == 0 => format!("{} {}: ", thread.id, thread.role.name()),
        _ => String::new(),
    };
    let tail = if node.by_tail_call { " (tail call)" } else { "" };
    format!("{indentation}{thread}{}{tail}", one_line(names.shown(&node.function)))
}

fn depth_columns(depth: usize) -> usize {
    columns(&depth.to_string()) + 3
}

fn pruned(view: &Tree<'_>, totals: &Totals) -> String {
    if view.pruned.subtrees == 0 {
        return String::new();
    }
    let line = format!(
        "... and {} smaller paths with {} ({}) in all; --format json has them",
        count(view.pruned.subtrees),
        time(view.pruned.inclusive_ns),
        share(totals.share(view.pruned.inclusive_ns)),
    );
    styled(FAINT, &line) + "\n"
}
