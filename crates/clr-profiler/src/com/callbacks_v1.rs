//! The callback object, first interface level: each method calls the profiler's method behind the
//! panic boundary. The table of callbacks generates the methods that need no array or out-parameter
//! (`forward!`).

use std::ffi::c_void;

use clr_profiler_sys::callback::*;
use windows_core::{BOOL, HRESULT};

use super::object::{CallbackObject_Impl, S_OK};
use super::slices::{objects, slice};
use super::start;
use crate::call_stacks::Block;
use crate::callback_args::{Inlining, ObjectsOfClass};
use crate::error::check;
use crate::{AssemblyId, ClassId, FunctionId, ModuleId, ObjectId};

/// # Safety
/// `answer` must be null or valid for a write.
unsafe fn answer(answer: *mut BOOL, value: bool) {
    if !answer.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { *answer = value.into() };
    }
}

impl ICorProfilerCallback_Impl for CallbackObject_Impl {
    unsafe fn Initialize(&self, info: *mut c_void) -> HRESULT {
        // SAFETY: the runtime passes its information interface.
        unsafe { start::initialize(self, info, None) }
    }

    unsafe fn Shutdown(&self) -> HRESULT {
        self.stop_own_threads();
        let answer = self.notify(|p| p.shutdown());
        crate::load_log::write_end();
        answer
    }

    forward! {
        AppDomainCreationStarted AppDomainCreationFinished AppDomainShutdownStarted AppDomainShutdownFinished
        AssemblyLoadStarted AssemblyLoadFinished ModuleLoadStarted
    }

    // The next two callbacks pass identifiers that are not alive any more, so the profiler is not
    // notified.

    unsafe fn AssemblyUnloadStarted(&self, assembly_id: usize) -> HRESULT {
        self.notify(|p| p.assembly_unload_started(AssemblyId(assembly_id)))
    }

    unsafe fn AssemblyUnloadFinished(&self, assembly_id: usize, hr_status: HRESULT) -> HRESULT {
        self.notify(|p| p.assembly_unload_finished(AssemblyId(assembly_id), check(hr_status, "assembly unload")))
    }

    unsafe fn ModuleLoadFinished(&self, module_id: usize, hr_status: HRESULT) -> HRESULT {
        self.info.get().inspect(|info| info.module_loaded(ModuleId(module_id)));
        self.notify(|p| p.module_load_finished(ModuleId(module_id), check(hr_status, "module load")))
    }

    unsafe fn ModuleUnloadStarted(&self, module_id: usize) -> HRESULT {
        self.info.get().inspect(|info| info.module_unloading(ModuleId(module_id)));
        self.forget(|mapper| mapper.module_unloaded(ModuleId(module_id)));
        self.notify(|p| p.module_unload_started(ModuleId(module_id)))
    }

    unsafe fn ModuleUnloadFinished(&self, module_id: usize, hr_status: HRESULT) -> HRESULT {
        // Forgets a second time: other code may have queried a name in the meantime.
        self.forget(|mapper| mapper.module_unloaded(ModuleId(module_id)));
        self.notify(|p| p.module_unload_finished(ModuleId(module_id), check(hr_status, "module unload")))
    }

    forward! {
        ModuleAttachedToAssembly ClassLoadStarted
    }

    unsafe fn ClassLoadFinished(&self, class_id: usize, hr_status: HRESULT) -> HRESULT {
        let class = ClassId::received(class_id);
        self.info.get().inspect(|info| info.class_loaded(class));
        self.notify(|p| p.class_load_finished(class, check(hr_status, "class load")))
    }

    // The next two callbacks pass identifiers that are not alive any more, so the profiler is not
    // notified.

    unsafe fn ClassUnloadStarted(&self, class_id: usize) -> HRESULT {
        self.notify(|p| p.class_unload_started(ClassId(class_id)))
    }

    unsafe fn ClassUnloadFinished(&self, class_id: usize, hr_status: HRESULT) -> HRESULT {
        self.notify(|p| p.class_unload_finished(ClassId(class_id), check(hr_status, "class unload")))
    }

    forward! {
        FunctionUnloadStarted
    }

    unsafe fn JITCompilationStarted(&self, function_id: usize, is_safe_to_block: BOOL) -> HRESULT {
        let function = FunctionId::received(function_id);
        self.info.get().inspect(|info| info.compiling(function));
        self.notify(|p| p.jit_compilation_started(function, is_safe_to_block.as_bool()))
    }

    forward! {
        JITCompilationFinished
    }

    unsafe fn JITCachedFunctionSearchStarted(&self, function_id: usize, use_cached_function: *mut BOOL) -> HRESULT {
        let use_it = self.answer(true, |p| p.jit_cached_function_search_started(FunctionId::received(function_id)));
        // SAFETY: the runtime's out-parameter.
        unsafe { answer(use_cached_function, use_it) };
        S_OK
    }

    forward! { JITCachedFunctionSearchFinished JITFunctionPitched }

    unsafe fn JITInlining(&self, caller_id: usize, callee_id: usize, should_inline: *mut BOOL) -> HRESULT {
        let decision = self.answer(Inlining::Allow, |p| {
            p.jit_inlining(FunctionId::received(caller_id), FunctionId::received(callee_id))
        });
        // SAFETY: the runtime's out-parameter.
        unsafe { answer(should_inline, decision == Inlining::Allow) };
        S_OK
    }

    forward! {
        ThreadCreated ThreadDestroyed ThreadAssignedToOSThread RemotingClientInvocationStarted
        RemotingClientSendingMessage RemotingClientReceivingReply RemotingClientInvocationFinished
        RemotingServerReceivingMessage RemotingServerInvocationStarted RemotingServerInvocationReturned
        RemotingServerSendingReply UnmanagedToManagedTransition ManagedToUnmanagedTransition RuntimeSuspendStarted
        RuntimeSuspendFinished RuntimeSuspendAborted RuntimeResumeStarted RuntimeResumeFinished RuntimeThreadSuspended
        RuntimeThreadResumed
    }

    unsafe fn MovedReferences(
        &self,
        _range_count: u32,
        _old_range_starts: *const usize,
        _new_range_starts: *const usize,
        _range_lengths: *const u32,
    ) -> HRESULT {
        // `MovedReferences2` reports the same with wide enough lengths.
        S_OK
    }

    unsafe fn ObjectAllocated(&self, _object_id: usize, _class_id: usize) -> HRESULT {
        // The runtime calls `framed::object_allocated`.
        S_OK
    }

    unsafe fn ObjectsAllocatedByClass(
        &self,
        c_class_count: u32,
        class_ids: *const usize,
        c_objects: *const u32,
    ) -> HRESULT {
        // SAFETY: the runtime passes two arrays of that length.
        let (classes, counts) = unsafe { (slice(class_ids, c_class_count), slice(c_objects, c_class_count)) };
        self.notify_in_collection(|p| p.objects_allocated_by_class(ObjectsOfClass { classes, counts }))
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
        self.ask_in_collection(|p| {
            p.object_references(ObjectId::new(object_id), ClassId::received(class_id), references)
        })
    }

    unsafe fn RootReferences(&self, c_root_refs: u32, root_ref_ids: *const usize) -> HRESULT {
        // SAFETY: the runtime passes an array of that length.
        let roots = unsafe { objects(root_ref_ids, c_root_refs) };
        self.notify_in_collection(|p| p.root_references(roots))
    }

    unsafe fn ExceptionThrown(&self, _thrown_object_id: usize) -> HRESULT {
        // The runtime calls `framed::exception_thrown`.
        S_OK
    }

    forward! { ExceptionSearchFunctionEnter ExceptionSearchFunctionLeave }

    unsafe fn ExceptionSearchFilterEnter(&self, function_id: usize) -> HRESULT {
        self.follow(|stacks| stacks.filter_enter());
        self.notify(|p| p.exception_search_filter_enter(FunctionId::received(function_id)))
    }

    unsafe fn ExceptionSearchFilterLeave(&self) -> HRESULT {
        self.follow(|stacks| stacks.filter_leave());
        self.notify(|p| p.exception_search_filter_leave())
    }

    forward! { ExceptionSearchCatcherFound }

    unsafe fn ExceptionOSHandlerEnter(&self, _unused: usize) -> HRESULT {
        self.notify(|p| p.exception_os_handler_enter())
    }

    unsafe fn ExceptionOSHandlerLeave(&self, _unused: usize) -> HRESULT {
        self.notify(|p| p.exception_os_handler_leave())
    }

    forward! { ExceptionUnwindFunctionEnter ExceptionUnwindFunctionLeave }

    unsafe fn ExceptionUnwindFinallyEnter(&self, function_id: usize) -> HRESULT {
        self.follow(|stacks| stacks.block_enter(Block::Finally));
        self.notify(|p| p.exception_unwind_finally_enter(FunctionId::received(function_id)))
    }

    forward! { ExceptionUnwindFinallyLeave }

    unsafe fn ExceptionCatcherEnter(&self, function_id: usize, object_id: usize) -> HRESULT {
        self.follow(|stacks| stacks.block_enter(Block::Catch));
        self.notify_with_objects(|p| {
            p.exception_catcher_enter(FunctionId::received(function_id), ObjectId::new(object_id))
        })
    }

    forward! {
        ExceptionCatcherLeave COMClassicVTableCreated COMClassicVTableDestroyed ExceptionCLRCatcherFound
        ExceptionCLRCatcherExecute
    }
}
