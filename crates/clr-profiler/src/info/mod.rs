//! Asking the runtime.

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

/// The runtime's answers, as safe calls.
///
/// One pointer of the newest interface level the running runtime has; a method of a newer one gives
/// `E_NOTIMPL` and a sentence. Cheap to clone and usable from every thread, but not from
/// everywhere: each method says where. As a rule nothing may be asked in an enter, leave or
/// tail-call hook, in a signal handler, or between begin and end of a collection, except where a
/// method says it can. Debug builds refuse what is asked in a hook, or in a callback about objects
/// during a collection, with a sentence and `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE`; release builds
/// ask, at the program's risk. What may load types is refused on threads that the runtime does not
/// know, in release builds too.
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
/// All methods of `ICorProfilerInfo` to `ICorProfilerInfo15` are wrapped but these:
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
/// | `GetStringLayout` | [`string_layout`](Self::string_layout): the old one has a length that strings have lost |
/// | `GetThreadStaticAddress` | [`thread_static_address`](Self::thread_static_address): with the application domain |
/// | `EnumJITedFunctions` | [`compiled_functions`](Self::compiled_functions): each version |
/// | `SetEnterLeaveFunctionHooks` | [`Setup::with_hooks`](crate::Setup::with_hooks): the first form of hooks |
/// | `SetEnterLeaveFunctionHooks2` | [`Setup::with_hooks`](crate::Setup::with_hooks): the second form of hooks |
/// | `SetFunctionIDMapper` | [`FunctionMapper`](crate::FunctionMapper): the form without data of one's own |
/// | `SetFunctionReJIT` | the runtime answers `E_NOTIMPL`: [`request_rejit`](Self::request_rejit) |
/// | `GetInprocInspectionInterface` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `GetInprocInspectionIThisThread` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `BeginInprocDebugging` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `EndInprocDebugging` | the runtime answers `E_NOTIMPL`: debugging in the process is gone |
/// | `GetThreadContext` | there are no remoting contexts to name |
/// | `GetContextStaticAddress` | the runtime answers `E_NOTIMPL`: there are no remoting contexts |
///
/// All of them are still within reach through [`sys`](crate::sys), by [`as_raw`](Self::as_raw).
#[derive(Clone)]
pub struct ProfilerInfo {
    connection: Arc<Connection>,
}

/// An information interface with its level, for calls of what it brought.
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
    /// Asks for the newest level, downwards.
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
    /// may have the main slot. Such a profiler gets the events of
    /// [`Events::ALLOWED_FOR_NOTIFICATION`] at most, no hooks, and can't change methods.
    #[must_use]
    pub fn is_notification_only(&self) -> bool {
        self.connection.is_notification_only.load(Ordering::Relaxed)
    }

    /// Notes that the profiler does not have the main slot.
    pub(crate) fn mark_notification_only(&self) {
        self.connection.is_notification_only.store(true, Ordering::Relaxed);
    }

    /// The runtime's interface itself, for what the framework does not wrap: an `ICorProfilerInfo`
    /// of level [`level`](Self::level), and of each lower one. Borrowed: it must not be released,
    /// and not be called from
    /// [`profiler_detach_succeeded`](crate::Callbacks::profiler_detach_succeeded) on.
    #[must_use]
    pub fn as_raw(&self) -> *mut c_void {
        self.connection.in_hook().as_raw()
    }

    /// The threads of the profiler's own.
    pub(crate) fn own_threads(&self) -> &Stops {
        &self.connection.own_threads
    }

    /// One call of a method that every supported runtime has.
    ///
    /// # Errors
    /// A sentence after the detach.
    pub(crate) fn base(&self, method: &'static str) -> Result<Call<'_, ICorProfilerInfo3>> {
        // SAFETY: the interface of that level.
        unsafe { self.connection.call(3, method) }
    }

    /// The interface, for calls in hooks.
    pub(crate) fn in_hook(&self) -> &ICorProfilerInfo3 {
        self.connection.in_hook()
    }

    /// One call of a method that came with a later level.
    ///
    /// # Errors
    /// A sentence after the detach, and where the runtime is older.
    fn at_level<I: Level>(&self, method: &'static str) -> Result<Call<'_, I>> {
        // SAFETY: the interface of that level, as `Level` says.
        unsafe { self.connection.call(I::LEVEL, method) }
    }

    /// The profiler can't be detached any more: calls need not be counted for a detach to wait for.
    pub(crate) fn stay_for_good(&self) {
        self.connection.stay_for_good();
    }

    /// A callback begins, and ends when the answer is dropped.
    #[inline]
    pub(crate) fn callback_begins(&self) -> Option<Inside<'_>> {
        self.connection.callback_begins()
    }

    /// The detach is complete: refuses all calls from now on.
    pub(crate) fn close(&self) {
        self.connection.close();
    }

    /// Waits for the calls that began before [`close`](Self::close): when the detach callback
    /// returns, the runtime frees what they use.
    pub(crate) fn wait_for_calls(&self) {
        self.connection.wait_for_calls();
    }

    /// The events in force.
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

    /// Sets all events at once. While the program runs, only those outside
    /// [`Events::ONLY_AT_START`] can be added; `events() | more` and `events() - less` switch
    /// groups on and off. Callable everywhere but in hooks; the change holds for what happens from
    /// then on. [`Events::MODULE_LOADS`] stays on once the program has a module that can be
    /// unloaded: metadata must end with it.
    ///
    /// # Errors
    /// A sentence where what is asked for can't be: an immutable event changes, an attached or
    /// notification-only profiler wants what these may not have, [`Events::GC`] is asked for after
    /// the start, events that report nothing alone. With the runtime's code. Nothing changes then.
    pub fn set_events(&self, events: Events) -> Result<()> {
        let method = "SetEventMask2";
        outside_hooks(method)?;
        events.check_alone(method)?;
        // A profiler that has seen a module that can be unloaded may have its metadata.
        let events = if self.connection.modules.any() { events | Events::MODULE_LOADS } else { events };
        let (low, high) = events.bits();
        // SAFETY: plain numbers.
        let answer = unsafe { self.at_level::<ICorProfilerInfo5>(method)?.SetEventMask2(low, high) };
        check(answer, method).map_err(|error| self.explain_refusal(events, error))
    }

    /// In words what the runtime says by one code for many reasons.
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
        // SAFETY: a null pointer is `None`, anything else code; the compiled code that will call it
        // has its own convention.
        let entry = |address| unsafe { std::mem::transmute::<*const c_void, Option<FunctionEnter3>>(address) };
        // SAFETY: the maker of the hooks vouched for them.
        let answer = unsafe { runtime.SetEnterLeaveFunctionHooks3(entry(enter), entry(leave), entry(tailcall)) };
        check(answer, "SetEnterLeaveFunctionHooks3")
    }
}

/// A call about several classes begins.
///
/// # Errors
/// A sentence where one of them is gone.
fn enter_all(classes: &[ClassId], method: &'static str) -> Result<Vec<Option<InModule>>> {
    classes.iter().map(|class| class.enter(method)).collect()
}

/// One word by an out-parameter.
fn ask_word(method: &'static str, ask: impl FnOnce(*mut usize) -> HRESULT) -> Result<usize> {
    let mut word = 0;
    check(ask(&mut word), method)?;
    Ok(word)
}

/// An array of unknown length: asks with a small buffer first, again with what the runtime says it
/// needs.
fn ask_array<T: Copy + Default>(
    method: &'static str,
    ask: impl FnMut(u32, *mut u32, *mut T) -> HRESULT,
) -> Result<Vec<T>> {
    ask_array_of(method, 8, ask)
}

/// As [`ask_array`], with room for so many elements at once: for answers that the runtime makes
/// again each time it is asked.
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
