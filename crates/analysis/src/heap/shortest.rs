//! The shortest path from a root to each object.

use super::bits::Bits;
use super::graph::Graph;

/// Stands for no object: an object has it as predecessor if a root refers to the object directly,
/// or if no root holds it.
pub(crate) const NO_OBJECT: u32 = u32::MAX;

/// A breadth-first search from all roots at once.
#[derive(Debug)]
pub(crate) struct Shortest {
    /// Objects that roots hold, each after its predecessor on the path.
    pub(crate) order: Vec<u32>,
    /// The predecessor of each object on its path, or [`NO_OBJECT`].
    pub(crate) from: Vec<u32>,
    /// Place in the predecessor. For an object that a root refers to, the root's index in the list
    /// of roots.
    pub(crate) place: Vec<u32>,
    is_held: Bits,
}

impl Shortest {
    /// Searches from objects that roots refer to. If several roots refer to an object, the first
    /// root counts. Among equally short paths, the path from the first root counts.
    pub(crate) fn new(graph: &Graph, roots: impl IntoIterator<Item = u32>) -> Self {
        let objects = graph.len();
        let mut search = Self {
            order: Vec::with_capacity(objects),
            from: vec![NO_OBJECT; objects],
            place: vec![0; objects],
            is_held: Bits::new(objects),
        };
        for (root, object) in (0..).zip(roots) {
            search.meet(object, NO_OBJECT, root);
        }
        let mut next = 0;
        while let Some(&object) = search.order.get(next) {
            next += 1;
            graph.references_of(object).for_each(|(target, place)| search.meet(target, object, place));
        }
        search
    }

    fn meet(&mut self, object: u32, from: u32, place: u32) {
        if self.is_held.set(object) {
            self.from[object as usize] = from;
            self.place[object as usize] = place;
            self.order.push(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::graph::testing::graph;

    #[test]
    fn the_first_of_the_shortest_ways_is_taken() {
        let search = Shortest::new(&graph(6, &[(0, 2), (1, 2), (2, 3), (1, 4), (4, 3), (5, 0)]), [1, 0, 1]);
        assert_eq!(search.order, [1, 0, 2, 4, 3]);
        assert_eq!((search.from[1], search.place[1], search.place[0]), (NO_OBJECT, 0, 1));
        assert_eq!((search.from[2], search.from[3]), (1, 2));
        assert!(!search.is_held.has(5));
    }
}
