//! Reports of faults of the agent and the runtime: caught panics, and callbacks in an order in
//! which the runtime should not send them.
//!
//! Where a fault happens, the agent only counts it, without allocation or lock. The helper thread
//! writes counts and texts into the recording.

use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::developer_log::{Level, log};

macro_rules! odd_callbacks {
    ($($(#[doc = $doc:literal])* $name:ident = $sentence:literal,)*) => {
        /// A callback that the runtime should not send at this time, or one without the information
        /// that it needs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum OddCallback {
            $($(#[doc = $doc])* $name,)*
        }

        impl OddCallback {
            const ALL: &[Self] = &[$(Self::$name),*];

            /// Sentence: the callback, and what is odd about it.
            const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $sentence,)*
                }
            }
        }
    };
}

odd_callbacks! {
    /// A compilation ended that never began.
    CompilationEnd = "JITCompilationFinished on a thread where no JITCompilationStarted is open",
    /// Unmanaged code returned that was never called.
    UnmanagedReturn = "UnmanagedToManagedTransition with the reason return on a thread where no call is open",
    /// An exception filter began in an unknown activation of a method.
    Filter = "ExceptionSearchFilterEnter, and GetNotifiedExceptionClauseInfo does not say for which activation",
    /// A finally block began in an unknown activation of a method.
    Finally = "ExceptionUnwindFinallyEnter, and GetNotifiedExceptionClauseInfo does not say for which activation",
    /// A catch block began in an unknown activation of a method.
    Catch = "ExceptionCatcherEnter, and GetNotifiedExceptionClauseInfo does not say for which activation",
}

const KINDS: usize = OddCallback::ALL.len();
static ODD: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];

/// Counts an odd callback as a loss. Takes no lock and does not allocate.
pub fn odd_callback(writer: &ProcessWriter, which: OddCallback) {
    writer.state().lose(LossReason::OddCallback, 1, monotonic_ns());
    ODD[which as usize].fetch_add(1, Ordering::Relaxed);
}

/// Remembers which faults are in the recording already.
#[derive(Default)]
pub(crate) struct FaultReport {
    panics: u64,
    has_panic_text: bool,
    odd: [bool; KINDS],
}

impl FaultReport {
    /// Records new faults. May wait for the disk.
    pub(crate) fn update(&mut self, writer: &ProcessWriter) {
        let caught = crate::boundary::caught() + clr_profiler::panics_caught();
        self.report_panics(writer, caught, clr_profiler::first_panic);
        for (&which, reported) in OddCallback::ALL.iter().zip(&mut self.odd) {
            if !*reported && ODD[which as usize].load(Ordering::Relaxed) > 0 {
                *reported = true;
                writer.loss_detail(LossReason::OddCallback, which.sentence());
                log(Level::Warn, || which.sentence().to_owned());
            }
        }
    }

    /// Counts panics as losses. The recording gets the place and text of the first one.
    fn report_panics(&mut self, writer: &ProcessWriter, caught: u64, first: impl Fn() -> Option<String>) {
        if caught <= self.panics {
            return;
        }
        writer.state().lose(LossReason::PanicCaught, caught - self.panics, monotonic_ns());
        log(Level::Error, || format!("{} panics caught so far", caught));
        self.panics = caught;
        if let Some(text) = first().filter(|_| !self.has_panic_text) {
            self.has_panic_text = true;
            let text = one_line(&text);
            writer.loss_detail(LossReason::PanicCaught, &text);
            log(Level::Error, || text);
        }
    }
}

/// The standard library puts the text on a line of its own after the place.
fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::Loss;
    use clrscope_recording::writer::ProcessRecord;

    use super::*;

    #[test]
    fn a_caught_panic_and_an_odd_callback_are_told_once_each_with_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("x.clrs.d");
        let writer = ProcessWriter::create(&name, &ProcessRecord { pid: 7, mono_ns: 1, ..Default::default() });
        let writer = writer.expect("a process");
        let mut report = FaultReport::default();
        let first = || Some("panicked at calls/slow.rs:7:9:\nthe answer is unknown".to_owned());
        report.report_panics(&writer, 0, first);
        report.report_panics(&writer, 2, first);
        report.report_panics(&writer, 3, first);
        for which in [OddCallback::Catch, OddCallback::CompilationEnd, OddCallback::Catch] {
            odd_callback(&writer, which);
            report.update(&writer);
        }
        let recording = clrscope_recording::open(&name).expect("a recording");
        let of = |reason| recording.processes[0].losses.iter().find(|loss: &&Loss| loss.reason == reason);
        let panics = of(LossReason::PanicCaught).expect("a loss");
        assert_eq!(panics.count, 3);
        assert_eq!(panics.details, ["panicked at calls/slow.rs:7:9: the answer is unknown"]);
        let odd = of(LossReason::OddCallback).expect("a loss");
        assert_eq!(odd.count, 3);
        assert_eq!(odd.details, [OddCallback::Catch.sentence(), OddCallback::CompilationEnd.sentence()]);
    }
}
