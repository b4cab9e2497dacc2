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

/// COM object that the runtime calls. Freed with the last reference. [`retired`](super::retired)
/// keeps one: hooks and callbacks run on after `Shutdown`.
#[implement(ICorProfilerCallback11)]
pub(super) struct CallbackObject {
    /// The profiler, from its `initialize` on.
    pub(super) callbacks: OnceLock<&'static dyn Callbacks>,
    /// Frees the profiler, with this object.
    pub(super) free: Cell<Option<Free>>,
    /// The runtime calls the object no more, but for its `Release`.
    pub(super) is_retired: Arc<AtomicBool>,
    /// Maker of the profiler; taken by `Initialize`, which the runtime calls once, before anything
    /// else.
    pub(super) loader: Cell<Option<Loader>>,
    /// The profiler is content with notifications; whether the runtime has asked, and takes it for
    /// one of those, is next.
    pub(super) is_content_with_notifications: bool,
    pub(super) notification_only: AtomicBool,
    /// The runtime's information, as the profiler got it.
    pub(super) info: OnceLock<ProfilerInfo>,
    /// Shadow stacks of the framework, which follow exceptions before the profiler is notified.
    pub(super) stacks: OnceLock<Arc<dyn FollowExceptions>>,
    /// Function mapper of the hooks, notified of unloading before the profiler is.
    pub(super) mapper: OnceLock<Arc<dyn FunctionMapper>>,
}

impl Drop for CallbackObject {
    fn drop(&mut self) {
        // Who calls the profiler holds a reference to this object.
        self.free.take().into_iter().for_each(|free| free());
    }
}

/// Table of the methods in this folder that implement the interface.
pub(super) const METHODS: ICorProfilerCallback11_Vtbl = CallbackObject_Impl::VTABLE_INTERFACE1_ICORPROFILERCALLBACK;

impl CallbackObject {
    /// The object, called by a table.
    ///
    /// # Safety
    /// Entries of the table must take what those of [`METHODS`] take, and find the object as they
    /// do.
    pub(super) unsafe fn into_interface(self, table: &'static ICorProfilerCallback11_Vtbl) -> ICorProfilerCallback11 {
        let object = Box::new(CallbackObject_Impl { interface1_icorprofilercallback: table, ..self.into_outer() });
        // SAFETY: a new object counts one reference, which is the one that is given away.
        unsafe { ComObject::<Self>::from_raw(NonNull::from(Box::leak(object))) }.into_interface()
    }

    /// A callback begins, and ends when the answer is dropped.
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

    /// A question with an answer that is no `HRESULT`; `neutral` without a profiler and after a
    /// panic.
    pub(super) fn answer<A: Copy>(&self, neutral: A, ask: impl FnOnce(&dyn Callbacks) -> A) -> A {
        let _under_way = self.under_way();
        self.callbacks.get().map_or(neutral, |callbacks| guard(neutral, || ask(*callbacks)))
    }

    /// Ends threads of the profiler's own, before the runtime goes on without it.
    pub(super) fn stop_own_threads(&self) {
        if let Some(info) = self.info.get() {
            guard(true, || info.own_threads().stop_all(LAST_WAIT));
        }
    }

    /// Notification that lends objects.
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

    /// Notifies the mapper of what is unloaded, so that it forgets names.
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
