//! Replaces the IL of a method in a running program and restores it. Each file that appears in the
//! folder named by `REJIT_FOLDER` is a command: `change` makes `Counter.Program::Step` do nothing,
//! `revert` restores its own code, `detach` requests the profiler's detach, `count` inserts code
//! into `Step` that counts its calls and their ends. A file such as `change done` means that the
//! request was sent to the runtime. At the end the file `log` contains the runtime's callbacks.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clr_profiler::callback_args::{CodegenFlags, FunctionControl};
use clr_profiler::il::{Code, Edits};
use clr_profiler::{
    BodyWriter, BodyWriters, Callbacks, Events, FunctionId, MethodToWrite, ModuleId, NameCache, OwnThread, Profiler,
    ProfilerInfo, ReJitId, Result, Setup, Token,
};

clr_profiler::export_profiler!(ReJit, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C0D}");

/// An empty method: a one-byte header, which states a code size of one byte, and `ret`.
const NOTHING: [u8; 2] = [1 << 2 | 2, 0x2a];

/// Numbers of calls of `Step` that have begun and ended.
static COUNTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Author of the inserted counters.
struct Counts;

impl BodyWriter for Counts {
    fn edits(&self, _method: &MethodToWrite<'_>) -> Result<Edits> {
        let [begun, ended] = COUNTS.each_ref().map(|count| Code::add_one(count.as_ptr().expose_provenance() as u64));
        let mut edits = Edits::new();
        edits.at_entry(begun);
        edits.at_exits(ended);
        Ok(edits)
    }
}

struct ReJit(&'static State);

/// Lives as long as the process: the profiler's own thread looks at it too.
struct State {
    info: ProfilerInfo,
    names: NameCache,
    writers: BodyWriters,
    is_counting: AtomicBool,
    folder: PathBuf,
    step: OnceLock<(ModuleId, Token, FunctionId)>,
    log: Mutex<String>,
}

impl State {
    fn line(&self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.log.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
    }

    /// Waits for the file, executes its command, and writes the confirmation.
    fn obey(
        &self,
        thread: &OwnThread,
        order: &str,
        act: impl Fn(&Self, (ModuleId, Token), FunctionId) -> Result<String>,
    ) {
        while !self.folder.join(order).exists() {
            if !thread.sleep(Duration::from_millis(5)) {
                return;
            }
        }
        let Some(&(module, token, function)) = self.step.get() else { return self.line(format_args!("no Step")) };
        match act(self, (module, token), function) {
            Ok(said) => self.line(format_args!("{order}: {said}")),
            Err(error) => self.line(format_args!("{order} failed: {error}")),
        }
        drop(std::fs::write(self.folder.join(format!("{order} done")), ""));
    }
}

fn change(state: &State, method: (ModuleId, Token), _function: FunctionId) -> Result<String> {
    state.info.request_rejit(&[method])?;
    Ok("asked".to_owned())
}

fn revert(state: &State, method: (ModuleId, Token), function: FunctionId) -> Result<String> {
    let versions = state.info.rejit_ids(function)?;
    let newest = versions.iter().max().copied().unwrap_or(ReJitId::NULL);
    let has_code = !state.info.code_info_of(function, newest)?.is_empty();
    let reverted = state.info.request_revert(&[method])?;
    Ok(format!("{} versions, the newest with code: {has_code}, {reverted:?}", versions.len()))
}

fn detach(state: &State, _method: (ModuleId, Token), _function: FunctionId) -> Result<String> {
    state.info.request_detach(1_000)?;
    Ok("asked".to_owned())
}

fn count(state: &State, method: (ModuleId, Token), _function: FunctionId) -> Result<String> {
    state.is_counting.store(true, Ordering::Relaxed);
    state.info.request_rejit_with_inliners(&[method])?;
    Ok("asked".to_owned())
}

impl Profiler for ReJit {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let state: &'static State = Box::leak(Box::new(State {
            info: info.clone(),
            names: NameCache::new(),
            writers: BodyWriters::new(info).with(Arc::new(Counts)),
            is_counting: AtomicBool::new(false),
            folder: std::env::var_os("REJIT_FOLDER").unwrap_or_default().into(),
            step: OnceLock::new(),
            log: Mutex::default(),
        }));
        OwnThread::start(info, "rejit", |thread| {
            state.obey(thread, "detach", detach);
            state.obey(thread, "change", change);
            state.obey(thread, "revert", revert);
            state.obey(thread, "count", count);
        })?;
        Ok((Self(state), Setup::new(Events::JIT_COMPILATION | Events::ENABLE_REJIT)))
    }
}

impl Callbacks for ReJit {
    fn jit_compilation_finished(&self, function: FunctionId, _status: Result<()>, _is_safe_to_block: bool) {
        let state = self.0;
        if state.names.function(&state.info, function).name == "Counter.Program::Step"
            && let Ok(place) = state.info.function_info(function)
        {
            let _ = state.step.set((place.module, place.token, function));
        }
    }

    fn get_rejit_parameters(&self, module: ModuleId, method: Token, control: &FunctionControl<'_>) -> Result<()> {
        let state = self.0;
        let is_step = state.step.get().is_some_and(|&(m, token, _)| (m, token) == (module, method));
        if state.is_counting.load(Ordering::Relaxed) {
            // SAFETY: additions to static memory are valid in every method.
            let written = unsafe { state.writers.write_again(module, method, control) };
            state.line(format_args!("counting in Step: {is_step}, {written:?}"));
            return Ok(());
        }
        // This flag changes nothing: nothing would be inlined anyway. SAFETY: `Step` returns
        // nothing, so a body that returns immediately is valid.
        let changed = unsafe { control.set_il_function_body(&NOTHING) };
        let answers = (control.set_codegen_flags(CodegenFlags::DISABLE_INLINING), changed);
        state.line(format_args!("parameters of Step: {is_step}, {answers:?}"));
        Ok(())
    }

    fn rejit_compilation_started(&self, function: FunctionId, rejit: ReJitId, _is_safe_to_block: bool) {
        let state = self.0;
        state.line(format_args!("started {} {}", state.names.function(&state.info, function).name, rejit.as_raw() > 0));
    }

    fn rejit_compilation_finished(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        status: Result<()>,
        _is_safe_to_block: bool,
    ) {
        let state = self.0;
        let name = state.names.function(&state.info, function);
        state.line(format_args!("finished {} {} {status:?}", name.name, rejit.as_raw() > 0));
    }

    fn rejit_error(&self, _module: ModuleId, method: Token, _function: FunctionId, status: Result<()>) {
        self.0.line(format_args!("error {:#x} {status:?}", method.as_raw()));
    }

    fn shutdown(&self) {
        let [begun, ended] = COUNTS.each_ref().map(|count| count.load(Ordering::Relaxed));
        self.0.line(format_args!("counted {begun} calls and {ended} ends"));
        let text = self.0.log.lock().unwrap_or_else(PoisonError::into_inner);
        drop(std::fs::write(self.0.folder.join("log"), &*text));
    }
}
