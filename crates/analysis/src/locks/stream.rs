//! The records of one thread, in their order.

use clrscope_recording::events::{Kind, OwnedRecord, Tag};
use clrscope_recording::model::{EventChunk, Process};

use super::blocking::BlockingStart;
use super::timeline::Timeline;
use super::wait::WaitStart;
use crate::events::{Cursor, Stream};

/// The records of one thread, as far as they have been read.
pub(super) struct WaitStream<'a> {
    process: &'a Process,
    /// Index of the thread in the process.
    thread: u32,
    cursor: Cursor<'a>,
}

impl<'a> WaitStream<'a> {
    pub(super) fn new(process: &'a Process, thread: u32, chunks: Vec<&'a EventChunk>) -> Self {
        Self { process, thread, cursor: Cursor::new(chunks) }
    }

    /// Applies the next record.
    pub(super) fn step(&mut self, timeline: &mut Timeline<'_, 'a>) {
        let Some(record) = self.cursor.record().map(|record| OwnedRecord::from(&record)) else { return };
        let record = record.record();
        let time_ns = self.process.started_ns.saturating_add(record.time_ns);
        let number = |tag| record.number(tag);
        match record.kind {
            Kind::CONTENTION_STARTED => timeline.started(WaitStart {
                thread: self.thread,
                time_ns,
                lock: number(Tag::LOCK).unwrap_or(0),
                holder: number(Tag::HOLDER).unwrap_or(0),
                class: record.entity(Tag::CLASS).map(|class| class.index),
                stack: number(Tag::STACK_NODE).and_then(|stack| u32::try_from(stack).ok()),
            }),
            Kind::BLOCKING_STARTED => timeline.blocks(BlockingStart {
                thread: self.thread,
                time_ns,
                stack: number(Tag::STACK_NODE).and_then(|stack| u32::try_from(stack).ok()),
            }),
            Kind::BLOCKING_ENDED => timeline.unblocks(self.thread, time_ns),
            Kind::CONTENTION_ENDED => timeline.ended(self.thread, time_ns),
            _ => {}
        }
        self.cursor.advance();
    }
}

impl Stream for WaitStream<'_> {
    fn time_ns(&mut self) -> Option<u64> {
        let time_ns = self.cursor.record()?.time_ns;
        Some(self.process.started_ns.saturating_add(time_ns))
    }

    fn unload(&mut self) {
        self.cursor.unload();
    }
}
