//! One program of the host: whether it is recorded, and what was recorded of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clr_diagnostics::Process;

use super::WatchPlan;
use super::cost::{Cost, Verdict};
use super::judge::{Identity, Judgement, debugger, judge};
use super::recorder::Recorder;
use crate::errors::{one_line, reason, shown};
use crate::periods::{Event, Watched};
use crate::terminal::say;

/// Pause before a program that was left alone is looked at again.
const PAUSE: Duration = Duration::from_secs(2);
/// First pause after a recording has failed; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause then.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A program that costs too much is not tried again.
const FOR_GOOD: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// Bounds of the time over which the cost is measured, which else is a period.
const WINDOW: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// A program that the user's patterns chose.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) process: Process,
    /// Name of the program and of its folder.
    pub(super) name: String,
    /// Samples per second in recordings of this program.
    pub(super) rate: u32,
    pub(super) counts: Counts,
    pub(super) cost: Cost,
    state: State,
    /// Why it is left alone, where it is.
    left: Option<String>,
    /// Why it could not be attached to, as the recording process told before its end.
    refused: Option<String>,
    pause: Duration,
    /// What follows after the recording process has ended, where the watch ended it.
    next: Option<Next>,
}

#[derive(Debug)]
enum State {
    /// Looked at again at this moment.
    Waits(Instant),
    Recorded(Recorder),
}

#[derive(Debug)]
enum Next {
    /// It is recorded again at the new rate.
    Again,
    /// It is left alone for so long, for this reason.
    Leave(String, Duration),
}

/// Counts of what was recorded of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// How often the agent was attached.
    pub(super) attached: u64,
    /// Number of recordings.
    pub(super) recordings: u64,
    /// Bytes of these recordings.
    pub(super) bytes: u64,
}

/// Conditions that apply to all programs in one look.
pub(super) struct Rules<'a> {
    pub(super) plan: &'a WatchPlan,
    pub(super) watched: Watched,
    /// Whether the budget allows another recording process.
    pub(super) has_room: bool,
    /// Whether the watch is ending.
    pub(super) is_end: bool,
}

/// State of a program after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The program still runs.
    Stays,
    /// The program has ended. Holds whether it was ever recorded.
    Ended(bool),
}

impl Program {
    /// Creates a program, which the next look checks. `rate`: samples per second in its recordings.
    pub(super) fn new(process: Process, identity: &Identity, rate: u32) -> Self {
        Self {
            process,
            name: identity.name(),
            rate,
            counts: Counts::default(),
            cost: Cost::default(),
            state: State::Waits(Instant::now()),
            left: None,
            refused: None,
            pause: FIRST_PAUSE,
            next: None,
        }
    }

    /// Reason why the program is left alone; `None` if it is recorded or about to be.
    pub(super) fn why_left(&self) -> Option<&str> {
        self.left.as_deref().filter(|_| matches!(self.state, State::Waits(_)))
    }

    /// The process that records the program; `None` if the program is not recorded.
    pub(super) fn recorder(&mut self) -> Option<&mut Recorder> {
        match &mut self.state {
            State::Recorded(recorder) => Some(recorder),
            State::Waits(_) => None,
        }
    }

    /// Id of the process that records the program; `None` if the program is not recorded.
    pub(super) fn recorder_pid(&self) -> Option<u32> {
        match &self.state {
            State::Recorded(recorder) => Some(recorder.pid()),
            State::Waits(_) => None,
        }
    }

    /// Folder of the program, below the folder of all programs.
    pub(super) fn folder(&self, all: &Path) -> PathBuf {
        all.join(&self.name)
    }

    /// The program's name and process, for messages.
    pub(super) fn in_words(&self) -> String {
        format!("{} ({})", self.name, self.process.pid())
    }

    /// Looks at the program, and starts or ends its recording if necessary.
    pub(super) fn look(&mut self, rules: &Rules<'_>) -> Step {
        match &self.state {
            State::Waits(_) if !self.process.is_alive() => Step::Ended(self.counts.attached > 0),
            State::Waits(again) if *again > Instant::now() => Step::Stays,
            State::Waits(_) => {
                self.judge(rules);
                Step::Stays
            }
            State::Recorded(_) => self.follow(rules),
        }
    }

    fn judge(&mut self, rules: &Rules<'_>) {
        match judge(&self.process) {
            Judgement::Starts => {}
            // The system shows little of a process that ends.
            Judgement::Left(_) if !self.process.is_alive() => {}
            Judgement::Left(why) => self.leave(why, PAUSE),
            Judgement::Free if rules.has_room => self.start(rules),
            Judgement::Free => self.leave("the memory of --budget is used up by other recordings".to_owned(), PAUSE),
        }
    }

    fn start(&mut self, rules: &Rules<'_>) {
        let folder = self.folder(&rules.plan.folder);
        match Recorder::start(rules.plan, rules.watched, self.process.pid(), &folder, self.rate) {
            Ok(recorder) => self.state = State::Recorded(recorder),
            Err(error) => self.fail(format!("no process could be started to record it: {}", reason(&error))),
        }
    }

    /// Leaves it alone for a while, longer each time: recording failed.
    fn fail(&mut self, why: String) {
        self.leave(why, self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Leaves it alone for a time. A new reason is said.
    fn leave(&mut self, why: String, pause: Duration) {
        if self.left.as_ref() != Some(&why) {
            say(&one_line(format!("clrscope: {} is left alone: {why}", self.in_words())));
            self.left = Some(why);
        }
        self.state = State::Waits(Instant::now() + pause);
    }

    /// Listens to the process that records it.
    fn follow(&mut self, rules: &Rules<'_>) -> Step {
        let State::Recorded(recorder) = &mut self.state else { return Step::Stays };
        let ended = recorder.ended();
        // What it told before its end is there now.
        let events = recorder.events();
        events.into_iter().for_each(|event| self.hear(event, rules));
        let Some(status) = ended else {
            self.keep_budget(rules);
            return Step::Stays;
        };
        self.cost.writer_ended();
        if !self.process.is_alive() {
            return Step::Ended(self.counts.attached > 0);
        }
        if rules.is_end {
            self.state = State::Waits(Instant::now());
            return Step::Stays;
        }
        match (self.refused.take(), self.next.take()) {
            (_, Some(Next::Again)) => self.state = State::Waits(Instant::now()),
            (_, Some(Next::Leave(why, pause))) => self.leave(why, pause),
            (Some(why), None) => self.fail(why),
            (None, None) if status.success() => self.fail("its recording ended".to_owned()),
            (None, None) => self.fail(format!("the process that recorded it ended: {status}")),
        }
        Step::Stays
    }

    /// Notes what the recording process tells.
    fn hear(&mut self, event: Event, rules: &Rules<'_>) {
        match event {
            Event::Attached => {
                self.counts.attached += 1;
                (self.left, self.pause) = (None, FIRST_PAUSE);
                if !rules.plan.quiet {
                    let folder = self.folder(&rules.plan.folder);
                    say(&format!("clrscope: records {} into {}", self.in_words(), shown(&folder)));
                }
            }
            Event::Recorded(bytes) => {
                self.counts.recordings += 1;
                self.counts.bytes += bytes;
            }
            Event::Refused(why) => self.refused = Some(why),
            Event::Gone => {}
        }
    }

    /// Ends the recording, or lowers its rate, where it costs more than the budget allows, and ends
    /// it where a debugger came.
    fn keep_budget(&mut self, rules: &Rules<'_>) {
        let Some(recorder) = self.recorder_pid() else { return };
        let window = rules.plan.every.clamp(WINDOW.0, WINDOW.1);
        if self.counts.attached == 0 || self.next.is_some() {
            return;
        }
        let Some(share) = self.cost.over(window, &self.process, recorder) else { return };
        let percent = share * 100.0;
        let rate = Some(self.rate).filter(|_| rules.plan.has_rate);
        let next = match (debugger(&self.process), rules.plan.budget.judge(share, rate)) {
            (Some(why), _) => Next::Leave(why, PAUSE),
            (None, Verdict::Kept) => return,
            (None, Verdict::Lower(rate)) => {
                self.rate = rate;
                let most = rules.plan.budget.share * 100.0;
                let what = format!("recording {} took {percent:.1} % of a processor", self.in_words());
                say(&format!("clrscope: {what}, more than {most} %: from now on {rate} samples per second"));
                Next::Again
            }
            (None, Verdict::TooMuch) => {
                let why = format!("recording it takes {percent:.1} % of a processor, more than the budget");
                Next::Leave(why, FOR_GOOD)
            }
        };
        self.next = Some(next);
        if let Some(recorder) = self.recorder() {
            recorder.end();
        }
    }
}
