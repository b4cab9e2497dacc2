//! The callback object, interface levels 2 to 11.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use clr_profiler_sys::callback::*;
use clr_profiler_sys::control::ICorProfilerFunctionControl;
use clr_profiler_sys::enums::{COR_PRF_GC_REASON, COR_PRF_GC_ROOT_FLAGS, COR_PRF_GC_ROOT_KIND};
use windows_core::{BOOL, GUID, HRESULT, Interface};

use super::object::{CallbackObject_Impl, S_OK};
use super::slices::{slice, terminated_text, text};
use super::start;
use crate::callback_args::{
    DynamicIl, FunctionControl, GcReason, Generations, MovedRanges, Roots, SurvivingRanges, WeakTableElements,
};
use crate::error::check;
use crate::{Error, FunctionId, GcHandleId, HResult, ModuleId, ObjectId, ThreadId, Token};

impl ICorProfilerCallback2_Impl for CallbackObject_Impl {
    unsafe fn ThreadNameChanged(&self, thread_id: usize, cch_name: u32, name: *const u16) -> HRESULT {
        // SAFETY: the runtime passes a name of that length.
        self.notify(|p| p.thread_name_changed(ThreadId(thread_id), &unsafe { text(name, cch_name) }))
    }

    unsafe fn GarbageCollectionStarted(
        &self,
        c_generations: i32,
        generation_collected: *const BOOL,
        reason: COR_PRF_GC_REASON,
    ) -> HRESULT {
        // SAFETY: the runtime passes an array of that length.
        let generations = unsafe { slice(generation_collected, c_generations.max(0) as u32) };
        self.notify(|p| p.garbage_collection_started(Generations(generations), GcReason::from_raw(reason.0)))
    }

    unsafe fn SurvivingReferences(
        &self,
        _range_count: u32,
        _range_starts: *const usize,
        _range_lengths: *const u32,
    ) -> HRESULT {
        // `SurvivingReferences2` reports the same with wide enough lengths.
        S_OK
    }

    forward! { GarbageCollectionFinished }

    unsafe fn FinalizeableObjectQueued(&self, finalizer_flags: u32, object_id: usize) -> HRESULT {
        self.notify_with_objects(|p| p.finalizable_object_queued(ObjectId::new(object_id), finalizer_flags & 1 != 0))
    }

    unsafe fn RootReferences2(
        &self,
        c_root_refs: u32,
        root_ref_ids: *const usize,
        root_kinds: *const COR_PRF_GC_ROOT_KIND,
        root_flags: *const COR_PRF_GC_ROOT_FLAGS,
        root_ids: *const usize,
    ) -> HRESULT {
        // SAFETY: the runtime passes four arrays of that length; kinds and flags are 32-bit words.
        let roots = unsafe {
            Roots {
                objects: slice(root_ref_ids, c_root_refs),
                kinds: slice(root_kinds.cast(), c_root_refs),
                flags: slice(root_flags.cast(), c_root_refs),
                ids: slice(root_ids, c_root_refs),
            }
        };
        self.notify_in_collection(|p| p.root_references2(roots))
    }

    unsafe fn HandleCreated(&self, handle_id: usize, object_id: usize) -> HRESULT {
        self.notify_with_objects(|p| p.handle_created(GcHandleId(handle_id), ObjectId::new(object_id)))
    }

    forward! { HandleDestroyed }
}

impl ICorProfilerCallback3_Impl for CallbackObject_Impl {
    unsafe fn InitializeForAttach(&self, info: *mut c_void, client_data: *mut c_void, cb_client_data: u32) -> HRESULT {
        // SAFETY: the runtime passes its information interface and an array of that length.
        unsafe { start::initialize(self, info, Some(slice(client_data.cast_const().cast(), cb_client_data))) }
    }

    forward! { ProfilerAttachComplete }

    unsafe fn ProfilerDetachSucceeded(&self) -> HRESULT {
        self.stop_own_threads();
        let info = self.info.get();
        info.inspect(|info| info.close());
        let answer = self.notify(|p| p.profiler_detach_succeeded());
        // When this callback returns, the runtime frees structures that running calls use. The
        // profiler is notified first, so that it can end these calls.
        info.inspect(|info| info.wait_for_calls());
        self.is_retired.store(true, Ordering::Release);
        answer
    }
}

impl ICorProfilerCallback4_Impl for CallbackObject_Impl {
    forward! { ReJITCompilationStarted }

    unsafe fn GetReJITParameters(&self, module_id: usize, method_id: u32, function_control: *mut c_void) -> HRESULT {
        self.ask(|p| {
            // SAFETY: the runtime lends the interface for this callback.
            let control = unsafe { ICorProfilerFunctionControl::from_raw_borrowed(&function_control) }
                .ok_or(Error::new(HResult::POINTER, "GetReJITParameters"))?;
            let control = FunctionControl { control, callback: PhantomData };
            p.get_rejit_parameters(ModuleId(module_id), Token(method_id), &control)
        })
    }

    forward! { ReJITCompilationFinished }

    unsafe fn ReJITError(&self, module_id: usize, method_id: u32, function_id: usize, status: HRESULT) -> HRESULT {
        // The report is for the request without a module with which the framework adopts a thread.
        if module_id == 0 {
            return S_OK;
        }
        self.notify(|p| {
            let function = FunctionId::received(function_id);
            p.rejit_error(ModuleId(module_id), Token(method_id), function, check(status, "ReJIT"));
        })
    }

    unsafe fn MovedReferences2(
        &self,
        range_count: u32,
        old_range_starts: *const usize,
        new_range_starts: *const usize,
        range_lengths: *const usize,
    ) -> HRESULT {
        // SAFETY: the runtime passes three arrays of that length.
        let ranges = unsafe {
            MovedRanges {
                old: slice(old_range_starts, range_count),
                new: slice(new_range_starts, range_count),
                bytes: slice(range_lengths, range_count),
            }
        };
        self.notify_in_collection(|p| p.moved_references(ranges))
    }

    unsafe fn SurvivingReferences2(
        &self,
        range_count: u32,
        range_starts: *const usize,
        range_lengths: *const usize,
    ) -> HRESULT {
        // SAFETY: the runtime passes two arrays of that length.
        let ranges = unsafe {
            SurvivingRanges { starts: slice(range_starts, range_count), bytes: slice(range_lengths, range_count) }
        };
        self.notify_in_collection(|p| p.surviving_references(ranges))
    }
}

impl ICorProfilerCallback5_Impl for CallbackObject_Impl {
    unsafe fn ConditionalWeakTableElementReferences(
        &self,
        c_root_refs: u32,
        key_ref_ids: *const usize,
        value_ref_ids: *const usize,
        root_ids: *const usize,
    ) -> HRESULT {
        // SAFETY: the runtime passes three arrays of that length.
        let elements = unsafe {
            WeakTableElements {
                keys: slice(key_ref_ids, c_root_refs),
                values: slice(value_ref_ids, c_root_refs),
                handles: slice(root_ids, c_root_refs),
            }
        };
        self.notify_in_collection(|p| p.conditional_weak_table_element_references(elements))
    }
}

impl ICorProfilerCallback6_Impl for CallbackObject_Impl {
    unsafe fn GetAssemblyReferences(&self, assembly_path: *const u16, _asm_ref_provider: *mut c_void) -> HRESULT {
        // SAFETY: the runtime passes a path that ends with a zero, or null.
        let path = unsafe { terminated_text(assembly_path) };
        self.notify(|p| p.get_assembly_references(&path))
    }
}

impl ICorProfilerCallback7_Impl for CallbackObject_Impl {
    forward! { ModuleInMemorySymbolsUpdated }
}

impl ICorProfilerCallback8_Impl for CallbackObject_Impl {
    unsafe fn DynamicMethodJITCompilationStarted(
        &self,
        function_id: usize,
        is_safe_to_block: BOOL,
        il_header: *const u8,
        cb_il_header: u32,
    ) -> HRESULT {
        // SAFETY: the runtime passes an array of that length.
        let il = DynamicIl(unsafe { slice(il_header, cb_il_header) });
        self.notify(|p| {
            p.dynamic_method_jit_compilation_started(FunctionId::received(function_id), is_safe_to_block.as_bool(), il);
        })
    }

    forward! { DynamicMethodJITCompilationFinished }
}

impl ICorProfilerCallback9_Impl for CallbackObject_Impl {
    unsafe fn DynamicMethodUnloaded(&self, function_id: usize) -> HRESULT {
        self.forget(|mapper| mapper.function_unloaded(FunctionId(function_id)));
        self.notify(|p| p.dynamic_method_unloaded(FunctionId(function_id)))
    }
}

impl ICorProfilerCallback10_Impl for CallbackObject_Impl {
    unsafe fn EventPipeEventDelivered(
        &self,
        _provider: usize,
        _event_id: u32,
        _event_version: u32,
        _cb_metadata_blob: u32,
        _metadata_blob: *const u8,
        _cb_event_data: u32,
        _event_data: *const u8,
        _activity_id: *const GUID,
        _related_activity_id: *const GUID,
        _event_thread: usize,
        _num_stack_frames: u32,
        _stack_frames: *const usize,
    ) -> HRESULT {
        // The runtime calls `framed::event_pipe_event_delivered`.
        S_OK
    }

    forward! { EventPipeProviderCreated }
}

impl ICorProfilerCallback11_Impl for CallbackObject_Impl {
    unsafe fn LoadAsNotificationOnly(&self, notification_only: *mut BOOL) -> HRESULT {
        let secondary = self.is_content_with_notifications;
        self.notification_only.store(secondary, Ordering::Relaxed);
        if !notification_only.is_null() {
            // SAFETY: the runtime's out-parameter.
            unsafe { *notification_only = secondary.into() };
        }
        S_OK
    }
}
