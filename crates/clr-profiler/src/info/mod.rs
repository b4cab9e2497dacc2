//! Queries to the runtime.

mod classes;
mod code;
mod connection;
mod event_pipe;
mod exceptions;
mod functions;
mod heap;
mod lists;
mod modules;
mod process;
mod references;
mod rejit;
mod signatures;
mod stacks;
mod statics;
mod strings;
mod threads;

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clr_profiler_sys::info::*;
use windows_core::{GUID, HRESULT, IUnknown, Interface};

use crate::call_context::outside_hooks;
use crate::error::check;
use crate::gate::Inside;
use crate::stop::Stops;
use crate::unloads::InModule;
use crate::{ClassId, Error, Events, HResult, Result};

pub use classes::{ArrayClass, ClassInfo, ClassLayout};
pub(crate) use connection::Call;
use connection::Connection;

pub use code::{CodeRange, CodeStart, IlPlace, IlRange};
pub use event_pipe::{EventDefinition, ProviderConfig, ProviderState};
pub use exceptions::{ClauseKind, ExceptionClause};
pub use functions::{DynamicFunction, FunctionInfo};
pub use heap::{ArrayObject, HandleKind, HeapRange, ObjectHandle, Reference};
pub use lists::Inliners;
pub use modules::{AppDomainInfo, AssemblyInfo, ModuleFlags, ModuleInfo};
pub(crate) use process::LAST_WAIT;
pub use process::Suspended;
pub use stacks::{NoStack, StackFrame, StackWalk};
pub use statics::{StaticAddress, StaticKind};
pub use strings::{StringLayout, Utf16Text};
pub use threads::RuntimeVersion;

/// The runtime's information interface, as safe methods.
///
/// Holds one pointer to the newest interface level of the running runtime; a method of a newer
/// level returns `E_NOTIMPL` with a reason. Cheap to clone and usable on every thread, but not
/// everywhere: each method says where it is callable. As a rule, make no query in an enter, leave
/// or tail-call hook, in a signal handler, or between begin and end of a collection, unless the
/// method allows it. Debug builds refuse queries in a hook, or in a callback about objects during a
/// collection, with a reason and `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE`. Release builds make these
/// queries, at the risk of the program. Queries that may load types are refused on threads that the
/// runtime does not know, in release builds too.
///
/// ```
/// use clr_profiler::{ModuleId, ProfilerInfo};
///
/// /// Path and assembly of a module, in `module_attached_to_assembly`.
/// fn in_a_callback(info: &ProfilerInfo, module: ModuleId) -> String {
///     match info.module_info(module) {
///         Ok(found) => format!("{} in {:?}", found.path, found.assembly),
///         // `GetModuleInfo2: CORPROF_E_DATAINCOMPLETE (0x80131351)` while it is still loading.
///         Err(error) => error.to_string(),
///     }
/// }
/// ```
///
/// # What is not wrapped
///
/// All methods of `ICorProfilerInfo` to `ICorProfilerInfo15` are wrapped except these:
///
/// | Method | Instead, or why not |
/// |---|---|
/// | `GetCodeInfo` | [`code_info`](Self::code_info): one range was not enough |
/// | `GetEventMask` | [`events`](Self::events): both words |
/// | `SetEventMask` | [`set_events`](Self::set_events): both words |
/// | `GetFunctionFromIP` | [`function_at`](Self::function_at): dynamic methods too |
/// | `GetFunctionFromIP2` | [`function_at`](Self::function_at): dynamic methods too |
/// | `GetObjectSize` | [`object_size`](Self::object_size): above 4 GiB too |
/// | `GetClassIDInfo` | [`class_info`](Self::class_info): with type arguments |
/// | `GetModuleInfo` | [`module_info`](Self::module_info): with flags |
/// | `GetILToNativeMapping` | [`il_map`](Self::il_map): of each version |
/// | `GetStringLayout` | [`string_layout`](Self::string_layout): the old method returns a length field that strings no longer have |
/// | `GetThreadStaticAddress` | [`thread_static_address`](Self::thread_static_address): with the application domain |
/// | `EnumJITedFunctions` | [`compiled_functions`](Self::compiled_functions): each version |
/// | `SetEnterLeaveFunctionHooks` | [`Setup::with_hooks`](crate::Setup::with_hooks): the first form of hooks |
/// | `SetEnterLeaveFunctionHooks2` | [`Setup::with_hooks`](crate::Setup::with_hooks): the second form of hooks |
/// | `SetFunctionIDMapper` | [`FunctionMapper`](crate::FunctionMapper): the form without client data |
/// | `SetFunctionReJIT` | the runtime answers `E_NOTIMPL`: [`request_rejit`](Self::request_rejit) |
/// | `GetInprocInspectionInterface` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `GetInprocInspectionIThisThread` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `BeginInprocDebugging` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `EndInprocDebugging` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `GetThreadContext` | there are no remoting contexts to name |
/// | `GetContextStaticAddress` | the runtime answers `E_NOTIMPL`: there are no remoting contexts |
///
/// All of them can still be called through [`sys`](crate::sys), with the pointer from
/// [`as_raw`](Self::as_raw).
#[derive(Clone)]
pub struct ProfilerInfo {
    connection: Arc<Connection>,
}

/// An information interface with its level, for calls of the methods that this level added.
///
/// # Safety
/// [`LEVEL`](Self::LEVEL) must be the number in the interface's name.
unsafe trait Level: Interface {
    const LEVEL: u8;
}

macro_rules! levels {
    ($($interface:ident = $level:literal),*) => {$(
        // SAFETY: the number stands in the name.
        unsafe impl Level for $interface {
            const LEVEL: u8 = $level;
        }
    )*};
}

levels! {
    ICorProfilerInfo4 = 4, ICorProfilerInfo5 = 5, ICorProfilerInfo6 = 6, ICorProfilerInfo7 = 7, ICorProfilerInfo8 = 8,
    ICorProfilerInfo9 = 9, ICorProfilerInfo10 = 10, ICorProfilerInfo11 = 11, ICorProfilerInfo12 = 12,
    ICorProfilerInfo13 = 13, ICorProfilerInfo14 = 14, ICorProfilerInfo15 = 15
}

/// The interface levels from newest to oldest. .NET 8, the oldest runtime supported, has 14.
const LEVELS: [(u8, GUID); 13] = [
    (15, ICorProfilerInfo15::IID),
    (14, ICorProfilerInfo14::IID),
    (13, ICorProfilerInfo13::IID),
    (12, ICorProfilerInfo12::IID),
    (11, ICorProfilerInfo11::IID),
    (10, ICorProfilerInfo10::IID),
    (9, ICorProfilerInfo9::IID),
    (8, ICorProfilerInfo8::IID),
    (7, ICorProfilerInfo7::IID),
    (6, ICorProfilerInfo6::IID),
    (5, ICorProfilerInfo5::IID),
    (4, ICorProfilerInfo4::IID),
    (3, ICorProfilerInfo3::IID),
];

impl ProfilerInfo {
    /// Requests the interface levels, from the newest downwards, and takes the first that the
    /// runtime has.
    ///
    /// # Safety
    /// `unknown` must be null or the interface pointer that the runtime passed to `Initialize`.
    pub(crate) unsafe fn from_runtime(unknown: *mut c_void) -> Result<Self> {
        // SAFETY: the caller vouches for the pointer; it is only borrowed.
        let unknown =
            unsafe { IUnknown::from_raw_borrowed(&unknown) }.ok_or(Error::new(HResult::POINTER, "Initialize"))?;
        for (level, iid) in LEVELS {
            let mut found = std::ptr::null_mut();
            // SAFETY: both pointers are valid.
            let answer = unsafe { unknown.query(&iid, &mut found) };
            if answer.is_ok() && !found.is_null() {
                // SAFETY: an owned reference to an interface that inherits level 3.
                let interface = unsafe { ICorProfilerInfo3::from_raw(found) };
                return Ok(Self { connection: Arc::new(Connection::new(interface, level)) });
            }
        }
        Err(Error::new(HResult::NO_INTERFACE, "QueryInterface"))
    }

    /// The interface level in use: 14 on .NET 8, 15 on 9 and 10.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.connection.level
    }

    /// Whether the runtime has loaded this profiler as a notification-only one: another profiler
    /// may have the main slot. Such a profiler can have only the events of
    /// [`Events::ALLOWED_FOR_NOTIFICATION`]. It can't have hooks and can't change methods.
    #[must_use]
    pub fn is_notification_only(&self) -> bool {
        self.connection.is_notification_only.load(Ordering::Relaxed)
    }

    /// Notes that the profiler does not have the main slot.
    pub(crate) fn mark_notification_only(&self) {
        self.connection.is_notification_only.store(true, Ordering::Relaxed);
    }

    /// The runtime's interface itself, for methods that the framework does not wrap: an
    /// `ICorProfilerInfo` of level [`level`](Self::level) and of each lower level. The pointer is
    /// borrowed: do not release it, and do not use it once
    /// [`profiler_detach_succeeded`](crate::Callbacks::profiler_detach_succeeded) is called.
    #[must_use]
    pub fn as_raw(&self) -> *mut c_void {
        self.connection.in_hook().as_raw()
    }

    /// The profiler's own threads.
    pub(crate) fn own_threads(&self) -> &Stops {
        &self.connection.own_threads
    }

    /// The interface for one call of a method that every supported runtime has.
    ///
    /// # Errors
    /// A refusal with a reason after the detach.
    pub(crate) fn base(&self, method: &'static str) -> Result<Call<'_, ICorProfilerInfo3>> {
        // SAFETY: the interface of that level.
        unsafe { self.connection.call(3, method) }
    }

    /// The interface, for calls in hooks.
    pub(crate) fn in_hook(&self) -> &ICorProfilerInfo3 {
        self.connection.in_hook()
    }

    /// The interface for one call of a method that a later level added.
    ///
    /// # Errors
    /// A refusal with a reason after the detach, and if the runtime is older than the level.
    fn at_level<I: Level>(&self, method: &'static str) -> Result<Call<'_, I>> {
        // SAFETY: the interface of that level, as `Level` says.
        unsafe { self.connection.call(I::LEVEL, method) }
    }

    /// Notes that the profiler can't be detached any more, so calls need not be counted.
    pub(crate) fn stay_for_good(&self) {
        self.connection.stay_for_good();
    }

    /// Marks the start of a callback. The callback ends when the returned value is dropped.
    #[inline]
    pub(crate) fn callback_begins(&self) -> Option<Inside<'_>> {
        self.connection.callback_begins()
    }

    /// The detach is complete: refuses all calls from now on.
    pub(crate) fn close(&self) {
        self.connection.close();
    }

    /// Waits for the calls that began before [`close`](Self::close): when the detach callback
    /// returns, the runtime frees structures that these calls use.
    pub(crate) fn wait_for_calls(&self) {
        self.connection.wait_for_calls();
    }

    /// The events that are enabled now.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn events(&self) -> Result<Events> {
        let method = "GetEventMask2";
        let (mut low, mut high) = (0, 0);
        // SAFETY: two valid out-parameters.
        let answer = unsafe { self.at_level::<ICorProfilerInfo5>(method)?.GetEventMask2(&mut low, &mut high) };
        check(answer, method)?;
        Ok(Events::from_bits(low, high))
    }

    /// Sets all events at once. While the program runs, events of [`Events::ONLY_AT_START`] can't
    /// be added; `events() | more` and `events() - less` enable and disable groups of events.
    /// Callable everywhere but in hooks. [`Events::MODULE_LOADS`] stays enabled once the program
    /// has a module that can be unloaded, because the framework must invalidate the metadata of an
    /// unloaded module.
    ///
    /// # Errors
    /// A refusal with a reason and the runtime's result code, in these cases: the call changes an
    /// immutable event; an attached or notification-only profiler requests events that it may not
    /// have; [`Events::GC`] is requested after the start; an event needs another event to report
    /// anything. On an error no event changes.
    pub fn set_events(&self, events: Events) -> Result<()> {
        let method = "SetEventMask2";
        outside_hooks(method)?;
        events.check_alone(method)?;
        // If there was a module that can be unloaded, the profiler may have opened its metadata.
        let events = if self.connection.modules.any() { events | Events::MODULE_LOADS } else { events };
        let (low, high) = events.bits();
        // SAFETY: plain numbers.
        let answer = unsafe { self.at_level::<ICorProfilerInfo5>(method)?.SetEventMask2(low, high) };
        check(answer, method).map_err(|error| self.explain_refusal(events, error))
    }

    /// Adds a sentence with the reason to a result code that the runtime uses for many reasons.
    fn explain_refusal(&self, wanted: Events, error: Error) -> Error {
        let Ok(now) = self.events() else { return error };
        let refused = |reason: String| Error::refused("SetEventMask2", reason).with_hresult(error.hresult());
        let changed = (wanted - now).union(now - wanted).intersection(Events::IMMUTABLE);
        let beyond = |allowed| wanted - allowed;
        match error.hresult() {
            HResult::FAIL if !changed.is_empty() => {
                refused(format!("{changed} can only be set while the profiler initializes"))
            }
            HResult::UNSUPPORTED_FOR_ATTACH => {
                let these = beyond(Events::ALLOWED_AFTER_ATTACH);
                refused(format!("a profiler that attaches to a running program can't have {these}"))
            }
            HResult::INVALID_ARGUMENT if !beyond(Events::ALLOWED_FOR_NOTIFICATION).is_empty() => {
                let these = beyond(Events::ALLOWED_FOR_NOTIFICATION);
                refused(format!("a notification-only profiler can't have {these}"))
            }
            HResult::CONCURRENT_GC_NOT_PROFILABLE => refused(
                "GC can be set while the profiler initializes only: collections run beside the program now".into(),
            ),
            HResult::REJIT_NOT_ENABLED => refused("ENABLE_REJIT can only be set while the profiler initializes".into()),
            _ => error,
        }
    }

    pub(crate) fn set_function_mapper(
        &self,
        mapper: clr_profiler_sys::function_pointers::FunctionIDMapper2,
        client_data: *mut c_void,
    ) -> Result<()> {
        let runtime = self.base("SetFunctionIDMapper2")?;
        // SAFETY: the mapper and its data are never freed.
        check(unsafe { runtime.SetFunctionIDMapper2(Some(mapper), client_data) }, "SetFunctionIDMapper2")
    }

    /// Sets the entry points of enter, leave and tail call; null for none.
    pub(crate) fn set_hooks(&self, [enter, leave, tailcall]: [*const c_void; 3]) -> Result<()> {
        let runtime = self.base("SetEnterLeaveFunctionHooks3")?;
        use clr_profiler_sys::function_pointers::FunctionEnter3;
        // SAFETY: a null pointer is `None`, any other pointer is code; the compiled code that calls
        // it has its own convention.
        let entry = |address| unsafe { std::mem::transmute::<*const c_void, Option<FunctionEnter3>>(address) };
        // SAFETY: the maker of the hooks vouched for them.
        let answer = unsafe { runtime.SetEnterLeaveFunctionHooks3(entry(enter), entry(leave), entry(tailcall)) };
        check(answer, "SetEnterLeaveFunctionHooks3")
    }
}

/// Begins a query about several classes.
///
/// # Errors
/// A refusal with a reason if one of the classes is unloaded.
fn enter_all(classes: &[ClassId], method: &'static str) -> Result<Vec<Option<InModule>>> {
    classes.iter().map(|class| class.enter(method)).collect()
}

/// Calls a method that returns one word by an out-parameter.
fn ask_word(method: &'static str, ask: impl FnOnce(*mut usize) -> HRESULT) -> Result<usize> {
    let mut word = 0;
    check(ask(&mut word), method)?;
    Ok(word)
}

/// Queries an array of unknown length: first with a small buffer, then with the size that the
/// runtime needs.
fn ask_array<T: Copy + Default>(
    method: &'static str,
    ask: impl FnMut(u32, *mut u32, *mut T) -> HRESULT,
) -> Result<Vec<T>> {
    ask_array_of(method, 8, ask)
}

/// As [`ask_array`], with room for `room` elements in the first query, because the runtime computes
/// the whole answer for each query.
fn ask_array_of<T: Copy + Default>(
    method: &'static str,
    room: usize,
    mut ask: impl FnMut(u32, *mut u32, *mut T) -> HRESULT,
) -> Result<Vec<T>> {
    let mut buffer = vec![T::default(); room];
    for _ in 0..4 {
        let mut needed = 0;
        let answer = ask(buffer.len() as u32, &mut needed, buffer.as_mut_ptr());
        let needed = needed as usize;
        if needed > buffer.len() {
            buffer.resize(needed + 4, T::default());
            continue;
        }
        check(answer, method)?;
        buffer.truncate(needed);
        return Ok(buffer);
    }
    Err(Error::new(HResult::INSUFFICIENT_BUFFER, method))
}
