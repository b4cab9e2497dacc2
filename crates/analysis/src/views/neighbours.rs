//! The views `callers` and `callees`, and the whole call graph.

use std::cmp::Ordering;

use clrscope_recording::model::Recording;

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use super::rows::{FunctionRow, key};
use crate::catalog::{Catalog, Slot};
use crate::columns::Columns;
use crate::edges::{Edge, edges};
use crate::function::FunctionRef;
use crate::metric::{Amount, Metric};
use crate::paths;
use crate::query::{Query, QueryProblem, Sort};
use crate::select::quoted_list;
use crate::times::Times;

/// One row of `callers` or `callees`: the function at the other end of an edge, with the calls and
/// times of only that edge. Inclusive times count only activations that are not nested in another
/// activation of the same edge.
#[derive(Debug, Clone, Copy)]
pub struct EdgeRow<'a> {
    /// The caller or callee; `None` if a thread itself is the caller.
    pub function: Option<FunctionRef<'a>>,
    /// Calls and times of the callee along this edge, if the metric is one of `calls`.
    pub times: Times,
    /// The callee's amount of the metric along this edge.
    pub amount: Amount,
}

impl EdgeRow<'_> {
    /// Order of two rows under `sort`. Of equal rows, a thread comes before functions.
    #[must_use]
    pub fn compare(&self, other: &Self, sort: Sort) -> Ordering {
        let module = |row: &Self| row.function.map_or("", |f| f.module());
        let by_key = match sort {
            Sort::Module => module(self).cmp(module(other)),
            _ => key(&other.times, other.amount, sort).cmp(&key(&self.times, self.amount, sort)),
        };
        by_key.then_with(|| match (&self.function, &other.function) {
            (Some(a), Some(b)) => a.compare(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        })
    }
}

/// The view `callers` or `callees`.
#[derive(Debug, Clone, Default)]
pub struct NeighboursView<'a> {
    /// One item for each function that matches the query, the one with the most exclusive time
    /// first.
    pub items: Vec<Neighbours<'a>>,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// One function with its callers or callees.
#[derive(Debug, Clone)]
pub struct Neighbours<'a> {
    /// The function.
    pub function: FunctionRow<'a>,
    /// Callers or callees, sorted and limited.
    pub rows: Vec<EdgeRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
}

/// The call graph.
#[derive(Debug, Clone, Default)]
pub struct CallGraph<'a> {
    /// The functions, which are the nodes of the graph.
    pub functions: Vec<FunctionRow<'a>>,
    /// The edges, ordered by caller and callee.
    pub edges: Vec<GraphEdge>,
    /// Number of functions that the limit left out, together with their edges.
    pub left_out: usize,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// An edge of the call graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphEdge {
    /// The caller, as an index into [`CallGraph::functions`].
    pub caller: usize,
    /// The callee, as an index into [`CallGraph::functions`].
    pub callee: usize,
    /// Calls and times of the callee along this edge, if the metric is one of `calls`.
    pub times: Times,
    /// The callee's amount of the metric along this edge.
    pub amount: Amount,
}

/// The end of an edge that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Callers,
    Callees,
}

impl Side {
    const fn view(self) -> &'static str {
        match self {
            Self::Callers => "callers",
            Self::Callees => "callees",
        }
    }

    /// Returns two ends of an edge: first the end that the query names, then the end that the view
    /// lists.
    const fn ends(self, (caller, callee): Edge) -> (Slot, Slot) {
        match self {
            Self::Callers => (callee, caller),
            Self::Callees => (caller, callee),
        }
    }
}

/// Callers of the functions that match the query.
///
/// # Errors
/// When the query names no function, no function on a path matches, or the query matches no process
/// or thread. Also when it asks for rows per thread, for a part of the time that the metric can't
/// follow, for a metric that was not recorded, or for an order that its rows do not have.
pub fn callers<'a>(recording: &'a Recording, query: &Query) -> Result<NeighboursView<'a>, QueryProblem> {
    neighbours(recording, query, Side::Callers)
}

/// Callees of the functions that match the query.
///
/// # Errors
/// As [`callers`].
pub fn callees<'a>(recording: &'a Recording, query: &Query) -> Result<NeighboursView<'a>, QueryProblem> {
    neighbours(recording, query, Side::Callees)
}

fn neighbours<'a>(recording: &'a Recording, query: &Query, side: Side) -> Result<NeighboursView<'a>, QueryProblem> {
    let metric = Metric::of_view(recording, query, side.view())?;
    let sort = query.order(metric, side.view(), Sort::Total)?;
    query.merged_threads(side.view())?;
    if query.functions.is_empty() {
        return Err(QueryProblem::FunctionNeeded { view: side.view() });
    }
    let mut items = Vec::new();
    let mut totals = Vec::new();
    for paths in paths::select(recording, query, metric)? {
        let sums = ProcessSums::with_tiers(recording, &paths, query);
        totals.push((paths.process, sums.totals));
        let wanted = sums.catalog.wanted(query);
        let is_wanted = |slot: Slot| wanted.get(slot as usize) == Some(&true);
        let edges = edges(&paths, &sums.catalog, &Columns::new(&paths, &sums.catalog, query), |edge| {
            is_wanted(side.ends(edge).0)
        });
        let about = (0..sums.catalog.len() as Slot).filter(|&slot| is_wanted(slot));
        for (slot, function) in about.filter_map(|slot| Some((slot, sums.row_of(slot)?))) {
            let mut rows = rows(&edges, slot, side, &sums.catalog, metric);
            rows.sort_by(|a, b| a.compare(b, sort));
            let left_out = query.cut(&mut rows);
            items.push(Neighbours { function, rows, left_out });
        }
    }
    if items.is_empty() {
        return Err(QueryProblem::NoFunction { wanted: quoted_list(&query.functions), nearest: Vec::new() });
    }
    items.sort_by(|a, b| a.function.compare(&b.function, Sort::Own));
    Ok(NeighboursView { items, conditions: conditions_of(recording, query, metric, &totals) })
}

/// Rows of the callers or callees of the function in `slot`.
fn rows<'a>(
    edges: &[(Edge, Times)],
    slot: Slot,
    side: Side,
    catalog: &Catalog<'a>,
    metric: &Metric,
) -> Vec<EdgeRow<'a>> {
    let mine = edges.iter().filter(|(edge, _)| side.ends(*edge).0 == slot);
    let row = |(edge, times): &(Edge, Times)| {
        let other = side.ends(*edge).1;
        let (times, amount) = times.by(metric);
        EdgeRow { function: (other != catalog.root()).then(|| catalog.function(other)), times, amount }
    };
    mine.map(row).collect()
}

/// The call graph: every function, and every edge between functions. Filters of functions keep an
/// edge only if both its ends match. The query's order and limit apply to the functions.
///
/// # Errors
/// When the query matches no process or thread. Also when it asks for rows per thread, for a part
/// of the time that the metric can't follow, for a metric that was not recorded, or for an order
/// that its rows do not have.
pub fn call_graph<'a>(recording: &'a Recording, query: &Query) -> Result<CallGraph<'a>, QueryProblem> {
    let metric = Metric::of_view(recording, query, "graph")?;
    let sort = query.order(metric, "graph", Sort::Own)?;
    query.merged_threads("graph")?;
    let mut graph = CallGraph::default();
    let mut totals = Vec::new();
    for paths in paths::select(recording, query, metric)? {
        let sums = ProcessSums::new(&paths, query);
        totals.push((paths.process, sums.totals));
        let mut wanted = sums.catalog.wanted(query);
        // The pseudo-function of threads has no callers, and no view draws it.
        wanted.push(false);
        let both = |(caller, callee): Edge| wanted[caller as usize] && wanted[callee as usize];
        let edges = edges(&paths, &sums.catalog, &Columns::new(&paths, &sums.catalog, query), both);
        let mut kept: Vec<_> = (0..sums.catalog.len() as Slot)
            .filter(|&s| wanted[s as usize])
            .filter_map(|s| Some((s, sums.row_of(s)?)))
            .collect();
        kept.sort_by(|a, b| a.1.compare(&b.1, sort));
        graph.left_out += query.cut(&mut kept);
        let mut numbers = vec![None; sums.catalog.len()];
        for (slot, row) in kept {
            numbers[slot as usize] = Some(graph.functions.len());
            graph.functions.push(row);
        }
        let drawn = edges.iter().filter_map(|((caller, callee), times)| {
            let (times, amount) = times.by(metric);
            Some(GraphEdge { caller: numbers[*caller as usize]?, callee: numbers[*callee as usize]?, times, amount })
        });
        graph.edges.extend(drawn);
    }
    graph.edges.sort_by_key(|e| (e.caller, e.callee));
    graph.conditions = conditions_of(recording, query, metric, &totals);
    Ok(graph)
}
