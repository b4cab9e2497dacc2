//! Commands from outside, to add probes to methods and lines or to remove them while the recording
//! goes on.

use std::sync::Arc;

use clrscope_contract::request::Pattern;
use clrscope_recording::writer::{Answer, Command};
use clrscope_agent_base::runtime_thread::RuntimeThread;
use clrscope_agent_base::helper::Task;

use super::prober::Prober;

/// The task that carries out commands, on the helper thread.
pub(super) struct Commands {
    prober: Arc<Prober>,
    last: Option<RuntimeThread>,
}

impl Commands {
    pub(super) fn new(prober: &Arc<Prober>) -> Self {
        Self { prober: Arc::clone(prober), last: None }
    }

    /// Begins the change on a thread that the runtime knows. The sender has already checked the
    /// names in the command.
    fn begin<T: Send + 'static>(&self, named: Option<T>, change: fn(&Prober, &T) -> Answer) -> RuntimeThread {
        let prober = Arc::clone(&self.prober);
        RuntimeThread::begin(&self.prober.info, "clrscope-probe", move || {
            named.map_or(Answer::Failed, |named| change(&prober, &named))
        })
    }
}

impl Task for Commands {
    fn begins(&mut self, command: &Command) -> bool {
        self.last = Some(match command {
            Command::Probe(pattern) => self.begin(Pattern::parse(pattern).ok(), Prober::add),
            Command::Unprobe(pattern) => self.begin(Pattern::parse(pattern).ok(), Prober::remove),
            Command::ProbeLine(line) => self.begin(line.parse().ok(), Prober::add_line),
            Command::UnprobeLine(line) => self.begin(line.parse().ok(), Prober::remove_line),
            _ => return false,
        });
        true
    }

    fn answer(&self) -> Option<Answer> {
        self.last.as_ref().map_or(Some(Answer::Failed), RuntimeThread::answer)
    }

    fn finish(&mut self) -> bool {
        self.answer().is_some()
    }
}
