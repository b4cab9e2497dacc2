//! The profiler that the runtime sees: starts the instruments and hands them their callbacks.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clr_profiler::notice::{
    FunctionControl, GcReason, Generations, JitCache, MovedRanges, ObjectsOfClass, Roots, SurvivingRanges,
    SuspendReason, TransitionReason, WeakTableElements,
};
use clr_profiler::{
    AppDomainId, AssemblyId, Callbacks, ClassId, ClientId, Error, EventPipeProviderId, Events, FunctionId, GcHandleId,
    Hooks, Inlining, Mapped, ModuleId, NativeFrame, ObjectId, Profiler, ProfilerInfo, RawHooks, ReJitId, Result, Setup,
    ThreadId, Token,
};

use crate::instrument::Instrument;
use crate::instruments;
use crate::services::developer_log::{self, Level, log, wants};
use crate::services::helper::with_signals_blocked;
use crate::services::threads;
use crate::services::values::types::Types;
use crate::startup::{self, Running};

/// How long the end of the program may wait for the helper thread's last look.
const LAST_ROUND: Duration = Duration::from_millis(100);

/// The agent. Callbacks before `Initialize` has succeeded find nothing running and do nothing.
#[derive(Default)]
pub(crate) struct Agent {
    parts: OnceLock<Parts>,
}

/// Who is told of what.
struct Parts {
    running: &'static Running,
    info: ProfilerInfo,
    /// Those that want to hear every callback of their events.
    observers: Vec<Arc<dyn Callbacks>>,
    types: Vec<&'static Types>,
}

/// Callbacks that matter to observers only.
macro_rules! told_to_observers {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method(&self, $($argument: $type),*) {
            self.tell(|observer| observer.$method($(Clone::clone(&$argument)),*));
        }
    )*};
}

impl Parts {
    fn of(running: &'static Running, info: &ProfilerInfo) -> Self {
        let all = || running.instruments.iter();
        Self {
            running,
            info: info.clone(),
            observers: all().filter_map(|i| Arc::clone(i).callbacks()).collect(),
            types: all().filter_map(|i| i.types()).collect(),
        }
    }
}

impl Agent {
    fn running(&self) -> Option<&'static Running> {
        self.parts.get().map(|parts| parts.running)
    }

    fn each(&self, act: impl Fn(&dyn Instrument)) {
        for instrument in self.running().into_iter().flat_map(|running| &running.instruments) {
            act(instrument.as_ref());
        }
    }

    fn observers(&self) -> impl Iterator<Item = &Arc<dyn Callbacks>> {
        self.parts.get().into_iter().flat_map(|parts| &parts.observers)
    }

    /// Tells those that want to hear everything.
    #[inline]
    fn tell(&self, act: impl Fn(&dyn Callbacks)) {
        let Some(parts) = self.parts.get() else { return };
        // Exceptions make a dozen callbacks each, and where the compiler sees who is called, those that say nothing
        // new cost nothing.
        if let Some(exceptions) = &parts.running.exceptions {
            act(exceptions.as_ref());
        }
        for observer in &parts.observers {
            act(observer.as_ref());
        }
    }

    /// Tells those with hooks: they keep stacks, which exceptions put right.
    #[inline]
    fn tell_stacks(&self, act: impl Fn(&dyn Instrument)) {
        for (_, instrument) in self.running().into_iter().flat_map(|running| &running.hooked) {
            act(instrument.as_ref());
        }
    }

    /// Tells those that describe the program's types.
    fn tell_types(&self, act: impl Fn(&'static Types)) {
        self.parts.get().into_iter().flat_map(|parts| &parts.types).for_each(|types| act(types));
    }

    fn setup(running: &'static Running) -> Setup {
        let mut events = running.instruments.iter().fold(Events::NONE, |events, i| events | i.events());
        // Names are looked up and forgotten by these whatever the instruments want.
        events |= Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS | Events::THREADS;
        if events.contains(Events::GC) {
            // It tells of begin and end too, and the two exclude each other.
            events = events - Events::BASIC_GC;
        }
        let points = instruments::entry_points(running.hooked.iter().map(|(need, _)| *need));
        if points.is_some() && running.named_only_matter {
            // Calls of functions that are named stay calls, and only with these events is that asked.
            events |= Events::JIT_COMPILATION;
        }
        log(Level::Info, || format!("events {events:?}, {}", if points.is_some() { "hooks" } else { "no hooks" }));
        let mut setup = Setup::new(events);
        if let Some(points) = points {
            // SAFETY: the entry points follow the runtime's convention (see `hooks`), and the library is
            // linked so that it is never unloaded.
            let raw = unsafe { RawHooks::new(points.enter, points.leave, points.tailcall) };
            setup = setup.with_hooks(Hooks::raw(raw, Arc::new(move |function| map(running, function))));
        }
        setup
    }
}

/// Does this function get hooks, and under which index?
fn map(running: &Running, function: FunctionId) -> Mapped {
    let known = running.functions.get(function);
    if !known.wanted {
        let needed = running.instruments.iter().find_map(|i| i.needs(function, known.index));
        return needed.and_then(NonZeroUsize::new).map_or(Mapped::Skip, |client| Mapped::Hook(ClientId(client)));
    }
    let of = |client: usize, i: &Arc<dyn Instrument>| i.mapped(function, known.index, client);
    let client = running.instruments.iter().fold(known.index as usize, of);
    NonZeroUsize::new(client).map_or(Mapped::Skip, |client| Mapped::Hook(ClientId(client)))
}

impl Profiler for Agent {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let running = startup::start(info).map_err(|why| Error::refused("clrscope", why))?;
        let running: &'static Running = Box::leak(Box::new(running));
        crate::process::fork::prepare(running);
        let _ = self.parts.set(Parts::of(running, info));
        self.each(|i| i.begins());
        Ok(Self::setup(running))
    }

    fn setup_refused(&self, error: &Error) {
        log(Level::Error, || format!("the runtime refused the setup: {error}"));
        if let Some(running) = self.running() {
            running
                .writer
                .note(clrscope_recording::writer::monotonic_ns(), &format!("the runtime refused the setup: {error}"));
        }
    }
}

impl Callbacks for Agent {
    fn shutdown(&self) {
        self.tell(|observer| observer.shutdown());
        log(Level::Info, || "Shutdown".to_owned());
        let Some(running) = self.running() else { return };
        running.helper.wait_for_round(LAST_ROUND);
        if wants(Level::Info) {
            with_signals_blocked(developer_log::flush);
        }
        running.writer.state().ended();
    }

    fn module_attached_to_assembly(&self, module: ModuleId, assembly: AssemblyId) {
        self.tell(|observer| observer.module_attached_to_assembly(module, assembly));
        self.tell_types(|types| types.module_loaded(module));
    }

    fn class_load_finished(&self, class: ClassId, status: Result<()>) {
        self.tell(|observer| observer.class_load_finished(class, status.clone()));
        if status.is_ok() {
            self.tell_types(|types| types.class_loaded(class));
        }
    }

    fn module_unload_started(&self, module: ModuleId) {
        self.tell(|observer| observer.module_unload_started(module));
        self.tell_types(|types| types.module_unloads(module));
    }

    fn module_unload_finished(&self, module: ModuleId, status: Result<()>) {
        self.tell(|observer| observer.module_unload_finished(module, status.clone()));
        if let Some(running) = self.running() {
            running.functions.module_unloaded(module);
        }
        self.tell_types(|types| types.module_unloaded(module));
    }

    fn jit_compilation_started(&self, function: FunctionId, is_safe_to_block: bool) {
        self.tell(|observer| observer.jit_compilation_started(function, is_safe_to_block));
        self.tell_types(Types::look_into_pending);
        self.each(|i| i.jit_started(function));
    }

    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, is_safe_to_block: bool) {
        self.tell(|observer| observer.jit_compilation_finished(function, status.clone(), is_safe_to_block));
        self.each(|i| i.jit_finished(function));
    }

    fn jit_inlining(&self, caller: FunctionId, callee: FunctionId) -> Inlining {
        self.tell(|observer| {
            observer.jit_inlining(caller, callee);
        });
        let Some(running) = self.running() else { return Inlining::Allow };
        let is_named = || running.named_only_matter && running.functions.get(callee).named;
        let is_kept = |i: &Arc<dyn Instrument>| i.keeps_call(running.functions.get(caller).index, callee);
        if is_named() || running.instruments.iter().any(is_kept) { Inlining::Forbid } else { Inlining::Allow }
    }

    fn dynamic_method_jit_compilation_started(
        &self,
        function: FunctionId,
        is_safe_to_block: bool,
        il: clr_profiler::notice::DynamicIl<'_>,
    ) {
        self.tell(|observer| observer.dynamic_method_jit_compilation_started(function, is_safe_to_block, il));
        self.tell_types(Types::look_into_pending);
        self.each(|i| i.jit_started(function));
    }

    fn dynamic_method_jit_compilation_finished(
        &self,
        function: FunctionId,
        status: Result<()>,
        is_safe_to_block: bool,
    ) {
        self.tell(|observer| {
            observer.dynamic_method_jit_compilation_finished(function, status.clone(), is_safe_to_block)
        });
        self.each(|i| i.jit_finished(function));
    }

    fn dynamic_method_unloaded(&self, function: FunctionId) {
        self.tell(|observer| observer.dynamic_method_unloaded(function));
        if let Some(running) = self.running() {
            running.functions.function_unloaded(function);
        }
    }

    fn thread_name_changed(&self, thread: ThreadId, name: &str) {
        self.tell(|observer| observer.thread_name_changed(thread, name));
        let os_id = self.parts.get().and_then(|parts| parts.info.os_thread(thread).ok());
        if let Some(running) = self.running() {
            running.thread_names.named(thread, os_id, name);
        }
    }

    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {
        self.tell(|observer| observer.thread_assigned_to_os_thread(thread, os_thread));
        if let Some(running) = self.running() {
            running.thread_names.assigned(thread, os_thread, threads::current);
        }
    }

    fn thread_destroyed(&self, thread: ThreadId) {
        self.tell(|observer| observer.thread_destroyed(thread));
        if let Some(running) = self.running() {
            running.thread_names.destroyed(thread);
        }
    }

    fn unmanaged_to_managed_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        self.tell(|observer| observer.unmanaged_to_managed_transition(function, reason));
        self.each(|i| i.to_managed(function, reason));
    }

    fn managed_to_unmanaged_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        self.tell(|observer| observer.managed_to_unmanaged_transition(function, reason));
        self.each(|i| i.to_unmanaged(function, reason));
    }

    fn runtime_suspend_started(&self, reason: SuspendReason) {
        self.tell(|observer| observer.runtime_suspend_started(reason));
        self.each(|i| i.suspend_started(reason));
    }

    fn runtime_suspend_aborted(&self) {
        self.tell(|observer| observer.runtime_suspend_aborted());
        self.each(|i| i.resume_finished());
    }

    fn runtime_resume_finished(&self) {
        self.tell(|observer| observer.runtime_resume_finished());
        self.each(|i| i.resume_finished());
    }

    fn runtime_thread_suspended(&self, thread: ThreadId) {
        self.tell(|observer| observer.runtime_thread_suspended(thread));
        self.each(|i| i.thread_suspended());
    }

    fn runtime_thread_resumed(&self, thread: ThreadId) {
        self.tell(|observer| observer.runtime_thread_resumed(thread));
        self.each(|i| i.thread_resumed());
    }

    fn garbage_collection_started(&self, generations: Generations<'_>, reason: GcReason) {
        self.tell(|observer| observer.garbage_collection_started(generations, reason));
        self.each(|i| i.collection_started());
    }

    fn garbage_collection_finished(&self) {
        self.tell(|observer| observer.garbage_collection_finished());
        self.each(|i| i.collection_finished());
    }

    fn exception_search_filter_enter(&self, function: FunctionId) {
        self.tell(|observer| observer.exception_search_filter_enter(function));
        self.tell_stacks(|i| i.filter_enter(function));
    }

    fn exception_search_filter_leave(&self) {
        self.tell(|observer| observer.exception_search_filter_leave());
        self.tell_stacks(|i| i.filter_leave());
    }

    fn exception_unwind_finally_enter(&self, function: FunctionId) {
        self.tell(|observer| observer.exception_unwind_finally_enter(function));
        self.tell_stacks(|i| i.unwind_finally_enter(function));
    }

    fn exception_catcher_enter(&self, function: FunctionId, exception: ObjectId<'_>) {
        self.tell(|observer| observer.exception_catcher_enter(function, exception));
        self.tell_stacks(|i| i.catcher_enter(function));
    }

    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        self.tell(|observer| {
            observer.jit_cached_function_search_started(function);
        });
        true
    }

    fn get_rejit_parameters(&self, module: ModuleId, method: Token, control: &FunctionControl<'_>) -> Result<()> {
        self.observers().try_for_each(|o| o.get_rejit_parameters(module, method, control))
    }

    fn object_references(&self, object: ObjectId<'_>, class: ClassId, references: &[ObjectId<'_>]) -> Result<()> {
        self.observers().try_for_each(|o| o.object_references(object, class, references))
    }

    told_to_observers! {
        app_domain_creation_started(app_domain: AppDomainId);
        app_domain_creation_finished(app_domain: AppDomainId, status: Result<()>);
        app_domain_shutdown_started(app_domain: AppDomainId);
        app_domain_shutdown_finished(app_domain: AppDomainId, status: Result<()>);
        assembly_load_started(assembly: AssemblyId);
        assembly_load_finished(assembly: AssemblyId, status: Result<()>);
        assembly_unload_started(assembly: AssemblyId);
        assembly_unload_finished(assembly: AssemblyId, status: Result<()>);
        module_load_started(module: ModuleId);
        module_load_finished(module: ModuleId, status: Result<()>);
        module_in_memory_symbols_updated(module: ModuleId);
        class_load_started(class: ClassId);
        class_unload_started(class: ClassId);
        class_unload_finished(class: ClassId, status: Result<()>);
        function_unload_started(function: FunctionId);
        jit_cached_function_search_finished(function: FunctionId, result: JitCache);
        jit_function_pitched(function: FunctionId);
        rejit_compilation_started(function: FunctionId, rejit: ReJitId, is_safe_to_block: bool);
        rejit_compilation_finished(function: FunctionId, rejit: ReJitId, status: Result<()>, is_safe_to_block: bool);
        rejit_error(module: ModuleId, method: Token, function: FunctionId, status: Result<()>);
        thread_created(thread: ThreadId);
        runtime_suspend_finished();
        runtime_resume_started();
        moved_references(ranges: MovedRanges<'_>);
        surviving_references(ranges: SurvivingRanges<'_>);
        object_allocated(object: ObjectId<'_>, class: ClassId);
        objects_allocated_by_class(objects: ObjectsOfClass<'_>);
        root_references(roots: &[ObjectId<'_>]);
        root_references2(roots: Roots<'_>);
        conditional_weak_table_element_references(elements: WeakTableElements<'_>);
        finalizable_object_queued(object: ObjectId<'_>, critical: bool);
        handle_created(handle: GcHandleId, object: ObjectId<'_>);
        handle_destroyed(handle: GcHandleId);
        exception_thrown_in(exception: ObjectId<'_>, frame: NativeFrame);
        exception_search_function_enter(function: FunctionId);
        exception_search_function_leave();
        exception_search_catcher_found(function: FunctionId);
        exception_os_handler_enter();
        exception_os_handler_leave();
        exception_unwind_function_enter(function: FunctionId);
        exception_unwind_function_leave();
        exception_unwind_finally_leave();
        exception_catcher_leave();
        exception_clr_catcher_found();
        exception_clr_catcher_execute();
        event_pipe_provider_created(provider: EventPipeProviderId);
    }
}
