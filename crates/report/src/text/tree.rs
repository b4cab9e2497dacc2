//! The view `tree`: numbers on the left, names indented by their depth on the right.

use clrscope_analysis::{Totals, Tree, TreeNode};

use super::footnote;
use super::names::Names;
use super::table::{Column, Table};
use super::units::{count, share, time, time_cell};

/// Columns of indentation per level.
const STEP: usize = 2;
/// Indentation takes at most this part of the width.
const MOST_INDENT: usize = 4;

/// The view `tree`.
pub fn tree(view: &Tree<'_>, width: usize) -> String {
    if view.nodes.is_empty() {
        return super::lists::nothing("path", width);
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
        let cells = vec![
            time_cell(node.times.inclusive_ns),
            share(totals.share(node.times.inclusive_ns)),
            time_cell(node.times.exclusive_ns),
            count(node.times.calls),
            label(node, &names),
        ];
        table.row_with_prefix(cells, indentation(node.depth as usize, width));
    }
    table.render(width) + &pruned(view, totals, width)
}

fn label(node: &TreeNode<'_>, names: &Names<'_>) -> String {
    let thread = match node.thread {
        Some(thread) if node.depth == 0 => format!("{} {}: ", thread.id, thread.role.name()),
        _ => String::new(),
    };
    let tail = if node.by_tail_call { " (tail call)" } else { "" };
    format!("{thread}{}{tail}", names.shown(&node.function))
}

/// Spaces, as long as they leave room for names; further down a number says the depth.
fn indentation(depth: usize, width: usize) -> String {
    let most = width / MOST_INDENT;
    match depth * STEP {
        spaces if spaces <= most => " ".repeat(spaces),
        _ => format!("{:>most$} ", format!("({depth})")),
    }
}

fn pruned(view: &Tree<'_>, totals: &Totals, width: usize) -> String {
    if view.pruned.subtrees == 0 {
        return String::new();
    }
    let line = format!(
        "... and {} smaller paths with {} ({}) in all; --format json has them",
        count(view.pruned.subtrees),
        time(view.pruned.total),
        share(totals.share(view.pruned.total)),
    );
    footnote(&line, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nodes_say_their_depth_instead_of_leaving_the_screen() {
        assert_eq!(indentation(0, 80), "");
        assert_eq!(indentation(10, 80), " ".repeat(20));
        assert_eq!(indentation(11, 80), format!("{:>20} ", "(11)"));
        assert_eq!(indentation(10_000, 80).len(), 21);
    }
}
