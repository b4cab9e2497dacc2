//! Stacks as text with their weights, from which `collapsed` and `flamegraph` are made.
//!
//! A stack's weight is its node's total of the metric less the totals of the shown children. So it
//! includes the node's own value and the values of paths that are too small or too deep to be
//! shown, and the weights add up to the totals of the shown roots even if parts below are left out.
//! For a metric without totals (calls), the weights are those of single nodes.

use clrscope_analysis::{Forest, Metric, Query, Sort, TreeNode, TreeOptions, is_printable};
use clrscope_recording::model::{Recording, Thread};

use crate::{ExportError, ExportOptions};

/// Largest depth of a stack; the values of deeper frames are added to the frame at this depth. The
/// text of a path would grow with the square of its depth, and no viewer shows that many frames.
pub(crate) const MAX_FRAMES: u32 = 1000;

/// A step of the walk through all paths.
pub(crate) enum Step<'s, 'a> {
    /// The walk enters a node: the path gets one more frame.
    Enter(&'s TreeNode<'a>),
    /// The walk leaves the node at the end of the path; the path's own weight is this.
    Leave(u64),
}

/// The paths for an export; those of allocations end in the types of the objects.
pub(crate) fn forest<'a>(recording: &'a Recording, query: &Query) -> Result<Forest<'a>, ExportError> {
    // The order of siblings does not depend on the weight.
    let sort = query.sort.or(Some(Sort::Inclusive));
    Ok(Forest::open(recording, &Query { sort, type_leaves: true, ..query.clone() })?)
}

/// Walks through all paths, in preorder.
pub(crate) fn walk<'a>(
    forest: &Forest<'a>,
    min_share: f64,
    mut step: impl FnMut(Step<'_, 'a>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let is_exclusive = forest.conditions().metric.exclusive;
    let tree = TreeOptions { min_share, max_depth: Some(MAX_FRAMES) };
    // For each node on the path: its depth, and its weight less that of its children so far.
    let mut path: Vec<(u32, u64)> = Vec::new();
    forest.walk(&tree, |at: &TreeNode<'a>| -> Result<(), ExportError> {
        while let Some((_, left)) = path.pop_if(|(depth, _)| *depth >= at.depth) {
            step(Step::Leave(left))?;
        }
        let weight = at.amount.total;
        if let Some((_, left)) = path.last_mut().filter(|_| !is_exclusive) {
            *left = left.saturating_sub(weight);
        }
        path.push((at.depth, weight));
        step(Step::Enter(at))
    })?;
    path.into_iter().rev().try_for_each(|(_, left)| step(Step::Leave(left)))
}

/// Walks the tree: calls `node` when it enters a node, and `visit` with each stack (`a;b;c`) that
/// has a weight. Returns the meaning of the weights.
pub(crate) fn stacks(
    recording: &Recording,
    options: &ExportOptions,
    min_share: f64,
    mut node: impl FnMut(&TreeNode<'_>, &str),
    mut visit: impl FnMut(&str, u64) -> Result<(), ExportError>,
) -> Result<&'static Metric, ExportError> {
    let forest = forest(recording, &options.query)?;
    let several = forest.conditions().processes.len() > 1;
    let mut text = String::new();
    // Length of the path's text before each of its frames.
    let mut before: Vec<usize> = Vec::new();
    walk(&forest, min_share, |step| {
        match step {
            Step::Enter(at) => {
                before.push(text.len());
                if at.depth == 0 {
                    let places = places(at.function.pid, at.thread, several);
                    places.for_each(|place| push_frame(&mut text, &place));
                }
                let name_at = text.len();
                push_frame(&mut text, &at.function.label());
                node(at, text[name_at..].trim_start_matches(';'));
            }
            Step::Leave(weight) => {
                if weight > 0 {
                    visit(&text, weight)?;
                }
                text.truncate(before.pop().unwrap_or(0));
            }
        }
        Ok(())
    })?;
    Ok(forest.conditions().metric)
}

/// Frames in front of the outermost function: the process if there are several, and the thread if
/// threads are separate.
pub(crate) fn places(pid: u32, thread: Option<&Thread>, several: bool) -> impl Iterator<Item = String> {
    let process = several.then(|| format!("process {pid}"));
    let thread = thread.map(|thread| {
        let named = if thread.name.is_empty() { String::new() } else { format!(" {}", thread.name) };
        format!("thread {}{named}", thread.id)
    });
    process.into_iter().chain(thread)
}

/// Appends a frame. Characters with a meaning in the format are replaced: semicolons, line breaks,
/// and a space before a number at the end of the name, which would be parsed as a weight.
pub(crate) fn push_frame(text: &mut String, name: &str) {
    if !text.is_empty() {
        text.push(';');
    }
    let start = text.len();
    text.extend(name.trim().chars().map(|c| match c {
        ';' => ':',
        c if !is_printable(c) => ' ',
        c => c,
    }));
    if text.len() == start {
        text.push_str("(unnamed)");
    }
    if let Some((_, last)) = text[start..].rsplit_once(' ')
        && last.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        let space = text.len() - last.len() - 1;
        text.replace_range(space..=space, "_");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_hold_nothing_that_the_format_would_read() {
        let frame = |name: &str| {
            let mut text = String::new();
            push_frame(&mut text, name);
            text
        };
        assert_eq!(frame("a;b\nc"), "a:b c");
        assert_eq!(frame("thread 12"), "thread_12");
        assert_eq!(frame("[suspended: GC]"), "[suspended: GC]");
        assert_eq!(frame(" "), "(unnamed)");
    }
}
