//! Finds the shapes (memory layouts) of types that were unknown when calls had values of them.
//!
//! In a program that keeps compiling methods, shapes are found during compilations. A program that
//! the agent was attached to may compile nothing for hours, so here a thread of the agent's own
//! finds the shapes, without loading any type.

use clr_profiler::ProfilerInfo;
use clrscope_recording::writer::Answer;
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::runtime_thread::RuntimeThread;
use clrscope_agent_base::helper::Task;
use clrscope_agent_values::arguments::depth;
use clrscope_agent_values::types::Types;
use clrscope_agent_values::types::loading::on_own_thread;

/// Rounds of the helper thread between two searches: about half a second.
const ROUNDS: u32 = 25;

/// The task of the helper thread that starts this work.
pub(in crate::instruments::probes) struct LookIntoTypes {
    info: ProfilerInfo,
    types: &'static Types,
    rounds: u32,
    thread: Option<RuntimeThread>,
    /// Whether the last search, after the recording, was begun.
    is_last: bool,
}

impl LookIntoTypes {
    pub(in crate::instruments::probes) fn new(info: &ProfilerInfo, types: &'static Types) -> Self {
        Self { info: info.clone(), types, rounds: 0, thread: None, is_last: false }
    }

    fn begin(&mut self) {
        let (info, types) = (self.info.clone(), self.types);
        self.thread = Some(RuntimeThread::begin(&self.info, "clrscope-types", move || {
            if let Err(error) = on_own_thread(&info, depth(), || types.look_into_pending()) {
                log(Level::Warn, || format!("probes: values of some types are unknown: {error}"));
            }
            types.name_delegates();
            Answer::Done
        }));
    }

    fn is_idle(&self) -> bool {
        self.thread.as_ref().is_none_or(|thread| thread.answer().is_some())
    }
}

impl Task for LookIntoTypes {
    fn slow_tick(&mut self, _now_ns: u64) {
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS) && self.is_idle() && self.types.has_pending() {
            self.begin();
        }
    }

    /// Runs the last search, so that values of the classes that were met last are readable.
    fn undo(&mut self) -> bool {
        if !self.is_idle() {
            return false;
        }
        if !self.is_last {
            self.is_last = true;
            self.begin();
        }
        self.is_idle()
    }
}
