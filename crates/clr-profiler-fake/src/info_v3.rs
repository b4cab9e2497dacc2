//! The third version of the fake runtime's information interface.

use std::ffi::c_void;

use clr_profiler_sys::cor::*;
use clr_profiler_sys::enumerators::ICorProfilerModuleEnum;
use clr_profiler_sys::enums::*;
use clr_profiler_sys::function_pointers::*;
use clr_profiler_sys::info::*;
use clr_profiler_sys::structs::*;
use clr_profiler_sys::types::*;
use windows_core::HRESULT;

use super::answer::{S_OK, put, put_array, put_text, unanswered};
use super::info_v1_to_v2::Info_Impl;
use super::lists;
use super::world::{APP_DOMAIN, Entries, World, module_id};

impl ICorProfilerInfo3_Impl for Info_Impl {
    unsafe fn SetFunctionIDMapper2(&self, mapper: Option<FunctionIDMapper2>, client: *mut c_void) -> HRESULT {
        self.ask(|world| {
            world.only_while_initializing()?;
            world.mapper = mapper.map(|mapper| (mapper, client as usize));
            Ok(())
        })
    }

    unsafe fn GetStringLayout2(&self, length: *mut u32, buffer: *mut u32) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe {
            put(length, 8);
            put(buffer, 12);
        }
        S_OK
    }

    unsafe fn SetEnterLeaveFunctionHooks3(
        &self,
        enter: Option<FunctionEnter3>,
        leave: Option<FunctionLeave3>,
        tailcall: Option<FunctionTailcall3>,
    ) -> HRESULT {
        self.ask(|world| {
            world.may_set_hooks(false, enter.is_some() || leave.is_some() || tailcall.is_some())?;
            let address = |entry: Option<FunctionEnter3>| entry.map_or(0, |entry| entry as usize);
            world.entries = Some(Entries { enter: address(enter), leave: address(leave), tailcall: address(tailcall) });
            Ok(())
        })
    }

    unsafe fn SetEnterLeaveFunctionHooks3WithInfo(
        &self,
        enter: Option<FunctionEnter3WithInfo>,
        leave: Option<FunctionLeave3WithInfo>,
        tailcall: Option<FunctionTailcall3WithInfo>,
    ) -> HRESULT {
        self.ask(|world| {
            world.may_set_hooks(true, enter.is_some() || leave.is_some() || tailcall.is_some())?;
            let address = |entry: Option<FunctionEnter3WithInfo>| entry.map_or(0, |entry| entry as usize);
            world.entries = Some(Entries { enter: address(enter), leave: address(leave), tailcall: address(tailcall) });
            world.with_info = true;
            Ok(())
        })
    }

    unsafe fn GetRuntimeInformation(
        &self,
        instance: *mut u16,
        kind: *mut COR_PRF_RUNTIME_TYPE,
        major: *mut u16,
        minor: *mut u16,
        build: *mut u16,
        revision: *mut u16,
        capacity: u32,
        needed: *mut u32,
        text: *mut u16,
    ) -> HRESULT {
        let version = if self.world.lock().level < 15 { 8 } else { 10 };
        // SAFETY: the caller's pointers.
        unsafe {
            put(instance, 0);
            put(kind, COR_PRF_RUNTIME_TYPE(2));
            put(major, version);
            put(minor, 0);
            put(build, 0);
            put(revision, 0);
            put_text(&format!("{version}.0.0 (fake)"), capacity, needed, text);
        }
        S_OK
    }

    unsafe fn GetAppDomainsContainingModule(
        &self,
        module: usize,
        capacity: u32,
        needed: *mut u32,
        app_domains: *mut usize,
    ) -> HRESULT {
        self.ask(|world| {
            world.module(module)?;
            // SAFETY: the caller's pointers.
            unsafe { put_array(&[APP_DOMAIN.as_raw()], capacity, needed, app_domains) };
            Ok(())
        })
    }

    unsafe fn GetModuleInfo2(
        &self,
        module: usize,
        base: *mut *const u8,
        capacity: u32,
        needed: *mut u32,
        name: *mut u16,
        assembly: *mut usize,
        flags: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe {
            put(flags, 1);
            self.GetModuleInfo(module, base, capacity, needed, name, assembly)
        }
    }

    unsafe fn RequestProfilerDetach(&self, _milliseconds: u32) -> HRESULT {
        self.ask(World::detach)
    }

    unsafe fn EnumModules(&self, out: *mut *mut c_void) -> HRESULT {
        let modules = (0..self.world.lock().modules.len()).map(|index| module_id(index).as_raw()).collect();
        // SAFETY: the caller's pointer.
        unsafe { lists::hand_out::<ICorProfilerModuleEnum>(modules, out) }
    }

    unanswered! {
        EnumJITedFunctions(*mut *mut c_void);
        GetFunctionEnter3Info(FunctionID, COR_PRF_ELT_INFO, *mut COR_PRF_FRAME_INFO, *mut u32, *mut COR_PRF_FUNCTION_ARGUMENT_INFO);
        GetFunctionLeave3Info(FunctionID, COR_PRF_ELT_INFO, *mut COR_PRF_FRAME_INFO, *mut COR_PRF_FUNCTION_ARGUMENT_RANGE);
        GetFunctionTailcall3Info(FunctionID, COR_PRF_ELT_INFO, *mut COR_PRF_FRAME_INFO);
        GetThreadStaticAddress2(ClassID, mdFieldDef, AppDomainID, ThreadID, *mut *mut c_void);
    }
}
