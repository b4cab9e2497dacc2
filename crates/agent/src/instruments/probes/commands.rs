//! Commands from outside: more methods get probes, or lose them, while the recording goes on.

use std::sync::Arc;

use clrscope_contract::request::Pattern;
use clrscope_recording::writer::{Answer, Command};

use super::prober::Prober;
use crate::services::errand::Errand;
use crate::services::helper::Task;

/// The instrument's work on the helper thread for commands.
pub(super) struct Commands {
    prober: Arc<Prober>,
    last: Option<Errand>,
}

impl Commands {
    pub(super) fn new(prober: &Arc<Prober>) -> Self {
        Self { prober: Arc::clone(prober), last: None }
    }

    /// Begins on a thread that the runtime knows.
    fn begin(&self, pattern: &str, change: fn(&Prober, &Pattern) -> Answer) -> Errand {
        let (prober, pattern) = (Arc::clone(&self.prober), Pattern::parse(pattern));
        Errand::begin(&self.prober.info, "clrscope-probe", move || {
            // Whoever gives commands has looked at the pattern before.
            pattern.map_or(Answer::Failed, |pattern| change(&prober, &pattern))
        })
    }
}

impl Task for Commands {
    fn begins(&mut self, command: &Command) -> bool {
        self.last = Some(match command {
            Command::Probe(pattern) => self.begin(pattern, Prober::add),
            Command::Unprobe(pattern) => self.begin(pattern, Prober::remove),
            _ => return false,
        });
        true
    }

    fn answer(&self) -> Option<Answer> {
        self.last.as_ref().map_or(Some(Answer::Failed), Errand::answer)
    }

    fn finish(&mut self) -> bool {
        self.answer().is_some()
    }
}
