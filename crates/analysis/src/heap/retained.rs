//! The dominator tree, with the bytes that each object retains, which would be free without the
//! object.

use std::ops::Range;

use super::dominators::dominators;
use super::graph::Graph;
use super::preorder::{Preorder, TOP};

/// Every object below its immediate dominator, by search number; [`TOP`] is above all objects.
#[derive(Debug)]
pub(crate) struct RetainedBytes {
    /// The depth-first search that numbered the objects.
    pub(crate) order: Preorder,
    /// Bytes that each number retains, including its own.
    bytes: Vec<u64>,
    /// Index of each number's first child.
    first: Vec<u32>,
    children: Vec<u32>,
}

impl RetainedBytes {
    /// Creates the dominator tree of a graph with these roots and objects of these sizes.
    pub(crate) fn new(graph: &Graph, roots: &[u32], sizes: &[u64]) -> Self {
        let order = Preorder::new(graph, roots.iter().copied());
        let dominator = dominators(graph, &order, roots.iter().copied());
        let objects = order.len();
        let mut bytes = vec![0; objects + 1];
        let mut first = vec![0_u32; objects + 2];
        for at in (1..=objects).rev() {
            let above = dominator[at] as usize;
            bytes[at] = u64::saturating_add(bytes[at], sizes[order.object[at] as usize]);
            bytes[above] = bytes[above].saturating_add(bytes[at]);
            first[above + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut children = vec![0; objects];
        for at in 1..=objects as u32 {
            let next = &mut first[dominator[at as usize] as usize];
            children[*next as usize] = at;
            *next += 1;
        }
        first.rotate_right(1);
        first[0] = 0;
        Self { order, bytes, first, children }
    }

    /// Bytes that a number retains.
    pub(crate) fn bytes(&self, number: u32) -> u64 {
        self.bytes[number as usize]
    }

    /// Numbers of the immediate children of a number, in ascending order.
    pub(crate) fn children(&self, number: u32) -> &[u32] {
        let Range { start, end } = self.places(number);
        &self.children[start as usize..end as usize]
    }

    fn places(&self, number: u32) -> Range<u32> {
        self.first[number as usize]..self.first[number as usize + 1]
    }

    /// Bytes that the objects of each class retain together. If an object dominates another object
    /// of its class, the other's bytes count once. `class` returns the class of an object.
    pub(crate) fn by_class(&self, classes: usize, class: impl Fn(u32) -> u32) -> Vec<u64> {
        let mut retained = vec![0; classes];
        let mut above = vec![0_u32; classes];
        // Of the numbers on the way: the children that are left, and the class.
        let mut open: Vec<(Range<u32>, Option<u32>)> = vec![(self.places(TOP), None)];
        while let Some((places, of)) = open.last_mut() {
            let Some(place) = places.next() else {
                of.iter().for_each(|class| above[*class as usize] -= 1);
                open.pop();
                continue;
            };
            let child = self.children[place as usize];
            let class = class(self.order.object[child as usize]);
            if above[class as usize] == 0 {
                retained[class as usize] = u64::saturating_add(retained[class as usize], self.bytes(child));
            }
            let below = self.places(child);
            if !below.is_empty() {
                above[class as usize] += 1;
                open.push((below, Some(class)));
            }
        }
        retained
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::heap::graph::testing::graph;

    impl RetainedBytes {
        fn of_object(&self, object: u32) -> u64 {
            self.bytes(self.order.number[object as usize])
        }
    }

    #[test]
    fn a_list_retains_its_nodes_once() {
        // A list (class 0) of three nodes (class 1) with a string (class 2) each; the last string
        // is shared by a root.
        let graph = graph(7, &[(0, 1), (1, 2), (2, 3), (1, 4), (2, 5), (3, 6)]);
        let retained = RetainedBytes::new(&graph, &[0, 6], &[10, 1, 1, 1, 100, 100, 100]);
        assert_eq!([0, 1, 2, 3, 6].map(|object| retained.of_object(object)), [213, 203, 102, 1, 100]);
        assert_eq!(retained.by_class(3, |object| [0, 1, 1, 1, 2, 2, 2][object as usize]), [213, 203, 300]);
        assert_eq!(retained.bytes(TOP), 313);
    }

    #[test]
    fn what_dominates_itself_in_a_chain_is_walked_without_a_stack() {
        let mut builder = crate::heap::graph::GraphBuilder::new(rustc_hash::FxHashMap::default());
        for at in 1..1_000_000 {
            builder.refer(at, 0);
            builder.end_object();
        }
        let retained = RetainedBytes::new(&builder.finish(1_000_000), &[0], &vec![8; 1_000_000]);
        assert_eq!(retained.by_class(1, |_| 0), [8_000_000]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        // What a class retains is what is not reached any more without any of its objects.
        #[test]
        fn a_class_retains_at_most_what_nothing_else_reaches_and_at_least_its_objects(
            (objects, references, roots, classes) in (1..14_u32).prop_flat_map(|objects| (
                Just(objects as usize),
                proptest::collection::vec((0..objects, 0..objects), 0..40),
                proptest::collection::vec(0..objects, 1..4),
                proptest::collection::vec(0..3_u32, objects as usize),
            ))
        ) {
            let graph = graph(objects, &references);
            let sizes: Vec<u64> = (0..objects as u64).map(|object| 1 << object).collect();
            let retained = RetainedBytes::new(&graph, &roots, &sizes);
            let reach = |without: Option<u32>| {
                let mut seen = vec![false; objects];
                let mut open: Vec<u32> = roots.iter().copied().filter(|root| Some(*root) != without).collect();
                while let Some(at) = open.pop() {
                    if !std::mem::replace(&mut seen[at as usize], true) {
                        open.extend(graph.targets(at).iter().filter(|to| Some(**to) != without));
                    }
                }
                seen
            };
            let all = reach(None);
            let bytes = |seen: &[bool]| (0..objects).filter(|&at| seen[at]).map(|at| sizes[at]).sum::<u64>();
            // Each object by the definition; the sets of a class's objects joined, each byte once.
            let mut by_class = [0_u64; 3];
            for object in (0..objects as u32).filter(|&object| all[object as usize]) {
                let rest = reach(Some(object));
                let held: Vec<bool> = (0..objects).map(|at| all[at] && !rest[at]).collect();
                prop_assert_eq!(retained.of_object(object), bytes(&held));
                by_class[classes[object as usize] as usize] |= bytes(&held);
            }
            let garbage: Vec<bool> = all.iter().map(|held| !held).collect();
            let found = retained.by_class(3, |object| classes[object as usize]);
            for class in 0..3 {
                // Garbage has bits of its own, other than those of what roots reach.
                prop_assert_eq!(found[class] & bytes(&all), by_class[class]);
                prop_assert_eq!(found[class] & !bytes(&all) & !bytes(&garbage), 0);
            }
            prop_assert_eq!(retained.bytes(TOP), (1 << objects) - 1);
        }
    }
}
