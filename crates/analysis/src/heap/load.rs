//! A snapshot in memory: objects by number, references, and the roots that hold something.

use std::sync::Arc;

use clrscope_recording::model::{HeapGeneration, HeapSnapshot, Process, RootKind, Thread};
use rustc_hash::FxHashMap;

use super::addresses::Addresses;
use super::classes::{Classes, NO_CLASS};
use super::graph::{Graph, GraphBuilder, LOADER, MOST_OBJECTS};
use super::source::Source;

/// Bytes of an object's header, which lies before its address and counts for its size.
const HEADER: u64 = 8;
/// Kinds of roots by how much they say: of several that lead to an object by ways of one length the first is shown.
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
pub struct WayRoot<'a> {
    /// Kind of root.
    pub kind: RootKind,
    /// Name of the static field, or of the method whose variable it is; empty where there is none.
    pub name: Arc<str>,
    /// Thread of the variable, where it is one of a thread.
    pub thread: Option<&'a Thread>,
}

/// A root that holds an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    /// The object.
    pub(crate) object: u32,
    /// Index into [`Loaded::roots`].
    pub(crate) root: u32,
}

/// Parts of a snapshot that are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// Pieces of the file.
    pub chunks: u64,
    /// References to objects that are not there.
    pub references: u64,
    /// Roots of objects that are not there.
    pub roots: u64,
    /// Objects beyond those that can be numbered.
    pub objects: u64,
}

/// A snapshot in memory.
#[derive(Debug)]
pub(crate) struct Loaded<'a> {
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
    /// Different roots, each once.
    pub(crate) roots: Vec<WayRoot<'a>>,
    /// Objects that roots hold: the roots that say most come first.
    pub(crate) holds: Vec<Hold>,
    pub(crate) missing: Missing,
}

impl<'a> Loaded<'a> {
    /// Reads a snapshot: once for its objects, and once for their references; what there is of one that is not complete. `None` where that
    /// is nothing.
    pub(crate) fn new(process: &'a Process, snapshot: &'a HeapSnapshot) -> Option<Self> {
        let source = Source::open(process, snapshot.number)?;
        let objects = Objects::read(&source);
        let addresses = Addresses::new(objects.addresses);
        let mut missing = Missing { chunks: source.missing_chunks(), objects: objects.beyond, ..Missing::default() };
        let mut roots = Roots { process, all: Vec::new(), known: FxHashMap::default(), holds: Vec::new() };
        let statics = roots.statics(&source, &addresses, &objects.class);
        let references = References { source: &source, class: &objects.class, addresses: &addresses };
        let graph = references.read(objects.references, |object, slot, target| match statics.get(&(object, slot)) {
            _ if target.is_none() => missing.references += 1,
            Some(&root) => roots.holds.extend(target.map(|object| Hold { object, root })),
            None => {}
        });
        roots.frozen(&objects.generation);
        roots.others(&source, &addresses, &mut missing);
        let (roots, mut holds) = (roots.all, roots.holds);
        holds.sort_by_key(|hold| KINDS.iter().position(|kind| *kind == roots[hold.root as usize].kind));
        let Objects { class, sizes, generation, .. } = objects;
        Some(Self { process, snapshot, source, graph, class, sizes, generation, roots, holds, missing })
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

    /// Row that an object counts in: the first class of the name and module of its own.
    pub(crate) fn kind(&self, object: u32) -> u32 {
        self.classes().kind(self.class[object as usize])
    }
}

/// Objects as they were read.
struct Objects {
    class: Vec<u32>,
    sizes: Vec<u64>,
    generation: Vec<HeapGeneration>,
    addresses: Vec<u64>,
    references: usize,
    beyond: u64,
}

impl Objects {
    fn read(source: &Source<'_>) -> Self {
        let mut objects = Self {
            class: Vec::new(),
            sizes: Vec::new(),
            generation: Vec::new(),
            addresses: Vec::new(),
            references: 0,
            beyond: 0,
        };
        source.objects(|object| {
            objects.references += object.references.len();
            if object.goes_on && objects.addresses.last() == Some(&object.address) {
                return;
            }
            if objects.addresses.len() >= MOST_OBJECTS {
                objects.beyond += 1;
                return;
            }
            let class = object.type_number;
            objects.references += usize::from(source.classes.get(class).loader != 0);
            objects.addresses.push(object.address);
            objects.class.push(class);
            objects.sizes.push(object.bytes);
            objects.generation.push(object.generation);
        });
        objects.class.shrink_to_fit();
        objects.sizes.shrink_to_fit();
        objects
    }
}

/// Tables that references are read with.
struct References<'l, 'a> {
    source: &'l Source<'a>,
    class: &'l [u32],
    addresses: &'l Addresses,
}

impl References<'_, '_> {
    /// The graph. `visit` is told object, slot and target of each reference, `None` where that is not there.
    fn read(&self, references: usize, mut visit: impl FnMut(u32, u64, Option<u32>)) -> Graph {
        let dependents = self.dependents();
        let values: usize = dependents.values().map(Vec::len).sum();
        let classes = &self.source.classes;
        let loaders: Vec<Option<u32>> = classes
            .types()
            .iter()
            .map(|found| self.addresses.find(found.loader).filter(|_| found.loader != 0))
            .collect();
        let mut builder = GraphBuilder::new(dependents);
        builder.reserve(self.class.len(), references + values);
        // Object whose references are being read.
        let mut open: Option<u64> = None;
        self.source.objects(|object| {
            let goes_on = object.goes_on && open == Some(object.address);
            if !goes_on {
                if open.is_some() && builder.len() < self.class.len() {
                    builder.end_object();
                }
                open = Some(object.address);
            }
            let number = builder.len() as u32;
            let Some(&class) = self.class.get(number as usize) else { return };
            for reference in object.references {
                let target = self.addresses.find(reference.target);
                visit(number, reference.slot, target);
                let slot = u32::try_from(reference.slot).unwrap_or(LOADER).min(LOADER - 1);
                target.into_iter().for_each(|target| builder.refer(target, slot));
            }
            if !goes_on && class != NO_CLASS {
                loaders[class as usize].into_iter().for_each(|loader| builder.refer(loader, LOADER));
            }
        });
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

/// Roots in the making: each kind, name and thread once.
struct Roots<'a> {
    process: &'a Process,
    all: Vec<WayRoot<'a>>,
    known: FxHashMap<(RootKind, Arc<str>, u32), u32>,
    holds: Vec<Hold>,
}

impl<'a> Roots<'a> {
    fn number(&mut self, kind: RootKind, name: &str, thread: u32) -> u32 {
        let threads = &self.process.threads;
        let name: Arc<str> = name.into();
        *self.known.entry((kind, name.clone(), thread)).or_insert_with(|| {
            let thread = threads.iter().find(|known| known.id == thread && thread != 0);
            self.all.push(WayRoot { kind, name, thread });
            self.all.len() as u32 - 1
        })
    }

    /// Roots of the slots that are static fields: elements of arrays of the runtime's own.
    fn statics(&mut self, source: &Source<'_>, addresses: &Addresses, class: &[u32]) -> FxHashMap<(u32, u64), u32> {
        let mut statics = FxHashMap::default();
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
        statics
    }

    /// Objects that are never collected hold themselves.
    fn frozen(&mut self, generations: &[HeapGeneration]) {
        let root = self.number(RootKind::Frozen, "", 0);
        let frozen = (0..).zip(generations).filter(|(_, generation)| **generation == HeapGeneration::Frozen);
        self.holds.extend(frozen.map(|(object, _)| Hold { object, root }));
    }

    /// Objects that all other roots hold.
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
