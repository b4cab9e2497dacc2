//! The runtime as a whole: collections, suspension, environment, detach; symbols of modules in
//! memory.

use std::time::{Duration, Instant};

use clr_profiler_sys::info::{ICorProfilerInfo7, ICorProfilerInfo10, ICorProfilerInfo11};

use super::{Call, ProfilerInfo};
use crate::call_context::{outside_collections, outside_hooks, where_objects_may_move};
use crate::error::check;
use crate::text::wide;
use crate::{AppDomainId, Error, HResult, ModuleId, Result, ThreadId};

/// Longest pause between two attempts to suspend the program.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Maximum wait for the end of the profiler's own threads before the profiler is removed.
pub(crate) const LAST_WAIT: Duration = Duration::from_secs(1);

/// All managed threads are suspended as long as this value lives. Usable only on the thread that
/// created it.
#[must_use = "dropping it lets the threads run again"]
pub struct Suspended<'i> {
    pub(super) info: &'i ProfilerInfo,
    /// Keeps the interface alive until the threads are resumed.
    runtime: Call<'i, ICorProfilerInfo10>,
    /// Makes this type not `Send`: the thread that suspends must also resume.
    here: std::marker::PhantomData<*const ()>,
}

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread has suspended the runtime, once. Nothing can be done about a failure.
        let _ = unsafe { self.runtime.ResumeRuntime() };
        self.info.connection.end_suspension();
    }
}

impl ProfilerInfo {
    /// Collects all generations, and waits for the end of the collection. Only on one of the
    /// profiler's own threads that has never run managed code; the runtime treats the thread as
    /// native from then on.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` on managed threads and in
    /// callbacks.
    pub fn force_gc(&self) -> Result<()> {
        let method = "ForceGC";
        where_objects_may_move(method)?;
        let runtime = self.base(method)?;
        // SAFETY: no arguments.
        check(unsafe { runtime.ForceGC() }, method)
    }

    /// Suspends all managed threads until the returned value is dropped. Before .NET 9, callable
    /// only on threads that run no managed code and in callbacks that may wait. A thread that has
    /// started an EventPipe session counts as managed from then on. Code that takes a lock held by
    /// a suspended thread deadlocks.
    ///
    /// In a program that collects often, more than half of the attempts fail;
    /// [`suspend_within`](Self::suspend_within) retries.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_SUSPENSION_IN_PROGRESS` while another suspension runs,
    /// mostly for a collection; `CORPROF_E_RUNTIME_UNINITIALIZED` while the runtime starts (an
    /// [`OwnThread`](crate::OwnThread) runs its code only after that).
    pub fn suspend(&self) -> Result<Suspended<'_>> {
        let method = "SuspendRuntime";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo10>(method)?;
        self.connection.begin_suspension(method)?;
        // SAFETY: no arguments.
        let answer = check(unsafe { runtime.SuspendRuntime() }, method);
        answer.inspect_err(|_| self.connection.end_suspension())?;
        Ok(Suspended { info: self, runtime, here: std::marker::PhantomData })
    }

    /// Retries [`suspend`](Self::suspend) until no other suspension runs, for at most `patience`.
    /// Sleeps between the attempts, so call it only on the profiler's own threads, which no other
    /// thread waits for.
    ///
    /// Both ways of sampling are biased. A sampler that drops refused samples does not see the
    /// program during its collections; in a program that allocates fast these are up to two thirds
    /// of the samples. A sampler that retries sees threads at the place where the collection
    /// suspended them, above all at the allocation that started the collection. It sees the stacks
    /// right after a collection more often than their time justifies. Count the samples that were
    /// refused at first, to know their share.
    ///
    /// # Errors
    /// As [`suspend`](Self::suspend); `CORPROF_E_SUSPENSION_IN_PROGRESS` when `patience` is over.
    pub fn suspend_within(&self, patience: Duration) -> Result<Suspended<'_>> {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_micros(50);
        loop {
            let answer = self.suspend();
            let left = deadline.saturating_duration_since(Instant::now());
            match &answer {
                Err(error) if error.hresult() == HResult::SUSPENSION_IN_PROGRESS && !left.is_zero() => (),
                _ => return answer,
            }
            #[expect(clippy::disallowed_methods, reason = "nothing tells when another suspension is over")]
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// An environment variable of the runtime, which on Unix has its own copy of the environment;
    /// `None` if the variable is not set. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn environment_variable(&self, name: &str) -> Result<Option<String>> {
        let method = "GetEnvironmentVariable";
        outside_hooks(method)?;
        /// Result code of the runtime for a variable that is not set.
        const NOT_FOUND: HResult = HResult(0x8007_00cb_u32 as i32);
        let runtime = self.at_level::<ICorProfilerInfo11>(method)?;
        let name = wide(name);
        let mut buffer = vec![0_u16; 256];
        for _ in 0..4 {
            let mut needed = 0;
            // SAFETY: a zero-terminated name, a buffer of the length said, and a valid
            // out-parameter.
            let answer = unsafe {
                runtime.GetEnvironmentVariable(name.as_ptr(), buffer.len() as u32, &mut needed, buffer.as_mut_ptr())
            };
            // The returned length does not count the final zero, so a buffer that is exactly full
            // may be too short by one.
            if needed as usize >= buffer.len() {
                buffer.resize(needed as usize + 2, 0);
                continue;
            }
            if HResult(answer.0) == NOT_FOUND {
                return Ok(None);
            }
            check(answer, method)?;
            let units = buffer.split(|unit| *unit == 0).next().unwrap_or_default();
            return Ok(Some(String::from_utf16_lossy(units)));
        }
        Err(Error::new(HResult::INSUFFICIENT_BUFFER, method))
    }

    /// Sets or removes an environment variable in the runtime's copy of the environment. Not in
    /// hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<()> {
        let method = "SetEnvironmentVariable";
        outside_hooks(method)?;
        let runtime = self.at_level::<ICorProfilerInfo11>(method)?;
        let (name, value) = (wide(name), value.map(wide));
        let value = value.as_ref().map_or(std::ptr::null(), Vec::as_ptr);
        // SAFETY: zero-terminated texts, or null.
        check(unsafe { runtime.SetEnvironmentVariable(name.as_ptr(), value) }, method)
    }

    /// Requests the detach of this profiler. The runtime waits `milliseconds` (0: its default of
    /// five seconds) for callbacks to return, then calls
    /// [`profiler_detach_succeeded`](crate::Callbacks::profiler_detach_succeeded). The library
    /// stays mapped. The framework asks the profiler's own threads
    /// ([`OwnThread`](crate::OwnThread)) to end, and waits for their end, unless one of them makes
    /// the request. Other threads may continue. From the request on, all queries return
    /// `CORPROF_E_PROFILER_DETACHING`, permanently: after the detach the framework refuses them.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_IMMUTABLE_FLAGS_SET` and
    /// `CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT` for a profiler that has, or had, hooks,
    /// changed IL or immutable events. A refusal with a reason while this profiler suspends the
    /// program.
    pub fn request_detach(&self, milliseconds: u32) -> Result<()> {
        let method = "RequestProfilerDetach";
        outside_hooks(method)?;
        let runtime = self.base(method)?;
        // SAFETY: a plain number.
        self.connection.detach(method, || check(unsafe { runtime.RequestProfilerDetach(milliseconds) }, method))?;
        self.own_threads().stop_all(LAST_WAIT);
        Ok(())
    }

    /// Number of running callbacks of this profiler, including a callback on the calling thread. 0
    /// if the runtime can't [detach](Self::request_detach) the profiler because of its hooks or
    /// immutable events: then callbacks are not counted. Safe everywhere.
    ///
    /// A caller can check this before it requests a detach. The runtime checks for running
    /// callbacks when the given time is over, again after twice that time, and after that only
    /// every ten minutes.
    #[must_use]
    pub fn callbacks_under_way(&self) -> usize {
        self.connection.callbacks_under_way()
    }

    /// Waits until the running callbacks have ended, for at most `most`. Returns whether they have
    /// ended; `false` at once if callbacks [are not counted](Self::callbacks_under_way). Other
    /// callbacks may begin in the meantime. To know that a value is no longer in use, first make it
    /// unreachable for new callbacks, as
    /// [`Replaceable::take_away`](crate::callbacks::Replaceable::take_away) does. Not in callbacks,
    /// which would wait for themselves.
    #[must_use = "what callbacks use must stay where they go on"]
    pub fn wait_for_callbacks(&self, most: Duration) -> bool {
        self.connection.wait_for_callbacks(most)
    }

    /// Asks the profiler's own threads ([`OwnThread`](crate::OwnThread)) to end and waits for all
    /// of them, for at most `most` in total. Returns whether all have ended. New threads can be
    /// started afterwards. This is for a profiler that the runtime does not
    /// [detach](Self::request_detach) and that should be idle for a while. Not in hooks, and not
    /// where such a thread may wait for the caller. One of the profiler's own threads may call
    /// this: it does not wait for itself.
    #[must_use = "what threads use must stay where they go on"]
    pub fn stop_own_threads(&self, most: Duration) -> bool {
        self.own_threads().stop_running(most)
    }

    /// The application domain a managed thread runs in. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_NOT_MANAGED_THREAD` and `E_INVALIDARG` for threads that are
    /// not managed.
    pub fn thread_app_domain(&self, thread: ThreadId) -> Result<AppDomainId> {
        let method = "GetThreadAppDomain";
        outside_hooks(method)?;
        let runtime = self.base(method)?;
        // SAFETY: a valid out-parameter.
        super::ask_word(method, |out| unsafe { runtime.GetThreadAppDomain(thread.0, out) }).map(AppDomainId)
    }

    /// The symbols (a PDB) of a module in memory; empty if it has none. The runtime notifies of
    /// changes only with
    /// [`Events::IN_MEMORY_SYMBOLS_UPDATED`](crate::Events::IN_MEMORY_SYMBOLS_UPDATED). Not in
    /// hooks.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_MODULE_IS_DYNAMIC` for modules made by reflection.
    pub fn in_memory_symbols(&self, module: ModuleId) -> Result<Vec<u8>> {
        let method = "ReadInMemorySymbols";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo7>(method)?;
        let _inside = self.in_module(module, method)?;
        let mut size = 0;
        // SAFETY: a valid out-parameter.
        check(unsafe { runtime.GetInMemorySymbolsLength(module.0, &mut size) }, "GetInMemorySymbolsLength")?;
        let mut bytes = vec![0_u8; size as usize];
        let mut read = 0;
        if !bytes.is_empty() {
            // SAFETY: room for as many bytes as said, and a valid out-parameter.
            check(unsafe { runtime.ReadInMemorySymbols(module.0, 0, bytes.as_mut_ptr(), size, &mut read) }, method)?;
        }
        bytes.truncate(read as usize);
        Ok(bytes)
    }
}
