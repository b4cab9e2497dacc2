//! A stop of all threads of the runtime, once, at the end of a recording whose code stays in
//! methods of the program. No thread is in the middle of a call of ours then.

use std::sync::Arc;
use std::time::Duration;

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::runtime_thread::RuntimeThread;
use clrscope_recording::writer::Answer;

/// Longest wait for a moment at which the runtime has stopped all threads.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A stop of all threads.
pub(crate) struct StopOfThreads {
    info: ProfilerInfo,
    /// Name of the thread that asks for it.
    thread: &'static str,
    /// Work of that thread before the stop.
    work: Arc<dyn Fn(&ProfilerInfo) + Send + Sync>,
    /// The stop, once it was begun.
    begun: Option<RuntimeThread>,
}

impl StopOfThreads {
    pub(crate) fn new(info: &ProfilerInfo, thread: &'static str) -> Self {
        Self::behind(info, thread, |_| ())
    }

    /// As [`new`](Self::new), behind work that asks the runtime, and may be done again.
    pub(crate) fn behind(
        info: &ProfilerInfo,
        thread: &'static str,
        work: impl Fn(&ProfilerInfo) + Send + Sync + 'static,
    ) -> Self {
        Self { info: info.clone(), thread, work: Arc::new(work), begun: None }
    }

    /// Begins the stop when it is asked for the first time, after `before`. Whether it is over; one
    /// that failed begins again.
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
