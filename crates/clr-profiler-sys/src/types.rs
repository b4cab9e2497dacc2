//! Ids and handles (corprof.idl, cor.h).

use core::ffi::c_void;

/// A process.
pub type ProcessID = usize;
/// A loaded assembly.
pub type AssemblyID = usize;
/// An application domain. CoreCLR runs all user code in one.
pub type AppDomainID = usize;
/// A loaded module. The id may be reused after the module's unload.
pub type ModuleID = usize;
/// A loaded class, instantiated if generic. The id may be reused after the module's unload.
pub type ClassID = usize;
/// A managed thread. The id may be reused after the thread's end.
pub type ThreadID = usize;
/// A remoting context; not supported by CoreCLR.
pub type ContextID = usize;
/// A function, instantiated if generic. The id may be reused after the module's unload or the
/// function's collection.
pub type FunctionID = usize;
/// The address of an object; valid until the next GC may run.
pub type ObjectID = usize;
/// A GC handle, as passed by callbacks.
pub type GCHandleID = usize;
/// Handle that a hook with info gets for its call; valid only inside the hook.
pub type COR_PRF_ELT_INFO = usize;
/// A stack frame; valid only inside the hook or snapshot that passed it. 0 means none.
pub type COR_PRF_FRAME_INFO = usize;
/// A version of a function's IL; 0 is the original.
pub type ReJITID = usize;
/// An EventPipe provider.
pub type EVENTPIPE_PROVIDER = usize;
/// An EventPipe event.
pub type EVENTPIPE_EVENT = usize;
/// An EventPipe session.
pub type EVENTPIPE_SESSION = u64;
/// A GC handle made by `ICorProfilerInfo13::CreateHandle`.
pub type ObjectHandleID = *mut *mut c_void;
/// A metadata enumeration in progress; null starts one, `CloseEnum` ends it.
pub type HCORENUM = *mut c_void;

/// Argument of the third form of hooks: the function's id, or what the mapper returned for it.
#[repr(C)]
#[derive(Clone, Copy)]
pub union FunctionIDOrClientID {
    /// The runtime's id, when no mapper is set.
    pub functionID: FunctionID,
    /// The mapper's answer.
    pub clientID: usize,
}
