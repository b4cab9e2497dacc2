//! Objects in the order in which a depth-first search from the roots meets them: what dominators are computed on.
//!
//! Numbers begin with 1; 0 stands for the place above all roots. Objects that no root reaches come last: they are garbage
//! that was not collected, or held by what the runtime does not tell. What refers to each other among them stays together,
//! but nothing of it holds what roots reach.

use super::graph::Graph;

/// Number of the place above all roots.
pub(crate) const TOP: u32 = 0;

/// A depth-first search tree over all objects.
#[derive(Debug)]
pub(crate) struct Preorder {
    /// Number of each object, from 1.
    pub(crate) number: Vec<u32>,
    /// Object of each number; that of 0 means nothing.
    pub(crate) object: Vec<u32>,
    /// Number from which each number was met first.
    pub(crate) parent: Vec<u32>,
    /// Numbers up to this one are those of objects that roots hold.
    pub(crate) held: u32,
}

impl Preorder {
    /// The search from these roots, in their order.
    pub(crate) fn new(graph: &Graph, roots: impl IntoIterator<Item = u32>) -> Self {
        let objects = graph.len();
        let mut order = Self {
            number: vec![0; objects],
            object: Vec::with_capacity(objects + 1),
            parent: Vec::with_capacity(objects + 1),
            held: 0,
        };
        order.object.push(0);
        order.parent.push(TOP);
        let mut open = Vec::new();
        for root in roots {
            order.search(graph, root, &mut open);
        }
        order.held = order.object.len() as u32 - 1;
        order.search_rest(graph, &mut open);
        order
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.number.len()
    }

    /// Objects that no root reaches: first from those that nothing of the kind refers to, then what is left, which are rings.
    fn search_rest(&mut self, graph: &Graph, open: &mut Vec<(u32, usize)>) {
        if self.held as usize == self.len() {
            return;
        }
        let mut is_referred_to = vec![false; self.len()];
        for object in (0..self.len() as u32).filter(|&object| self.number[object as usize] == 0) {
            graph.targets(object).iter().for_each(|&target| is_referred_to[target as usize] |= target != object);
        }
        for is_start in [true, false] {
            for object in (0..self.len() as u32).filter(|&object| is_referred_to[object as usize] != is_start) {
                self.search(graph, object, open);
            }
        }
    }

    fn search(&mut self, graph: &Graph, start: u32, open: &mut Vec<(u32, usize)>) {
        if self.number[start as usize] != 0 {
            return;
        }
        self.meet(start, TOP);
        open.push((start, graph.edges(start).start));
        while let Some((object, edge)) = open.last_mut() {
            let end = graph.edges(*object).end;
            let unmet = (*edge..end).find(|&edge| self.number[graph.target(edge) as usize] == 0);
            match unmet {
                Some(found) => {
                    let (parent, target) = (self.number[*object as usize], graph.target(found));
                    *edge = found + 1;
                    self.meet(target, parent);
                    open.push((target, graph.edges(target).start));
                }
                None => {
                    open.pop();
                }
            }
        }
    }

    fn meet(&mut self, object: u32, parent: u32) {
        self.number[object as usize] = self.object.len() as u32;
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
