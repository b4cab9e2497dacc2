//! Graph of objects and their references, and the shortest path from a root to an object.

use std::collections::{HashMap, HashSet, VecDeque};

use clr_profiler::callback_args::RootKind;
use clr_profiler::{ClassId, FunctionId};

#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) objects: HashMap<usize, Object>,
    /// Offset in the object, and the referenced object.
    references: Vec<(usize, usize)>,
    pub(crate) roots: Vec<Root>,
    /// Values of conditional weak tables, by the key objects that hold them.
    weak: HashMap<usize, Vec<usize>>,
    /// The object added last, to which further references belong.
    last: usize,
}

pub(crate) struct Object {
    pub(crate) class: ClassId,
    pub(crate) bytes: usize,
    first: usize,
    references: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Root {
    pub(crate) object: usize,
    pub(crate) kind: RootKind,
    /// Function of the frame, for a root on a stack.
    pub(crate) function: Option<FunctionId>,
}

/// An object on a path, and the place of the reference to it in the previous object.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) object: usize,
    pub(crate) place: Option<usize>,
}

impl Graph {
    pub(crate) fn add(&mut self, address: usize, class: ClassId, bytes: usize) {
        self.objects.insert(address, Object { class, bytes, first: self.references.len(), references: 0 });
        self.last = address;
    }

    pub(crate) fn refer(&mut self, place: usize, to: usize) {
        if let Some(object) = self.objects.get_mut(&self.last) {
            self.references.push((place, to));
            object.references += 1;
        }
    }

    pub(crate) fn root(&mut self, root: Root) {
        self.roots.push(root);
    }

    pub(crate) fn weak(&mut self, key: usize, value: usize) {
        self.weak.entry(key).or_default().push(value);
    }

    pub(crate) fn edges(&self) -> usize {
        self.references.len()
    }

    /// The shortest path from a root to an object.
    pub(crate) fn path(&self, target: usize) -> Option<(Root, Vec<Step>)> {
        let mut from = HashMap::<usize, Step>::new();
        let mut root_of = HashMap::new();
        let mut seen = HashSet::new();
        let mut queue = VecDeque::new();
        for root in self.roots.iter().filter(|root| root.object != 0) {
            if seen.insert(root.object) {
                root_of.insert(root.object, *root);
                queue.push_back(root.object);
            }
        }
        while let Some(address) = queue.pop_front() {
            if address == target {
                return self.back(target, &from, &root_of);
            }
            let references = self
                .objects
                .get(&address)
                .map_or(&[][..], |object| &self.references[object.first..object.first + object.references]);
            let held = references.iter().map(|(place, to)| (Some(*place), *to));
            let weak = self.weak.get(&address).into_iter().flatten().map(|value| (None, *value));
            for (place, to) in held.chain(weak) {
                if seen.insert(to) {
                    from.insert(to, Step { object: address, place });
                    queue.push_back(to);
                }
            }
        }
        None
    }

    fn back(
        &self,
        target: usize,
        from: &HashMap<usize, Step>,
        root_of: &HashMap<usize, Root>,
    ) -> Option<(Root, Vec<Step>)> {
        let (mut steps, mut object) = (Vec::new(), target);
        while let Some(step) = from.get(&object) {
            steps.push(Step { object, place: step.place });
            object = step.object;
        }
        steps.push(Step { object, place: None });
        steps.reverse();
        root_of.get(&object).map(|root| (*root, steps))
    }
}
