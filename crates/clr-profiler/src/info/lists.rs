//! Enumeration of modules, threads and compiled functions. An attached profiler uses it to catch up
//! with earlier events.

use std::ffi::c_void;

use clr_profiler_sys::enumerators::{
    ICorProfilerFunctionEnum, ICorProfilerMethodEnum, ICorProfilerModuleEnum, ICorProfilerObjectEnum,
    ICorProfilerThreadEnum,
};
use clr_profiler_sys::info::{ICorProfilerInfo4, ICorProfilerInfo6};
use clr_profiler_sys::structs::{COR_PRF_FUNCTION, COR_PRF_METHOD};
use windows_core::{BOOL, HRESULT, Interface};

use super::{ProfilerInfo, ask_array};
use crate::call_context::{outside_collections, where_objects_may_move};
use crate::error::check;
use crate::{AppDomainId, Error, FunctionId, HResult, ModuleId, ReJitId, Result, ThreadId, Token};

/// An enumeration object of the runtime.
pub(super) trait Enumeration: Interface {
    type Item: Copy + Default;
    /// # Safety
    /// `items` must have room for `capacity` items.
    unsafe fn next(&self, capacity: u32, items: *mut Self::Item, count: *mut u32) -> HRESULT;
}

macro_rules! enumerations {
    ($($interface:ty: $item:ty;)*) => {$(
        impl Enumeration for $interface {
            type Item = $item;
            unsafe fn next(&self, capacity: u32, items: *mut $item, count: *mut u32) -> HRESULT {
                // SAFETY: the caller's promise.
                unsafe { self.Next(capacity, items, count) }
            }
        }
    )*};
}

enumerations! {
    ICorProfilerFunctionEnum: COR_PRF_FUNCTION;
    ICorProfilerMethodEnum: COR_PRF_METHOD;
    ICorProfilerModuleEnum: usize;
    ICorProfilerObjectEnum: usize;
    ICorProfilerThreadEnum: usize;
}

/// Maximum number of items; protects against an enumeration that claims too many.
const LIMIT: usize = 1 << 26;

/// Fetches a whole enumeration.
pub(super) fn collect<E: Enumeration>(
    method: &'static str,
    open: impl FnOnce(*mut *mut c_void) -> HRESULT,
) -> Result<Vec<E::Item>> {
    let mut found = std::ptr::null_mut();
    check(open(&mut found), method)?;
    if found.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: an owned reference of the interface that this method hands out.
    let enumeration = unsafe { E::from_raw(found) };
    let mut items = Vec::new();
    loop {
        let (mut buffer, mut count) = ([E::Item::default(); 64], 0);
        // SAFETY: room for as many items as said, and a valid out-parameter.
        let answer = unsafe { enumeration.next(buffer.len() as u32, buffer.as_mut_ptr(), &mut count) };
        check(answer, method)?;
        let fetched = buffer.get(..count as usize).unwrap_or_default();
        items.extend_from_slice(fetched);
        if fetched.len() < buffer.len() || items.len() >= LIMIT {
            return Ok(items);
        }
    }
}

/// Methods into which another method was inlined when they were compiled ahead of time.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Inliners {
    /// Module and token of each method.
    pub methods: Vec<(ModuleId, Token)>,
    /// Whether some methods are missing, because their module is not completely loaded.
    pub is_incomplete: bool,
}

impl ProfilerInfo {
    /// All modules that are loaded. Neither in hooks nor during a collection.
    ///
    /// Enables [`Events::MODULE_LOADS`](crate::Events::MODULE_LOADS), which notifies the framework
    /// of unloads. After the unload of a module the framework refuses queries about the module,
    /// because the runtime would read its freed memory and crash.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn modules(&self) -> Result<Vec<ModuleId>> {
        let method = "EnumModules";
        where_objects_may_move(method)?;
        let runtime = self.base(method)?;
        self.hear_of_unloads()?;
        let _unloads_wait = self.connection.modules.list();
        // SAFETY: a valid out-parameter.
        let ids = collect::<ICorProfilerModuleEnum>(method, |out| unsafe { runtime.EnumModules(out) })?;
        let modules: Vec<ModuleId> = ids.into_iter().map(ModuleId).collect();
        modules.iter().for_each(|module| self.note_listed(*module));
        Ok(modules)
    }

    /// The application domains a module is loaded into. Neither in hooks nor during a collection.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn app_domains_of_module(&self, module: ModuleId) -> Result<Vec<AppDomainId>> {
        let method = "GetAppDomainsContainingModule";
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let _inside = self.in_module(module, method)?;
        // SAFETY: valid out-parameters.
        let ids = ask_array(method, |capacity, needed, ids| unsafe {
            runtime.GetAppDomainsContainingModule(module.0, capacity, needed, ids)
        })?;
        Ok(ids.into_iter().map(AppDomainId).collect())
    }

    /// All managed threads that are alive. Neither in hooks nor during a collection.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn threads(&self) -> Result<Vec<ThreadId>> {
        let method = "EnumThreads";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        // SAFETY: a valid out-parameter.
        let ids = collect::<ICorProfilerThreadEnum>(method, |out| unsafe { runtime.EnumThreads(out) })?;
        Ok(ids.into_iter().map(ThreadId).collect())
    }

    /// All functions that the runtime has compiled, each with its version. The list has no
    /// precompiled functions and no dynamic methods. Neither in hooks nor during a collection.
    ///
    /// Do not call this while code may be unloaded: the runtime crashes if it lists code during its
    /// unload (8.0.33). An unload continues after
    /// [`module_unload_finished`](crate::Callbacks::module_unload_finished) (`GCLoaderAllocators`
    /// in `vm/loaderallocator.cpp`).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn compiled_functions(&self) -> Result<Vec<(FunctionId, ReJitId)>> {
        let method = "EnumJITedFunctions2";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        // SAFETY: a valid out-parameter.
        let found = collect::<ICorProfilerFunctionEnum>(method, |out| unsafe { runtime.EnumJITedFunctions2(out) })?;
        // Does not use `received`: a listed function may be unloaded already.
        Ok(found.into_iter().map(|one| (FunctionId(one.function_id), ReJitId(one.rejit_id))).collect())
    }

    /// The methods of `module` into which the method `inlinee` of `inlinee_module` was inlined when
    /// they were compiled ahead of time. Neither in hooks nor during a collection.
    ///
    /// # Errors
    /// The runtime's error; `E_INVALIDARG` or `CORPROF_E_DATAINCOMPLETE` for a module without
    /// precompiled code.
    pub fn precompiled_inliners(&self, module: ModuleId, inlinee_module: ModuleId, inlinee: Token) -> Result<Inliners> {
        let method = "EnumNgenModuleMethodsInliningThisMethod";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo6>(method)?;
        let _inside = (self.in_module(module, method)?, self.in_module(inlinee_module, method)?);
        let mut incomplete = BOOL(0);
        // SAFETY: valid out-parameters.
        let found = collect::<ICorProfilerMethodEnum>(method, |out| unsafe {
            runtime.EnumNgenModuleMethodsInliningThisMethod(module.0, inlinee_module.0, inlinee.0, &mut incomplete, out)
        })?;
        let methods = found.into_iter().map(|one| (ModuleId(one.module_id), Token(one.method_id))).collect();
        Ok(Inliners { methods, is_incomplete: incomplete.as_bool() })
    }

    /// Token and metadata of a function in one query. Neither in hooks nor during a collection.
    ///
    /// # Errors
    /// The runtime's error, also for functions without metadata.
    pub fn function_metadata(&self, function: FunctionId) -> Result<(Token, crate::metadata::MetadataImport)> {
        let method = "GetTokenAndMetaDataFromFunction";
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let _function_stays = function.enter(method)?;
        let (mut token, mut found) = (0, std::ptr::null_mut());
        let interface = &clr_profiler_sys::metadata::IMetaDataImport2::IID;
        // SAFETY: valid out-parameters.
        let answer = unsafe { runtime.GetTokenAndMetaDataFromFunction(function.0, interface, &mut found, &mut token) };
        check(answer, method)?;
        if found.is_null() {
            return Err(Error::new(HResult::POINTER, method));
        }
        // SAFETY: an owned reference of the interface asked for.
        let import = unsafe { clr_profiler_sys::metadata::IMetaDataImport2::from_raw(found) };
        let (_, module, _) = self.function_place(function)?;
        Ok((Token(token), crate::metadata::MetadataImport::new(import, true, self.life_of(module)?)))
    }
}
