//! Suspends all threads of the runtime once, at the end of a recording whose code stays in methods
//! of the program. After the suspension no thread is in the middle of a call of the agent's code.

use std::sync::Arc;
use std::time::Duration;

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::runtime_thread::RuntimeThread;
use clrscope_recording::writer::Answer;

/// Longest wait for the runtime to suspend all threads.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A suspension of all threads.
pub(crate) struct StopOfThreads {
    info: ProfilerInfo,
    /// Name of the thread that requests the suspension.
    thread: &'static str,
    /// Work of that thread before the suspension.
    work: Arc<dyn Fn(&ProfilerInfo) + Send + Sync>,
    /// The suspension, once it was begun.
    begun: Option<RuntimeThread>,
}

impl StopOfThreads {
    pub(crate) fn new(info: &ProfilerInfo, thread: &'static str) -> Self {
        Self::behind(info, thread, |_| ())
    }

    /// Like [`new`](Self::new), but does `work`, which may ask the runtime, before the suspension.
    /// The work may be repeated.
    pub(crate) fn behind(
        info: &ProfilerInfo,
        thread: &'static str,
        work: impl Fn(&ProfilerInfo) + Send + Sync + 'static,
    ) -> Self {
        Self { info: info.clone(), thread, work: Arc::new(work), begun: None }
    }

    /// Returns whether the suspension is over. The first call runs `before` and begins the
    /// suspension. If a suspension fails, another one begins.
    pub(crate) fn is_over(&mut self, before: impl FnOnce()) -> bool {
        let begun = self.begun.get_or_insert_with(|| {
            before();
            let (info, thread, work) = (self.info.clone(), self.thread, Arc::clone(&self.work));
            RuntimeThread::begin(&self.info, thread, move || {
                work(&info);
                match info.suspend_within(TIMEOUT) {
                    Ok(suspended) => {
                        drop(suspended);
                        Answer::Done
                    }
                    Err(error) => {
                        log(Level::Warn, || format!("{thread}: the runtime does not stop its threads: {error}"));
                        Answer::Failed
                    }
                }
            })
        });
        match begun.answer() {
            Some(Answer::Failed) => {
                self.begun = None;
                false
            }
            answer => answer.is_some(),
        }
    }
}
