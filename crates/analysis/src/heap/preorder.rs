//! Objects in the order of a depth-first search from the roots, on which dominators are computed.
//!
//! Numbers begin with 1; 0 is the virtual node above all roots. Objects that no root reaches come
//! last: garbage that was not collected, or objects held by something that the runtime does not
//! report. Such objects that refer to each other stay together, but they do not hold objects that
//! roots reach.

use super::bits::Bits;
use super::graph::Graph;

/// Number of the virtual node above all roots.
pub(crate) const TOP: u32 = 0;

/// A depth-first search tree over all objects.
#[derive(Debug)]
pub(crate) struct Preorder {
    /// Number of each object, from 1.
    pub(crate) number: Vec<u32>,
    /// Object of each number; the entry of 0 has no meaning.
    pub(crate) object: Vec<u32>,
    /// For each number, the number from which the search reached it first.
    pub(crate) parent: Vec<u32>,
    /// The last number of the objects that roots hold.
    pub(crate) held: u32,
}

impl Preorder {
    /// Searches from these roots, in their order.
    pub(crate) fn new(graph: &Graph, roots: impl IntoIterator<Item = u32>) -> Self {
        let objects = graph.len();
        let mut search = Search {
            graph,
            is_met: Bits::new(objects),
            object: Vec::with_capacity(objects + 1),
            parent: Vec::with_capacity(objects + 1),
            open: Vec::new(),
        };
        search.object.push(0);
        search.parent.push(TOP);
        roots.into_iter().for_each(|root| search.from(root));
        let held = search.object.len() as u32 - 1;
        search.rest(held);
        let Search { object, parent, .. } = search;
        let mut number = vec![0; objects];
        (1..).zip(&object[1..]).for_each(|(at, object)| number[*object as usize] = at);
        Self { number, object, parent, held }
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.number.len()
    }
}

/// A search in progress.
struct Search<'g> {
    graph: &'g Graph,
    is_met: Bits,
    object: Vec<u32>,
    parent: Vec<u32>,
    /// Numbers on the path to the current object, each with its next reference.
    open: Vec<(u32, usize)>,
}

impl Search<'_> {
    /// Searches from objects that no root reaches: first from objects without references from other
    /// such objects, then from the rest, which are in cycles.
    fn rest(&mut self, held: u32) {
        let objects = self.graph.len() as u32;
        if held == objects {
            return;
        }
        let mut is_referred_to = Bits::new(objects as usize);
        for object in (0..objects).filter(|&object| !self.is_met.has(object)) {
            let others = self.graph.targets(object).iter().filter(|target| **target != object);
            others.for_each(|target| _ = is_referred_to.set(*target));
        }
        for is_ring in [false, true] {
            (0..objects).filter(|&object| is_referred_to.has(object) == is_ring).for_each(|object| self.from(object));
        }
    }

    fn from(&mut self, start: u32) {
        if !self.is_met.set(start) {
            return;
        }
        self.meet(start, TOP);
        while let Some((number, edge)) = self.open.last_mut() {
            let (number, end) = (*number, self.graph.edges(self.object[*number as usize]).end);
            match (*edge..end).find(|&edge| self.is_met.set(self.graph.target(edge))) {
                Some(found) => {
                    *edge = found + 1;
                    self.meet(self.graph.target(found), number);
                }
                None => _ = self.open.pop(),
            }
        }
    }

    /// Gives an object the next number.
    fn meet(&mut self, object: u32, parent: u32) {
        self.open.push((self.object.len() as u32, self.graph.edges(object).start));
        self.object.push(object);
        self.parent.push(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::graph::testing::graph;

    #[test]
    fn what_no_root_reaches_comes_last_and_from_its_beginnings() {
        // 0 is a root; 3 refers to 2 and to the held 1; 4 and 5 are a ring.
        let order = Preorder::new(&graph(6, &[(0, 1), (3, 2), (3, 1), (4, 5), (5, 4)]), [0]);
        assert_eq!(order.held, 2);
        assert_eq!(order.object[1..], [0, 1, 3, 2, 4, 5]);
        assert_eq!(order.parent[1..], [0, 1, 0, 3, 0, 5]);
    }

    #[test]
    fn a_chain_of_a_million_objects_takes_no_stack() {
        let chain: Vec<(u32, u32)> = (0..999_999).map(|at| (at, at + 1)).collect();
        let mut builder = crate::heap::graph::GraphBuilder::new(rustc_hash::FxHashMap::default());
        for &(_, to) in &chain {
            builder.refer(to, 0);
            builder.end_object();
        }
        let order = Preorder::new(&builder.finish(1_000_000), [0]);
        assert_eq!(order.parent[1_000_000], 999_999);
    }
}
