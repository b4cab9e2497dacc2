//! Panics when a test asks for it, to show that a panic of the agent stays in the agent. Compiled
//! only with the feature `panic-on-demand`, which no released agent has.

use std::sync::OnceLock;

use clrscope_agent_base::helper::Task;

/// The environment variable that names the place: `callback`, `hook` or `helper`.
const VARIABLE: &str = "CLRSCOPE_TEST_PANIC";

/// Panics if the environment variable names this place in the code.
#[track_caller]
pub(crate) fn panic_if_asked(place: &str) {
    static ASKED: OnceLock<Option<String>> = OnceLock::new();
    let asked = ASKED.get_or_init(|| std::env::var(VARIABLE).ok());
    assert!(asked.as_deref() != Some(place), "a test asked for a panic in the {place}");
}

/// A task that panics on the helper thread.
pub(crate) struct PanickingTask;

impl Task for PanickingTask {
    fn slow_tick(&mut self, _now_ns: u64) {
        panic_if_asked("helper");
    }
}
