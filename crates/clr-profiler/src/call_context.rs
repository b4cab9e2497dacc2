//! Context of a call between runtime and profiler: in which kind of callback the thread is, so that queries which are not allowed
//! there are refused with a sentence instead of hanging or crashing the program. Debug builds only: release hooks pay nothing.

use crate::{Error, HResult, Result};

/// Kind of code of the profiler that the thread is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CallContext {
    /// In an ordinary callback, or in code of the profiler's own.
    #[default]
    Elsewhere,
    /// In an enter, leave or tail-call hook.
    Hook,
    /// In a callback about objects while a collection runs.
    Collection,
}

#[cfg(debug_assertions)]
thread_local! {
    static CURRENT: std::cell::Cell<CallContext> = const { std::cell::Cell::new(CallContext::Elsewhere) };
}

/// Runs `body` in `context` and restores the context before, also after a panic.
#[cfg(debug_assertions)]
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

#[cfg(not(debug_assertions))]
pub(crate) fn during<R>(_context: CallContext, body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(debug_assertions)]
fn here() -> CallContext {
    CURRENT.get()
}

#[cfg(not(debug_assertions))]
fn here() -> CallContext {
    CallContext::Elsewhere
}

/// Guard of queries that may wait, load types or take locks: allowed everywhere but in hooks.
pub(crate) fn outside_hooks(method: &'static str) -> Result<()> {
    match here() {
        CallContext::Hook => {
            refuse(method, "an enter, leave or tail-call hook: a collection waits for the hook to return")
        }
        CallContext::Elsewhere | CallContext::Collection => Ok(()),
    }
}

/// Guard of queries about objects, types or metadata: allowed neither in hooks nor in callbacks about objects during a collection.
pub(crate) fn outside_collections(method: &'static str) -> Result<()> {
    outside_hooks(method)?;
    match here() {
        CallContext::Collection => refuse(method, "a callback about objects during a collection: they are being moved"),
        CallContext::Elsewhere | CallContext::Hook => Ok(()),
    }
}

fn refuse(method: &'static str, context: &str) -> Result<()> {
    Err(Error::refused(method, format!("can't be asked in {context}")).with_hresult(HResult::UNSUPPORTED_CALL_SEQUENCE))
}

#[cfg(all(test, debug_assertions))]
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
        let panicked =
            std::panic::catch_unwind(|| during(CallContext::Hook, || std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err());
        assert_eq!(outside_hooks("A"), Ok(()));
    }
}
