//! A forked child shares our mappings: its hooks must be off and its stores must not reach the
//! parent's recording.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::hooks;
use crate::services::{developer_log, threads};
use crate::startup::Running;

static PARENT: OnceLock<&'static Running> = OnceLock::new();

/// Arranges that children made by `fork` let go of everything. Those made by `vfork` or a bare
/// `clone` run no managed code before they `exec`.
pub(crate) fn prepare(running: &'static Running) {
    if PARENT.set(running).is_ok() {
        // SAFETY: the handler is async-signal-safe, and the library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

extern "C" fn in_child() {
    hooks::stopped_flag().store(1, Ordering::SeqCst);
    developer_log::withdraw();
    threads::withdraw();
    let Some(running) = PARENT.get() else { return };
    for instrument in &running.instruments {
        instrument.detach_in_child();
    }
    running.writer.log().segment().detach_in_child();
    running.writer.state().segment().detach_in_child();
    running.writer.threads().segment().detach_in_child();
}
