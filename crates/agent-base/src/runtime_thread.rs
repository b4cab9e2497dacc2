//! Work on a thread of the agent that the runtime knows, and its result.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{OwnThread, ProfilerInfo};
use clrscope_recording::writer::Answer;

use crate::developer_log::{Level, log};

/// Work that runs on its own thread, because the helper thread must not call the runtime.
#[derive(Debug, Clone)]
pub struct RuntimeThread(Arc<Mutex<Option<Answer>>>);

impl RuntimeThread {
    /// Begins the work on a new thread with this name. If no thread can be created, or the work
    /// panics, the answer is a failure.
    pub fn begin(info: &ProfilerInfo, name: &str, work: impl FnOnce() -> Answer + Send + 'static) -> Self {
        let thread = Self(Arc::default());
        let over = FinishOnDrop(thread.clone());
        let started = OwnThread::start(info, name, move |_thread| over.0.finish(work()));
        if let Err(error) = started {
            log(Level::Warn, || format!("no thread {name}: {error}"));
        }
        thread
    }

    /// The result of the work; `None` until it is done.
    pub fn answer(&self) -> Option<Answer> {
        *self.state()
    }

    fn finish(&self, answer: Answer) {
        self.state().get_or_insert(answer);
    }

    fn state(&self) -> MutexGuard<'_, Option<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work, however its thread ends.
struct FinishOnDrop(RuntimeThread);

impl Drop for FinishOnDrop {
    fn drop(&mut self) {
        self.0.finish(Answer::Failed);
    }
}
