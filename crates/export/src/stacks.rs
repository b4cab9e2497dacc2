//! Stacks as text with a weight each: what `collapsed` and `flamegraph` are made of.
//!
//! A stack's weight is its node's total of the metric less that of the children that are shown: the node's own,
//! and that of paths too small or too deep to be shown. So the weights add up to the totals of the
//! roots shown, whatever is left out below them. Where a metric has no totals (calls), they are weights of single nodes.

use std::ops::ControlFlow;

use clrscope_analysis::{Forest, Metric, Query, Sort, TreeNode, TreeOptions, is_printable};
use clrscope_recording::model::Recording;

use crate::{ExportError, ExportOptions};

/// Deeper frames count for the frame at this depth: the text of a path would grow with the square of
/// its depth, and no viewer shows so many.
pub(crate) const MAX_FRAMES: u32 = 1000;

/// A node on the path that is not finished.
struct Open {
    depth: u32,
    /// Length of the path's text before its frame.
    text_before: usize,
    /// Weight of the node less that of its children so far.
    left: u64,
}

/// Shows each stack (`a;b;c`) and its weight, if it has any, to `visit`; each node to `node` when it is
/// entered. Returns what the stacks are weighed by.
pub(crate) fn stacks(
    recording: &Recording,
    options: &ExportOptions,
    min_share: f64,
    mut node: impl FnMut(&TreeNode<'_>, &str),
    mut visit: impl FnMut(&str, u64) -> Result<(), ExportError>,
) -> Result<&'static Metric, ExportError> {
    // The order of siblings stays whatever they are weighed by.
    let sort = options.query.sort.or(Some(Sort::Inclusive));
    let forest = Forest::open(recording, &Query { sort, ..options.query.clone() })?;
    let metric = forest.conditions().metric;
    let several = forest.conditions().processes.len() > 1;
    let tree = TreeOptions { min_share, max_depth: Some(MAX_FRAMES) };
    let mut text = String::new();
    let mut path: Vec<Open> = Vec::new();
    forest.walk(&tree, |at: &TreeNode<'_>| -> Result<(), ExportError> {
        while let ControlFlow::Continue(done) = pop(&mut path, at.depth) {
            finish(&mut text, &done, &mut visit)?;
        }
        let weight = at.amount.total;
        if !metric.exclusive
            && let Some(parent) = path.last_mut()
        {
            parent.left = parent.left.saturating_sub(weight);
        }
        let text_before = text.len();
        if at.depth == 0 {
            push_place(&mut text, at, several);
        }
        let name_at = text.len();
        push_frame(&mut text, &at.function.label());
        node(at, text[name_at..].trim_start_matches(';'));
        path.push(Open { depth: at.depth, text_before, left: weight });
        Ok(())
    })?;
    while let ControlFlow::Continue(done) = pop(&mut path, 0) {
        finish(&mut text, &done, &mut visit)?;
    }
    Ok(metric)
}

fn pop(path: &mut Vec<Open>, depth: u32) -> ControlFlow<(), Open> {
    match path.pop_if(|top| top.depth >= depth) {
        Some(done) => ControlFlow::Continue(done),
        None => ControlFlow::Break(()),
    }
}

fn finish(
    text: &mut String,
    done: &Open,
    visit: &mut impl FnMut(&str, u64) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    if done.left > 0 {
        visit(text, done.left)?;
    }
    text.truncate(done.text_before);
    Ok(())
}

/// Appends the place of a stack: its process when there are several, its thread when threads are apart.
fn push_place(text: &mut String, node: &TreeNode<'_>, several: bool) {
    if several {
        push_frame(text, &format!("process {}", node.function.pid));
    }
    if let Some(thread) = node.thread {
        let named = if thread.name.is_empty() { String::new() } else { format!(" {}", thread.name) };
        push_frame(text, &format!("thread {}{named}", thread.id));
    }
}

/// Appends a frame. What the format gives a meaning is replaced: semicolons and line breaks, and a
/// space before a number at the end, which would read as a weight.
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
