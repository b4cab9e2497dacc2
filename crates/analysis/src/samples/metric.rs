//! The metrics of samples: the number of samples and the time that they represent, by stack.

use std::sync::Arc;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, Process, Sample, Thread, ThreadState};

use crate::metric::{Metric, Source, StackEvent, StackEvents, Unit};

/// CPU time, estimated from samples.
pub static SAMPLED_CPU: Metric = Metric {
    name: "cpu",
    title: "CPU time",
    unit: Unit::Nanoseconds,
    instrument: instrument::CPU,
    exclusive: false,
    second: None,
    source: Source::Stacks { read: times, keys: ["self_cpu_ns", "total_cpu_ns"] },
    type_leaves: false,
    others: &[],
};

/// Wall time, estimated from samples.
pub static SAMPLED_WALL: Metric = Metric {
    name: "wall",
    title: "wall time",
    unit: Unit::Nanoseconds,
    instrument: instrument::WALL,
    exclusive: false,
    second: None,
    source: Source::Stacks { read: times, keys: ["self_wall_ns", "total_wall_ns"] },
    type_leaves: false,
    others: &[],
};

/// Number of samples of `cpu`, or of `wall` if `cpu` was not recorded.
pub static SAMPLES: Metric = Metric {
    name: "samples",
    title: "samples",
    unit: Unit::Count,
    instrument: instrument::CPU,
    exclusive: false,
    second: None,
    source: Source::Stacks { read: counts, keys: KEYS },
    type_leaves: false,
    others: &[instrument::WALL],
};

/// Number of samples of `wall`.
pub(crate) static WALL_SAMPLES: Metric = Metric {
    name: "samples",
    title: "samples",
    unit: Unit::Count,
    instrument: instrument::WALL,
    exclusive: false,
    second: None,
    source: Source::Stacks { read: counts, keys: KEYS },
    type_leaves: false,
    others: &[],
};

/// Keys that rows of samples have with any metric.
const KEYS: [&str; 2] = ["self_samples", "total_samples"];

fn times(process: &Process, arena: &EventArena) -> StackEvents {
    read(process, arena, |sample| sample.weight_ns)
}

fn counts(process: &Process, arena: &EventArena) -> StackEvents {
    read(process, arena, |sample| u64::from(sample.count))
}

fn read(process: &Process, arena: &EventArena, amount: fn(&Sample) -> u64) -> StackEvents {
    let mut events = Vec::new();
    for chunk in &arena.chunks {
        let bytes = chunk.bytes.load();
        events.extend(Sample::all(&bytes).map(|sample| event_of(process, &sample, amount(&sample))));
    }
    StackEvents { table: Arc::clone(&process.stacks), events }
}

/// Returns the event of a sample that has an amount.
pub(crate) fn event_of(process: &Process, sample: &Sample, amount: u64) -> StackEvent {
    StackEvent {
        thread: thread_index(sample),
        time_ns: process.started_ns.saturating_add(sample.time_ns),
        stack: sample.stack,
        lasted_ns: lasted_ns(sample),
        amount,
        samples: u64::from(sample.count),
        flags: sample.flags(),
        idle: sample.state == ThreadState::Idle,
        object_type: 0,
        request: 0,
    }
}

/// Index of the thread in the process's table; for an unknown thread, an index that no thread has.
pub(super) fn thread_index(sample: &Sample) -> u32 {
    sample.thread.checked_sub(1).unwrap_or(u32::MAX)
}

/// Returns the thread with this number, as samples give it; `None` if the thread is not known.
pub(crate) fn thread_numbered(process: &Process, number: u32) -> Option<&Thread> {
    process.threads.get(number.checked_sub(1)? as usize)
}

/// Duration of a record. Several samples of an unchanged thread span some time; a single sample is
/// an instant.
pub(crate) fn lasted_ns(sample: &Sample) -> u64 {
    if sample.count > 1 { sample.weight_ns } else { 0 }
}
