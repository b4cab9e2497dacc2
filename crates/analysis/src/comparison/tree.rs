//! Changes of the call trees, merged path by path.

use std::convert::Infallible;

use rustc_hash::FxHashMap;

use super::functions::{MergedChanges, PathChange, change, compare, largest};
use super::identity::Identities;
use super::interval::{Change, Verdict};
use super::reading::{Reading, Sum, plain, totals};
use super::sides::{ComparisonProblem, Sides};
use crate::forest::{Forest, TreeNode, TreeOptions};
use crate::function::FunctionRef;
use crate::metric::Metric;
use crate::query::{Query, Sort};

/// Parent of a node without a parent.
const NO_PARENT: u32 = u32::MAX;

/// The merged call tree of both sides. It has a node for each path that any of the recordings has.
#[derive(Debug)]
pub struct TreeChanges<'a> {
    /// The metric.
    pub metric: &'static Metric,
    /// Change of the metric's total over everything selected.
    pub total: Change,
    nodes: Vec<Node<'a>>,
    /// All nodes, ordered by parent. Each node has the range of its children.
    children: Vec<u32>,
    roots: (u32, u32),
    /// For each recording, the sums by node; the recordings before first.
    sums: Vec<Vec<Sum>>,
    readings: [Vec<Reading>; 2],
    merging: MergedChanges,
    sort: Sort,
    limit: Option<usize>,
}

#[derive(Debug)]
struct Node<'a> {
    parent: u32,
    function: FunctionRef<'a>,
    children: (u32, u32),
}

/// The tree while it is built.
#[derive(Default)]
struct Growing<'a> {
    identities: Identities,
    nodes: Vec<Node<'a>>,
    known: FxHashMap<(u32, u32), u32>,
}

/// Compares call trees.
///
/// # Errors
/// When the recordings have no common metric to compare, or the query selects nothing in a
/// recording.
pub fn tree_changes<'a>(sides: &Sides<'a>, query: &Query) -> Result<TreeChanges<'a>, ComparisonProblem> {
    let query = &sides.resolved(query)?;
    let metric = sides.metric(query)?;
    let readings = sides.read(|recording| Reading::read(recording, query, metric))?;
    let forests = sides.read(|recording| Forest::open(recording, &plain(query, metric)))?;
    let mut growing = Growing::default();
    let sums = forests.iter().flatten().map(|forest| growing.add(forest, metric)).collect();
    let (nodes, children, roots) = growing.finish();
    let (sort, limit) = (query.sort.unwrap_or(Sort::Total), query.limit);
    let merging = MergedChanges::new(sides, &readings);
    let total = totals(&readings, &merging.amounts);
    Ok(TreeChanges { metric, total, nodes, children, roots, sums, readings, merging, sort, limit })
}

impl<'a> Growing<'a> {
    /// Adds the paths of a recording. Returns its sums by node.
    fn add(&mut self, forest: &Forest<'a>, metric: &Metric) -> Vec<Sum> {
        let (mut sums, mut path) = (Vec::new(), Vec::<u32>::new());
        let take = |node: &TreeNode<'a>| -> Result<(), Infallible> {
            path.truncate(node.depth as usize);
            let at = self.node(path.last().copied().unwrap_or(NO_PARENT), node.function);
            path.push(at);
            if sums.len() <= at as usize {
                sums.resize(at as usize + 1, Sum::default());
            }
            sums[at as usize].add(&Sum::new(&node.times, node.amount, metric, false));
            Ok(())
        };
        match forest.walk(&TreeOptions::default(), take) {
            Ok(_) => sums,
            Err(never) => match never {},
        }
    }

    fn node(&mut self, parent: u32, function: FunctionRef<'a>) -> u32 {
        let next = self.nodes.len() as u32;
        let at = *self.known.entry((parent, self.identities.number_of_function(&function))).or_insert(next);
        if at == next {
            self.nodes.push(Node { parent, function, children: (0, 0) });
        }
        self.nodes[at as usize].function = function;
        at
    }

    /// The nodes, with the list of all children.
    fn finish(self) -> (Vec<Node<'a>>, Vec<u32>, (u32, u32)) {
        let mut nodes = self.nodes;
        let mut children: Vec<u32> = (0..nodes.len() as u32).collect();
        children.sort_by_key(|&at| (nodes[at as usize].parent, at));
        let (mut first, mut roots) = (0, (0, 0));
        let runs: Vec<(u32, usize)> = children
            .chunk_by(|a, b| nodes[*a as usize].parent == nodes[*b as usize].parent)
            .map(|run| (nodes[run[0] as usize].parent, run.len()))
            .collect();
        for (parent, length) in runs {
            let range = (first, first + length as u32);
            first = range.1;
            match nodes.get_mut(parent as usize) {
                Some(node) => node.children = range,
                None => roots = range,
            }
        }
        (nodes, children, roots)
    }
}

/// Which paths a walk shows. A path that is not shown is left out together with everything below
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shown {
    /// Minimum share of the whole, 0 to 1, that a shown path has on at least one side. All paths
    /// are shown if rows have no totals.
    pub min_share: f64,
    /// Whether to show only paths that differ, and paths that lead to them.
    pub different: bool,
}

/// Numbers of paths that a walk left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SmallerPaths {
    /// Number of subtrees left out because they are too small on both sides.
    pub subtrees: u64,
    /// Number of subtrees left out because nothing in them differs.
    pub same: u64,
    /// Number of children left out because of the limit.
    pub left_out: u64,
}

impl<'a> TreeChanges<'a> {
    /// Calls `visit` with each selected path, parents before children. Stops at the first error of
    /// `visit`.
    ///
    /// # Errors
    /// Errors of `visit`.
    pub fn walk<E>(
        &self,
        shown: &Shown,
        mut visit: impl FnMut(&PathChange<'a>) -> Result<(), E>,
    ) -> Result<SmallerPaths, E> {
        let mut smaller = SmallerPaths::default();
        let different = shown.different.then(|| self.different());
        let wanted = (shown.min_share, different.as_deref());
        let mut open = self.shown(0, self.roots, wanted, &mut smaller);
        while let Some((at, row)) = open.pop() {
            visit(&row)?;
            open.extend(self.shown(row.depth + 1, self.nodes[at as usize].children, wanted, &mut smaller));
        }
        Ok(smaller)
    }

    /// The path whose own amount changed most beyond chance. The row's depth is always 0, whatever
    /// the path's real depth.
    #[must_use]
    pub fn largest(&self) -> Option<PathChange<'a>> {
        largest((0..self.nodes.len()).map(|at| self.row(0, at as u32)), |row| &row.own)
    }

    /// Rows of these children in reverse order.
    fn shown(
        &self,
        depth: u32,
        (first, end): (u32, u32),
        (min_share, different): (f64, Option<&[bool]>),
        smaller: &mut SmallerPaths,
    ) -> Vec<(u32, PathChange<'a>)> {
        let all = &self.children[first as usize..end as usize];
        let is_wanted = |at: &u32| different.is_none_or(|different| different[*at as usize]);
        let mut rows: Vec<_> = all.iter().copied().filter(is_wanted).map(|at| (at, self.row(depth, at))).collect();
        smaller.same += (all.len() - rows.len()) as u64;
        let found = rows.len();
        let is_large = |row: &PathChange<'_>| {
            // Where rows have no totals, a child may have a larger number than its parent.
            self.metric.exclusive
                || [row.total_share.before, row.total_share.after].iter().any(|of| of.median >= min_share)
        };
        rows.retain(|(_, row)| is_large(row));
        smaller.subtrees += (found - rows.len()) as u64;
        rows.sort_by(|(_, a), (_, b)| compare(a, b, self.sort));
        let limit = self.limit.unwrap_or(usize::MAX).min(rows.len());
        smaller.left_out += (rows.len() - limit) as u64;
        rows.truncate(limit);
        rows.reverse();
        rows
    }

    /// For each node, whether it or a node below it differs.
    fn different(&self) -> Vec<bool> {
        let mut all = vec![false; self.nodes.len()];
        // A node comes after its parent.
        for at in (0..self.nodes.len()).rev() {
            all[at] = all[at] || self.row(0, at as u32).own.verdict != Verdict::Same;
            if let Some(parent) = all[at].then(|| self.nodes[at].parent as usize).filter(|parent| *parent < at) {
                all[parent] = true;
            }
        }
        all
    }

    fn row(&self, depth: u32, at: u32) -> PathChange<'a> {
        let sum = |recording: usize| self.sums[recording].get(at as usize).copied().unwrap_or_default();
        change(depth, self.nodes[at as usize].function, &self.readings, &self.merging, sum)
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::Recording;
    use clrscope_recording::testing::ascii_trees::recording;

    use super::*;
    use crate::comparison::NamedRecording;
    use crate::metric::CALLS;

    fn named(recording: &Recording) -> Vec<NamedRecording<'_>> {
        vec![NamedRecording { name: "one".to_owned(), recording }]
    }

    fn calls() -> Query {
        Query { metric: Some(&CALLS), sort: Some(Sort::Name), ..Query::default() }
    }

    #[test]
    fn paths_of_both_sides_are_one_tree() {
        let before = recording("thread 1\n  Main 1 1\n    A 5 1\n      B 5 1\n    Old 2 1\n");
        let after = recording("thread 1\n  Main 1 1\n    A 7 1\n      B 5 1\n      C 1 1\nthread 2\n  A 3 1\n");
        let sides = Sides { before: named(&before), after: named(&after), chosen: None };
        let tree = tree_changes(&sides, &calls()).expect("trees");
        let mut rows = Vec::new();
        tree.walk(&Shown { min_share: 0.5, different: false }, |row| -> Result<(), Infallible> {
            let levels = (row.own.before.median as u64, row.own.after.median as u64);
            rows.push((row.depth, row.function.name().to_owned(), levels, row.own.verdict));
            Ok(())
        })
        .expect("nothing fails");
        let expected = [
            (0, "A", (0, 3), Verdict::New),
            (0, "Main", (1, 1), Verdict::Same),
            (1, "A", (5, 7), Verdict::More),
            (2, "B", (5, 5), Verdict::Same),
            (2, "C", (0, 1), Verdict::New),
            (1, "Old", (2, 0), Verdict::Gone),
        ];
        assert_eq!(rows, expected.map(|(depth, name, levels, verdict)| (depth, name.to_owned(), levels, verdict)));
    }

    #[test]
    fn what_is_as_it_was_is_left_out_unless_it_leads_to_a_difference() {
        let text = |calls: u32| format!("thread 1\n  Main 1 1\n    A 5 1\n      B {calls} 1\n    C 2 1\n      D 2 1\n");
        let (before, after) = (recording(&text(5)), recording(&text(6)));
        let sides = Sides { before: named(&before), after: named(&after), chosen: None };
        let tree = tree_changes(&sides, &calls()).expect("trees");
        let mut names = String::new();
        let smaller = tree.walk(&Shown { different: true, min_share: 0.0 }, |row| -> Result<(), Infallible> {
            names.push_str(row.function.name());
            Ok(())
        });
        assert_eq!(names, "MainAB");
        assert_eq!(smaller, Ok(SmallerPaths { same: 1, ..SmallerPaths::default() }));
    }

    #[test]
    fn a_path_that_is_small_on_both_sides_is_left_out_and_counted() {
        let text =
            |large: u32| format!("thread 1\n  Main 1 10000\n    Small 1 3\n      Leaf 1 1\n    Large 1 {large}\n");
        let (before, after) = (recording(&text(4)), recording(&text(9000)));
        let sides = Sides { before: named(&before), after: named(&after), chosen: None };
        let tree = tree_changes(&sides, &Query { raw: true, ..Query::default() }).expect("trees");
        let mut names = Vec::new();
        let smaller = tree.walk(&Shown { min_share: 0.1, different: false }, |row| -> Result<(), Infallible> {
            names.push(row.function.name().to_owned());
            Ok(())
        });
        assert_eq!(names, ["Main", "Large"]);
        assert_eq!(smaller, Ok(SmallerPaths { subtrees: 1, ..SmallerPaths::default() }));
    }

    #[test]
    fn a_limit_is_of_the_children_of_each_path() {
        let before = recording("thread 1\n  Main 1 1\n    A 1 1\n    B 1 1\n    C 1 1\n");
        let sides = Sides { before: named(&before), after: named(&before), chosen: None };
        let tree = tree_changes(&sides, &Query { limit: Some(2), ..calls() }).expect("trees");
        let mut number = 0;
        let smaller = tree.walk(&Shown::default(), |_| -> Result<(), Infallible> {
            number += 1;
            Ok(())
        });
        assert_eq!((number, smaller.map(|smaller| smaller.left_out)), (3, Ok(1)));
    }
}
