//! The information interface of the fake runtime, levels 4 to 15.

use std::ffi::c_void;

use clr_profiler::{Events, HResult, ModuleId};
use clr_profiler_sys::cor::*;
use clr_profiler_sys::enumerators::ICorProfilerThreadEnum;
use clr_profiler_sys::enums::*;
use clr_profiler_sys::function_pointers::*;
use clr_profiler_sys::info::*;
use clr_profiler_sys::structs::*;
use clr_profiler_sys::types::*;
use windows_core::{BOOL, GUID, HRESULT};

use super::answer::{S_OK, put, put_array, put_text, read_text, unanswered};
use super::code::{ReJitRequest, methods};
use super::info_v1_to_v2::Info_Impl;
use super::{event_pipe, lists, visits};

impl ICorProfilerInfo4_Impl for Info_Impl {
    unsafe fn InitializeCurrentThread(&self) -> HRESULT {
        S_OK
    }

    unsafe fn GetObjectSize2(&self, object: usize, size: *mut usize) -> HRESULT {
        self.ask(|world| {
            let found = world.heap.get(object)?.bytes;
            // SAFETY: the caller's pointer.
            unsafe { put(size, found) };
            Ok(())
        })
    }

    unsafe fn EnumThreads(&self, out: *mut *mut c_void) -> HRESULT {
        let threads = self.world.lock().thread_ids();
        // SAFETY: the caller's pointer.
        unsafe { lists::hand_out::<ICorProfilerThreadEnum>(threads, out) }
    }

    unsafe fn RequestReJIT(&self, count: u32, modules: *const usize, tokens: *const u32) -> HRESULT {
        // SAFETY: the caller's arrays.
        let methods = unsafe { methods(count, modules, tokens) };
        self.ask(|world| world.request(ReJitRequest::Compile(methods)))
    }

    unsafe fn RequestRevert(
        &self,
        count: u32,
        modules: *const usize,
        tokens: *const u32,
        each: *mut HRESULT,
    ) -> HRESULT {
        // SAFETY: the caller's arrays.
        let methods = unsafe { methods(count, modules, tokens) };
        self.ask(|world| {
            // SAFETY: the caller's array, as long as the others.
            unsafe { put_array(&vec![S_OK; methods.len()], count, std::ptr::null_mut(), each) };
            if methods.iter().all(|(module, _)| *module == ModuleId::NULL) {
                return world.adopt();
            }
            world.request(ReJitRequest::Revert(methods))
        })
    }

    unanswered! {
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
    unsafe fn EnumerateObjectReferences(
        &self,
        object: usize,
        visit: Option<ObjectReferenceCallback>,
        data: *mut c_void,
    ) -> HRESULT {
        visits::references(&self.world, object, visit, data)
    }

    unsafe fn RequestReJITWithInliners(
        &self,
        _flags: u32,
        count: u32,
        modules: *const usize,
        tokens: *const u32,
    ) -> HRESULT {
        // SAFETY: the caller's arrays.
        let methods = unsafe { methods(count, modules, tokens) };
        self.ask(|world| world.request(ReJitRequest::CompileWithInliners(methods)))
    }

    unsafe fn SuspendRuntime(&self) -> HRESULT {
        self.ask(|world| world.suspension.begin())
    }

    unsafe fn ResumeRuntime(&self) -> HRESULT {
        self.ask(|world| world.suspension.end())
    }

    unanswered! {
        IsFrozenObject(ObjectID, *mut BOOL);
        GetLOHObjectSizeThreshold(*mut u32);
    }
}

impl ICorProfilerInfo11_Impl for Info_Impl {
    unanswered! {
        GetEnvironmentVariable(*const u16, u32, *mut u32, *mut u16);
        SetEnvironmentVariable(*const u16, *const u16);
    }
}

impl ICorProfilerInfo12_Impl for Info_Impl {
    unsafe fn EventPipeStartSession(
        &self,
        count: u32,
        providers: *const COR_PRF_EVENTPIPE_PROVIDER_CONFIG,
        _rundown: BOOL,
        session: *mut EVENTPIPE_SESSION,
    ) -> HRESULT {
        // SAFETY: the caller's array, and texts that live through the call.
        let providers = (0..count as usize).map(|n| unsafe { event_pipe::provider(&*providers.add(n)) }).collect();
        self.ask(|world| {
            if !world.events.contains(Events::EVENT_PIPE) {
                return Err(HResult::INCONSISTENT_WITH_FLAGS);
            }
            // SAFETY: the caller's pointer.
            unsafe { put(session, world.event_pipe.start(providers)) };
            Ok(())
        })
    }

    unsafe fn EventPipeAddProviderToSession(
        &self,
        session: EVENTPIPE_SESSION,
        provider: COR_PRF_EVENTPIPE_PROVIDER_CONFIG,
    ) -> HRESULT {
        // SAFETY: texts that live through the call.
        let provider = unsafe { event_pipe::provider(&provider) };
        self.ask(|world| world.event_pipe.session(session).map(|session| session.providers.push(provider)))
    }

    unsafe fn EventPipeStopSession(&self, session: EVENTPIPE_SESSION) -> HRESULT {
        self.ask(|world| world.event_pipe.session(session).map(|session| session.is_open = false))
    }

    unsafe fn EventPipeCreateProvider(&self, name: *const u16, provider: *mut EVENTPIPE_PROVIDER) -> HRESULT {
        // SAFETY: the caller's text.
        let name = unsafe { read_text(name) };
        self.ask(|world| {
            // SAFETY: the caller's pointer.
            unsafe { put(provider, world.event_pipe.create_provider(name)) };
            Ok(())
        })
    }

    unsafe fn EventPipeGetProviderInfo(
        &self,
        provider: EVENTPIPE_PROVIDER,
        capacity: u32,
        needed: *mut u32,
        name: *mut u16,
    ) -> HRESULT {
        self.ask(|world| {
            // SAFETY: the caller's pointers.
            unsafe { put_text(world.event_pipe.provider(provider)?, capacity, needed, name) };
            Ok(())
        })
    }

    unanswered! {
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
    unsafe fn EnumerateGCHeapObjects(&self, visit: Option<ObjectCallback>, data: *mut c_void) -> HRESULT {
        visits::objects(&self.world, visit, data)
    }
}
