//! Upgrades: what earlier versions recorded otherwise, in the form of today.

use std::collections::HashMap;
use std::sync::Arc;

use crate::codec::record;
use crate::events::{Kind, Record, Records, Tag, Value};
use crate::model::{CallsInfo, Clock, EventArena, Process, StackFrame, Stacks, StacksBuilder};

record! {
    /// The settings of `calls` in a log, before they had the form that they have in a packed file.
    pub(crate) struct OldSettings {
        pub(crate) clock: Clock,
        pub(crate) noinline: bool,
        pub(crate) native: bool,
        pub(crate) helpers: bool,
        pub(crate) trivial: bool,
        pub(crate) interval_ns: u64,
    }
}

impl From<OldSettings> for CallsInfo {
    fn from(old: OldSettings) -> Self {
        let OldSettings { clock, noinline, native, helpers, trivial, interval_ns } = old;
        Self { clock, noinline, native, helpers, trivial, interval_ns, ..Self::default() }
    }
}

/// The stacks that records of `exceptions` refer to.
///
/// Stacks are in the [stack table](Process::stacks) of the process. Recordings made before there was one have each stack
/// in a record [`Kind::EXCEPTION_STACK`] instead; those become a table here.
#[derive(Debug, Clone)]
pub struct ExceptionStacks {
    stacks: Arc<Stacks>,
    /// Numbers of stacks in the table by those in the records, where records hold the stacks.
    numbers: HashMap<u64, u32>,
}

impl ExceptionStacks {
    /// Stacks of the records in `arena`, which is one of `process`.
    #[must_use]
    pub fn read(process: &Process, arena: &EventArena) -> Self {
        let mut found = Self { stacks: Arc::clone(&process.stacks), numbers: HashMap::new() };
        if !process.stacks.is_empty() {
            return found;
        }
        let mut builder = StacksBuilder::default();
        for chunk in &arena.chunks {
            let bytes = chunk.bytes.load();
            for record in Records::new(&bytes).filter(|record| record.kind == Kind::EXCEPTION_STACK) {
                if let Some(number) = record.number(Tag::STACK) {
                    let stack = builder.stack(&frames(&record), record.number(Tag::FRAMES_CUT).is_some());
                    found.numbers.insert(number, stack);
                }
            }
        }
        found.stacks = Arc::new(builder.finish());
        found
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Stacks> {
        &self.stacks
    }

    /// The number in the table of the stack that a record names, 0 for none.
    #[must_use]
    pub fn of(&self, record: &Record<'_>) -> u32 {
        let in_table = record.number(Tag::STACK_NODE).and_then(|number| u32::try_from(number).ok());
        let in_records = || self.numbers.get(&record.number(Tag::STACK)?).copied();
        in_table.or_else(in_records).unwrap_or(0)
    }
}

fn frames(record: &Record<'_>) -> Vec<StackFrame> {
    let mut frames = Vec::new();
    for field in record.fields() {
        match (field.tag, field.value) {
            (Tag::FRAME, Value::Entity(entity)) => {
                frames.push(StackFrame::method(entity.index, None));
            }
            (Tag::IL_OFFSET, Value::Number(offset)) => {
                if let Some(StackFrame::Method { il_offset, .. }) = frames.last_mut() {
                    *il_offset = u32::try_from(offset).ok();
                }
            }
            _ => {}
        }
    }
    frames
}
