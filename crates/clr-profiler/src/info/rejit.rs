//! Changed IL: before the first compilation, and by ReJIT.

use clr_profiler_sys::control::IMethodMalloc;
use clr_profiler_sys::info::{ICorProfilerInfo4, ICorProfilerInfo7, ICorProfilerInfo10};
use clr_profiler_sys::structs::COR_DEBUG_IL_TO_NATIVE_MAP;
use windows_core::{BOOL, HRESULT, Interface};

use super::code::{il_ranges, ranges};
use super::{CodeRange, IlRange, ProfilerInfo, ask_array};
use crate::body_size::body_size;
use crate::call_context::{outside_collections, where_objects_may_move};
use crate::error::check;
use crate::il_map::il_map_for_runtime;
use crate::unloads::InModule;
use crate::{Error, FunctionId, HResult, IlMove, ModuleId, ReJitId, Result, Token};

impl ProfilerInfo {
    /// Sets new IL (header and body) for a method that has not been compiled. Callable in
    /// `module_load_finished` or `jit_compilation_started`. The framework copies the IL into memory
    /// of the runtime, which is never freed.
    ///
    /// # Errors
    /// `E_INVALIDARG` with a reason if the bytes are not a complete body; the runtime's error;
    /// `E_OUTOFMEMORY` if the runtime has no memory for the body.
    ///
    /// # Safety
    /// The runtime does not verify IL. The code must be correct for the method: it must respect
    /// types, its stack and its header, and use only tokens that the module has. Incorrect IL can
    /// read and write any memory of the program.
    pub unsafe fn set_il_function_body(&self, module: ModuleId, method: Token, body: &[u8]) -> Result<()> {
        let name = "SetILFunctionBody";
        outside_collections(name)?;
        let size = body_size(name, body)?;
        let runtime = self.base(name)?;
        let _inside = self.in_module(module, name)?;
        let mut allocator = std::ptr::null_mut();
        // SAFETY: a valid out-parameter.
        let found = unsafe { runtime.GetILFunctionBodyAllocator(module.0, &mut allocator) };
        check(found, "GetILFunctionBodyAllocator")?;
        if allocator.is_null() {
            return Err(Error::new(HResult::POINTER, "GetILFunctionBodyAllocator"));
        }
        // SAFETY: an owned reference.
        let allocator = unsafe { IMethodMalloc::from_raw(allocator) };
        // SAFETY: no pointers.
        let memory = unsafe { allocator.Alloc(size) }.cast::<u8>();
        if memory.is_null() {
            return Err(Error::new(HResult::OUT_OF_MEMORY, name));
        }
        // SAFETY: that many bytes were allocated, and they are never freed; the caller vouches for
        // what they say.
        let answer = unsafe {
            std::ptr::copy_nonoverlapping(body.as_ptr(), memory, body.len());
            runtime.SetILFunctionBody(module.0, method.0, memory)
        };
        check(answer, name)
    }

    /// Tells debuggers the new offsets of the original instructions of a function that
    /// [`set_il_function_body`](Self::set_il_function_body) has changed. Callable in the callbacks
    /// about its compilation.
    ///
    /// # Errors
    /// The runtime's error; `E_OUTOFMEMORY` when there is no memory for the map.
    pub fn set_il_map(&self, function: FunctionId, map: &[IlMove]) -> Result<()> {
        let method = "SetILInstrumentedCodeMap";
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let _function_stays = function.enter(method)?;
        let (count, entries) = il_map_for_runtime(method, map)?;
        // SAFETY: the runtime takes ownership of the memory, which the C library allocated, and
        // frees it with the C library's `free`.
        check(unsafe { runtime.SetILInstrumentedCodeMap(function.0, BOOL(1), count, entries) }, method)
    }

    /// Notifies the runtime of metadata that was added to a module after its load. This may start a
    /// collection, so it must not be called during a collection or in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn apply_metadata(&self, module: ModuleId) -> Result<()> {
        let method = "ApplyMetaData";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo7>(method)?;
        let _inside = self.in_module(module, method)?;
        // SAFETY: a plain number.
        check(unsafe { runtime.ApplyMetaData(module.0) }, method)
    }

    /// Requests recompilation of methods (ReJIT). The runtime then calls `get_rejit_parameters` for
    /// each method. Suspends the program for a moment, so call it on one of the profiler's own
    /// threads, or in a callback without locks. Needs
    /// [`Events::ENABLE_REJIT`](crate::Events::ENABLE_REJIT).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn request_rejit(&self, methods: &[(ModuleId, Token)]) -> Result<()> {
        let method = "RequestReJIT";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        let _inside = self.in_modules(methods, method)?;
        let (modules, tokens) = columns(methods);
        // SAFETY: two arrays of the length said.
        check(unsafe { runtime.RequestReJIT(tokens.len() as u32, modules.as_ptr(), tokens.as_ptr()) }, method)
    }

    /// As [`request_rejit`](Self::request_rejit), and also compiles the methods again into which
    /// one of `methods` was inlined. The runtime calls `get_rejit_parameters` for these inliners
    /// too, so a profiler that returns to the original code must [revert](Self::request_revert)
    /// them too. From then on the runtime does not inline any of `methods`; it offers no other
    /// variant.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn request_rejit_with_inliners(&self, methods: &[(ModuleId, Token)]) -> Result<()> {
        /// `COR_PRF_REJIT_BLOCK_INLINING` and `COR_PRF_REJIT_INLINING_CALLBACKS`.
        const FLAGS: u32 = 1 | 2;
        let method = "RequestReJITWithInliners";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo10>(method)?;
        let _inside = self.in_modules(methods, method)?;
        let (modules, tokens) = columns(methods);
        let count = tokens.len() as u32;
        // SAFETY: two arrays of the length said.
        let answer = unsafe { runtime.RequestReJITWithInliners(FLAGS, count, modules.as_ptr(), tokens.as_ptr()) };
        check(answer, method)
    }

    /// Reverts methods to their original code; returns the result for each method.
    ///
    /// # Errors
    /// The runtime's error for the whole request.
    pub fn request_revert(&self, methods: &[(ModuleId, Token)]) -> Result<Vec<Result<()>>> {
        let method = "RequestRevert";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        let _inside = self.in_modules(methods, method)?;
        let (modules, tokens) = columns(methods);
        let mut each = vec![HRESULT(0); tokens.len()];
        let count = tokens.len() as u32;
        // SAFETY: three arrays of the length said.
        let answer = unsafe { runtime.RequestRevert(count, modules.as_ptr(), tokens.as_ptr(), each.as_mut_ptr()) };
        check(answer, method)?;
        Ok(each.into_iter().map(|one| check(one, method)).collect())
    }

    /// Begins a query about several modules.
    fn in_modules(&self, methods: &[(ModuleId, Token)], method: &'static str) -> Result<Vec<Option<InModule>>> {
        methods.iter().map(|(module, _)| self.in_module(*module, method)).collect()
    }

    /// The live versions of a function. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn rejit_ids(&self, function: FunctionId) -> Result<Vec<ReJitId>> {
        let method = "GetReJITIDs";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        let _function_stays = function.enter(method)?;
        // SAFETY: valid out-parameters.
        let ids = ask_array(method, |capacity, needed, ids| unsafe {
            runtime.GetReJITIDs(function.0, capacity, needed, ids)
        })?;
        Ok(ids.into_iter().map(ReJitId).collect())
    }

    /// The code of one version of a function in its first tier ([`code_starts`](Self::code_starts)
    /// returns all tiers). Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn code_info_of(&self, function: FunctionId, rejit: ReJitId) -> Result<Vec<CodeRange>> {
        let method = "GetCodeInfo3";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        let _function_stays = function.enter(method)?;
        // SAFETY: valid out-parameters.
        ask_array(method, |capacity, needed, infos| unsafe {
            runtime.GetCodeInfo3(function.0, rejit.0, capacity, needed, infos)
        })
        .map(ranges)
    }

    /// Native code and IL of one version of a function in its first tier
    /// ([`il_map_at`](Self::il_map_at) finds the map of any tier by its code). Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn il_map(&self, function: FunctionId, rejit: ReJitId) -> Result<Vec<IlRange>> {
        let method = "GetILToNativeMapping2";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        let _function_stays = function.enter(method)?;
        // SAFETY: valid out-parameters.
        let map: Vec<COR_DEBUG_IL_TO_NATIVE_MAP> = ask_array(method, |capacity, needed, map| unsafe {
            runtime.GetILToNativeMapping2(function.0, rejit.0, capacity, needed, map)
        })?;
        Ok(il_ranges(map))
    }
}

fn columns(methods: &[(ModuleId, Token)]) -> (Vec<usize>, Vec<u32>) {
    methods.iter().map(|(module, token)| (module.0, token.0)).unzip()
}
