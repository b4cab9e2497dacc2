//! The end of the recording in a program that goes on: methods get their own code back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clr_profiler::{OwnThread, ProfilerInfo};

use super::methods::{Method, Methods};
use crate::services::developer_log::{Level, log};
use crate::services::helper::Task;

/// Gives methods their own code back.
pub(super) struct Undo {
    info: ProfilerInfo,
    methods: Arc<Methods>,
    /// Whether it is done, once that was begun.
    is_done: Option<Arc<AtomicBool>>,
}

impl Undo {
    pub(super) fn new(info: &ProfilerInfo, methods: &Arc<Methods>) -> Self {
        Self { info: info.clone(), methods: Arc::clone(methods), is_done: None }
    }

    /// Begins on a thread that the runtime knows: it stops the program for a moment.
    fn begin(&self) -> Arc<AtomicBool> {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Done(Arc::clone(&is_done));
        let (info, methods) = (self.info.clone(), Arc::clone(&self.methods));
        let begun = OwnThread::start(&self.info, "clrscope-revert", move |_| {
            let _done = done;
            revert(&info, &methods.end());
        });
        if let Err(error) = begun {
            // The program is about to end.
            log(Level::Warn, || format!("methods keep their probes: {error}"));
        }
        is_done
    }
}

impl Task for Undo {
    fn undo(&mut self) -> bool {
        if self.is_done.is_none() {
            self.is_done = Some(self.begin());
        }
        self.is_done.as_ref().is_some_and(|is_done| is_done.load(Ordering::Acquire))
    }
}

/// Says that it is done, also where the thread did not come to it.
struct Done(Arc<AtomicBool>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Gives methods their own code back: what calls them from now on runs that. Calls that are under way end in the code that they began in.
pub(super) fn revert(info: &ProfilerInfo, methods: &[Method]) {
    if methods.is_empty() {
        return;
    }
    match info.request_revert(methods) {
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
