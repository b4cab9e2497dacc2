//! Events of the fake runtime: each callback as a value, and actions of compiled code and threads.

use std::ops::Deref;

use clr_profiler::callback_args::{
    GcReason, JitCache, MovedRange, RootFlags, RootKind, SuspendReason, TransitionReason,
};
use clr_profiler::{
    AppDomainId, AssemblyId, CallerSp, ClassId, ClauseKind, EventPipeProviderId, Events, FunctionId, GcHandleId,
    HResult, ModuleId, ReJitId, ThreadId,
};
use clr_profiler_sys::callback::ICorProfilerCallback11;
use clr_profiler_sys::enums::{
    COR_PRF_GC_REASON, COR_PRF_GC_ROOT_FLAGS, COR_PRF_GC_ROOT_KIND, COR_PRF_JIT_CACHE, COR_PRF_SUSPEND_REASON,
    COR_PRF_TRANSITION_REASON,
};
use windows_core::{BOOL, GUID, HRESULT};

use super::control::with_control;
use super::heap::FakeObject;
use super::words::{Parsed, Reader, Word};
use super::world::Shared;

/// The callback object, and the program that its calls refer to.
#[derive(Clone, Copy)]
struct Sent<'s> {
    callback: &'s ICorProfilerCallback11,
    world: &'s Shared,
}

impl Deref for Sent<'_> {
    type Target = ICorProfilerCallback11;

    fn deref(&self) -> &ICorProfilerCallback11 {
        self.callback
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) if $needs:expr, |$callback:ident, $answer:pat_param| $send:expr;)*) => {
        /// Event of the program: a callback with the runtime's name, or an action of the program
        /// (the last variants).
        ///
        /// As in the runtime, a callback is sent only if the profiler has requested its kind of
        /// event.
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$doc])* $name($($type),*),)*
            /// Compiled code enters a function. If the profiler has selected the function, the
            /// enter hook is called. The thread's stack grows by one call.
            Enter(FunctionId),
            /// Compiled code leaves a function. The function and its callees are removed from the
            /// stack. Without an enter before, only the hook is called.
            Leave(FunctionId),
            /// A function ends with a tail call: the function that is entered next replaces it.
            Tailcall(FunctionId),
            /// [`Enter`](Self::Enter) at this stack pointer, from a recording.
            EnterAt(FunctionId, CallerSp),
            /// [`Leave`](Self::Leave) at this stack pointer.
            LeaveAt(FunctionId, CallerSp),
            /// [`Tailcall`](Self::Tailcall) at this stack pointer.
            TailcallAt(FunctionId, CallerSp),
            /// The runtime's information, on this thread, about the block that the next event
            /// begins: the frame pointer of its activation. Without this event the block belongs to
            /// the topmost activation of its function.
            Clause(ClauseKind, usize),
            /// The thread ends without a callback. The profiler's per-thread data is dropped. A new
            /// thread with the same number may follow.
            ThreadEnds,
        }

        impl Event {
            /// The callback is sent only if one of these events is enabled. `None` for an action of
            /// the program.
            pub(super) fn needs(&self) -> Option<Events> {
                match self {
                    $(Self::$name(..) => Some($needs),)*
                    _ => None,
                }
            }

            /// Reads the event with this name and its values from a recording.
            pub(super) fn read<'t>(
                name: &str,
                reader: &mut Reader<'t>,
                words: &mut impl Iterator<Item = &'t str>,
            ) -> Parsed<Self> {
                let mut next = || words.next().ok_or_else(|| format!("{name} lacks a value"));
                match name {
                    $(stringify!($name) => Ok(Self::$name($(<$type as Word>::read(reader, next()?)?),*)),)*
                    "Enter" => Ok(Self::Enter(Word::read(reader, next()?)?)),
                    "Leave" => Ok(Self::Leave(Word::read(reader, next()?)?)),
                    "Tailcall" => Ok(Self::Tailcall(Word::read(reader, next()?)?)),
                    "EnterAt" => Ok(Self::EnterAt(Word::read(reader, next()?)?, Word::read(reader, next()?)?)),
                    "LeaveAt" => Ok(Self::LeaveAt(Word::read(reader, next()?)?, Word::read(reader, next()?)?)),
                    "TailcallAt" => Ok(Self::TailcallAt(Word::read(reader, next()?)?, Word::read(reader, next()?)?)),
                    "Clause" => Ok(Self::Clause(Word::read(reader, next()?)?, Word::read(reader, next()?)?)),
                    "ThreadEnds" => Ok(Self::ThreadEnds),
                    _ => Err(format!("there is no event {name} in recordings")),
                }
            }

            /// The names of all callbacks.
            #[cfg(test)]
            pub(super) const CALLBACKS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Calls the callback. `answer` receives the profiler's answer in an out-parameter.
            pub(super) fn send(
                &self,
                callback: &ICorProfilerCallback11,
                world: &Shared,
                answer: &mut Option<bool>,
            ) -> HRESULT {
                match self {
                    $(Self::$name($($arg),*) => {
                        let ($callback, $answer) = (Sent { callback, world }, answer);
                        // SAFETY: the object lives as long as the process, and what is passed lives
                        // through the call.
                        unsafe { $send }
                    })*
                    _ => HRESULT(0),
                }
            }
        }
    };
}

/// Sent independently of the profiler's requested events.
const ALWAYS: Events = Events::NONE;

const ANY_GC: Events = Events::GC.union(Events::BASIC_GC);
const ANY_MOVES: Events = Events::GC.union(Events::GC_MOVED_OBJECTS);
const ANY_ALLOCATION: Events =
    Events::OBJECT_ALLOCATED.union(Events::LARGE_OBJECT_ALLOCATED).union(Events::PINNED_OBJECT_ALLOCATED);

const SAFE: BOOL = BOOL(1);

const fn status(status: &HResult) -> HRESULT {
    HRESULT(status.0)
}

fn addresses(objects: &[FakeObject]) -> Vec<usize> {
    objects.iter().map(|object| object.0).collect()
}

events! {
    /// The runtime ends. More events may follow.
    Shutdown() if ALWAYS, |c, _| c.Shutdown();
    /// An application domain is being created.
    AppDomainCreationStarted(id: AppDomainId) if Events::APP_DOMAIN_LOADS, |c, _| c.AppDomainCreationStarted(id.as_raw());
    /// An application domain was created, or creation failed.
    AppDomainCreationFinished(id: AppDomainId, result: HResult) if Events::APP_DOMAIN_LOADS, |c, _| c.AppDomainCreationFinished(id.as_raw(), status(result));
    /// The application domain is about to be unloaded.
    AppDomainShutdownStarted(id: AppDomainId) if Events::APP_DOMAIN_LOADS, |c, _| c.AppDomainShutdownStarted(id.as_raw());
    /// The application domain was unloaded.
    AppDomainShutdownFinished(id: AppDomainId, result: HResult) if Events::APP_DOMAIN_LOADS, |c, _| c.AppDomainShutdownFinished(id.as_raw(), status(result));
    /// An assembly is being loaded.
    AssemblyLoadStarted(id: AssemblyId) if Events::ASSEMBLY_LOADS, |c, _| c.AssemblyLoadStarted(id.as_raw());
    /// The assembly was loaded, or loading failed.
    AssemblyLoadFinished(id: AssemblyId, result: HResult) if Events::ASSEMBLY_LOADS, |c, _| c.AssemblyLoadFinished(id.as_raw(), status(result));
    /// The assembly is about to be unloaded.
    AssemblyUnloadStarted(id: AssemblyId) if Events::ASSEMBLY_LOADS, |c, _| c.AssemblyUnloadStarted(id.as_raw());
    /// The assembly was unloaded.
    AssemblyUnloadFinished(id: AssemblyId, result: HResult) if Events::ASSEMBLY_LOADS, |c, _| c.AssemblyUnloadFinished(id.as_raw(), status(result));
    /// A module is being loaded.
    ModuleLoadStarted(id: ModuleId) if Events::MODULE_LOADS, |c, _| c.ModuleLoadStarted(id.as_raw());
    /// The module was loaded, or loading failed.
    ModuleLoadFinished(id: ModuleId, result: HResult) if Events::MODULE_LOADS, |c, _| c.ModuleLoadFinished(id.as_raw(), status(result));
    /// The module is about to be unloaded.
    ModuleUnloadStarted(id: ModuleId) if Events::MODULE_LOADS, |c, _| c.ModuleUnloadStarted(id.as_raw());
    /// The module was unloaded.
    ModuleUnloadFinished(id: ModuleId, result: HResult) if Events::MODULE_LOADS, |c, _| c.ModuleUnloadFinished(id.as_raw(), status(result));
    /// The module has become part of an assembly.
    ModuleAttachedToAssembly(id: ModuleId, assembly: AssemblyId) if Events::MODULE_LOADS, |c, _| c.ModuleAttachedToAssembly(id.as_raw(), assembly.as_raw());
    /// A class is being loaded.
    ClassLoadStarted(id: ClassId) if Events::CLASS_LOADS, |c, _| c.ClassLoadStarted(id.as_raw());
    /// The class was loaded, or loading failed.
    ClassLoadFinished(id: ClassId, result: HResult) if Events::CLASS_LOADS, |c, _| c.ClassLoadFinished(id.as_raw(), status(result));
    /// The class is about to be unloaded.
    ClassUnloadStarted(id: ClassId) if Events::CLASS_LOADS, |c, _| c.ClassUnloadStarted(id.as_raw());
    /// The class was unloaded.
    ClassUnloadFinished(id: ClassId, result: HResult) if Events::CLASS_LOADS, |c, _| c.ClassUnloadFinished(id.as_raw(), status(result));
    /// A method is about to be compiled. After the callback the function mapper is called, if there
    /// is one.
    JITCompilationStarted(id: FunctionId) if Events::JIT_COMPILATION, |c, _| c.JITCompilationStarted(id.as_raw(), SAFE);
    /// The method was compiled, or compilation failed.
    JITCompilationFinished(id: FunctionId, result: HResult) if Events::JIT_COMPILATION, |c, _| c.JITCompilationFinished(id.as_raw(), status(result), SAFE);
    /// Asks whether precompiled code may be used. The profiler answers.
    JITCachedFunctionSearchStarted(id: FunctionId) if Events::CACHE_SEARCHES, |c, answer| {
        let mut use_it = BOOL(1);
        let hresult = c.JITCachedFunctionSearchStarted(id.as_raw(), &mut use_it);
        *answer = Some(use_it.as_bool());
        hresult
    };
    /// The search for precompiled code is over.
    JITCachedFunctionSearchFinished(id: FunctionId, result: JitCache) if Events::CACHE_SEARCHES, |c, _| c.JITCachedFunctionSearchFinished(id.as_raw(), COR_PRF_JIT_CACHE(result.as_raw()));
    /// Code of a method was discarded.
    JITFunctionPitched(id: FunctionId) if Events::JIT_COMPILATION, |c, _| c.JITFunctionPitched(id.as_raw());
    /// A function is about to be unloaded.
    FunctionUnloadStarted(id: FunctionId) if Events::CLASS_LOADS, |c, _| c.FunctionUnloadStarted(id.as_raw());
    /// Asks whether the callee (second) may be inlined into the caller (first). The profiler
    /// answers.
    JITInlining(caller: FunctionId, callee: FunctionId) if Events::JIT_COMPILATION, |c, answer| {
        let mut allowed = BOOL(1);
        let hresult = c.JITInlining(caller.as_raw(), callee.as_raw(), &mut allowed);
        *answer = Some(allowed.as_bool());
        hresult
    };
    /// A method without metadata is about to be compiled. The event has its IL.
    DynamicMethodJITCompilationStarted(id: FunctionId, il: Vec<u8>) if Events::JIT_COMPILATION, |c, _| c.DynamicMethodJITCompilationStarted(id.as_raw(), SAFE, il.as_ptr(), il.len() as u32);
    /// The method without metadata was compiled, or compilation failed.
    DynamicMethodJITCompilationFinished(id: FunctionId, result: HResult) if Events::JIT_COMPILATION, |c, _| c.DynamicMethodJITCompilationFinished(id.as_raw(), status(result), SAFE);
    /// The method without metadata was unloaded.
    DynamicMethodUnloaded(id: FunctionId) if Events::DYNAMIC_FUNCTION_UNLOADS, |c, _| c.DynamicMethodUnloaded(id.as_raw());
    /// A method is about to be recompiled.
    ReJITCompilationStarted(id: FunctionId, rejit: ReJitId) if Events::ENABLE_REJIT, |c, _| c.ReJITCompilationStarted(id.as_raw(), rejit.as_raw(), SAFE);
    /// The method was recompiled, or recompilation failed.
    ReJITCompilationFinished(id: FunctionId, rejit: ReJitId, result: HResult) if Events::ENABLE_REJIT, |c, _| c.ReJITCompilationFinished(id.as_raw(), rejit.as_raw(), status(result), SAFE);
    /// Asks for the IL of a method (second) of a module to recompile. The parameters that the
    /// profiler sets are stored in [`Running::rejit_parameters`](super::Running::rejit_parameters),
    /// but have no other effect.
    GetReJITParameters(module: ModuleId, method: u32) if Events::ENABLE_REJIT, |c, _| with_control(c.world, *module, *method, |control| c.GetReJITParameters(module.as_raw(), *method, control));
    /// A method (second) of a module could not be recompiled.
    ReJITError(module: ModuleId, method: u32, id: FunctionId, result: HResult) if Events::ENABLE_REJIT, |c, _| c.ReJITError(module.as_raw(), *method, id.as_raw(), status(result));
    /// A managed thread was created.
    ThreadCreated(id: ThreadId) if Events::THREADS, |c, _| c.ThreadCreated(id.as_raw());
    /// The thread was destroyed: the runtime no longer knows its identifier.
    ThreadDestroyed(id: ThreadId) if Events::THREADS, |c, _| c.ThreadDestroyed(id.as_raw());
    /// The managed thread runs on this thread of the operating system.
    ThreadAssignedToOSThread(id: ThreadId, os_thread: u32) if Events::THREADS, |c, _| c.ThreadAssignedToOSThread(id.as_raw(), *os_thread);
    /// The thread got a name.
    ThreadNameChanged(id: ThreadId, name: String) if Events::THREADS, |c, _| {
        let units: Vec<u16> = name.encode_utf16().collect();
        c.ThreadNameChanged(id.as_raw(), units.len() as u32, units.as_ptr())
    };
    /// Native code calls managed code, or managed code returns to native code.
    UnmanagedToManagedTransition(id: FunctionId, reason: TransitionReason) if Events::CODE_TRANSITIONS, |c, _| c.UnmanagedToManagedTransition(id.as_raw(), COR_PRF_TRANSITION_REASON(reason.as_raw()));
    /// Managed code calls native code, or native code returns to managed code.
    ManagedToUnmanagedTransition(id: FunctionId, reason: TransitionReason) if Events::CODE_TRANSITIONS, |c, _| c.ManagedToUnmanagedTransition(id.as_raw(), COR_PRF_TRANSITION_REASON(reason.as_raw()));
    /// The runtime begins to suspend its threads.
    RuntimeSuspendStarted(reason: SuspendReason) if Events::SUSPENSIONS, |c, _| c.RuntimeSuspendStarted(COR_PRF_SUSPEND_REASON(reason.as_raw()));
    /// All managed threads are suspended.
    RuntimeSuspendFinished() if Events::SUSPENSIONS, |c, _| c.RuntimeSuspendFinished();
    /// The suspension was aborted.
    RuntimeSuspendAborted() if Events::SUSPENSIONS, |c, _| c.RuntimeSuspendAborted();
    /// The threads are about to be resumed.
    RuntimeResumeStarted() if Events::SUSPENSIONS, |c, _| c.RuntimeResumeStarted();
    /// The threads were resumed.
    RuntimeResumeFinished() if Events::SUSPENSIONS, |c, _| c.RuntimeResumeFinished();
    /// A thread waits for the end of a suspension.
    RuntimeThreadSuspended(id: ThreadId) if Events::SUSPENSIONS, |c, _| c.RuntimeThreadSuspended(id.as_raw());
    /// The thread was resumed.
    RuntimeThreadResumed(id: ThreadId) if Events::SUSPENSIONS, |c, _| c.RuntimeThreadResumed(id.as_raw());
    /// A collection of these generations begins.
    GarbageCollectionStarted(generations: Vec<usize>, reason: GcReason) if ANY_GC, |c, _| {
        let collected: [BOOL; 5] = std::array::from_fn(|generation| generations.contains(&generation).into());
        c.GarbageCollectionStarted(5, collected.as_ptr(), COR_PRF_GC_REASON(reason.as_raw()))
    };
    /// The collection is over.
    GarbageCollectionFinished() if ANY_GC, |c, _| c.GarbageCollectionFinished();
    /// Objects were moved.
    MovedReferences(ranges: Vec<MovedRange>) if ANY_MOVES, |c, _| {
        let column = |value: fn(&MovedRange) -> usize| ranges.iter().map(value).collect::<Vec<usize>>();
        let (old, new, bytes) = (column(|r| r.old_start), column(|r| r.new_start), column(|r| r.bytes));
        c.MovedReferences2(ranges.len() as u32, old.as_ptr(), new.as_ptr(), bytes.as_ptr())
    };
    /// Ranges of objects that survived without being moved: start and length in bytes.
    SurvivingReferences(ranges: Vec<(usize, usize)>) if ANY_MOVES, |c, _| {
        let (starts, bytes): (Vec<usize>, Vec<usize>) = ranges.iter().copied().unzip();
        c.SurvivingReferences2(ranges.len() as u32, starts.as_ptr(), bytes.as_ptr())
    };
    /// An object was allocated.
    ObjectAllocated(object: FakeObject, class: ClassId) if ANY_ALLOCATION, |c, _| c.ObjectAllocated(object.0, class.as_raw());
    /// Objects allocated since the last collection, by class.
    ObjectsAllocatedByClass(counts: Vec<(ClassId, u32)>) if Events::GC, |c, _| {
        let (classes, counts): (Vec<usize>, Vec<u32>) = counts.iter().map(|(class, count)| (class.as_raw(), *count)).unzip();
        c.ObjectsAllocatedByClass(counts.len() as u32, classes.as_ptr(), counts.as_ptr())
    };
    /// The references that an object holds.
    ObjectReferences(object: FakeObject, class: ClassId, references: Vec<FakeObject>) if Events::GC, |c, _| {
        let references = addresses(references);
        c.ObjectReferences(object.0, class.as_raw(), references.len() as u32, references.as_ptr())
    };
    /// Objects that roots refer to.
    RootReferences(roots: Vec<FakeObject>) if Events::GC, |c, _| {
        let roots = addresses(roots);
        c.RootReferences(roots.len() as u32, roots.as_ptr())
    };
    /// Objects that roots refer to, each with the kind, flags and identifier of its root.
    RootReferences2(roots: Vec<(FakeObject, RootKind, RootFlags, usize)>) if Events::GC, |c, _| {
        let objects: Vec<usize> = roots.iter().map(|root| root.0.0).collect();
        let kinds: Vec<_> = roots.iter().map(|root| COR_PRF_GC_ROOT_KIND(root.1.as_raw())).collect();
        let flags: Vec<_> = roots.iter().map(|root| COR_PRF_GC_ROOT_FLAGS(root.2.as_raw())).collect();
        let ids: Vec<usize> = roots.iter().map(|root| root.3).collect();
        c.RootReferences2(roots.len() as u32, objects.as_ptr(), kinds.as_ptr(), flags.as_ptr(), ids.as_ptr())
    };
    /// Pairs of a conditional weak table: key, value and handle.
    ConditionalWeakTableElementReferences(elements: Vec<(FakeObject, FakeObject, GcHandleId)>) if Events::GC, |c, _| {
        let column = |value: fn(&(FakeObject, FakeObject, GcHandleId)) -> usize| elements.iter().map(value).collect::<Vec<usize>>();
        let (keys, values, handles) = (column(|e| e.0.0), column(|e| e.1.0), column(|e| e.2.as_raw()));
        c.ConditionalWeakTableElementReferences(elements.len() as u32, keys.as_ptr(), values.as_ptr(), handles.as_ptr())
    };
    /// An object waits for its finalizer.
    FinalizeableObjectQueued(object: FakeObject) if Events::GC, |c, _| c.FinalizeableObjectQueued(0, object.0);
    /// A handle was created.
    HandleCreated(handle: GcHandleId, object: FakeObject) if Events::GC, |c, _| c.HandleCreated(handle.as_raw(), object.0);
    /// A handle was freed.
    HandleDestroyed(handle: GcHandleId) if Events::GC, |c, _| c.HandleDestroyed(handle.as_raw());
    /// An exception was thrown.
    ExceptionThrown(exception: FakeObject) if Events::EXCEPTIONS, |c, _| c.ExceptionThrown(exception.0);
    /// The search for a handler looks at this function.
    ExceptionSearchFunctionEnter(id: FunctionId) if Events::EXCEPTIONS, |c, _| c.ExceptionSearchFunctionEnter(id.as_raw());
    /// The search in the function is over.
    ExceptionSearchFunctionLeave() if Events::EXCEPTIONS, |c, _| c.ExceptionSearchFunctionLeave();
    /// A filter of this function is about to run.
    ExceptionSearchFilterEnter(id: FunctionId) if Events::EXCEPTIONS, |c, _| c.ExceptionSearchFilterEnter(id.as_raw());
    /// The filter has returned.
    ExceptionSearchFilterLeave() if Events::EXCEPTIONS, |c, _| c.ExceptionSearchFilterLeave();
    /// The function will catch the exception.
    ExceptionSearchCatcherFound(id: FunctionId) if Events::EXCEPTIONS, |c, _| c.ExceptionSearchCatcherFound(id.as_raw());
    /// A frame of this function is about to be unwound.
    ExceptionUnwindFunctionEnter(id: FunctionId) if Events::EXCEPTIONS, |c, _| c.ExceptionUnwindFunctionEnter(id.as_raw());
    /// The frame was unwound.
    ExceptionUnwindFunctionLeave() if Events::EXCEPTIONS, |c, _| c.ExceptionUnwindFunctionLeave();
    /// A finally block of this function is about to run. The function's callees have been removed
    /// from the thread's stack.
    ExceptionUnwindFinallyEnter(id: FunctionId) if Events::EXCEPTIONS, |c, _| c.ExceptionUnwindFinallyEnter(id.as_raw());
    /// The finally block is over.
    ExceptionUnwindFinallyLeave() if Events::EXCEPTIONS, |c, _| c.ExceptionUnwindFinallyLeave();
    /// A catch block of this function is about to run. The function's callees have been removed
    /// from the thread's stack.
    ExceptionCatcherEnter(id: FunctionId, exception: FakeObject) if Events::EXCEPTIONS, |c, _| c.ExceptionCatcherEnter(id.as_raw(), exception.0);
    /// The catch block is over.
    ExceptionCatcherLeave() if Events::EXCEPTIONS, |c, _| c.ExceptionCatcherLeave();
    /// The system's handler of exceptions begins.
    ExceptionOSHandlerEnter() if Events::EXCEPTIONS, |c, _| c.ExceptionOSHandlerEnter(0);
    /// The system's handler of exceptions is over.
    ExceptionOSHandlerLeave() if Events::EXCEPTIONS, |c, _| c.ExceptionOSHandlerLeave(0);
    /// The runtime itself will catch the exception.
    ExceptionCLRCatcherFound() if Events::CLR_EXCEPTIONS, |c, _| c.ExceptionCLRCatcherFound();
    /// The runtime itself catches the exception.
    ExceptionCLRCatcherExecute() if Events::CLR_EXCEPTIONS, |c, _| c.ExceptionCLRCatcherExecute();
    /// A COM function table for an interface of a class was created, with this number of slots at
    /// this address.
    COMClassicVTableCreated(class: ClassId, interface: u128, vtable: usize, slots: u32) if Events::COM_WRAPPERS, |c, _| c.COMClassicVTableCreated(class.as_raw(), &GUID::from_u128(*interface), std::ptr::without_provenance_mut(*vtable), *slots);
    /// A COM function table for an interface of a class was destroyed.
    COMClassicVTableDestroyed(class: ClassId, interface: u128, vtable: usize) if Events::COM_WRAPPERS, |c, _| c.COMClassicVTableDestroyed(class.as_raw(), &GUID::from_u128(*interface), std::ptr::without_provenance_mut(*vtable));
    /// A call to another process begins.
    RemotingClientInvocationStarted() if ALWAYS, |c, _| c.RemotingClientInvocationStarted();
    /// A call to another process is sent. The event has the call's identifier.
    RemotingClientSendingMessage(cookie: u128) if ALWAYS, |c, _| c.RemotingClientSendingMessage(&GUID::from_u128(*cookie), SAFE);
    /// The answer of another process has arrived.
    RemotingClientReceivingReply(cookie: u128) if ALWAYS, |c, _| c.RemotingClientReceivingReply(&GUID::from_u128(*cookie), SAFE);
    /// A call to another process is over.
    RemotingClientInvocationFinished() if ALWAYS, |c, _| c.RemotingClientInvocationFinished();
    /// A call from another process has arrived.
    RemotingServerReceivingMessage(cookie: u128) if ALWAYS, |c, _| c.RemotingServerReceivingMessage(&GUID::from_u128(*cookie), SAFE);
    /// The method that another process calls begins.
    RemotingServerInvocationStarted() if ALWAYS, |c, _| c.RemotingServerInvocationStarted();
    /// The method that another process calls is over.
    RemotingServerInvocationReturned() if ALWAYS, |c, _| c.RemotingServerInvocationReturned();
    /// The answer to another process is sent.
    RemotingServerSendingReply(cookie: u128) if ALWAYS, |c, _| c.RemotingServerSendingReply(&GUID::from_u128(*cookie), SAFE);
    /// The runtime asks for the assembly references that changed IL of the assembly at this path
    /// will need.
    GetAssemblyReferences(path: String) if ALWAYS, |c, _| {
        let units: Vec<u16> = path.encode_utf16().chain([0]).collect();
        c.GetAssemblyReferences(units.as_ptr(), std::ptr::null_mut())
    };
    /// An event of an EventPipe session: its provider, number and fields.
    EventPipeEventDelivered(provider: EventPipeProviderId, number: u32, data: Vec<u8>) if Events::EVENT_PIPE, |c, _| {
        let nothing = (std::ptr::null(), std::ptr::null(), std::ptr::null(), std::ptr::null());
        c.EventPipeEventDelivered(provider.as_raw(), *number, 1, 0, nothing.0, data.len() as u32, data.as_ptr(), nothing.1, nothing.2, 0, 0, nothing.3)
    };
    /// An EventPipe provider was created.
    EventPipeProviderCreated(provider: EventPipeProviderId) if Events::EVENT_PIPE, |c, _| c.EventPipeProviderCreated(provider.as_raw());
    /// Symbols of a module in memory have changed.
    ModuleInMemorySymbolsUpdated(id: ModuleId) if Events::IN_MEMORY_SYMBOLS_UPDATED, |c, _| c.ModuleInMemorySymbolsUpdated(id.as_raw());
    /// The attach is complete.
    ProfilerAttachComplete() if ALWAYS, |c, _| c.ProfilerAttachComplete();
    /// The detach is complete.
    ProfilerDetachSucceeded() if ALWAYS, |c, _| c.ProfilerDetachSucceeded();
}

/// An event and its thread.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Step {
    /// Number of the thread. Thread 0 loads the profiler and is the test's own thread. Another
    /// thread starts when its number is first used.
    pub thread: usize,
    /// Event of the step.
    pub event: Event,
}

/// An event on a thread: `on(1, Enter(pay))`.
#[must_use]
pub const fn on(thread: usize, event: Event) -> Step {
    Step { thread, event }
}
