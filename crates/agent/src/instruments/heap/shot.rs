//! One snapshot while it is taken. Callbacks of the collection add to the snapshot. The heap is
//! walked at the end of the collection, or at the beginning for a snapshot of the heap before the
//! collection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::{Generation, MovedRanges, RootFlags, RootKind as RootOf, Roots, WeakTableElements};
use clr_profiler::{FunctionId, ProfilerInfo};
use clrscope_recording::layout::heap;
use clrscope_recording::model::RootKind;
use clrscope_recording::writer::{EventStore, HeapRootRecord, HeapWriter, monotonic_ns};

use super::generics::Room;
use super::memory::StopProof;
use super::moves::Moves;
use super::stacks::Holders;
use super::task_words::KeptWords;
use super::types::Classes;
use super::walk::{Sums, Walk};
use crate::services::object_types::ObjectTypes;

/// A reference that a variable on a stack holds.
pub(super) struct StackRoot {
    /// Address of the object after the collection.
    pub(super) object: u64,
    pub(super) flags: u32,
    /// Function that the variable belongs to; `None` for the runtime's own roots.
    pub(super) function: Option<FunctionId>,
}

/// A root that a callback or an event reported.
pub(super) struct RootReference {
    /// Address of the object after the collection.
    pub(super) object: u64,
    pub(super) kind: RootOf,
    pub(super) flags: RootFlags,
    /// Function that the variable belongs to; `None` if the root is not a variable.
    pub(super) function: Option<FunctionId>,
}

/// What a snapshot must show.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Whether the heap is read after the collection; otherwise before it.
    pub(super) collects: bool,
    /// Whether a collection that reported no roots is skipped.
    pub(super) needs_roots: bool,
}

/// A snapshot that is being taken.
pub(super) struct Shot {
    pub(super) writer: HeapWriter<'static>,
    pub(super) classes: Classes,
    /// Words that are kept of the boxes of async methods.
    pub(super) kept: KeptWords,
    /// Roots whose names are asked for after the program has resumed.
    pub(super) stack_roots: Vec<StackRoot>,
    pub(super) holders: Holders,
    pub(super) sums: Sums,
    pub(super) roots: u64,
    pub(super) began_ns: u64,
    pub(super) pause_ns: u64,
    pub(super) walk_ns: u64,
    /// Sequence number of the chunk that is written first after the program has resumed.
    pub(super) tail_chunk: u64,
    /// Name of a query that the runtime refused.
    pub(super) refused: Option<String>,
    /// Ranges of the heap where the runtime keeps static fields.
    pub(super) room: Room,
    /// Whether the heap is walked after the collection. Otherwise it is walked before, and objects
    /// have moved when roots are reported.
    collects: bool,
    /// Whether a collection without roots does not count, since it is a background collection.
    needs_roots: bool,
    pub(super) moves: Moves,
    /// For a heap that was walked before the collection: roots and pairs, by addresses after it.
    late_roots: Vec<HeapRootRecord>,
    late_pairs: Vec<(u64, u64)>,
    object_types: Arc<ObjectTypes>,
}

impl Shot {
    fn new(
        store: &'static EventStore,
        number: u32,
        Wanted { collects, needs_roots }: Wanted,
        object_types: Arc<ObjectTypes>,
        task: Option<usize>,
    ) -> Self {
        Self {
            writer: HeapWriter::new(store, number),
            classes: Classes::new(task),
            kept: KeptWords::default(),
            stack_roots: Vec::new(),
            holders: Holders::default(),
            sums: Sums::default(),
            roots: 0,
            began_ns: 0,
            pause_ns: 0,
            walk_ns: 0,
            tail_chunk: 0,
            refused: None,
            room: Room::default(),
            collects,
            needs_roots,
            moves: Moves::default(),
            late_roots: Vec::new(),
            late_pairs: Vec::new(),
            object_types,
        }
    }

    fn add_root(&mut self, root: RootReference) {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(root.flags.is_pinning(), heap::PINNING) | flag(root.flags.is_interior(), heap::INTERIOR);
        let object = root.object;
        self.roots += 1;
        let kind = match root.kind {
            RootOf::Stack => {
                self.stack_roots.push(StackRoot { object, flags, function: root.function });
                return;
            }
            RootOf::Handle if root.flags.is_weak() => RootKind::WeakHandle,
            RootOf::Handle if root.flags.is_ref_counted() => RootKind::RefCountedHandle,
            RootOf::Handle if root.flags.is_pinning() => RootKind::PinnedHandle,
            RootOf::Handle => RootKind::Handle,
            RootOf::Finalizer => RootKind::Finalizer,
            _ => RootKind::Other,
        };
        let root = HeapRootRecord { kind, flags, object, ..HeapRootRecord::default() };
        if self.collects { self.writer.root(root) } else { self.late_roots.push(root) }
    }

    fn add_dependent(&mut self, key: u64, value: u64) {
        if self.collects { self.writer.dependent(key, value) } else { self.late_pairs.push((key, value)) }
    }

    /// For a heap that was walked before the collection: writes the late roots and pairs with their
    /// addresses before the collection.
    fn bring_back(&mut self) {
        self.moves.sort();
        for root in std::mem::take(&mut self.late_roots) {
            self.writer.root(HeapRootRecord { object: self.moves.before(root.object), ..root });
        }
        for (key, value) in std::mem::take(&mut self.late_pairs) {
            self.writer.dependent(self.moves.before(key), self.moves.before(value));
        }
    }

    /// Finishes the snapshot's data when the collection is over.
    fn finish(&mut self) {
        self.holders = Holders::find(self.stack_roots.iter().map(|root| root.object));
        self.writer.flush_all();
        self.tail_chunk = self.writer.chunks().1 + 1;
    }

    /// Walks the heap. Called in the callback about the beginning or the end of the collection.
    fn walk(&mut self, info: &ProfilerInfo, stopped: &StopProof) {
        let began = monotonic_ns();
        let mut ranges = match info.generation_bounds() {
            Ok(ranges) => ranges,
            Err(error) => {
                self.refused = Some(error.to_string());
                return;
            }
        };
        // Before .NET 8 there are none.
        ranges.extend(info.non_gc_heap_bounds().unwrap_or_default());
        let stays = |of: Generation| matches!(of, Generation::PinnedObjects | Generation::LargeObjects);
        let room =
            ranges.iter().filter(|range| stays(range.generation)).map(|range| (range.start, range.start + range.bytes));
        self.room = Room(room.collect());
        // So that the records are complete if the program is killed meanwhile.
        self.writer.flush_all();
        let Self { classes, writer, object_types, kept, .. } = self;
        let mut walk = Walk { info, classes, writer, object_types, kept, sums: Sums::default(), met: 0 };
        walk.pieces(stopped, ranges);
        self.sums = walk.sums;
        self.writer.flush_all();
        self.walk_ns = monotonic_ns() - began;
    }
}

/// Progress of a snapshot. The lock is held for memory accesses only.
#[derive(Default)]
pub(super) struct Exposure(Mutex<Phase>);

#[derive(Default)]
enum Phase {
    /// No snapshot is wanted.
    #[default]
    Idle,
    /// The snapshot is to be taken in the next full collection.
    Armed(Box<Shot>),
    /// The collection runs.
    Collecting(Box<Shot>),
    /// The heap was walked completely.
    Taken(Box<Shot>),
}

impl Exposure {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a snapshot with this number in the next full collection. `task` is the class from
    /// which all tasks are derived.
    pub(super) fn arm(
        &self,
        store: &'static EventStore,
        number: u32,
        wanted: Wanted,
        object_types: &Arc<ObjectTypes>,
        task: Option<usize>,
    ) {
        *self.phase() = Phase::Armed(Box::new(Shot::new(store, number, wanted, Arc::clone(object_types), task)));
    }

    /// Ends the request. Returns the snapshot if it was taken.
    pub(super) fn finish(&self) -> Option<Box<Shot>> {
        match std::mem::take(&mut *self.phase()) {
            Phase::Taken(shot) => Some(shot),
            _ => None,
        }
    }

    /// Call it in the callback about the beginning of a collection, while the program is suspended.
    pub(super) fn collection_started(&self, is_full: bool, info: &ProfilerInfo, stopped: &StopProof) {
        let taken = |phase: &mut Phase| match std::mem::take(phase) {
            Phase::Armed(shot) if is_full => Some(shot),
            other => {
                *phase = other;
                None
            }
        };
        let Some(mut shot) = taken(&mut self.phase()) else { return };
        shot.began_ns = monotonic_ns();
        if !shot.collects {
            // Without the lock, since the runtime is queried.
            shot.walk(info, stopped);
        }
        *self.phase() = Phase::Collecting(shot);
    }

    /// Adds ranges of objects that the collection moves. The server GC reports them from several
    /// threads.
    pub(super) fn moved(&self, ranges: MovedRanges<'_>) {
        if let Phase::Collecting(shot) = &mut *self.phase()
            && !shot.collects
        {
            shot.moves.add(ranges);
        }
    }

    /// Adds roots that the collection reports. The server GC reports roots from several threads.
    pub(super) fn roots(&self, roots: Roots<'_>) {
        self.add_roots(roots.iter().map(|root| RootReference {
            object: root.object.address() as u64,
            kind: root.kind,
            flags: root.flags,
            function: root.function(),
        }));
    }

    /// Adds roots like [`roots`](Self::roots).
    pub(super) fn add_roots(&self, roots: impl Iterator<Item = RootReference>) {
        if let Phase::Collecting(shot) = &mut *self.phase() {
            roots.filter(|root| root.object != 0).for_each(|root| shot.add_root(root));
        }
    }

    /// Adds pairs of objects. In each pair, the second object lives as long as the first.
    pub(super) fn dependents(&self, elements: WeakTableElements<'_>) {
        self.add_dependents(
            elements.iter().map(|(key, value, _handle)| (key.address() as u64, value.address() as u64)),
        );
    }

    /// Adds pairs like [`dependents`](Self::dependents), given by the addresses of the objects.
    pub(super) fn add_dependents(&self, pairs: impl Iterator<Item = (u64, u64)>) {
        if let Phase::Collecting(shot) = &mut *self.phase() {
            pairs.filter(|(key, _)| *key != 0).for_each(|(key, value)| shot.add_dependent(key, value));
        }
    }

    /// Call it in the callback about the end of a collection, while the program is still suspended.
    /// Returns whether there is a snapshot of the heap after the collection.
    pub(super) fn collection_finished(&self, info: &ProfilerInfo, stopped: &StopProof) -> bool {
        let mut shot = {
            let mut phase = self.phase();
            match std::mem::take(&mut *phase) {
                Phase::Collecting(shot) if shot.needs_roots && shot.roots == 0 => {
                    *phase = Phase::Armed(shot);
                    return false;
                }
                Phase::Collecting(shot) => shot,
                other => {
                    *phase = other;
                    return false;
                }
            }
        };
        let is_of_survivors = shot.collects;
        if is_of_survivors {
            // Without the lock, since the runtime is queried.
            shot.walk(info, stopped);
        } else {
            shot.bring_back();
        }
        shot.finish();
        shot.pause_ns = monotonic_ns() - shot.began_ns;
        *self.phase() = Phase::Taken(shot);
        is_of_survivors
    }
}
