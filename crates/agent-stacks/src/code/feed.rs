//! Changes of compiled code, reported by callbacks: new bodies and unloaded ones.
//!
//! Callbacks run on the program's threads and do as little as possible. Threads that look addresses
//! up take the changes from here. A function whose identifier may be reused gets its index at once;
//! every other function gets it when one of its addresses is looked up. A process has one feed,
//! which is part of the agent's composition of callbacks, and one reader for each map of code.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clr_profiler::callback_args::{DynamicIl, Inlining};
use clr_profiler::{
    AssemblyId, Callbacks, CodeRange, CodeStart, Events, FunctionId, IlRange, ModuleFlags, ModuleId, ProfilerInfo,
    ReJitId, Result,
};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::os::threads;
use clrscope_agent_base::unloads::Unloads;
use clrscope_recording::writer::monotonic_ns;

use super::origins::{Origin, Origins};
use crate::awaiters::Awaiters;
use crate::inlined::{Candidates, InlinedMethods, OwnCalls};
use crate::stacks::code_around;

/// A new body that may be unloaded before its address is looked up. It belongs to a dynamic method,
/// or to a module that may be unloaded.
#[derive(Clone)]
pub(super) struct NewBody {
    pub(super) ranges: Vec<CodeRange>,
    pub(super) function: u32,
    pub(super) id: FunctionId,
    pub(super) is_framework: bool,
    /// The module that the body is unloaded with; `None` for a dynamic method.
    pub(super) module: Option<ModuleId>,
    pub(super) origin: Origin,
    /// The map from code to IL, if the runtime may forget it later.
    pub(super) il: Option<Vec<IlRange>>,
    /// Methods that the compiler considered for inlining into the body.
    pub(super) candidates: Candidates,
    pub(super) born_ns: u64,
}

/// Changes of the code since a reader last took them.
#[derive(Default)]
pub(super) struct CodeChanges {
    pub(super) bodies: Vec<NewBody>,
    /// Unloaded dynamic methods, with the times of their unloads.
    pub(super) freed: Vec<(FunctionId, u64)>,
    /// Unloaded modules, with the times of their unloads.
    pub(super) unloaded: Vec<(ModuleId, u64)>,
}

#[derive(Default)]
struct FeedState {
    /// Changes for each reader.
    news: Vec<CodeChanges>,
    /// Origins of bodies, by their start addresses.
    origins: Origins,
    /// Functions that were compiled in the background before.
    warm: HashSet<FunctionId>,
    /// Modules that may be unloaded.
    collectible: HashSet<ModuleId>,
}

/// The feed, as callbacks use it.
pub struct CodeFeed {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    inlined: Arc<InlinedMethods>,
    awaiters: Arc<Awaiters>,
    unloads: Arc<Unloads>,
    told: Mutex<FeedState>,
    /// Monotonic nanoseconds of the last callback about the unload of a module.
    last_unload_ns: AtomicU64,
    /// Number of callbacks about loaded modules.
    loads: AtomicU64,
}

/// The feed of the process; empty until a map of code is requested.
#[derive(Default)]
pub struct SharedCodeFeed(OnceLock<Arc<CodeFeed>>);

impl SharedCodeFeed {
    /// The feed, if a map of code was requested.
    pub fn in_use(&self) -> Option<Arc<CodeFeed>> {
        self.0.get().map(Arc::clone)
    }

    /// The feed, created at the first request. Every user of the feed must ask the runtime for
    /// [`CodeFeed::EVENTS`]. `has_changed_code`: instruments may change methods as soon as their
    /// module is loaded.
    pub fn open(
        &self,
        info: &ProfilerInfo,
        functions: &Arc<Functions>,
        has_changed_code: Arc<AtomicBool>,
    ) -> Arc<CodeFeed> {
        let new = || Arc::new(CodeFeed::new(info, functions, has_changed_code));
        Arc::clone(self.0.get_or_init(new))
    }
}

impl CodeFeed {
    /// The events that report changes of code. Every owner of a map of code must ask the runtime
    /// for them.
    pub const EVENTS: Events =
        Events::JIT_COMPILATION.union(Events::DYNAMIC_FUNCTION_UNLOADS).union(Events::MODULE_LOADS);

    fn new(info: &ProfilerInfo, functions: &Arc<Functions>, has_changed_code: Arc<AtomicBool>) -> Self {
        let unloads = Arc::<Unloads>::default();
        Self {
            info: info.clone(),
            functions: Arc::clone(functions),
            inlined: Arc::new(InlinedMethods::new(info, functions, has_changed_code)),
            awaiters: Arc::new(Awaiters::new(info, functions, &unloads)),
            unloads,
            told: Mutex::default(),
            last_unload_ns: AtomicU64::new(0),
            loads: AtomicU64::new(0),
        }
    }

    fn told(&self) -> MutexGuard<'_, FeedState> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new reader and returns its number.
    pub(super) fn reader(&self) -> usize {
        let mut told = self.told();
        told.news.push(CodeChanges::default());
        told.news.len() - 1
    }

    /// Returns all changes since this reader's last call, and removes them from the feed.
    pub(super) fn take_news(&self, reader: usize) -> CodeChanges {
        std::mem::take(&mut self.told().news[reader])
    }

    /// Reports changes to every reader.
    fn tell(&self, news: impl Fn(&mut CodeChanges)) {
        self.told().news.iter_mut().for_each(news);
    }

    /// Origin of the body that begins at `start`; `None` if it was not reported.
    pub(super) fn origin(&self, start: usize) -> Option<Origin> {
        self.told().origins.get(start)
    }

    /// The table of inlined methods.
    pub fn inlined(&self) -> &Arc<InlinedMethods> {
        &self.inlined
    }

    /// The table of async methods and their awaiters.
    pub fn awaiters(&self) -> &Arc<Awaiters> {
        &self.awaiters
    }

    /// The counts of unloads of modules.
    pub(super) fn unloads(&self) -> &Arc<Unloads> {
        &self.unloads
    }

    /// Time in monotonic nanoseconds at which a module's unload last began or ended; 0 if none did.
    pub(super) fn last_unload_ns(&self) -> u64 {
        self.last_unload_ns.load(Ordering::Acquire)
    }

    /// Number of modules loaded since the feed was created. If it is unchanged, there are no new
    /// modules.
    pub(super) fn loads(&self) -> u64 {
        self.loads.load(Ordering::Acquire)
    }

    fn compiled(&self, function: FunctionId, rejit: ReJitId, candidates: &Candidates) {
        // No lock is held while the runtime is asked.
        let is_async = self.awaiters.compiled(function);
        let Ok(starts) = self.info.code_starts(function, rejit) else { return };
        if is_async {
            starts.iter().for_each(|start| self.note_async_code(function, *start));
        }
        let in_background = is_tiering_thread();
        let mut told = self.told();
        let first = in_background && told.warm.insert(function);
        let origin = if in_background { Origin::Background { first } } else { Origin::Foreground };
        let starts = starts.into_iter().map(CodeStart::address);
        let new: Vec<usize> = starts.filter(|start| told.origins.add(*start, origin)).collect();
        let may_go = !told.collectible.is_empty();
        drop(told);
        self.inlined.told().keep(&new, candidates);
        if may_go && let Some(module) = self.collectible_module(function) {
            new.into_iter().for_each(|start| self.tell_body((function, rejit), (module, start), origin, candidates));
        }
    }

    fn note_async_code(&self, function: FunctionId, start: CodeStart) {
        self.awaiters.has_code(function, start.address());
        for piece in self.info.code_info_at(start).unwrap_or_default() {
            self.awaiters.note_code(function, start.address(), piece.start..piece.start + piece.bytes);
        }
    }

    /// The module of a function, if the module may be unloaded.
    fn collectible_module(&self, function: FunctionId) -> Option<ModuleId> {
        let module = self.info.function_info(function).ok()?.module;
        self.told().collectible.contains(&module).then_some(module)
    }

    /// Reports the body that begins at `start` while it exists.
    fn tell_body(
        &self,
        (id, rejit): (FunctionId, ReJitId),
        (module, start): (ModuleId, usize),
        origin: Origin,
        candidates: &Candidates,
    ) {
        let Some((code, ranges)) = code_around(&self.info, id, rejit, start) else { return };
        let body = NewBody {
            ranges,
            function: self.functions.noted(id).index,
            id,
            is_framework: self.functions.is_framework(id),
            module: Some(module),
            origin,
            il: Some(self.info.il_map_at(code).unwrap_or_default()),
            candidates: candidates.clone(),
            born_ns: monotonic_ns(),
        };
        self.tell(|news| news.bodies.push(body.clone()));
    }
}

/// Whether the calling thread is the runtime's thread that compiles hot methods.
fn is_tiering_thread() -> bool {
    threads::own_name_starts_with(b".NET Tiered")
}

impl Callbacks for CodeFeed {
    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        self.inlined.told().begins(function, OwnCalls::Readable);
    }

    fn dynamic_method_jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool, il: DynamicIl<'_>) {
        self.inlined.told().begins(function, OwnCalls::of_dynamic(il.bytes()));
    }

    fn rejit_compilation_started(&self, function: FunctionId, _rejit: ReJitId, _is_safe_to_block: bool) {
        self.inlined.told().begins(function, OwnCalls::Readable);
    }

    fn jit_inlining(&self, caller: FunctionId, callee: FunctionId) -> Inlining {
        self.inlined.told().candidate(caller, callee);
        Inlining::Allow
    }

    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, _is_safe_to_block: bool) {
        let candidates = self.inlined.told().ends(function);
        if status.is_ok() {
            self.compiled(function, ReJitId::NULL, &candidates);
        }
    }

    fn rejit_compilation_finished(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        status: Result<()>,
        _is_safe_to_block: bool,
    ) {
        let candidates = self.inlined.told().ends(function);
        if status.is_ok() {
            self.compiled(function, rejit, &candidates);
        }
    }

    fn dynamic_method_jit_compilation_finished(
        &self,
        function: FunctionId,
        status: Result<()>,
        _is_safe_to_block: bool,
    ) {
        let candidates = self.inlined.told().ends(function);
        let Some(ranges) = status.and_then(|()| self.info.code_info(function)).ok() else { return };
        if let Some(first) = ranges.first() {
            self.inlined.told().keep_dynamic(function, first.start, &candidates);
        }
        let body = NewBody {
            ranges,
            function: self.functions.noted(function).index,
            id: function,
            is_framework: false,
            module: None,
            origin: Origin::Dynamic,
            il: None,
            candidates,
            born_ns: monotonic_ns(),
        };
        self.tell(|news| news.bodies.push(body.clone()));
    }

    fn dynamic_method_unloaded(&self, function: FunctionId) {
        let now = monotonic_ns();
        self.inlined.dynamic_unloaded(function);
        self.tell(|news| news.freed.push((function, now)));
    }

    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.loads.fetch_add(1, Ordering::AcqRel);
        let flags = self.info.module_info(module).map(|about| about.flags);
        if flags.is_ok_and(ModuleFlags::is_collectible) {
            self.told().collectible.insert(module);
        }
    }

    fn module_unload_started(&self, _module: ModuleId) {
        self.last_unload_ns.store(monotonic_ns(), Ordering::Release);
        self.unloads.begins();
    }

    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        let now = monotonic_ns();
        self.last_unload_ns.store(now, Ordering::Release);
        // Before the maps get the change: what they look up from then on stays valid.
        self.awaiters.forget();
        self.tell(|news| news.unloaded.push((module, now)));
        let mut told = self.told();
        told.collectible.remove(&module);
        // It is not known to which module these belong, and their identifiers and addresses may be
        // reused.
        told.origins.clear();
        told.warm.clear();
        drop(told);
        self.inlined.module_unloaded();
        // A reader that has taken earlier changes takes this one first.
        self.unloads.ends();
    }
}
