//! Hooks that can read arguments, results and exact type arguments. The runtime calls them through
//! its own code, which makes them slow.

use std::collections::HashMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler_sys::structs::{COR_PRF_FUNCTION_ARGUMENT_INFO, COR_PRF_FUNCTION_ARGUMENT_RANGE};
use clr_profiler_sys::types::FunctionIDOrClientID;

use super::{FunctionMapper, Mapped};
use crate::boundary::guard;
use crate::call_context::during_hook;
use crate::error::check;
use crate::{ClientId, FunctionId, FunctionInfo, HResult, ProfilerInfo, Result};

/// Hooks in safe Rust that may read arguments and results. A panic in one is caught and counted.
///
/// Hooks of this kind have no caller's stack pointer, so they can't keep a
/// [`ShadowStack`](crate::shadow_stack::ShadowStack). As with [`CallHooks`](crate::CallHooks),
/// enter and leave need not balance, and a hook must not block. A query of the arguments takes
/// about 100 ns per call, which is most of the cost of these hooks (see the table of
/// [`Hooks`](crate::Hooks#cost)).
///
/// ```
/// use std::sync::Arc;
/// use clr_profiler::{ClientId, HookedCall, Hooks, InfoHooks, NamedFunctions, ProfilerInfo, Setup};
///
/// /// Remembers the bytes of each argument of `Shop.Checkout::Pay`.
/// struct Arguments;
///
/// impl InfoHooks for Arguments {
///     fn enter(&self, _id: ClientId, call: &HookedCall<'_>) {
///         let arguments: Vec<&[u8]> = call.arguments().unwrap_or_default();
///         # drop(arguments);
///     }
/// }
///
/// fn setup(info: &ProfilerInfo) -> Setup {
///     let functions = Arc::new(NamedFunctions::new(info, |function| function.name == "Shop.Checkout::Pay"));
///     Setup::default().with_hooks(Hooks::with_info(Arc::new(Arguments), functions))
/// }
/// ```
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait InfoHooks: Send + Sync + 'static {
    /// A function was entered; its arguments are set, its first statement has not run.
    fn enter(&self, id: ClientId, call: &HookedCall<'_>) {}
    /// A function is about to return.
    fn leave(&self, id: ClientId, call: &HookedCall<'_>) {}
    /// A function is about to make a tail call: the called function replaces it.
    fn tailcall(&self, id: ClientId, call: &HookedCall<'_>) {}
}

/// Queries about the current call, for a hook; valid inside the hook only.
pub struct HookedCall<'h> {
    record: &'static Record,
    kind: Kind,
    /// The runtime's own handle of the call.
    handle: usize,
    hook: PhantomData<&'h *const ()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Enter,
    Leave,
    Tailcall,
}

/// Maximum number of arguments. Nearly all functions have fewer, and so many fit on the stack.
const MOST_AT_ONCE: usize = 32;

/// A header and room for the ranges behind it.
#[repr(C)]
struct Arguments {
    info: COR_PRF_FUNCTION_ARGUMENT_INFO,
    more: [COR_PRF_FUNCTION_ARGUMENT_RANGE; MOST_AT_ONCE - 1],
}

impl<'h> HookedCall<'h> {
    /// The function.
    #[must_use]
    pub fn function(&self) -> FunctionId {
        self.record.function
    }

    /// The runtime's own handle of the call (`COR_PRF_ELT_INFO`), for queries that have no method
    /// here. Valid inside the hook only.
    #[must_use]
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// The bytes of each argument, in the order of the source, `this` first. A reference is the
    /// address of its object; a hook may use only the address, not the object. Small numbers may be
    /// full words with meaningless upper bytes.
    ///
    /// # Errors
    /// The runtime's error; `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` outside of `enter`, `E_NOTIMPL`
    /// for more than 32 arguments.
    pub fn arguments(&self) -> Result<Vec<&'h [u8]>> {
        let method = "GetFunctionEnter3Info";
        self.only(Kind::Enter, method)?;
        let mut found = Arguments { info: COR_PRF_FUNCTION_ARGUMENT_INFO::default(), more: Default::default() };
        let (mut frame, mut size) = (0, size_of::<Arguments>() as u32);
        let info = &self.record.installed.info;
        let (function, start) = (self.record.function.0, (&raw mut found).cast());
        // SAFETY: the runtime's handle of this call, and a buffer of the size said.
        let answer =
            unsafe { info.in_hook().GetFunctionEnter3Info(function, self.handle, &mut frame, &mut size, start) };
        if size as usize > size_of::<Arguments>() {
            return Err(crate::Error::refused(method, "there are more than 32 arguments")
                .with_hresult(HResult::NOT_IMPLEMENTED));
        }
        check(answer, method)?;
        let ranges = found.info.ranges.iter().chain(&found.more);
        // SAFETY: the runtime says that they lie there during the hook.
        Ok(ranges.take(found.info.num_ranges as usize).map(|range| unsafe { bytes(range) }).collect())
    }

    /// The bytes of the result; empty for `void`.
    ///
    /// # Errors
    /// The runtime's error; `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` outside of `leave`.
    pub fn result(&self) -> Result<&'h [u8]> {
        let method = "GetFunctionLeave3Info";
        self.only(Kind::Leave, method)?;
        let (mut frame, mut range) = (0, COR_PRF_FUNCTION_ARGUMENT_RANGE::default());
        let info = &self.record.installed.info;
        // SAFETY: the runtime's handle of this call, and valid out-parameters.
        let answer = unsafe {
            info.in_hook().GetFunctionLeave3Info(self.record.function.0, self.handle, &mut frame, &mut range)
        };
        check(answer, method)?;
        // SAFETY: the runtime says that it lies there during the hook.
        Ok(unsafe { bytes(&range) })
    }

    /// Class, token and type arguments of the called function. They are exact even if
    /// instantiations share their code.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn exact(&self) -> Result<FunctionInfo> {
        let info = &self.record.installed.info;
        info.function_info_in_frame(self.record.function, self.frame()?)
    }

    /// The runtime's handle of the frame.
    fn frame(&self) -> Result<usize> {
        let info = self.record.installed.info.in_hook();
        let (function, mut frame) = (self.record.function.0, 0);
        let (mut size, none) = (0, std::ptr::null_mut());
        let mut range = COR_PRF_FUNCTION_ARGUMENT_RANGE::default();
        // SAFETY: the runtime's handle of this call; valid out-parameters, or no room for
        // arguments.
        let answer = unsafe {
            match self.kind {
                Kind::Enter => info.GetFunctionEnter3Info(function, self.handle, &mut frame, &mut size, none),
                Kind::Leave => info.GetFunctionLeave3Info(function, self.handle, &mut frame, &mut range),
                Kind::Tailcall => info.GetFunctionTailcall3Info(function, self.handle, &mut frame),
            }
        };
        // Without room for arguments the runtime returns an error, but still returns the frame.
        if HResult(answer.0) != HResult::INSUFFICIENT_BUFFER {
            check(answer, "GetFunctionEnter3Info")?;
        }
        Ok(frame)
    }

    fn only(&self, kind: Kind, method: &'static str) -> Result<()> {
        if self.kind == kind { Ok(()) } else { Err(crate::Error::new(HResult::UNSUPPORTED_CALL_SEQUENCE, method)) }
    }
}

/// # Safety
/// The range must be readable for `'h`, or empty.
unsafe fn bytes<'h>(range: &COR_PRF_FUNCTION_ARGUMENT_RANGE) -> &'h [u8] {
    if range.start_address == 0 || range.length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(range.start_address as *const u8, range.length as usize) }
}

/// Hooks that the profiler installed; live as long as the process.
pub(super) struct Installed {
    hooks: Arc<dyn InfoHooks>,
    info: ProfilerInfo,
}

/// Record that the compiled code of one function passes to the hooks. The address of the record is
/// the client identifier for the runtime.
struct Record {
    installed: &'static Installed,
    function: FunctionId,
    id: ClientId,
}

/// Mapper that replaces the profiler's client identifier by a record.
struct Recording {
    installed: &'static Installed,
    mapper: Arc<dyn FunctionMapper>,
    records: Mutex<HashMap<FunctionId, &'static Record>>,
}

impl FunctionMapper for Recording {
    fn map(&self, function: FunctionId) -> Mapped {
        let Mapped::Hook(id) = self.mapper.map(function) else { return Mapped::Skip };
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let known = records.get(&function).copied().filter(|record| record.id == id);
        let record = known.unwrap_or_else(|| Box::leak(Box::new(Record { installed: self.installed, function, id })));
        records.insert(function, record);
        ClientId::new(std::ptr::from_ref(record).expose_provenance()).map_or(Mapped::Skip, Mapped::Hook)
    }
}

/// Registers the three functions below, and returns the mapper that they need.
pub(super) fn install(
    info: &ProfilerInfo,
    hooks: Arc<dyn InfoHooks>,
    mapper: Arc<dyn FunctionMapper>,
) -> Result<Arc<dyn FunctionMapper>> {
    let installed: &'static Installed = Box::leak(Box::new(Installed { hooks, info: info.clone() }));
    let runtime = info.base("SetEnterLeaveFunctionHooks3WithInfo")?;
    // SAFETY: functions that live as long as the process.
    let answer = unsafe { runtime.SetEnterLeaveFunctionHooks3WithInfo(Some(enter), Some(leave), Some(tailcall)) };
    check(answer, "SetEnterLeaveFunctionHooks3WithInfo")?;
    Ok(Arc::new(Recording { installed, mapper, records: Mutex::default() }))
}

unsafe extern "system" fn enter(id: FunctionIDOrClientID, handle: usize) {
    // SAFETY: as the runtime calls it.
    unsafe { dispatch(id, handle, Kind::Enter, |hooks, id, call| hooks.enter(id, call)) }
}

unsafe extern "system" fn leave(id: FunctionIDOrClientID, handle: usize) {
    // SAFETY: as the runtime calls it.
    unsafe { dispatch(id, handle, Kind::Leave, |hooks, id, call| hooks.leave(id, call)) }
}

unsafe extern "system" fn tailcall(id: FunctionIDOrClientID, handle: usize) {
    // SAFETY: as the runtime calls it.
    unsafe { dispatch(id, handle, Kind::Tailcall, |hooks, id, call| hooks.tailcall(id, call)) }
}

/// # Safety
/// `id` must be an identifier that [`Recording`] returned.
unsafe fn dispatch(
    id: FunctionIDOrClientID,
    handle: usize,
    kind: Kind,
    call: impl FnOnce(&dyn InfoHooks, ClientId, &HookedCall<'_>),
) {
    // SAFETY: the caller's promise; records are never freed.
    let record: &'static Record = unsafe { &*std::ptr::with_exposed_provenance::<c_void>(id.clientID).cast() };
    let hooked = HookedCall { record, kind, handle, hook: PhantomData };
    during_hook(|| guard((), || call(&*record.installed.hooks, record.id, &hooked)));
}
