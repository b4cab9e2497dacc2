//! Record of the callers of a probed method, which is asked for when the method is called.

use clrscope_agent_base::hooks::is_stopped;

use super::{CalledMethod, Callers};

/// Address of the record of those who call the method whose frame this is; 0 where there is none.
pub(super) unsafe extern "C" fn find_from(method: *const CalledMethod, frame: usize, goes_on_at: usize) -> usize {
    if is_stopped() {
        return 0;
    }
    // SAFETY: the address that the code of the method has.
    let method = unsafe { &*method };
    Callers::of_recording(method.recording).map_or(0, |callers| callers.record(method.number, frame, goes_on_at))
}
