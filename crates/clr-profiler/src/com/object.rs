//! The callback object: who is told, and the panic boundary around telling.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clr_profiler_sys::callback::ICorProfilerCallback11;
use windows_core::{HRESULT, implement};

use crate::boundary::guard;
use crate::call_stacks::FollowExceptions;
use crate::hooks::FunctionMapper;
use crate::place::{Place, during};
use crate::{HResult, Profiler, Result};

pub(super) const S_OK: HRESULT = HRESULT(0);

/// What the runtime calls. Never freed: hooks and callbacks run on after `Shutdown`.
#[implement(ICorProfilerCallback11)]
pub(super) struct CallbackObject {
    pub(super) profiler: &'static dyn Profiler,
    pub(super) notification_only: AtomicBool,
    /// Stacks that the framework keeps, told of exceptions before the profiler is.
    pub(super) stacks: OnceLock<Arc<dyn FollowExceptions>>,
    /// The mapper of the hooks, told of what goes before the profiler is.
    pub(super) mapper: OnceLock<Arc<dyn FunctionMapper>>,
}

impl CallbackObject {
    pub(super) fn tell(&self, tell: impl FnOnce(&dyn Profiler)) -> HRESULT {
        guard((), || tell(self.profiler));
        S_OK
    }

    /// A callback about objects while a collection runs.
    pub(super) fn tell_of_objects(&self, tell: impl FnOnce(&dyn Profiler)) -> HRESULT {
        during(Place::Collection, || self.tell(tell))
    }

    /// As [`tell_of_objects`](Self::tell_of_objects), with an answer.
    pub(super) fn ask_of_object(&self, ask: impl FnOnce(&dyn Profiler) -> Result<()>) -> HRESULT {
        during(Place::Collection, || self.ask(ask))
    }

    pub(super) fn follow(&self, tell: impl FnOnce(&dyn FollowExceptions)) {
        if let Some(stacks) = self.stacks.get() {
            guard((), || tell(&**stacks));
        }
    }

    /// What goes must be forgotten by the mapper.
    pub(super) fn forget(&self, tell: impl FnOnce(&dyn FunctionMapper)) {
        if let Some(mapper) = self.mapper.get() {
            guard((), || tell(&**mapper));
        }
    }

    pub(super) fn ask(&self, ask: impl FnOnce(&dyn Profiler) -> Result<()>) -> HRESULT {
        guard(HRESULT(HResult::FAIL.0), || match ask(self.profiler) {
            Ok(()) => S_OK,
            Err(error) => HRESULT(error.hresult().0),
        })
    }
}
