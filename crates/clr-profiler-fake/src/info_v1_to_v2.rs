//! The information interface of the fake runtime. It counts the calls of unimplemented methods.

use std::ffi::c_void;

use clr_profiler::{Events, HResult, Token};
use clr_profiler_sys::cor::*;
use clr_profiler_sys::enums::*;
use clr_profiler_sys::function_pointers::*;
use clr_profiler_sys::info::*;
use clr_profiler_sys::metadata::IMetaDataImport2;
use clr_profiler_sys::structs::*;
use clr_profiler_sys::types::*;
use windows_core::{BOOL, GUID, HRESULT, Interface, implement};

use super::answer::{S_FALSE, S_OK, answer, put, put_array, put_text, unanswered};
use super::metadata::Metadata;
use super::threads::current;
use super::world::{APP_DOMAIN, Phase, Shared, World, assembly_id, class_id, module_id, thread_id};
use super::{code, visits};
use crate::ids;

const NOT_MANAGED_THREAD: HResult = HResult(0x8013_1355_u32 as i32);

#[implement(ICorProfilerInfo15)]
pub(super) struct Info {
    pub(super) world: Shared,
}

impl Info {
    /// Queries the world and writes the answer while the world is locked.
    pub(super) fn ask(&self, ask: impl FnOnce(&mut World) -> Result<(), HResult>) -> HRESULT {
        let mut world = self.world.lock();
        if world.phase == Phase::Detaching {
            return HRESULT(HResult::PROFILER_DETACHING.0);
        }
        answer(ask(&mut world))
    }
}

impl World {
    /// Returns the class, module and token of a function.
    fn class_module_token(&self, function: usize) -> Result<(usize, usize, u32), HResult> {
        let function = &self.functions[self.function(function)?];
        let module = self.classes[function.class].module;
        Ok((class_id(function.class).as_raw(), module_id(module).as_raw(), function.token.as_raw()))
    }

    /// The index of an existing method's module.
    fn method(&self, module: usize, method: u32) -> Result<usize, HResult> {
        let module = self.module(module)?;
        self.function_of_token(module, Token::new(method)).map(|_| module).ok_or(HResult::INVALID_ARGUMENT)
    }

    /// Module and token of a class.
    fn declaration(&self, class: usize) -> Result<(usize, u32), HResult> {
        let class = &self.classes[self.class(class)?];
        Ok((module_id(class.module).as_raw(), class.token.as_raw()))
    }
}

impl ICorProfilerInfo_Impl for Info_Impl {
    unsafe fn GetClassFromObject(&self, object: usize, class: *mut usize) -> HRESULT {
        self.ask(|world| {
            let found = world.heap.get(object)?.class;
            // SAFETY: the caller's pointer.
            unsafe { put(class, found.as_raw()) };
            Ok(())
        })
    }

    unsafe fn GetClassFromToken(&self, module: usize, token: u32, class: *mut usize) -> HRESULT {
        self.ask(|world| {
            let found =
                world.class_of_token(world.module(module)?, Token::new(token)).ok_or(HResult::INVALID_ARGUMENT)?;
            // SAFETY: the caller's pointer.
            unsafe { put(class, class_id(found).as_raw()) };
            Ok(())
        })
    }

    unsafe fn GetEventMask(&self, low: *mut u32) -> HRESULT {
        // SAFETY: the caller's pointer.
        unsafe { put(low, self.world.lock().events.bits().0) };
        S_OK
    }

    unsafe fn GetFunctionFromToken(&self, module: usize, token: u32, function: *mut usize) -> HRESULT {
        self.ask(|world| {
            let found =
                world.function_of_token(world.module(module)?, Token::new(token)).ok_or(HResult::INVALID_ARGUMENT)?;
            // SAFETY: the caller's pointer.
            unsafe { put(function, found.as_raw()) };
            Ok(())
        })
    }

    unsafe fn GetObjectSize(&self, object: usize, size: *mut u32) -> HRESULT {
        self.ask(|world| {
            let found = world.heap.get(object)?.bytes;
            // SAFETY: the caller's pointer.
            unsafe { put(size, found as u32) };
            Ok(())
        })
    }

    unsafe fn IsArrayClass(
        &self,
        class: usize,
        _element_type: *mut CorElementType,
        _element: *mut usize,
        _rank: *mut u32,
    ) -> HRESULT {
        // The fake runtime has no arrays.
        self.world.lock().class(class).map_or_else(|error| HRESULT(error.0), |_| S_FALSE)
    }

    unsafe fn GetThreadInfo(&self, thread: usize, os_thread: *mut u32) -> HRESULT {
        self.ask(|world| {
            let (_, found) = world.thread_of_id(ids::thread(thread)).ok_or(HResult::INVALID_ARGUMENT)?;
            if found.os_thread == 0 {
                return Err(HResult::DATA_INCOMPLETE);
            }
            // SAFETY: the caller's pointer.
            unsafe { put(os_thread, found.os_thread) };
            Ok(())
        })
    }

    unsafe fn GetCurrentThreadID(&self, thread: *mut usize) -> HRESULT {
        self.ask(|world| {
            let number = current().filter(|number| world.thread(*number).is_managed).ok_or(NOT_MANAGED_THREAD)?;
            // SAFETY: the caller's pointer.
            unsafe { put(thread, thread_id(number).as_raw()) };
            Ok(())
        })
    }

    unsafe fn GetClassIDInfo(&self, class: usize, module: *mut usize, token: *mut u32) -> HRESULT {
        self.ask(|world| {
            let found = world.declaration(class)?;
            // SAFETY: the caller's pointers.
            unsafe {
                put(module, found.0);
                put(token, found.1);
            }
            Ok(())
        })
    }

    unsafe fn GetFunctionInfo(
        &self,
        function: usize,
        class: *mut usize,
        module: *mut usize,
        token: *mut u32,
    ) -> HRESULT {
        self.ask(|world| {
            let found = world.class_module_token(function)?;
            // SAFETY: the caller's pointers.
            unsafe {
                put(class, found.0);
                put(module, found.1);
                put(token, found.2);
            }
            Ok(())
        })
    }

    unsafe fn SetEventMask(&self, low: u32) -> HRESULT {
        self.ask(|world| world.set_events(Events::from_bits(low, world.events.bits().1)))
    }

    unsafe fn GetModuleInfo(
        &self,
        module: usize,
        base: *mut *const u8,
        capacity: u32,
        needed: *mut u32,
        name: *mut u16,
        assembly: *mut usize,
    ) -> HRESULT {
        self.ask(|world| {
            let index = world.module(module)?;
            // SAFETY: the caller's pointers.
            unsafe {
                put(base, std::ptr::null());
                put_text(&format!("/fake/{}.dll", world.modules[index].name), capacity, needed, name);
                put(assembly, assembly_id(index).as_raw());
            }
            Ok(())
        })
    }

    unsafe fn GetModuleMetaData(
        &self,
        module: usize,
        _flags: u32,
        interface: *const GUID,
        out: *mut *mut c_void,
    ) -> HRESULT {
        let module = match self.world.lock().module(module) {
            Ok(module) => module,
            Err(error) => return HRESULT(error.0),
        };
        let metadata: IMetaDataImport2 = Metadata { world: self.world.clone(), module }.into();
        // SAFETY: the caller's pointers.
        unsafe { metadata.query(interface, out) }
    }

    unsafe fn GetAppDomainInfo(
        &self,
        app_domain: usize,
        capacity: u32,
        needed: *mut u32,
        name: *mut u16,
        process: *mut usize,
    ) -> HRESULT {
        if app_domain != APP_DOMAIN.as_raw() {
            return HRESULT(HResult::INVALID_ARGUMENT.0);
        }
        // SAFETY: the caller's pointers.
        unsafe {
            put_text("clrhost", capacity, needed, name);
            put(process, std::process::id() as usize);
        }
        S_OK
    }

    unsafe fn GetAssemblyInfo(
        &self,
        assembly: usize,
        capacity: u32,
        needed: *mut u32,
        name: *mut u16,
        app_domain: *mut usize,
        module: *mut usize,
    ) -> HRESULT {
        self.ask(|world| {
            let index = world.assembly(assembly)?;
            // SAFETY: the caller's pointers.
            unsafe {
                put_text(&world.modules[index].name, capacity, needed, name);
                put(app_domain, APP_DOMAIN.as_raw());
                put(module, module_id(index).as_raw());
            }
            Ok(())
        })
    }

    unsafe fn GetILFunctionBody(&self, module: usize, method: u32, body: *mut *const u8, size: *mut u32) -> HRESULT {
        self.ask(|world| {
            let il = world.code.il(world.method(module, method)?, method);
            // SAFETY: the caller's pointers.
            unsafe {
                put(body, il.as_ptr());
                put(size, il.len() as u32);
            }
            Ok(())
        })
    }

    unsafe fn GetILFunctionBodyAllocator(&self, module: usize, out: *mut *mut c_void) -> HRESULT {
        self.ask(|world| {
            world.module(module)?;
            // SAFETY: the caller's pointer.
            unsafe { put(out, code::allocator()) };
            Ok(())
        })
    }

    unsafe fn SetILFunctionBody(&self, module: usize, method: u32, start: *const u8) -> HRESULT {
        self.ask(|world| {
            let index = world.method(module, method)?;
            // SAFETY: the caller's IL, in memory that stays.
            world.code.set_il(index, method, unsafe { code::body(start) }?);
            Ok(())
        })
    }

    unsafe fn ForceGC(&self) -> HRESULT {
        let collect = match self.world.lock().collect.clone() {
            Some(collect) if current().is_none() => collect,
            // On the program's threads, and before the program starts.
            _ => return HRESULT(HResult::UNSUPPORTED_CALL_SEQUENCE.0),
        };
        collect();
        S_OK
    }

    unanswered! {
        GetCodeInfo(FunctionID, *mut *const u8, *mut u32);
        GetFunctionFromIP(*const u8, *mut FunctionID);
        GetHandleFromThread(ThreadID, *mut *mut c_void);
        SetEnterLeaveFunctionHooks(Option<FunctionEnter>, Option<FunctionLeave>, Option<FunctionTailcall>);
        SetFunctionIDMapper(Option<FunctionIDMapper>);
        GetTokenAndMetaDataFromFunction(FunctionID, *const GUID, *mut *mut c_void, *mut mdToken);
        SetFunctionReJIT(FunctionID);
        SetILInstrumentedCodeMap(FunctionID, BOOL, u32, *const COR_IL_MAP);
        GetInprocInspectionInterface(*mut *mut c_void);
        GetInprocInspectionIThisThread(*mut *mut c_void);
        GetThreadContext(ThreadID, *mut ContextID);
        BeginInprocDebugging(BOOL, *mut u32);
        EndInprocDebugging(u32);
        GetILToNativeMapping(FunctionID, u32, *mut u32, *mut COR_DEBUG_IL_TO_NATIVE_MAP);
    }
}

impl ICorProfilerInfo2_Impl for Info_Impl {
    unsafe fn GetFunctionInfo2(
        &self,
        function: usize,
        _frame: usize,
        class: *mut usize,
        module: *mut usize,
        token: *mut u32,
        _capacity: u32,
        needed: *mut u32,
        _arguments: *mut usize,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe {
            put(needed, 0);
            self.GetFunctionInfo(function, class, module, token)
        }
    }

    unsafe fn GetClassIDInfo2(
        &self,
        class: usize,
        module: *mut usize,
        token: *mut u32,
        parent: *mut usize,
        _capacity: u32,
        needed: *mut u32,
        _arguments: *mut usize,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe {
            put(parent, 0);
            put(needed, 0);
            self.GetClassIDInfo(class, module, token)
        }
    }

    unsafe fn GetThreadAppDomain(&self, thread: usize, app_domain: *mut usize) -> HRESULT {
        self.ask(|world| {
            world.thread_of_id(ids::thread(thread)).ok_or(HResult::INVALID_ARGUMENT)?;
            // SAFETY: the caller's pointer.
            unsafe { put(app_domain, APP_DOMAIN.as_raw()) };
            Ok(())
        })
    }

    unsafe fn GetNotifiedExceptionClauseInfo(&self, clause: *mut COR_PRF_EX_CLAUSE_INFO) -> HRESULT {
        self.ask(|world| {
            let number = current().ok_or(NOT_MANAGED_THREAD)?;
            // SAFETY: the caller's pointer.
            unsafe { put(clause, world.thread(number).clause) };
            Ok(())
        })
    }

    unsafe fn DoStackSnapshot(
        &self,
        thread: usize,
        visit: Option<StackSnapshotCallback>,
        _flags: u32,
        data: *mut c_void,
        _context: *const u8,
        _context_size: u32,
    ) -> HRESULT {
        visits::frames(&self.world, thread, visit, data)
    }

    unsafe fn GetGenerationBounds(
        &self,
        capacity: u32,
        needed: *mut u32,
        ranges: *mut COR_PRF_GC_GENERATION_RANGE,
    ) -> HRESULT {
        self.ask(|world| {
            // SAFETY: the caller's pointers.
            unsafe { put_array(&world.heap.bounds(), capacity, needed, ranges) };
            Ok(())
        })
    }

    unsafe fn GetObjectGeneration(&self, object: usize, range: *mut COR_PRF_GC_GENERATION_RANGE) -> HRESULT {
        self.ask(|world| {
            let found = world.heap.range_of(object)?;
            // SAFETY: the caller's pointer.
            unsafe { put(range, found) };
            Ok(())
        })
    }

    unsafe fn GetClassLayout(
        &self,
        class: usize,
        fields: *mut COR_FIELD_OFFSET,
        capacity: u32,
        count: *mut u32,
        size: *mut u32,
    ) -> HRESULT {
        self.ask(|world| {
            let (found, bytes) = world.layout(class)?;
            // SAFETY: the caller's pointers.
            unsafe {
                put_array(&found, capacity, count, fields);
                put(size, bytes as u32);
            }
            Ok(())
        })
    }

    unsafe fn GetStaticFieldInfo(&self, class: usize, field: u32, kind: *mut COR_PRF_STATIC_TYPE) -> HRESULT {
        self.ask(|world| {
            let found = world.static_kind(class, field)?;
            // SAFETY: the caller's pointer.
            unsafe { put(kind, COR_PRF_STATIC_TYPE(found)) };
            Ok(())
        })
    }

    unsafe fn GetAppDomainStaticAddress(
        &self,
        class: usize,
        field: u32,
        _app_domain: usize,
        address: *mut *mut c_void,
    ) -> HRESULT {
        self.ask(|world| {
            let found = world.static_place(class, field)?;
            // SAFETY: the caller's pointer.
            unsafe { put(address, std::ptr::with_exposed_provenance_mut(found)) };
            Ok(())
        })
    }

    unanswered! {
        SetEnterLeaveFunctionHooks2(Option<FunctionEnter2>, Option<FunctionLeave2>, Option<FunctionTailcall2>);
        GetStringLayout(*mut u32, *mut u32, *mut u32);
        GetCodeInfo2(FunctionID, u32, *mut u32, *mut COR_PRF_CODE_INFO);
        GetClassFromTokenAndTypeArgs(ModuleID, mdTypeDef, u32, *const ClassID, *mut ClassID);
        GetFunctionFromTokenAndTypeArgs(ModuleID, mdMethodDef, ClassID, u32, *const ClassID, *mut FunctionID);
        EnumModuleFrozenObjects(ModuleID, *mut *mut c_void);
        GetArrayObjectInfo(ObjectID, u32, *mut u32, *mut i32, *mut *mut u8);
        GetBoxClassLayout(ClassID, *mut u32);
        GetRVAStaticAddress(ClassID, mdFieldDef, *mut *mut c_void);
        GetThreadStaticAddress(ClassID, mdFieldDef, ThreadID, *mut *mut c_void);
        GetContextStaticAddress(ClassID, mdFieldDef, ContextID, *mut *mut c_void);
    }
}
