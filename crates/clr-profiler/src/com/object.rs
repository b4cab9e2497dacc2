//! The callback object: dispatch to the profiler, and the panic boundary around each callback.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clr_profiler_sys::callback::{ICorProfilerCallback11, ICorProfilerCallback11_Vtbl};
use windows_core::{ComObject, HRESULT, implement};

use crate::boundary::guard;
use crate::call_context::{CallContext, during};
use crate::call_stacks::FollowExceptions;
use crate::gate::Inside;
use crate::hooks::FunctionMapper;
use crate::info::LAST_WAIT;
use crate::profiler::{Free, Loader};
use crate::{Callbacks, HResult, ProfilerInfo, Result};

pub(super) const S_OK: HRESULT = HRESULT(0);

/// COM object that the runtime calls. Freed when the last reference is released.
/// [`retired`](super::retired) keeps one reference, because hooks and callbacks still run after
/// `Shutdown`.
#[implement(ICorProfilerCallback11)]
pub(super) struct CallbackObject {
    /// The profiler; set once its `initialize` has returned.
    pub(super) callbacks: OnceLock<&'static dyn Callbacks>,
    /// Frees the profiler when this object is freed.
    pub(super) free: Cell<Option<Free>>,
    /// Whether the runtime has made its last call to the object, apart from `Release`.
    pub(super) is_retired: Arc<AtomicBool>,
    /// Makes the profiler; taken by `Initialize`, which the runtime calls once, before anything
    /// else.
    pub(super) loader: Cell<Option<Loader>>,
    /// Whether the profiler agrees to run as notification-only. The next field is set once the
    /// runtime has asked and treats the profiler as notification-only.
    pub(super) is_content_with_notifications: bool,
    pub(super) notification_only: AtomicBool,
    /// The runtime's information interface, as the profiler received it.
    pub(super) info: OnceLock<ProfilerInfo>,
    /// Shadow stacks of the framework. Exception callbacks update them before they notify the
    /// profiler.
    pub(super) stacks: OnceLock<Arc<dyn FollowExceptions>>,
    /// Function mapper of the hooks. Unload callbacks notify the mapper before the profiler.
    pub(super) mapper: OnceLock<Arc<dyn FunctionMapper>>,
}

impl Drop for CallbackObject {
    fn drop(&mut self) {
        // No call is running here: each caller of the profiler holds a reference to this object.
        self.free.take().into_iter().for_each(|free| free());
    }
}

/// Table of the methods in this folder that implement the interface.
pub(super) const METHODS: ICorProfilerCallback11_Vtbl = CallbackObject_Impl::VTABLE_INTERFACE1_ICORPROFILERCALLBACK;

impl CallbackObject {
    /// The object as an interface pointer that uses this method table.
    ///
    /// # Safety
    /// Entries of the table must take the same arguments as the entries of [`METHODS`], and find
    /// the object in the same way.
    pub(super) unsafe fn into_interface(self, table: &'static ICorProfilerCallback11_Vtbl) -> ICorProfilerCallback11 {
        let object = Box::new(CallbackObject_Impl { interface1_icorprofilercallback: table, ..self.into_outer() });
        // SAFETY: a new object has one reference, which this function returns.
        unsafe { ComObject::<Self>::from_raw(NonNull::from(Box::leak(object))) }.into_interface()
    }

    /// Marks the start of a callback. The callback ends when the returned value is dropped.
    #[inline]
    fn under_way(&self) -> Option<Inside<'_>> {
        self.info.get().and_then(ProfilerInfo::callback_begins)
    }

    pub(super) fn notify(&self, notify: impl FnOnce(&dyn Callbacks)) -> HRESULT {
        let _under_way = self.under_way();
        if let Some(callbacks) = self.callbacks.get() {
            guard((), || notify(*callbacks));
        }
        S_OK
    }

    /// A callback whose answer is not an `HRESULT`. Returns `neutral` if there is no profiler and
    /// after a panic.
    pub(super) fn answer<A: Copy>(&self, neutral: A, ask: impl FnOnce(&dyn Callbacks) -> A) -> A {
        let _under_way = self.under_way();
        self.callbacks.get().map_or(neutral, |callbacks| guard(neutral, || ask(*callbacks)))
    }

    /// Ends the profiler's own threads before the runtime continues without the profiler.
    pub(super) fn stop_own_threads(&self) {
        if let Some(info) = self.info.get() {
            guard(true, || info.own_threads().stop_all(LAST_WAIT));
        }
    }

    /// A notification with object identifiers as arguments.
    #[inline]
    pub(super) fn notify_with_objects(&self, notify: impl FnOnce(&dyn Callbacks)) -> HRESULT {
        during(CallContext::Objects, || self.notify(notify))
    }

    /// Notification about objects while a collection runs.
    pub(super) fn notify_in_collection(&self, notify: impl FnOnce(&dyn Callbacks)) -> HRESULT {
        during(CallContext::Collection, || self.notify(notify))
    }

    /// As [`notify_in_collection`](Self::notify_in_collection), with an answer.
    pub(super) fn ask_in_collection(&self, ask: impl FnOnce(&dyn Callbacks) -> Result<()>) -> HRESULT {
        during(CallContext::Collection, || self.ask(ask))
    }

    pub(super) fn follow(&self, notify: impl FnOnce(&dyn FollowExceptions)) {
        if let Some(stacks) = self.stacks.get() {
            guard((), || notify(&**stacks));
        }
    }

    /// Notifies the function mapper of an unload, so that the mapper drops names.
    pub(super) fn forget(&self, notify: impl FnOnce(&dyn FunctionMapper)) {
        if let Some(mapper) = self.mapper.get() {
            guard((), || notify(&**mapper));
        }
    }

    pub(super) fn ask(&self, ask: impl FnOnce(&dyn Callbacks) -> Result<()>) -> HRESULT {
        let _under_way = self.under_way();
        let Some(callbacks) = self.callbacks.get() else { return S_OK };
        guard(HRESULT(HResult::FAIL.0), || match ask(*callbacks) {
            Ok(()) => S_OK,
            Err(error) => HRESULT(error.hresult().0),
        })
    }
}
