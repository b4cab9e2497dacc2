//! The information interface of the fake runtime, levels 4 to 15.

use std::ffi::c_void;

use clr_profiler_sys::cor::*;
use clr_profiler_sys::enums::*;
use clr_profiler_sys::function_pointers::*;
use clr_profiler_sys::info::*;
use clr_profiler_sys::structs::*;
use clr_profiler_sys::types::*;
use windows_core::{BOOL, GUID, HRESULT};

use super::answer::{S_OK, put, unanswered};
use super::info_v1_to_v3::Info_Impl;
use crate::{Events, HResult};

impl ICorProfilerInfo4_Impl for Info_Impl {
    unsafe fn InitializeCurrentThread(&self) -> HRESULT {
        S_OK
    }

    unsafe fn GetObjectSize2(&self, object: usize, size: *mut usize) -> HRESULT {
        self.ask(|world| {
            let (_, found) = world.objects.get(&object).ok_or(HResult::INVALID_ARGUMENT)?;
            // SAFETY: the caller's pointer.
            unsafe { put(size, *found) };
            Ok(())
        })
    }

    unanswered! {
        EnumThreads(*mut *mut c_void);
        RequestReJIT(u32, *const ModuleID, *const mdMethodDef);
        RequestRevert(u32, *const ModuleID, *const mdMethodDef, *mut HRESULT);
        GetCodeInfo3(FunctionID, ReJITID, u32, *mut u32, *mut COR_PRF_CODE_INFO);
        GetFunctionFromIP2(*const u8, *mut FunctionID, *mut ReJITID);
        GetReJITIDs(FunctionID, u32, *mut u32, *mut ReJITID);
        GetILToNativeMapping2(FunctionID, ReJITID, u32, *mut u32, *mut COR_DEBUG_IL_TO_NATIVE_MAP);
        EnumJITedFunctions2(*mut *mut c_void);
    }
}

impl ICorProfilerInfo5_Impl for Info_Impl {
    unsafe fn GetEventMask2(&self, low: *mut u32, high: *mut u32) -> HRESULT {
        let bits = self.world.lock().events.bits();
        // SAFETY: the caller's pointers.
        unsafe {
            put(low, bits.0);
            put(high, bits.1);
        }
        S_OK
    }

    unsafe fn SetEventMask2(&self, low: u32, high: u32) -> HRESULT {
        self.ask(|world| world.set_events(Events::from_bits(low, high)))
    }
}

impl ICorProfilerInfo6_Impl for Info_Impl {
    unanswered! {
        EnumNgenModuleMethodsInliningThisMethod(ModuleID, ModuleID, mdMethodDef, *mut BOOL, *mut *mut c_void);
    }
}

impl ICorProfilerInfo7_Impl for Info_Impl {
    unanswered! {
        ApplyMetaData(ModuleID);
        GetInMemorySymbolsLength(ModuleID, *mut u32);
        ReadInMemorySymbols(ModuleID, u32, *mut u8, u32, *mut u32);
    }
}

impl ICorProfilerInfo8_Impl for Info_Impl {
    unsafe fn IsFunctionDynamic(&self, function: usize, dynamic: *mut BOOL) -> HRESULT {
        self.ask(|world| {
            world.function(function)?;
            // SAFETY: the caller's pointer.
            unsafe { put(dynamic, BOOL(0)) };
            Ok(())
        })
    }

    unanswered! {
        GetFunctionFromIP3(*const u8, *mut FunctionID, *mut ReJITID);
        GetDynamicFunctionInfo(FunctionID, *mut ModuleID, *mut *const u8, *mut u32, u32, *mut u32, *mut u16);
    }
}

impl ICorProfilerInfo9_Impl for Info_Impl {
    unanswered! {
        GetNativeCodeStartAddresses(FunctionID, ReJITID, u32, *mut u32, *mut usize);
        GetILToNativeMapping3(usize, u32, *mut u32, *mut COR_DEBUG_IL_TO_NATIVE_MAP);
        GetCodeInfo4(usize, u32, *mut u32, *mut COR_PRF_CODE_INFO);
    }
}

impl ICorProfilerInfo10_Impl for Info_Impl {
    unanswered! {
        EnumerateObjectReferences(ObjectID, Option<ObjectReferenceCallback>, *mut c_void);
        IsFrozenObject(ObjectID, *mut BOOL);
        GetLOHObjectSizeThreshold(*mut u32);
        RequestReJITWithInliners(u32, u32, *const ModuleID, *const mdMethodDef);
        SuspendRuntime();
        ResumeRuntime();
    }
}

impl ICorProfilerInfo11_Impl for Info_Impl {
    unanswered! {
        GetEnvironmentVariable(*const u16, u32, *mut u32, *mut u16);
        SetEnvironmentVariable(*const u16, *const u16);
    }
}

impl ICorProfilerInfo12_Impl for Info_Impl {
    unanswered! {
        EventPipeStartSession(u32, *const COR_PRF_EVENTPIPE_PROVIDER_CONFIG, BOOL, *mut EVENTPIPE_SESSION);
        EventPipeAddProviderToSession(EVENTPIPE_SESSION, COR_PRF_EVENTPIPE_PROVIDER_CONFIG);
        EventPipeStopSession(EVENTPIPE_SESSION);
        EventPipeCreateProvider(*const u16, *mut EVENTPIPE_PROVIDER);
        EventPipeGetProviderInfo(EVENTPIPE_PROVIDER, u32, *mut u32, *mut u16);
        EventPipeDefineEvent(EVENTPIPE_PROVIDER, *const u16, u32, u64, u32, u32, u8, BOOL, u32, *const COR_PRF_EVENTPIPE_PARAM_DESC, *mut EVENTPIPE_EVENT);
        EventPipeWriteEvent(EVENTPIPE_EVENT, u32, *const COR_PRF_EVENT_DATA, *const GUID, *const GUID);
    }
}

impl ICorProfilerInfo13_Impl for Info_Impl {
    unanswered! {
        CreateHandle(ObjectID, COR_PRF_HANDLE_TYPE, *mut ObjectHandleID);
        DestroyHandle(ObjectHandleID);
        GetObjectIDFromHandle(ObjectHandleID, *mut ObjectID);
    }
}

impl ICorProfilerInfo14_Impl for Info_Impl {
    unanswered! {
        EnumerateNonGCObjects(*mut *mut c_void);
        GetNonGCHeapBounds(u32, *mut u32, *mut COR_PRF_NONGC_HEAP_RANGE);
        EventPipeCreateProvider2(*const u16, Option<EventPipeProviderCallback>, *mut EVENTPIPE_PROVIDER);
    }
}

impl ICorProfilerInfo15_Impl for Info_Impl {
    unanswered! {
        EnumerateGCHeapObjects(Option<ObjectCallback>, *mut c_void);
    }
}
