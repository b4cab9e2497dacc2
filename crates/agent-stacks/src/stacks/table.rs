//! The stack table of the recording, shared by all instruments that record stacks.

use std::sync::{Arc, OnceLock};

use clrscope_agent_base::helper::{HelperHandle, Task};
use clrscope_agent_base::hooks;
use clrscope_agent_base::memory::Patience;
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_recording::model::{AwaiterChain, LossReason, StackFrame, Tier};
use clrscope_recording::writer::{ProcessWriter, StackTable, monotonic_ns};

use super::code_locations::CodeLocation;
use crate::awaiters::Chain;

/// The table; empty until an instrument asks for it.
#[derive(Default, Clone)]
pub struct SharedStackTable(Arc<OnceLock<&'static RecordedStacks>>);

impl SharedStackTable {
    /// The table, created when the first instrument asks.
    ///
    /// # Errors
    /// A sentence for the user, if the file could not be created.
    pub fn open(
        &self,
        writer: &'static ProcessWriter,
        helper: &HelperHandle,
    ) -> Result<&'static RecordedStacks, String> {
        if let Some(table) = self.0.get() {
            return Ok(table);
        }
        let table = writer.create_stacks().map_err(|error| format!("no memory for stacks: {error}"))?;
        let made = keep(RecordedStacks { writer, table, patience: Patience::new(helper.clone()) });
        Ok(self.0.get_or_init(|| made))
    }
}

/// The recorded stacks, by their numbers.
pub struct RecordedStacks {
    writer: &'static ProcessWriter,
    table: StackTable,
    patience: Patience,
}

impl RecordedStacks {
    /// The number of the stack with these frames, innermost first. Stores a new stack. 0 for a
    /// stack without frames, after the end of recording, or if there is no room (counted as a
    /// loss). Allocates, and waits for the helper thread if it lags: for callbacks, not for hooks.
    pub fn number(&self, frames: &[StackFrame], cut: bool) -> u32 {
        if hooks::is_stopped() {
            return 0;
        }
        self.number_of(frames, cut)
    }

    /// Like [`number`](Self::number), but also works once recording has ended, for samples that
    /// were taken before.
    pub fn number_of(&self, frames: &[StackFrame], cut: bool) -> u32 {
        self.patiently(|| self.table.intern(frames, cut))
    }

    /// Like [`number`](Self::number), for a stack with a chain of awaiters.
    pub(crate) fn number_awaited(&self, frames: &[StackFrame], cut: bool, chain: &Chain) -> u32 {
        if hooks::is_stopped() {
            return 0;
        }
        self.number_of_awaited(frames, cut, chain)
    }

    /// Like [`number_of`](Self::number_of), for a stack with a chain of awaiters.
    pub fn number_of_awaited(&self, frames: &[StackFrame], cut: bool, chain: &Chain) -> u32 {
        let awaiters = AwaiterChain { frames: &chain.frames(), end: chain.end };
        self.patiently(|| self.table.intern_awaited(frames, cut, awaiters))
    }

    /// The number of the stack with these frames above those of the stack `callers`; see
    /// [`StackTable::intern_above`]. Where there is no room, returns 0 and leaves `numbers` empty.
    pub(crate) fn number_above(&self, callers: u32, frames: &[StackFrame], numbers: &mut Vec<u32>) -> u32 {
        let number = self.patiently(|| {
            numbers.clear();
            self.table.intern_above(callers, frames, numbers)
        });
        if number == 0 {
            numbers.clear();
        }
        number
    }

    /// A number of the table. Tries again while the helper thread is behind.
    fn patiently(&self, mut intern: impl FnMut() -> Option<u32>) -> u32 {
        let number = intern().or_else(|| self.patience.wait(&self.table, 0, intern));
        number.unwrap_or_else(|| {
            self.writer.state().lose(LossReason::StackTableFull, 1, monotonic_ns());
            0
        })
    }

    /// Task of the helper thread for the table.
    pub fn task(&'static self) -> Box<dyn Task> {
        Box::new(KeepAhead(self))
    }

    /// In a forked child: releases the file. Async-signal-safe.
    pub fn detach_in_child(&self) {
        self.table.segment().detach_in_child();
    }
}

/// The frame without the methods inlined into it.
impl From<CodeLocation> for StackFrame {
    fn from(location: CodeLocation) -> Self {
        let CodeLocation { function, il_offset, il_span, .. } = location;
        Self::Method { function, il_offset, il_span, tier: Tier::Unknown }
    }
}

struct KeepAhead(&'static RecordedStacks);

impl Task for KeepAhead {
    fn tick(&mut self, _now_ns: u64) {
        // A refusal shows when a stack finds no room, and is counted there.
        let _ = self.0.table.keep_ahead();
    }

    fn write_out(&mut self) {
        // A failed write is tried again at the next round.
        let _ = self.0.table.segment().write_out();
    }
}
