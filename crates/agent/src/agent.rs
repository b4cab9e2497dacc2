//! The profiler that the runtime sees: starts the instruments and hands them their callbacks.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::Duration;

use clr_profiler::notice::{SuspendReason, TransitionReason};
use clr_profiler::{
    ClientId, Error, Events, FunctionId, Hooks, Inlining, Mapped, ModuleId, ObjectId, Profiler, ProfilerInfo, RawHooks,
    Result, Setup, ThreadId,
};

use crate::instrument::Instrument;
use crate::startup::{self, Running};
use crate::{hooks, threads};

/// How long the end of the program may wait for the helper thread's last look.
const LAST_ROUND: Duration = Duration::from_millis(100);

/// The agent. Callbacks before `Initialize` has succeeded find nothing running and do nothing.
#[derive(Default)]
pub(crate) struct Agent {
    running: OnceLock<&'static Running>,
    info: OnceLock<ProfilerInfo>,
}

impl Agent {
    fn instruments(&self) -> &[std::sync::Arc<dyn Instrument>] {
        self.running.get().map_or(&[], |running| &running.instruments)
    }

    fn each(&self, act: impl Fn(&dyn Instrument)) {
        for instrument in self.instruments() {
            act(instrument.as_ref());
        }
    }

    fn setup(running: &'static Running) -> Setup {
        let mut events = running.instruments.iter().fold(Events::NONE, |events, i| events | i.events());
        // Names are looked up and forgotten by these whatever the instruments want.
        events |= Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS | Events::THREADS;
        let mut setup = Setup::new(events);
        if let Some(points) = hooks::choose(running.instruments.iter().filter_map(|i| i.hooks())) {
            // SAFETY: the entry points follow the runtime's convention (see `hooks`), and the library is
            // linked so that it is never unloaded.
            let raw = unsafe { RawHooks::new(points.enter, points.leave, points.tailcall) };
            setup = setup.with_hooks(Hooks::raw(raw, std::sync::Arc::new(move |function| map(running, function))));
        }
        setup
    }
}

/// Does this function get hooks, and under which index?
fn map(running: &Running, function: FunctionId) -> Mapped {
    let known = running.functions.get(function);
    match NonZeroUsize::new(known.index as usize) {
        Some(index) if known.wanted => Mapped::Hook(ClientId(index)),
        _ => Mapped::Skip,
    }
}

impl Profiler for Agent {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let running = startup::start(info).map_err(|why| Error::refused("clrscope", why))?;
        let running: &'static Running = Box::leak(Box::new(running));
        crate::fork::prepare(running);
        let _ = self.info.set(info.clone());
        let _ = self.running.set(running);
        Ok(Self::setup(running))
    }

    fn setup_refused(&self, error: &Error) {
        if let Some(running) = self.running.get() {
            running
                .writer
                .fact(clrscope_recording::writer::monotonic_ns(), &format!("the runtime refused the setup: {error}"));
        }
    }

    fn shutdown(&self) {
        let Some(running) = self.running.get() else { return };
        running.helper.wait_for_round(LAST_ROUND);
        running.writer.state().ended();
    }

    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        if let Some(running) = self.running.get() {
            running.functions.module_unloaded(module);
        }
    }

    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        self.each(|i| i.jit_started(function));
    }

    fn jit_compilation_finished(&self, function: FunctionId, _status: Result<()>, _is_safe_to_block: bool) {
        self.each(|i| i.jit_finished(function));
    }

    fn jit_inlining(&self, _caller: FunctionId, callee: FunctionId) -> Inlining {
        let running = self.running.get().filter(|running| running.named_only_matter);
        let named = running.is_some_and(|running| running.functions.get(callee).named);
        if named { Inlining::Forbid } else { Inlining::Allow }
    }

    fn dynamic_method_jit_compilation_started(
        &self,
        function: FunctionId,
        _is_safe_to_block: bool,
        _il: clr_profiler::notice::DynamicIl<'_>,
    ) {
        self.each(|i| i.jit_started(function));
    }

    fn dynamic_method_jit_compilation_finished(
        &self,
        function: FunctionId,
        _status: Result<()>,
        _is_safe_to_block: bool,
    ) {
        self.each(|i| i.jit_finished(function));
    }

    fn dynamic_method_unloaded(&self, function: FunctionId) {
        if let Some(running) = self.running.get() {
            running.functions.function_unloaded(function);
        }
    }

    fn thread_name_changed(&self, thread: ThreadId, name: &str) {
        let os_id = self.info.get().and_then(|info| info.os_thread(thread).ok());
        if let Some(running) = self.running.get() {
            running.thread_names.named(thread, os_id, name);
        }
    }

    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {
        if let Some(running) = self.running.get() {
            running.thread_names.assigned(thread, os_thread, threads::current);
        }
    }

    fn thread_destroyed(&self, thread: ThreadId) {
        if let Some(running) = self.running.get() {
            running.thread_names.destroyed(thread);
        }
    }

    fn unmanaged_to_managed_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        self.each(|i| i.to_managed(function, reason));
    }

    fn managed_to_unmanaged_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        self.each(|i| i.to_unmanaged(function, reason));
    }

    fn runtime_suspend_started(&self, reason: SuspendReason) {
        self.each(|i| i.suspend_started(reason));
    }

    fn runtime_suspend_aborted(&self) {
        self.each(|i| i.resume_finished());
    }

    fn runtime_resume_finished(&self) {
        self.each(|i| i.resume_finished());
    }

    fn runtime_thread_suspended(&self, _thread: ThreadId) {
        self.each(|i| i.thread_suspended());
    }

    fn runtime_thread_resumed(&self, _thread: ThreadId) {
        self.each(|i| i.thread_resumed());
    }

    fn exception_search_filter_enter(&self, function: FunctionId) {
        self.each(|i| i.filter_enter(function));
    }

    fn exception_search_filter_leave(&self) {
        self.each(|i| i.filter_leave());
    }

    fn exception_unwind_finally_enter(&self, function: FunctionId) {
        self.each(|i| i.unwind_finally_enter(function));
    }

    fn exception_catcher_enter(&self, function: FunctionId, _exception: ObjectId<'_>) {
        self.each(|i| i.catcher_enter(function));
    }
}
