//! What the runtime tells, written down.
//!
//! Names are asked for before the record is written, and only where the runtime may be asked: not while
//! something is still loading, not while threads stand still.

use clr_profiler::notice::{
    DynamicIl, EventPipeEvent, FunctionControl, GcReason, Generations, Inlining, JitCache, MovedRanges, ObjectsOfClass, Roots,
    SurvivingRanges, SuspendReason, TransitionReason, WeakTableElements,
};
use clr_profiler::{
    AppDomainId, AssemblyId, Callbacks, ClassId, EventPipeProviderId, FunctionId, GcHandleId, ModuleId, ObjectId,
    ReJitId, Result, ThreadId, Token,
};
use clr_profiler::sys::GUID;
use clrscope_recording::events::{Kind, Tag, Thing, Value};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::monotonic_ns;

use super::{Events, outcome};
use crate::services::dictionary::Ask;

/// Writes a record if its kind is wanted; the values are only made then.
macro_rules! record {
    ($self:ident, $kind:ident $(, $tag:ident: $value:expr)* $(,)?) => {
        if $self.wants(Kind::$kind) {
            $self.write(Kind::$kind, &[$((Tag::$tag, Value::from($value))),*]);
        }
    };
    ($self:ident, $kind:ident, status $status:expr $(, $tag:ident: $value:expr)* $(,)?) => {
        if $self.wants(Kind::$kind) {
            let [code, name] = outcome($status);
            $self.write(Kind::$kind, &[$((Tag::$tag, Value::from($value)),)* code, name]);
        }
    };
}

impl Events {
    fn function(&self, function: FunctionId) -> Thing {
        self.names.settle();
        self.names.function(function, Ask::Now)
    }

    fn loaded(&self, tag: Tag, id: usize) -> Thing {
        self.names.settle();
        self.names.thing(tag, id, Ask::Now)
    }

    /// Something that is not there yet or not any more, or that can't be asked about here.
    fn bare(&self, tag: Tag, id: usize) -> Thing {
        self.names.thing(tag, id, Ask::Later)
    }

    /// What is only ever seen by its number: asking would find nothing.
    fn thread(&self, thread: ThreadId) -> Thing {
        self.names.thing(Tag::THREAD, thread.0, Ask::Now)
    }

    fn transition(&self, kind: Kind, function: Option<FunctionId>, reason: TransitionReason) {
        if !self.wants(kind) || function.is_some_and(|function| !self.names.known(function).passes) {
            return;
        }
        let call = reason == TransitionReason::Call;
        // The thread may be on its way between two worlds: only what compilation made known is named.
        let function = function.map_or(Thing::default(), |function| self.names.function(function, Ask::Now));
        self.write(kind, &[(Tag::FUNCTION, function.into()), (Tag::CALL, call.into())]);
    }

    fn told_live_objects(&self) {
        let Some(live) = self.live.as_ref().filter(|_| self.wants(Kind::LIVE_OBJECTS_BY_CLASS)) else { return };
        let lost = live.take(|class, count| {
            let class = self.bare(Tag::CLASS, class);
            self.write(Kind::LIVE_OBJECTS_BY_CLASS, &[(Tag::CLASS, class.into()), (Tag::COUNT, count.into())]);
        });
        if lost > 0 {
            self.writer.state().lose(LossReason::EventDropped, lost, monotonic_ns());
        }
    }
}

fn ranges(lengths: impl Iterator<Item = usize>) -> [(Tag, Value<'static>); 2] {
    let (count, bytes) = lengths.fold((0_u64, 0_u64), |(count, bytes), length| (count + 1, bytes + length as u64));
    [(Tag::COUNT, count.into()), (Tag::BYTES, bytes.into())]
}

/// Callbacks of which nothing is said but that they came.
macro_rules! came {
    ($($name:ident($($argument:ident: $type:ty),*) $kind:ident;)*) => {$(
        fn $name(&self $(, $argument: $type)*) {
            record!(self, $kind);
        }
    )*};
}

impl Callbacks for Events {
    came! {
        profiler_attach_complete() PROFILER_ATTACH_COMPLETE;
        profiler_detach_succeeded() PROFILER_DETACH_SUCCEEDED;
        remoting_client_invocation_started() REMOTING_CLIENT_INVOCATION_STARTED;
        remoting_client_sending_message(_cookie: &GUID, _is_async: bool) REMOTING_CLIENT_SENDING_MESSAGE;
        remoting_client_receiving_reply(_cookie: &GUID, _is_async: bool) REMOTING_CLIENT_RECEIVING_REPLY;
        remoting_client_invocation_finished() REMOTING_CLIENT_INVOCATION_FINISHED;
        remoting_server_receiving_message(_cookie: &GUID, _is_async: bool) REMOTING_SERVER_RECEIVING_MESSAGE;
        remoting_server_invocation_started() REMOTING_SERVER_INVOCATION_STARTED;
        remoting_server_invocation_returned() REMOTING_SERVER_INVOCATION_RETURNED;
        remoting_server_sending_reply(_cookie: &GUID, _is_async: bool) REMOTING_SERVER_SENDING_REPLY;
    }

    fn shutdown(&self) {
        self.names.settle();
        record!(self, SHUTDOWN);
    }

    fn app_domain_creation_started(&self, app_domain: AppDomainId) {
        record!(self, APP_DOMAIN_CREATION_STARTED, APP_DOMAIN: self.bare(Tag::APP_DOMAIN, app_domain.0));
    }

    fn app_domain_creation_finished(&self, app_domain: AppDomainId, status: Result<()>) {
        record!(self, APP_DOMAIN_CREATION_FINISHED, status &status, APP_DOMAIN: self.loaded(Tag::APP_DOMAIN, app_domain.0));
    }

    fn app_domain_shutdown_started(&self, app_domain: AppDomainId) {
        record!(self, APP_DOMAIN_SHUTDOWN_STARTED, APP_DOMAIN: self.bare(Tag::APP_DOMAIN, app_domain.0));
    }

    fn app_domain_shutdown_finished(&self, app_domain: AppDomainId, status: Result<()>) {
        record!(self, APP_DOMAIN_SHUTDOWN_FINISHED, status &status, APP_DOMAIN: self.bare(Tag::APP_DOMAIN, app_domain.0));
        self.names.forget(Tag::APP_DOMAIN, app_domain.0);
    }

    fn assembly_load_started(&self, assembly: AssemblyId) {
        record!(self, ASSEMBLY_LOAD_STARTED, ASSEMBLY: self.bare(Tag::ASSEMBLY, assembly.0));
    }

    fn assembly_load_finished(&self, assembly: AssemblyId, status: Result<()>) {
        record!(self, ASSEMBLY_LOAD_FINISHED, status &status, ASSEMBLY: self.loaded(Tag::ASSEMBLY, assembly.0));
    }

    fn assembly_unload_started(&self, assembly: AssemblyId) {
        record!(self, ASSEMBLY_UNLOAD_STARTED, ASSEMBLY: self.bare(Tag::ASSEMBLY, assembly.0));
    }

    fn assembly_unload_finished(&self, assembly: AssemblyId, status: Result<()>) {
        record!(self, ASSEMBLY_UNLOAD_FINISHED, status &status, ASSEMBLY: self.bare(Tag::ASSEMBLY, assembly.0));
        self.names.forget(Tag::ASSEMBLY, assembly.0);
    }

    fn module_load_started(&self, module: ModuleId) {
        record!(self, MODULE_LOAD_STARTED, MODULE: self.bare(Tag::MODULE, module.0));
    }

    fn module_load_finished(&self, module: ModuleId, status: Result<()>) {
        record!(self, MODULE_LOAD_FINISHED, status &status, MODULE: self.loaded(Tag::MODULE, module.0));
    }

    fn module_unload_started(&self, module: ModuleId) {
        record!(self, MODULE_UNLOAD_STARTED, MODULE: self.bare(Tag::MODULE, module.0));
    }

    fn module_unload_finished(&self, module: ModuleId, status: Result<()>) {
        record!(self, MODULE_UNLOAD_FINISHED, status &status, MODULE: self.bare(Tag::MODULE, module.0));
        self.names.module_unloads(module);
    }

    fn module_attached_to_assembly(&self, module: ModuleId, assembly: AssemblyId) {
        record!(
            self,
            MODULE_ATTACHED_TO_ASSEMBLY,
            MODULE: self.loaded(Tag::MODULE, module.0),
            ASSEMBLY: self.loaded(Tag::ASSEMBLY, assembly.0),
        );
    }

    fn class_load_started(&self, class: ClassId) {
        record!(self, CLASS_LOAD_STARTED, CLASS: self.bare(Tag::CLASS, class.0));
    }

    fn class_load_finished(&self, class: ClassId, status: Result<()>) {
        record!(self, CLASS_LOAD_FINISHED, status &status, CLASS: self.loaded(Tag::CLASS, class.0));
    }

    fn class_unload_started(&self, class: ClassId) {
        record!(self, CLASS_UNLOAD_STARTED, CLASS: self.bare(Tag::CLASS, class.0));
    }

    fn class_unload_finished(&self, class: ClassId, status: Result<()>) {
        record!(self, CLASS_UNLOAD_FINISHED, status &status, CLASS: self.bare(Tag::CLASS, class.0));
        self.names.forget(Tag::CLASS, class.0);
    }

    fn function_unload_started(&self, function: FunctionId) {
        record!(self, FUNCTION_UNLOAD_STARTED, FUNCTION: self.names.function(function, Ask::Later));
    }

    fn jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool) {
        if self.wants_function(Kind::JIT_COMPILATION_STARTED, function) {
            record!(self, JIT_COMPILATION_STARTED, FUNCTION: self.function(function));
        }
    }

    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, _is_safe_to_block: bool) {
        if self.wants_function(Kind::JIT_COMPILATION_FINISHED, function) {
            record!(self, JIT_COMPILATION_FINISHED, status &status, FUNCTION: self.function(function));
        }
    }

    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        if self.wants_function(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED, function) {
            record!(self, JIT_CACHED_FUNCTION_SEARCH_STARTED, FUNCTION: self.function(function));
        }
        true
    }

    fn jit_cached_function_search_finished(&self, function: FunctionId, result: JitCache) {
        if self.wants_function(Kind::JIT_CACHED_FUNCTION_SEARCH_FINISHED, function) {
            let found = result == JitCache::Found;
            record!(self, JIT_CACHED_FUNCTION_SEARCH_FINISHED, FUNCTION: self.function(function), ANSWER: found);
        }
    }

    fn jit_function_pitched(&self, function: FunctionId) {
        record!(self, JIT_FUNCTION_PITCHED, FUNCTION: self.names.function(function, Ask::Later));
    }

    fn jit_inlining(&self, caller: FunctionId, callee: FunctionId) -> Inlining {
        if self.wants_function(Kind::JIT_INLINING, caller) {
            record!(self, JIT_INLINING, FUNCTION: self.function(caller), CALLEE: self.function(callee));
        }
        Inlining::Allow
    }

    fn dynamic_method_jit_compilation_started(&self, function: FunctionId, _is_safe_to_block: bool, il: DynamicIl<'_>) {
        record!(
            self,
            DYNAMIC_METHOD_JIT_COMPILATION_STARTED,
            FUNCTION: self.function(function),
            BYTES: il.bytes().len(),
        );
    }

    fn dynamic_method_jit_compilation_finished(
        &self,
        function: FunctionId,
        status: Result<()>,
        _is_safe_to_block: bool,
    ) {
        record!(self, DYNAMIC_METHOD_JIT_COMPILATION_FINISHED, status &status, FUNCTION: self.function(function));
    }

    fn dynamic_method_unloaded(&self, function: FunctionId) {
        record!(self, DYNAMIC_METHOD_UNLOADED, FUNCTION: self.names.function(function, Ask::Later));
    }

    fn rejit_compilation_started(&self, function: FunctionId, rejit: ReJitId, _is_safe_to_block: bool) {
        record!(self, REJIT_COMPILATION_STARTED, FUNCTION: self.function(function), REJIT: rejit.0);
    }

    fn get_rejit_parameters(&self, module: ModuleId, method: Token, _control: &FunctionControl<'_>) -> Result<()> {
        record!(self, GET_REJIT_PARAMETERS, MODULE: self.loaded(Tag::MODULE, module.0), TOKEN: method.0);
        Ok(())
    }

    fn rejit_compilation_finished(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        status: Result<()>,
        _is_safe_to_block: bool,
    ) {
        let function = || self.function(function);
        record!(self, REJIT_COMPILATION_FINISHED, status &status, FUNCTION: function(), REJIT: rejit.0);
    }

    fn rejit_error(&self, module: ModuleId, method: Token, _function: FunctionId, status: Result<()>) {
        record!(self, REJIT_ERROR, status &status, MODULE: self.loaded(Tag::MODULE, module.0), TOKEN: method.0);
    }

    fn thread_created(&self, thread: ThreadId) {
        record!(self, THREAD_CREATED, THREAD: self.thread(thread));
    }

    fn thread_destroyed(&self, thread: ThreadId) {
        record!(self, THREAD_DESTROYED, THREAD: self.thread(thread));
        self.names.forget(Tag::THREAD, thread.0);
    }

    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {
        record!(self, THREAD_ASSIGNED_TO_OS_THREAD, THREAD: self.thread(thread), OS_THREAD: os_thread);
        if !self.names.is_named(Tag::THREAD, thread.0) {
            self.names.name(Tag::THREAD, thread.0, &format!("thread {os_thread}"));
        }
    }

    fn thread_name_changed(&self, thread: ThreadId, name: &str) {
        if self.wants(Kind::THREAD_NAME_CHANGED) {
            let thing = self.thread(thread);
            // The record holds the name itself; the dictionary is for the others about this thread.
            self.names.name(Tag::THREAD, thread.0, bounded(name));
            record!(self, THREAD_NAME_CHANGED, THREAD: thing, NAME: bounded(name));
        }
    }

    fn unmanaged_to_managed_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        self.transition(Kind::UNMANAGED_TO_MANAGED_TRANSITION, function, reason);
    }

    fn managed_to_unmanaged_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {
        self.transition(Kind::MANAGED_TO_UNMANAGED_TRANSITION, function, reason);
    }

    fn runtime_suspend_started(&self, reason: SuspendReason) {
        if self.wants(Kind::RUNTIME_SUSPEND_STARTED) {
            record!(self, RUNTIME_SUSPEND_STARTED, REASON: reason.to_string().as_str());
        }
    }

    fn runtime_suspend_finished(&self) {
        record!(self, RUNTIME_SUSPEND_FINISHED);
    }

    fn runtime_suspend_aborted(&self) {
        record!(self, RUNTIME_SUSPEND_ABORTED);
    }

    fn runtime_resume_started(&self) {
        record!(self, RUNTIME_RESUME_STARTED);
    }

    fn runtime_resume_finished(&self) {
        record!(self, RUNTIME_RESUME_FINISHED);
    }

    fn runtime_thread_suspended(&self, thread: ThreadId) {
        record!(self, RUNTIME_THREAD_SUSPENDED, THREAD: self.thread(thread));
    }

    fn runtime_thread_resumed(&self, thread: ThreadId) {
        record!(self, RUNTIME_THREAD_RESUMED, THREAD: self.thread(thread));
    }

    fn garbage_collection_started(&self, generations: Generations<'_>, reason: GcReason) {
        if self.wants(Kind::GARBAGE_COLLECTION_STARTED) {
            let bits = generations.iter().fold(0_u64, |bits, generation| bits | 1 << generation.min(63));
            let reason = reason.to_string();
            record!(self, GARBAGE_COLLECTION_STARTED, GENERATIONS: bits, REASON: reason.as_str());
        }
    }

    fn garbage_collection_finished(&self) {
        self.told_live_objects();
        record!(self, GARBAGE_COLLECTION_FINISHED);
    }

    fn moved_references(&self, moved: MovedRanges<'_>) {
        if self.wants(Kind::MOVED_REFERENCES2) {
            self.write(Kind::MOVED_REFERENCES2, &ranges(moved.iter().map(|range| range.bytes)));
        }
    }

    fn surviving_references(&self, surviving: SurvivingRanges<'_>) {
        if self.wants(Kind::SURVIVING_REFERENCES2) {
            self.write(Kind::SURVIVING_REFERENCES2, &ranges(surviving.iter().map(|(_, bytes)| bytes)));
        }
    }

    fn object_allocated(&self, object: ObjectId<'_>, class: ClassId) {
        record!(self, OBJECT_ALLOCATED, OBJECT: object.address(), CLASS: self.bare(Tag::CLASS, class.0));
    }

    fn objects_allocated_by_class(&self, objects: ObjectsOfClass<'_>) {
        if self.wants(Kind::OBJECTS_ALLOCATED_BY_CLASS) {
            for (class, count) in objects.iter() {
                record!(self, OBJECTS_ALLOCATED_BY_CLASS, CLASS: self.bare(Tag::CLASS, class.0), COUNT: count);
            }
        }
    }

    fn object_references(&self, object: ObjectId<'_>, class: ClassId, references: &[ObjectId<'_>]) -> Result<()> {
        if let Some(live) = &self.live {
            live.count(class.0);
        }
        record!(
            self,
            OBJECT_REFERENCES,
            OBJECT: object.address(),
            CLASS: self.bare(Tag::CLASS, class.0),
            COUNT: references.len(),
        );
        Ok(())
    }

    fn root_references(&self, roots: &[ObjectId<'_>]) {
        record!(self, ROOT_REFERENCES, COUNT: roots.len());
    }

    fn root_references2(&self, roots: Roots<'_>) {
        record!(self, ROOT_REFERENCES2, COUNT: roots.iter().count());
    }

    fn conditional_weak_table_element_references(&self, elements: WeakTableElements<'_>) {
        record!(self, CONDITIONAL_WEAK_TABLE_ELEMENT_REFERENCES, COUNT: elements.iter().count());
    }

    fn finalizable_object_queued(&self, object: ObjectId<'_>, critical: bool) {
        record!(self, FINALIZEABLE_OBJECT_QUEUED, OBJECT: object.address(), ANSWER: critical);
    }

    fn handle_created(&self, handle: GcHandleId, object: ObjectId<'_>) {
        if self.wants(Kind::HANDLE_CREATED) {
            let class = self.names.class_id_of(object).map_or(Thing::default(), |class| self.bare(Tag::CLASS, class.0));
            record!(self, HANDLE_CREATED, HANDLE: handle.0, OBJECT: object.address(), CLASS: class);
        }
    }

    fn handle_destroyed(&self, handle: GcHandleId) {
        record!(self, HANDLE_DESTROYED, HANDLE: handle.0);
    }

    fn exception_thrown(&self, exception: ObjectId<'_>) {
        if self.wants(Kind::EXCEPTION_THROWN) {
            let class = self.names.class_of(exception);
            record!(self, EXCEPTION_THROWN, OBJECT: exception.address(), CLASS: class);
        }
    }

    fn exception_search_function_enter(&self, function: FunctionId) {
        record!(self, EXCEPTION_SEARCH_FUNCTION_ENTER, FUNCTION: self.function(function));
    }

    fn exception_search_function_leave(&self) {
        record!(self, EXCEPTION_SEARCH_FUNCTION_LEAVE);
    }

    fn exception_search_filter_enter(&self, function: FunctionId) {
        record!(self, EXCEPTION_SEARCH_FILTER_ENTER, FUNCTION: self.function(function));
    }

    fn exception_search_filter_leave(&self) {
        record!(self, EXCEPTION_SEARCH_FILTER_LEAVE);
    }

    fn exception_search_catcher_found(&self, function: FunctionId) {
        record!(self, EXCEPTION_SEARCH_CATCHER_FOUND, FUNCTION: self.function(function));
    }

    fn exception_os_handler_enter(&self) {
        record!(self, EXCEPTION_OS_HANDLER_ENTER);
    }

    fn exception_os_handler_leave(&self) {
        record!(self, EXCEPTION_OS_HANDLER_LEAVE);
    }

    fn exception_unwind_function_enter(&self, function: FunctionId) {
        record!(self, EXCEPTION_UNWIND_FUNCTION_ENTER, FUNCTION: self.function(function));
    }

    fn exception_unwind_function_leave(&self) {
        record!(self, EXCEPTION_UNWIND_FUNCTION_LEAVE);
    }

    fn exception_unwind_finally_enter(&self, function: FunctionId) {
        record!(self, EXCEPTION_UNWIND_FINALLY_ENTER, FUNCTION: self.function(function));
    }

    fn exception_unwind_finally_leave(&self) {
        record!(self, EXCEPTION_UNWIND_FINALLY_LEAVE);
    }

    fn exception_catcher_enter(&self, function: FunctionId, exception: ObjectId<'_>) {
        record!(self, EXCEPTION_CATCHER_ENTER, FUNCTION: self.function(function), OBJECT: exception.address());
    }

    fn exception_catcher_leave(&self) {
        record!(self, EXCEPTION_CATCHER_LEAVE);
    }

    fn exception_clr_catcher_found(&self) {
        record!(self, EXCEPTION_CLR_CATCHER_FOUND);
    }

    fn exception_clr_catcher_execute(&self) {
        record!(self, EXCEPTION_CLR_CATCHER_EXECUTE);
    }

    fn module_in_memory_symbols_updated(&self, module: ModuleId) {
        record!(self, MODULE_IN_MEMORY_SYMBOLS_UPDATED, MODULE: self.loaded(Tag::MODULE, module.0));
    }

    fn com_classic_vtable_created(&self, class: ClassId, _interface: &GUID, _vtable: usize, slots: u32) {
        record!(self, COM_CLASSIC_VTABLE_CREATED, CLASS: self.bare(Tag::CLASS, class.0), COUNT: slots);
    }

    fn com_classic_vtable_destroyed(&self, class: ClassId, _interface: &GUID, _vtable: usize) {
        record!(self, COM_CLASSIC_VTABLE_DESTROYED, CLASS: self.bare(Tag::CLASS, class.0));
    }

    fn get_assembly_references(&self, assembly_path: &str) {
        record!(self, GET_ASSEMBLY_REFERENCES, NAME: bounded(assembly_path));
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        record!(
            self,
            EVENT_PIPE_EVENT_DELIVERED,
            PROVIDER: self.bare(Tag::PROVIDER, event.provider.0),
            BYTES: event.data.len(),
        );
    }

    fn event_pipe_provider_created(&self, provider: EventPipeProviderId) {
        record!(self, EVENT_PIPE_PROVIDER_CREATED, PROVIDER: self.loaded(Tag::PROVIDER, provider.0));
    }
}

/// At most 256 bytes of a name that the program chose.
fn bounded(name: &str) -> &str {
    &name[..name.floor_char_boundary(256)]
}
