//! Pause, restart and end of the recording while the process keeps running, and boundaries between
//! its parts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use clrscope_recording::model::{BoundaryKind, LossReason, PartBoundary};
use clrscope_recording::writer::{Answer, monotonic_ns};

use super::Gains;
use super::rounds::{Helper, WRITE_OUT_NS};
use crate::developer_log::{self, Level, log};
use crate::hooks;

/// Pause between two checks whether any thread records again after the end of the recording.
const WATCH: Duration = Duration::from_millis(250);
/// Pause between two rounds of stopping.
const STOP_PAUSE: Duration = Duration::from_millis(2);

/// The thread's work between two steps of noting gains.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    /// A round; recording continues.
    GoOn,
    /// Signs of life: recording is paused.
    ShowLife,
    /// Nothing: the program ends, and waits for the end of the thread's round.
    Nothing,
}

impl Helper {
    pub(super) fn is_stop_wanted(&self) -> bool {
        self.link.is_stop_wanted.load(Ordering::Acquire)
    }

    fn is_stopped(&self) -> bool {
        self.link.is_stopped.load(Ordering::Acquire)
    }

    /// Draws a boundary between parts of the recording.
    pub(super) fn boundary(&mut self, kind: BoundaryKind) {
        let name = std::mem::take(&mut self.next_part);
        self.draw_boundary(kind, name);
    }

    /// Like [`boundary`](Self::boundary), with a given name: that of the part that begins, or of
    /// the part that the program's code ends.
    pub(super) fn draw_boundary(&mut self, kind: BoundaryKind, name: String) {
        let mono_ns = monotonic_ns();
        let number = match kind {
            BoundaryKind::Delay => 0,
            BoundaryKind::Start | BoundaryKind::Stop => self.note_gains(Meanwhile::ShowLife),
            _ if self.link.is_ending.load(Ordering::Acquire) => self.note_gains(Meanwhile::Nothing),
            _ if self.is_stopped() || self.link.gone.load(Ordering::Acquire) => self.note_gains(Meanwhile::ShowLife),
            _ => self.note_gains(Meanwhile::GoOn),
        };
        self.writer.part_boundary(&PartBoundary { mono_ns, kind, name, number });
    }

    /// Ends a period of the recording at a boundary with this name.
    pub(super) fn cut(&mut self, name: &str) {
        self.draw_boundary(BoundaryKind::Cut, name.to_owned());
        self.tasks.iter_mut().for_each(|task| task.begin_period());
    }

    /// Ends the last period, if the recording is made in periods. May be called several times: the
    /// last call counts.
    pub(super) fn end_last_period(&mut self) {
        if self.is_in_periods {
            self.draw_boundary(BoundaryKind::Cut, String::new());
        }
    }

    /// Notes the gains of all tasks since the last boundary, in steps.
    fn note_gains(&mut self, meanwhile: Meanwhile) -> u32 {
        let mut number = 0;
        for at in 0..self.tasks.len() {
            loop {
                match self.tasks[at].gains() {
                    Gains::Noted(noted) => {
                        number = number.max(noted);
                        break;
                    }
                    Gains::More => match meanwhile {
                        Meanwhile::GoOn => self.round(),
                        Meanwhile::ShowLife => self.show_life(),
                        Meanwhile::Nothing => {}
                    },
                }
            }
        }
        number
    }

    /// Stops recording until a restart is requested or the recording is over.
    pub(super) fn stop_for_now(&mut self) {
        log(Level::Info, || "recording stops for now".to_owned());
        // First, so that no thread of the program waits for a boundary while tasks wait for that
        // thread.
        self.link.marks.take(false);
        let began = monotonic_ns();
        let is_commanded = self.unanswered.is_some();
        self.round();
        self.slow_round(began);
        while !self.stop_tasks() && !self.is_over(monotonic_ns()) {
            self.show_life();
            std::thread::park_timeout(STOP_PAUSE);
        }
        self.note_marks();
        self.boundary(BoundaryKind::Stop);
        self.link.is_stopped.store(true, Ordering::Release);
        self.answer(Answer::Done);
        self.stay_stopped();
        if !is_commanded && !self.is_stopped() {
            let (now, ms) = (monotonic_ns(), monotonic_ns().saturating_sub(began) as f64 / 1e6);
            self.writer.note(now, &format!("recording was stopped for {ms:.1} ms"));
        }
    }

    /// Waits without recording until a restart is requested or the recording is over.
    pub(super) fn stay_stopped(&mut self) {
        while self.is_stop_wanted() {
            let now = monotonic_ns();
            if self.is_over(now) {
                return;
            }
            self.obey();
            if self.delay_ends.is_some_and(|ends| now >= ends) {
                self.link.is_stop_wanted.store(false, Ordering::Release);
            } else {
                self.stop_tasks();
                self.show_life();
                std::thread::park_timeout(STOP_PAUSE);
            }
        }
        self.begin_again();
    }

    fn begin_again(&mut self) {
        self.delay_ends = None;
        // Before threads count again.
        self.boundary(BoundaryKind::Start);
        let now = monotonic_ns();
        self.begin_duration(now);
        for task in &mut self.tasks {
            task.start_again(now);
        }
        log(Level::Info, || "recording starts again".to_owned());
        hooks::stopped_flag().store(0, Ordering::SeqCst);
        self.link.marks.take(true);
        self.link.is_stopped.store(false, Ordering::Release);
        self.answer(Answer::Done);
    }

    /// The part of a round that is also done while recording is paused.
    fn show_life(&mut self) {
        let now = monotonic_ns();
        self.give_sign(now);
        developer_log::flush();
        if now >= self.next_write_out {
            self.next_write_out = now + WRITE_OUT_NS;
            self.write_out();
        }
        self.link.rounds.fetch_add(1, Ordering::Release);
    }

    /// One round of stopping. Returns whether all tasks have stopped.
    fn stop_tasks(&mut self) -> bool {
        let mut done = true;
        for task in &mut self.tasks {
            done &= task.stop();
        }
        done
    }

    /// Whether no task has anything left to record at the end.
    pub(super) fn finish_tasks(&mut self) -> bool {
        let mut done = true;
        for task in &mut self.tasks {
            done &= task.finish();
        }
        self.answer_for_task();
        done
    }

    /// Whether the program has its own code again: tasks revert their changes one after another.
    fn undo_tasks(&mut self) -> bool {
        self.tasks.iter_mut().all(|task| task.undo())
    }

    /// Ends the recording while the process keeps running. Waits until every thread's hooks are
    /// off, and makes sure that they stay off.
    pub(super) fn stop(&mut self) {
        log(Level::Info, || "recording ends: every thread's hooks are switched off".to_owned());
        self.link.marks.take(false);
        self.note_marks();
        if !self.is_stopped() {
            self.round();
            self.slow_round(monotonic_ns());
        }
        while !self.finish_tasks() {
            self.show_life();
            std::thread::park_timeout(STOP_PAUSE);
        }
        let mut pause = STOP_PAUSE;
        loop {
            let done = self.stop_tasks();
            if done && !self.link.gone.swap(true, Ordering::AcqRel) {
                // Only now: a reader that finds this in the recording may rely on it being
                // complete.
                self.end_last_period();
                self.writer.state().lose(LossReason::Stopped, 1, monotonic_ns());
                self.write_out();
                self.writer.state().stopped();
                log(Level::Info, || "nothing records any more".to_owned());
                developer_log::flush();
            }
            if done && self.undo_tasks() && self.link.detachment.get().is_some_and(|detachment| detachment.request()) {
                return;
            }
            // Repeats for ever: a thread that was preempted in the middle of a hook, for however
            // long, stores its old position when it goes on, and would record again.
            std::thread::park_timeout(pause);
            if done {
                pause = (pause * 2).min(WATCH);
            }
        }
    }
}
