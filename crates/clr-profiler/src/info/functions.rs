//! Functions: what they are and where they come from.

use clr_profiler_sys::info::ICorProfilerInfo8;
use windows_core::BOOL;

use super::{ProfilerInfo, ask_array, ask_word};
use crate::call_context::{outside_collections, outside_hooks, where_objects_may_move};
use crate::error::check;
use crate::text::read_text;
use crate::{ClassId, FunctionId, ModuleId, Result, Token};

/// Description of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Class; `None` where several instantiations share the code.
    pub class: Option<ClassId>,
    /// Module.
    pub module: ModuleId,
    /// Token there.
    pub token: Token,
    /// The type arguments of the method itself (not of its class).
    pub type_arguments: Vec<ClassId>,
}

/// Description of a function without metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DynamicFunction {
    /// The module it is attached to.
    pub module: ModuleId,
    /// Name.
    pub name: String,
    /// Signature, in the metadata's encoding.
    pub signature: Vec<u8>,
}

impl ProfilerInfo {
    /// Class, module, token and type arguments of a function. Not in hooks, nor during a collection.
    ///
    /// # Errors
    /// The runtime's error; dynamic functions have no token, see [`dynamic_function_info`](Self::dynamic_function_info).
    pub fn function_info(&self, function: FunctionId) -> Result<FunctionInfo> {
        outside_collections("GetFunctionInfo2")?;
        self.function_info_in_frame(function, 0)
    }

    /// [`function_info`](Self::function_info) for one frame, which gives type arguments exactly; 0 stands for none.
    pub(crate) fn function_info_in_frame(&self, function: FunctionId, frame: usize) -> Result<FunctionInfo> {
        let runtime = self.base("GetFunctionInfo2")?;
        let (mut class, mut module, mut token) = (0, 0, 0);
        let type_arguments = ask_array("GetFunctionInfo2", |capacity, needed, arguments: *mut usize| {
            // SAFETY: valid out-parameters; the frame is that of the hook that runs, or none.
            unsafe {
                runtime.GetFunctionInfo2(
                    function.0,
                    frame,
                    &mut class,
                    &mut module,
                    &mut token,
                    capacity,
                    needed,
                    arguments,
                )
            }
        })?;
        Ok(FunctionInfo {
            class: ClassId(class).non_null(),
            module: ModuleId(module),
            token: Token(token),
            type_arguments: type_arguments.into_iter().map(ClassId).collect(),
        })
    }

    /// Class, module and token of a function, for callers that need no type arguments: a lighter
    /// [`function_info`](Self::function_info), allowed in the same places.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn function_place(&self, function: FunctionId) -> Result<(Option<ClassId>, ModuleId, Token)> {
        outside_collections("GetFunctionInfo")?;
        let runtime = self.base("GetFunctionInfo")?;
        let (mut class, mut module, mut token) = (0, 0, 0);
        // SAFETY: valid out-parameters.
        let answer = unsafe { runtime.GetFunctionInfo(function.0, &mut class, &mut module, &mut token) };
        check(answer, "GetFunctionInfo")?;
        Ok((ClassId(class).non_null(), ModuleId(module), Token(token)))
    }

    /// Whether a function has no metadata. Callable anywhere but in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn is_function_dynamic(&self, function: FunctionId) -> Result<bool> {
        outside_hooks("IsFunctionDynamic")?;
        let method = "IsFunctionDynamic";
        let mut dynamic = BOOL(0);
        // SAFETY: a valid out-parameter.
        let answer = unsafe { self.at_level::<ICorProfilerInfo8>(method)?.IsFunctionDynamic(function.0, &mut dynamic) };
        check(answer, method)?;
        Ok(dynamic.as_bool())
    }

    /// Name, signature and module of a function without metadata. Not in hooks, nor during a collection.
    ///
    /// # Errors
    /// The runtime's error; ordinary functions give `E_INVALIDARG`.
    pub fn dynamic_function_info(&self, function: FunctionId) -> Result<DynamicFunction> {
        outside_collections("GetDynamicFunctionInfo")?;
        let method = "GetDynamicFunctionInfo";
        let runtime = self.at_level::<ICorProfilerInfo8>(method)?;
        let (mut module, mut blob, mut size) = (0, std::ptr::null(), 0);
        let name = read_text(method, |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe {
                runtime.GetDynamicFunctionInfo(function.0, &mut module, &mut blob, &mut size, capacity, needed, buffer)
            }
        })?;
        let signature = if blob.is_null() {
            Vec::new()
        } else {
            // SAFETY: the runtime points to that many bytes, which live at least as long as the function.
            unsafe { std::slice::from_raw_parts(blob, size as usize) }.to_vec()
        };
        Ok(DynamicFunction { module: ModuleId(module), name, signature })
    }

    /// The function of a method that is neither generic nor in a generic class. May load types: not in hooks, nor during a
    /// collection.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn function_from_token(&self, module: ModuleId, method: Token) -> Result<FunctionId> {
        where_objects_may_move("GetFunctionFromToken")?;
        let runtime = self.base("GetFunctionFromToken")?;
        let _inside = self.in_module(module, "GetFunctionFromToken")?;
        // SAFETY: a valid out-parameter.
        let ask = |out| unsafe { runtime.GetFunctionFromToken(module.0, method.0, out) };
        ask_word("GetFunctionFromToken", ask).map(FunctionId)
    }

    /// The function of a method with these type arguments (of the method itself), in `class`. May load types.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn function_from_token_and_type_args(
        &self,
        module: ModuleId,
        method: Token,
        class: Option<ClassId>,
        type_arguments: &[ClassId],
    ) -> Result<FunctionId> {
        where_objects_may_move("GetFunctionFromTokenAndTypeArgs")?;
        let runtime = self.base("GetFunctionFromTokenAndTypeArgs")?;
        let _inside = self.in_module(module, "GetFunctionFromTokenAndTypeArgs")?;
        let class = class.map_or(0, |class| class.0);
        let (count, arguments) = (type_arguments.len() as u32, type_arguments.as_ptr().cast());
        ask_word("GetFunctionFromTokenAndTypeArgs", |out| {
            // SAFETY: a valid out-parameter and an array of identifiers, each a word.
            unsafe { runtime.GetFunctionFromTokenAndTypeArgs(module.0, method.0, class, count, arguments, out) }
        })
        .map(FunctionId)
    }
}
