//! Objects and their references as compressed rows: two 32-bit numbers per reference, one 64-bit
//! number per object.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Place of the value that a dependent handle or a conditional weak table keeps for its key. It is
/// not a field of the key.
pub(crate) const DEPENDENT: u32 = u32::MAX;
/// Place of the object that keeps a type of a collectible load context loaded. It is not a field
/// either.
pub(crate) const LOADER: u32 = u32::MAX - 1;
/// Maximum number of objects in a graph; larger numbers are reserved.
pub(crate) const MOST_OBJECTS: usize = u32::MAX as usize - 2;

/// References between objects, which are numbered from 0 on.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    /// Index of each object's first reference; the last entry is the number of references.
    first: Vec<u64>,
    /// The target objects of the references.
    targets: Vec<u32>,
    /// Slot of each reference in its object, or [`DEPENDENT`] or [`LOADER`].
    places: Vec<u32>,
}

impl Graph {
    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of references.
    pub(crate) fn references(&self) -> u64 {
        self.targets.len() as u64
    }

    /// Indices of an object's references among all references.
    pub(crate) fn edges(&self, object: u32) -> Range<usize> {
        self.first[object as usize] as usize..self.first[object as usize + 1] as usize
    }

    /// Target of the reference with this index among all references.
    pub(crate) fn target(&self, edge: usize) -> u32 {
        self.targets[edge]
    }

    /// Objects that an object refers to.
    pub(crate) fn targets(&self, object: u32) -> &[u32] {
        &self.targets[self.edges(object)]
    }

    /// Target of an object's reference at a place.
    pub(crate) fn at(&self, object: u32, place: u32) -> Option<u32> {
        let edges = self.edges(object);
        let at = self.places[edges.clone()].binary_search(&place).ok()?;
        Some(self.targets[edges][at])
    }

    /// References of an object: target and place, in the order of places.
    pub(crate) fn references_of(&self, object: u32) -> impl Iterator<Item = (u32, u32)> {
        let edges = self.edges(object);
        self.targets[edges.clone()].iter().copied().zip(self.places[edges].iter().copied())
    }
}

/// Builds a graph from objects in the order of their numbers.
#[derive(Debug)]
pub(crate) struct GraphBuilder {
    graph: Graph,
    /// Values of dependent handles, by key.
    dependents: FxHashMap<u32, Vec<u32>>,
}

impl GraphBuilder {
    /// A builder without objects. `dependents` are the values that stay alive as long as their key.
    pub(crate) fn new(dependents: FxHashMap<u32, Vec<u32>>) -> Self {
        Self { graph: Graph { first: vec![0], targets: Vec::new(), places: Vec::new() }, dependents }
    }

    /// Reserves room for this many objects and references.
    pub(crate) fn reserve(&mut self, objects: usize, references: usize) {
        self.graph.first.reserve_exact(objects);
        self.graph.targets.reserve_exact(references);
        self.graph.places.reserve_exact(references);
    }

    /// Adds a reference of the current object.
    pub(crate) fn refer(&mut self, target: u32, place: u32) {
        self.graph.targets.push(target);
        self.graph.places.push(place);
    }

    /// Adds several references: targets, with the place of each.
    pub(crate) fn refer_to(&mut self, targets: &[u32], places: &[u32]) {
        self.graph.targets.extend_from_slice(targets);
        self.graph.places.extend_from_slice(places);
    }

    /// Ends the current object.
    pub(crate) fn end_object(&mut self) {
        let object = self.graph.first.len() as u32 - 1;
        if !self.dependents.is_empty() {
            for value in self.dependents.remove(&object).into_iter().flatten() {
                self.refer(value, DEPENDENT);
            }
        }
        self.graph.first.push(self.graph.targets.len() as u64);
    }

    /// The graph of this many objects: objects that were not added have no references.
    pub(crate) fn finish(mut self, objects: usize) -> Graph {
        while self.graph.len() < objects {
            self.end_object();
        }
        self.graph
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// The graph of these references, `(from, to)`, among this many objects; places are numbered
    /// within each object.
    pub(crate) fn graph(objects: usize, references: &[(u32, u32)]) -> Graph {
        let mut builder = GraphBuilder::new(FxHashMap::default());
        for object in 0..objects as u32 {
            let targets = references.iter().filter(|(from, _)| *from == object).map(|(_, to)| *to);
            for (place, to) in (0..).zip(targets) {
                builder.refer(to, place);
            }
            builder.end_object();
        }
        builder.finish(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_dependent_handles_are_references_of_their_keys() {
        let mut builder = GraphBuilder::new(FxHashMap::from_iter([(0, vec![2]), (7, vec![1])]));
        builder.refer(1, 1);
        builder.end_object();
        let graph = builder.finish(3);
        assert_eq!(graph.references_of(0).collect::<Vec<_>>(), [(1, 1), (2, DEPENDENT)]);
        assert_eq!((graph.at(0, 1), graph.at(0, 2), graph.at(2, 1)), (Some(1), None, None));
        assert_eq!((graph.len(), graph.references(), graph.targets(2)), (3, 2, &[][..]));
    }
}
