//! The end of the recording in a program that goes on: methods get their own code back.

use std::sync::Arc;

use clr_profiler::ProfilerInfo;
use clrscope_recording::writer::Answer;
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::runtime_thread::RuntimeThread;
use clrscope_agent_base::helper::Task;

use super::methods::{Method, Methods};
use crate::services::kept_code;

/// Gives methods their own code back.
pub(super) struct Undo {
    info: ProfilerInfo,
    methods: Arc<Methods>,
    /// The work, once it was begun.
    begun: Option<RuntimeThread>,
}

impl Undo {
    pub(super) fn new(info: &ProfilerInfo, methods: &Arc<Methods>) -> Self {
        Self { info: info.clone(), methods: Arc::clone(methods), begun: None }
    }

    /// Begins on a thread that the runtime knows: it stops the program for a moment.
    fn begin(&self) -> RuntimeThread {
        let (info, methods) = (self.info.clone(), Arc::clone(&self.methods));
        RuntimeThread::begin(&self.info, "clrscope-revert", move || {
            revert(&info, &methods.end());
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

/// Gives methods their own code back: what calls them from now on runs that. Calls that are under way end in the code that they began in.
/// A method that keeps other code, and had taken in one with probes, stays compiled without that.
pub(super) fn revert(info: &ProfilerInfo, methods: &[Method]) {
    let methods: Vec<Method> = methods.iter().copied().filter(|method| !kept_code::is_kept(*method)).collect();
    if methods.is_empty() {
        return;
    }
    match info.request_revert(&methods) {
        Ok(each) => {
            let refused = each.iter().filter_map(|one| one.as_ref().err()).collect::<Vec<_>>();
            log(Level::Info, || {
                let first = refused.first().map(ToString::to_string).unwrap_or_default();
                format!("probes: {} methods have their own code again, {} not {first}", methods.len(), refused.len())
            });
        }
        Err(error) => log(Level::Warn, || format!("probes: {} methods keep their code: {error}", methods.len())),
    }
}
