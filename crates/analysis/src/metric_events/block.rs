//! Blocks of events, stored in columns because sums read only a few of an event's properties.

use clrscope_recording::column::Column;
use clrscope_recording::model::{Process, Stacks};

use crate::metric::StackEvent;

/// A sequence of events.
pub(crate) struct Block {
    /// Start of the first event.
    pub(crate) first_ns: u64,
    /// End of the last event.
    pub(crate) last_ns: u64,
    /// Whether some events belong to idle threads or to objects of a type.
    pub(crate) is_mixed: bool,
    times: Column,
    threads: Column,
    stacks: Vec<u32>,
    amounts: Column,
    lasted: Column,
    samples: Column,
    flags: Column,
    about: Column,
}

/// One event; see [`StackEvent`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) lasted_ns: u64,
    pub(crate) amount: u64,
    /// Index into [`Process::threads`]; the number of threads if the thread is not known.
    pub(crate) thread: u32,
    /// Number of the stack among the stacks of the events.
    pub(crate) stack: u32,
    pub(crate) samples: u32,
    /// Flags of a sample.
    pub(crate) flags: u32,
    /// Type of the object, and the flag for an idle thread.
    pub(crate) about: u32,
}

/// Flag for an event of an idle thread.
const IDLE: u32 = 1 << 31;

impl Event {
    /// The original event, except for its stack, which remains a number among the stacks of the
    /// events.
    pub(crate) fn unpacked(self) -> StackEvent {
        StackEvent {
            thread: self.thread,
            time_ns: self.time_ns,
            stack: self.stack,
            lasted_ns: self.lasted_ns,
            amount: self.amount,
            samples: self.samples.into(),
            flags: self.flags,
            idle: self.about & IDLE != 0,
            object_type: self.about & !IDLE,
            request: 0,
        }
    }
}

impl Block {
    /// Creates a block of events. Stacks are places in the table, from 1; 0 represents an unknown
    /// stack.
    pub(super) fn new(process: &Process, table: &Stacks, found: &[StackEvent]) -> Self {
        let threads = process.threads.len() as u32;
        let about = |event: &StackEvent| event.object_type & !IDLE | if event.idle { IDLE } else { 0 };
        let end = |event: &StackEvent| event.time_ns.saturating_add(event.lasted_ns);
        let place = |stack: u32| table.node_position(stack).map_or(0, |place| place as u32 + 1);
        Self {
            first_ns: found.iter().map(|event| event.time_ns).min().unwrap_or(u64::MAX),
            last_ns: found.iter().map(end).max().unwrap_or(0),
            is_mixed: found.iter().any(|event| about(event) != 0),
            times: Column::from_numbers(found.iter().map(|event| event.time_ns)),
            threads: Column::from_numbers(found.iter().map(|event| event.thread.min(threads).into())),
            stacks: found.iter().map(|event| place(event.stack)).collect(),
            amounts: Column::from_numbers(found.iter().map(|event| event.amount)),
            lasted: Column::from_numbers(found.iter().map(|event| event.lasted_ns)),
            samples: Column::from_numbers(found.iter().map(|event| event.samples.min(u32::MAX.into()))),
            flags: Column::from_numbers(found.iter().map(|event| event.flags.into())),
            about: Column::from_numbers(found.iter().map(|event| about(event).into())),
        }
    }

    /// Stacks of the events in their order.
    pub(super) fn stacks(&self) -> &[u32] {
        &self.stacks
    }

    /// Stacks of the events in their order, to be renumbered.
    pub(super) fn stacks_mut(&mut self) -> &mut [u32] {
        &mut self.stacks
    }

    /// The events in their order.
    #[inline]
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        // Columns consist of numbers of these sizes.
        (0..self.stacks.len()).map(|at| Event {
            time_ns: self.times.at(at),
            lasted_ns: self.lasted.at(at),
            amount: self.amounts.at(at),
            thread: self.threads.at(at) as u32,
            stack: self.stacks[at],
            samples: self.samples.at(at) as u32,
            flags: self.flags.at(at) as u32,
            about: self.about.at(at) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_as_they_were() {
        let event = |number: u32| StackEvent {
            thread: number % 3,
            time_ns: u64::from(number) * 7,
            stack: 0,
            lasted_ns: u64::from(number % 2),
            amount: 5,
            samples: 1 + u64::from(number),
            flags: number << 8,
            idle: number == 4,
            object_type: number % 5,
            request: 0,
        };
        let all: Vec<StackEvent> = (0..6).map(event).collect();
        let process = Process { threads: vec![Default::default(); 3], ..Process::default() };
        let block = Block::new(&process, &Stacks::default(), &all);
        assert_eq!(block.events().map(Event::unpacked).collect::<Vec<_>>(), all);
        assert_eq!((block.first_ns, block.last_ns, block.is_mixed), (0, 36, true));
    }
}
