//! The views `callers` and `callees`, and the whole call graph.

use std::cmp::Ordering;

use clrscope_recording::model::Recording;

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use super::rows::FunctionRow;
use crate::catalog::{Catalog, Slot};
use crate::columns::Columns;
use crate::edges::{Edge, edges};
use crate::function::FunctionRef;
use crate::query::{Query, QueryProblem, Sort};
use crate::select;
use crate::times::Times;

/// One row of `callers` or `callees`: the function on the other side, with the calls and times of
/// that edge alone (inclusive counts activations that are not within another of the same edge).
#[derive(Debug, Clone, Copy)]
pub struct EdgeRow<'a> {
    /// The caller or callee; `None` where a thread itself is the caller.
    pub function: Option<FunctionRef<'a>>,
    /// Calls and times of the callee along this edge.
    pub times: Times,
}

impl EdgeRow<'_> {
    /// Order of two rows under `sort`; a thread comes before functions that are otherwise equal.
    #[must_use]
    pub fn compare(&self, other: &Self, sort: Sort) -> Ordering {
        let module = |row: &Self| row.function.map_or("", |f| f.module());
        let by_key = match sort {
            Sort::Module => module(self).cmp(module(other)),
            _ => other.times.key(sort).cmp(&self.times.key(sort)),
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
    /// One item for each function that matches, the one with the most exclusive time first.
    pub items: Vec<Neighbours<'a>>,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// One function with its callers or callees.
#[derive(Debug, Clone)]
pub struct Neighbours<'a> {
    /// The function.
    pub function: FunctionRow<'a>,
    /// The other side, ordered and limited.
    pub rows: Vec<EdgeRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
}

/// The call graph.
#[derive(Debug, Clone, Default)]
pub struct CallGraph<'a> {
    /// The nodes.
    pub functions: Vec<FunctionRow<'a>>,
    /// The edges, ordered by caller and callee.
    pub edges: Vec<GraphEdge>,
    /// Functions that the limit left out, with their edges.
    pub left_out: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// An edge of the call graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphEdge {
    /// Index into [`CallGraph::functions`].
    pub caller: usize,
    /// Index into [`CallGraph::functions`].
    pub callee: usize,
    /// Calls and times of the callee along this edge.
    pub times: Times,
}

/// Which end of an edge a view shows.
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

    /// The end the view is about, and the end it shows.
    const fn ends(self, (caller, callee): Edge) -> (Slot, Slot) {
        match self {
            Self::Callers => (callee, caller),
            Self::Callees => (caller, callee),
        }
    }
}

/// Who called the functions that match the query.
///
/// # Errors
/// When no function is named or none that was called matches, no process or thread is meant, or the
/// query asks for a part of the time or for threads apart.
pub fn callers<'a>(recording: &'a Recording, query: &Query) -> Result<NeighboursView<'a>, QueryProblem> {
    neighbours(recording, query, Side::Callers)
}

/// Whom the functions that match the query called.
///
/// # Errors
/// As [`callers`].
pub fn callees<'a>(recording: &'a Recording, query: &Query) -> Result<NeighboursView<'a>, QueryProblem> {
    neighbours(recording, query, Side::Callees)
}

fn neighbours<'a>(recording: &'a Recording, query: &Query, side: Side) -> Result<NeighboursView<'a>, QueryProblem> {
    query.whole_run(side.view())?;
    query.merged_threads(side.view())?;
    if query.functions.is_empty() {
        return Err(QueryProblem::FunctionNeeded { view: side.view() });
    }
    let mut items = Vec::new();
    let mut totals = Vec::new();
    for selected in select::threads(recording, query)? {
        let sums = ProcessSums::new(&selected, query);
        totals.push((selected.process, sums.totals));
        let wanted = sums.catalog.wanted(query);
        let is_wanted = |slot: Slot| wanted.get(slot as usize) == Some(&true);
        let edges = edges(&selected, &sums.catalog, &Columns::new(&selected, &sums.catalog, query), |edge| {
            is_wanted(side.ends(edge).0)
        });
        let about = (0..sums.catalog.len() as Slot).filter(|&slot| is_wanted(slot));
        for (slot, function) in about.filter_map(|slot| Some((slot, sums.row_of(slot)?))) {
            let (rows, left_out) = rows(&edges, slot, side, &sums.catalog, query);
            items.push(Neighbours { function, rows, left_out });
        }
    }
    if items.is_empty() {
        let wanted: Vec<_> = query.functions.iter().map(|p| format!("'{p}'")).collect();
        return Err(QueryProblem::NoFunction { wanted: wanted.join(" or ") });
    }
    items.sort_by(|a, b| a.function.compare(&b.function, Sort::Exclusive));
    Ok(NeighboursView { items, conditions: conditions_of(recording, query, &totals) })
}

/// The other ends of the edges of the function in `slot`.
fn rows<'a>(
    edges: &[(Edge, Times)],
    slot: Slot,
    side: Side,
    catalog: &Catalog<'a>,
    query: &Query,
) -> (Vec<EdgeRow<'a>>, usize) {
    let mine = edges.iter().filter(|(edge, _)| side.ends(*edge).0 == slot);
    let row = |(edge, times): &(Edge, Times)| {
        let other = side.ends(*edge).1;
        EdgeRow { function: (other != catalog.root()).then(|| catalog.function(other)), times: *times }
    };
    let mut rows: Vec<_> = mine.map(row).collect();
    let sort = query.sort.unwrap_or(Sort::Inclusive);
    rows.sort_by(|a, b| a.compare(b, sort));
    let left_out = query.cut(&mut rows);
    (rows, left_out)
}

/// Every function and every edge between them: what the call graph is drawn from. Filters of functions
/// keep the edges whose both ends match. The query's order and limit are for the functions.
///
/// # Errors
/// When no process or thread is meant, or the query asks for a part of the time or for threads apart.
pub fn call_graph<'a>(recording: &'a Recording, query: &Query) -> Result<CallGraph<'a>, QueryProblem> {
    query.whole_run("graph")?;
    query.merged_threads("graph")?;
    let mut graph = CallGraph::default();
    let mut totals = Vec::new();
    for selected in select::threads(recording, query)? {
        let sums = ProcessSums::new(&selected, query);
        totals.push((selected.process, sums.totals));
        let mut wanted = sums.catalog.wanted(query);
        // Threads call nothing that calls them, and are drawn by nobody.
        wanted.push(false);
        let both = |(caller, callee): Edge| wanted[caller as usize] && wanted[callee as usize];
        let edges = edges(&selected, &sums.catalog, &Columns::new(&selected, &sums.catalog, query), both);
        let mut kept: Vec<_> = (0..sums.catalog.len() as Slot)
            .filter(|&s| wanted[s as usize])
            .filter_map(|s| Some((s, sums.row_of(s)?)))
            .collect();
        kept.sort_by(|a, b| a.1.compare(&b.1, query.sort.unwrap_or(Sort::Exclusive)));
        graph.left_out += query.cut(&mut kept);
        let mut numbers = vec![None; sums.catalog.len()];
        for (slot, row) in kept {
            numbers[slot as usize] = Some(graph.functions.len());
            graph.functions.push(row);
        }
        let drawn = edges.iter().filter_map(|((caller, callee), times)| {
            Some(GraphEdge { caller: numbers[*caller as usize]?, callee: numbers[*callee as usize]?, times: *times })
        });
        graph.edges.extend(drawn);
    }
    graph.edges.sort_by_key(|e| (e.caller, e.callee));
    graph.conditions = conditions_of(recording, query, &totals);
    Ok(graph)
}
