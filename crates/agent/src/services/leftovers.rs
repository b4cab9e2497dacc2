//! Leftovers of an attached recording in a process that goes on, and their end.

use clrscope_recording::writer::{ProcessWriter, unmap_all_in};

use super::helper::HelperHandle;
use super::stacks::stack_cache;
use super::{developer_log, event_log, threads};
use crate::os::signals;

/// Takes away what a recording leaves in a process that goes on. The runtime has said that no callback comes any more, or has refused the
/// setup.
pub(crate) fn let_go(helper: &HelperHandle, writer: &'static ProcessWriter) {
    if !helper.wait_for_end() {
        // It may be in the middle of anything: what it uses must stay.
        return;
    }
    clean_up(writer);
}

/// Takes away what an attached agent has made so far that did not come to record. There is no helper thread, and there were no
/// callbacks.
pub(crate) fn clean_up(writer: &'static ProcessWriter) {
    threads::let_go();
    event_log::let_go();
    stack_cache::let_go();
    signals::with_all_blocked(developer_log::let_go);
    writer.state().detached();
    // SAFETY: the helper thread has ended, or there was none. No callback comes any more, and those under way have ended: the runtime
    // says so before this is called, or has never had the setup. An attached agent has no hooks. Ends of threads were waited for by
    // `threads::let_go`, and find no registry from now on; thread-local words that still lead to records are not followed
    // (`threads::known`).
    unsafe { unmap_all_in(writer.folder()) };
}
