//! Sums by edge: a pair of caller and callee, the nodes of the one right below nodes of the other.

use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, Slot};
use crate::columns::Columns;
use crate::parallel::fold;
use crate::paths::Paths;
use crate::sums::{Keys, NO_KEY, Summer};
use crate::times::Times;

/// Caller and callee.
pub(crate) type Edge = (Slot, Slot);

/// Gives the edges of interest numbers in the order in which they turn up.
struct ByEdge<'w, W> {
    wanted: &'w W,
    known: FxHashMap<Edge, u32>,
    edges: Vec<Edge>,
    /// The edge asked for last: calls in loops and recursions ask for the same again and again.
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
/// The thread itself is a caller too: its slot is the catalog's root.
pub(crate) fn edges(
    paths: &Paths<'_>,
    catalog: &Catalog<'_>,
    columns: &Columns,
    wanted: impl Fn(Edge) -> bool + Sync,
) -> Vec<(Edge, Times)> {
    let new = || {
        // No edge leads to the thread itself, so this is no edge that will be asked for.
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
