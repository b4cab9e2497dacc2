//! The heap of a program: objects and bytes by class, and what keeps the largest object of the
//! largest class alive, as a path of fields from a root.
//!
//! Attached to a running program, the profiler takes one snapshot and detaches; the client data is
//! the name of the output file. Loaded at the start, it waits until the file named by
//! `HEAP_PROFILER_TRIGGER` exists, and takes a snapshot into the file named by
//! `HEAP_PROFILER_OUTPUT`.

mod graph;
mod report;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clr_profiler::callback_args::{GcReason, Generations, Roots, WeakTableElements};
use clr_profiler::{
    Callbacks, ClassId, Error, Events, ModuleId, NameCache, ObjectId, OwnThread, Profiler, ProfilerInfo, Result, Setup,
};

use graph::{Graph, Root};

clr_profiler::export_profiler!(Heap, "{E1C64B7A-0D52-4C39-A8F6-7B94D3E05A21}");

/// The profiler the runtime makes when it loads this library.
struct Heap(Arc<State>);

/// State shared with the thread that takes the snapshot.
struct State {
    info: ProfilerInfo,
    names: NameCache,
    output: PathBuf,
    /// Objects and references that a garbage collection has reported so far, while a snapshot is
    /// taken.
    graph: Mutex<Option<Graph>>,
}

impl State {
    fn new(info: &ProfilerInfo, output: PathBuf) -> Arc<Self> {
        Arc::new(Self { info: info.clone(), names: NameCache::new(), output, graph: Mutex::default() })
    }

    fn graph(&self) -> MutexGuard<'_, Option<Graph>> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forces a garbage collection, which reports all live objects. Only on a thread of the
    /// profiler.
    fn shoot(&self) {
        *self.graph() = Some(Graph::default());
        let collected = self.info.force_gc();
        let graph = self.graph().take().unwrap_or_default();
        let text = collected.map_or_else(|error| format!("no shot: {error}\n"), |()| report::report_text(self, &graph));
        // The file appears only when it is complete. A failure is ignored, because a profiler must
        // not write to the program's own output.
        let part = self.output.with_extension("part");
        drop(std::fs::write(&part, text).and_then(|()| std::fs::rename(part, &self.output)));
    }
}

/// Requested events: garbage collections and module loads. At attach they can be requested in
/// `initialize_for_attach` only.
const EVENTS: Events = Events::GC.union(Events::MODULE_LOADS);

impl Profiler for Heap {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let state =
            State::new(info, std::env::var_os("HEAP_PROFILER_OUTPUT").unwrap_or_else(|| "heap.txt".into()).into());
        let trigger = PathBuf::from(std::env::var_os("HEAP_PROFILER_TRIGGER").unwrap_or_default());
        let own = Arc::clone(&state);
        OwnThread::start(info, "heap", move |thread| {
            while thread.sleep(Duration::from_millis(10)) {
                if trigger.exists() {
                    return own.shoot();
                }
            }
        })?;
        Ok((Self(state), Setup::new(EVENTS)))
    }

    /// The client data is the name of the file.
    fn initialize_for_attach(info: &ProfilerInfo, client_data: &[u8]) -> Result<(Self, Setup)> {
        let output = std::str::from_utf8(client_data).map_err(|error| Error::refused("attach", error.to_string()))?;
        Ok((Self(State::new(info, output.into())), Setup::new(EVENTS)))
    }
}

impl Callbacks for Heap {
    // From here on the runtime answers everything.
    fn profiler_attach_complete(&self) {
        let own = Arc::clone(&self.0);
        drop(OwnThread::start(&self.0.info, "heap", move |_thread| {
            own.shoot();
            // The last call of this thread: the runtime unloads the profiler after all callbacks
            // have returned.
            drop(own.info.request_detach(0));
        }));
    }

    fn garbage_collection_started(&self, _generations: Generations<'_>, _reason: GcReason) {
        if let Some(graph) = &mut *self.0.graph() {
            // One of the program's own may have come first.
            *graph = Graph::default();
        }
    }

    fn object_references(&self, object: ObjectId<'_>, class: ClassId, _references: &[ObjectId<'_>]) -> Result<()> {
        let state = &*self.0;
        let Some(graph) = &mut *state.graph() else { return Ok(()) };
        let bytes = state.info.object_size(object).unwrap_or(0);
        graph.add(object.address(), class, bytes);
        state.info.references_of(object, |reference| {
            graph.refer(reference.offset, reference.object.address());
            ControlFlow::Continue(())
        })
    }

    fn root_references2(&self, roots: Roots<'_>) {
        if let Some(graph) = &mut *self.0.graph() {
            for root in roots.iter() {
                graph.root(Root { object: root.object.address(), kind: root.kind, function: root.function() });
            }
        }
    }

    fn conditional_weak_table_element_references(&self, elements: WeakTableElements<'_>) {
        if let Some(graph) = &mut *self.0.graph() {
            elements.iter().for_each(|(key, value, _handle)| graph.weak(key.address(), value.address()));
        }
    }

    fn module_unload_started(&self, module: ModuleId) {
        self.0.names.module_unloaded(module);
    }
}
