//! Queries about functions: their class, module, token and type arguments.

use clr_profiler_sys::info::ICorProfilerInfo8;
use windows_core::BOOL;

use super::{ProfilerInfo, ask_array, ask_word, enter_all};
use crate::call_context::{outside_collections, outside_hooks, where_objects_may_move};
use crate::error::check;
use crate::text::read_text;
use crate::{ClassId, FunctionId, ModuleId, Result, Token};

/// Description of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Class of the function; `None` if several instantiations share the code.
    pub class: Option<ClassId>,
    /// Module that declares the function.
    pub module: ModuleId,
    /// Token of the method in this module.
    pub token: Token,
    /// The type arguments of the method itself (not of its class).
    pub type_arguments: Vec<ClassId>,
}

/// Description of a function without metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DynamicFunction {
    /// The module that the function is attached to.
    pub module: ModuleId,
    /// Name of the function.
    pub name: String,
    /// Signature, in the metadata's encoding.
    pub signature: Vec<u8>,
}

impl ProfilerInfo {
    /// Class, module, token and type arguments of a function. Loads no type, so callable on every
    /// thread. Not in hooks or during a collection.
    ///
    /// # Errors
    /// The runtime's error; dynamic functions have no token, see
    /// [`dynamic_function_info`](Self::dynamic_function_info).
    pub fn function_info(&self, function: FunctionId) -> Result<FunctionInfo> {
        outside_collections("GetFunctionInfo2")?;
        self.function_info_in_frame(function, 0)
    }

    /// [`function_info`](Self::function_info) for one frame, with exact type arguments. A `frame`
    /// of 0 means no frame.
    pub(crate) fn function_info_in_frame(&self, function: FunctionId, frame: usize) -> Result<FunctionInfo> {
        let runtime = self.base("GetFunctionInfo2")?;
        let _function_stays = function.enter("GetFunctionInfo2")?;
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
        let found = FunctionInfo {
            class: ClassId::received(class).non_null(),
            module: ModuleId(module),
            token: Token(token),
            type_arguments: type_arguments.into_iter().map(ClassId::received).collect(),
        };
        self.note_function(function, found.class, found.module, &found.type_arguments);
        Ok(found)
    }

    /// Class, module and token of a function, for callers that need no type arguments. Faster than
    /// [`function_info`](Self::function_info), and callable in the same places.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn function_place(&self, function: FunctionId) -> Result<(Option<ClassId>, ModuleId, Token)> {
        outside_collections("GetFunctionInfo")?;
        let runtime = self.base("GetFunctionInfo")?;
        let _function_stays = function.enter("GetFunctionInfo")?;
        let (mut class, mut module, mut token) = (0, 0, 0);
        // SAFETY: valid out-parameters.
        let answer = unsafe { runtime.GetFunctionInfo(function.0, &mut class, &mut module, &mut token) };
        check(answer, "GetFunctionInfo")?;
        let class = ClassId::received(class).non_null();
        self.note_function(function, class, ModuleId(module), &[]);
        Ok((class, ModuleId(module), Token(token)))
    }

    /// Whether a function has no metadata. Callable anywhere but in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn is_function_dynamic(&self, function: FunctionId) -> Result<bool> {
        outside_hooks("IsFunctionDynamic")?;
        let method = "IsFunctionDynamic";
        let _function_stays = function.enter(method)?;
        let mut dynamic = BOOL(0);
        // SAFETY: a valid out-parameter.
        let answer = unsafe { self.at_level::<ICorProfilerInfo8>(method)?.IsFunctionDynamic(function.0, &mut dynamic) };
        check(answer, method)?;
        Ok(dynamic.as_bool())
    }

    /// Name, signature and module of a function without metadata. Not in hooks, nor during a
    /// collection.
    ///
    /// # Errors
    /// The runtime's error; `E_INVALIDARG` for ordinary functions.
    pub fn dynamic_function_info(&self, function: FunctionId) -> Result<DynamicFunction> {
        outside_collections("GetDynamicFunctionInfo")?;
        let method = "GetDynamicFunctionInfo";
        let runtime = self.at_level::<ICorProfilerInfo8>(method)?;
        let _function_stays = function.enter(method)?;
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
            // SAFETY: the runtime points to that many bytes, which live at least as long as the
            // function.
            unsafe { std::slice::from_raw_parts(blob, size as usize) }.to_vec()
        };
        Ok(DynamicFunction { module: ModuleId(module), name, signature })
    }

    /// The function of a method that is neither generic nor in a generic class. The class must be
    /// loaded. Loads no type, so callable on every thread. Not in hooks or during a collection.
    ///
    /// # Errors
    /// The runtime's error: `E_INVALIDARG` also if the class is not loaded.
    pub fn function_from_token(&self, module: ModuleId, method: Token) -> Result<FunctionId> {
        where_objects_may_move("GetFunctionFromToken")?;
        let runtime = self.base("GetFunctionFromToken")?;
        let _inside = self.in_module(module, "GetFunctionFromToken")?;
        // SAFETY: a valid out-parameter.
        let ask = |out| unsafe { runtime.GetFunctionFromToken(module.0, method.0, out) };
        let function = FunctionId::received(ask_word("GetFunctionFromToken", ask)?);
        self.note_function(function, None, module, &[]);
        Ok(function)
    }

    /// The function of a method in `class` with these type arguments of the method itself. May load
    /// types, so callable on managed threads only: in callbacks, and on the profiler's own threads
    /// that the runtime has [adopted](Self::adopt_current_thread). Not in hooks, during a
    /// collection, or in callbacks with object arguments.
    ///
    /// # Errors
    /// `CORPROF_E_NOT_MANAGED_THREAD` with a reason on another thread; the runtime's error.
    pub fn function_from_token_and_type_args(
        &self,
        module: ModuleId,
        method: Token,
        class: Option<ClassId>,
        type_arguments: &[ClassId],
    ) -> Result<FunctionId> {
        self.where_types_may_load("GetFunctionFromTokenAndTypeArgs")?;
        let runtime = self.base("GetFunctionFromTokenAndTypeArgs")?;
        let _class_stays = class.map(|class| class.enter("GetFunctionFromTokenAndTypeArgs")).transpose()?;
        let _arguments_stay = enter_all(type_arguments, "GetFunctionFromTokenAndTypeArgs")?;
        let _inside = self.in_module(module, "GetFunctionFromTokenAndTypeArgs")?;
        let class = class.map_or(0, |class| class.0);
        let (count, arguments) = (type_arguments.len() as u32, type_arguments.as_ptr().cast());
        let function = ask_word("GetFunctionFromTokenAndTypeArgs", |out| {
            // SAFETY: a valid out-parameter and an array of identifiers, each a word.
            unsafe { runtime.GetFunctionFromTokenAndTypeArgs(module.0, method.0, class, count, arguments, out) }
        })
        .map(FunctionId::received)?;
        self.note_function(function, None, module, type_arguments);
        Ok(function)
    }

    /// Notes a function that is unloaded together with a collectible module, because the module
    /// declares the function or one of its type arguments.
    fn note_function(
        &self,
        function: FunctionId,
        class: Option<ClassId>,
        module: ModuleId,
        type_arguments: &[ClassId],
    ) {
        if !self.connection.modules.any() {
            return;
        }
        let declared = self.connection.modules.life(module);
        if let (Some(class), Some(life)) = (class, &declared) {
            class.goes_with(life);
        }
        let made_for = || type_arguments.iter().chain(&class).find_map(|class| class.life());
        if let Some(life) = declared.or_else(made_for) {
            function.goes_with(&life);
        }
    }

    /// The runtime compiles a function, which may be unloaded together with its module.
    pub(crate) fn compiling(&self, function: FunctionId) {
        if self.connection.modules.any() {
            // The query notes the function; for functions without metadata it fails.
            let _ = self.function_place(function);
        }
    }
}
