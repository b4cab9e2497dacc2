//! A profiler that writes down what a program does, for fake runtimes to play.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::{
    AssemblyId, CallHooks, CallerSp, ClauseKind, ClientId, Error, Events, FunctionId, FunctionMapper, FunctionName,
    Hooks, Mapped, ModuleId, NameCache, ObjectId, PerThread, Profiler, ProfilerInfo, Result, Setup, ThreadId,
};

type Choice = Box<dyn Fn(&FunctionName) -> bool + Send + Sync>;

/// A profiler that records a program: loads, threads, exceptions, and compilations and calls of chosen functions, with their
/// stack pointers. [`FakeRuntime::recorded`](super::FakeRuntime::recorded) reads what it writes.
///
/// A library that is nothing but a recorder:
///
/// ```
/// use clr_profiler::fake::Recorder;
///
/// clr_profiler::export_profiler!(
///     || Recorder::new("recording.txt", |function| &*function.module == "MyApp"),
///     "{1B7E3C55-9A7B-4E0B-8C53-3A0C8F4E2D10}"
/// );
/// # fn main() {}
/// ```
///
/// It is a tool for those who write tests, not for production: its hooks write to a file. The end of a program that crashes is
/// lost.
pub struct Recorder {
    path: PathBuf,
    choice: Mutex<Option<Choice>>,
    state: OnceLock<Arc<State>>,
}

impl Recorder {
    /// Records into the file at `path`; compilations and calls of those functions that `choice` says yes to.
    pub fn new(path: impl Into<PathBuf>, choice: impl Fn(&FunctionName) -> bool + Send + Sync + 'static) -> Self {
        Self { path: path.into(), choice: Mutex::new(Some(Box::new(choice))), state: OnceLock::new() }
    }

    fn record(&self, event: &str, values: impl FnOnce(&State) -> Vec<String>) {
        if let Some(state) = self.state.get() {
            let values = values(state);
            state.line(event, &values);
        }
    }

    /// Begins a block: with the activation that the runtime says it belongs to.
    fn block(&self, event: &str, values: impl FnOnce(&State) -> Vec<String>) {
        self.record(event, |state| {
            let kind = |kind| match kind {
                ClauseKind::Filter => Some("filter"),
                ClauseKind::Catch => Some("catch"),
                ClauseKind::Finally => Some("finally"),
                ClauseKind::None => None,
            };
            if let Ok(clause) = state.info.exception_clause()
                && let Some(kind) = kind(clause.kind)
            {
                state.line("Clause", &[kind.into(), format!("{:x}", clause.frame_pointer)]);
            }
            values(state)
        });
    }
}

struct State {
    info: ProfilerInfo,
    names: NameCache,
    choice: Choice,
    file: Mutex<BufWriter<File>>,
    words: Mutex<Words>,
    /// The number of each thread that was seen.
    threads: PerThread<OnceLock<usize>>,
}

/// What things are called in the recording.
#[derive(Default)]
struct Words {
    functions: HashMap<FunctionId, usize>,
    /// Modules (`m`) and assemblies (`a`).
    modules: HashMap<(char, usize), usize>,
    threads: HashMap<ThreadId, usize>,
    /// Numbers given so far; a number is given once.
    given: usize,
    threads_given: usize,
}

impl State {
    fn line(&self, event: &str, values: &[String]) {
        let mut line = format!("{}\t{event}", self.thread_number());
        for value in values {
            line.push('\t');
            line.push_str(value);
        }
        line.push('\n');
        drop(lock(&self.file).write_all(line.as_bytes()));
    }

    fn explain(&self, word: &str, meaning: &str) {
        let mut line = String::new();
        let _ = writeln!(line, "{word} = {}", meaning.replace(['\n', '\t'], " "));
        drop(lock(&self.file).write_all(line.as_bytes()));
    }

    /// The number of this thread: that of its managed thread, if it is one by now.
    fn thread_number(&self) -> usize {
        self.threads.with(|number| {
            *number.get_or_init(|| match self.info.current_thread() {
                Ok(thread) => self.number_of(thread),
                Err(_) => lock(&self.words).next_thread(),
            })
        })
    }

    fn number_of(&self, thread: ThreadId) -> usize {
        let mut words = lock(&self.words);
        if let Some(number) = words.threads.get(&thread) {
            return *number;
        }
        let number = words.next_thread();
        words.threads.insert(thread, number);
        number
    }

    /// A managed thread; this one's number if it is this one.
    fn thread(&self, thread: ThreadId) -> String {
        if self.info.current_thread() == Ok(thread) {
            let own = self.thread_number();
            lock(&self.words).threads.insert(thread, own);
        }
        format!("t{}", self.number_of(thread))
    }

    fn function(&self, function: FunctionId) -> String {
        if let Some(number) = lock(&self.words).functions.get(&function) {
            return format!("f{number}");
        }
        let name = self.names.function(&self.info, function);
        let mut words = lock(&self.words);
        // Another thread may have been faster.
        if let Some(number) = words.functions.get(&function) {
            return format!("f{number}");
        }
        let number = words.next();
        words.functions.insert(function, number);
        drop(words);
        self.explain(&format!("f{number}"), &format!("{}!{}", name.module, name.raw_name));
        format!("f{number}")
    }

    /// A module (`m`) or assembly (`a`), with its name where it has one by now.
    fn loaded(&self, letter: char, id: usize, name: Option<String>) -> String {
        let number = {
            let mut words = lock(&self.words);
            let known = words.modules.get(&(letter, id)).copied();
            known.unwrap_or_else(|| {
                let number = words.next();
                words.modules.insert((letter, id), number);
                number
            })
        };
        let word = format!("{letter}{number}");
        if let Some(name) = name {
            self.explain(&word, &name);
        }
        word
    }

    fn module(&self, id: ModuleId) -> String {
        self.loaded('m', id.0, self.names.assembly(&self.info, id).ok().map(|name| name.to_string()))
    }

    fn assembly(&self, id: AssemblyId) -> String {
        self.loaded('a', id.0, self.info.assembly_info(id).ok().map(|found| found.name))
    }

    /// One that goes or is gone, about which nothing can be asked.
    fn going(&self, letter: char, id: usize) -> String {
        self.loaded(letter, id, None)
    }

    fn object(&self, object: ObjectId<'_>) -> String {
        let word = format!("o{}", lock(&self.words).next());
        let class = self.info.class_of_object(object).map(|class| {
            let module = self.info.class_info(class).and_then(|class| self.names.assembly(&self.info, class.module));
            format!("{}!{}", module.unwrap_or_else(|_| "".into()), self.names.class(&self.info, class))
        });
        self.explain(&word, &class.unwrap_or_default());
        word
    }
}

impl Words {
    fn next(&mut self) -> usize {
        self.given += 1;
        self.given
    }

    fn next_thread(&mut self) -> usize {
        self.threads_given += 1;
        self.threads_given
    }
}

struct Calls(Arc<State>);

impl Calls {
    fn note(&self, event: &str, id: ClientId, sp: CallerSp) {
        self.0.line(event, &[format!("f{}", id.get()), format!("{:x}", sp.0)]);
    }
}

impl CallHooks for Calls {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        self.note("EnterAt", id, sp);
    }
    fn leave(&self, id: ClientId, sp: CallerSp) {
        self.note("LeaveAt", id, sp);
    }
    fn tailcall(&self, id: ClientId, sp: CallerSp) {
        self.note("TailcallAt", id, sp);
    }
}

impl FunctionMapper for Calls {
    fn map(&self, function: FunctionId) -> Mapped {
        let state = &self.0;
        if !(state.choice)(&state.names.function(&state.info, function)) {
            return Mapped::Skip;
        }
        let word = state.function(function);
        let number = word.strip_prefix('f').and_then(|number| number.parse().ok());
        number.and_then(ClientId::new).map_or(Mapped::Skip, Mapped::Hook)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn code(status: Result<()>) -> String {
    format!("{:x}", status.map_or_else(|error| error.hresult().0, |()| 0))
}

/// Callbacks that are recorded under their own name.
macro_rules! recorded {
    ($($method:ident($($arg:ident: $type:ty),*) $way:ident $event:literal, |$state:ident| [$($value:expr),*];)*) => {
        $(fn $method(&self $(, $arg: $type)*) {
            self.$way($event, |$state| {
                let _ = &$state;
                vec![$($value),*]
            });
        })*
    };
}

impl Profiler for Recorder {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let refuse = |what: std::io::Error| Error::refused("Recorder", format!("{}: {what}", self.path.display()));
        let choice = lock(&self.choice).take();
        let state = Arc::new(State {
            info: info.clone(),
            names: NameCache::new(),
            choice: choice.unwrap_or_else(|| Box::new(|_| false)),
            file: Mutex::new(BufWriter::new(File::create(&self.path).map_err(refuse)?)),
            words: Mutex::default(),
            threads: PerThread::new(OnceLock::new, |_| ()).map_err(refuse)?,
        });
        let calls = Arc::new(Calls(Arc::clone(&state)));
        drop(self.state.set(state));
        let events = Events::ASSEMBLY_LOADS | Events::MODULE_LOADS | Events::JIT_COMPILATION | Events::THREADS;
        Ok(Setup::new(events | Events::EXCEPTIONS).with_hooks(Hooks::safe(calls.clone(), calls)).without_inlining())
    }

    fn shutdown(&self) {
        self.record("Shutdown", |_| Vec::new());
        if let Some(state) = self.state.get() {
            drop(lock(&state.file).flush());
        }
    }

    // Identifiers of what was in it are used again.
    fn module_unload_finished(&self, id: ModuleId, status: Result<()>) {
        self.record("ModuleUnloadFinished", |state| vec![state.going('m', id.0), code(status)]);
        if let Some(state) = self.state.get() {
            state.names.module_unloaded(id);
            let mut words = lock(&state.words);
            words.functions.clear();
            words.modules.remove(&('m', id.0));
        }
    }

    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        self.chosen("JITCompilationStarted", function, |state| vec![state.function(function)]);
    }

    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, _is_safe_to_block: bool) {
        self.chosen("JITCompilationFinished", function, |state| vec![state.function(function), code(status)]);
    }

    recorded! {
        assembly_load_started(id: AssemblyId) record "AssemblyLoadStarted", |s| [s.assembly(id)];
        assembly_load_finished(id: AssemblyId, status: Result<()>) record "AssemblyLoadFinished", |s| [s.assembly(id), code(status)];
        assembly_unload_started(id: AssemblyId) record "AssemblyUnloadStarted", |s| [s.going('a', id.0)];
        assembly_unload_finished(id: AssemblyId, status: Result<()>) record "AssemblyUnloadFinished", |s| [s.going('a', id.0), code(status)];
        module_load_started(id: ModuleId) record "ModuleLoadStarted", |s| [s.going('m', id.0)];
        module_load_finished(id: ModuleId, status: Result<()>) record "ModuleLoadFinished", |s| [s.module(id), code(status)];
        module_unload_started(id: ModuleId) record "ModuleUnloadStarted", |s| [s.going('m', id.0)];
        module_attached_to_assembly(id: ModuleId, of: AssemblyId) record "ModuleAttachedToAssembly", |s| [s.module(id), s.assembly(of)];
        thread_created(id: ThreadId) record "ThreadCreated", |s| [s.thread(id)];
        thread_destroyed(id: ThreadId) record "ThreadDestroyed", |s| [s.thread(id)];
        thread_assigned_to_os_thread(id: ThreadId, os_thread: u32) record "ThreadAssignedToOSThread", |s| [s.thread(id), os_thread.to_string()];
        thread_name_changed(id: ThreadId, name: &str) record "ThreadNameChanged", |s| [s.thread(id), name.replace(['\t', '\n'], " ")];
        exception_thrown(exception: ObjectId<'_>) record "ExceptionThrown", |s| [s.object(exception)];
        exception_search_function_enter(id: FunctionId) record "ExceptionSearchFunctionEnter", |s| [s.function(id)];
        exception_search_function_leave() record "ExceptionSearchFunctionLeave", |s| [];
        exception_search_filter_enter(id: FunctionId) block "ExceptionSearchFilterEnter", |s| [s.function(id)];
        exception_search_filter_leave() record "ExceptionSearchFilterLeave", |s| [];
        exception_search_catcher_found(id: FunctionId) record "ExceptionSearchCatcherFound", |s| [s.function(id)];
        exception_unwind_function_enter(id: FunctionId) record "ExceptionUnwindFunctionEnter", |s| [s.function(id)];
        exception_unwind_function_leave() record "ExceptionUnwindFunctionLeave", |s| [];
        exception_unwind_finally_enter(id: FunctionId) block "ExceptionUnwindFinallyEnter", |s| [s.function(id)];
        exception_unwind_finally_leave() record "ExceptionUnwindFinallyLeave", |s| [];
        exception_catcher_enter(id: FunctionId, exception: ObjectId<'_>) block "ExceptionCatcherEnter", |s| [s.function(id), s.object(exception)];
        exception_catcher_leave() record "ExceptionCatcherLeave", |s| [];
    }
}

impl Recorder {
    fn chosen(&self, event: &str, function: FunctionId, values: impl FnOnce(&State) -> Vec<String>) {
        let Some(state) = self.state.get() else { return };
        if (state.choice)(&state.names.function(&state.info, function)) {
            self.record(event, values);
        }
    }
}
