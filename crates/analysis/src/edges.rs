//! Sums by edge. An edge is a pair of caller and callee. It represents all nodes of the callee
//! directly below nodes of the caller.

use clrscope_recording::model::NodeValues;
use clrscope_recording::parallel::fold;
use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, Slot};
use crate::columns::Columns;
use crate::paths::Paths;
use crate::stack_trees::{Frame, StackSum, StackVisitor};
use crate::sums::{Keys, NO_KEY, Summer, Sums};
use crate::times::Times;

/// Caller and callee.
pub(crate) type Edge = (Slot, Slot);

/// Numbers the wanted edges in the order in which they are found.
struct ByEdge<'w, W> {
    wanted: &'w W,
    known: FxHashMap<Edge, u32>,
    edges: Vec<Edge>,
    /// The edge of the last look-up: loops and recursion look up the same edge repeatedly.
    last: (Edge, u32),
}

impl<W: Fn(Edge) -> bool> Keys for ByEdge<'_, W> {
    const ARE_SLOTS: bool = false;

    fn key(&mut self, caller: Slot, callee: Slot) -> u32 {
        let edge = (caller, callee);
        if self.last.0 == edge {
            return self.last.1;
        }
        let key = if (self.wanted)(edge) {
            *self.known.entry(edge).or_insert_with(|| {
                self.edges.push(edge);
                self.edges.len() as u32 - 1
            })
        } else {
            NO_KEY
        };
        self.last = (edge, key);
        key
    }

    fn root_key(&self) -> u32 {
        NO_KEY
    }

    fn callee(&self, key: u32) -> Slot {
        self.edges[key as usize].1
    }
}

/// Calls and times of every wanted edge over the selected threads of a process, ordered by slots.
/// The thread itself is also a caller; its slot is the catalog's root.
pub(crate) fn edges(
    paths: &Paths<'_>,
    catalog: &Catalog<'_>,
    columns: &Columns,
    wanted: impl Fn(Edge) -> bool + Sync,
) -> Vec<(Edge, Times)> {
    if let Some(merged) = paths.merged() {
        let found = merged.stacks.visit_stacks(catalog, &EdgeSums { wanted: &wanted, root: catalog.root() });
        return found.into_times(columns);
    }
    let new = || {
        // No edge leads to the thread itself, so no look-up will match this edge.
        let none = ((catalog.root(), catalog.root()), NO_KEY);
        let keys = ByEdge { wanted: &wanted, known: FxHashMap::default(), edges: Vec::new(), last: none };
        (Summer::default(), keys, Vec::<Times>::new())
    };
    let parts = fold(paths.threads.len(), new, |(summer, keys, sums), at| {
        let mut tree = paths.threads[at].load();
        let summed = summer.sum(&mut tree, catalog, &columns.cost, keys);
        for (key, edge) in summed.entries() {
            let (key, callee) = (key as usize, summed.callee(key));
            sums.resize(sums.len().max(key + 1), Times::default());
            sums[key].add(&columns.times(callee, &edge));
        }
    });
    let mut merged: FxHashMap<Edge, Times> = FxHashMap::default();
    for (_, keys, sums) in parts {
        for (edge, times) in keys.edges.into_iter().zip(sums) {
            merged.entry(edge).or_default().add(&times);
        }
    }
    let mut merged: Vec<_> = merged.into_iter().collect();
    merged.sort_unstable_by_key(|(edge, _)| *edge);
    merged
}

/// Wanted edges, found along the stacks of events.
struct EdgeSums<'w, W> {
    wanted: &'w W,
    /// The slot of the threads themselves.
    root: Slot,
}

/// Edges in the order in which they were found.
#[derive(Default)]
struct EdgeTable {
    known: FxHashMap<Edge, u32>,
    cells: Vec<EdgeCell>,
}

/// Sums of an edge.
struct EdgeCell {
    edge: Edge,
    own: StackSum,
    /// Sum over outermost callees.
    total: StackSum,
    /// Number of callees on the path.
    open: u32,
    max_recursion: u32,
}

impl EdgeTable {
    fn cell(&mut self, edge: Edge) -> u32 {
        let Self { known, cells } = self;
        *known.entry(edge).or_insert_with(|| {
            let none = StackSum::default();
            cells.push(EdgeCell { edge, own: none, total: none, open: 0, max_recursion: 0 });
            cells.len() as u32 - 1
        })
    }

    fn into_times(self, columns: &Columns) -> Vec<(Edge, Times)> {
        let values = |sum: StackSum| NodeValues { metric: sum.amount, cpu_ns: sum.samples };
        let times = |cell: EdgeCell| {
            let sums = Sums {
                own: values(cell.own),
                inclusive: values(cell.total),
                max_recursion: cell.max_recursion,
                ..Sums::default()
            };
            (cell.edge, columns.times(cell.edge.1, &sums))
        };
        let mut all: Vec<(Edge, Times)> = self.cells.into_iter().map(times).collect();
        all.sort_unstable_by_key(|(edge, _)| *edge);
        all
    }
}

impl<W: Fn(Edge) -> bool + Sync> StackVisitor for EdgeSums<'_, W> {
    type Acc = EdgeTable;
    /// The frame's slot and its edge's number in the table; [`NO_KEY`] if the edge is not wanted.
    type Inherited = (Slot, u32);

    fn begin(&self) -> EdgeTable {
        EdgeTable::default()
    }

    fn outside(&self) -> Self::Inherited {
        (self.root, NO_KEY)
    }

    #[inline]
    fn enter(&self, found: &mut EdgeTable, caller: Self::Inherited, frame: &Frame) -> Self::Inherited {
        let edge = (caller.0, frame.slot);
        if !(self.wanted)(edge) {
            return (frame.slot, NO_KEY);
        }
        let key = found.cell(edge);
        let cell = &mut found.cells[key as usize];
        cell.open += 1;
        cell.max_recursion = cell.max_recursion.max(cell.open);
        (frame.slot, key)
    }

    #[inline]
    fn stack(&self, found: &mut EdgeTable, here: Self::Inherited, _: &Frame, _: u32, sum: StackSum) {
        if here.1 != NO_KEY {
            found.cells[here.1 as usize].own.add(sum);
        }
    }

    #[inline]
    fn leave(&self, found: &mut EdgeTable, here: Self::Inherited, _: &Frame, sum: StackSum) {
        if here.1 != NO_KEY {
            let cell = &mut found.cells[here.1 as usize];
            cell.open -= 1;
            if cell.open == 0 {
                cell.total.add(sum);
            }
        }
    }

    fn join(&self, all: &mut EdgeTable, part: EdgeTable) {
        for more in part.cells {
            let at = all.cell(more.edge) as usize;
            let cell = &mut all.cells[at];
            cell.own.add(more.own);
            cell.total.add(more.total);
            cell.max_recursion = cell.max_recursion.max(more.max_recursion);
        }
    }
}
