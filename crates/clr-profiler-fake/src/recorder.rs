//! A profiler that records a program's events, for tests with the fake runtime.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clr_profiler::{
    AssemblyId, CallHooks, Callbacks, CallerSp, ClauseKind, ClientId, Error, Events, FunctionId, FunctionMapper,
    FunctionName, Hooks, Mapped, ModuleId, NameCache, ObjectId, PerThread, ProfilerInfo, Result, Setup, ThreadId,
};

type Choice = Box<dyn Fn(&FunctionName) -> bool + Send + Sync>;

/// A profiler that records a program: loads, threads, exceptions, and the compilations and calls of
/// selected functions, with their stack pointers.
/// [`FakeRuntime::recorded`](super::FakeRuntime::recorded) reads the recording.
///
/// A library that contains only a recorder:
///
/// ```
/// use clr_profiler_fake::Recorder;
///
/// clr_profiler::export_profiler!(
///     |info| Recorder::start(info, "recording.txt", |function| &*function.module == "MyApp"),
///     "{1B7E3C55-9A7B-4E0B-8C53-3A0C8F4E2D10}"
/// );
/// # fn main() {}
/// ```
///
/// The recorder is a tool for tests, not for production: its hooks write to a file. If a program
/// crashes, the end of its recording is lost.
pub struct Recorder {
    state: Arc<State>,
}

impl Recorder {
    /// Records into the file at `path`. Compilations and calls are recorded for functions that
    /// `choice` accepts.
    ///
    /// # Errors
    /// A sentence with the file's name if the file can't be created.
    pub fn start(
        info: &ProfilerInfo,
        path: impl AsRef<Path>,
        choice: impl Fn(&FunctionName) -> bool + Send + Sync + 'static,
    ) -> Result<(Self, Setup)> {
        let path = path.as_ref();
        let refuse = |what: std::io::Error| Error::refused("Recorder", format!("{}: {what}", path.display()));
        let state = Arc::new(State {
            info: info.clone(),
            names: NameCache::new(),
            choice: Box::new(choice),
            file: Mutex::new(BufWriter::new(File::create(path).map_err(refuse)?)),
            words: Mutex::default(),
            threads: PerThread::new(OnceLock::new, |_| ()).map_err(refuse)?,
        });
        let calls = Arc::new(Calls(Arc::clone(&state)));
        let events = Events::ASSEMBLY_LOADS | Events::MODULE_LOADS | Events::JIT_COMPILATION | Events::THREADS;
        let hooks = Hooks::safe(calls.clone(), calls);
        let setup = Setup::new(events | Events::EXCEPTIONS).with_hooks(hooks).without_inlining();
        Ok((Self { state }, setup))
    }

    fn record(&self, event: &str, asks: bool, arguments: &[&dyn Word]) {
        let state = &*self.state;
        if BLOCKS.contains(&event) {
            state.clause();
        }
        let words: Vec<String> = arguments.iter().filter_map(|argument| argument.word(state, asks)).collect();
        state.line(event, &words);
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

/// Names of modules, classes and functions in the recording.
#[derive(Default)]
struct Words {
    functions: HashMap<FunctionId, usize>,
    /// Modules (`m`) and assemblies (`a`).
    modules: HashMap<(char, usize), usize>,
    threads: HashMap<ThreadId, usize>,
    /// Count of assigned numbers; each number is assigned once.
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

    /// Records the activation of the block that is about to begin, if the runtime reports it.
    fn clause(&self) {
        let Ok(clause) = self.info.exception_clause() else { return };
        let kind = match clause.kind {
            ClauseKind::Filter => "filter",
            ClauseKind::Catch => "catch",
            ClauseKind::Finally => "finally",
            _ => return,
        };
        self.line("Clause", &[kind.into(), format!("{:x}", clause.frame_pointer)]);
    }

    fn explain(&self, word: &str, meaning: &str) {
        let mut line = String::new();
        let _ = writeln!(line, "{word} = {}", meaning.replace(['\n', '\t'], " "));
        drop(lock(&self.file).write_all(line.as_bytes()));
    }

    /// The number of this thread: the number of its managed thread, if there is one by now.
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

    /// The word for a managed thread. For the calling thread it has that thread's number.
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
        // Another thread may have added it meanwhile.
        if let Some(number) = words.functions.get(&function) {
            return format!("f{number}");
        }
        let number = words.next();
        words.functions.insert(function, number);
        drop(words);
        self.explain(&format!("f{number}"), &format!("{}!{}", name.module, name.raw_name));
        format!("f{number}")
    }

    /// The word for a module (`m`) or assembly (`a`). Records its name if it has one by now.
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
        self.loaded('m', id.as_raw(), self.names.assembly(&self.info, id).ok().map(|name| name.to_string()))
    }

    fn assembly(&self, id: AssemblyId) -> String {
        self.loaded('a', id.as_raw(), self.info.assembly_info(id).ok().map(|found| found.name))
    }

    /// The word for a module or assembly that is being or was unloaded: the runtime must not be
    /// queried about it.
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
        self.0.line(event, &[format!("f{}", id.get()), format!("{:x}", sp.address())]);
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

/// An argument as a word of the recording.
trait Word {
    /// Returns the word. `asks` says whether the runtime may be queried for names. `None` for a
    /// value that recordings don't contain.
    fn word(&self, state: &State, asks: bool) -> Option<String>;
}

/// Implements `Word` for types by one expression each.
macro_rules! words {
    ($($type:ty: |$it:ident, $state:pat_param, $asks:pat_param| $word:expr;)*) => {
        $(impl Word for $type {
            fn word(&self, $state: &State, $asks: bool) -> Option<String> {
                let $it = self;
                $word
            }
        })*
    };
}

words! {
    AssemblyId: |it, state, asks| Some(if asks { state.assembly(*it) } else { state.going('a', it.as_raw()) });
    ModuleId: |it, state, asks| Some(if asks { state.module(*it) } else { state.going('m', it.as_raw()) });
    FunctionId: |it, state, _| Some(state.function(*it));
    ThreadId: |it, state, _| Some(state.thread(*it));
    ObjectId<'_>: |it, state, _| Some(state.object(*it));
    Result<()>: |it, _, _| Some(format!("{:x}", it.as_ref().map_or_else(|error| error.hresult().0, |()| 0)));
    &str: |it, _, _| Some(it.replace(['\t', '\n'], " "));
    u32: |it, _, _| Some(it.to_string());
    // Recordings don't contain whether a callback may block.
    bool: |_it, _, _| None;
}

/// Defines `record!`, which implements a method of the trait: the method records the callback under
/// the runtime's name.
macro_rules! define_record {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        macro_rules! record {
            $(($name) => {
                fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
                    let mode = stringify!($mode);
                    self.record(stringify!($runtime_name), mode == "asks", &[$(&$argument as &dyn Word),*]);
                    $($default)?
                }
            };)*
        }
    };
}

clr_profiler::for_each_callback!(define_record);

/// Callbacks at the beginning of a block. Before them the runtime can tell the block's activation.
const BLOCKS: [&str; 3] = ["ExceptionSearchFilterEnter", "ExceptionUnwindFinallyEnter", "ExceptionCatcherEnter"];

impl Callbacks for Recorder {
    fn shutdown(&self) {
        self.record("Shutdown", true, &[]);
        drop(lock(&self.state.file).flush());
    }

    // The identifiers of the module's contents may be reused.
    fn module_unload_finished(&self, id: ModuleId, status: Result<()>) {
        self.record("ModuleUnloadFinished", false, &[&id, &status]);
        self.state.names.module_unloaded(id);
        let mut words = lock(&self.state.words);
        words.functions.clear();
        words.modules.remove(&('m', id.as_raw()));
    }

    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        self.chosen("JITCompilationStarted", function, &[&function]);
    }

    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, _is_safe_to_block: bool) {
        self.chosen("JITCompilationFinished", function, &[&function, &status]);
    }

    record!(assembly_load_started);
    record!(assembly_load_finished);
    record!(assembly_unload_started);
    record!(assembly_unload_finished);
    record!(module_load_started);
    record!(module_load_finished);
    record!(module_unload_started);
    record!(module_attached_to_assembly);
    record!(thread_created);
    record!(thread_destroyed);
    record!(thread_assigned_to_os_thread);
    record!(thread_name_changed);
    record!(exception_thrown);
    record!(exception_search_function_enter);
    record!(exception_search_function_leave);
    record!(exception_search_filter_enter);
    record!(exception_search_filter_leave);
    record!(exception_search_catcher_found);
    record!(exception_unwind_function_enter);
    record!(exception_unwind_function_leave);
    record!(exception_unwind_finally_enter);
    record!(exception_unwind_finally_leave);
    record!(exception_catcher_enter);
    record!(exception_catcher_leave);
}

impl Recorder {
    fn chosen(&self, event: &str, function: FunctionId, arguments: &[&dyn Word]) {
        let state = &*self.state;
        if (state.choice)(&state.names.function(&state.info, function)) {
            self.record(event, true, arguments);
        }
    }
}
