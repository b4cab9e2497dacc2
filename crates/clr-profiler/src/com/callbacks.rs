//! What the runtime calls, first interface level: each method is the profiler's own behind the panic boundary.

use std::ffi::c_void;

use clr_profiler_sys::callback::*;
use clr_profiler_sys::enums::{COR_PRF_JIT_CACHE, COR_PRF_SUSPEND_REASON, COR_PRF_TRANSITION_REASON};
use windows_core::{BOOL, GUID, HRESULT};

use super::object::{Callbacks_Impl, S_OK, status};
use super::slices::{objects, slice};
use super::start;
use crate::boundary::guard;
use crate::call_stacks::Block;
use crate::notice::{Inlining, JitCache, ObjectsOfClass, SuspendReason, TransitionReason};
use crate::{AppDomainId, AssemblyId, ClassId, FunctionId, ModuleId, NativeFrame, ObjectId, ThreadId};

/// # Safety
/// `answer` must be null or valid for a write.
unsafe fn answer(answer: *mut BOOL, value: bool) {
    if !answer.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { *answer = value.into() };
    }
}

/// # Safety
/// `id` must be null or valid for a read.
unsafe fn guid(id: *const GUID) -> GUID {
    // SAFETY: the caller vouches for it.
    unsafe { id.as_ref() }.copied().unwrap_or_default()
}

impl ICorProfilerCallback_Impl for Callbacks_Impl {
    unsafe fn Initialize(&self, info: *mut c_void) -> HRESULT {
        // SAFETY: the runtime passes its information interface.
        unsafe { start::initialize(self, info, None) }
    }

    unsafe fn Shutdown(&self) -> HRESULT {
        let answer = self.tell(|p| p.shutdown());
        crate::signs::give_end();
        answer
    }

    unsafe fn AppDomainCreationStarted(&self, app_domain_id: usize) -> HRESULT {
        self.tell(|p| p.app_domain_creation_started(AppDomainId(app_domain_id)))
    }

    unsafe fn AppDomainCreationFinished(&self, app_domain_id: usize, hr_status: HRESULT) -> HRESULT {
        self.tell(|p| {
            p.app_domain_creation_finished(AppDomainId(app_domain_id), status(hr_status, "application domain creation"))
        })
    }

    unsafe fn AppDomainShutdownStarted(&self, app_domain_id: usize) -> HRESULT {
        self.tell(|p| p.app_domain_shutdown_started(AppDomainId(app_domain_id)))
    }

    unsafe fn AppDomainShutdownFinished(&self, app_domain_id: usize, hr_status: HRESULT) -> HRESULT {
        self.tell(|p| {
            p.app_domain_shutdown_finished(AppDomainId(app_domain_id), status(hr_status, "application domain shutdown"))
        })
    }

    unsafe fn AssemblyLoadStarted(&self, assembly_id: usize) -> HRESULT {
        self.tell(|p| p.assembly_load_started(AssemblyId(assembly_id)))
    }

    unsafe fn AssemblyLoadFinished(&self, assembly_id: usize, hr_status: HRESULT) -> HRESULT {
        self.tell(|p| p.assembly_load_finished(AssemblyId(assembly_id), status(hr_status, "assembly load")))
    }

    unsafe fn AssemblyUnloadStarted(&self, assembly_id: usize) -> HRESULT {
        self.tell(|p| p.assembly_unload_started(AssemblyId(assembly_id)))
    }

    unsafe fn AssemblyUnloadFinished(&self, assembly_id: usize, hr_status: HRESULT) -> HRESULT {
        self.tell(|p| p.assembly_unload_finished(AssemblyId(assembly_id), status(hr_status, "assembly unload")))
    }

    unsafe fn ModuleLoadStarted(&self, module_id: usize) -> HRESULT {
        self.tell(|p| p.module_load_started(ModuleId(module_id)))
    }

    unsafe fn ModuleLoadFinished(&self, module_id: usize, hr_status: HRESULT) -> HRESULT {
        self.tell(|p| p.module_load_finished(ModuleId(module_id), status(hr_status, "module load")))
    }

    unsafe fn ModuleUnloadStarted(&self, module_id: usize) -> HRESULT {
        self.forget(|mapper| mapper.module_unloaded(ModuleId(module_id)));
        self.tell(|p| p.module_unload_started(ModuleId(module_id)))
    }

    unsafe fn ModuleUnloadFinished(&self, module_id: usize, hr_status: HRESULT) -> HRESULT {
        // Once more: somebody may have asked for a name meanwhile.
        self.forget(|mapper| mapper.module_unloaded(ModuleId(module_id)));
        self.tell(|p| p.module_unload_finished(ModuleId(module_id), status(hr_status, "module unload")))
    }

    unsafe fn ModuleAttachedToAssembly(&self, module_id: usize, assembly_id: usize) -> HRESULT {
        self.tell(|p| p.module_attached_to_assembly(ModuleId(module_id), AssemblyId(assembly_id)))
    }

    unsafe fn ClassLoadStarted(&self, class_id: usize) -> HRESULT {
        self.tell(|p| p.class_load_started(ClassId(class_id)))
    }

    unsafe fn ClassLoadFinished(&self, class_id: usize, hr_status: HRESULT) -> HRESULT {
        self.tell(|p| p.class_load_finished(ClassId(class_id), status(hr_status, "class load")))
    }

    unsafe fn ClassUnloadStarted(&self, class_id: usize) -> HRESULT {
        self.tell(|p| p.class_unload_started(ClassId(class_id)))
    }

    unsafe fn ClassUnloadFinished(&self, class_id: usize, hr_status: HRESULT) -> HRESULT {
        self.tell(|p| p.class_unload_finished(ClassId(class_id), status(hr_status, "class unload")))
    }

    unsafe fn FunctionUnloadStarted(&self, function_id: usize) -> HRESULT {
        self.tell(|p| p.function_unload_started(FunctionId(function_id)))
    }

    unsafe fn JITCompilationStarted(&self, function_id: usize, is_safe_to_block: BOOL) -> HRESULT {
        self.tell(|p| p.jit_compilation_started(FunctionId(function_id), is_safe_to_block.as_bool()))
    }

    unsafe fn JITCompilationFinished(&self, function_id: usize, hr_status: HRESULT, is_safe_to_block: BOOL) -> HRESULT {
        self.tell(|p| {
            let status = status(hr_status, "compilation");
            p.jit_compilation_finished(FunctionId(function_id), status, is_safe_to_block.as_bool());
        })
    }

    unsafe fn JITCachedFunctionSearchStarted(&self, function_id: usize, use_cached_function: *mut BOOL) -> HRESULT {
        let use_it = guard(true, || self.profiler.jit_cached_function_search_started(FunctionId(function_id)));
        // SAFETY: the runtime's out-parameter.
        unsafe { answer(use_cached_function, use_it) };
        S_OK
    }

    unsafe fn JITCachedFunctionSearchFinished(&self, function_id: usize, result: COR_PRF_JIT_CACHE) -> HRESULT {
        self.tell(|p| {
            p.jit_cached_function_search_finished(FunctionId(function_id), JitCache::from_raw(result.0));
        })
    }

    unsafe fn JITFunctionPitched(&self, function_id: usize) -> HRESULT {
        self.tell(|p| p.jit_function_pitched(FunctionId(function_id)))
    }

    unsafe fn JITInlining(&self, caller_id: usize, callee_id: usize, should_inline: *mut BOOL) -> HRESULT {
        let decision =
            guard(Inlining::Allow, || self.profiler.jit_inlining(FunctionId(caller_id), FunctionId(callee_id)));
        // SAFETY: the runtime's out-parameter.
        unsafe { answer(should_inline, decision == Inlining::Allow) };
        S_OK
    }

    unsafe fn ThreadCreated(&self, thread_id: usize) -> HRESULT {
        self.tell(|p| p.thread_created(ThreadId(thread_id)))
    }

    unsafe fn ThreadDestroyed(&self, thread_id: usize) -> HRESULT {
        self.tell(|p| p.thread_destroyed(ThreadId(thread_id)))
    }

    unsafe fn ThreadAssignedToOSThread(&self, managed_thread_id: usize, os_thread_id: u32) -> HRESULT {
        self.tell(|p| p.thread_assigned_to_os_thread(ThreadId(managed_thread_id), os_thread_id))
    }

    unsafe fn RemotingClientInvocationStarted(&self) -> HRESULT {
        self.tell(|p| p.remoting_client_invocation_started())
    }

    unsafe fn RemotingClientSendingMessage(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT {
        // SAFETY: the runtime passes an identifier or null.
        let cookie = unsafe { guid(cookie) };
        self.tell(|p| p.remoting_client_sending_message(&cookie, is_async.as_bool()))
    }

    unsafe fn RemotingClientReceivingReply(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT {
        // SAFETY: the runtime passes an identifier or null.
        let cookie = unsafe { guid(cookie) };
        self.tell(|p| p.remoting_client_receiving_reply(&cookie, is_async.as_bool()))
    }

    unsafe fn RemotingClientInvocationFinished(&self) -> HRESULT {
        self.tell(|p| p.remoting_client_invocation_finished())
    }

    unsafe fn RemotingServerReceivingMessage(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT {
        // SAFETY: the runtime passes an identifier or null.
        let cookie = unsafe { guid(cookie) };
        self.tell(|p| p.remoting_server_receiving_message(&cookie, is_async.as_bool()))
    }

    unsafe fn RemotingServerInvocationStarted(&self) -> HRESULT {
        self.tell(|p| p.remoting_server_invocation_started())
    }

    unsafe fn RemotingServerInvocationReturned(&self) -> HRESULT {
        self.tell(|p| p.remoting_server_invocation_returned())
    }

    unsafe fn RemotingServerSendingReply(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT {
        // SAFETY: the runtime passes an identifier or null.
        let cookie = unsafe { guid(cookie) };
        self.tell(|p| p.remoting_server_sending_reply(&cookie, is_async.as_bool()))
    }

    unsafe fn UnmanagedToManagedTransition(&self, function_id: usize, reason: COR_PRF_TRANSITION_REASON) -> HRESULT {
        self.tell(|p| {
            let function = FunctionId(function_id).non_null();
            p.unmanaged_to_managed_transition(function, TransitionReason::from_raw(reason.0));
        })
    }

    unsafe fn ManagedToUnmanagedTransition(&self, function_id: usize, reason: COR_PRF_TRANSITION_REASON) -> HRESULT {
        self.tell(|p| {
            let function = FunctionId(function_id).non_null();
            p.managed_to_unmanaged_transition(function, TransitionReason::from_raw(reason.0));
        })
    }

    unsafe fn RuntimeSuspendStarted(&self, suspend_reason: COR_PRF_SUSPEND_REASON) -> HRESULT {
        self.tell(|p| p.runtime_suspend_started(SuspendReason::from_raw(suspend_reason.0)))
    }

    unsafe fn RuntimeSuspendFinished(&self) -> HRESULT {
        self.tell(|p| p.runtime_suspend_finished())
    }

    unsafe fn RuntimeSuspendAborted(&self) -> HRESULT {
        self.tell(|p| p.runtime_suspend_aborted())
    }

    unsafe fn RuntimeResumeStarted(&self) -> HRESULT {
        self.tell(|p| p.runtime_resume_started())
    }

    unsafe fn RuntimeResumeFinished(&self) -> HRESULT {
        self.tell(|p| p.runtime_resume_finished())
    }

    unsafe fn RuntimeThreadSuspended(&self, thread_id: usize) -> HRESULT {
        self.tell(|p| p.runtime_thread_suspended(ThreadId(thread_id)))
    }

    unsafe fn RuntimeThreadResumed(&self, thread_id: usize) -> HRESULT {
        self.tell(|p| p.runtime_thread_resumed(ThreadId(thread_id)))
    }

    unsafe fn MovedReferences(
        &self,
        _range_count: u32,
        _old_range_starts: *const usize,
        _new_range_starts: *const usize,
        _range_lengths: *const u32,
    ) -> HRESULT {
        // `MovedReferences2` says the same with lengths that fit.
        S_OK
    }

    unsafe fn ObjectAllocated(&self, object_id: usize, class_id: usize) -> HRESULT {
        self.tell(|p| p.object_allocated(ObjectId::new(object_id), ClassId(class_id)))
    }

    unsafe fn ObjectsAllocatedByClass(
        &self,
        c_class_count: u32,
        class_ids: *const usize,
        c_objects: *const u32,
    ) -> HRESULT {
        // SAFETY: the runtime passes two arrays of that length.
        let (classes, counts) = unsafe { (slice(class_ids, c_class_count), slice(c_objects, c_class_count)) };
        self.tell_of_objects(|p| p.objects_allocated_by_class(ObjectsOfClass { classes, counts }))
    }

    unsafe fn ObjectReferences(
        &self,
        object_id: usize,
        class_id: usize,
        c_object_refs: u32,
        object_ref_ids: *const usize,
    ) -> HRESULT {
        // SAFETY: the runtime passes an array of that length.
        let references = unsafe { objects(object_ref_ids, c_object_refs) };
        self.ask_of_object(|p| p.object_references(ObjectId::new(object_id), ClassId(class_id), references))
    }

    unsafe fn RootReferences(&self, c_root_refs: u32, root_ref_ids: *const usize) -> HRESULT {
        // SAFETY: the runtime passes an array of that length.
        let roots = unsafe { objects(root_ref_ids, c_root_refs) };
        self.tell_of_objects(|p| p.root_references(roots))
    }

    unsafe fn ExceptionThrown(&self, thrown_object_id: usize) -> HRESULT {
        // First of all, as long as the register is the caller's.
        let frame = NativeFrame::of_caller();
        self.tell(|p| p.exception_thrown_in(ObjectId::new(thrown_object_id), frame))
    }

    unsafe fn ExceptionSearchFunctionEnter(&self, function_id: usize) -> HRESULT {
        self.tell(|p| p.exception_search_function_enter(FunctionId(function_id)))
    }

    unsafe fn ExceptionSearchFunctionLeave(&self) -> HRESULT {
        self.tell(|p| p.exception_search_function_leave())
    }

    unsafe fn ExceptionSearchFilterEnter(&self, function_id: usize) -> HRESULT {
        self.follow(|stacks| stacks.filter_enter());
        self.tell(|p| p.exception_search_filter_enter(FunctionId(function_id)))
    }

    unsafe fn ExceptionSearchFilterLeave(&self) -> HRESULT {
        self.follow(|stacks| stacks.filter_leave());
        self.tell(|p| p.exception_search_filter_leave())
    }

    unsafe fn ExceptionSearchCatcherFound(&self, function_id: usize) -> HRESULT {
        self.tell(|p| p.exception_search_catcher_found(FunctionId(function_id)))
    }

    unsafe fn ExceptionOSHandlerEnter(&self, _unused: usize) -> HRESULT {
        self.tell(|p| p.exception_os_handler_enter())
    }

    unsafe fn ExceptionOSHandlerLeave(&self, _unused: usize) -> HRESULT {
        self.tell(|p| p.exception_os_handler_leave())
    }

    unsafe fn ExceptionUnwindFunctionEnter(&self, function_id: usize) -> HRESULT {
        self.tell(|p| p.exception_unwind_function_enter(FunctionId(function_id)))
    }

    unsafe fn ExceptionUnwindFunctionLeave(&self) -> HRESULT {
        self.tell(|p| p.exception_unwind_function_leave())
    }

    unsafe fn ExceptionUnwindFinallyEnter(&self, function_id: usize) -> HRESULT {
        self.follow(|stacks| stacks.block_enter(Block::Finally));
        self.tell(|p| p.exception_unwind_finally_enter(FunctionId(function_id)))
    }

    unsafe fn ExceptionUnwindFinallyLeave(&self) -> HRESULT {
        self.tell(|p| p.exception_unwind_finally_leave())
    }

    unsafe fn ExceptionCatcherEnter(&self, function_id: usize, object_id: usize) -> HRESULT {
        self.follow(|stacks| stacks.block_enter(Block::Catch));
        self.tell(|p| p.exception_catcher_enter(FunctionId(function_id), ObjectId::new(object_id)))
    }

    unsafe fn ExceptionCatcherLeave(&self) -> HRESULT {
        self.tell(|p| p.exception_catcher_leave())
    }

    unsafe fn COMClassicVTableCreated(
        &self,
        wrapped_class_id: usize,
        implemented_iid: *const GUID,
        vtable: *mut c_void,
        c_slots: u32,
    ) -> HRESULT {
        // SAFETY: the runtime passes an identifier or null.
        let interface = unsafe { guid(implemented_iid) };
        let class = ClassId(wrapped_class_id);
        self.tell(|p| p.com_classic_vtable_created(class, &interface, vtable as usize, c_slots))
    }

    unsafe fn COMClassicVTableDestroyed(
        &self,
        wrapped_class_id: usize,
        implemented_iid: *const GUID,
        vtable: *mut c_void,
    ) -> HRESULT {
        // SAFETY: the runtime passes an identifier or null.
        let interface = unsafe { guid(implemented_iid) };
        self.tell(|p| p.com_classic_vtable_destroyed(ClassId(wrapped_class_id), &interface, vtable as usize))
    }

    unsafe fn ExceptionCLRCatcherFound(&self) -> HRESULT {
        self.tell(|p| p.exception_clr_catcher_found())
    }

    unsafe fn ExceptionCLRCatcherExecute(&self) -> HRESULT {
        self.tell(|p| p.exception_clr_catcher_execute())
    }
}
