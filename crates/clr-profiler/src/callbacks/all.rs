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

/// Callbacks of the runtime to a profiler, with the profiler's answers: all notifications, each
/// with a default that does nothing.
///
/// Which of them are called is decided by the events of the [`Setup`](crate::Setup). All take
/// `&self`: the runtime calls from many threads at once, and goes on calling after
/// [`shutdown`](Self::shutdown), so the object is never freed. A panic in any of them is caught and
/// counted ([`panics_caught`](crate::panics_caught)); the program runs on.
///
/// Callbacks run on the program's threads. Some have stacks of 128 KiB: use little of the stack, at
/// most 16 KiB. Don't write to the standard output or error: they are the program's.
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
/// Status arguments: `Ok(())` when what was started succeeded, otherwise the runtime's error.
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait Callbacks: Send + Sync {
    /// The attach is complete: time to look at what had been loaded before.
    fn profiler_attach_complete(&self) {}

    /// The detach is complete: there is nothing to ask the runtime any more, and every query is
    /// refused from here on. The runtime waits in this callback for calls of it that other threads
    /// have begun. The library stays mapped all the same.
    fn profiler_detach_succeeded(&self) {}

    /// The runtime ends. Not called when the program crashes, is killed or fails fast. Hooks and
    /// callbacks go on, on other threads and even on this one.
    fn shutdown(&self) {}

    /// An application domain is being made; its name is not known yet.
    fn app_domain_creation_started(&self, app_domain: AppDomainId) {}
    /// An application domain was made, or not.
    fn app_domain_creation_finished(&self, app_domain: AppDomainId, status: Result<()>) {}
    /// An application domain is about to go.
    fn app_domain_shutdown_started(&self, app_domain: AppDomainId) {}
    /// An application domain is gone.
    fn app_domain_shutdown_finished(&self, app_domain: AppDomainId, status: Result<()>) {}

    /// An assembly is being loaded; nothing can be asked about it yet.
    fn assembly_load_started(&self, assembly: AssemblyId) {}
    /// An assembly was loaded, or not.
    fn assembly_load_finished(&self, assembly: AssemblyId, status: Result<()>) {}
    /// An assembly is about to go.
    fn assembly_unload_started(&self, assembly: AssemblyId) {}
    /// An assembly is gone; its identifier may be used again.
    fn assembly_unload_finished(&self, assembly: AssemblyId, status: Result<()>) {}

    /// A module is being loaded; nothing can be asked about it yet.
    fn module_load_started(&self, module: ModuleId) {}
    /// A module was loaded, or not. Its assembly may not be known yet, see
    /// [`module_attached_to_assembly`](Self::module_attached_to_assembly).
    fn module_load_finished(&self, module: ModuleId, status: Result<()>) {}
    /// A module is about to go. Don't ask the runtime about it here: some versions crash.
    fn module_unload_started(&self, module: ModuleId) {}
    /// A module is gone, with its types and functions; the identifiers of all of them may be used
    /// again.
    fn module_unload_finished(&self, module: ModuleId, status: Result<()>) {}
    /// A module has become part of an assembly: from here on both know each other.
    fn module_attached_to_assembly(&self, module: ModuleId, assembly: AssemblyId) {}

    /// A class is being loaded.
    fn class_load_started(&self, class: ClassId) {}
    /// A class was loaded, or not.
    fn class_load_finished(&self, class: ClassId, status: Result<()>) {}
    /// A class is about to go.
    fn class_unload_started(&self, class: ClassId) {}
    /// A class is gone.
    fn class_unload_finished(&self, class: ClassId, status: Result<()>) {}

    /// Declared by the interface; no runtime that this crate knows calls it.
    fn function_unload_started(&self, function: FunctionId) {}
    /// A method is about to be compiled on this thread. Loader locks may be held: don't block
    /// unless `is_safe_to_block`.
    fn jit_compilation_started(&self, function: FunctionId, is_safe_to_block: bool) {}
    /// A method was compiled, or not. Its code may already run on another thread.
    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, is_safe_to_block: bool) {}
    /// There may be precompiled code for a method: use it?
    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        true
    }
    /// Whether precompiled code was found. Not called where code was found and rejected, since it
    /// does not fit this processor or process: then the compilation of the method follows at once.
    fn jit_cached_function_search_finished(&self, function: FunctionId, result: JitCache) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn jit_function_pitched(&self, function: FunctionId) {}
    /// The compiler wants to put `callee` into `caller`.
    fn jit_inlining(&self, caller: FunctionId, callee: FunctionId) -> Inlining {
        Inlining::Allow
    }

    /// A method without metadata (an IL stub, a `DynamicMethod`) is about to be compiled.
    fn dynamic_method_jit_compilation_started(&self, function: FunctionId, is_safe_to_block: bool, il: DynamicIl<'_>) {}
    /// A method without metadata was compiled, or not.
    fn dynamic_method_jit_compilation_finished(
        &self,
        function: FunctionId,
        status: Result<()>,
        is_safe_to_block: bool,
    ) {
    }
    /// A method without metadata is gone; its identifier may be used again.
    fn dynamic_method_unloaded(&self, function: FunctionId) {}

    /// A method is about to be compiled again.
    fn rejit_compilation_started(&self, function: FunctionId, rejit: ReJitId, is_safe_to_block: bool) {}
    /// The runtime asks with which IL and flags a method shall be compiled again.
    ///
    /// # Errors
    /// With an error the method keeps its code.
    fn get_rejit_parameters(&self, module: ModuleId, method: Token, control: &FunctionControl) -> Result<()> {
        Ok(())
    }
    /// A method was compiled again, or not.
    fn rejit_compilation_finished(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        status: Result<()>,
        is_safe_to_block: bool,
    ) {
    }
    /// A method could not be compiled again.
    fn rejit_error(&self, module: ModuleId, method: Token, function: FunctionId, status: Result<()>) {}

    /// A managed thread exists. Its first hooks may have run before this.
    fn thread_created(&self, thread: ThreadId) {}
    /// A managed thread is gone. Missing where the program ends first.
    fn thread_destroyed(&self, thread: ThreadId) {}
    /// A managed thread runs on this thread of the system. May be said twice.
    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {}
    /// A thread got a name.
    fn thread_name_changed(&self, thread: ThreadId, name: &str) {}

    /// Native code calls managed code, or managed code that native code called returns. `None`: the
    /// runtime itself.
    fn unmanaged_to_managed_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {}
    /// Managed code calls native code, or native code that managed code called returns. `None`: the
    /// runtime itself.
    fn managed_to_unmanaged_transition(&self, function: Option<FunctionId>, reason: TransitionReason) {}

    /// The runtime begins to suspend all managed threads.
    fn runtime_suspend_started(&self, reason: SuspendReason) {}
    /// All managed threads stand still.
    fn runtime_suspend_finished(&self) {}
    /// The runtime gave the suspension up.
    fn runtime_suspend_aborted(&self) {}
    /// The runtime begins to let the threads run.
    fn runtime_resume_started(&self) {}
    /// The threads run again.
    fn runtime_resume_finished(&self) {}
    /// The calling thread is about to wait for the end of a suspension. May come without its
    /// counterpart.
    fn runtime_thread_suspended(&self, thread: ThreadId) {}
    /// The calling thread goes on.
    fn runtime_thread_resumed(&self, thread: ThreadId) {}

    /// A collection begins; objects are still where they were.
    fn garbage_collection_started(&self, generations: Generations<'_>, reason: GcReason) {}
    /// A collection ended; objects are where they will be.
    fn garbage_collection_finished(&self) {}
    /// Objects that a compacting collection moved. Several calls per collection.
    fn moved_references(&self, ranges: MovedRanges<'_>) {}
    /// Objects that a collection left in place. Several calls per collection.
    fn surviving_references(&self, ranges: SurvivingRanges<'_>) {}
    /// An object was allocated; its fields are still zero. Names may be asked for here, and this is
    /// the only place where classes of arrays are met first: no class load reports them. Ask about
    /// the object itself before, since it may be moved while a name is looked up.
    fn object_allocated(&self, object: ObjectId<'_>, class: ClassId) {}
    /// An object was allocated, for profilers that walk the stack themselves: `frame` is where the
    /// runtime's frames begin. This form is what the runtime calls; its default calls
    /// [`object_allocated`](Self::object_allocated).
    fn object_allocated_in(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
        self.object_allocated(object, class);
    }
    /// Numbers of objects of each class that were allocated since the last collection.
    fn objects_allocated_by_class(&self, objects: ObjectsOfClass<'_>) {}
    /// The references that one object holds, without their places:
    /// [`references_of`](crate::ProfilerInfo::references_of), asked here, gives those as well.
    ///
    /// # Errors
    /// With an error the runtime reports no more of them in this collection.
    fn object_references(&self, object: ObjectId<'_>, class: ClassId, references: &[ObjectId<'_>]) -> Result<()> {
        Ok(())
    }
    /// Objects held by roots, without their kind. [`root_references2`](Self::root_references2) says
    /// more.
    fn root_references(&self, roots: &[ObjectId<'_>]) {}
    /// Objects held by roots, with kind, flags and the root's own identifier. Static fields are no
    /// roots of their own: the runtime keeps their objects in arrays that handles hold.
    /// [`NameCache::static_fields`](crate::NameCache::static_fields) says which element belongs to
    /// which field.
    fn root_references2(&self, roots: Roots<'_>) {}
    /// Pairs of a conditional weak table: the value lives as long as the key.
    fn conditional_weak_table_element_references(&self, elements: WeakTableElements<'_>) {}
    /// An object waits for its finalizer. `critical`: its finalizer runs even when others fail.
    fn finalizable_object_queued(&self, object: ObjectId<'_>, critical: bool) {}
    /// A GC handle was made.
    fn handle_created(&self, handle: GcHandleId, object: ObjectId<'_>) {}
    /// A GC handle was freed.
    fn handle_destroyed(&self, handle: GcHandleId) {}

    /// An exception was thrown: first chance.
    fn exception_thrown(&self, exception: ObjectId<'_>) {}
    /// An exception was thrown, for profilers that walk the stack themselves: `frame` is where the
    /// runtime's frames begin. This form is what the runtime calls; its default calls
    /// [`exception_thrown`](Self::exception_thrown).
    fn exception_thrown_in(&self, exception: ObjectId<'_>, frame: NativeFrame) {
        self.exception_thrown(exception);
    }
    /// First pass: is there a handler in this function?
    fn exception_search_function_enter(&self, function: FunctionId) {}
    /// First pass: the search in the function is over.
    fn exception_search_function_leave(&self) {}
    /// First pass: a filter of this function is about to run, while the frames that threw are
    /// alive.
    fn exception_search_filter_enter(&self, function: FunctionId) {}
    /// First pass: the filter has answered.
    fn exception_search_filter_leave(&self) {}
    /// First pass: this function will catch.
    fn exception_search_catcher_found(&self, function: FunctionId) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn exception_os_handler_enter(&self) {}
    /// Declared by the interface; no runtime that this crate knows calls it.
    fn exception_os_handler_leave(&self) {}
    /// Second pass: a frame of this function is about to be unwound. .NET 9 and 10 say it twice for
    /// a function whose finally, catch or filter block runs.
    fn exception_unwind_function_enter(&self, function: FunctionId) {}
    /// Second pass: the frame is gone.
    fn exception_unwind_function_leave(&self) {}
    /// Second pass: a finally or fault block of this function is about to run.
    fn exception_unwind_finally_enter(&self, function: FunctionId) {}
    /// Second pass: the finally or fault block is over.
    fn exception_unwind_finally_leave(&self) {}
    /// A catch block of this function is about to run.
    fn exception_catcher_enter(&self, function: FunctionId, exception: ObjectId<'_>) {}
    /// The catch block is over.
    fn exception_catcher_leave(&self) {}
    /// The runtime itself will catch.
    fn exception_clr_catcher_found(&self) {}
    /// The runtime itself catches.
    fn exception_clr_catcher_execute(&self) {}

    /// Interfaces of a class were laid out for COM. On Windows only; the flag is
    /// [`Events::COM_WRAPPERS`](crate::Events::COM_WRAPPERS).
    fn com_classic_vtable_created(&self, class: ClassId, interface: &Guid, vtable: usize, slots: u32) {}
    /// Interfaces of a class laid out for COM are gone.
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

    /// The runtime asks which assemblies changed IL of this one will refer to. Every profiler is
    /// asked, whatever its events; .NET 8 to 10 do not use an answer, so none can be given.
    fn get_assembly_references(&self, assembly_path: &str) {}

    /// The symbols of a module in memory have changed.
    fn module_in_memory_symbols_updated(&self, module: ModuleId) {}
    /// An event of an EventPipe session of this profiler, on the thread that raised it.
    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {}
    /// An EventPipe provider exists.
    fn event_pipe_provider_created(&self, provider: EventPipeProviderId) {}
}
