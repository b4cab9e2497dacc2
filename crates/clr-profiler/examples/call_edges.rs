//! A profiler that counts calls by caller and callee, correctly also with exceptions and tail
//! calls.
//!
//! It writes lines `calls NAME N`, `edge CALLER -> CALLEE N`, `depth NAME N` (deepest recursion)
//! and `signature [ASSEMBLY]SIGNATURE 1` to the file named by `CALL_EDGES_OUTPUT` when the program
//! ends. The framework's tests run it on programs with known results.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::shadow_stack::{Frame, ShadowStack};
use clr_profiler::{
    CallHooks, Callbacks, CallerSp, ClientId, ClientTable, Error, Events, FunctionId, FunctionMapper, Hooks, Mapped,
    ModuleId, NameCache, ObjectId, PerThread, Profiler, ProfilerInfo, Result, Setup,
};

clr_profiler::export_profiler!(CallEdges, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C03}");

struct CallEdges {
    info: ProfilerInfo,
    calls: Arc<Calls>,
    mapper: Arc<Mapper>,
}

/// Names by `ClientId`, and the counts of each thread.
struct Calls {
    names: ClientTable<String>,
    /// Assembly and signature of each compiled function.
    signatures: Mutex<BTreeSet<String>>,
    threads: PerThread<Mutex<Thread>>,
    /// Counts of threads that have ended.
    ended: Arc<Mutex<CallCounts>>,
}

/// Number of calls by caller (0: none) and callee; deepest recursion by function.
#[derive(Default)]
struct CallCounts {
    edges: HashMap<(usize, usize), u64>,
    depths: HashMap<usize, usize>,
}

#[derive(Default)]
struct Thread {
    stack: ShadowStack,
    /// Number of each function's activations on the stack.
    live: HashMap<usize, usize>,
    seen: CallCounts,
}

impl Thread {
    /// Removes the calls that ended before an enter or leave with this stack pointer.
    fn end(&mut self, sp: usize) {
        forget(&mut self.live, self.stack.dead(sp));
    }

    /// Changes the stack for an exception. Exceptions are rare, so a comparison with a copy finds
    /// the removed calls.
    fn unwind<R>(&mut self, change: impl FnOnce(&mut ShadowStack) -> R) {
        let before = self.stack.snapshot();
        change(&mut self.stack);
        forget(&mut self.live, before.get(self.stack.depth()..).unwrap_or_default());
    }
}

fn forget(live: &mut HashMap<usize, usize>, ended: &[Frame]) {
    for frame in ended.iter().filter(|frame| frame.is_function()) {
        if let Some(activations) = live.get_mut(&frame.word) {
            *activations -= 1;
        }
    }
}

impl Profiler for CallEdges {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let ended = Arc::new(Mutex::<CallCounts>::default());
        let sum = Arc::clone(&ended);
        let threads = PerThread::new(Mutex::<Thread>::default, move |thread| {
            lock(&sum).add(&lock(thread).seen);
        });
        let calls = Arc::new(Calls {
            names: ClientTable::new(),
            signatures: Mutex::default(),
            threads: threads.map_err(|error| Error::refused("initialize", error.to_string()))?,
            ended,
        });
        let mapper = Arc::new(Mapper {
            info: info.clone(),
            names: NameCache::new(),
            calls: Arc::clone(&calls),
            known: Mutex::default(),
        });
        let hooks = Hooks::safe(calls.clone(), mapper.clone());
        let setup = Setup::new(Events::EXCEPTIONS | Events::MODULE_LOADS).with_hooks(hooks).without_inlining();
        Ok((Self { info: info.clone(), calls, mapper }, setup))
    }
}

impl Callbacks for CallEdges {
    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        self.mapper.names.module_unloaded(module);
    }

    fn exception_unwind_finally_enter(&self, _function: FunctionId) {
        self.block(|stack, frame_pointer| stack.finally_enter(frame_pointer));
    }

    fn exception_catcher_enter(&self, _function: FunctionId, _exception: ObjectId<'_>) {
        self.block(|stack, frame_pointer| stack.catcher_enter(frame_pointer));
    }

    fn exception_search_filter_enter(&self, _function: FunctionId) {
        self.block(|stack, frame_pointer| stack.filter_enter(frame_pointer));
    }

    fn exception_search_filter_leave(&self) {
        self.calls.thread(|thread| thread.unwind(ShadowStack::filter_leave));
    }

    fn shutdown(&self) {
        if let Some(path) = std::env::var_os("CALL_EDGES_OUTPUT") {
            let _ = std::fs::write(path, self.calls.report());
        }
    }
}

impl CallEdges {
    fn block<R>(&self, happens: impl FnOnce(&mut ShadowStack, usize) -> R) {
        if let Ok(clause) = self.info.exception_clause() {
            self.calls.thread(|thread| thread.unwind(|stack| happens(stack, clause.frame_pointer)));
        }
    }
}

impl CallHooks for Calls {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        self.thread(|thread| {
            thread.end(sp.address());
            thread.stack.enter(sp.address(), id.get());
            let frames = thread.stack.frames();
            let caller = frames.len().checked_sub(2).map_or(0, |below| frames[below].word);
            *thread.seen.edges.entry((caller, id.get())).or_default() += 1;
            let depth = thread.live.entry(id.get()).or_default();
            *depth += 1;
            let deepest = thread.seen.depths.entry(id.get()).or_default();
            *deepest = (*depth).max(*deepest);
        });
    }

    fn leave(&self, _id: ClientId, sp: CallerSp) {
        self.thread(|thread| {
            thread.end(sp.address());
            thread.stack.leave(sp.address())
        });
    }

    fn tailcall(&self, _id: ClientId, sp: CallerSp) {
        self.thread(|thread| {
            thread.end(sp.address());
            thread.stack.tailcall(sp.address())
        });
    }
}

impl Calls {
    fn thread<R>(&self, with: impl FnOnce(&mut Thread) -> R) -> R {
        self.threads.with(|thread| with(&mut lock(thread)))
    }

    fn report(&self) -> String {
        let mut all = CallCounts::default();
        all.add(&lock(&self.ended));
        self.threads.for_each(|thread| all.add(&lock(thread).seen));
        let name = |id: usize| ClientId::new(id).and_then(|id| self.names.get(id)).map_or("[root]", String::as_str);
        let (mut calls, mut edges, mut depths) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for ((caller, callee), count) in all.edges {
            *calls.entry(name(callee)).or_insert(0) += count;
            *edges.entry((name(caller), name(callee))).or_insert(0) += count;
        }
        for (id, depth) in all.depths {
            let deepest = depths.entry(name(id)).or_insert(0);
            *deepest = depth.max(*deepest);
        }
        let mut text = String::new();
        for (name, n) in calls {
            let _ = writeln!(text, "calls {name} {n}");
        }
        for ((caller, callee), n) in edges {
            let _ = writeln!(text, "edge {caller} -> {callee} {n}");
        }
        for (name, n) in depths {
            let _ = writeln!(text, "depth {name} {n}");
        }
        for signature in lock(&self.signatures).iter() {
            let _ = writeln!(text, "signature {signature} 1");
        }
        let _ = writeln!(text, "panics {}", clr_profiler::panics_caught());
        text
    }
}

impl CallCounts {
    fn add(&mut self, other: &Self) {
        for (edge, count) in &other.edges {
            *self.edges.entry(*edge).or_default() += count;
        }
        for (id, depth) in &other.depths {
            let deepest = self.depths.entry(*id).or_default();
            *deepest = (*depth).max(*deepest);
        }
    }
}

struct Mapper {
    info: ProfilerInfo,
    names: NameCache,
    calls: Arc<Calls>,
    known: Mutex<HashMap<String, ClientId>>,
}

impl FunctionMapper for Mapper {
    fn map(&self, function: FunctionId) -> Mapped {
        let found = self.names.function(&self.info, function);
        lock(&self.calls.signatures).insert(format!("[{}]{}", found.module, found.signature));
        let name = found.name.clone();
        // The runtime's own exception handling, managed since .NET 9, has enter events without
        // leave events.
        if name.starts_with("System.Runtime.EH::") {
            return Mapped::Skip;
        }
        let mut known = lock(&self.known);
        if let Some(id) = known.get(&name) {
            return Mapped::Hook(*id);
        }
        let Some(id) = self.calls.names.push(name.clone()) else { return Mapped::Skip };
        known.insert(name, id);
        Mapped::Hook(id)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
