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

/// Time for which threads of the profiler's own are waited for where the profiler goes.
pub(crate) const LAST_WAIT: Duration = Duration::from_secs(1);

/// All managed threads stand still for as long as this lives. Only for the thread that made it.
#[must_use = "dropping it lets the threads run again"]
pub struct Suspended<'i> {
    pub(super) info: &'i ProfilerInfo,
    /// So that the runtime does not go before it has resumed the threads.
    runtime: Call<'i, ICorProfilerInfo10>,
    /// The thread that suspends must resume: not `Send`.
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
    /// Collects all generations, and waits for it. Only on a thread of the profiler's own, which
    /// has never run managed code; such a thread counts as native from then on.
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

    /// Suspends all managed threads, until the answer is dropped. Before .NET 9 only on threads
    /// that run no managed code and in callbacks that may wait: a thread that has started an
    /// EventPipe session counts as managed by then. Code that takes a lock held by a suspended
    /// thread deadlocks.
    ///
    /// A program that collects often refuses more than half of the attempts:
    /// [`suspend_within`](Self::suspend_within) tries again.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_SUSPENSION_IN_PROGRESS` while another suspension runs, for a
    /// collection above all; `CORPROF_E_RUNTIME_UNINITIALIZED` while the runtime starts
    /// ([`OwnThread`](crate::OwnThread) waits for its end).
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

    /// [`suspend`](Self::suspend), tried again until no other suspension runs, for `patience` at
    /// most. Sleeps between the attempts, so only for threads that no other thread waits for: the
    /// profiler's own.
    ///
    /// A sampler that drops the samples it is refused sees a program without its collections, up to
    /// two thirds of the samples of one that allocates fast. One that tries again sees threads
    /// where the collection left them, above all at the allocation that started it: what stands on
    /// the stacks right after a collection is seen more often than it takes time. Neither is
    /// unbiased: count the samples that were refused at first, to know their share.
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

    /// A variable of the environment as the runtime sees it, which on Unix is its own copy; `None`
    /// where it is not set. Not in hooks.
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
            // The length that comes back counts no final zero, so a buffer that is just filled may
            // be too short by one.
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

    /// Sets a variable of the environment as the runtime sees it, or removes it. Not in hooks.
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

    /// Asks the runtime to let go of this profiler. It waits `milliseconds` (0: its own five
    /// seconds) for callbacks to return, then says
    /// [`profiler_detach_succeeded`](crate::Callbacks::profiler_detach_succeeded). The library
    /// stays mapped. Threads of the profiler's own ([`OwnThread`](crate::OwnThread)) are asked to
    /// end, and waited for unless one of them asks; others may run on. From the request on all
    /// queries give `CORPROF_E_PROFILER_DETACHING`, for ever: the framework refuses them once the
    /// runtime is gone.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_IMMUTABLE_FLAGS_SET` and
    /// `CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT` for a profiler that has, or had, hooks,
    /// changed IL or immutable events. A sentence while this profiler suspends the program.
    pub fn request_detach(&self, milliseconds: u32) -> Result<()> {
        let method = "RequestProfilerDetach";
        outside_hooks(method)?;
        let runtime = self.base(method)?;
        // SAFETY: a plain number.
        self.connection.detach(method, || check(unsafe { runtime.RequestProfilerDetach(milliseconds) }, method))?;
        self.own_threads().stop_all(LAST_WAIT);
        Ok(())
    }

    /// Number of callbacks of the runtime into this profiler that are under way, the calling
    /// thread's own included. Of a profiler that the runtime can't [detach](Self::request_detach),
    /// because of its hooks or immutable events, callbacks are not counted: 0. Safe everywhere.
    ///
    /// For a caller that is about to ask for a detach: the runtime looks for callbacks under way
    /// when the time that it was given is over, once more after twice that time, and from then on
    /// every ten minutes only.
    #[must_use]
    pub fn callbacks_under_way(&self) -> usize {
        self.connection.callbacks_under_way()
    }

    /// Waits until the callbacks that are under way have ended, `most` at the longest; whether they
    /// have. Others may begin meanwhile: to know that something is no longer in use, a caller takes
    /// it out of sight first, as
    /// [`Replaceable::take_away`](crate::callbacks::Replaceable::take_away) does. `false` at once
    /// where callbacks [are not counted](Self::callbacks_under_way). Not in callbacks, which would
    /// wait for themselves.
    #[must_use = "what callbacks use must stay where they go on"]
    pub fn wait_for_callbacks(&self, most: Duration) -> bool {
        self.connection.wait_for_callbacks(most)
    }

    /// Asks the threads of the profiler's own ([`OwnThread`](crate::OwnThread)) to end and waits
    /// for them, together not longer than `most`; whether all have ended. Others may be started
    /// after that: this is for a profiler that the runtime does not [let go](Self::request_detach),
    /// and that is to do nothing for a while. Not in hooks, nor where such a thread may wait for
    /// the caller; a thread of the profiler's own does not wait for itself.
    #[must_use = "what threads use must stay where they go on"]
    pub fn stop_own_threads(&self, most: Duration) -> bool {
        self.own_threads().stop_running(most)
    }

    /// The application domain a managed thread runs in. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_NOT_MANAGED_THREAD` and `E_INVALIDARG` for threads that are
    /// none.
    pub fn thread_app_domain(&self, thread: ThreadId) -> Result<AppDomainId> {
        let method = "GetThreadAppDomain";
        outside_hooks(method)?;
        let runtime = self.base(method)?;
        // SAFETY: a valid out-parameter.
        super::ask_word(method, |out| unsafe { runtime.GetThreadAppDomain(thread.0, out) }).map(AppDomainId)
    }

    /// The symbols (a PDB) that were given with a module in memory; empty where none were. Needs
    /// [`Events::IN_MEMORY_SYMBOLS_UPDATED`](crate::Events::IN_MEMORY_SYMBOLS_UPDATED) to be
    /// notified of changes. Not in hooks.
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
