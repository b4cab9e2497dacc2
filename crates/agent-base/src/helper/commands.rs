//! Commands from outside while the program runs. The thread carries them out one after another, and
//! answers each.

use std::sync::atomic::Ordering;

use clrscope_recording::model::BoundaryKind;
use clrscope_recording::writer::{Answer, Command};

use super::rounds::Helper;
use crate::developer_log::{Level, log};

impl Helper {
    /// Begins to carry out the next command from outside, if there is one.
    pub(super) fn obey(&mut self) {
        self.answer_for_task();
        let Some((number, command)) = self.writer.state().command() else { return };
        if self.unanswered == Some(number) {
            return;
        }
        log(Level::Info, || format!("command {number}: {command:?}"));
        let refusal = match (command, self.is_stop_wanted()) {
            (Some(Command::Stop), false) => {
                self.link.is_stop_wanted.store(true, Ordering::Release);
                None
            }
            (Some(Command::Start(name)), true) => {
                self.next_part = name;
                self.delay_ends = None;
                self.link.is_stop_wanted.store(false, Ordering::Release);
                None
            }
            (Some(Command::Mark(name)), false) => {
                self.next_part = name;
                self.boundary(BoundaryKind::Mark);
                Some(Answer::Done)
            }
            (Some(Command::Cut(number)), _) => {
                self.cut(&number.to_string());
                Some(Answer::Done)
            }
            (Some(Command::Copy), _) => {
                self.tasks.iter_mut().for_each(|task| task.get_ready_for_copy());
                Some(Answer::Done)
            }
            (Some(Command::Start(_)), false) => Some(Answer::Recording),
            (Some(_), true) => Some(Answer::Stopped),
            (Some(command), false) => {
                self.commanded = self.tasks.iter_mut().position(|task| task.begins(&command));
                self.commanded.is_none().then_some(Answer::NotRecorded)
            }
            (None, _) => Some(Answer::Unknown),
        };
        self.unanswered = Some(number);
        refusal.into_iter().for_each(|answer| self.answer(answer));
    }

    /// Answers the command that a task carries out, once the task has finished it.
    pub(super) fn answer_for_task(&mut self) {
        if let Some(answer) = self.commanded.and_then(|at| self.tasks[at].answer()) {
            self.commanded = None;
            self.answer(answer);
        }
    }

    /// Answers the command that was being carried out, if there was one.
    pub(super) fn answer(&mut self, answer: Answer) {
        if let Some(number) = self.unanswered.take() {
            self.writer.state().answer(number, answer);
        }
    }
}
