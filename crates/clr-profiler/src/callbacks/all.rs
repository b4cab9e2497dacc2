//! The trait of all callbacks.

use crate::callback_args::{
    DynamicIl, EventPipeEvent, FunctionControl, GcReason, Generations, Inlining, JitCache, MovedRanges, ObjectsOfClass,
    Roots, SurvivingRanges, SuspendReason, TransitionReason, WeakTableElements,
};
use crate::current_stack::NativeFrame;
use crate::{
    AppDomainId, AssemblyId, ClassId, EventPipeProviderId, FunctionId, GcHandleId, Guid, ModuleId, ObjectId, ReJitId,
    Result, ThreadId, Token,
};

/// Callbacks of the runtime to a profiler. Each has a default that does nothing.
///
/// The events in the [`Setup`](crate::Setup) determine which callbacks are called. All take
/// `&self`: the runtime calls them from many threads at once, and also after
/// [`shutdown`](Self::shutdown), so the object is never freed. The framework catches and counts a
/// panic in a callback ([`panics_caught`](crate::panics_caught)); the program continues.
///
/// Callbacks run on the program's threads. Some of these threads have stacks of 128 KiB, so use at
/// most 16 KiB of stack. Don't write to standard output or standard error, which belong to the
/// program.
///
/// ```
/// use clr_profiler::{Callbacks, ModuleId, Result};
///
/// #[derive(Default)]
/// struct Modules(std::sync::atomic::AtomicUsize);
///
/// impl Callbacks for Modules {
///     fn module_load_finished(&self, _module: ModuleId, status: Result<()>) {
///         if status.is_ok() {
///             self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         }
///     }
/// }
/// ```
///
/// Status arguments are `Ok(())` if the operation succeeded, otherwise the runtime's error.
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait Callbacks: Send + Sync {
    /// The attach is complete. Enumerate here what was loaded before the attach.
    fn profiler_attach_complete(&self) {}

    /// The detach is complete. From here on every query is refused. Before the callback returns to
    /// the runtime, the framework waits for queries that other threads have begun. The library
    /// stays mapped.
    fn profiler_detach_succeeded(&self) {}

    /// The runtime ends. Not called when the program crashes, is killed or fails fast. Hooks and
    /// callbacks may still follow, on other threads and even on this one.
    fn shutdown(&self) {}

    /// An application domain is being created; its name is not known yet.
    fn app_domain_creation_started(&self, app_domain: AppDomainId) {}
    /// An application domain was created, or creation failed.
    fn app_domain_creation_finished(&self, app_domain: AppDomainId, status: Result<()>) {}
    /// An application domain is about to be unloaded.
    fn app_domain_shutdown_started(&self, app_domain: AppDomainId) {}
    /// An application domain was unloaded.
    fn app_domain_shutdown_finished(&self, app_domain: AppDomainId, status: Result<()>) {}

    /// An assembly is being loaded; it can't be queried yet.
    fn assembly_load_started(&self, assembly: AssemblyId) {}
    /// An assembly was loaded, or loading failed.
    fn assembly_load_finished(&self, assembly: AssemblyId, status: Result<()>) {}
    /// An assembly is about to be unloaded.
    fn assembly_unload_started(&self, assembly: AssemblyId) {}
    /// An assembly was unloaded; its identifier may be reused.
    fn assembly_unload_finished(&self, assembly: AssemblyId, status: Result<()>) {}

    /// A module is being loaded; it can't be queried yet.
    fn module_load_started(&self, module: ModuleId) {}
    /// A module was loaded, or loading failed. Its assembly may not be known yet, see
    /// [`module_attached_to_assembly`](Self::module_attached_to_assembly).
    fn module_load_finished(&self, module: ModuleId, status: Result<()>) {}
    /// A module is about to be unloaded. Don't query the module here: some versions of the runtime
    /// crash.
    fn module_unload_started(&self, module: ModuleId) {}
    /// A module was unloaded, with its types and functions. All their identifiers may be reused.
    fn module_unload_finished(&self, module: ModuleId, status: Result<()>) {}
    /// A module was attached to an assembly. From here on queries return the module's assembly and
    /// the assembly's module.
    fn module_attached_to_assembly(&self, module: ModuleId, assembly: AssemblyId) {}

    /// A class is being loaded.
    fn class_load_started(&self, class: ClassId) {}
    /// A class was loaded, or loading failed.
    fn class_load_finished(&self, class: ClassId, status: Result<()>) {}
    /// A class is about to be unloaded.
    fn class_unload_started(&self, class: ClassId) {}
    /// A class was unloaded.
    fn class_unload_finished(&self, class: ClassId, status: Result<()>) {}

    /// Declared by the interface; no runtime that this crate knows calls it.
    fn function_unload_started(&self, function: FunctionId) {}
    /// A method is about to be compiled on this thread. Loader locks may be held: don't block
    /// unless `is_safe_to_block`.
    fn jit_compilation_started(&self, function: FunctionId, is_safe_to_block: bool) {}
    /// A method was compiled, or compilation failed. Its code may already run on another thread.
    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, is_safe_to_block: bool) {}
    /// There may be precompiled code for a method. Returns whether the runtime may use it.
    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        true
    }
    /// The search for precompiled code ended with `result`. Not called if code was found but
    /// rejected because it does not fit this processor or process; then the compilation of the
    /// method follows immediately.
    fn jit_cached_function_search_finished(&self, function: FunctionId, result: JitCache) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn jit_function_pitched(&self, function: FunctionId) {}
    /// The compiler wants to inline `callee` into `caller`.
    fn jit_inlining(&self, caller: FunctionId, callee: FunctionId) -> Inlining {
        Inlining::Allow
    }

    /// A method without metadata (an IL stub, a `DynamicMethod`) is about to be compiled.
    fn dynamic_method_jit_compilation_started(&self, function: FunctionId, is_safe_to_block: bool, il: DynamicIl<'_>) {}
    /// A method without metadata was compiled, or compilation failed.
    fn dynamic_method_jit_compilation_finished(
        &self,
        function: FunctionId,
        status: Result<()>,
        is_safe_to_block: bool,
    ) {
    }
    /// A method without metadata was unloaded; its identifier may be reused.
    fn dynamic_method_unloaded(&self, function: FunctionId) {}

    /// A method is about to be recompiled.
    fn rejit_compilation_started(&self, function: FunctionId, rejit: ReJitId, is_safe_to_block: bool) {}
    /// The runtime requests the IL and flags for the recompilation of a method.
    ///
    /// # Errors
    /// If the callback returns an error, the method keeps its code.
    fn get_rejit_parameters(&self, module: ModuleId, method: Token, control: &FunctionControl) -> Result<()> {
        Ok(())
    }
    /// A method was recompiled, or recompilation failed.
    fn rejit_compilation_finished(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        status: Result<()>,
        is_safe_to_block: bool,
    ) {
    }
    /// A method could not be recompiled.
    fn rejit_error(&self, module: ModuleId, method: Token, function: FunctionId, status: Result<()>) {}

    /// A managed thread was created. Its first hooks may have run before this callback.
    fn thread_created(&self, thread: ThreadId) {}
    /// A managed thread was destroyed. Not called if the program ends first.
    fn thread_destroyed(&self, thread: ThreadId) {}
    /// A managed thread runs on this thread of the operating system. May be called twice.
    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {}
    /// A thread got a name.
    fn thread_name_changed(&self, thread: ThreadId, name: &str) {}

    /// Native code calls managed code, or managed code returns to native code. `None` means the
    /// runtime itself.
    fn unmanaged_to_managed_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {}
    /// Managed code calls native code, or native code returns to managed code. `None` means the
    /// runtime itself.
    fn managed_to_unmanaged_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {}

    /// The runtime begins to suspend all managed threads.
    fn runtime_suspend_started(&self, reason: SuspendReason) {}
    /// All managed threads are suspended.
    fn runtime_suspend_finished(&self) {}
    /// The runtime aborted the suspension.
    fn runtime_suspend_aborted(&self) {}
    /// The runtime begins to resume the threads.
    fn runtime_resume_started(&self) {}
    /// The threads run again.
    fn runtime_resume_finished(&self) {}
    /// The calling thread is about to wait for the end of a suspension. The matching
    /// [`runtime_thread_resumed`](Self::runtime_thread_resumed) may be missing.
    fn runtime_thread_suspended(&self, thread: ThreadId) {}
    /// The calling thread continues.
    fn runtime_thread_resumed(&self, thread: ThreadId) {}

    /// A collection begins; no object has moved yet.
    fn garbage_collection_started(&self, generations: Generations<'_>, reason: GcReason) {}
    /// A collection ended; all objects have their final addresses.
    fn garbage_collection_finished(&self) {}
    /// Objects that a compacting collection moved. Several calls per collection.
    fn moved_references(&self, ranges: MovedRanges<'_>) {}
    /// Objects that a collection left in place. Several calls per collection.
    fn surviving_references(&self, ranges: SurvivingRanges<'_>) {}
    /// An object was allocated; its fields are still zero. Names may be queried here. For classes
    /// of arrays this is the first notification: class load callbacks don't report them. Query the
    /// object itself before any name, because a name query may move the object.
    fn object_allocated(&self, object: ObjectId<'_>, class: ClassId) {}
    /// The form of [`object_allocated`](Self::object_allocated) for profilers that walk the stack
    /// themselves: `frame` is the beginning of the runtime's frames. The runtime calls this form,
    /// and its default implementation calls `object_allocated`.
    fn object_allocated_in(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
        self.object_allocated(object, class);
    }
    /// Numbers of objects of each class that were allocated since the last collection.
    fn objects_allocated_by_class(&self, objects: ObjectsOfClass<'_>) {}
    /// The references that one object holds, without their offsets. A call of
    /// [`references_of`](crate::ProfilerInfo::references_of) here also returns the offsets.
    ///
    /// # Errors
    /// If the callback returns an error, the runtime reports no more references in this collection.
    fn object_references(&self, object: ObjectId<'_>, class: ClassId, references: &[ObjectId<'_>]) -> Result<()> {
        Ok(())
    }
    /// Objects held by roots, without the roots' kind. [`root_references2`](Self::root_references2)
    /// has more information.
    fn root_references(&self, roots: &[ObjectId<'_>]) {}
    /// Objects held by roots, with the kind, flags and identifier of each root. Static fields are
    /// not separate roots: the runtime keeps their objects in arrays, which handles hold.
    /// [`NameCache::static_fields`](crate::NameCache::static_fields) maps array elements to fields.
    fn root_references2(&self, roots: Roots<'_>) {}
    /// Pairs of a conditional weak table: the value lives as long as the key.
    fn conditional_weak_table_element_references(&self, elements: WeakTableElements<'_>) {}
    /// An object waits for its finalizer. `critical` means that the finalizer runs even if others
    /// fail.
    fn finalizable_object_queued(&self, object: ObjectId<'_>, critical: bool) {}
    /// A GC handle was created.
    fn handle_created(&self, handle: GcHandleId, object: ObjectId<'_>) {}
    /// A GC handle was freed.
    fn handle_destroyed(&self, handle: GcHandleId) {}

    /// An exception was thrown: first chance.
    fn exception_thrown(&self, exception: ObjectId<'_>) {}
    /// The form of [`exception_thrown`](Self::exception_thrown) for profilers that walk the stack
    /// themselves: `frame` is the beginning of the runtime's frames. The runtime calls this form,
    /// and its default implementation calls `exception_thrown`.
    fn exception_thrown_in(&self, exception: ObjectId<'_>, frame: NativeFrame) {
        self.exception_thrown(exception);
    }
    /// First pass: the search for a handler enters this function.
    fn exception_search_function_enter(&self, function: FunctionId) {}
    /// First pass: the search leaves the function.
    fn exception_search_function_leave(&self) {}
    /// First pass: a filter of this function is about to run. The frames that threw are still on
    /// the stack.
    fn exception_search_filter_enter(&self, function: FunctionId) {}
    /// First pass: the filter has returned.
    fn exception_search_filter_leave(&self) {}
    /// First pass: this function will catch the exception.
    fn exception_search_catcher_found(&self, function: FunctionId) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn exception_os_handler_enter(&self) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn exception_os_handler_leave(&self) {}
    /// Second pass: a frame of this function is about to be unwound. .NET 9 and 10 call this twice
    /// for a function whose finally, catch or filter block runs.
    fn exception_unwind_function_enter(&self, function: FunctionId) {}
    /// Second pass: the frame was unwound.
    fn exception_unwind_function_leave(&self) {}
    /// Second pass: a finally or fault block of this function is about to run.
    fn exception_unwind_finally_enter(&self, function: FunctionId) {}
    /// Second pass: the finally or fault block is over.
    fn exception_unwind_finally_leave(&self) {}
    /// A catch block of this function is about to run.
    fn exception_catcher_enter(&self, function: FunctionId, exception: ObjectId<'_>) {}
    /// The catch block is over.
    fn exception_catcher_leave(&self) {}
    /// The runtime itself will catch the exception.
    fn exception_clr_catcher_found(&self) {}
    /// The runtime itself catches the exception.
    fn exception_clr_catcher_execute(&self) {}

    /// A COM function table for an interface of a class was created. On Windows only; the flag is
    /// [`Events::COM_WRAPPERS`](crate::Events::COM_WRAPPERS).
    fn com_classic_vtable_created(&self, class: ClassId, interface: &Guid, vtable: usize, slots: u32) {}
    /// A COM function table for an interface of a class was destroyed.
    fn com_classic_vtable_destroyed(&self, class: ClassId, interface: &Guid, vtable: usize) {}

    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_client_invocation_started(&self) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_client_sending_message(&self, cookie: &Guid, is_async: bool) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_client_receiving_reply(&self, cookie: &Guid, is_async: bool) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_client_invocation_finished(&self) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_server_receiving_message(&self, cookie: &Guid, is_async: bool) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_server_invocation_started(&self) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_server_invocation_returned(&self) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn remoting_server_sending_reply(&self, cookie: &Guid, is_async: bool) {}

    /// The runtime asks for the assembly references that changed IL of this assembly will need. It
    /// calls every profiler, independently of its events. .NET 8 to 10 do not use an answer, so the
    /// callback has none.
    fn get_assembly_references(&self, assembly_path: &str) {}

    /// The symbols of a module in memory have changed.
    fn module_in_memory_symbols_updated(&self, module: ModuleId) {}
    /// An event of an EventPipe session of this profiler, on the thread that raised it.
    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {}
    /// An EventPipe provider was created.
    fn event_pipe_provider_created(&self, provider: EventPipeProviderId) {}
}
