//! Changed IL: before the first compilation, and compiling again.

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
    /// New IL, header and body, for a method that has not been compiled: in `module_load_finished`
    /// or `jit_compilation_started`. The framework copies it into memory of the runtime's, which is
    /// never freed.
    ///
    /// # Errors
    /// `E_INVALIDARG` with a sentence for bytes that are no whole body; the runtime's error;
    /// `E_OUTOFMEMORY` when it has no memory for the body.
    ///
    /// # Safety
    /// The runtime does not verify IL. The code must be right for the method: it must keep to
    /// types, to its stack and to what its header says, and refer to tokens that the module has.
    /// What is wrong in it reads and writes anywhere in the program.
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

    /// Tells debuggers where the original instructions of a function went that was changed by
    /// [`set_il_function_body`](Self::set_il_function_body). In the callbacks about its
    /// compilation.
    ///
    /// # Errors
    /// The runtime's error; `E_OUTOFMEMORY` when there is no memory for the map.
    pub fn set_il_map(&self, function: FunctionId, map: &[IlMove]) -> Result<()> {
        let method = "SetILInstrumentedCodeMap";
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let _function_stays = function.enter(method)?;
        let (count, entries) = il_map_for_runtime(method, map)?;
        // SAFETY: the runtime takes the memory over and frees it by the C library's `free`, whose
        // it is.
        check(unsafe { runtime.SetILInstrumentedCodeMap(function.0, BOOL(1), count, entries) }, method)
    }

    /// Makes metadata that was added to a module after its load known to the runtime. May collect:
    /// not during a collection, nor in hooks.
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

    /// Asks for methods to be compiled again; `get_rejit_parameters` follows for each. Suspends the
    /// program for a moment: from a thread of the profiler's own, or a callback that holds no
    /// locks. Needs [`Events::ENABLE_REJIT`](crate::Events::ENABLE_REJIT).
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

    /// As [`request_rejit`](Self::request_rejit), and methods that have taken in one of these are
    /// compiled again too, for each of which `get_rejit_parameters` follows as well: who goes back
    /// to the original code [reverts](Self::request_revert) them too. From then on none of these is
    /// inlined: the runtime has no other form.
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

    /// Goes back to the original code of methods; gives what came of each.
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

    /// A call about several modules begins.
    fn in_modules(&self, methods: &[(ModuleId, Token)], method: &'static str) -> Result<Vec<Option<InModule>>> {
        methods.iter().map(|(module, _)| self.in_module(*module, method)).collect()
    }

    /// The versions of a function that are alive. Not in hooks.
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

    /// The code of one version of a function, as it was first compiled
    /// ([`code_starts`](Self::code_starts) has all tiers). Not in hooks.
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

    /// Native code and IL of one version of a function, as it was first compiled
    /// ([`il_map_at`](Self::il_map_at) asks by code). Not in hooks.
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
