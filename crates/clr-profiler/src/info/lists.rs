//! Enumeration of modules, threads and compiled functions: for a profiler that attached, to catch
//! up.

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

/// An enumeration the runtime hands out.
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

/// More than any process has of anything; a bound for what an enumeration claims.
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

/// Methods that took in another one when they were compiled ahead of time.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Inliners {
    /// Module and token of each.
    pub methods: Vec<(ModuleId, Token)>,
    /// Whether some are missing, because their module is not loaded far enough.
    pub is_incomplete: bool,
}

impl ProfilerInfo {
    /// All modules that are loaded. Neither in hooks nor during a collection.
    ///
    /// Switches [`Events::MODULE_LOADS`](crate::Events::MODULE_LOADS) on, by which the framework
    /// learns which of them are unloaded: questions about these are refused from then on. The
    /// runtime would look at them where they were, and crash.
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

    /// All functions that have been compiled, each with its version. Precompiled ones and dynamic
    /// methods are not among them. Neither in hooks nor during a collection.
    ///
    /// Not where code may be unloaded: the runtime crashes where it lists code that goes (8.0.33),
    /// and that goes on after [`module_unload_finished`](crate::Callbacks::module_unload_finished)
    /// (`GCLoaderAllocators` in `vm/loaderallocator.cpp`).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn compiled_functions(&self) -> Result<Vec<(FunctionId, ReJitId)>> {
        let method = "EnumJITedFunctions2";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        // SAFETY: a valid out-parameter.
        let found = collect::<ICorProfilerFunctionEnum>(method, |out| unsafe { runtime.EnumJITedFunctions2(out) })?;
        // Not as received: what was listed may be unloaded already.
        Ok(found.into_iter().map(|one| (FunctionId(one.function_id), ReJitId(one.rejit_id))).collect())
    }

    /// The methods of `module` that took in the method `inlinee` of `inlinee_module` when they were
    /// compiled ahead of time. Neither in hooks nor during a collection.
    ///
    /// # Errors
    /// The runtime's error; a module without precompiled code gives `E_INVALIDARG` or
    /// `CORPROF_E_DATAINCOMPLETE`.
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

    /// Function, token and metadata at once. Neither in hooks nor during a collection.
    ///
    /// # Errors
    /// The runtime's error; functions without metadata have none.
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
