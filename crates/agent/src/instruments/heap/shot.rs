//! One snapshot while it is taken: what callbacks of the collection add to it, and the walk at the collection's end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::{Roots, RootKind as RootOf, WeakTableElements};
use clr_profiler::{FunctionId, ProfilerInfo};
use clrscope_recording::layout::heap;
use clrscope_recording::model::RootKind;
use clrscope_recording::writer::{EventStore, HeapRootRecord, HeapWriter, monotonic_ns};

use super::memory::Stopped;
use super::stacks::Holders;
use super::types::Classes;
use super::walk::{Sums, Walk};

/// Reference that a variable on a stack holds.
pub(super) struct StackRoot {
    pub(super) object: u64,
    pub(super) flags: u32,
    /// Function whose variable it is; `None` for the runtime's own.
    pub(super) function: Option<FunctionId>,
}

/// A snapshot that is being taken.
pub(super) struct Shot {
    pub(super) writer: HeapWriter<'static>,
    pub(super) classes: Classes,
    /// Roots whose names can be asked for when the program goes on.
    pub(super) stack_roots: Vec<StackRoot>,
    pub(super) holders: Holders,
    pub(super) sums: Sums,
    pub(super) roots: u64,
    pub(super) began_ns: u64,
    pub(super) pause_ns: u64,
    pub(super) walk_ns: u64,
    /// Sequence number of the first chunk that is written when the program goes on.
    pub(super) tail_chunk: u64,
    /// Question that the runtime did not answer.
    pub(super) refused: Option<String>,
}

impl Shot {
    fn new(store: &'static EventStore, number: u32) -> Self {
        Self {
            writer: HeapWriter::new(store, number),
            classes: Classes::new(),
            stack_roots: Vec::new(),
            holders: Holders::default(),
            sums: Sums::default(),
            roots: 0,
            began_ns: 0,
            pause_ns: 0,
            walk_ns: 0,
            tail_chunk: 0,
            refused: None,
        }
    }

    fn add_roots(&mut self, roots: Roots<'_>) {
        for root in roots.iter().filter(|root| !root.object.is_null()) {
            let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
            let flags = flag(root.flags.is_pinning(), heap::PINNING) | flag(root.flags.is_interior(), heap::INTERIOR);
            let object = root.object.address() as u64;
            self.roots += 1;
            let kind = match root.kind {
                RootOf::Stack => {
                    self.stack_roots.push(StackRoot { object, flags, function: root.function() });
                    continue;
                }
                RootOf::Handle if root.flags.is_weak() => RootKind::WeakHandle,
                RootOf::Handle if root.flags.is_ref_counted() => RootKind::RefCountedHandle,
                RootOf::Handle if root.flags.is_pinning() => RootKind::PinnedHandle,
                RootOf::Handle => RootKind::Handle,
                RootOf::Finalizer => RootKind::Finalizer,
                _ => RootKind::Other,
            };
            self.writer.root(HeapRootRecord { kind, flags, object, ..HeapRootRecord::default() });
        }
    }

    /// Walks the heap. In the callback about the end of the collection.
    fn walk(&mut self, info: &ProfilerInfo, stopped: &Stopped) {
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
        let Self { classes, writer, .. } = self;
        let mut walk = Walk { info, classes, writer, sums: Sums::default() };
        walk.pieces(stopped, ranges);
        self.sums = walk.sums;
        self.holders = Holders::find(self.stack_roots.iter().map(|root| root.object));
        self.writer.flush_all();
        self.tail_chunk = self.writer.chunks().1 + 1;
        self.walk_ns = monotonic_ns() - began;
    }
}

/// Progress of a snapshot. Locked for memory accesses only.
#[derive(Default)]
pub(super) struct Exposure(Mutex<Phase>);

#[derive(Default)]
enum Phase {
    /// No snapshot is wanted.
    #[default]
    Idle,
    /// The next full collection is to be one.
    Armed(Box<Shot>),
    /// The collection runs.
    Collecting(Box<Shot>),
    /// All of the heap was walked.
    Taken(Box<Shot>),
}

impl Exposure {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants a snapshot with this number of the next full collection.
    pub(super) fn arm(&self, store: &'static EventStore, number: u32) {
        *self.phase() = Phase::Armed(Box::new(Shot::new(store, number)));
    }

    /// The snapshot, if it was taken; none is wanted any more.
    pub(super) fn take(&self) -> Option<Box<Shot>> {
        match std::mem::take(&mut *self.phase()) {
            Phase::Taken(shot) => Some(shot),
            _ => None,
        }
    }

    /// A collection begins.
    pub(super) fn collection_started(&self, is_full: bool) {
        let mut phase = self.phase();
        *phase = match std::mem::take(&mut *phase) {
            Phase::Armed(mut shot) if is_full => {
                shot.began_ns = monotonic_ns();
                Phase::Collecting(shot)
            }
            other => other,
        };
    }

    /// Roots that the collection reports. The server's collector has several threads that do.
    pub(super) fn roots(&self, roots: Roots<'_>) {
        if let Phase::Collecting(shot) = &mut *self.phase() {
            shot.add_roots(roots);
        }
    }

    /// Objects that live as long as others do.
    pub(super) fn dependents(&self, elements: WeakTableElements<'_>) {
        if let Phase::Collecting(shot) = &mut *self.phase() {
            for (key, value, _handle) in elements.iter().filter(|(key, ..)| !key.is_null()) {
                shot.writer.dependent(key.address() as u64, value.address() as u64);
            }
        }
    }

    /// A collection has ended, and the program still stands. In the callback about that.
    pub(super) fn collection_finished(&self, info: &ProfilerInfo, stopped: &Stopped) {
        let mut shot = {
            let mut phase = self.phase();
            match std::mem::take(&mut *phase) {
                Phase::Collecting(shot) => shot,
                other => {
                    *phase = other;
                    return;
                }
            }
        };
        // Without the lock: the runtime is asked.
        shot.walk(info, stopped);
        shot.pause_ns = monotonic_ns() - shot.began_ns;
        *self.phase() = Phase::Taken(shot);
    }
}
