//! Paths that end in types: below each allocating method stand the types of the objects that it
//! allocated itself, as functions of the kind [`Type`](FunctionKind::Type).
//!
//! The stack of an event gets one more frame, its type. So everything that is made of stacks has
//! these leaves: trees, pictures and exports. Totals of methods stay what they are, and the own
//! amount of a method lies in its leaves.

use std::sync::Arc;

use clrscope_recording::model::{AllocationKind, EventArena, Process, StackFrame, Stacks};
use rustc_hash::FxHashMap;

use super::metric::{BYTES, OBJECTS, bytes, objects};
use super::records::each_record;
use crate::metric::{Metric, Source, StackEvents};

/// [`BYTES`] with paths that end in types.
static BYTES_BY_TYPE: Metric = Metric {
    type_leaves: true,
    source: Source::Stacks { read: bytes_by_type, keys: ["self_bytes", "total_bytes"] },
    ..BYTES
};

/// [`OBJECTS`] with paths that end in types.
static OBJECTS_BY_TYPE: Metric = Metric {
    type_leaves: true,
    source: Source::Stacks { read: objects_by_type, keys: ["self_objects", "total_objects"] },
    ..OBJECTS
};

/// The metric with paths that end in types; the metric itself where its values are not of objects.
pub(crate) fn with_type_leaves(metric: &'static Metric) -> &'static Metric {
    let mut leaves = [&BYTES_BY_TYPE, &OBJECTS_BY_TYPE].into_iter();
    leaves.find(|of| metric.has_types() && of.name == metric.name).unwrap_or(metric)
}

fn bytes_by_type(process: &Process, arena: &EventArena) -> StackEvents {
    TypeStacks::for_process(process).ending(bytes(process, arena))
}

fn objects_by_type(process: &Process, arena: &EventArena) -> StackEvents {
    TypeStacks::for_process(process).ending(objects(process, arena))
}

/// The stacks of a process, and behind them the stacks of allocations with their types.
struct TypeStacks {
    table: Arc<Stacks>,
    /// Number of the stack that ends in a type, by the number of the allocating stack and the type.
    numbers: FxHashMap<(u32, u32), u32>,
}

impl TypeStacks {
    fn for_process(process: &Process) -> Arc<Self> {
        process.derived.get("stacks that end in types", || Self::new(process))
    }

    fn new(process: &Process) -> Self {
        let mut table = (*process.stacks).clone();
        let mut all: Vec<(u32, u32)> = Vec::new();
        each_record(process, AllocationKind::Allocated, |_, record| all.push((record.stack, record.object_type)));
        all.sort_unstable();
        all.dedup();
        // A stack that is not there is a frame of its own, called by nothing.
        let unknown = table.add_called([(0, StackFrame::Unknown)].into_iter());
        let known = |stack: u32| process.stacks.node_position(stack).map(|_| stack);
        let frame = |of: u32| StackFrame::method(process.index_of_type(of), None);
        let caller = |stack: u32| known(stack).or(unknown).unwrap_or(0);
        let first = table.add_called(all.iter().map(|&(stack, of)| (caller(stack), frame(of))));
        let numbers = first.map(|first| all.into_iter().zip(first..).collect());
        Self { table: Arc::new(table), numbers: numbers.unwrap_or_default() }
    }

    /// The events with the stacks that end in their types.
    fn ending(&self, found: StackEvents) -> StackEvents {
        let mut events = found.events;
        for event in &mut events {
            event.stack = self.numbers.get(&(event.stack, event.object_type)).copied().unwrap_or(event.stack);
        }
        StackEvents { table: Arc::clone(&self.table), events }
    }
}
