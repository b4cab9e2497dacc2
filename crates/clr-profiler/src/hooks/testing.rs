//! Hooks of fake runtimes: a process has many of these, each with a profiler of its own, and one
//! set of entry points.

use std::cell::RefCell;
use std::sync::Arc;

use crate::CallHooks;

thread_local! {
    /// While a fake runtime loads a profiler on this thread: the hooks it has given so far.
    static LOADING: RefCell<Option<Option<Arc<dyn CallHooks>>>> = const { RefCell::new(None) };
    /// While a fake runtime calls a hook on this thread: whose.
    static HERE: RefCell<Option<Arc<dyn CallHooks>>> = const { RefCell::new(None) };
}

/// Loads a profiler by `load`; returns the result together with the safe hooks that it set.
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

/// Calls a hook by `call`; the entry points then find `hooks`.
pub fn with_hooks<R>(hooks: Option<Arc<dyn CallHooks>>, call: impl FnOnce() -> R) -> R {
    HERE.set(hooks);
    let result = call();
    HERE.set(None);
    result
}

pub(super) fn here() -> Option<Arc<dyn CallHooks>> {
    HERE.with_borrow(Option::clone)
}
