//! Callbacks whose records are written by hand, since they do not follow from the table of
//! callbacks.
//!
//! Names are asked for before the record is written, and only where the runtime may be queried: not
//! while an entity is still loading, and not while threads are suspended.

use clr_profiler::callback_args::{
    DynamicIl, EventPipeEvent, FunctionControl, GcReason, Generations, Inlining, JitCache, MovedRanges, ObjectsOfClass, Roots,
    SurvivingRanges, SuspendReason, TransitionReason, WeakTableElements,
};
use clr_profiler::{
    AppDomainId, AssemblyId, Callbacks, ClassId, EventPipeProviderId, FunctionId, GcHandleId, ModuleId, ObjectId,
    Result, ThreadId, Token,
};
use clr_profiler::Guid;
use clrscope_recording::events::{Kind, Tag, EntityRef, Value};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::monotonic_ns;

use super::{Events, outcome};
use crate::services::dictionary::Resolve;

/// Writes a record if its kind is wanted. The values are computed only then.
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
    pub(super) fn function(&self, function: FunctionId) -> EntityRef {
        self.names.settle();
        self.names.function(function, Resolve::Now)
    }

    pub(super) fn loaded(&self, tag: Tag, id: usize) -> EntityRef {
        self.names.settle();
        self.names.entity(tag, id, Resolve::Now)
    }

    /// Refers to an entity by its number only: it does not exist yet or any more, or can't be
    /// queried here.
    pub(super) fn bare(&self, tag: Tag, id: usize) -> EntityRef {
        self.names.entity(tag, id, Resolve::Deferred)
    }

    /// Refers to a thread by its number only, as a query would find no name here.
    pub(super) fn thread(&self, thread: ThreadId) -> EntityRef {
        self.names.entity(Tag::THREAD, thread.as_raw(), Resolve::Now)
    }

    fn transition(&self, kind: Kind, function: Option<FunctionId>, reason: TransitionReason) {
        if !self.wants(kind) || function.is_some_and(|function| !self.names.known(function).passes) {
            return;
        }
        let call = reason == TransitionReason::Call;
        // The thread may be between managed and unmanaged code, so only functions that are known
        // from their compilation are named.
        let function = function.map_or(EntityRef::default(), |function| self.names.function(function, Resolve::Now));
        self.write(kind, &[(Tag::FUNCTION, function.into()), (Tag::CALL, call.into())]);
    }

    fn record_live_objects(&self) {
        let Some(live) = self.live.as_ref().filter(|_| self.wants(Kind::LIVE_OBJECTS_BY_CLASS)) else { return };
        let lost = live.drain(|class, count| {
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

impl Callbacks for Events {
    // Callbacks whose record follows from the table.
    log_all! {
        app_domain_creation_started app_domain_creation_finished app_domain_shutdown_started assembly_load_started
        assembly_load_finished assembly_unload_started module_load_started module_load_finished module_unload_started
        module_attached_to_assembly class_load_started class_load_finished class_unload_started function_unload_started
        jit_function_pitched dynamic_method_jit_compilation_finished dynamic_method_unloaded rejit_compilation_started
        rejit_compilation_finished thread_created runtime_suspend_finished runtime_suspend_aborted
        runtime_resume_started runtime_resume_finished runtime_thread_suspended runtime_thread_resumed
        exception_search_function_enter exception_search_function_leave exception_search_filter_enter
        exception_search_filter_leave exception_search_catcher_found exception_os_handler_enter
        exception_os_handler_leave exception_unwind_function_enter exception_unwind_function_leave
        exception_unwind_finally_enter exception_unwind_finally_leave exception_catcher_enter exception_catcher_leave
        exception_clr_catcher_found exception_clr_catcher_execute module_in_memory_symbols_updated handle_destroyed
        profiler_attach_complete profiler_detach_succeeded remoting_client_invocation_started
        remoting_client_sending_message remoting_client_receiving_reply remoting_client_invocation_finished
        remoting_server_receiving_message remoting_server_invocation_started remoting_server_invocation_returned
        remoting_server_sending_reply
    }

    fn shutdown(&self) {
        self.names.settle();
        record!(self, SHUTDOWN);
    }

    fn app_domain_shutdown_finished(&self, app_domain: AppDomainId, status: Result<()>) {
        record!(self, APP_DOMAIN_SHUTDOWN_FINISHED, status &status, APP_DOMAIN: self.bare(Tag::APP_DOMAIN, app_domain.as_raw()));
        self.names.forget(Tag::APP_DOMAIN, app_domain.as_raw());
    }

    fn assembly_unload_finished(&self, assembly: AssemblyId, status: Result<()>) {
        record!(self, ASSEMBLY_UNLOAD_FINISHED, status &status, ASSEMBLY: self.bare(Tag::ASSEMBLY, assembly.as_raw()));
        self.names.forget(Tag::ASSEMBLY, assembly.as_raw());
    }

    fn module_unload_finished(&self, module: ModuleId, status: Result<()>) {
        record!(self, MODULE_UNLOAD_FINISHED, status &status, MODULE: self.bare(Tag::MODULE, module.as_raw()));
        self.names.module_unloads(module);
    }

    fn class_unload_finished(&self, class: ClassId, status: Result<()>) {
        record!(self, CLASS_UNLOAD_FINISHED, status &status, CLASS: self.bare(Tag::CLASS, class.as_raw()));
        self.names.forget(Tag::CLASS, class.as_raw());
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

    fn get_rejit_parameters(&self, module: ModuleId, method: Token, _control: &FunctionControl<'_>) -> Result<()> {
        record!(self, GET_REJIT_PARAMETERS, MODULE: self.loaded(Tag::MODULE, module.as_raw()), TOKEN: method.as_raw());
        Ok(())
    }

    fn rejit_error(&self, module: ModuleId, method: Token, _function: FunctionId, status: Result<()>) {
        record!(self, REJIT_ERROR, status &status, MODULE: self.loaded(Tag::MODULE, module.as_raw()), TOKEN: method.as_raw());
    }

    fn thread_destroyed(&self, thread: ThreadId) {
        record!(self, THREAD_DESTROYED, THREAD: self.thread(thread));
        self.names.forget(Tag::THREAD, thread.as_raw());
    }

    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {
        record!(self, THREAD_ASSIGNED_TO_OS_THREAD, THREAD: self.thread(thread), OS_THREAD: os_thread);
        if !self.names.is_named(Tag::THREAD, thread.as_raw()) {
            self.names.name(Tag::THREAD, thread.as_raw(), &format!("thread {os_thread}"));
        }
    }

    fn thread_name_changed(&self, thread: ThreadId, name: &str) {
        if self.wants(Kind::THREAD_NAME_CHANGED) {
            let entity = self.thread(thread);
            // The record holds the name itself; the dictionary is for other records about this
            // thread.
            self.names.name(Tag::THREAD, thread.as_raw(), bounded(name));
            record!(self, THREAD_NAME_CHANGED, THREAD: entity, NAME: bounded(name));
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

    fn garbage_collection_started(&self, generations: Generations<'_>, reason: GcReason) {
        if self.wants(Kind::GARBAGE_COLLECTION_STARTED) {
            let bits = generations.iter().fold(0_u64, |bits, generation| bits | 1 << generation.min(63));
            let reason = reason.to_string();
            record!(self, GARBAGE_COLLECTION_STARTED, GENERATIONS: bits, REASON: reason.as_str());
        }
    }

    fn garbage_collection_finished(&self) {
        self.record_live_objects();
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
        record!(self, OBJECT_ALLOCATED, OBJECT: object.address(), CLASS: self.bare(Tag::CLASS, class.as_raw()));
    }

    fn objects_allocated_by_class(&self, objects: ObjectsOfClass<'_>) {
        if self.wants(Kind::OBJECTS_ALLOCATED_BY_CLASS) {
            for (class, count) in objects.iter() {
                record!(self, OBJECTS_ALLOCATED_BY_CLASS, CLASS: self.bare(Tag::CLASS, class.as_raw()), COUNT: count);
            }
        }
    }

    fn object_references(&self, object: ObjectId<'_>, class: ClassId, references: &[ObjectId<'_>]) -> Result<()> {
        if let Some(live) = &self.live {
            live.count(class.as_raw());
        }
        record!(
            self,
            OBJECT_REFERENCES,
            OBJECT: object.address(),
            CLASS: self.bare(Tag::CLASS, class.as_raw()),
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
            let class = self.names.class_id_of(object).map_or(EntityRef::default(), |class| self.bare(Tag::CLASS, class.as_raw()));
            record!(self, HANDLE_CREATED, HANDLE: handle.as_raw(), OBJECT: object.address(), CLASS: class);
        }
    }

    fn exception_thrown(&self, exception: ObjectId<'_>) {
        if self.wants(Kind::EXCEPTION_THROWN) {
            let class = self.names.class_of(exception);
            record!(self, EXCEPTION_THROWN, OBJECT: exception.address(), CLASS: class);
        }
    }

    fn com_classic_vtable_created(&self, class: ClassId, _interface: &Guid, _vtable: usize, slots: u32) {
        record!(self, COM_CLASSIC_VTABLE_CREATED, CLASS: self.bare(Tag::CLASS, class.as_raw()), COUNT: slots);
    }

    fn com_classic_vtable_destroyed(&self, class: ClassId, _interface: &Guid, _vtable: usize) {
        record!(self, COM_CLASSIC_VTABLE_DESTROYED, CLASS: self.bare(Tag::CLASS, class.as_raw()));
    }

    fn get_assembly_references(&self, assembly_path: &str) {
        record!(self, GET_ASSEMBLY_REFERENCES, NAME: bounded(assembly_path));
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        record!(
            self,
            EVENT_PIPE_EVENT_DELIVERED,
            PROVIDER: self.bare(Tag::PROVIDER, event.provider.as_raw()),
            BYTES: event.data.len(),
        );
    }

    fn event_pipe_provider_created(&self, provider: EventPipeProviderId) {
        record!(self, EVENT_PIPE_PROVIDER_CREATED, PROVIDER: self.loaded(Tag::PROVIDER, provider.as_raw()));
    }
}

/// At most 256 bytes of a name that the program chose.
fn bounded(name: &str) -> &str {
    &name[..name.floor_char_boundary(256)]
}
