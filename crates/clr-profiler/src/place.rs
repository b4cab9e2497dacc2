//! Where on the way between runtime and profiler a thread is, so that questions asked in the wrong place are refused with a
//! sentence instead of hanging or crashing the program. Debug builds only: hooks pay for nothing else.

use crate::{Error, HResult, Result};

/// What a thread is doing for the profiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Place {
    /// In an ordinary callback, or in code of the profiler's own.
    #[default]
    Elsewhere,
    /// In an enter, leave or tail-call hook.
    Hook,
    /// In a callback that tells of objects while a collection runs.
    Collection,
}

#[cfg(debug_assertions)]
thread_local! {
    static PLACE: std::cell::Cell<Place> = const { std::cell::Cell::new(Place::Elsewhere) };
}

/// Runs `body` as being in `place`; a panic leaves it too.
#[cfg(debug_assertions)]
pub(crate) fn during<R>(place: Place, body: impl FnOnce() -> R) -> R {
    struct Back(Place);
    impl Drop for Back {
        fn drop(&mut self) {
            PLACE.set(self.0);
        }
    }
    let _back = Back(PLACE.replace(place));
    body()
}

#[cfg(not(debug_assertions))]
pub(crate) fn during<R>(_place: Place, body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(debug_assertions)]
fn here() -> Place {
    PLACE.get()
}

#[cfg(not(debug_assertions))]
fn here() -> Place {
    Place::Elsewhere
}

/// For questions that may wait, load types or take locks: everywhere but in hooks.
pub(crate) fn outside_hooks(method: &'static str) -> Result<()> {
    match here() {
        Place::Hook => refuse(method, "an enter, leave or tail-call hook: a collection waits for the hook to return"),
        Place::Elsewhere | Place::Collection => Ok(()),
    }
}

/// For questions that look at objects, types or metadata: neither in hooks nor while a collection tells of objects.
pub(crate) fn outside_collections(method: &'static str) -> Result<()> {
    outside_hooks(method)?;
    match here() {
        Place::Collection => refuse(method, "a callback about objects during a collection: they are being moved"),
        Place::Elsewhere | Place::Hook => Ok(()),
    }
}

fn refuse(method: &'static str, place: &str) -> Result<()> {
    Err(Error::refused(method, format!("can't be asked in {place}")).with_hresult(HResult::UNSUPPORTED_CALL_SEQUENCE))
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn questions_are_refused_in_the_wrong_place_and_nowhere_else() {
        let reason = |outcome: Result<()>| outcome.err().and_then(|error| error.reason().map(str::to_owned));
        assert_eq!((outside_hooks("A"), outside_collections("A")), (Ok(()), Ok(())));
        during(Place::Hook, || {
            assert!(reason(outside_hooks("A")).is_some_and(|reason| reason.contains("hook")));
            assert!(outside_collections("A").is_err());
            during(Place::Collection, || {
                assert_eq!(outside_hooks("A"), Ok(()));
                assert!(reason(outside_collections("A")).is_some_and(|reason| reason.contains("collection")));
            });
            assert!(outside_hooks("A").is_err());
        });
        assert_eq!(outside_hooks("A"), Ok(()));
        let panicked = std::panic::catch_unwind(|| during(Place::Hook, || std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err());
        assert_eq!(outside_hooks("A"), Ok(()));
    }
}
