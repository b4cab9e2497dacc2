//! Rounds of the helper thread: the work of each interval, and rarer work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clrscope_recording::model::{BoundaryKind, LossReason};
use clrscope_recording::writer::{Bound, ProcessWriter, first_refusal, monotonic_ns};

use super::{Link, Schedule, Task};
use crate::clock;
use crate::developer_log::{self, Level, log};
use crate::faults::FaultReport;

/// Pause between two heartbeats.
const SLOW_NS: u64 = 20_000_000;
/// Pause between two rounds of writing out data for which the file system could not promise space.
pub(super) const WRITE_OUT_NS: u64 = 200_000_000;

/// The helper thread with its tasks.
pub(super) struct Helper {
    pub(super) writer: &'static ProcessWriter,
    pub(super) tasks: Vec<Box<dyn Task>>,
    pub(super) link: Arc<Link>,
    /// Monotonic time in nanoseconds at which recording begins; `None` if it has begun.
    pub(super) delay_ends: Option<u64>,
    /// Duration of the recording, until it has begun.
    duration: Option<Duration>,
    /// Whether the launcher writes the recording in periods.
    pub(super) is_in_periods: bool,
    /// Monotonic time in nanoseconds at which recording ends; `None` before recording begins, or if
    /// it has no end.
    pub(super) ends: Option<u64>,
    /// Name of the part of the recording that begins when recording starts the next time.
    pub(super) next_part: String,
    /// Number of the command that is being carried out.
    pub(super) unanswered: Option<u32>,
    /// Index of the task that carries out the command.
    pub(super) commanded: Option<usize>,
    next_slow: u64,
    pub(super) next_write_out: u64,
    faults: FaultReport,
    refusal_told: bool,
    bounds_told: Vec<Bound>,
}

impl Helper {
    /// Creates the thread's state with these tasks. Recording begins at once, or at the given time.
    pub(super) fn new(
        writer: &'static ProcessWriter,
        tasks: Vec<Box<dyn Task>>,
        link: Arc<Link>,
        (delay_ends, schedule): (Option<u64>, Schedule),
    ) -> Self {
        Self {
            writer,
            tasks,
            link,
            delay_ends,
            duration: schedule.duration,
            is_in_periods: schedule.is_in_periods,
            ends: None,
            next_part: String::new(),
            unanswered: None,
            commanded: None,
            next_slow: 0,
            next_write_out: 0,
            faults: FaultReport::default(),
            refusal_told: false,
            bounds_told: Vec::new(),
        }
    }

    /// Runs the thread to its end.
    pub(super) fn run(&mut self, interval: Duration) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut pauses = Pauses::new(interval);
            if self.delay_ends.is_some() {
                self.boundary(BoundaryKind::Delay);
                self.stay_stopped();
            } else if self.link.detachment.get().is_none() {
                self.begin_duration(monotonic_ns());
            }
            while !self.is_over(monotonic_ns()) {
                self.obey();
                if self.is_stop_wanted() {
                    self.stop_for_now();
                    continue;
                }
                self.note_marks();
                self.round();
                std::thread::park_timeout(pauses.next());
            }
            self.stop();
        }));
        if outcome.is_err() {
            crate::boundary::count_caught();
            // Recording the faults may itself be faulty.
            crate::boundary::guard(|| self.faults.update(self.writer));
            crate::boundary::guard(developer_log::flush);
        }
        self.link.gone.store(true, Ordering::Release);
        self.link.marks.take(false);
    }

    pub(super) fn is_over(&self, now: u64) -> bool {
        // A recording that may not grow any more would only slow the program down.
        self.writer.state().stop_requested()
            || self.ends.is_some_and(|ends| now >= ends)
            || self.link.detachment.get().is_some_and(|detachment| detachment.is_abandoned(now))
            || self.bounds_told.contains(&Bound::Size)
    }

    pub(super) fn round(&mut self) {
        let now = monotonic_ns();
        self.writer.threads().keep_ahead();
        self.writer.threads().find_outdated(now);
        if self.link.is_attached.load(Ordering::Acquire) {
            self.begin_duration(now);
        }
        for task in &mut self.tasks {
            task.tick(now);
        }
        if self.link.is_ending.load(Ordering::Acquire) {
            self.tasks.iter_mut().for_each(|task| task.end());
            self.end_last_period();
            // The recording lasts up to here. Data recorded since the last sign of life would
            // otherwise lie past its end, and past the end of its last part.
            self.give_sign(monotonic_ns());
        }
        // At once: a program that is refused space may be about to end.
        self.report_refusal(now);
        self.report_bounds(now);
        self.faults.update(self.writer);
        if now >= self.next_slow {
            self.next_slow = now + SLOW_NS;
            self.slow_round(now);
        }
        self.link.rounds.fetch_add(1, Ordering::Release);
    }

    /// Stores a sign of life: the clocks of this moment.
    pub(super) fn give_sign(&self, now: u64) {
        self.writer.state().alive(now, clock::ticks(), clock::process_cpu_ns().unwrap_or(0));
    }

    pub(super) fn slow_round(&mut self, now: u64) {
        for task in &mut self.tasks {
            task.slow_tick(now);
        }
        self.give_sign(now);
        developer_log::flush();
        if now >= self.next_write_out {
            self.next_write_out = now + WRITE_OUT_NS;
            self.write_out();
        }
    }

    /// A loss says that space was refused. The reason is recorded, too, if the log still has room
    /// for it.
    fn report_refusal(&mut self, now: u64) {
        if self.refusal_told {
            return;
        }
        if let Some(error) = first_refusal() {
            self.refusal_told = true;
            self.writer.note(now, &format!("the recording could not grow: {error}"));
            log(Level::Error, || format!("the recording could not grow: {error}"));
        }
    }

    /// Reached limits of the recording's disk space are losses, each recorded once.
    fn report_bounds(&mut self, now: u64) {
        for (bound, reason) in [(Bound::Size, LossReason::SizeLimit), (Bound::Reserve, LossReason::DiskReserve)] {
            if bound.was_reached() && !self.bounds_told.contains(&bound) {
                self.bounds_told.push(bound);
                self.writer.state().lose(reason, 1, now);
            }
        }
    }

    pub(super) fn write_out(&mut self) {
        for task in &mut self.tasks {
            task.write_out();
        }
        // A failed write is tried again at the next round; data that is never written shows as
        // missing.
        let _ = self.writer.log().segment().write_out();
        let _ = self.writer.state().segment().write_out();
        let _ = self.writer.threads().segment().write_out();
    }

    pub(super) fn begin_duration(&mut self, now: u64) {
        if let Some(duration) = self.duration.take() {
            self.ends = Some(now.saturating_add(duration.as_nanos() as u64));
        }
    }
}

/// Random pauses between half an interval and one and a half. Samples at regular intervals would
/// always hit the same place of a program that repeats itself.
struct Pauses {
    interval: Duration,
    state: u64,
}

impl Pauses {
    fn new(interval: Duration) -> Self {
        Self { interval, state: clock::ticks() | 1 }
    }

    /// The next pause (a xorshift generator; Marsaglia 2003).
    fn next(&mut self) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.interval / 2 + self.interval.mul_f64((self.state >> 11) as f64 / (1_u64 << 53) as f64)
    }
}
