//! Protects the recording from forked children, which share our mappings. Their hooks must be off,
//! and what they write must not reach the parent's recording.

use std::sync::Once;
use std::sync::atomic::Ordering;

use clrscope_agent_base::hooks;
use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::{developer_log, threads};

/// Action by which a forked child lets go of a recording.
type Detach = Box<dyn Fn() + Send + Sync>;

static DETACH: PublishedState<Detach> = PublishedState::nothing();
static PREPARED: Once = Once::new();

/// Makes children that `fork` creates turn their hooks off and then call `detach`, which must be
/// async-signal-safe. Children created by `vfork` or a bare `clone` run no managed code before they
/// `exec`.
pub(crate) fn prepare(detach: impl Fn() + Send + Sync + 'static) {
    DETACH.publish(Box::new(detach));
    PREPARED.call_once(|| {
        // SAFETY: the handler is async-signal-safe, and the library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Removes the action that [`prepare`] has set up, since children have nothing left to release.
/// Call it when the recording is over and the process continues.
pub(crate) fn withdraw() {
    DETACH.withdraw();
}

extern "C" fn in_child() {
    hooks::stopped_flag().store(1, Ordering::SeqCst);
    developer_log::withdraw();
    threads::withdraw();
    if let Some(detach) = DETACH.get() {
        detach();
    }
}
