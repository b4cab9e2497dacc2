//! End of the recording in a running program: methods get their own code back.

use std::sync::Arc;

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::runtime_thread::RuntimeThread;
use clrscope_recording::writer::Answer;

use super::methods::Methods;
use crate::services::own_code::revert;

/// Gives methods their own code back.
pub(super) struct Undo {
    info: ProfilerInfo,
    methods: Arc<Methods>,
    /// The thread that does the work, once it was begun.
    begun: Option<RuntimeThread>,
}

impl Undo {
    pub(super) fn new(info: &ProfilerInfo, methods: &Arc<Methods>) -> Self {
        Self { info: info.clone(), methods: Arc::clone(methods), begun: None }
    }

    /// Begins the work on a thread that the runtime knows: the work stops the program for a moment.
    fn begin(&self) -> RuntimeThread {
        let (info, methods) = (self.info.clone(), Arc::clone(&self.methods));
        RuntimeThread::begin(&self.info, "clrscope-revert", move || {
            revert(&info, "probes", &methods.end());
            Answer::Done
        })
    }
}

impl Task for Undo {
    fn undo(&mut self) -> bool {
        if self.begun.is_none() {
            self.begun = Some(self.begin());
        }
        self.begun.as_ref().is_some_and(|begun| begun.answer().is_some())
    }
}
