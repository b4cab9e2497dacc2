//! An object made with `windows_core::implement` for the newest callback level, used through raw
//! tables as the runtime would.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clr_profiler_sys::callback::*;
use clr_profiler_sys::cor::mdMethodDef;
use clr_profiler_sys::enums::*;
use clr_profiler_sys::hresult::{CORPROF_E_PROFILER_CANCEL_ACTIVATION, E_NOINTERFACE, S_OK};
use clr_profiler_sys::types::*;
use clr_profiler_sys::windows_core::{BOOL, GUID, HRESULT, IUnknown, IUnknown_Vtbl, Interface, implement};
use clr_profiler_sys::{control, info};

/// Counts the calls of methods without a body of their own, and its own end.
#[implement(ICorProfilerCallback11)]
struct Probe {
    calls: Arc<AtomicU32>,
    ended: Arc<AtomicU32>,
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Implements callback traits: methods in braces as written, the others by counting.
macro_rules! callbacks {
    ($( $trait:ident { $($own:item)* } $( $method:ident($($argument:ty),*) )* ; )*) => { $(
        impl $trait for Probe_Impl {
            $($own)*
            $( unsafe fn $method(&self, $(_: $argument),*) -> HRESULT {
                self.calls.fetch_add(1, Ordering::Relaxed);
                S_OK
            } )*
        }
    )* };
}

callbacks! {
    ICorProfilerCallback_Impl {
        unsafe fn Shutdown(&self) -> HRESULT {
            CORPROF_E_PROFILER_CANCEL_ACTIVATION
        }

        unsafe fn JITInlining(&self, caller: FunctionID, callee: FunctionID, should_inline: *mut BOOL) -> HRESULT {
            // SAFETY: the test passes a valid pointer, as the runtime does.
            unsafe { should_inline.write(BOOL::from(caller < callee)) };
            S_OK
        }
    }
        Initialize(*mut c_void) AppDomainCreationStarted(AppDomainID)
        AppDomainCreationFinished(AppDomainID, HRESULT) AppDomainShutdownStarted(AppDomainID)
        AppDomainShutdownFinished(AppDomainID, HRESULT) AssemblyLoadStarted(AssemblyID)
        AssemblyLoadFinished(AssemblyID, HRESULT) AssemblyUnloadStarted(AssemblyID)
        AssemblyUnloadFinished(AssemblyID, HRESULT) ModuleLoadStarted(ModuleID)
        ModuleLoadFinished(ModuleID, HRESULT) ModuleUnloadStarted(ModuleID) ModuleUnloadFinished(ModuleID, HRESULT)
        ModuleAttachedToAssembly(ModuleID, AssemblyID) ClassLoadStarted(ClassID)
        ClassLoadFinished(ClassID, HRESULT) ClassUnloadStarted(ClassID) ClassUnloadFinished(ClassID, HRESULT)
        FunctionUnloadStarted(FunctionID) JITCompilationStarted(FunctionID, BOOL)
        JITCompilationFinished(FunctionID, HRESULT, BOOL) JITCachedFunctionSearchStarted(FunctionID, *mut BOOL)
        JITCachedFunctionSearchFinished(FunctionID, COR_PRF_JIT_CACHE) JITFunctionPitched(FunctionID)
        ThreadCreated(ThreadID) ThreadDestroyed(ThreadID) ThreadAssignedToOSThread(ThreadID, u32)
        RemotingClientInvocationStarted() RemotingClientSendingMessage(*const GUID, BOOL)
        RemotingClientReceivingReply(*const GUID, BOOL) RemotingClientInvocationFinished()
        RemotingServerReceivingMessage(*const GUID, BOOL) RemotingServerInvocationStarted()
        RemotingServerInvocationReturned() RemotingServerSendingReply(*const GUID, BOOL)
        UnmanagedToManagedTransition(FunctionID, COR_PRF_TRANSITION_REASON)
        ManagedToUnmanagedTransition(FunctionID, COR_PRF_TRANSITION_REASON)
        RuntimeSuspendStarted(COR_PRF_SUSPEND_REASON) RuntimeSuspendFinished() RuntimeSuspendAborted()
        RuntimeResumeStarted() RuntimeResumeFinished() RuntimeThreadSuspended(ThreadID)
        RuntimeThreadResumed(ThreadID) MovedReferences(u32, *const ObjectID, *const ObjectID, *const u32)
        ObjectAllocated(ObjectID, ClassID) ObjectsAllocatedByClass(u32, *const ClassID, *const u32)
        ObjectReferences(ObjectID, ClassID, u32, *const ObjectID) RootReferences(u32, *const ObjectID)
        ExceptionThrown(ObjectID) ExceptionSearchFunctionEnter(FunctionID) ExceptionSearchFunctionLeave()
        ExceptionSearchFilterEnter(FunctionID) ExceptionSearchFilterLeave() ExceptionSearchCatcherFound(FunctionID)
        ExceptionOSHandlerEnter(usize) ExceptionOSHandlerLeave(usize) ExceptionUnwindFunctionEnter(FunctionID)
        ExceptionUnwindFunctionLeave() ExceptionUnwindFinallyEnter(FunctionID) ExceptionUnwindFinallyLeave()
        ExceptionCatcherEnter(FunctionID, ObjectID) ExceptionCatcherLeave()
        COMClassicVTableCreated(ClassID, *const GUID, *mut c_void, u32)
        COMClassicVTableDestroyed(ClassID, *const GUID, *mut c_void) ExceptionCLRCatcherFound()
        ExceptionCLRCatcherExecute();

    ICorProfilerCallback2_Impl { }
        ThreadNameChanged(ThreadID, u32, *const u16) GarbageCollectionStarted(i32, *const BOOL, COR_PRF_GC_REASON)
        SurvivingReferences(u32, *const ObjectID, *const u32) GarbageCollectionFinished()
        FinalizeableObjectQueued(u32, ObjectID)
        RootReferences2(u32, *const ObjectID, *const COR_PRF_GC_ROOT_KIND, *const COR_PRF_GC_ROOT_FLAGS, *const usize)
        HandleCreated(GCHandleID, ObjectID) HandleDestroyed(GCHandleID);

    ICorProfilerCallback3_Impl { }
        InitializeForAttach(*mut c_void, *mut c_void, u32) ProfilerAttachComplete() ProfilerDetachSucceeded();

    ICorProfilerCallback4_Impl { }
        ReJITCompilationStarted(FunctionID, ReJITID, BOOL) GetReJITParameters(ModuleID, mdMethodDef, *mut c_void)
        ReJITCompilationFinished(FunctionID, ReJITID, HRESULT, BOOL)
        ReJITError(ModuleID, mdMethodDef, FunctionID, HRESULT)
        MovedReferences2(u32, *const ObjectID, *const ObjectID, *const usize)
        SurvivingReferences2(u32, *const ObjectID, *const usize);

    ICorProfilerCallback5_Impl { }
        ConditionalWeakTableElementReferences(u32, *const ObjectID, *const ObjectID, *const GCHandleID);

    ICorProfilerCallback6_Impl { }
        GetAssemblyReferences(*const u16, *mut c_void);

    ICorProfilerCallback7_Impl { }
        ModuleInMemorySymbolsUpdated(ModuleID);

    ICorProfilerCallback8_Impl { }
        DynamicMethodJITCompilationStarted(FunctionID, BOOL, *const u8, u32)
        DynamicMethodJITCompilationFinished(FunctionID, HRESULT, BOOL);

    ICorProfilerCallback9_Impl { }
        DynamicMethodUnloaded(FunctionID);

    ICorProfilerCallback10_Impl { }

        EventPipeEventDelivered(EVENTPIPE_PROVIDER, u32, u32, u32, *const u8, u32, *const u8, *const GUID, *const GUID, ThreadID, u32, *const usize)
        EventPipeProviderCreated(EVENTPIPE_PROVIDER);

    ICorProfilerCallback11_Impl {
        unsafe fn LoadAsNotificationOnly(&self, notification_only: *mut BOOL) -> HRESULT {
            // SAFETY: the test passes a valid pointer, as the runtime does.
            unsafe { notification_only.write(BOOL::from(true)) };
            S_OK
        }
    };
}

/// Asks through a raw table, as the runtime does.
fn query(object: *mut c_void, iid: &GUID) -> Result<*mut c_void, HRESULT> {
    let mut out = null_mut();
    // SAFETY: `object` is a live interface pointer, whose table starts with IUnknown's.
    let hr = unsafe {
        let table: &IUnknown_Vtbl = &**object.cast::<*const IUnknown_Vtbl>();
        (table.QueryInterface)(object, iid, &mut out)
    };
    if hr.is_ok() {
        assert!(!out.is_null());
        Ok(out)
    } else {
        assert!(out.is_null());
        Err(hr)
    }
}

fn release(object: *mut c_void) -> u32 {
    // SAFETY: `object` is a live interface pointer; the caller gives up one reference to it.
    unsafe { ((**object.cast::<*const IUnknown_Vtbl>()).Release)(object) }
}

const LEVELS: [GUID; 11] = [
    ICorProfilerCallback::IID,
    ICorProfilerCallback2::IID,
    ICorProfilerCallback3::IID,
    ICorProfilerCallback4::IID,
    ICorProfilerCallback5::IID,
    ICorProfilerCallback6::IID,
    ICorProfilerCallback7::IID,
    ICorProfilerCallback8::IID,
    ICorProfilerCallback9::IID,
    ICorProfilerCallback10::IID,
    ICorProfilerCallback11::IID,
];

#[test]
fn the_newest_level_answers_for_all_below_and_counts_references() {
    let ended = Arc::new(AtomicU32::new(0));
    let probe = Probe { calls: Arc::default(), ended: Arc::clone(&ended) };
    let object = ICorProfilerCallback11::from(probe).into_raw();

    let identity = query(object, &IUnknown::IID).expect("IUnknown");
    for iid in &LEVELS {
        let level = query(object, iid).expect("every level");
        let unknown = query(level, &IUnknown::IID).expect("IUnknown of a level");
        assert_eq!(unknown, identity, "one object has one IUnknown");
        release(unknown);
        release(level);
    }
    assert_eq!(query(object, &info::ICorProfilerInfo::IID), Err(E_NOINTERFACE));
    assert_eq!(query(object, &control::IMethodMalloc::IID), Err(E_NOINTERFACE));

    release(identity);
    assert_eq!(ended.load(Ordering::Relaxed), 0);
    assert_eq!(release(object), 0);
    assert_eq!(ended.load(Ordering::Relaxed), 1);
}

#[test]
fn a_call_through_any_level_reaches_its_method() {
    let calls = Arc::new(AtomicU32::new(0));
    let probe = Probe { calls: Arc::clone(&calls), ended: Arc::default() };
    let newest = ICorProfilerCallback11::from(probe);
    let oldest: ICorProfilerCallback = newest.cast().expect("the oldest level");

    let mut answer = BOOL::from(false);
    // SAFETY: the objects are alive and the pointers valid for the methods, which are those above.
    unsafe {
        assert_eq!(oldest.JITInlining(1, 2, &mut answer), S_OK);
        assert!(answer.as_bool());
        assert_eq!(newest.JITInlining(2, 1, &mut answer), S_OK);
        assert!(!answer.as_bool());
        assert_eq!(oldest.Shutdown(), CORPROF_E_PROFILER_CANCEL_ACTIVATION);
        assert_eq!(newest.LoadAsNotificationOnly(&mut answer), S_OK);
        assert!(answer.as_bool());
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        assert_eq!(newest.GarbageCollectionFinished(), S_OK);
        assert_eq!(newest.RuntimeSuspendStarted(COR_PRF_SUSPEND_FOR_REJIT), S_OK);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
