//! Reports values that were not read: the methods that have them, and the reason.

use std::collections::HashSet;

use clrscope_agent_base::helper::Task;
use clrscope_recording::model::{LossReason, RemarkKind};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::evidence::unread;
use super::memory::can_copy;
use super::plans::refuted;

/// Methods that are named at most.
const NAMED: usize = 20;

/// Counts the calls whose values were not read, and names their methods.
pub struct ReportUnread {
    writer: &'static ProcessWriter,
    named: HashSet<&'static str>,
}

impl ReportUnread {
    /// Creates the report. Writes a remark at once if the system refuses to copy memory.
    pub fn new(writer: &'static ProcessWriter) -> Self {
        // The answer is stored here, since no hook may ask the system for it.
        if !can_copy() {
            writer.remark(
                monotonic_ns(),
                RemarkKind::Note,
                "the system refuses process_vm_readv (a filter of system calls, as containers have them): objects and \
                 spans among values are shown as ?, but calls are counted",
            );
        }
        Self { writer, named: HashSet::new() }
    }

    fn report(&mut self, now_ns: u64) {
        let calls = unread();
        if calls == 0 {
            return;
        }
        self.writer.state().lose(LossReason::ValuesUnread, calls, now_ns);
        for pattern in refuted() {
            if self.named.len() < NAMED && self.named.insert(pattern) {
                self.writer.remark(now_ns, RemarkKind::Note, &remark(pattern));
            }
        }
    }
}

fn remark(pattern: &str) -> String {
    format!("the values of {pattern} are not where they were looked for, and are left out")
}

impl Task for ReportUnread {
    fn tick(&mut self, now_ns: u64) {
        self.report(now_ns);
    }
}
