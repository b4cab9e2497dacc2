//! Immediate dominators of objects, by the algorithm of Lengauer and Tarjan. An object's dominator
//! is the object that alone keeps it alive.
//!
//! The code works without recursion, with six 32-bit numbers per object, plus some of the
//! references reversed. It is the simple form of the algorithm, with path compression: its time
//! grows with references times the logarithm of objects for every graph. Most of the time is spent
//! waiting for memory; hence
//!
//! - a reference from an ancestor in the search tree is applied at once, so that only references
//!   from other objects are reversed and processed again;
//! - an object that is reached from two roots has no single dominator: it is not processed further,
//!   and no walk up the tree passes it;
//! - data that is needed soon is prefetched, for many numbers at once ([`Forest::touch`]).

use std::hint::black_box;
use std::ops::Range;

use super::graph::Graph;
use super::preorder::{Preorder, TOP};

/// Marks the end of a list.
const NONE: u32 = u32::MAX;
/// Number of references that are prefetched before they are processed.
const AHEAD: usize = 128;

/// The immediate dominator of each number of a search; [`TOP`] if no single object holds the
/// number's object. A dominator has a smaller number than the objects it dominates.
pub(crate) fn dominators(graph: &Graph, order: &Preorder, roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut forest = Forest::new(order);
    roots.into_iter().for_each(|root| forest.nodes[order.number[root as usize] as usize].semi = TOP);
    let referrers = Referrers::new(graph, order, &mut forest);
    let mut buckets = Buckets { first: vec![NONE; order.len() + 1], dominator: vec![NONE; order.len() + 1] };
    let mut touched = referrers.from.len();
    for at in (1..=order.len() as u32).rev() {
        let (parent, of_this) = (order.parent[at as usize], referrers.places(at));
        while of_this.start < touched {
            let next = touched.saturating_sub(AHEAD);
            forest.touch(referrers.from[next..touched].iter().copied());
            touched = next;
        }
        if (at as usize).is_multiple_of(AHEAD) {
            let next = &order.parent[(at as usize).saturating_sub(AHEAD)..at as usize];
            forest.touch(buckets.touch(next.iter().copied()));
        }
        let mut semi = forest.nodes[at as usize].semi;
        for &from in &referrers.from[of_this] {
            if semi == TOP {
                break;
            }
            semi = semi.min(forest.best(from, at + 1).1);
        }
        forest.link(at, semi);
        // There is no other number between the semidominator and the number.
        if semi == TOP || semi == parent {
            buckets.dominator[at as usize] = semi;
        } else {
            buckets.put(semi, at);
        }
        buckets.empty(parent, |this| {
            let (best, least) = forest.best(this, at);
            match forest.nodes[this as usize].semi {
                _ if least == TOP => TOP,
                semi if least < semi => best,
                semi => semi,
            }
        });
    }
    drop(referrers);
    let mut dominator = buckets.dominator;
    dominator[TOP as usize] = TOP;
    for at in 1..=order.len() {
        if dominator[at] != forest.nodes[at].semi {
            dominator[at] = dominator[dominator[at] as usize];
        }
    }
    dominator
}

/// Numbers in lists by their semidominators, until their dominators are known.
struct Buckets {
    /// First number of each list.
    first: Vec<u32>,
    /// The next number of the list; later the dominator, or a number with the same dominator.
    dominator: Vec<u32>,
}

impl Buckets {
    fn put(&mut self, semi: u32, number: u32) {
        self.dominator[number as usize] = std::mem::replace(&mut self.first[semi as usize], number);
    }

    /// Empties a list; `find` returns the dominator of each number.
    fn empty(&mut self, semi: u32, mut find: impl FnMut(u32) -> u32) {
        let mut next = std::mem::replace(&mut self.first[semi as usize], NONE);
        while next != NONE {
            let this = next;
            next = self.dominator[this as usize];
            self.dominator[this as usize] = find(this);
        }
    }

    /// The first numbers of lists. Prefetches the next numbers of the lists as [`Forest::touch`]
    /// does.
    fn touch(&self, semis: impl Iterator<Item = u32> + Clone) -> impl Iterator<Item = u32> + Clone {
        let first = semis.map(|semi| self.first[semi as usize]).filter(|&first| first != NONE);
        black_box(first.clone().fold(0, |sum, first| sum ^ self.dominator[first as usize]));
        first
    }
}

/// Reversed references: for each number, the larger numbers that refer to it. Objects that no root
/// holds count as referrers only of other objects that no root holds.
struct Referrers {
    first: Vec<u64>,
    from: Vec<u32>,
}

impl Referrers {
    /// Reverses the references. References from an ancestor in the search tree count for the
    /// semidominator at once.
    fn new(graph: &Graph, order: &Preorder, forest: &mut Forest) -> Self {
        let mut first = vec![0_u64; order.len() + 2];
        // In the order of the search: each object is looked up once, and later passes read the
        // result sequentially.
        let mut numbered: Vec<u32> = Vec::new();
        let mut ends: Vec<u64> = Vec::with_capacity(order.len());
        for number in 1..=order.len() as u32 {
            for &target in graph.targets(order.object[number as usize]) {
                let to = order.number[target as usize];
                if to > number {
                    // A referrer with a smaller number that the search reached first is an
                    // ancestor.
                    let semi = &mut forest.nodes[to as usize].semi;
                    *semi = number.min(*semi);
                } else if to != number && (number <= order.held || to > order.held) {
                    first[to as usize + 1] += 1;
                    numbered.push(to);
                }
            }
            ends.push(numbered.len() as u64);
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut from = vec![0; numbered.len()];
        let mut begin = 0;
        for (number, end) in (1_u32..).zip(ends) {
            for &to in &numbered[begin..end as usize] {
                from[first[to as usize] as usize] = number;
                first[to as usize] += 1;
            }
            begin = end as usize;
        }
        // Each entry has advanced to the begin of the next one.
        first.rotate_right(1);
        first[0] = 0;
        Self { first, from }
    }

    fn places(&self, number: u32) -> Range<usize> {
        self.first[number as usize] as usize..self.first[number as usize + 1] as usize
    }
}

/// The processed part of the search tree, with path compression.
struct Forest {
    nodes: Vec<Node>,
    path: Vec<u32>,
}

/// A number in the forest: four adjacent values that are needed together.
#[derive(Clone, Copy)]
struct Node {
    /// The nearest known ancestor.
    above: u32,
    /// The number with the smallest semidominator on the way up to `above`.
    label: u32,
    /// Semidominator of the label.
    least: u32,
    /// The own semidominator.
    semi: u32,
}

impl Forest {
    /// Numbers that are not linked yet; their semidominators are at most their parents in the
    /// search.
    fn new(order: &Preorder) -> Self {
        let node = |(number, &above): (u32, &u32)| Node { above, label: number, least: number, semi: above };
        Self { nodes: (0..).zip(&order.parent).map(node).collect(), path: Vec::new() }
    }

    /// Prefetches the nodes of these numbers and of their ancestors, all at once, for the accesses
    /// one by one that follow.
    fn touch(&self, numbers: impl Iterator<Item = u32> + Clone) {
        let above = |number: u32| self.nodes[number as usize].above;
        black_box(numbers.clone().fold(0, |sum, number| sum ^ above(number)));
        black_box(numbers.fold(0, |sum, number| sum ^ above(above(number))));
    }

    /// Links a number, whose semidominator is known.
    fn link(&mut self, number: u32, semi: u32) {
        let node = &mut self.nodes[number as usize];
        (node.semi, node.least) = (semi, semi);
    }

    /// The number with the smallest semidominator on the way up from `number`, among the numbers
    /// from `linked` on, and that semidominator.
    fn best(&mut self, number: u32, linked: u32) -> (u32, u32) {
        let mut at = number;
        let mut node = self.nodes[at as usize];
        // No number is smaller than the top.
        while node.least != TOP && node.above >= linked {
            self.path.push(at);
            at = node.above;
            node = self.nodes[at as usize];
        }
        let (top, mut label, mut least) = (node.above, node.label, node.least);
        while let Some(below) = self.path.pop() {
            let node = &mut self.nodes[below as usize];
            if least < node.least {
                (node.label, node.least) = (label, least);
            } else {
                (label, least) = (node.label, node.least);
            }
            node.above = top;
        }
        (label, least)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::heap::graph::testing::graph;

    /// Dominators of objects, `None` for the top: removes each object and checks which others are
    /// no longer reached.
    fn naive(objects: usize, references: &[(u32, u32)], roots: &[u32]) -> Vec<Option<Option<u32>>> {
        let reach = |without: Option<u32>| {
            let mut seen = vec![false; objects];
            let mut open: Vec<u32> = roots.iter().copied().filter(|root| Some(*root) != without).collect();
            while let Some(at) = open.pop() {
                if !std::mem::replace(&mut seen[at as usize], true) {
                    open.extend(references.iter().filter(|(a, b)| *a == at && Some(*b) != without).map(|(_, b)| *b));
                }
            }
            seen
        };
        let all = reach(None);
        let without: Vec<Vec<bool>> = (0..objects as u32).map(|object| reach(Some(object))).collect();
        let dominates = |a: usize, b: usize| a != b && all[b] && !without[a][b];
        let immediate = |object: usize| {
            let above: Vec<usize> = (0..objects).filter(|&other| all[other] && dominates(other, object)).collect();
            // The nearest is the one that all others dominate.
            above.iter().copied().find(|&one| above.iter().all(|&other| other == one || dominates(other, one)))
        };
        (0..objects).map(|object| all[object].then(|| immediate(object).map(|found| found as u32))).collect()
    }

    fn computed(objects: usize, references: &[(u32, u32)], roots: &[u32]) -> Vec<Option<Option<u32>>> {
        let graph = graph(objects, references);
        let order = Preorder::new(&graph, roots.iter().copied());
        let found = dominators(&graph, &order, roots.iter().copied());
        let of = |object: usize| {
            let number = order.number[object];
            let above = found[number as usize];
            assert!(above < number);
            (number <= order.held).then(|| (above != TOP).then(|| order.object[above as usize]))
        };
        (0..objects).map(of).collect()
    }

    #[test]
    fn the_example_of_lengauer_and_tarjan() {
        // R A B C D E F G H I J K L as 0 to 12.
        let references = [
            (0, 1),
            (0, 2),
            (0, 3),
            (1, 4),
            (2, 1),
            (2, 4),
            (2, 5),
            (3, 6),
            (3, 7),
            (4, 12),
            (5, 8),
            (6, 9),
            (7, 9),
            (7, 10),
            (8, 5),
            (8, 11),
            (9, 11),
            (10, 9),
            (11, 9),
            (11, 0),
            (12, 8),
        ];
        let above = |object: u32| computed(13, &references, &[0])[object as usize];
        let expected = [0, 0, 0, 0, 0, 3, 3, 0, 0, 7, 0, 4];
        assert_eq!(above(0), Some(None));
        for (object, dominator) in (1..).zip(expected) {
            assert_eq!(above(object), Some(Some(dominator)), "{object}");
        }
    }

    #[test]
    fn garbage_holds_nothing_that_a_root_holds() {
        // 2 and 3 are garbage; 2 refers to 1, which only 0 keeps alive.
        let (references, roots) = ([(0, 1), (2, 1), (2, 3)], [0]);
        let graph = graph(4, &references);
        let order = Preorder::new(&graph, roots);
        let found = dominators(&graph, &order, roots);
        assert_eq!(found[order.number[1] as usize], order.number[0]);
        assert_eq!(found[order.number[3] as usize], order.number[2]);
        assert_eq!(found[order.number[2] as usize], TOP);
    }

    #[test]
    fn many_children_at_the_end_of_a_long_chain_take_no_square_of_time() {
        // Each of the many is referred to by the chain's end and by a root: a walk up the chain for
        // each would take 10^10 steps.
        let (chain, many) = (100_000_u32, 100_000_u32);
        let mut builder = crate::heap::graph::GraphBuilder::new(rustc_hash::FxHashMap::default());
        for at in 0..chain {
            let last = at + 1 == chain;
            let targets = if last { chain..chain + many } else { at + 1..at + 2 };
            targets.for_each(|target| builder.refer(target, 0));
            builder.end_object();
        }
        let all = (chain + many) as usize;
        let graph = builder.finish(all);
        let roots = || std::iter::once(0).chain(chain..chain + many);
        let order = Preorder::new(&graph, roots());
        let found = dominators(&graph, &order, roots());
        assert!((chain..chain + many).all(|object| found[order.number[object as usize] as usize] == TOP));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn dominators_are_those_of_the_definition(
            (objects, references, roots) in (1..14_u32).prop_flat_map(|objects| (
                Just(objects as usize),
                proptest::collection::vec((0..objects, 0..objects), 0..40),
                proptest::collection::vec(0..objects, 0..4),
            ))
        ) {
            prop_assert_eq!(computed(objects, &references, &roots), naive(objects, &references, &roots));
        }
    }
}
