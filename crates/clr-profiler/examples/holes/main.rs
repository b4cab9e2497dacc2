//! Looks for soundness holes: queries by which safe code could crash the program if the framework
//! did not refuse them. The profiler makes each query and writes a line with the result to the file
//! named by `HOLES_OUTPUT`. Without a hole every result is an error with a sentence, and the
//! program continues.
//!
//! If the profiler is started with the program, it uses unloaded modules and objects of exceptions.
//! If it is attached (client data: the file), it makes queries after its own detach.
#![forbid(unsafe_code)]

mod nulls;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{
    AssemblyId, Callbacks, ClassId, CodeStart, Error, Events, ExceptionReader, FunctionId, HandleKind, ModuleId,
    NameCache, ObjectHandle, ObjectId, Profiler, ProfilerInfo, ReJitId, Result, Setup, Token,
};

clr_profiler::export_profiler!(Holes, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C11}");

struct Holes(Arc<State>);

struct State {
    info: ProfilerInfo,
    names: NameCache,
    reader: ExceptionReader,
    output: PathBuf,
    /// A method of a module that will be unloaded.
    kept: Mutex<Option<RetainedFunction>>,
    handle: Mutex<Option<ObjectHandle>>,
    thrown: AtomicU32,
    detached: AtomicBool,
    /// Whether null identifiers were tried.
    tried: AtomicBool,
}

struct RetainedFunction {
    module: ModuleId,
    assembly: AssemblyId,
    token: Token,
    class: Option<ClassId>,
    function: FunctionId,
    starts: Vec<CodeStart>,
    metadata: MetadataImport,
}

impl State {
    fn new(info: &ProfilerInfo, output: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            info: info.clone(),
            names: NameCache::new(),
            reader: ExceptionReader::new(),
            output,
            kept: Mutex::default(),
            handle: Mutex::default(),
            thrown: AtomicU32::new(0),
            detached: AtomicBool::new(false),
            tried: AtomicBool::new(false),
        })
    }

    fn line(&self, what: &str, said: impl std::fmt::Display) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.output);
        if let Ok(mut file) = file {
            let _ = writeln!(file, "{what}: {said}");
        }
    }

    /// Writes the refusal, or that there was none.
    fn refused<T>(&self, what: &str, answer: Result<T>) {
        match answer {
            Ok(_) => self.line(what, "ANSWERED"),
            Err(error) => self.line(what, told(&error)),
        }
    }

    /// Retains a method of a module that can be unloaded. Returns whether that was possible.
    fn keep(&self, function: FunctionId) -> Result<bool> {
        let (class, module, token) = self.info.function_place(function)?;
        let about = self.info.module_info(module)?;
        if !about.flags.is_collectible() {
            return Ok(false);
        }
        self.line("assembly alive", self.info.assembly_info(about.assembly)?.module == module);
        let metadata = self.info.module_metadata(module)?;
        let body = self.info.il_function_body(module, token)?;
        self.line("alive", metadata.method(token).is_ok_and(|method| !method.name.is_empty() && !body.is_empty()));
        let (assembly, starts) = (about.assembly, Vec::new());
        *lock(&self.kept) = Some(RetainedFunction { module, assembly, token, class, function, starts, metadata });
        Ok(true)
    }

    fn after_unloading(&self, kept: &RetainedFunction) {
        let (info, token) = (&self.info, kept.token);
        self.refused("module", info.module_info(kept.module));
        self.refused("assembly", info.assembly_info(kept.assembly));
        self.refused("metadata", kept.metadata.method(token));
        self.refused("name", kept.metadata.name(token));
        self.line("contains", kept.metadata.contains(token));
        self.refused("metadata again", info.module_metadata(kept.module));
        self.refused("IL", info.il_function_body(kept.module, token));
        self.refused("type", info.class_from_token(kept.module, Token::new(0x0200_0002)));
        self.refused("compile again", info.request_rejit(&[(kept.module, token)]));
        self.refused("function", info.function_info(kept.function));
        self.refused("code", info.code_info(kept.function));
        for start in &kept.starts {
            self.refused("code by start", info.code_info_at(*start));
            self.refused("IL map by start", info.il_map_at(*start));
        }
        if let Some(class) = kept.class {
            self.refused("class", info.class_info(class));
            self.refused("layout", info.class_layout(class));
        }
    }

    /// Makes requests on the profiler's own thread immediately before and after the detach.
    fn detach(&self) {
        let _ = self.info.initialize_current_thread();
        self.line("detach", self.info.request_detach(100).is_ok());
        while !self.detached.load(Ordering::Acquire) {
            let _ = self.info.modules();
            pause();
        }
        for _ in 0..20 {
            pause();
            self.refused("modules", self.info.modules());
            self.refused("threads", self.info.threads());
            self.refused("events", self.info.set_events(Events::EXCEPTIONS));
            self.refused("suspension", self.info.suspend().map(drop));
            self.refused("detach again", self.info.request_detach(0));
        }
        self.line("end", "");
    }
}

fn told(error: &Error) -> String {
    format!("{} {}", error.name().unwrap_or("?"), error.reason().unwrap_or("without a word"))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "nobody tells when the runtime has freed what it gave")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

impl Profiler for Holes {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let state = State::new(info, std::env::var_os("HOLES_OUTPUT").unwrap_or_default().into());
        let events = Events::MODULE_LOADS | Events::JIT_COMPILATION | Events::EXCEPTIONS;
        Ok((Self(state), Setup::new(events)))
    }

    fn initialize_for_attach(info: &ProfilerInfo, client_data: &[u8]) -> Result<(Self, Setup)> {
        let output = String::from_utf8_lossy(client_data).into_owned();
        Ok((Self(State::new(info, output.into())), Setup::new(Events::THREADS)))
    }
}

impl Callbacks for Holes {
    fn jit_compilation_finished(&self, function: FunctionId, _status: Result<()>, _is_safe_to_block: bool) {
        let state = &self.0;
        let is_kept = lock(&state.kept).as_ref().is_some_and(|kept| kept.function == function);
        if is_kept && let Ok(starts) = state.info.code_starts(function, ReJitId::NULL) {
            lock(&state.kept).iter_mut().for_each(|kept| kept.starts.clone_from(&starts));
        }
        if let Ok((Some(class), module, _)) = state.info.function_place(function)
            && std::env::var_os("HOLES_NULLS").is_some()
            && !state.tried.swap(true, Ordering::Relaxed)
        {
            nulls::ask(state, module, class);
        }
    }

    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        let is_kept = lock(&self.0.kept).is_some();
        if !is_kept && let Err(error) = self.0.keep(function) {
            self.0.line("kept nothing", error);
        }
    }

    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        let kept = lock(&self.0.kept).take_if(|kept| kept.module == module);
        if let Some(kept) = kept {
            self.0.after_unloading(&kept);
            drop(kept);
            self.0.line("dropped", "");
        }
    }

    fn exception_thrown(&self, exception: ObjectId<'_>) {
        let state = &self.0;
        let Some(content) = state.reader.read(&state.info, &state.names, exception, 100) else { return };
        let (Some(text), class) = (content.message, state.info.class_of_object(exception)) else { return };
        let before = text.to_string();
        let suspended = state.info.suspend().map(drop);
        let is_same = text.to_string() == before && state.info.class_of_object(exception) == class;
        if state.thrown.fetch_add(1, Ordering::Relaxed) > 0 {
            if !is_same {
                state.line("moved", before);
            }
            return;
        }
        state.refused("suspension where an object is lent", suspended);
        let Ok(handle) = state.info.create_handle(exception, HandleKind::Strong) else { return };
        let found = handle.with(|object| object.is_some());
        state.line("handle in the callback", found.is_ok_and(|found| found));
        *lock(&state.handle) = Some(handle);
        let state = Arc::clone(state);
        let own = std::thread::spawn(move || {
            let _ = state.info.initialize_current_thread();
            let opened = lock(&state.handle).as_ref().map(|handle| handle.with(|object| object.is_some()));
            state.refused("handle on an own thread", opened.unwrap_or(Ok(false)));
        });
        let _ = own.join();
    }

    fn profiler_attach_complete(&self) {
        let state = Arc::clone(&self.0);
        std::thread::spawn(move || state.detach());
    }

    fn profiler_detach_succeeded(&self) {
        self.0.detached.store(true, Ordering::Release);
    }

    fn shutdown(&self) {
        self.0.line("exceptions", self.0.thrown.load(Ordering::Relaxed));
    }
}
