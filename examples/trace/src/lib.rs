//! A trace of all calls: one line per call, indented by depth, one file per thread.
//!
//! The folder's name comes from `TRACE_PROFILER_OUTPUT`. Hooks must be short, so they only note the call; the text is written
//! when a thread ends and when the program does. Of each thread the first four million calls are kept.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clr_profiler::shadow_stack::{Frame, ShadowStack};
use clr_profiler::{
    CallHooks, CallerSp, ClientId, Error, Events, FunctionId, Hooks, NamedFunctions, ObjectId, PerThread, Profiler,
    ProfilerInfo, Result, Setup,
};

clr_profiler::export_profiler!(Trace, "{E8B0E2D3-5E0C-4C57-8B7D-1D5D4F4C9B32}");

/// Calls kept per thread, 16 bytes each.
const LIMIT: usize = 4 << 20;

/// The profiler the runtime makes when it loads this library.
#[derive(Default)]
struct Trace(OnceLock<State>);

struct State {
    info: ProfilerInfo,
    functions: Arc<NamedFunctions>,
    threads: Arc<Threads>,
}

struct Threads(PerThread<Mutex<Thread>>);

struct Thread {
    number: usize,
    stack: ShadowStack,
    /// What was called, or the owner of a block that ran because of an exception, and how deep it stands.
    lines: Vec<(usize, u32, Line)>,
    left_out: u64,
}

#[derive(Clone, Copy)]
enum Line {
    Call,
    Filter,
    Finally,
    Catch,
}

impl Thread {
    fn note(&mut self, top: Option<Frame>, line: Line) {
        let Some(frame) = top else { return };
        if self.lines.len() < LIMIT {
            self.lines.push((frame.word, self.stack.depth() as u32 - 1, line));
        } else {
            self.left_out += 1;
        }
    }

    /// Writes the thread's file, at its end or the program's.
    fn write(&self, functions: &NamedFunctions) {
        let folder = PathBuf::from(std::env::var_os("TRACE_PROFILER_OUTPUT").unwrap_or_else(|| "trace".into()));
        let mut text = String::new();
        for (function, depth, line) in &self.lines {
            let name = ClientId::new(*function).and_then(|id| functions.get(id)).map_or("?", |name| &name.name);
            // Deep recursion is told by the number: its spaces would fill the disk.
            let indent = (*depth as usize).min(60) * 2;
            let block = ["", "filter of ", "finally of ", "catch of "][*line as usize];
            let _ = writeln!(text, "{depth}\t{:indent$}{block}{name}", "");
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "{} later calls were left out", self.left_out);
        }
        // There is nobody to tell about a failure: the program's output is not ours.
        drop(std::fs::create_dir_all(&folder));
        drop(std::fs::write(folder.join(format!("thread-{}.txt", self.number)), text));
    }
}

impl Threads {
    fn new(functions: Arc<NamedFunctions>) -> std::io::Result<Self> {
        let count = AtomicUsize::new(1);
        let make = move || {
            let number = count.fetch_add(1, Ordering::Relaxed);
            Mutex::new(Thread { number, stack: ShadowStack::new(), lines: Vec::with_capacity(1024), left_out: 0 })
        };
        let retire = move |thread: &Mutex<Thread>| lock(thread).write(&functions);
        Ok(Self(PerThread::new(make, retire)?))
    }

    fn with(&self, act: impl FnOnce(&mut Thread)) {
        self.0.with(|thread| act(&mut lock(thread)));
    }
}

fn lock(thread: &Mutex<Thread>) -> std::sync::MutexGuard<'_, Thread> {
    thread.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallHooks for Threads {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        self.with(|thread| {
            thread.stack.enter(sp.0, id.get());
            thread.note(thread.stack.top(), Line::Call);
        });
    }

    fn leave(&self, _id: ClientId, sp: CallerSp) {
        self.with(|thread| {
            thread.stack.leave(sp.0);
        });
    }

    fn tailcall(&self, _id: ClientId, sp: CallerSp) {
        self.with(|thread| {
            thread.stack.tailcall(sp.0);
        });
    }
}

impl State {
    /// The activation that the callback's block belongs to; 0, to which nothing belongs, where the runtime does not say.
    fn owner(&self) -> usize {
        self.info.exception_clause().map_or(0, |clause| clause.frame_pointer)
    }
}

impl Profiler for Trace {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        // From .NET 9 on the runtime throws by managed code of its own, which is not the program's flow.
        let functions = Arc::new(NamedFunctions::new(info, |function| !function.is_exception_handling()));
        let threads = Threads::new(functions.clone());
        let threads = Arc::new(threads.map_err(|error| Error::refused("initialize", error.to_string()))?);
        let hooks = Hooks::safe(threads.clone(), functions.clone());
        drop(self.0.set(State { info: info.clone(), functions, threads }));
        Ok(Setup::new(Events::EXCEPTIONS).with_hooks(hooks).without_inlining())
    }

    fn shutdown(&self) {
        let Some(state) = self.0.get() else { return };
        state.threads.0.for_each(|thread| lock(thread).write(&state.functions));
    }

    fn exception_search_filter_enter(&self, _function: FunctionId) {
        let Some(state) = self.0.get() else { return };
        let owner = state.owner();
        state.threads.with(|thread| {
            let frame = thread.stack.filter_enter(owner);
            thread.note(frame, Line::Filter);
        });
    }

    fn exception_search_filter_leave(&self) {
        let Some(state) = self.0.get() else { return };
        state.threads.with(|thread| thread.stack.filter_leave());
    }

    fn exception_unwind_finally_enter(&self, _function: FunctionId) {
        let Some(state) = self.0.get() else { return };
        let owner = state.owner();
        state.threads.with(|thread| {
            thread.stack.finally_enter(owner);
            thread.note(thread.stack.top(), Line::Finally);
        });
    }

    fn exception_catcher_enter(&self, _function: FunctionId, _exception: ObjectId<'_>) {
        let Some(state) = self.0.get() else { return };
        let owner = state.owner();
        state.threads.with(|thread| {
            thread.stack.catcher_enter(owner);
            thread.note(thread.stack.top(), Line::Catch);
        });
    }
}
