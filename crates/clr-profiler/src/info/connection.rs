//! The connection to the runtime: its information interface, and the gate that closes when the
//! runtime frees the interface.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use clr_profiler_sys::info::ICorProfilerInfo3;
use windows_core::Interface;

use crate::gate::{Gate, Inside};
use crate::stop::Stops;
use crate::unloads::CollectibleModules;
use crate::{Error, HResult, Result};

/// The information interface of one runtime. After a detach the runtime frees the interface, even
/// if references exist.
pub(super) struct Connection {
    /// Never released: the runtime counts no references, and after a detach the interface does not
    /// exist any more.
    interface: ManuallyDrop<ICorProfilerInfo3>,
    pub(super) level: u8,
    gate: Gate<16>,
    /// Running callbacks, which a detach waits for. Never closed.
    callbacks: Gate<16>,
    /// Whether the runtime can never detach this profiler, so that calls need not enter the gate.
    is_for_good: AtomicBool,
    /// Whether the profiler is notification-only and does not have the main slot.
    pub(super) is_notification_only: AtomicBool,
    pub(super) modules: CollectibleModules,
    /// Number of active suspensions, or [`DETACHING`].
    suspensions: AtomicUsize,
    /// The profiler's own threads. They end before the runtime frees the interface.
    pub(super) own_threads: Stops,
}

/// A detach was requested. From then on the runtime does not resume threads, so there must be no
/// suspension.
const DETACHING: usize = usize::MAX;

// SAFETY: the runtime's information interface is free-threaded.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

/// A running call of the runtime by the interface `I`. The interface exists as long as this value
/// lives.
pub(crate) struct Call<'c, I> {
    runtime: &'c I,
    /// `None` if the interface exists until the process ends.
    _inside: Option<Inside<'c>>,
}

impl<I> Deref for Call<'_, I> {
    type Target = I;

    #[inline]
    fn deref(&self) -> &I {
        self.runtime
    }
}

impl Connection {
    pub(super) fn new(interface: ICorProfilerInfo3, level: u8) -> Self {
        Self {
            interface: ManuallyDrop::new(interface),
            level,
            gate: Gate::default(),
            callbacks: Gate::default(),
            is_for_good: AtomicBool::new(false),
            is_notification_only: AtomicBool::new(false),
            suspensions: AtomicUsize::new(0),
            own_threads: Stops::default(),
            modules: CollectibleModules::default(),
        }
    }

    /// The interface of `level`, for one call of `method`.
    ///
    /// # Errors
    /// A refusal with a reason after the detach, and for a level that the runtime does not have.
    ///
    /// # Safety
    /// `I` must be the information interface of that level.
    pub(super) unsafe fn call<I: Interface>(&self, level: u8, method: &'static str) -> Result<Call<'_, I>> {
        if self.level < level {
            return Err(too_old(level, self.level, method));
        }
        let inside = match self.is_for_good.load(Ordering::Relaxed) {
            true => None,
            false => Some(self.gate.enter().ok_or_else(|| detached(method))?),
        };
        let borrowed: *const ICorProfilerInfo3 = &raw const *self.interface;
        // SAFETY: both types are one pointer to an object, and levels inherit, so the object has
        // the table of each level up to its own.
        Ok(Call { runtime: unsafe { &*borrowed.cast::<I>() }, _inside: inside })
    }

    /// Marks the start of a callback. The callback ends when the returned value is dropped. If the
    /// runtime can't detach the profiler, callbacks are not counted.
    #[inline]
    pub(super) fn callback_begins(&self) -> Option<Inside<'_>> {
        if self.is_for_good.load(Ordering::Relaxed) { None } else { self.callbacks.enter() }
    }

    /// Number of running callbacks.
    pub(super) fn callbacks_under_way(&self) -> usize {
        self.callbacks.inside()
    }

    /// Waits for the running callbacks, for at most `most`. Returns whether they have ended;
    /// `false` if callbacks are not counted.
    pub(super) fn wait_for_callbacks(&self, most: Duration) -> bool {
        !self.is_for_good.load(Ordering::Relaxed) && self.callbacks.wait_for_those_inside(most)
    }

    /// The interface, for hooks. A profiler that ever had hooks can't be detached.
    pub(super) fn in_hook(&self) -> &ICorProfilerInfo3 {
        &self.interface
    }

    /// Marks the start of a suspension. [`end_suspension`](Self::end_suspension) marks its end.
    pub(super) fn begin_suspension(&self, method: &'static str) -> Result<()> {
        let more = |count| (count != DETACHING).then_some(count + 1);
        let begun = self.suspensions.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        begun.map(|_| ()).map_err(|_| {
            Error::refused(method, "the profiler is being detached: the runtime would not resume the program")
                .with_hresult(HResult::PROFILER_DETACHING)
        })
    }

    /// Marks the end of a suspension, or that the suspension failed.
    pub(super) fn end_suspension(&self) {
        self.suspensions.fetch_sub(1, Ordering::SeqCst);
    }

    /// Calls `request`, which requests the detach and may fail.
    pub(super) fn detach(&self, method: &'static str, request: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.suspensions.compare_exchange(0, DETACHING, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => request().inspect_err(|_| self.suspensions.store(0, Ordering::SeqCst)),
            // The detach was requested before: the runtime decides.
            Err(DETACHING) => request(),
            Err(_) => {
                Err(Error::refused(method, "the program is suspended, and a detached profiler could not resume it")
                    .with_hresult(HResult::UNSUPPORTED_CALL_SEQUENCE))
            }
        }
    }

    /// The runtime has accepted a profiler with hooks or immutable events. It refuses to detach
    /// such a profiler, and nothing else frees the interface.
    pub(super) fn stay_for_good(&self) {
        self.is_for_good.store(true, Ordering::Relaxed);
    }

    /// Refuses all calls from now on.
    pub(super) fn close(&self) {
        self.is_for_good.store(false, Ordering::Relaxed);
        self.gate.close();
    }

    /// Waits for the calls that began before [`close`](Self::close).
    pub(super) fn wait_for_calls(&self) {
        self.gate.wait_until_empty();
    }
}

#[cold]
fn detached(method: &'static str) -> Error {
    Error::refused(method, "the profiler was detached: there is no runtime to ask any more")
        .with_hresult(HResult::PROFILER_DETACHING)
}

#[cold]
fn too_old(level: u8, has: u8, method: &'static str) -> Error {
    let reason = format!("came with ICorProfilerInfo{level}; this runtime has ICorProfilerInfo{has}");
    Error::refused(method, reason).with_hresult(HResult::NOT_IMPLEMENTED)
}
