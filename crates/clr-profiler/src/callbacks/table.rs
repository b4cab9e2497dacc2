//! The table of callbacks. Code that exists for each callback is generated from this table, or a
//! test compares the code with the table.

/// Calls a macro with all methods of [`Callbacks`](crate::Callbacks), in the order of the trait.
/// Leaves out `exception_thrown_in` and `object_allocated_in`, the second forms of
/// `exception_thrown` and `object_allocated`.
///
/// An entry is `MODE RUNTIME_NAME as NAME(ARGUMENT: TYPE, ...);` or, if the callback returns an
/// answer, `MODE RUNTIME_NAME as NAME(...) -> TYPE = DEFAULT;`. The runtime's name is the name of
/// the method of `ICorProfilerCallback`. The mode says whether the callback may query names.
/// `asks`: the callback may query the runtime for names. `knows`: it may not, because a collection
/// runs or the item is only partly loaded or created. `unloads`: as `knows`, and the names of the
/// argument must be [forgotten], since the runtime will reuse the identifier.
///
/// ```
/// use std::sync::Mutex;
/// use clr_profiler::callbacks::Argument;
/// use clr_profiler::{Callbacks, Events, Profiler, ProfilerInfo, Result, Setup};
///
/// #[derive(Default)]
/// struct Names(Mutex<Vec<&'static str>>);
///
/// macro_rules! remember {
///     ($($mode:ident $runtime_name:ident as
///        $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {$(
///         fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
///             let _arguments: &[(&str, &dyn Argument)] = &[$((stringify!($argument), &$argument)),*];
///             self.0.lock().unwrap().push(stringify!($runtime_name));
///             $($default)?
///         }
///     )*};
/// }
///
/// impl Callbacks for Names {
///     clr_profiler::for_each_callback!(remember);
/// }
///
/// impl Profiler for Names {
///     fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         Ok((Self::default(), Setup::new(Events::CLASS_LOADS)))
///     }
/// }
/// ```
///
/// [forgotten]: crate::callbacks::Argument::forget
#[macro_export]
macro_rules! for_each_callback {
    ($macro:ident) => {
        $crate::__callbacks! { {$macro} {} }
    };
}

/// The entries, given to `$macro` after `$first`.
#[doc(hidden)]
#[macro_export]
macro_rules! __callbacks {
    ({$($macro:tt)*} {$($first:tt)*}) => {
        $($macro)*! {
            $($first)*
            asks ProfilerAttachComplete as profiler_attach_complete();
            asks ProfilerDetachSucceeded as profiler_detach_succeeded();
            asks Shutdown as shutdown();
            knows AppDomainCreationStarted as app_domain_creation_started(app_domain: $crate::AppDomainId);
            asks AppDomainCreationFinished as app_domain_creation_finished(app_domain: $crate::AppDomainId, status: $crate::Result<()>);
            asks AppDomainShutdownStarted as app_domain_shutdown_started(app_domain: $crate::AppDomainId);
            knows AppDomainShutdownFinished as app_domain_shutdown_finished(app_domain: $crate::AppDomainId, status: $crate::Result<()>);
            knows AssemblyLoadStarted as assembly_load_started(assembly: $crate::AssemblyId);
            asks AssemblyLoadFinished as assembly_load_finished(assembly: $crate::AssemblyId, status: $crate::Result<()>);
            knows AssemblyUnloadStarted as assembly_unload_started(assembly: $crate::AssemblyId);
            knows AssemblyUnloadFinished as assembly_unload_finished(assembly: $crate::AssemblyId, status: $crate::Result<()>);
            knows ModuleLoadStarted as module_load_started(module: $crate::ModuleId);
            asks ModuleLoadFinished as module_load_finished(module: $crate::ModuleId, status: $crate::Result<()>);
            unloads ModuleUnloadStarted as module_unload_started(module: $crate::ModuleId);
            knows ModuleUnloadFinished as module_unload_finished(module: $crate::ModuleId, status: $crate::Result<()>);
            asks ModuleAttachedToAssembly as module_attached_to_assembly(module: $crate::ModuleId, assembly: $crate::AssemblyId);
            knows ClassLoadStarted as class_load_started(class: $crate::ClassId);
            asks ClassLoadFinished as class_load_finished(class: $crate::ClassId, status: $crate::Result<()>);
            knows ClassUnloadStarted as class_unload_started(class: $crate::ClassId);
            knows ClassUnloadFinished as class_unload_finished(class: $crate::ClassId, status: $crate::Result<()>);
            knows FunctionUnloadStarted as function_unload_started(function: $crate::FunctionId);
            asks JITCompilationStarted as jit_compilation_started(function: $crate::FunctionId, is_safe_to_block: bool);
            asks JITCompilationFinished as jit_compilation_finished(function: $crate::FunctionId, status: $crate::Result<()>, is_safe_to_block: bool);
            asks JITCachedFunctionSearchStarted as jit_cached_function_search_started(function: $crate::FunctionId) -> bool = true;
            asks JITCachedFunctionSearchFinished as jit_cached_function_search_finished(function: $crate::FunctionId, result: $crate::callback_args::JitCache);
            knows JITFunctionPitched as jit_function_pitched(function: $crate::FunctionId);
            asks JITInlining as jit_inlining(caller: $crate::FunctionId, callee: $crate::FunctionId) -> $crate::callback_args::Inlining = $crate::callback_args::Inlining::Allow;
            asks DynamicMethodJITCompilationStarted as dynamic_method_jit_compilation_started(function: $crate::FunctionId, is_safe_to_block: bool, il: $crate::callback_args::DynamicIl<'_>);
            asks DynamicMethodJITCompilationFinished as dynamic_method_jit_compilation_finished(function: $crate::FunctionId, status: $crate::Result<()>, is_safe_to_block: bool);
            unloads DynamicMethodUnloaded as dynamic_method_unloaded(function: $crate::FunctionId);
            asks ReJITCompilationStarted as rejit_compilation_started(function: $crate::FunctionId, rejit: $crate::ReJitId, is_safe_to_block: bool);
            asks GetReJITParameters as get_rejit_parameters(module: $crate::ModuleId, method: $crate::Token, control: &$crate::callback_args::FunctionControl<'_>) -> $crate::Result<()> = Ok(());
            asks ReJITCompilationFinished as rejit_compilation_finished(function: $crate::FunctionId, rejit: $crate::ReJitId, status: $crate::Result<()>, is_safe_to_block: bool);
            asks ReJITError as rejit_error(module: $crate::ModuleId, method: $crate::Token, function: $crate::FunctionId, status: $crate::Result<()>);
            knows ThreadCreated as thread_created(thread: $crate::ThreadId);
            knows ThreadDestroyed as thread_destroyed(thread: $crate::ThreadId);
            knows ThreadAssignedToOSThread as thread_assigned_to_os_thread(thread: $crate::ThreadId, os_thread: u32);
            knows ThreadNameChanged as thread_name_changed(thread: $crate::ThreadId, name: &str);
            asks UnmanagedToManagedTransition as unmanaged_to_managed_transition(function: Option<$crate::FunctionId>, reason: $crate::callback_args::TransitionReason);
            asks ManagedToUnmanagedTransition as managed_to_unmanaged_transition(function: Option<$crate::FunctionId>, reason: $crate::callback_args::TransitionReason);
            knows RuntimeSuspendStarted as runtime_suspend_started(reason: $crate::callback_args::SuspendReason);
            knows RuntimeSuspendFinished as runtime_suspend_finished();
            knows RuntimeSuspendAborted as runtime_suspend_aborted();
            knows RuntimeResumeStarted as runtime_resume_started();
            knows RuntimeResumeFinished as runtime_resume_finished();
            knows RuntimeThreadSuspended as runtime_thread_suspended(thread: $crate::ThreadId);
            knows RuntimeThreadResumed as runtime_thread_resumed(thread: $crate::ThreadId);
            knows GarbageCollectionStarted as garbage_collection_started(generations: $crate::callback_args::Generations<'_>, reason: $crate::callback_args::GcReason);
            knows GarbageCollectionFinished as garbage_collection_finished();
            knows MovedReferences2 as moved_references(ranges: $crate::callback_args::MovedRanges<'_>);
            knows SurvivingReferences2 as surviving_references(ranges: $crate::callback_args::SurvivingRanges<'_>);
            asks ObjectAllocated as object_allocated(object: $crate::ObjectId<'_>, class: $crate::ClassId);
            knows ObjectsAllocatedByClass as objects_allocated_by_class(objects: $crate::callback_args::ObjectsOfClass<'_>);
            knows ObjectReferences as object_references(object: $crate::ObjectId<'_>, class: $crate::ClassId, references: &[$crate::ObjectId<'_>]) -> $crate::Result<()> = Ok(());
            knows RootReferences as root_references(roots: &[$crate::ObjectId<'_>]);
            knows RootReferences2 as root_references2(roots: $crate::callback_args::Roots<'_>);
            knows ConditionalWeakTableElementReferences as conditional_weak_table_element_references(elements: $crate::callback_args::WeakTableElements<'_>);
            knows FinalizeableObjectQueued as finalizable_object_queued(object: $crate::ObjectId<'_>, critical: bool);
            knows HandleCreated as handle_created(handle: $crate::GcHandleId, object: $crate::ObjectId<'_>);
            knows HandleDestroyed as handle_destroyed(handle: $crate::GcHandleId);
            asks ExceptionThrown as exception_thrown(exception: $crate::ObjectId<'_>);
            asks ExceptionSearchFunctionEnter as exception_search_function_enter(function: $crate::FunctionId);
            knows ExceptionSearchFunctionLeave as exception_search_function_leave();
            asks ExceptionSearchFilterEnter as exception_search_filter_enter(function: $crate::FunctionId);
            knows ExceptionSearchFilterLeave as exception_search_filter_leave();
            asks ExceptionSearchCatcherFound as exception_search_catcher_found(function: $crate::FunctionId);
            knows ExceptionOSHandlerEnter as exception_os_handler_enter();
            knows ExceptionOSHandlerLeave as exception_os_handler_leave();
            asks ExceptionUnwindFunctionEnter as exception_unwind_function_enter(function: $crate::FunctionId);
            knows ExceptionUnwindFunctionLeave as exception_unwind_function_leave();
            asks ExceptionUnwindFinallyEnter as exception_unwind_finally_enter(function: $crate::FunctionId);
            knows ExceptionUnwindFinallyLeave as exception_unwind_finally_leave();
            asks ExceptionCatcherEnter as exception_catcher_enter(function: $crate::FunctionId, exception: $crate::ObjectId<'_>);
            knows ExceptionCatcherLeave as exception_catcher_leave();
            knows ExceptionCLRCatcherFound as exception_clr_catcher_found();
            knows ExceptionCLRCatcherExecute as exception_clr_catcher_execute();
            knows COMClassicVTableCreated as com_classic_vtable_created(class: $crate::ClassId, interface: &$crate::Guid, vtable: usize, slots: u32);
            knows COMClassicVTableDestroyed as com_classic_vtable_destroyed(class: $crate::ClassId, interface: &$crate::Guid, vtable: usize);
            knows RemotingClientInvocationStarted as remoting_client_invocation_started();
            knows RemotingClientSendingMessage as remoting_client_sending_message(cookie: &$crate::Guid, is_async: bool);
            knows RemotingClientReceivingReply as remoting_client_receiving_reply(cookie: &$crate::Guid, is_async: bool);
            knows RemotingClientInvocationFinished as remoting_client_invocation_finished();
            knows RemotingServerReceivingMessage as remoting_server_receiving_message(cookie: &$crate::Guid, is_async: bool);
            knows RemotingServerInvocationStarted as remoting_server_invocation_started();
            knows RemotingServerInvocationReturned as remoting_server_invocation_returned();
            knows RemotingServerSendingReply as remoting_server_sending_reply(cookie: &$crate::Guid, is_async: bool);
            knows GetAssemblyReferences as get_assembly_references(assembly_path: &str);
            asks ModuleInMemorySymbolsUpdated as module_in_memory_symbols_updated(module: $crate::ModuleId);
            knows EventPipeEventDelivered as event_pipe_event_delivered(event: &$crate::callback_args::EventPipeEvent<'_>);
            knows EventPipeProviderCreated as event_pipe_provider_created(provider: $crate::EventPipeProviderId);
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The method names of the trait, from its source.
    fn methods_of_the_trait() -> Vec<&'static str> {
        let source = include_str!("all.rs");
        let (_, body) = source.split_once("pub trait Callbacks").unwrap();
        body.lines().filter_map(|line| line.strip_prefix("    fn ")?.split('(').next()).collect()
    }

    macro_rules! names {
        ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
            [$((stringify!($runtime_name), stringify!($name))),*]
        };
    }

    #[test]
    fn every_method_of_the_trait_is_listed_in_its_order() {
        let mut expected = methods_of_the_trait();
        // Other forms of `exception_thrown` and `object_allocated`, which call these by default.
        expected.retain(|name| !matches!(*name, "exception_thrown_in" | "object_allocated_in"));
        assert_eq!(for_each_callback!(names).map(|(_, name)| name)[..], expected);
        assert!(expected.len() > 70, "{expected:?}");
    }

    #[test]
    fn every_method_of_the_interface_is_listed_by_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../clr-profiler-sys/src/callback/");
        let source: String =
            ["v1.rs", "v2_to_v11.rs"].map(|file| std::fs::read_to_string(folder.to_owned() + file).unwrap()).concat();
        let mut declared: BTreeSet<&str> =
            source.split("pub fn ").skip(1).filter_map(|rest| rest.split('(').next()).collect();
        // Methods that the runtime calls before the profiler runs, and two methods that later
        // levels replaced.
        for name in
            ["Initialize", "InitializeForAttach", "LoadAsNotificationOnly", "MovedReferences", "SurvivingReferences"]
        {
            assert!(declared.remove(name), "{name}");
        }
        assert_eq!(BTreeSet::from(for_each_callback!(names).map(|(runtime_name, _)| runtime_name)), declared);
    }
}
