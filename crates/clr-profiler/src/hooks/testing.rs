//! Hooks of fake runtimes. A process has many fake runtimes, each with its own profiler, but only
//! one set of hook entry points.

use std::cell::RefCell;
use std::sync::Arc;

use crate::CallHooks;

thread_local! {
    /// While a fake runtime loads a profiler on this thread: the hooks that the profiler has set so
    /// far.
    static LOADING: RefCell<Option<Option<Arc<dyn CallHooks>>>> = const { RefCell::new(None) };
    /// While a fake runtime calls a hook on this thread: the hooks of its profiler.
    static HERE: RefCell<Option<Arc<dyn CallHooks>>> = const { RefCell::new(None) };
}

/// Calls `load`, which loads a profiler. Returns its result and the safe hooks that the profiler
/// set.
pub fn keep_hooks<R>(load: impl FnOnce() -> R) -> (R, Option<Arc<dyn CallHooks>>) {
    LOADING.set(Some(None));
    let result = load();
    (result, LOADING.take().flatten())
}

pub(super) fn is_loading() -> bool {
    LOADING.with_borrow(Option::is_some)
}

pub(super) fn keep(hooks: Arc<dyn CallHooks>) {
    LOADING.set(Some(Some(hooks)));
}

/// Calls `call`, which calls a hook entry point. The entry point uses `hooks`.
pub fn with_hooks<R>(hooks: Option<Arc<dyn CallHooks>>, call: impl FnOnce() -> R) -> R {
    HERE.set(hooks);
    let result = call();
    HERE.set(None);
    result
}

pub(super) fn here() -> Option<Arc<dyn CallHooks>> {
    HERE.with_borrow(Option::clone)
}
