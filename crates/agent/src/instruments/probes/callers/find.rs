//! Lookup of the record of a probed method's callers, when the method is called.

use clrscope_agent_base::hooks::is_stopped;

use super::{CalledMethod, Callers};

/// Address of the record for the callers of the method with this frame; 0 if there is none.
pub(super) unsafe extern "C" fn find_from(method: *const CalledMethod, frame: usize, goes_on_at: usize) -> usize {
    if is_stopped() {
        return 0;
    }
    // SAFETY: the address in the code of the method.
    let method = unsafe { &*method };
    Callers::of_recording(method.recording).map_or(0, |callers| callers.record(method.number, frame, goes_on_at))
}
