//! Initialization: the profiler returns a [`Setup`], which this module checks and passes to the
//! runtime.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use windows_core::HRESULT;

use super::object::CallbackObject;
use crate::boundary::guard;
use crate::{Error, Events, HResult, ProfilerInfo, Result, Setup};

/// Calls `initialize`, or `initialize_for_attach` if there is `client_data`. Any failure cancels
/// the activation: the program then runs as if there were no profiler.
///
/// # Safety
/// `info` must be the interface the runtime passes to `Initialize`.
pub(super) unsafe fn initialize(callbacks: &CallbackObject, info: *mut c_void, client_data: Option<&[u8]>) -> HRESULT {
    let cancelled = Error::refused("Initialize", "the profiler panicked").with_hresult(HResult::CANCEL_ACTIVATION);
    let is_first = callbacks.info.get().is_none();
    let outcome = guard(Err(cancelled), || {
        // SAFETY: the caller vouches for `info`.
        let info = unsafe { ProfilerInfo::from_runtime(info) }?;
        let _ = callbacks.info.set(info.clone());
        if callbacks.notification_only.load(Ordering::Relaxed) {
            info.mark_notification_only();
        }
        let loader = callbacks.loader.take().ok_or(Error::refused("Initialize", "a profiler is initialized once"))?;
        let made = (loader.make)(&info, client_data)?;
        let _ = callbacks.callbacks.set(made.callbacks);
        callbacks.free.set(Some(made.free));
        let setup = made.setup;
        let is_for_good = setup.hooks().is_some() || setup.events().intersects(Events::IMMUTABLE);
        let applied = check(callbacks, &setup, client_data.is_some()).and_then(|()| apply(callbacks, &info, setup));
        if let Err(error) = &applied {
            (made.refused)(error);
        }
        if applied.is_ok() {
            if is_for_good {
                info.stay_for_good();
            }
            info.own_threads().open();
        }
        applied
    });
    match &outcome {
        Ok(()) => crate::load_log::write("loaded"),
        Err(error) => crate::load_log::write(format_args!("refused {error}")),
    }
    if let (Err(_), true, Some(info)) = (&outcome, is_first, callbacks.info.get()) {
        // The runtime frees the interface of a profiler that it does not keep.
        callbacks.stop_own_threads();
        info.close();
        info.wait_for_calls();
        callbacks.is_retired.store(true, Ordering::Release);
    }
    match outcome {
        Ok(()) => HRESULT(0),
        Err(error) if client_data.is_some() => HRESULT(error.hresult().0),
        Err(_) => HRESULT(HResult::CANCEL_ACTIVATION.0),
    }
}

fn check(callbacks: &CallbackObject, setup: &Setup, attached: bool) -> Result<()> {
    if attached {
        setup.check_for_attach()?;
    }
    if callbacks.notification_only.load(Ordering::Relaxed) {
        setup.check_for_notification_only()
    } else {
        setup.check()
    }
}

fn apply(callbacks: &CallbackObject, info: &ProfilerInfo, setup: Setup) -> Result<()> {
    if let Some(stacks) = setup.stacks() {
        drop(callbacks.stacks.set(stacks));
    }
    if let Some(hooks) = setup.hooks() {
        drop(callbacks.mapper.set(Arc::clone(&hooks.mapper)));
    }
    info.set_events(setup.events())?;
    match setup.into_hooks() {
        Some(hooks) => crate::hooks::install(info, hooks),
        None => Ok(()),
    }
}
