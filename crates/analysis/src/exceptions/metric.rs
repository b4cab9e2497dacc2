//! The metric `exceptions`: the number of exceptions, by the stack at the throw.
//!
//! A throw counts for the function that threw, as in the view `exceptions`: the runtime's helper
//! code for throwing is left out of the path. An object counts once, at its first throw. Later
//! throws of the object, by `throw;` or by an `await` that passes it on, count as rethrown.

use clrscope_recording::events::{Kind, Record, Records};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, Process, StackFrame, Stacks};

use super::{is_machinery, is_thrown_again, stack_of};
use crate::metric::{Metric, Source, StackEvent, StackEvents, Unit};

/// Number of exceptions.
pub static EXCEPTIONS: Metric = Metric {
    name: "exceptions",
    title: "exceptions",
    unit: Unit::Count,
    instrument: instrument::EXCEPTIONS,
    exclusive: false,
    second: Some(["self_rethrown", "total_rethrown"]),
    source: Source::Stacks { read, keys: ["self_exceptions", "total_exceptions"] },
    type_leaves: false,
    others: &[],
};

fn read(process: &Process, arena: &EventArena) -> StackEvents {
    let mut events = Vec::new();
    for chunk in &arena.chunks {
        let bytes = chunk.bytes.load();
        let thread = process.threads.get(chunk.thread as usize);
        let is_shown =
            |record: &Record<'_>| process.shows_work(thread, process.started_ns.saturating_add(record.time_ns));
        let thrown = Records::new(&bytes).filter(|record| record.kind == Kind::EXCEPTION_THROWN);
        let thrown = thrown.filter(is_shown);
        events.extend(thrown.map(|record| {
            let is_again = is_thrown_again(&record);
            StackEvent {
                thread: chunk.thread,
                time_ns: process.started_ns.saturating_add(record.time_ns),
                stack: thrower(process, &process.stacks, stack_of(&record)),
                amount: u64::from(!is_again),
                samples: u64::from(is_again),
                ..StackEvent::default()
            }
        }));
    }
    StackEvents { table: process.stacks.clone(), events }
}

/// The stack of the function that threw: without the runtime's helper code on top, unless there are
/// no other frames.
fn thrower(process: &Process, table: &Stacks, stack: u32) -> u32 {
    let is_machinery = |stack: u32| match table.frames(stack).next() {
        Some(StackFrame::Method { function, .. }) => {
            process.functions.get(function as usize).is_some_and(|function| is_machinery(&function.name))
        }
        _ => false,
    };
    let callers = std::iter::successors(Some(stack), |&stack| table.caller(stack)).take(Stacks::DEEPEST);
    callers.into_iter().find(|&stack| !is_machinery(stack)).unwrap_or(stack)
}
