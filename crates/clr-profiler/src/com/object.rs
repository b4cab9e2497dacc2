//! The callback object: dispatch to the profiler, and the panic boundary around each callback.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clr_profiler_sys::callback::ICorProfilerCallback11;
use windows_core::{HRESULT, implement};

use crate::boundary::guard;
use crate::call_context::{CallContext, during};
use crate::call_stacks::FollowExceptions;
use crate::hooks::FunctionMapper;
use crate::{HResult, Profiler, Result};

pub(super) const S_OK: HRESULT = HRESULT(0);

/// COM object that the runtime calls. Never freed: hooks and callbacks run on after `Shutdown`.
#[implement(ICorProfilerCallback11)]
pub(super) struct CallbackObject {
    pub(super) profiler: &'static dyn Profiler,
    pub(super) notification_only: AtomicBool,
    /// Shadow stacks of the framework, which follow exceptions before the profiler is notified.
    pub(super) stacks: OnceLock<Arc<dyn FollowExceptions>>,
    /// Function mapper of the hooks, notified of unloading before the profiler is.
    pub(super) mapper: OnceLock<Arc<dyn FunctionMapper>>,
}

impl CallbackObject {
    pub(super) fn notify(&self, notify: impl FnOnce(&dyn Profiler)) -> HRESULT {
        guard((), || notify(self.profiler));
        S_OK
    }

    /// Notification about objects while a collection runs.
    pub(super) fn notify_in_collection(&self, notify: impl FnOnce(&dyn Profiler)) -> HRESULT {
        during(CallContext::Collection, || self.notify(notify))
    }

    /// As [`notify_in_collection`](Self::notify_in_collection), with an answer.
    pub(super) fn ask_in_collection(&self, ask: impl FnOnce(&dyn Profiler) -> Result<()>) -> HRESULT {
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

    pub(super) fn ask(&self, ask: impl FnOnce(&dyn Profiler) -> Result<()>) -> HRESULT {
        guard(HRESULT(HResult::FAIL.0), || match ask(self.profiler) {
            Ok(()) => S_OK,
            Err(error) => HRESULT(error.hresult().0),
        })
    }
}
