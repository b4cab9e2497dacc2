//! The fake runtime's control object for a recompilation: it stores the parameters that the
//! profiler sets for the method.

use std::ffi::c_void;

use clr_profiler::callback_args::CodegenFlags;
use clr_profiler::{HResult, ModuleId, Token};
use clr_profiler_sys::control::{ICorProfilerFunctionControl, ICorProfilerFunctionControl_Impl};
use clr_profiler_sys::structs::COR_IL_MAP;
use windows_core::{HRESULT, Interface, implement};

use super::answer::S_OK;
use super::code::ReJitParameters;
use super::world::Shared;

#[implement(ICorProfilerFunctionControl)]
struct Control {
    world: Shared,
    module: ModuleId,
    method: Token,
}

/// Requests the parameters of a method: calls `ask` with a control object.
pub(super) fn with_control(
    world: &Shared,
    module: ModuleId,
    method: u32,
    ask: impl FnOnce(*mut c_void) -> HRESULT,
) -> HRESULT {
    let method = Token::new(method);
    world.lock().code.begin(module, method);
    let control = ICorProfilerFunctionControl::from(Control { world: world.clone(), module, method });
    ask(control.as_raw())
}

impl Control_Impl {
    fn set(&self, set: impl FnOnce(&mut ReJitParameters)) -> HRESULT {
        match self.world.lock().code.newest(self.module, self.method) {
            Some(parameters) => set(parameters),
            None => return HRESULT(HResult::FAIL.0),
        }
        S_OK
    }
}

impl ICorProfilerFunctionControl_Impl for Control_Impl {
    unsafe fn SetCodegenFlags(&self, flags: u32) -> HRESULT {
        self.set(|parameters| parameters.flags = Some(CodegenFlags::from_raw(flags)))
    }

    unsafe fn SetILFunctionBody(&self, size: u32, body: *const u8) -> HRESULT {
        if body.is_null() || size == 0 {
            return HRESULT(HResult::INVALID_ARGUMENT.0);
        }
        // SAFETY: the caller's array.
        let body = unsafe { std::slice::from_raw_parts(body, size as usize) }.to_vec();
        self.set(|parameters| parameters.il = Some(body))
    }

    unsafe fn SetILInstrumentedCodeMap(&self, _entries: u32, _map: *const COR_IL_MAP) -> HRESULT {
        S_OK
    }
}
