//! A temporary recording: the agent is in the program as long as a screen is open.

use std::thread;
use std::time::{Duration, Instant};

use clrscope_analysis::Query;
use clrscope_contract::request::{InstrumentRequest, Request};
use clrscope_finish::MachineFacts;
use clrscope_recording::model::Recording;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use crate::attach::{AttachPlan, LiveRecording, Target, Until, moment_folder};
use crate::errors::Failure;
use crate::recording_file;

/// Interval between two looks.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// How long events are kept: the period that screens call "now".
pub(crate) const NOW: Duration = Duration::from_secs(5);
/// Time from one look to the next, as a multiple of the CPU time that the command spent meanwhile:
/// on the recording, its views and the screen. That is 0.8 % of a processor; the rest of one per
/// cent is for the start and for the first looks.
const PATIENCE: u32 = 125;
/// The first looks come each second whatever they cost, because the user waits for values.
const AT_FIRST: u32 = 5;
/// Longest wait for the first values.
const FOR_THE_FIRST: Duration = Duration::from_secs(10);
/// Interval between two looks for the first values.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval between two checks for the end of the process.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// Rounds per second of the agent's helper thread.
const ROUNDS_HZ: u32 = 49;

/// A request for instruments, each given as `NAME[:OPTIONS]`, that costs the program little.
pub(crate) fn cheap_request(instruments: &[&str]) -> Request {
    Request {
        instruments: instruments.iter().filter_map(|text| InstrumentRequest::parse(text).ok()).collect(),
        rate_hz: ROUNDS_HZ,
        ..Request::default()
    }
}

/// The recording with its folder.
pub(crate) struct Source<'a> {
    recording: LiveRecording<'a>,
    /// The folder of the recording: only this user can see it, and it is removed when the value is
    /// dropped.
    _folder: TempDir,
    facts: MachineFacts,
    /// Whether the recording went on at the last check, and its time.
    standing: (Instant, bool),
    /// Time and own CPU time at the last look.
    last: (Instant, Duration),
    next: Instant,
    looks: u32,
}

impl<'a> Source<'a> {
    /// Attaches to a program with these instruments, each given as `NAME[:OPTIONS]`.
    ///
    /// # Errors
    /// When the process can't be attached to.
    pub(crate) fn begin(target: &'a Target, instruments: &[&str]) -> Result<Self, Failure> {
        let folder = moment_folder("live")?;
        let request = Request { last_ms: Some(NOW.as_millis() as u64), is_live: true, ..cheap_request(instruments) };
        let plan = AttachPlan::for_moment(target, request, folder.path().join("live.clrs"), Until::End);
        let recording = LiveRecording::begin(&plan)?;
        let now = Instant::now();
        let (facts, last) = (MachineFacts::default(), (now, own_cpu_time()));
        Ok(Self { recording, _folder: folder, facts, standing: (now, true), last, next: now, looks: 0 })
    }

    /// Whether the recording goes on. The system is asked at intervals, because the answer costs
    /// more the more threads the process has.
    pub(crate) fn goes_on(&mut self) -> bool {
        if self.standing.0.elapsed() >= CHECK_EVERY {
            self.standing = (Instant::now(), self.recording.goes_on());
        }
        self.standing.1 && !self.recording.is_interrupted()
    }

    /// How long to wait until the next look.
    pub(crate) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Reads the recording if a look is due. `None` if no look is due or nothing can be read yet.
    pub(crate) fn look(&mut self) -> Option<Recording> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        let (before, spent) = (self.last.0, own_cpu_time());
        if self.looks > AT_FIRST {
            self.next = before + spent.saturating_sub(self.last.1) * PATIENCE;
            if now < self.next {
                return None;
            }
        }
        let recording = recording_file::open_growing(self.recording.folder(), &Query::default(), &mut self.facts);
        self.looks = self.looks.saturating_add(1);
        self.last = (now, spent);
        self.next = now + INTERVAL;
        recording
    }

    /// Makes the next look due, whatever the last one cost.
    fn hurry(&mut self) {
        (self.last.1, self.next) = (own_cpu_time(), Instant::now());
    }

    /// Calls `take` with the recording at each look, for `time` or until the recording is over.
    /// Returns the recording at the last look.
    pub(crate) fn each_for(&mut self, time: Duration, mut take: impl FnMut(&Recording)) -> Option<Recording> {
        let began = Instant::now();
        loop {
            let is_last = began.elapsed() >= time || !self.goes_on();
            if is_last {
                self.hurry();
            }
            let recording = self.look();
            recording.iter().for_each(&mut take);
            if is_last {
                return recording;
            }
            thread::park_timeout(self.pause().min(LOOK_EVERY));
        }
    }

    /// Waits until `is_enough` returns true or the recording is over. Returns the recording.
    pub(crate) fn first(&mut self, is_enough: impl Fn(&Recording) -> bool) -> Option<Recording> {
        let began = Instant::now();
        loop {
            self.hurry();
            let recording = self.look();
            let is_over = !self.goes_on() || began.elapsed() > FOR_THE_FIRST;
            if is_over || recording.as_ref().is_some_and(&is_enough) {
                return recording;
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }
}

/// CPU time of all threads of this command.
fn own_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use clrscope_contract::instruments::check;

    use super::*;
    use crate::commands::{top, triage};

    #[test]
    fn instruments_are_understood_with_their_options() {
        for text in top::INSTRUMENTS.into_iter().chain(triage::INSTRUMENTS) {
            let request = InstrumentRequest::parse(text).expect("an instrument with options");
            assert!(check(&request).is_ok(), "{text}");
        }
    }
}
