//! Context of a call from the runtime to the profiler: the kind of callback that the thread is in.
//! The framework refuses queries that are not allowed there, with a sentence. Otherwise these
//! queries could hang or crash the program.
//!
//! Release builds also track callbacks that lend objects: if a query let a collection run, the
//! profiler would keep addresses of moved objects. Only debug builds track hooks, because release
//! hooks must have no cost.

use std::cell::Cell;

use crate::{Error, HResult, Result};

/// Kind of profiler code that the thread runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CallContext {
    /// In a callback that lends no objects, or in the profiler's own code.
    #[default]
    Elsewhere,
    /// In an enter, leave or tail-call hook.
    Hook,
    /// In a callback with object arguments. The objects don't move until the callback returns,
    /// unless a query lets a collection run.
    Objects,
    /// In a callback about objects while a collection runs.
    Collection,
}

thread_local! {
    static CURRENT: Cell<CallContext> = const { Cell::new(CallContext::Elsewhere) };
}

/// Runs `body` in `context`, then restores the previous context, also after a panic.
#[inline]
pub(crate) fn during<R>(context: CallContext, body: impl FnOnce() -> R) -> R {
    struct Back(CallContext);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _back = Back(CURRENT.replace(context));
    body()
}

/// Runs the body of a hook. In debug builds like [`during`] with [`CallContext::Hook`].
#[inline]
pub(crate) fn during_hook<R>(body: impl FnOnce() -> R) -> R {
    if cfg!(debug_assertions) { during(CallContext::Hook, body) } else { body() }
}

/// Guard of queries that may wait, load types or take locks: allowed everywhere except in hooks.
pub(crate) fn outside_hooks(method: &'static str) -> Result<()> {
    match CURRENT.get() {
        CallContext::Hook => {
            refuse(method, "an enter, leave or tail-call hook: a collection waits for the hook to return")
        }
        CallContext::Elsewhere | CallContext::Objects | CallContext::Collection => Ok(()),
    }
}

/// Guard of queries about objects, types or metadata: allowed neither in hooks nor in callbacks
/// about objects during a collection.
pub(crate) fn outside_collections(method: &'static str) -> Result<()> {
    match CURRENT.get() {
        CallContext::Collection => refuse(method, "a callback about objects during a collection: they are being moved"),
        CallContext::Elsewhere | CallContext::Objects | CallContext::Hook => outside_hooks(method),
    }
}

/// Guard of queries that may let a collection run: not allowed while objects are lent.
pub(crate) fn where_objects_may_move(method: &'static str) -> Result<()> {
    match CURRENT.get() {
        CallContext::Objects => {
            refuse(method, "a callback that lends objects: a collection could move them before the callback returns")
        }
        CallContext::Elsewhere | CallContext::Hook | CallContext::Collection => outside_collections(method),
    }
}

/// Guard of queries that return objects: allowed only where objects don't move, in a callback that
/// lends objects.
pub(crate) fn where_objects_stay(method: &'static str) -> Result<()> {
    match CURRENT.get() {
        CallContext::Objects => Ok(()),
        CallContext::Elsewhere | CallContext::Hook | CallContext::Collection => Err(Error::refused(
            method,
            "can be asked in a callback that lends objects only: elsewhere a collection may move the object at any moment",
        )
        .with_hresult(HResult::UNSUPPORTED_CALL_SEQUENCE)),
    }
}

fn refuse(method: &'static str, context: &str) -> Result<()> {
    Err(Error::refused(method, format!("can't be asked in {context}")).with_hresult(HResult::UNSUPPORTED_CALL_SEQUENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_refused_in_the_wrong_context_and_nowhere_else() {
        let reason = |outcome: Result<()>| outcome.err().and_then(|error| error.reason().map(str::to_owned));
        assert_eq!((outside_hooks("A"), outside_collections("A")), (Ok(()), Ok(())));
        during(CallContext::Hook, || {
            assert!(reason(outside_hooks("A")).is_some_and(|reason| reason.contains("hook")));
            assert!(outside_collections("A").is_err());
            during(CallContext::Collection, || {
                assert_eq!(outside_hooks("A"), Ok(()));
                assert!(reason(outside_collections("A")).is_some_and(|reason| reason.contains("collection")));
            });
            assert!(outside_hooks("A").is_err());
        });
        assert_eq!(outside_hooks("A"), Ok(()));
        during(CallContext::Objects, || {
            assert_eq!((outside_collections("A"), where_objects_stay("A")), (Ok(()), Ok(())));
            assert!(reason(where_objects_may_move("A")).is_some_and(|reason| reason.contains("lends objects")));
        });
        assert_eq!(where_objects_may_move("A"), Ok(()));
        assert!(reason(where_objects_stay("A")).is_some_and(|reason| reason.contains("may move the object")));
        let panicked =
            std::panic::catch_unwind(|| during(CallContext::Hook, || std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err());
        assert_eq!(outside_hooks("A"), Ok(()));
    }
}
