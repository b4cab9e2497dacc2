//! A snapshot in memory: numbered objects, references, and the roots that hold objects.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use clrscope_recording::model::{HeapGeneration, HeapSnapshot, HeapType, Process, RootKind, Thread};
use rustc_hash::FxHashMap;

use super::addresses::Addresses;
use super::await_place::AwaitPlace;
use super::classes::Classes;
use super::graph::{Graph, GraphBuilder, LOADER};
use super::pieces::{Piece, Pieces};
use super::source::Source;

/// Bytes of an object's header. The header lies before the object's address and counts in its size.
const HEADER: u64 = 8;
/// Kinds of roots, the most informative first: if several roots reach an object by equally short
/// paths, the first of these kinds is shown.
const KINDS: [RootKind; 10] = [
    RootKind::Static,
    RootKind::ThreadStatic,
    RootKind::Stack,
    RootKind::Finalizer,
    RootKind::PinnedHandle,
    RootKind::RefCountedHandle,
    RootKind::Handle,
    RootKind::Frozen,
    RootKind::Other,
    RootKind::WeakHandle,
];

/// A root of a snapshot.
#[derive(Debug, Clone)]
pub struct HeapPathRoot<'a> {
    /// Kind of root.
    pub kind: RootKind,
    /// Name of the static field, or of the method with the variable; empty if there is none.
    pub name: Arc<str>,
    /// Thread of the variable, if it belongs to a thread.
    pub thread: Option<&'a Thread>,
}

/// A root that holds an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    /// The object.
    pub(crate) object: u32,
    /// Index into [`LoadedSnapshot::roots`].
    pub(crate) root: u32,
}

/// Numbers of missing parts of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// Number of missing chunks of the snapshot.
    pub chunks: u64,
    /// Number of references to objects that are missing.
    pub references: u64,
    /// Number of roots of objects that are missing.
    pub roots: u64,
    /// Objects beyond the maximum number in a graph.
    pub objects: u64,
}

/// A snapshot in memory.
#[derive(Debug)]
pub(crate) struct LoadedSnapshot<'a> {
    pub(crate) process: &'a Process,
    pub(crate) snapshot: &'a HeapSnapshot,
    pub(crate) source: Source<'a>,
    pub(crate) graph: Graph,
    /// Class of each object.
    pub(crate) class: Vec<u32>,
    /// Size of each object in bytes.
    pub(crate) sizes: Vec<u64>,
    /// Generation of each object.
    pub(crate) generation: Vec<HeapGeneration>,
    /// Distinct roots.
    pub(crate) roots: Vec<HeapPathRoot<'a>>,
    /// Objects that roots hold, the most informative roots first.
    pub(crate) holds: Vec<Hold>,
    /// Await places of the boxes of waiting async methods.
    pub(crate) awaits: FxHashMap<u32, AwaitPlace>,
    pub(crate) missing: Missing,
}

impl<'a> LoadedSnapshot<'a> {
    /// Reads a snapshot, or the existing part of an incomplete one; `None` if there is nothing to
    /// read.
    pub(crate) fn new(process: &'a Process, snapshot: &'a HeapSnapshot) -> Option<Self> {
        let source = Source::open(process, snapshot.number)?;
        let mut pieces = Pieces::read(&source);
        let Objects { class, sizes, generation, addresses } = Objects::from_pieces(&mut pieces);
        let addresses = Addresses::new(addresses);
        let mut missing = Missing { chunks: source.missing_chunks(), objects: pieces.beyond, ..Missing::default() };
        missing.references = pieces.resolve(&addresses);
        let graph = References { source: &source, class: &class, addresses: &addresses }.graph(pieces);
        let mut roots = Roots { process, all: Vec::new(), known: FxHashMap::default(), holds: Vec::new() };
        roots.statics(&source, &addresses, &class, &graph);
        roots.frozen(&generation);
        roots.others(&source, &addresses, &mut missing);
        let (roots, mut holds) = (roots.all, roots.holds);
        holds.sort_by_key(|hold| KINDS.iter().position(|kind| *kind == roots[hold.root as usize].kind));
        let awaits = source.awaits().flat_map(|(place, boxes)| boxes.into_iter().map(move |one| (place, one)));
        let awaits = awaits.filter_map(|(place, one)| Some((addresses.find(one)?, place))).collect();
        Some(Self { process, snapshot, source, graph, class, sizes, generation, roots, holds, awaits, missing })
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.class.len()
    }

    /// Bytes of all objects.
    pub(crate) fn bytes(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }

    pub(crate) fn classes(&self) -> &Classes<'a> {
        &self.source.classes
    }

    /// Objects that roots hold, in the order of the roots.
    pub(crate) fn held(&self) -> impl Iterator<Item = u32> + Clone {
        self.holds.iter().map(|hold| hold.object)
    }

    /// Row in which an object counts, given as the first class with the same name and module.
    pub(crate) fn kind(&self, object: u32) -> u32 {
        self.classes().kind(self.class[object as usize])
    }
}

/// Objects in the order of their numbers, without references.
struct Objects {
    class: Vec<u32>,
    sizes: Vec<u64>,
    generation: Vec<HeapGeneration>,
    addresses: Vec<u64>,
}

impl Objects {
    /// Moves the data of objects, except their references, out of the pieces.
    fn from_pieces(pieces: &mut Pieces) -> Self {
        let count = pieces.iter().map(Piece::len).sum();
        let mut objects = Self {
            class: Vec::with_capacity(count),
            sizes: Vec::with_capacity(count),
            generation: Vec::with_capacity(count),
            addresses: Vec::with_capacity(count),
        };
        for piece in pieces.iter_mut() {
            let first = usize::from(piece.goes_on);
            objects.class.extend_from_slice(&take(&mut piece.class)[first..]);
            objects.sizes.extend_from_slice(&take(&mut piece.sizes)[first..]);
            objects.generation.extend_from_slice(&take(&mut piece.generation)[first..]);
            objects.addresses.extend_from_slice(&take(&mut piece.addresses)[first..]);
        }
        objects
    }
}

/// Tables that resolve references.
struct References<'l, 'a> {
    source: &'l Source<'a>,
    class: &'l [u32],
    addresses: &'l Addresses,
}

impl References<'_, '_> {
    /// The graph of pieces whose references are resolved.
    fn graph(&self, pieces: Pieces) -> Graph {
        let dependents = self.dependents();
        let types = self.source.classes.types();
        let loader = |found: &HeapType| self.addresses.find(found.loader).filter(|_| found.loader != 0);
        let loaders: Vec<Option<u32>> = types.iter().map(loader).collect();
        let held_types = self.class.iter().filter(|class| loaders[**class as usize].is_some()).count();
        let values: usize = dependents.values().map(Vec::len).sum();
        let mut builder = GraphBuilder::new(dependents);
        builder.reserve(self.class.len(), pieces.references() + held_types + values);
        // The last object gets more references if the next piece continues it.
        let mut begun = self.class.iter();
        let mut open: Option<&u32> = None;
        let end = |builder: &mut GraphBuilder, class: &u32| {
            loaders[*class as usize].into_iter().for_each(|loader| builder.refer(loader, LOADER));
            builder.end_object();
        };
        for piece in pieces.into_iter() {
            for at in 0..piece.len() {
                if at > 0 || !piece.goes_on {
                    open.into_iter().for_each(|class| end(&mut builder, class));
                    open = begun.next();
                }
                let (targets, slots) = piece.references(at);
                builder.refer_to(targets, slots);
            }
        }
        open.into_iter().for_each(|class| end(&mut builder, class));
        builder.finish(self.class.len())
    }

    fn dependents(&self) -> FxHashMap<u32, Vec<u32>> {
        let mut dependents: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        self.source.dependents(|(key, value)| {
            if let (Some(key), Some(value)) = (self.addresses.find(key), self.addresses.find(value)) {
                dependents.entry(key).or_default().push(value);
            }
        });
        dependents
    }
}

/// Distinct roots while they are collected, by kind, name and thread.
struct Roots<'a> {
    process: &'a Process,
    all: Vec<HeapPathRoot<'a>>,
    known: FxHashMap<(RootKind, Arc<str>, u32), u32>,
    holds: Vec<Hold>,
}

impl<'a> Roots<'a> {
    fn number(&mut self, kind: RootKind, name: &str, thread: u32) -> u32 {
        let threads = &self.process.threads;
        let name: Arc<str> = name.into();
        *self.known.entry((kind, name.clone(), thread)).or_insert_with(|| {
            let thread = threads.iter().find(|known| known.id == thread && thread != 0);
            self.all.push(HeapPathRoot { kind, name, thread });
            self.all.len() as u32 - 1
        })
    }

    /// Adds static fields and the objects they hold. Their values are elements of arrays of the
    /// runtime.
    fn statics(&mut self, source: &Source<'_>, addresses: &Addresses, class: &[u32], graph: &Graph) {
        let mut statics: BTreeMap<(u32, u64), u32> = BTreeMap::new();
        for place in source.places() {
            let Some((object, behind)) = addresses.around(place.address) else { continue };
            let found = source.classes.get(class[object as usize]);
            let behind = behind.checked_sub(u64::from(found.base_bytes).saturating_sub(HEADER));
            let element = behind.and_then(|behind| behind.checked_div(found.element_bytes.into()));
            if let Some(element) = element {
                let slot = element * found.element_fields.len() as u64 + found.fields.len() as u64;
                statics.insert((object, slot), self.number(place.kind, &place.name, place.thread));
            }
        }
        for ((holder, slot), root) in statics {
            let object = u32::try_from(slot).ok().and_then(|slot| graph.at(holder, slot));
            self.holds.extend(object.map(|object| Hold { object, root }));
        }
    }

    /// Adds frozen objects, which are never collected, as roots of themselves.
    fn frozen(&mut self, generations: &[HeapGeneration]) {
        let root = self.number(RootKind::Frozen, "", 0);
        let frozen = (0..).zip(generations).filter(|(_, generation)| **generation == HeapGeneration::Frozen);
        self.holds.extend(frozen.map(|(object, _)| Hold { object, root }));
    }

    /// Adds all other roots and their objects.
    fn others(&mut self, source: &Source<'_>, addresses: &Addresses, missing: &mut Missing) {
        let process = self.process;
        source.roots(|root| {
            if !root.kind.holds() || root.object == 0 {
                return;
            }
            let Some(object) = addresses.find(root.object) else {
                missing.roots += 1;
                return;
            };
            let function = process.functions.get(root.function as usize).filter(|_| root.function != 0);
            let root = self.number(root.kind, function.map_or("", |function| &function.name), root.thread);
            self.holds.push(Hold { object, root });
        });
    }
}
