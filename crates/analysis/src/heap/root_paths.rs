//! Paths from roots to objects, merged by shape. A shape is the root, then for each step the class
//! and the field that refers to the next object.
//!
//! Paths through different elements of an array have the same shape. A path that passes the same
//! field of a class again is folded. So all nodes of a linked list of a million nodes are held by
//! only two paths: from the list, and from the previous node.

use rustc_hash::FxHashMap;

use super::graph::{DEPENDENT, LOADER};
use super::shortest::{NO_OBJECT, Shortest};

/// Number of previous steps in which the same field to the same class is searched for.
const LOOK_BACK: usize = 8;
/// Longer paths end in a step that represents all further steps.
const MOST_STEPS: u16 = 200;

/// Place of a step in the previous object, as far as shapes distinguish places. An element has no
/// index, and a field within an element is just the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Member {
    /// A root refers to the object.
    Root,
    /// A field, or a field of an element; the number is that of the field's name.
    Field(u32),
    /// An element itself.
    Element,
    /// The value that a dependent handle keeps for the previous object.
    Dependent,
    /// Object that keeps the type of the previous object loaded.
    Loader,
    /// An unknown field.
    Unknown,
}

/// The properties of objects that distinguish paths.
pub(crate) trait PathContext {
    /// Class of an object.
    fn class(&self, object: u32) -> u32;

    /// Member of an object at a place. If the member is an element or lies in one, also returns the
    /// element's index.
    fn member(&self, object: u32, place: u32) -> (Member, Option<u64>);

    /// Group of a root: roots of the same name and kind have the same number.
    fn root_group(&self, root: u32) -> u32;

    /// Step from an object at a place that a search found.
    fn step(&self, object: u32, place: u32) -> (Member, Option<u64>) {
        match place {
            DEPENDENT => (Member::Dependent, None),
            LOADER => (Member::Loader, None),
            place => self.member(object, place),
        }
    }
}

/// One step: an object of a class, and the member that leads to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathStep {
    /// The previous step; `None` after a root.
    pub(crate) before: Option<u32>,
    /// Group of the root at which the path begins.
    pub(crate) root: u32,
    /// Class of the object.
    pub(crate) class: u32,
    /// Member of the previous object that refers to this object.
    pub(crate) member: Member,
    /// Index of the element in the previous object, for the first object that was found at this
    /// step.
    pub(crate) element: Option<u64>,
    /// Whether paths pass this step several times.
    pub(crate) repeats: bool,
    steps: u16,
}

/// The paths to wanted objects, stored as steps.
#[derive(Debug)]
pub(crate) struct RootPaths {
    pub(crate) steps: Vec<PathStep>,
    /// Last step of the path to each wanted object; [`NO_OBJECT`] for other objects and for those
    /// that no root holds.
    last: Vec<u32>,
}

/// Key that distinguishes the steps that follow one step.
type Key = (Option<u32>, u32, u32, Member);

impl RootPaths {
    /// Creates the paths to the wanted objects.
    pub(crate) fn new(search: &Shortest, shapes: &impl PathContext, is_wanted: impl Fn(u32) -> bool) -> Self {
        let needed = needed(search, is_wanted);
        let mut ways = Self { steps: Vec::new(), last: vec![NO_OBJECT; search.from.len()] };
        let mut known: FxHashMap<Key, u32> = FxHashMap::default();
        for &object in search.order.iter().filter(|&&object| needed[object as usize]) {
            ways.last[object as usize] = ways.step_to(object, search, shapes, &mut known);
        }
        ways
    }

    /// Returns the last step of the path to a wanted object; `None` if no root holds the object.
    pub(crate) fn last(&self, object: u32) -> Option<u32> {
        Some(self.last[object as usize]).filter(|&step| step != NO_OBJECT)
    }

    /// The steps from the root to this one.
    pub(crate) fn to(&self, last: u32) -> Vec<PathStep> {
        let mut steps = Vec::new();
        let mut at = Some(last);
        while let Some(step) = at.map(|at| self.steps[at as usize]) {
            steps.push(step);
            at = step.before;
        }
        steps.reverse();
        steps
    }

    fn step_to(
        &mut self,
        object: u32,
        search: &Shortest,
        shapes: &impl PathContext,
        known: &mut FxHashMap<Key, u32>,
    ) -> u32 {
        let (from, place) = (search.from[object as usize], search.place[object as usize]);
        let class = shapes.class(object);
        let (before, root, (member, element), steps) = match from {
            NO_OBJECT => (None, shapes.root_group(place), (Member::Root, None), 1),
            from => {
                let last = self.last[from as usize];
                let PathStep { root, steps, .. } = self.steps[last as usize];
                let member = shapes.step(from, place);
                (Some(last), root, member, steps + 1)
            }
        };
        if let Some(again) = before.and_then(|before| self.again(before, class, member)) {
            self.steps[again as usize].repeats = true;
            return again;
        }
        if let Some(before) = before.filter(|_| steps > MOST_STEPS) {
            self.steps[before as usize].repeats = true;
            return before;
        }
        *known.entry((before, root, class, member)).or_insert_with(|| {
            self.steps.push(PathStep { before, root, class, member, element, repeats: false, steps });
            self.steps.len() as u32 - 1
        })
    }

    /// A recent step by the same member to the same class.
    fn again(&self, before: u32, class: u32, member: Member) -> Option<u32> {
        let mut at = Some(before);
        for _ in 0..LOOK_BACK {
            let step = &self.steps[at? as usize];
            if step.class == class && step.member == member && member != Member::Root {
                return at;
            }
            at = step.before;
        }
        None
    }
}

/// Returns which objects are on the paths to wanted objects.
fn needed(search: &Shortest, is_wanted: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut needed = vec![false; search.from.len()];
    for &wanted in search.order.iter().filter(|&&object| is_wanted(object)) {
        let mut object = wanted;
        while object != NO_OBJECT && !std::mem::replace(&mut needed[object as usize], true) {
            object = search.from[object as usize];
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::graph::testing::graph;

    /// Objects of classes; those of class 9 are arrays.
    struct Classes(Vec<u32>);

    impl PathContext for Classes {
        fn class(&self, object: u32) -> u32 {
            self.0[object as usize]
        }

        fn member(&self, object: u32, place: u32) -> (Member, Option<u64>) {
            match self.class(object) {
                9 => (Member::Element, Some(place.into())),
                _ => (Member::Field(place), None),
            }
        }

        fn root_group(&self, root: u32) -> u32 {
            root
        }
    }

    #[test]
    fn elements_of_an_array_are_held_in_one_way_and_those_of_a_chain_in_two() {
        // A list (0) of an array (9) of three (2), and of a chain of four (3).
        let classes = Classes(vec![0, 9, 2, 2, 2, 3, 3, 3, 3]);
        let references = [(0, 1), (0, 5), (1, 2), (1, 3), (1, 4), (5, 6), (6, 7), (7, 8)];
        let search = Shortest::new(&graph(9, &references), [0]);
        let ways = RootPaths::new(&search, &classes, |_| true);
        let last = |object| ways.last(object);
        assert!(last(2) == last(3) && last(3) == last(4));
        assert!(last(5) != last(6) && last(6) == last(7) && last(7) == last(8));
        let shown: Vec<_> =
            ways.to(last(8).unwrap()).iter().map(|step| (step.class, step.member, step.repeats)).collect();
        assert_eq!(shown, [(0, Member::Root, false), (3, Member::Field(1), false), (3, Member::Field(0), true)]);
        assert_eq!(ways.to(last(4).unwrap())[2].element, Some(0));
    }

    #[test]
    fn only_ways_to_what_is_wanted_are_made() {
        let search = Shortest::new(&graph(4, &[(0, 1), (1, 2)]), [0]);
        let ways = RootPaths::new(&search, &Classes(vec![0, 1, 2, 3]), |object| object == 1 || object == 3);
        assert_eq!(ways.steps.len(), 2);
        assert_eq!((ways.last(2), ways.last(3)), (None, None));
    }

    #[test]
    fn a_long_way_of_ever_new_classes_ends() {
        let references: Vec<(u32, u32)> = (0..999).map(|at| (at, at + 1)).collect();
        let search = Shortest::new(&graph(1000, &references), [0]);
        let ways = RootPaths::new(&search, &Classes((0..1000).map(|at| 10 + at).collect()), |object| object == 999);
        assert_eq!(ways.to(ways.last(999).unwrap()).len(), MOST_STEPS as usize);
    }
}
