//! The metrics of allocations: bytes and objects, by the stacks that allocated them.

use std::sync::Arc;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Allocation, AllocationKind, EventArena, Process};

use super::records::{each_record, time_ns};
use crate::metric::{Metric, Source, StackEvent, StackEvents, Unit};

/// Bytes that were allocated.
pub static BYTES: Metric = Metric {
    name: "bytes",
    title: "bytes",
    unit: Unit::Bytes,
    instrument: instrument::ALLOC,
    exclusive: false,
    second: None,
    source: Source::Stacks { read: bytes, keys: ["self_bytes", "total_bytes"] },
    type_leaves: false,
    others: &[],
};

/// Objects that were allocated.
pub static OBJECTS: Metric = Metric {
    name: "objects",
    title: "objects",
    unit: Unit::Count,
    instrument: instrument::ALLOC,
    exclusive: false,
    second: None,
    source: Source::Stacks { read: objects, keys: ["self_objects", "total_objects"] },
    type_leaves: false,
    others: &[],
};

pub(super) fn bytes(process: &Process, _arena: &EventArena) -> StackEvents {
    read(process, |record| record.weight)
}

pub(super) fn objects(process: &Process, _arena: &EventArena) -> StackEvents {
    read(process, |record| record.estimated_objects().round() as u64)
}

fn read(process: &Process, amount: fn(&Allocation) -> u64) -> StackEvents {
    let mut events = Vec::new();
    each_record(process, AllocationKind::Allocated, |thread, record| {
        if !process.shows_work(process.threads.get(thread as usize), time_ns(process, record)) {
            return;
        }
        events.push(StackEvent {
            thread,
            time_ns: time_ns(process, record),
            stack: record.stack,
            amount: amount(record),
            samples: record.objects,
            object_type: record.object_type,
            ..StackEvent::default()
        });
    });
    StackEvents { table: Arc::clone(&process.stacks), events }
}
