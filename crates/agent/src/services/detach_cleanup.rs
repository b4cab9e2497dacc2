//! Cleans up after an attached recording, in a process that continues to run.

use clrscope_agent_base::helper::HelperHandle;
use clrscope_agent_base::os::signals;
use clrscope_agent_base::recording_lifetime;
use clrscope_agent_base::{developer_log, threads};
use clrscope_agent_stacks::stacks::stack_cache;
use clrscope_agent_values::types;
use clrscope_recording::writer::{ProcessWriter, unmap_all_in};

use super::{event_log, rings};

/// Waits for the end of the helper thread, and removes what a recording leaves in a process that
/// continues to run. Call it when the runtime has said that no more callbacks come, or has refused
/// the setup.
pub(crate) fn clean_up_after_helper(helper: &HelperHandle, writer: &'static ProcessWriter) {
    if !helper.wait_for_end() {
        // The helper thread may be in the middle of any work: everything that it uses must stay.
        return;
    }
    clean_up(writer);
}

/// Removes what a recording leaves. Call it when the helper thread has ended or never existed.
pub(crate) fn clean_up(writer: &'static ProcessWriter) {
    threads::let_go();
    rings::let_go();
    event_log::let_go();
    stack_cache::let_go();
    types::let_go();
    signals::with_all_blocked(developer_log::let_go);
    writer.state().detached();
    // SAFETY: the helper thread has ended, or there was none. No callback comes any more, and those
    // under way have ended: the runtime says so before this is called, or has never had the setup.
    // An attached agent has no hooks. Ends of threads were waited for by `threads::let_go`, and
    // find no registry from now on; thread-local words that still lead to records are not followed
    // (`threads::known`).
    unsafe { unmap_all_in(writer.folder()) };
    // SAFETY: as above. Changed code of the program has no address of a part.
    unsafe { recording_lifetime::recording_is_over() };
}
