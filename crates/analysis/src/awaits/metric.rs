//! The metric `awaited`: time that async methods waited, along the chains of their awaiters.
//!
//! A method may await another method that itself waits. The time then counts at the inner await
//! only. So the sum below a method is the time that it waited, counted once, except for methods
//! that wait in parallel.

use clrscope_recording::events::{Kind, Record, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, Process};

use super::outer::OuterAwaits;
use crate::metric::{Metric, Source, StackEvent, StackEvents, Unit};

/// Time of awaits. Several methods may wait at once, so sums may exceed the elapsed time.
pub(crate) static AWAITED: Metric = Metric {
    name: "awaited",
    title: "awaited time",
    unit: Unit::Nanoseconds,
    instrument: instrument::AWAITS,
    exclusive: false,
    second: None,
    source: Source::Stacks { read, keys: ["self_awaited_ns", "total_awaited_ns"] },
    type_leaves: false,
    others: &[],
};

fn read(process: &Process, arena: &EventArena) -> StackEvents {
    let mut events = Vec::new();
    for chunk in &arena.chunks {
        let bytes = chunk.bytes.load();
        let is_shown = |record: &Record<'_>| process.shows_request(record.number(Tag::REQUEST));
        let ended = Records::new(&bytes).filter(|record| record.kind == Kind::AWAIT_ENDED && is_shown(record));
        events.extend(ended.map(|record| {
            let number = |tag| record.number(tag).unwrap_or(0);
            let (time_ns, ns) = (process.started_ns.saturating_add(record.time_ns), number(Tag::DURATION));
            StackEvent {
                thread: chunk.thread,
                time_ns: time_ns.saturating_sub(ns),
                stack: u32::try_from(number(Tag::STACK_NODE)).unwrap_or(0),
                lasted_ns: ns,
                amount: ns,
                request: number(Tag::REQUEST),
                ..StackEvent::default()
            }
        }));
    }
    let outer = OuterAwaits::new(process, events.iter().map(|event| event.stack));
    events.retain(|event| !outer.has(event.stack));
    StackEvents { table: process.stacks.clone(), events }
}
