//! Open snapshots: each is read once for all views.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clrscope_recording::model::{HeapSnapshot, Process, Recording};

use super::load::LoadedSnapshot;
use super::retained::RetainedBytes;
use super::shortest::Shortest;

/// The heaps of a recording: a cache of snapshots and of the results computed from them. Use the
/// same `Heaps` for all views of a recording. The data is kept until the `Heaps` is dropped.
#[derive(Debug)]
pub struct Heaps<'a> {
    pub(super) recording: &'a Recording,
    open: Mutex<Vec<Arc<OpenHeap<'a>>>>,
}

/// A snapshot in memory, with the results computed from it.
#[derive(Debug)]
pub(super) struct OpenHeap<'a> {
    pub(super) loaded: LoadedSnapshot<'a>,
    retained: OnceLock<RetainedBytes>,
    search: OnceLock<Shortest>,
}

impl<'a> Heaps<'a> {
    /// Creates the heaps of a recording; no snapshot is read yet.
    #[must_use]
    pub fn new(recording: &'a Recording) -> Self {
        Self { recording, open: Mutex::default() }
    }

    /// A snapshot, which stays open; `None` if nothing can be read from it.
    pub(super) fn open(&self, process: &'a Process, snapshot: &'a HeapSnapshot) -> Option<Arc<OpenHeap<'a>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.iter().find(|known| known.is(process, snapshot)) {
            return Some(Arc::clone(known));
        }
        let opened = Arc::new(OpenHeap::read(process, snapshot)?);
        open.push(Arc::clone(&opened));
        Some(opened)
    }

    /// A snapshot that is needed only once. It is not kept open unless it was open before.
    pub(super) fn pass(&self, process: &'a Process, snapshot: &'a HeapSnapshot) -> Option<Arc<OpenHeap<'a>>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.iter().find(|known| known.is(process, snapshot)).cloned();
        known.or_else(|| OpenHeap::read(process, snapshot).map(Arc::new))
    }
}

impl<'a> OpenHeap<'a> {
    fn read(process: &'a Process, snapshot: &'a HeapSnapshot) -> Option<Self> {
        let loaded = LoadedSnapshot::new(process, snapshot)?;
        Some(Self { loaded, retained: OnceLock::new(), search: OnceLock::new() })
    }

    fn is(&self, process: &Process, snapshot: &HeapSnapshot) -> bool {
        std::ptr::eq(self.loaded.process, process) && std::ptr::eq(self.loaded.snapshot, snapshot)
    }

    /// The dominator tree.
    pub(super) fn retained(&self) -> &RetainedBytes {
        self.retained.get_or_init(|| {
            let roots: Vec<u32> = self.loaded.held().collect();
            RetainedBytes::new(&self.loaded.graph, &roots, &self.loaded.sizes)
        })
    }

    /// The shortest paths from roots.
    pub(super) fn search(&self) -> &Shortest {
        self.search.get_or_init(|| Shortest::new(&self.loaded.graph, self.loaded.held()))
    }
}
