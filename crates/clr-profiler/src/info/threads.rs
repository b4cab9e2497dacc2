//! Threads, and the runtime itself.

use std::fmt;

use clr_profiler_sys::enums::COR_PRF_RUNTIME_TYPE;
use clr_profiler_sys::info::ICorProfilerInfo4;
use windows_core::HRESULT;

use super::{ProfilerInfo, ask_word};
use crate::call_context::where_objects_may_move;
use crate::error::check;
use crate::text::read_text;
use crate::{Error, HResult, Result, ThreadId};

/// Version of a runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RuntimeVersion {
    /// 8 for .NET 8.
    pub major: u16,
    /// Nearly always 0.
    pub minor: u16,
    /// The servicing release.
    pub build: u16,
    /// Nearly always 0.
    pub revision: u16,
    /// Version text of the runtime, for instance with a commit.
    pub text: String,
}

impl fmt::Display for RuntimeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)
    }
}

impl ProfilerInfo {
    /// The managed thread that runs this code. Callable everywhere, also in callbacks during a
    /// collection.
    ///
    /// # Errors
    /// `CORPROF_E_NOT_MANAGED_THREAD` on a thread the runtime does not know.
    pub fn current_thread(&self) -> Result<ThreadId> {
        let runtime = self.base("GetCurrentThreadID")?;
        // SAFETY: a valid out-parameter.
        ask_word("GetCurrentThreadID", |out| unsafe { runtime.GetCurrentThreadID(out) }).map(ThreadId)
    }

    /// The operating-system thread number of a managed thread.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_DATAINCOMPLETE` before the thread has one.
    pub fn os_thread(&self, thread: ThreadId) -> Result<u32> {
        let runtime = self.base("GetThreadInfo")?;
        let mut os_thread = 0;
        // SAFETY: a valid out-parameter.
        check(unsafe { runtime.GetThreadInfo(thread.0, &mut os_thread) }, "GetThreadInfo")?;
        Ok(os_thread)
    }

    /// The operating-system handle of a managed thread. The handle belongs to the runtime: don't
    /// close it.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn thread_handle(&self, thread: ThreadId) -> Result<usize> {
        let runtime = self.base("GetHandleFromThread")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a valid out-parameter.
        check(unsafe { runtime.GetHandleFromThread(thread.0, &mut handle) }, "GetHandleFromThread")?;
        Ok(handle as usize)
    }

    /// Tells the runtime that this native thread will call it, so that later calls need no set-up.
    /// This does not make the thread a managed thread: queries that may load types are still
    /// refused on it, see [`adopt_current_thread`](Self::adopt_current_thread).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn initialize_current_thread(&self) -> Result<()> {
        let method = "InitializeCurrentThread";
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        // SAFETY: no arguments.
        check(unsafe { runtime.InitializeCurrentThread() }, method)
    }

    /// Makes the runtime adopt the calling thread, one of the profiler's own. The runtime then
    /// treats it as a managed thread, lists it in [`threads`](Self::threads), and allows queries on
    /// it that may load types. It still runs no managed code. The runtime releases the thread when
    /// it ends. Needs [`Events::ENABLE_REJIT`](crate::Events::ENABLE_REJIT): the runtime adopts any
    /// thread that makes a ReJIT request, so this makes a request that names no existing method.
    /// Not in callbacks or hooks.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_REJIT_NOT_ENABLED` without that event.
    pub fn adopt_current_thread(&self) -> Result<()> {
        let method = "RequestRevert";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        // The runtime adopts the thread before it checks the methods, and the request needs at
        // least one method.
        let (module, token, mut status) = (0, 0, HRESULT(0));
        // SAFETY: three arrays of one element. The module does not exist; `ReJITError` reports
        // this, and the callback object expects the report.
        check(unsafe { runtime.RequestRevert(1, &module, &token, &mut status) }, method)?;
        self.current_thread().map(drop)
    }

    /// Check for queries that may load types: they are allowed only on managed threads, and only
    /// where objects may move. On any other thread the runtime would still load the type, access
    /// data of a managed thread that does not exist, and crash the program. So release builds make
    /// this check, too.
    pub(super) fn where_types_may_load(&self, method: &'static str) -> Result<()> {
        where_objects_may_move(method)?;
        match self.current_thread() {
            Err(error) if error.hresult() == HResult::NOT_MANAGED_THREAD => {
                let why = "can't be asked on a thread that the runtime does not know: it may load a type, which crashes there";
                Err(Error::refused(method, why).with_hresult(HResult::NOT_MANAGED_THREAD))
            }
            other => other.map(drop),
        }
    }

    /// Version of this runtime. Callable everywhere.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn runtime_version(&self) -> Result<RuntimeVersion> {
        let runtime = self.base("GetRuntimeInformation")?;
        let (mut instance, mut kind) = (0, COR_PRF_RUNTIME_TYPE::default());
        let (mut major, mut minor, mut build, mut revision) = (0, 0, 0, 0);
        let text = read_text("GetRuntimeInformation", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe {
                runtime.GetRuntimeInformation(
                    &mut instance,
                    &mut kind,
                    &mut major,
                    &mut minor,
                    &mut build,
                    &mut revision,
                    capacity,
                    needed,
                    buffer,
                )
            }
        })?;
        Ok(RuntimeVersion { major, minor, build, revision, text })
    }
}
