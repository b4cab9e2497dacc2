//! Callbacks whose arguments are single values. They are generated from the table of callbacks and
//! from the raw form of each argument type.

use std::ffi::c_void;

use clr_profiler_sys::enums::{COR_PRF_JIT_CACHE, COR_PRF_SUSPEND_REASON, COR_PRF_TRANSITION_REASON};
use windows_core::{BOOL, GUID, HRESULT};

use crate::callback_args::{JitCache, SuspendReason, TransitionReason};
use crate::error::check;
use crate::{
    AppDomainId, AssemblyId, ClassId, EventPipeProviderId, FunctionId, GcHandleId, Guid, ModuleId, ObjectId, ReJitId,
    Result, ThreadId, Token,
};

/// An argument of a callback that the runtime passes as one value.
pub(super) trait Wire {
    /// The argument as the runtime passes it.
    type Raw;

    /// Converts the argument of `callback` to the type that profilers get.
    ///
    /// # Safety
    /// `raw` must be the value that the runtime passed to the running callback: pointers are null
    /// or valid until the callback returns.
    unsafe fn read(raw: Self::Raw, callback: &'static str) -> Self;
}

/// Argument types that one expression converts.
macro_rules! wire {
    ($($type:ty = $raw:ty, |$it:pat_param| $made:expr;)*) => {
        $(impl Wire for $type {
            type Raw = $raw;

            #[inline]
            unsafe fn read($it: $raw, _callback: &'static str) -> Self {
                $made
            }
        })*
    };
}

wire! {
    AppDomainId = usize, |raw| Self(raw);
    AssemblyId = usize, |raw| Self::received(raw);
    ModuleId = usize, |raw| Self(raw);
    ClassId = usize, |raw| Self::received(raw);
    FunctionId = usize, |raw| Self::received(raw);
    Option<FunctionId> = usize, |raw| FunctionId::received(raw).non_null();
    ThreadId = usize, |raw| Self(raw);
    ReJitId = usize, |raw| Self(raw);
    GcHandleId = usize, |raw| Self(raw);
    EventPipeProviderId = usize, |raw| Self(raw);
    ObjectId<'_> = usize, |raw| Self::new(raw);
    Token = u32, |raw| Self(raw);
    u32 = u32, |raw| raw;
    bool = BOOL, |raw| raw.as_bool();
    usize = *mut c_void, |raw| raw as usize;
    JitCache = COR_PRF_JIT_CACHE, |raw| Self::from_raw(raw.0);
    SuspendReason = COR_PRF_SUSPEND_REASON, |raw| Self::from_raw(raw.0);
    TransitionReason = COR_PRF_TRANSITION_REASON, |raw| Self::from_raw(raw.0);
}

/// The operation whose status the callback reports, for the text of the error.
fn subject(callback: &'static str) -> &'static str {
    match callback {
        "AppDomainCreationFinished" => "application domain creation",
        "AppDomainShutdownFinished" => "application domain shutdown",
        "AssemblyLoadFinished" => "assembly load",
        "ModuleLoadFinished" => "module load",
        "ClassLoadFinished" => "class load",
        "ClassUnloadFinished" => "class unload",
        "JITCompilationFinished" | "DynamicMethodJITCompilationFinished" => "compilation",
        "ReJITCompilationFinished" => "ReJIT compilation",
        "ReJITError" => "ReJIT",
        other => other,
    }
}

/// A status: the error names the operation.
impl Wire for Result<()> {
    type Raw = HRESULT;

    #[inline]
    unsafe fn read(raw: HRESULT, callback: &'static str) -> Self {
        check(raw, subject(callback))
    }
}

impl Wire for &Guid {
    type Raw = *const GUID;

    #[inline]
    unsafe fn read(raw: *const GUID, _callback: &'static str) -> Self {
        const NONE: &Guid = &Guid::from_u128(0);
        // SAFETY: the caller vouches for null or a valid pointer that outlives the callback.
        unsafe { Guid::from_ptr(raw) }.unwrap_or(NONE)
    }
}

/// Defines `forward!`, which writes methods of the callback object. Each method passes its
/// arguments to the profiler's method that the table names.
macro_rules! define_forward {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        macro_rules! forward_one {
            $(($runtime_name) => {
                unsafe fn $runtime_name(&self $(, $argument: <$type as $crate::com::wire::Wire>::Raw)*) -> windows_core::HRESULT {
                    self.notify(|profiler| {
                        // SAFETY: the runtime passes these arguments to this callback, which is
                        // running.
                        profiler.$name($(unsafe {
                            <$type as $crate::com::wire::Wire>::read($argument, stringify!($runtime_name))
                        }),*);
                    })
                }
            };)*
        }
    };
}

crate::for_each_callback!(define_forward);

/// Writes several methods of the callback object.
macro_rules! forward {
    ($($runtime_name:ident)*) => { $(forward_one!($runtime_name);)* };
}
